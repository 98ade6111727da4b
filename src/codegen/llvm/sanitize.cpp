#include "codegen/llvm/sanitize.h"

#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/Support.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <llvm/IR/Module.h>

#include <iterator>

namespace bendc::codegen {

namespace {

struct Instrumentation {
  llvm::Attribute::AttrKind attribute;
  const char* pipeline;
  const char* options[4];   // of LLVM's command line: these passes take no others
};

// ThreadSanitizer keeps 64 Ki frames of each thread's calls and crashes at one more; recursion goes far deeper here, so calls are not noted
// and a report names the innermost function only.
[[maybe_unused]] constexpr Instrumentation kThread = {llvm::Attribute::SanitizeThread, "tsan-module,function(tsan)", {"bendc", "-tsan-instrument-func-entry-exit=0"}};

// Frames hold only what is addressed by constants, and leaving a task by a jump would leave their red zones behind; static nodes are never
// freed. What is watched is the heap.
[[maybe_unused]] constexpr Instrumentation kAddress = {
    llvm::Attribute::SanitizeAddress, "asan", {"bendc", "-asan-stack=0", "-asan-globals=0", "-asan-constructor-kind=none"}};

[[maybe_unused]] std::string instrument(IrModule& module, const Machine& machine, const Instrumentation& how) {
  if (module.module->getTargetTriple().isNVPTX()) return {};
  static const bool told = [&how] {
    int count = 0;
    while (count < static_cast<int>(std::size(how.options)) && how.options[count]) ++count;
    LLVMParseCommandLineOptions(count, how.options, nullptr);
    return true;
  }();
  (void)told;
  for (llvm::Function& function : *module.module)
    if (!function.isDeclaration()) function.addFnAttr(how.attribute);
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  LLVMErrorRef failed = LLVMRunPasses(llvm::wrap(module.module.get()), how.pipeline, machine.target, options);
  LLVMDisposePassBuilderOptions(options);
  if (!failed) return {};
  char* message = LLVMGetErrorMessage(failed);
  std::string text = message;
  LLVMDisposeErrorMessage(message);
  return text;
}

}  // namespace

std::string sanitize_module(IrModule& module, const Machine& machine) {
#if defined(__SANITIZE_THREAD__)
  return instrument(module, machine, kThread);
#elif defined(__SANITIZE_ADDRESS__)
  return instrument(module, machine, kAddress);
#else
  (void)module;
  (void)machine;
  return {};
#endif
}

}  // namespace bendc::codegen
