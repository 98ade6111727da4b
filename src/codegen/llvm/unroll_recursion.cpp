// Method: a pristine copy of the function is inlined at every self call, level by level, while the body stays small. The copy calls the
// function itself, so the calls of a level are those of the next.
#include "codegen/llvm/unroll_recursion.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <vector>

namespace bendc::codegen {

namespace {

constexpr unsigned kMostInstructions = 120;   // of a function whose recursion is unrolled
// Of the result. The first level saves most (in a tree of four children three calls of four are leaves), so it may take more.
constexpr unsigned kMostFirst = 2000;
constexpr unsigned kMostUnrolled = 480;
constexpr unsigned kMostLevels = 4;

std::vector<llvm::CallInst*> self_calls(llvm::Function& function) {
  std::vector<llvm::CallInst*> calls;
  for (llvm::Instruction& instruction : llvm::instructions(function))
    if (auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction))
      if (call->getCalledFunction() == &function && !call->isMustTailCall()) calls.push_back(call);
  return calls;
}

bool in_loop(const llvm::CallInst& call) {
  const llvm::DominatorTree dominators(*const_cast<llvm::Function*>(call.getFunction()));
  return llvm::LoopInfo(dominators).getLoopFor(call.getParent()) != nullptr;
}

void unroll(llvm::Function& function) {
  const unsigned size = function.getInstructionCount();
  if (size > kMostInstructions || function.hasFnAttribute(llvm::Attribute::OptimizeNone)) return;
  std::vector<llvm::CallInst*> calls = self_calls(function);
  // One self call is a chain (a list's map), where a level less saves little and costs as much, unless a loop makes it again and again (a search that
  // tries one candidate after another).
  if (calls.empty() || (calls.size() == 1 && !in_loop(*calls.front()))) return;
  unsigned expected = size;
  if (expected + calls.size() * size > kMostFirst) return;
  llvm::ValueToValueMapTy map;
  llvm::Function* pristine = llvm::CloneFunction(&function, map);
  for (unsigned level = 0; level < kMostLevels && expected + calls.size() * size <= (level == 0 ? kMostFirst : kMostUnrolled); ++level) {
    expected += static_cast<unsigned>(calls.size()) * size;
    for (llvm::CallInst* call : calls) {
      call->setCalledFunction(pristine);
      llvm::InlineFunctionInfo info;
      if (!llvm::InlineFunction(*call, info).isSuccess()) call->setCalledFunction(&function);
    }
    calls = self_calls(function);
  }
  pristine->eraseFromParent();
}

}  // namespace

void unroll_recursion(llvm::Module& module) {
  std::vector<llvm::Function*> functions;
  for (llvm::Function& function : module)
    if (!function.isDeclaration()) functions.push_back(&function);
  for (llvm::Function* function : functions) unroll(*function);
}

}  // namespace bendc::codegen
