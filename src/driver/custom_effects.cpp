// A file is compiled with BEND_EFFECT_PREFIX set to its own prefix, so that two files may define effects of one name. The shared object finds
// effect.h's functions in bendc itself, which exports them (and nothing else).
#include "driver/custom_effects.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "driver/tool.h"
#include "runtime/effect.h"
#include "support/internal.h"

extern "C" const char bendrt_effect_header_begin[], bendrt_effect_header_end[], bendrt_abi_header_begin[], bendrt_abi_header_end[];

namespace bendc {

namespace {

constexpr std::string_view kHandlerPrefix = "bend_eff_";

std::string symbol_of(const EffectFile& file, const std::string& name) { return fmt::format("{}{}{}", kHandlerPrefix, file.prefix, name); }

std::string lacks(const EffectFile& file, const std::string& name) { return fmt::format("`{}` does not define BEND_EFFECT({})", file.path, name); }

// Names effect.h's functions, so that they are part of bendc, and sees to it that a shared object will find them.
void require_exports() {
  const struct { const char* name; void* address; } functions[] = {
#define BENDC_EFFECT_API(name) {#name, reinterpret_cast<void*>(&name)},
#include "runtime/effect.def"
#undef BENDC_EFFECT_API
  };
  for (const auto& function : functions)
    if (dlsym(RTLD_DEFAULT, function.name) != function.address) internal_error("loading effects", fmt::format("`{}` is not exported", function.name));
}

}  // namespace

std::vector<EffectFile> effect_files(const flow::Module& module) {
  std::vector<EffectFile> out;
  for (uint32_t i = 0; i < module.effects.size(); ++i) {
    const flow::Effect& effect = module.effects[flow::EffectId(i)];
    if (effect.c_path.empty()) continue;
    const size_t split = effect.name.find('_') + 1;
    const std::string prefix = effect.name.substr(0, split), name = effect.name.substr(split);
    auto file = std::find_if(out.begin(), out.end(), [&](const EffectFile& known) { return known.prefix == prefix; });
    if (file == out.end()) file = out.insert(out.end(), {effect.c_path, prefix, {}});
    if (std::find(file->names.begin(), file->names.end(), name) == file->names.end()) file->names.push_back(name);
  }
  return out;
}

EffectObjects compile_effects(const std::vector<EffectFile>& files, ScratchFolder& folder) {
  EffectObjects out;
  if (files.empty()) return out;
  folder.write("effect.h", {bendrt_effect_header_begin, static_cast<size_t>(bendrt_effect_header_end - bendrt_effect_header_begin)});
  folder.write("abi.h", {bendrt_abi_header_begin, static_cast<size_t>(bendrt_abi_header_end - bendrt_abi_header_begin)});
  out.message = folder.error();
  for (const EffectFile& file : files) {
    if (!out.message.empty()) return out;
    if (access(file.path.c_str(), R_OK) != 0) {
      out.message = fmt::format("the C file of an effect, `{}`, cannot be read: {}", file.path, std::strerror(errno));
      return out;
    }
    const std::string object = folder.file(file.prefix + ".o");
    const ToolResult ran = run_c_compiler({"-std=gnu11", "-O2", "-fPIC", "-Wall", "-I", folder.path(), fmt::format("-DBEND_EFFECT_PREFIX={}", file.prefix), "-c", path_word(file.path), "-o", object});
    out.output += ran.output;
    if (!ran.started) out.message = ran.message;
    else if (!ran.ok) out.message = fmt::format("`{}` cannot compile `{}`", c_compiler(), file.path);
    out.paths.push_back(object);
  }
  return out;
}

std::string missing_effects(const std::vector<EffectFile>& files, const std::string& output) {
  for (const EffectFile& file : files)
    for (const std::string& name : file.names)
      if (output.find(symbol_of(file, name)) != std::string::npos) return lacks(file, name);
  return {};
}

LoadedEffects load_effects(const std::vector<EffectFile>& files) {
  LoadedEffects out;
  if (files.empty()) return out;
  require_exports();
  ScratchFolder folder;
  EffectObjects objects = compile_effects(files, folder);
  out.output = std::move(objects.output);
  out.message = std::move(objects.message);
  if (!out.message.empty()) return out;
  const std::string library = folder.file("effects.so");
  std::vector<std::string> words{"-shared", "-o", library};
  words.insert(words.end(), objects.paths.begin(), objects.paths.end());
  words.insert(words.end(), {"-pthread", "-lm"});
  const ToolResult ran = run_c_compiler(std::move(words));
  out.output += ran.output;
  if (!ran.ok) {
    out.message = ran.started ? fmt::format("`{}` cannot link the program's effects", c_compiler()) : ran.message;
    return out;
  }
  void* loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!loaded) {
    const char* reason = dlerror();
    out.message = fmt::format("the program's effects cannot be loaded: {}", reason ? reason : "no reason given");
    return out;
  }
  for (const EffectFile& file : files) {
    for (const std::string& name : file.names) {
      const std::string symbol = symbol_of(file, name);
      void* address = dlsym(loaded, symbol.c_str());
      if (!address) {
        out.message = lacks(file, name);
        return out;
      }
      out.symbols.push_back({symbol, address});
    }
  }
  return out;
}

}  // namespace bendc
