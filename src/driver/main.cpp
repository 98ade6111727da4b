// The command line. Usage errors name the option and end with status 2.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#include "codegen/llvm/context.h"
#include "driver/allocator.h"
#include "driver/assemble.h"
#include "driver/commands.h"
#include "driver/pipeline.h"

namespace {

using bendc::Options;

int usage_error(const std::string& message) {
  std::fprintf(stderr, "bendc: %s\n(`bendc --help` lists commands and options)\n", message.c_str());
  return bendc::kExitUsage;
}

// The machine has no memory left for the compiler: no phase can go on, and what a program holds is not touched by then.
[[noreturn]] void out_of_memory() {
  std::fputs("bendc: the system gives no more memory to compile with\n", stderr);
  std::_Exit(bendc::kExitRefused);
}

// A name out of a closed list, or what is wrong with it.
CLI::Validator named(std::string (*complain)(const std::string&), const char* kind) {
  return CLI::Validator([complain](std::string& word) { return complain(word); }, kind);
}

void add_common(CLI::App* command, Options& options) {
  command->add_option_function<std::string>(
             "--diagnostics", [&options](const std::string& format) { options.diagnostics = format == "json" ? bendc::DiagnosticFormat::Json : bendc::DiagnosticFormat::Text; },
             "how to report: text, or json with one object a line on stderr")
      ->check(CLI::IsMember({"text", "json"}))
      ->type_name("FORMAT");
  command->add_flag("--time-phases", options.time_phases, "say on stderr how long each phase took");
  command->add_flag("--verify", options.verify, "check the compiler's own invariants after each phase");
  command->add_option("--stop-after", options.stop_after, "end after a phase or a Flow pass")->check(named(bendc::complain_about_stop, "PHASE"));
  command->add_option("--dump", options.dump, "print a form of the program and end: ast, core, flow, device, forks, llvm, llvm-opt, device-llvm, ptx, asm, after:PASS")
      ->check(named(bendc::complain_about_dump, "FORM"));
}

void add_code_options(CLI::App* command, Options& options, const char* levels) {
  command->add_option("-O", options.optimize, levels)->check(CLI::Range(0, 3))->type_name("LEVEL");
  command->add_option("--cpu", options.cpu, "CPU to compile for: native, or a name such as x86-64-v3")->type_name("NAME");
}

int command(int argc, char** argv) {
  std::set_new_handler(out_of_memory);
  bendc::keep_freed_memory();
  bendc::codegen::start_back_end();
  Options options;
  std::string subject;
  CLI::App app{"bendc: compiles and checks Bend 2 programs"};
  app.set_version_flag("--version", "bendc 0.1.0");
  app.require_subcommand(1);

  CLI::App* run = app.add_subcommand("run", "run [OPTIONS] FILE [WORDS...]: check FILE, compile it in memory, run its main; every word after FILE is the program's");
  run->prefix_command();   // the first word that is no option ends ours
  add_common(run, options);
  add_code_options(run, options, "optimisation level, 0 to 3 (1)");
  run->add_option("--threads", options.threads, "worker threads; default: BEND_THREADS, or the CPUs there are")->check(CLI::Range(1, 128))->type_name("N");
  run->add_option("--gpu", options.gpu, "where `!` calls run: auto, off, require, emulate; default: BEND_GPU or auto")->check(CLI::IsMember({"auto", "off", "require", "emulate"}))->type_name("USE");
  run->add_option("--gpu-device", options.gpu_device, "index or UUID of the device; default: BEND_GPU_DEVICE or the first")->type_name("DEVICE");
  run->add_option("--gpu-memory", options.gpu_memory, "memory of the device to use, such as 8GB; default: BEND_GPU_MEMORY or a share of what is free")->type_name("SIZE");
  run->add_option("--gpu-fork", options.gpu_fork, "how forks are dealt out: auto, thread, warp, block, host, flat, sequential; default: BEND_GPU_FORK or auto")->type_name("WAY");
  run->add_option("--gpu-threshold", options.gpu_threshold, "work below this runs inside its thread; default: BEND_GPU_THRESHOLD, or 10 for grids launched from the device and 0 otherwise")->type_name("N");
  run->add_flag("--stats", options.stats, "counters on stderr at the end");
  run->add_flag("--normalise", options.normalise, "evaluate main in the checker and print its normal form");

  CLI::App* build = app.add_subcommand("build", "compile FILE to an executable");
  add_common(build, options);
  add_code_options(build, options, "optimisation level, 0 to 3 (3)");
  build
      ->add_option("-o", options.output, "the executable; default: FILE's name without .bend (--shared: with .so)")
      ->check(CLI::Validator([](std::string& path) { return path.empty() ? std::string("an empty name") : std::string(); }, "PATH"))
      ->type_name("PATH");
  build->add_flag("--emulator", options.emulator, "include the device code compiled for this machine: BEND_GPU=emulate runs it");
  build
      ->add_option_function<std::vector<std::string>>(
          "--gpu-arch",
          [&options](const std::vector<std::string>& words) {
            for (const std::string& word : words) options.gpu_archs.push_back(bendc::parse_arch(word));
          },
          "include machine code for these GPUs too, such as sm_90 or sm_80,sm_90, made by the ptxas of a CUDA toolkit: their driver then compiles nothing at the start")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Validator(
          [](std::string& word) { return bendc::parse_arch(word) ? std::string() : "`" + word + "` is no GPU architecture like sm_90; sm_70 is the oldest"; }, "ARCH"))
      ->type_name("ARCH");
  build->add_flag("--no-ptx", options.no_ptx, "leave the code for a GPU out, which takes most of a build's time: for tests with --emulator")->excludes(build->get_option("--gpu-arch"));
  build->add_option("--gpu-fork", options.gpu_fork, "what BEND_GPU_FORK may ask for: auto (auto, host, flat, sequential), or all (thread, warp and block too, launched from the device)")
      ->check(CLI::IsMember({"auto", "all", "thread", "warp", "block", "host", "flat"}))
      ->type_name("WAYS");
  build->add_flag("--shared", options.shared, "write a shared object that defines `bend_program`, for a process that holds the runtime (docs/abi.md)");
  build->add_option("FILE", options.file, "the program")->required();

