#include "driver/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "checker/book.h"
#include "checker/elaborate.h"
#include "checker/normalise.h"
#include "codegen/flow_text.h"
#include "codegen/flow_verify.h"
#include "codegen/from_core.h"
#include "codegen/gpu/explain_forks.h"
#include "codegen/gpu/machine_plan.h"
#include "codegen/gpu/segments.h"
#include "codegen/llvm/context.h"
#include "codegen/passes.h"
#include "driver/assemble.h"
#include "driver/packages_folder.h"
#include "driver/proof_gate.h"
#include "driver/stdlib_data.h"
#include "frontend/ast_print.h"
#include "frontend/file_reader.h"
#include "support/internal.h"

namespace bendc {

namespace {

constexpr size_t kStackReserve = size_t{1} << 20;   // for what calls the phases that take a stack limit

class Pipeline {
 public:
  Pipeline(const Options& options, Goal goal, size_t stack) : options_(options), goal_(goal), stack_(stack) {}

  Compilation run() {
    front();
    return std::move(out_);
  }

 private:
  template <class Work> auto timed(std::string name, Work work) {
    const auto start = std::chrono::steady_clock::now();
    auto result = work();
    out_.times.push_back({std::move(name), std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()});
    return result;
  }
  // Takes a phase's diagnostics; false: the compilation ends here.
  bool accept(Diagnostics diagnostics) {
    out_.diagnostics.append(std::move(diagnostics));
    return !out_.diagnostics.has_errors();
  }
  bool stop(std::string_view phase) {
    if (options_.stop_after != phase) return false;
    out_.outcome = Outcome::Stopped;
    return true;
  }
  bool dumped(std::string_view what, const auto& text) {
    if (options_.dump != what) return false;
    out_.dump = text();
    out_.outcome = Outcome::Stopped;
    return true;
  }
  void refuse(Code code, Span span, std::string message, std::string fix) { out_.diagnostics.add(code, span, std::move(message)).fix = std::move(fix); }

  void front() {
    const FileReader reader = disk_reader(packages_folder());
    LoadResult loaded = timed("load", [&] { return load_program(out_.sources, names_, options_.file, reader, embedded_stdlib()); });
    const bool parsed = accept(std::move(loaded.diagnostics));
    if (!loaded.entry_readable) return;
    if (dumped("ast", [&] { return print_ast(loaded.program.modules[loaded.program.entry].ast, names_); })) return;
    if (!parsed) {
      // A file that does not parse may hold further mistakes that only names show; elaboration is not asked, its errors could be echoes.
      return;
    }
    if (!accept(check_proof_gate(loaded.program, out_.sources, options_.file, reader))) return;
    if (stop("load")) return;
    ElaborateResult elaborated = timed("elaborate", [&] { return elaborate(loaded.program, out_.sources, names_, stack_ - kStackReserve); });
    if (!accept(std::move(elaborated.diagnostics)) || stop("elaborate")) return;
    core::Book& book = elaborated.book;

    CheckOptions check;
    check.safe = options_.safe;
    check.verify = options_.verify;
    check.stack = stack_ - kStackReserve;
    CheckResult checked = timed("check", [&] { return check_book(book, out_.sources, names_, check); });
    if (!accept(std::move(checked.diagnostics))) return;
    if (dumped("core", [&] { return core::print_book(book, names_); }) || stop("check")) return;
    if (goal_ == Goal::Check) {
      for (core::DefId def : checked.verdict.relies_on_unsafe) out_.relies_on_unsafe.push_back(core::display_name(names_.text(book.defs[def].name)));
      out_.outcome = Outcome::Checked;
      return;
    }
    if (goal_ == Goal::Run && !book.main.valid()) {
      refuse(Code::B5, Span{}, fmt::format("`{}` has no `main` to run", options_.file), fmt::format("`bendc check {}` checks a file without one", options_.file));
      return;
    }
    const std::vector<core::DefId>& unsafe = checked.verdict.relies_on_unsafe;
    main_is_safe_ = std::find(unsafe.begin(), unsafe.end(), book.main) == unsafe.end();
    if (options_.normalise) return normal_form(book);
    back(book);
  }

  void normal_form(core::Book& book) {
    if (!main_is_safe_) {
      // Such code need not end, and what it means is what it does when it runs.
      return refuse(Code::B3, book.defs[book.main].name_span, "`main` relies on unsafe or foreign code, which is compiled and never evaluated in the checker",
                    options_.normalise ? fmt::format("`bendc run {}` compiles it", options_.file) : std::string("give `main` a type that a program can print"));
    }
    NormaliseOptions options;
    options.stack = stack_ - kStackReserve;
    NormaliseResult result = timed("normalise", [&] { return normalise(book, names_, book.main, options); });
    out_.outcome = Outcome::Failed;
    switch (result.status) {
      case NormaliseStatus::Ok:
        out_.outcome = Outcome::Normalised;
        out_.text = std::move(result.text);
        return;
      case NormaliseStatus::NatOverflow: out_.text = "a Nat past the largest immediate 2^48-1"; return;
      case NormaliseStatus::OutOfFuel: out_.text = "normalising main takes too many steps"; return;
      case NormaliseStatus::OutOfMemory: out_.text = "normalising main takes too much memory"; return;
      case NormaliseStatus::OutOfStack: out_.text = "normalising main nests too deep"; return;
      case NormaliseStatus::NoBody: out_.text = "`main` has no body to normalise"; return;
    }
  }

