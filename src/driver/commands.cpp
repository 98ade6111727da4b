#include "driver/commands.h"

#include <fmt/format.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "codegen/llvm/context.h"
#include "driver/allocator.h"
#include "driver/big_stack.h"
#include "driver/doc.h"
#include "driver/link.h"
#include "driver/pipeline.h"
#include "driver/stdlib_data.h"
#include "runtime/abi.h"
#include "support/explain.h"
#include "support/internal.h"
#include "support/render.h"

namespace bendc {

namespace {

constexpr int kExitInternal = 70;

void print(std::FILE* file, std::string_view text) { std::fwrite(text.data(), 1, text.size(), file); }

void print_times(const std::vector<PhaseTime>& times) {
  double total = 0;
  for (const PhaseTime& phase : times) {
    if (!phase.name.starts_with(' ')) total += phase.seconds;
    print(stderr, fmt::format("{:<24}{:>10.2f} ms\n", phase.name, phase.seconds * 1e3));
  }
  print(stderr, fmt::format("{:<24}{:>10.2f} ms\n", "total", total * 1e3));
}

void show_diagnostics(const Options& options, Compilation& compilation) {
  if (compilation.diagnostics.size() == 0) return;
  compilation.diagnostics.sort(compilation.sources);
  if (options.diagnostics == DiagnosticFormat::Json) return print(stderr, render_json(compilation.diagnostics, compilation.sources));
  RenderOptions render;
  render.color = isatty(STDERR_FILENO) != 0;
  print(stderr, render_text(compilation.diagnostics, compilation.sources, render));
}

// Compiles, shows what was found and dumped.
Compilation compiled(const Options& options, Goal goal) {
  Compilation out;
  if (run_on_big_stack([&](size_t stack) { out = compile(options, goal, stack); }) == 0) {
    print(stderr, "bendc: the system refuses a thread with a stack of 8 MiB\n");
    return out;
  }
  show_diagnostics(options, out);
  print(stdout, out.dump);
  return out;
}

// The exit status of a compilation that made no object.
int status_of(const Compilation& compilation) {
  switch (compilation.outcome) {
    case Outcome::Refused: return kExitRefused;
    case Outcome::Checked:
    case Outcome::Stopped:
    case Outcome::Object: return 0;
    case Outcome::Normalised:
      print(stdout, compilation.text + "\n");
      return 0;
    case Outcome::Failed:
      print(stderr, fmt::format("bend: {}\n", compilation.text));
      return 1;
  }
  return kExitInternal;
}

bool launched_from_device(std::string_view way) { return way == "thread" || way == "warp" || way == "block"; }

// The file of the program that lies at `output`; empty: none.
std::string source_at(const Compilation& compilation, const std::string& output) {
  auto there = [&](const std::string& path) {
    std::error_code absent;
    return std::filesystem::equivalent(path, output, absent);
  };
  for (uint32_t i = 0; i < compilation.sources.size(); ++i)
    if (const std::string& path = compilation.sources[FileId(i)].path; there(path)) return path;
  for (const EffectFile& file : compilation.effect_files)
    if (there(file.path)) return file.path;
  return "";
}

}  // namespace

int command_run(const Options& given) {
  Options options = given;
  const char* gpu = std::getenv("BEND_GPU");
  if (options.gpu.empty() && gpu) options.gpu = gpu;
  const char* fork = std::getenv("BEND_GPU_FORK");
  options.launches = launched_from_device(!options.gpu_fork.empty() ? options.gpu_fork : fork ? fork : "");
  // The runtime opens it again at the first `!`; here it only decides whether device code is worth making.
  if (void* library = options.gpu == "off" || options.gpu == "emulate" ? nullptr : dlopen("libcuda.so.1", RTLD_LAZY)) {
    options.driver_present = true;
    dlclose(library);
  }
  std::string object;
  std::vector<EffectFile> effect_files;
  std::vector<PhaseTime> times;
  {
    Compilation compilation = compiled(options, Goal::Run);
    times = std::move(compilation.times);
    if (compilation.outcome != Outcome::Object) {
      if (options.time_phases) print_times(times);
      return status_of(compilation);
    }
    object = std::move(compilation.object);
    effect_files = std::move(compilation.effect_files);
  }
  LoadedEffects effects = load_effects(effect_files);
  print(stderr, effects.output);
  if (!effects.message.empty()) {
    print(stderr, fmt::format("bendc: {}\n", effects.message));
    return kExitRefused;
  }
  std::string error;
  const codegen::MachinePtr machine = codegen::host_machine({}, error);
  if (!machine) internal_error("linking", error);
  std::vector<codegen::Symbol> symbols = codegen::runtime_symbols();
  symbols.insert(symbols.end(), effects.symbols.begin(), effects.symbols.end());
  const codegen::LoadedProgram loaded = codegen::load_object(object, *machine, symbols);
  if (!loaded.program) internal_error("linking", loaded.error);
  if (options.time_phases) print_times(times);
  std::fflush(stdout);
  give_freed_memory_back();

  BendOptions start = {};
  start.threads = options.threads;
  start.file = options.file.c_str();
  auto text = [](const std::string& word) { return word.empty() ? nullptr : word.c_str(); };
  start.gpu = text(given.gpu);
  start.gpu_device = text(options.gpu_device);
  start.gpu_memory = text(options.gpu_memory);
  start.gpu_fork = text(options.gpu_fork);
  start.gpu_threshold = text(options.gpu_threshold);
  start.stats = options.stats ? 1 : 0;
  std::vector<char*> argv{const_cast<char*>(options.file.c_str())};
  for (const std::string& word : options.words) argv.push_back(const_cast<char*>(word.c_str()));
  const int argc = static_cast<int>(argv.size());
  argv.push_back(nullptr);
  return bend_start(loaded.program, &start, argc, argv.data());
}

int command_build(const Options& given) {
  Options options = given;
  options.launches = options.gpu_fork == "all" || launched_from_device(options.gpu_fork);
  const Compilation compilation = compiled(options, Goal::Build);
  if (options.time_phases) print_times(compilation.times);
  if (compilation.outcome != Outcome::Object) return status_of(compilation);
  std::string output = options.output;
  if (output.empty()) {
    const size_t slash = options.file.rfind('/');
    output = slash == std::string::npos ? options.file : options.file.substr(slash + 1);
    if (output.ends_with(".bend")) output.resize(output.size() - 5);
    if (options.shared) output += ".so";
  }
  if (const std::string source = source_at(compilation, output); !source.empty()) {
    print(stderr, fmt::format("bendc: the output would overwrite `{}`, which the program is made of: name another by `-o`\n", source));
    return kExitUsage;
  }
  const LinkResult linked = link_program(compilation.object, compilation.effect_files, options.shared ? Linked::SharedObject : Linked::Executable, output);
  print(stderr, linked.output);
  if (linked.ok) return 0;
  print(stderr, fmt::format("bendc: {}\n", linked.message));
  return kExitRefused;
}

int command_check(const Options& options) {
  if (!options.dump.empty() && options.dump != "ast" && options.dump != "core") {
    print(stderr, fmt::format("bendc: check makes the forms ast and core, `bendc build --dump={0}` makes {0}\n", options.dump));
    return kExitUsage;
  }
  const Compilation compilation = compiled(options, Goal::Check);
  if (options.time_phases) print_times(compilation.times);
  if (compilation.outcome != Outcome::Checked) return status_of(compilation);
  if (!compilation.relies_on_unsafe.empty()) {
    print(stderr, fmt::format("note: {} {} on unsafe or foreign code: {}\n", compilation.relies_on_unsafe.size(),
                              compilation.relies_on_unsafe.size() == 1 ? "definition relies" : "definitions rely", fmt::join(compilation.relies_on_unsafe, ", ")));
  }
  print(stdout, fmt::format("{}: all checks pass\n", options.file));
  return 0;
}

int command_explain(const Options& given, const std::string& word) {
  if (word.ends_with(".bend") || word.find('/') != std::string::npos || access(word.c_str(), F_OK) == 0) {
    Options options = given;
    options.file = word;
    options.dump = options.html ? "forks-html" : "forks";
    return status_of(compiled(options, Goal::Run));
  }
  if (given.html) {
    print(stderr, fmt::format("bendc: explain: --html is for a program, and `{}` names no file\n", word));
    return kExitUsage;
  }
  const std::optional<Code> code = parse_code(word);
  if (!code) {
    print(stderr, fmt::format("bendc: no diagnostic has the code `{}`; `C6` and `c06` are spellings of one\n", word));
    return kExitUsage;
  }
  print(stdout, explain(*code));
  return 0;
}

int command_doctor(const Options& options) {
  BendOptions gpu = {};
  gpu.gpu_device = options.gpu_device.empty() ? nullptr : options.gpu_device.c_str();
  return bend_gpu_doctor(&gpu);
}

int command_doc(const std::string& name) {
  if (name.empty()) {
    print(stdout, list_documentation(embedded_stdlib()));
    return 0;
  }
  const std::optional<std::string> text = find_documentation(embedded_stdlib(), name);
  if (!text) {
    print(stderr, fmt::format("bendc: the library has no `{}`\n", name));
    return kExitRefused;
  }
  print(stdout, *text);
  return 0;
}

}  // namespace bendc
