// Machine code: an ELF object or assembly text from an optimised module.
#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>
#include <llvm/IR/Module.h>

#include "codegen/llvm/emitter.h"
#include "codegen/llvm/machine.h"

namespace bendc::codegen {

namespace {
ObjectResult emit(IrModule& module, const Machine& machine, LLVMCodeGenFileType type) {
  ObjectResult out;
  char* message = nullptr;
  LLVMMemoryBufferRef buffer = nullptr;
  if (LLVMTargetMachineEmitToMemoryBuffer(machine.target, llvm::wrap(module.module.get()), type, &message, &buffer)) {
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