  CLI::App* check = app.add_subcommand("check", "check FILE and say which definitions rely on unsafe code");
  add_common(check, options);
  check->add_flag("--safe", options.safe, "relying on unsafe or foreign code is an error");
  check->add_option("FILE", options.file, "the program")->required();

  CLI::App* explain = app.add_subcommand("explain", "explain a diagnostic's code, with examples, or where the forks and `!` calls of a program run");
  explain->add_flag("--html", options.html, "of a program: one self-contained page");
  explain->add_option("CODE|FILE", subject, "a code such as C6, or a program: a name that ends in .bend or has a slash")->required();

  CLI::App* doctor = app.add_subcommand("doctor", "describe the GPU, its driver and limits, and test it");
  doctor->add_option("--gpu-device", options.gpu_device, "index or UUID of the device; default: BEND_GPU_DEVICE or the first")->type_name("DEVICE");

  CLI::App* doc = app.add_subcommand("doc", "show a library definition's signature and text, or list all of them");
  doc->add_option("NAME", subject, "a name such as List.map");

  const std::vector<CLI::App*> commands = app.get_subcommands({});
  if (argc > 1 && argv[1][0] != '-' && std::none_of(commands.begin(), commands.end(), [&](const CLI::App* command) { return command->get_name() == argv[1]; }))
    return usage_error(std::string("there is no command `") + argv[1] + "`" +
                       (std::string_view(argv[1]).ends_with(".bend") ? std::string("; a program is run by `bendc run ") + argv[1] + "`" : std::string()));
  // `--` before FILE ends run's options, behind FILE it is a word of the program.
  int ours = argc;
  if (argc > 1 && std::string_view(argv[1]) == run->get_name()) ours = static_cast<int>(std::find(argv, argv + argc, std::string_view("--")) - argv);
  try {
    app.parse(ours, argv);
    if (ours < argc && !run->remaining().empty()) app.parse(ours = argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app.exit(version);
  } catch (const CLI::ParseError& error) {
    return usage_error(error.what());
  }
  if (run->parsed()) {
    std::vector<std::string> rest = run->remaining();
    if (ours < argc) rest.assign(argv + ours + 1, argv + argc);
    if (rest.empty()) return usage_error("run: FILE is missing");
    if (ours == argc && rest[0].size() > 1 && rest[0][0] == '-') return usage_error("run: there is no option `" + rest[0] + "`");
    options.file = rest[0];
    options.words.assign(rest.begin() + 1, rest.end());
    return bendc::command_run(options);
  }
  if (build->parsed()) return bendc::command_build(options);
  if (check->parsed()) return bendc::command_check(options);
  if (doctor->parsed()) return bendc::command_doctor(options);
  if (explain->parsed()) return bendc::command_explain(options, subject);
  return bendc::command_doc(subject);
}

// What a full disk kept from standard output is no success. A program's own output is the runtime's, which says so itself.
int after_output(int status) {
  const bool flushed = std::fflush(stdout) == 0;
  const int error = errno;
  if (flushed && std::ferror(stdout) == 0) return status;
  std::fprintf(stderr, "bendc: standard output did not take everything: %s\n", flushed ? "an earlier write failed" : std::strerror(error));
  return status == 0 ? bendc::kExitRefused : status;
}

}  // namespace

int main(int argc, char** argv) { return after_output(command(argc, argv)); }
