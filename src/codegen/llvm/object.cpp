// Machine code: an ELF object or assembly text from an optimised module.
#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include "codegen/llvm/bound_functions.h"
#include "codegen/llvm/emitter.h"
#include "codegen/llvm/machine.h"

namespace bendc::codegen {

namespace {
ObjectResult emit(IrModule& module, const Machine& machine, LLVMCodeGenFileType type) {
  ObjectResult out;
  char* message = nullptr;
  LLVMMemoryBufferRef buffer = nullptr;
  auto& target = *reinterpret_cast<llvm::TargetMachine*>(machine.target);
  const llvm::CodeGenOptLevel level = target.getOptLevel();
  if (has_huge_function(*module.module)) target.setOptLevel(llvm::CodeGenOptLevel::None);
  const bool failed = LLVMTargetMachineEmitToMemoryBuffer(machine.target, llvm::wrap(module.module.get()), type, &message, &buffer);
  target.setOptLevel(level);
  if (failed) {
    out.error = message ? message : "code generation failed";
    LLVMDisposeMessage(message);
    return out;
  }
  out.bytes.assign(LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
  LLVMDisposeMemoryBuffer(buffer);
  return out;
}
}  // namespace

ObjectResult emit_object(IrModule& module, const Machine& machine) { return emit(module, machine, LLVMObjectFile); }
ObjectResult emit_assembly(IrModule& module, const Machine& machine) { return emit(module, machine, LLVMAssemblyFile); }

}  // namespace bendc::codegen
