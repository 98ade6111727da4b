// The LLVM back end as others see it: Flow module -> opaque LLVM module -> optimised -> object bytes -> linked into this process (ORC)
// or written to a file. Only this folder includes LLVM headers. Errors are strings: every one of them is an internal error, except
// a machine's (unknown CPU name) and a missing symbol at load time.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/flow.h"
#include "support/source.h"

struct BendProgram;

namespace bendc {
struct DeviceModule;
struct MachinePlan;
}

namespace bendc::codegen {

struct IrModule;
struct IrModuleDeleter { void operator()(IrModule* module) const; };
using IrModulePtr = std::unique_ptr<IrModule, IrModuleDeleter>;

struct Machine;
struct MachineDeleter { void operator()(Machine* machine) const; };
using MachinePtr = std::unique_ptr<Machine, MachineDeleter>;

// Once per process, before anything else here: routes LLVM's fatal errors to internal_error.
void start_back_end();

// Emulated: device code as functions of the host module.
enum class TargetKind : uint8_t { Host, Device, Emulated };

struct MachineOptions {
  std::string cpu = "native";      // an LLVM CPU name, or "native"
  int optimize = 2;                // 0..3
};
// A machine for this host's triple; `error` is set and null returned for an unknown CPU.
[[nodiscard]] MachinePtr host_machine(const MachineOptions& options, std::string& error);

struct DeviceText {
  uint32_t arch = 0;               // 70: for sm_70 and later
  std::string bytes;               // PTX, or machine code
  bool launches = false;           // the launch module (runtime/gpu/launch_abi.h)
  bool assembled = false;          // for `arch` and its family alone (driver/assemble.h)
};

// The device program as the emitter sees it. The first emission of device code fills `sites`, any other finds the same.
struct DeviceCode {
  const DeviceModule* device = nullptr;
  const MachinePlan* plan = nullptr;
  std::vector<std::string> sites;  // places of run-time errors
  std::vector<DeviceText> codes;
  bool emulated = false;           // the host module gets the machine compiled for the host
};

// Instructions that not every CPU has.
struct CpuFeatures {
  bool fma = true, rounding = true;
};

struct EmitOptions {
  TargetKind target = TargetKind::Host;
  bool threads = true;             // forks leave tasks to other workers; counts of what crosses them change atomically when others run
  std::string program_name;        // BendProgram::name
  bool launches = false;           // of device code: forks may be launched from the device
  DeviceCode* gpu = nullptr;       // null: a `!` is an ordinary call
  CpuFeatures cpu;                 // set by the emit functions, from their machine
  const SourceMap* sources = nullptr;  // for the sites of run-time errors; null: no line numbers
};
// Never fails on a module the Flow verifier accepts.
[[nodiscard]] IrModulePtr emit_module(const flow::Module& module, const Machine& machine, const EmitOptions& options);

// Device code of options.gpu for a device's machine; the kernel is bend_round (runtime/gpu/device_abi.h), with options.launches bend_children.
[[nodiscard]] MachinePtr device_machine(uint32_t arch, std::string& error);
[[nodiscard]] IrModulePtr emit_device_module(const Machine& machine, const EmitOptions& options);
// What NVPTX cannot select or a device cannot run (recursion, indirect calls), or empty.
[[nodiscard]] std::string check_device_ir(const IrModule& module);

[[nodiscard]] std::string verify_ir(const IrModule& module);       // first complaint, or empty
[[nodiscard]] std::string print_ir(const IrModule& module);

// level 0: only what code generation relies on; 1: fast to compile (default of `run`); 2, 3: LLVM's pipelines of those names.
[[nodiscard]] std::string optimize_module(IrModule& module, const Machine& machine, int level);

// The program's functions that optimize_module left as they were: optimising them would take minutes (bound_functions.h).
[[nodiscard]] const std::vector<flow::FuncId>& too_large_functions(const IrModule& module);

struct ObjectResult {
  std::string bytes;               // ELF object, or assembly text
  std::string error;
};
[[nodiscard]] ObjectResult emit_object(IrModule& module, const Machine& machine);
[[nodiscard]] ObjectResult emit_assembly(IrModule& module, const Machine& machine);

struct Symbol {
  std::string name;
  void* address;
};
// What generated code may call: the functions of runtime/abi.def, the effects of runtime/effects.def, and libc's memory functions.
[[nodiscard]] std::vector<Symbol> runtime_symbols();

// An object linked into this process. The program lives as long as this value.
class LoadedProgram {
 public:
  LoadedProgram();
  ~LoadedProgram();
  LoadedProgram(LoadedProgram&&) noexcept;
  LoadedProgram& operator=(LoadedProgram&&) noexcept;

  const BendProgram* program = nullptr;
  std::string error;               // "missing symbol bend_eff_x"

 private:
  friend LoadedProgram load_object(std::string_view object, const Machine& machine, const std::vector<Symbol>& symbols);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};
[[nodiscard]] LoadedProgram load_object(std::string_view object, const Machine& machine, const std::vector<Symbol>& symbols);

}  // namespace bendc::codegen
