// Optimisation: LLVM's new pass manager, pipelines as text.
#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <llvm/IR/Module.h>

#include "codegen/llvm/emitter.h"
#include "codegen/llvm/machine.h"

namespace bendc::codegen {

std::string optimize_module(IrModule& module, const Machine& machine, int level) {
  const char* pipeline = level <= 0 ? "always-inline,function(simplifycfg,sroa)" : level == 1 ? "default<O1>" : level == 2 ? "default<O2>" : "default<O3>";
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  LLVMErrorRef failed = LLVMRunPasses(llvm::wrap(module.module.get()), pipeline, machine.target, options);
  LLVMDisposePassBuilderOptions(options);
  if (!failed) return {};
  char* message = LLVMGetErrorMessage(failed);
  std::string text = message;
  LLVMDisposeErrorMessage(message);
  return text;
}

}  // namespace bendc::codegen