  void back(core::Book& book) {
    LowerResult lowered = timed("lower", [&] { return lower(book, out_.sources, names_, stack_ - kStackReserve); });
    if (!accept(std::move(lowered.diagnostics))) return;
    if (lowered.needs_normalise) {
      if (goal_ == Goal::Run) return normal_form(book);
      refuse(Code::B5, book.defs[book.main].name_span, "the type of `main` holds functions, types, proofs or erased fields, which a program cannot print",
             fmt::format("`bendc run {}` shows its normal form", options_.file));
      return;
    }
    PassOptions passes;
    passes.verify = options_.verify;
    passes.stop_after = options_.stop_after;
    passes.optimize = optimize();
    if (options_.dump.starts_with("after:")) passes.dump_after = options_.dump.substr(6);
    PassReport report = timed("passes", [&] { return run_passes(lowered.module, passes); });
    for (const PassTiming& pass : report.timings) out_.times.push_back({"  " + pass.name, pass.seconds});
    if (!report.internal_error.empty()) internal_error("the Flow passes", report.internal_error);
    if (!passes.dump_after.empty()) {
      out_.dump = std::move(report.dump);
      out_.outcome = Outcome::Stopped;
      return;
    }
    if (dumped("flow", [&] { return flow::print_module(lowered.module); })) return;
    const bool stopped = std::any_of(pass_table().begin(), pass_table().end(), [&](const Pass& pass) { return pass.name == options_.stop_after; });
    if (stopped || stop("lower")) {
      out_.outcome = Outcome::Stopped;
      return;
    }
    native(lowered.module);
  }

  [[nodiscard]] int optimize() const { return options_.optimize >= 0 ? options_.optimize : goal_ == Goal::Build ? 3 : 1; }

  void native(const flow::Module& module) {
    codegen::MachineOptions machine_options;
    machine_options.optimize = optimize();
    // An executable travels, so it gets a baseline that every x86-64 server of the last ten years has; `run` stays here.
    machine_options.cpu = !options_.cpu.empty() ? options_.cpu : goal_ == Goal::Build ? "x86-64-v3" : "native";
    std::string error;
    codegen::MachinePtr machine = timed("target", [&] { return codegen::host_machine(machine_options, error); });
    if (!machine) {
      refuse(Code::B5, Span{}, fmt::format("no code can be made for the CPU `{}`: {}", machine_options.cpu, error), "`--cpu` takes `native`, or a name such as `x86-64-v3`");
      return;
    }
    codegen::EmitOptions emit;
    emit.program_name = options_.file;
    emit.sources = &out_.sources;
    codegen::DeviceCode device_code;
    DeviceModule device;
    MachinePlan plan;
    if (options_.gpu != "off" || options_.emulator) {
      device = timed("segments", [&] { return split_segments(module); });
      plan = plan_machine(device);
      if (options_.verify) {
        if (std::string complaint = flow::verify(device.module); !complaint.empty()) internal_error("split_segments", complaint);
      }
      if (dumped("device", [&] { return flow::print_module(device.module); })) return;
      if (dumped("forks", [&] { return explain_forks(module, device, plan, out_.sources); })) return;
      if (dumped("forks-html", [&] { return explain_html(module, device, plan, out_.sources, options_.file); })) return;
      if (!device.entries.empty()) {
        device_code.device = &device;
        device_code.plan = &plan;
        device_code.emulated = options_.emulator || options_.gpu == "emulate";
        emit.gpu = &device_code;
        if (!plan.segments.empty() && wants_ptx() && !(device_text(device_code, emit, false) && (!options_.launches || device_text(device_code, emit, true)) && machine_code(device_code))) return;
      }
    }
    codegen::IrModulePtr ir = timed("emit", [&] { return codegen::emit_module(module, *machine, emit); });
    if (options_.verify) {
      if (std::string complaint = codegen::verify_ir(*ir); !complaint.empty()) internal_error("code generation", complaint);
    }
    if (dumped("llvm", [&] { return codegen::print_ir(*ir); }) || stop("emit")) return;
    error = timed("optimize", [&] { return codegen::optimize_module(*ir, *machine, optimize()); });
    if (!error.empty()) internal_error("optimisation", error);
    if (optimize() >= 2) warn_of_large(module, codegen::too_large_functions(*ir));
    if (dumped("llvm-opt", [&] { return codegen::print_ir(*ir); }) || stop("optimize")) return;
    if (options_.dump == "asm") {
      codegen::ObjectResult assembly = codegen::emit_assembly(*ir, *machine);
      if (!assembly.error.empty()) internal_error("code generation", assembly.error);
      dumped("asm", [&] { return std::move(assembly.bytes); });
      return;
    }
    codegen::ObjectResult object = timed("object", [&] { return codegen::emit_object(*ir, *machine); });
    if (!object.error.empty()) internal_error("code generation", object.error);
    out_.object = std::move(object.bytes);
    out_.effect_files = effect_files(module);
    out_.outcome = Outcome::Object;
  }

