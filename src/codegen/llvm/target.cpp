// Target machines. `native` is what this CPU offers; a name (x86-64-v3) fixes the features, so that executables travel.
#include <llvm-c/Core.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Triple.h>

#include <memory>

#include "codegen/llvm/machine.h"
#include "support/internal.h"

namespace bendc::codegen {

namespace {
std::string take(char* text) {
  std::string out = text ? text : "";
  LLVMDisposeMessage(text);
  return out;
}

// A processor that LLVM does not know is one without features to it, and the code generator ends the process over what is missing.
bool makes_64_bit_code(const llvm::Target& target, const std::string& triple, const std::string& cpu) {
  auto info = [&](const std::string& name) { return std::unique_ptr<llvm::MCSubtargetInfo>(target.createMCSubtargetInfo(llvm::Triple(triple), name, "")); };
  if (const auto any = info(""); any && !any->isCPUStringValid(cpu)) return false;
  if (!llvm::Triple(triple).isX86()) return true;
  const auto named = info(cpu);
  return named && named->checkFeatures("+64bit");
}
}  // namespace

void MachineDeleter::operator()(Machine* machine) const {
  if (machine->target) LLVMDisposeTargetMachine(machine->target);
  delete machine;
}

// LLVM's fatal errors would abort the process with its own text; a user's program must never cause one, so each is an internal error.
void start_back_end() {
  LLVMResetFatalErrorHandler();
  LLVMInstallFatalErrorHandler([](const char* reason) { internal_error("LLVM", reason); });
}

MachinePtr host_machine(const MachineOptions& options, std::string& error) {
  // Registration is idempotent inside LLVM.
  LLVMInitializeNativeTarget();
  LLVMInitializeNativeAsmPrinter();
  LLVMInitializeNativeAsmParser();
  MachinePtr out(new Machine);
  out->triple = take(LLVMGetDefaultTargetTriple());
  out->optimize = options.optimize;
  if (options.cpu == "native") {
    out->cpu = take(LLVMGetHostCPUName());
    out->features = take(LLVMGetHostCPUFeatures());
  } else {
    out->cpu = options.cpu;
  }
  LLVMTargetRef target = nullptr;
  char* message = nullptr;
  if (LLVMGetTargetFromTriple(out->triple.c_str(), &target, &message)) {
    error = take(message);
    return nullptr;
  }
  if (options.cpu != "native" && !makes_64_bit_code(*reinterpret_cast<llvm::Target*>(target), out->triple, out->cpu)) {
    error = "LLVM knows no such processor with 64 bits";
    return nullptr;
  }
  const LLVMCodeGenOptLevel level = options.optimize == 0 ? LLVMCodeGenLevelNone : options.optimize == 1 ? LLVMCodeGenLevelLess
                                    : options.optimize == 2 ? LLVMCodeGenLevelDefault : LLVMCodeGenLevelAggressive;
  out->target = LLVMCreateTargetMachine(target, out->triple.c_str(), out->cpu.c_str(), out->features.c_str(), level, LLVMRelocPIC, LLVMCodeModelDefault);
  if (!out->target) {
    error = "no code generator for " + out->triple;
    return nullptr;
  }
  return out;
}

CpuFeatures cpu_features(const Machine& machine) {
  const llvm::MCSubtargetInfo& info = *reinterpret_cast<llvm::TargetMachine*>(machine.target)->getMCSubtargetInfo();
  return {info.checkFeatures("+fma"), info.checkFeatures("+sse4.1")};
}

void set_target(llvm::Module& module, const Machine& machine) {
  module.setTargetTriple(llvm::Triple(machine.triple));
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine.target);
  char* text = LLVMCopyStringRepOfTargetData(layout);
  module.setDataLayout(text);
  LLVMDisposeMessage(text);
  LLVMDisposeTargetData(layout);
}

}  // namespace bendc::codegen
