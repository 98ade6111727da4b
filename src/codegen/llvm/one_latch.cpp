// Method: the mark is a convergent call. LoopSimplify separates no loop that has one, here and in code generation, and SimplifyCFG folds no block
// with one into others. It is an empty piece of assembly that touches no memory anyone can see, so nothing else waits for it.
#include "codegen/llvm/one_latch.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include "codegen/llvm/unroll_recursion.h"

namespace bendc::codegen {

namespace {

constexpr const char* kMark = "// all ways round meet";
constexpr unsigned kMostLooked = 64;  // instructions at the head of an arm
constexpr unsigned kTurns = 4;
constexpr unsigned kMostUnrolled = 100;  // instructions of a loop whose turns are put in a row
constexpr unsigned kMostWays = 64;       // of a loop whose branches get blocks of their own to meet in

void mark(llvm::BasicBlock& latch) {
  llvm::IRBuilder<> b(latch.getTerminator());
  auto* type = llvm::FunctionType::get(b.getVoidTy(), false);
  llvm::CallInst* call = b.CreateCall(llvm::InlineAsm::get(type, kMark, "", /*hasSideEffects=*/true));
  call->setConvergent();
  call->setDoesNotThrow();
  call->addFnAttr(llvm::Attribute::WillReturn);
  call->setMemoryEffects(llvm::MemoryEffects::inaccessibleMemOnly());
}

bool is_mark(const llvm::Instruction& instruction) {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  const auto* text = call ? llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand()) : nullptr;
  return text && text->getAsmString() == kMark;
}

llvm::Instruction* identical(llvm::BasicBlock& block, const llvm::Instruction& wanted) {
  unsigned looked = 0;
  for (llvm::Instruction& instruction : block) {
    if (instruction.isIdenticalTo(&wanted)) return &instruction;
    if (++looked > kMostLooked) break;
  }
  return nullptr;
}

// LoopSimplify makes two loops of one where some of its back edges leave a variable as it is and others do not.
bool comes_apart(const llvm::Loop& loop) {
  llvm::SmallVector<llvm::BasicBlock*, 4> ways;
  loop.getLoopLatches(ways);
  return llvm::any_of(loop.getHeader()->phis(), [&](const llvm::PHINode& phi) {
    const auto stays = llvm::count_if(ways, [&](const llvm::BasicBlock* way) { return phi.getIncomingValueForBlock(way) == &phi; });
    return stays > 0 && static_cast<size_t>(stays) < ways.size();
  });
}

// What an arm computes that every other arm computes, too, goes before the branch: to lanes apart each arm's copy is time of its own. Arms have no
// other way in.
void hoist_from_arms(llvm::BasicBlock& block) {
  llvm::SmallVector<llvm::BasicBlock*, 4> arms;
  for (llvm::BasicBlock* arm : llvm::successors(&block)) {
    if (llvm::isa<llvm::UnreachableInst>(arm->front())) continue;
    if (arm->getUniquePredecessor() != &block) return;
    if (!llvm::is_contained(arms, arm)) arms.push_back(arm);
  }
  if (arms.size() < 2) return;
  unsigned looked = 0;
  for (llvm::Instruction& first : llvm::make_early_inc_range(*arms.front())) {
    if (++looked > kMostLooked) return;
    if (llvm::isa<llvm::PHINode, llvm::CallBase>(first) || first.isTerminator() || first.mayReadOrWriteMemory() ||
        !llvm::isSafeToSpeculativelyExecute(&first))
      continue;
    if (llvm::any_of(first.operands(), [&](const llvm::Use& operand) {
          const auto* made = llvm::dyn_cast<llvm::Instruction>(operand.get());
          return made && made->getParent() == arms.front();
        }))
      continue;
    llvm::SmallVector<llvm::Instruction*, 4> others;
    for (llvm::BasicBlock* arm : llvm::drop_begin(arms)) {
      llvm::Instruction* same = identical(*arm, first);
      if (!same) break;
      others.push_back(same);
    }
    if (others.size() + 1 < arms.size()) continue;
    first.moveBefore(block.getTerminator()->getIterator());
    for (llvm::Instruction* other : others) {
      other->replaceAllUsesWith(&first);
      other->eraseFromParent();
    }
  }
}

void hoist_in_loop(const llvm::Loop& loop, const llvm::DominatorTree& dominators) {
  for (llvm::DomTreeNode* node : llvm::post_order(dominators.getNode(loop.getHeader())))
    if (loop.contains(node->getBlock())) hoist_from_arms(*node->getBlock());
}

// One latch, and a block for each branch below the header whose arms come to it by several ways: what a branch parts meets where that branch ends.
// Small arms then become selects, for which LLVM wants a block with two ways in.
llvm::BasicBlock* join_ways(llvm::Loop& loop, llvm::DominatorTree& dominators, llvm::LoopInfo& loops) {
  llvm::SmallVector<llvm::BasicBlock*, 4> ways;
  loop.getLoopLatches(ways);
  llvm::BasicBlock* latch = llvm::SplitBlockPredecessors(loop.getHeader(), ways, ".latch", &dominators, &loops);
  if (!latch || ways.size() > kMostWays) return latch;
  llvm::SmallVector<llvm::BasicBlock*, 8> branches;
  for (llvm::DomTreeNode* node : llvm::post_order(dominators.getNode(loop.getHeader())))
    if (loop.contains(node->getBlock()) && node->getBlock()->getTerminator()->getNumSuccessors() > 1) branches.push_back(node->getBlock());
  for (llvm::BasicBlock* branch : branches) {
    llvm::SmallVector<llvm::BasicBlock*, 4> below;
    for (llvm::BasicBlock* way : llvm::predecessors(latch))
      if (dominators.dominates(branch, way)) below.push_back(way);
    if (below.size() > 1 && below.size() < llvm::pred_size(latch)) llvm::SplitBlockPredecessors(latch, below, ".met", &dominators, &loops);
  }
  return latch;
}

}  // namespace