  void warn_of_large(const flow::Module& module, const std::vector<flow::FuncId>& functions) {
    for (flow::FuncId id : functions) {
      const flow::Func& func = module.funcs[id];
      Diagnostic& d = out_.diagnostics.add(Code::W5, func.span, fmt::format("`{}` is too large to be optimised", flow::user_name(func)));
      d.notes.emplace_back("the time of optimising grows faster than a function; this one is compiled as with -O0, the others as asked");
      d.fix = "divide it into several definitions";
    }
  }

  // Emulated runs need none, and without a driver's library here none could be loaded.
  [[nodiscard]] bool wants_ptx() const {
    if (options_.dump == "ptx" || options_.dump == "device-llvm") return true;
    if (goal_ == Goal::Build) return !options_.no_ptx;
    return options_.gpu != "emulate" && (options_.gpu == "require" || options_.driver_present);
  }

  // PTX for the baseline; false: the compilation ends here.
  bool device_text(codegen::DeviceCode& code, codegen::EmitOptions emit, bool launches) {
    // The last module made is the one that --dump shows.
    const bool shown = launches == options_.launches;
    emit.launches = launches;
    constexpr uint32_t kBaseline = 70;
    std::string error;
    codegen::MachinePtr machine = codegen::device_machine(kBaseline, error);
    if (!machine) internal_error("device code", error);
    codegen::IrModulePtr ir = timed("device emit", [&] { return codegen::emit_device_module(*machine, emit); });
    if (options_.verify) {
      if (std::string complaint = codegen::verify_ir(*ir); !complaint.empty()) internal_error("device code generation", complaint);
    }
    error = timed("device optimize", [&] { return codegen::optimize_module(*ir, *machine, 3); });
    if (!error.empty()) internal_error("device optimisation", error);
    // Passes of our own have changed it since.
    if (options_.verify) {
      if (std::string complaint = codegen::verify_ir(*ir); !complaint.empty()) internal_error("device optimisation", complaint);
    }
    if (shown && dumped("device-llvm", [&] { return codegen::print_ir(*ir); })) return false;
    error = codegen::check_device_ir(*ir);
    if (!error.empty()) internal_error("device code", error);
    codegen::ObjectResult ptx = timed("ptx", [&] { return codegen::emit_assembly(*ir, *machine); });
    if (!ptx.error.empty()) internal_error("device code", ptx.error);
    if (shown && dumped("ptx", [&] { return ptx.bytes; })) return false;
    code.codes.push_back({kBaseline, std::move(ptx.bytes), launches});
    return true;
  }

  // Machine code of the PTX for the architectures asked for. The launch module has none: it is linked where it runs.
  bool machine_code(codegen::DeviceCode& code) {
    const std::string ptx = code.codes.front().bytes;
    for (const uint32_t arch : options_.gpu_archs) {
      Assembled made = timed(fmt::format("ptxas sm_{}", arch), [&] { return assemble_device(ptx, arch); });
      if (!made.message.empty()) {
        refuse(Code::B5, Span{}, fmt::format("`--gpu-arch sm_{}`: {}", arch, made.message), "without it the executable holds PTX, which the driver compiles at the first start");
        if (!made.output.empty()) out_.diagnostics.last().notes.push_back(made.output);
        return false;
      }
      code.codes.push_back({arch, std::move(made.code), false, true});
    }
    return true;
  }

  const Options& options_;
  const Goal goal_;
  bool main_is_safe_ = true;
  const size_t stack_;
  Interner names_;
  Compilation out_;
};

bool is_pass(std::string_view name) {
  return std::any_of(pass_table().begin(), pass_table().end(), [&](const Pass& pass) { return pass.name == name; });
}

std::string pass_names() {
  std::string out;
  for (const Pass& pass : pass_table()) out += fmt::format("{}{}", out.empty() ? "" : ", ", pass.name);
  return out;
}

}  // namespace

Compilation compile(const Options& options, Goal goal, size_t stack) { return Pipeline(options, goal, stack).run(); }

std::string complain_about_dump(const std::string& word) {
  for (std::string_view known : {"ast", "core", "flow", "device", "forks", "forks-html", "llvm", "llvm-opt", "device-llvm", "ptx", "asm", "after:lower", "after:all"})
    if (word == known) return {};
  if (word.starts_with("after:") && is_pass(word.substr(6))) return {};
  return fmt::format("no form is called `{}`; there are ast, core, flow, device, forks, forks-html, llvm, llvm-opt, device-llvm, ptx, asm and after:PASS with lower, {}, all", word, pass_names());
}

std::string complain_about_stop(const std::string& word) {
  for (std::string_view known : {"load", "elaborate", "check", "lower", "emit", "optimize"})
    if (word == known) return {};
  if (is_pass(word)) return {};
  return fmt::format("no phase is called `{}`; there are load, elaborate, check, lower, {}, emit, optimize", word, pass_names());
}

}  // namespace bendc
