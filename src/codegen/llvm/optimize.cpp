// Optimisation: LLVM's new pass manager, pipelines as text.
#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <llvm/IR/Module.h>

#include "codegen/llvm/aggregate_phis.h"
#include "codegen/llvm/bound_functions.h"
#include "codegen/llvm/coalesce_loops.h"
#include "codegen/llvm/emitter.h"
#include "codegen/llvm/machine.h"
#include "codegen/llvm/one_latch.h"
#include "codegen/llvm/sanitize.h"
#include "codegen/llvm/sign_shift.h"
#include "codegen/llvm/straight_roots.h"
#include "codegen/llvm/tiles.h"
#include "codegen/llvm/unroll_recursion.h"
#include "codegen/llvm/wide_frames.h"
#include "runtime/gpu/device_abi.h"

namespace bendc::codegen {

namespace {

// Level 1 is ours: what our IR gains most from (inlining, redundant loads of counts and free lists, invariant code out of loops), each once.
// On the scan example (96 functions) it takes 15 ms against 60 ms for default<O1> and 100 ms for default<O2>, and the program runs as fast.
constexpr const char* kFast =
    "always-inline,"
    "cgscc(inline,function(early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg)),"
    "globaldce,deadargelim,"
    "function(loop-mssa(loop-rotate,licm),indvars,gvn,instcombine<no-verify-fixpoint>,simplifycfg,dse)";

// What unroll_recursion needs: bodies without helpers' calls, simplified enough to be measured.
constexpr const char* kBeforeUnrolling = "always-inline,cgscc(inline,function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg)),globaldce";

const char* pipeline_of(int level) {
  switch (level) {
    case 0: return "always-inline";
    case 1: return kFast;
    case 2: return "default<O2>";
    default: return "default<O3>";
  }
}

std::string run_pipeline(IrModule& module, const Machine& machine, const char* pipeline, bool unroll = true) {
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  LLVMPassBuilderOptionsSetLoopUnrolling(options, unroll);
  LLVMErrorRef failed = LLVMRunPasses(llvm::wrap(module.module.get()), pipeline, machine.target, options);
  LLVMDisposePassBuilderOptions(options);
  if (!failed) return {};
  char* message = LLVMGetErrorMessage(failed);
  std::string text = message;
  LLVMDisposeErrorMessage(message);
  return text;
}

// Loops are unrolled after coalesce_loops, which takes them one iteration at a time.
constexpr const char* kAfterCoalescing =
    "function(instcombine<no-verify-fixpoint>,simplifycfg,early-cse<memssa>,loop-mssa(licm),loop-unroll<O3>,gvn,instcombine<no-verify-fixpoint>,simplifycfg,adce)";
// Rows of blocks that are kept begin at 16 bytes (emit_scan_blocks.cpp): four accesses of an unrolled loop are one.
constexpr const char* kWiden = "function(infer-alignment)";

std::string optimize_device(IrModule& module, const Machine& machine, int level) {
  keep_one_latch(*module.module);
  if (level < 2) return run_pipeline(module, machine, pipeline_of(level));
  std::string problem = run_pipeline(module, machine, pipeline_of(level), false);
  if (!problem.empty()) return problem;
  release_latches(*module.module);
  const bool kept = find_tiles(*module.module) != nullptr;
  coalesce_loops(*module.module, BEND_BLOCK_THREADS);
  request_unrolling(*module.module);
  problem = run_pipeline(module, machine, kAfterCoalescing);
  if (problem.empty() && kept) problem = run_pipeline(module, machine, kWiden);
  straight_roots(*module.module);
  return problem;
}

}  // namespace

const std::vector<flow::FuncId>& too_large_functions(const IrModule& module) { return module.too_large; }

std::string optimize_module(IrModule& module, const Machine& machine, int level) {
  // Recursion is not unrolled on the device: it runs by segments, and what is left there are small leaves.
  if (module.module->getTargetTriple().isNVPTX()) return optimize_device(module, machine, level);
  module.too_large = bound_functions(*module.module);
  if (level >= 3) {
    if (std::string problem = run_pipeline(module, machine, kBeforeUnrolling); !problem.empty()) return problem;
    fold_sign_shifts(*module.module);
    split_aggregate_phis(*module.module);
    unroll_recursion(*module.module);
  }
  std::string problem = run_pipeline(module, machine, pipeline_of(level));
  if (!problem.empty()) return problem;
  align_wide_frames(*module.module);
  return sanitize_module(module, machine);
}

}  // namespace bendc::codegen