void keep_one_latch(llvm::Module& module) {
  for (llvm::Function& function : module) {
    if (function.isDeclaration() || !function.hasFnAttribute(kOfProgram)) continue;
    llvm::DominatorTree dominators(function);
    llvm::LoopInfo loops(dominators);
    for (llvm::Loop* loop : loops.getLoopsInPreorder()) {
      if (!comes_apart(*loop)) continue;
      hoist_in_loop(*loop, dominators);
      if (llvm::BasicBlock* latch = join_ways(*loop, dominators, loops)) mark(*latch);
    }
  }
}

namespace {

// The turns of such a loop wait for branches, which several turns in a row have fewer of; LLVM's own measure is a CPU's. Four turns are what nvcc
// makes, too.
void request_turns(const llvm::Loop& loop) {
  if (!loop.isInnermost()) return;
  size_t size = 0;
  for (const llvm::BasicBlock* block : loop.blocks()) size += block->size();
  if (size > kMostUnrolled) return;
  llvm::LLVMContext& context = loop.getHeader()->getContext();
  llvm::Metadata* count[] = {llvm::MDString::get(context, "llvm.loop.unroll.count"),
                             llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), kTurns))};
  llvm::MDNode* id = llvm::MDNode::getDistinct(context, {nullptr, llvm::MDNode::get(context, count)});
  id->replaceOperandWith(0, id);
  loop.setLoopID(id);
}

}  // namespace

// A latch that also leaves the loop is no block of phis and a jump, which alone are folded away.
void release_latches(llvm::Module& module) {
  for (llvm::Function& function : module) {
    llvm::SmallVector<llvm::Instruction*, 4> marks;
    for (llvm::BasicBlock& block : function)
      for (llvm::Instruction& instruction : block)
        if (is_mark(instruction)) marks.push_back(&instruction);
    if (marks.empty()) continue;
    const llvm::DominatorTree dominators(function);
    const llvm::LoopInfo loops(dominators);
    for (llvm::Instruction* mark : marks) {
      llvm::BasicBlock* latch = mark->getParent();
      const llvm::Loop* loop = loops.getLoopFor(latch);
      const bool ends = loop && loop->getLoopLatch() == latch;
      if (ends && latch->getSingleSuccessor() && !latch->getSinglePredecessor()) continue;
      mark->eraseFromParent();
      if (ends) request_turns(*loop);
    }
  }
}

}  // namespace bendc::codegen
