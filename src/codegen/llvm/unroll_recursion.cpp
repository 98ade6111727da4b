// Method: a pristine copy of the function is inlined at every self call, level by level, while the body stays small. The copy calls the
// function itself, so the calls of a level are those of the next.
#include "codegen/llvm/unroll_recursion.h"

#include <llvm/Analysis/ConstantFolding.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/Local.h>

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

// What `body`, a copy of the function, does besides calling it takes a bounded time.
bool calls_only_itself(const llvm::Function& function, const llvm::Function& body) {
  for (const llvm::Instruction& instruction : llvm::instructions(body))
    if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction)) {
      const llvm::Function* callee = call->getCalledFunction();
      if (!callee || (callee != &function && callee->hasFnAttribute(kOfProgram))) return false;
    }
  return true;
}

// The forks run in order and do not ask. How many there are.
unsigned drop_polls(llvm::Function& function) {
  std::vector<llvm::Instruction*> polls;
  for (llvm::Instruction& instruction : llvm::instructions(function))
    if (instruction.hasMetadata(kPollMetadata)) polls.push_back(&instruction);
  if (polls.empty()) return 0;
  for (llvm::Instruction* poll : polls) {
    llvm::Value* no = llvm::ConstantInt::get(poll->getType(), 0);
    std::vector<llvm::User*> users(poll->user_begin(), poll->user_end());
    llvm::Value* place = llvm::getLoadStorePointerOperand(poll);
    poll->replaceAllUsesWith(no);
    poll->eraseFromParent();
    llvm::RecursivelyDeleteTriviallyDeadInstructions(place);
    for (llvm::User* user : users)
      if (auto* test = llvm::dyn_cast<llvm::Instruction>(user))
        if (llvm::Constant* folded = llvm::ConstantFoldInstruction(test, function.getDataLayout())) test->replaceAllUsesWith(folded);
  }
  for (llvm::BasicBlock& block : function) llvm::ConstantFoldTerminator(&block, true);
  llvm::removeUnreachableBlocks(function);
  for (llvm::BasicBlock& block : llvm::make_early_inc_range(function)) llvm::MergeBlockIntoPredecessor(&block);
  return static_cast<unsigned>(polls.size());
}

llvm::Function* copy_of(llvm::Function& function) {
  llvm::ValueToValueMapTy map;
  return llvm::CloneFunction(&function, map);
}

void unroll(llvm::Function& function) {
  if (function.hasFnAttribute(llvm::Attribute::OptimizeNone)) return;
  std::vector<llvm::CallInst*> calls = self_calls(function);
  // One self call is a chain (a list's map), where a level less saves little and costs as much, unless a loop makes it again and again (a search that
  // tries one candidate after another).
  if (calls.empty() || (calls.size() == 1 && !in_loop(*calls.front()))) return;
  // Forks that are out of line do not count (an instruction of each stays): the clone without forks and this one get the same levels.
  llvm::Function* pristine = copy_of(function);
  const unsigned forks = drop_polls(*pristine), size = pristine->getInstructionCount() - forks;
  if (!calls_only_itself(function, *pristine)) {
    pristine->eraseFromParent();
    pristine = copy_of(function);
  }
  unsigned expected = size;
  for (unsigned level = 0; size <= kMostInstructions && level < kMostLevels && expected + calls.size() * size <= (level == 0 ? kMostFirst : kMostUnrolled); ++level) {
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
