// Object and archive go to a scratch folder, `cc` links them. Executables need libc and the loader alone: no C++ library, and
// libgcc's few helpers are linked statically.
#include "driver/link.h"

#include <fmt/format.h>

#include "driver/scratch.h"
#include "driver/tool.h"

extern "C" const char bendrt_archive_begin[], bendrt_archive_end[];

namespace bendc {

LinkResult link_program(std::string_view object, const std::vector<EffectFile>& effects, Linked as, const std::string& path) {
  ScratchFolder folder;
  const std::string program = folder.write("program.o", object);
  std::string archive;
  if (as == Linked::Executable) archive = folder.write("libbendrt.a", {bendrt_archive_begin, static_cast<size_t>(bendrt_archive_end - bendrt_archive_begin)});
  if (!folder.error().empty()) return {false, folder.error(), ""};
  EffectObjects objects = compile_effects(effects, folder);
  if (!objects.message.empty()) return {false, objects.message, objects.output};
  std::vector<std::string> words{"-o", path_word(path), program};
  words.insert(words.end(), objects.paths.begin(), objects.paths.end());
  switch (as) {
    case Linked::Executable: words.insert(words.end(), {archive, "-static-libgcc", "-pthread", "-ldl"}); break;
    case Linked::SharedObject: words.insert(words.end(), {"-shared", "-static-libgcc", "-pthread"}); break;
  }
  if (!objects.paths.empty()) words.emplace_back("-lm");   // effects are C, which may use it; our own code does not
#if defined(__SANITIZE_THREAD__)
  words.emplace_back("-fsanitize=thread");
#elif defined(__SANITIZE_ADDRESS__)
  words.emplace_back("-fsanitize=address,undefined");
#endif
  ToolResult ran = run_c_compiler(std::move(words));
  if (!ran.started) return {false, ran.message, objects.output};
  if (ran.ok) return {true, "", objects.output + ran.output};
  if (std::string missing = missing_effects(effects, ran.output); !missing.empty()) return {false, missing, objects.output};
  return {false, fmt::format("`{}` cannot link `{}`", c_compiler(), path), objects.output + ran.output};
}

}  // namespace bendc
