// Method: a loop whose body is one block that writes nothing. What depends on a root stands twice: in the body with the short sequences, and in a block beside it, with
// the operations as they were; the loop's end takes the values of either.
#include "codegen/llvm/straight_roots.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

#include <unordered_set>
#include <vector>

namespace bendc::codegen {

namespace {

constexpr size_t kMostInstructions = 60;   // of a loop that is unrolled for this: nbody's, of 30, took 1.08 ms eight times, 1.36 four times, 2.24 twice, 2.5 once (2.98 before; H200)
constexpr unsigned kUnrolled = 8;
constexpr size_t kMostBody = 600;          // of an unrolled one
// Operands whose bits, less `least`, are not above `span`: normal numbers whose roots, and all on the way to them, are normal.
constexpr uint32_t kLeastRoot = 0x0D000000, kRootSpan = 0x727FFFFF;
// Operands whose exponent plus three is above three: normal numbers with normal reciprocals.
constexpr uint32_t kExponentUp = 0x01800000, kExponent = 0x7F800000, kLeastExponent = 0x01FFFFFF;

bool is_root(const llvm::Instruction& i) {
  const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
  return call && call->getIntrinsicID() == llvm::Intrinsic::sqrt && i.getType()->isFloatTy();
}

bool is_reciprocal(const llvm::Instruction& i) {
  if (i.getOpcode() != llvm::Instruction::FDiv || !i.getType()->isFloatTy()) return false;
  const auto* numerator = llvm::dyn_cast<llvm::ConstantFP>(i.getOperand(0));
  return numerator && numerator->isExactlyValue(1.0);
}

bool branches(const llvm::Instruction& i) { return is_root(i) || is_reciprocal(i); }

// The back edge's branch of a loop of one block that writes nothing; null: none.
llvm::BranchInst* back_edge(llvm::BasicBlock& block) {
  auto* branch = llvm::dyn_cast<llvm::BranchInst>(block.getTerminator());
  if (!branch || !branch->isConditional() || !llvm::is_contained(branch->successors(), &block)) return nullptr;
  // Nor does one that all lanes must meet at: some may be at the other block then.
  auto stays = [](const llvm::Instruction& i) {
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&i);
    return i.mayHaveSideEffects() || (call && call->isConvergent());
  };
  return llvm::none_of(block, stays) ? branch : nullptr;
}

struct Short {
  llvm::Value *value, *ordinary;
};

Short short_sequence(llvm::IRBuilder<>& b, llvm::Instruction& op) {
  llvm::Type *real = b.getFloatTy(), *word = b.getInt32Ty();
  llvm::Value* x = op.getOperand(is_root(op) ? 0 : 1);
  llvm::Value* bits = b.CreateBitCast(x, word);
  auto fma = [&](llvm::Value* p, llvm::Value* q, llvm::Value* r) { return b.CreateIntrinsic(real, llvm::Intrinsic::fma, {p, q, r}); };
  if (is_root(op)) {
    llvm::Value* guess = b.CreateIntrinsic(real, llvm::Intrinsic::nvvm_rsqrt_approx_ftz_f, {x});
    llvm::Value *root = b.CreateFMul(x, guess), *half = b.CreateFMul(guess, llvm::ConstantFP::get(real, 0.5));
    return {fma(fma(b.CreateFNeg(root), root, x), half, root), b.CreateICmpULE(b.CreateSub(bits, b.getInt32(kLeastRoot)), b.getInt32(kRootSpan))};
  }
  llvm::Value* guess = b.CreateIntrinsic(real, llvm::Intrinsic::nvvm_rcp_approx_ftz_f, {x});
  llvm::Value* error = fma(guess, x, llvm::ConstantFP::get(real, -1.0));
  return {fma(guess, b.CreateFNeg(error), guess), b.CreateICmpUGT(b.CreateAnd(b.CreateAdd(bits, b.getInt32(kExponentUp)), kExponent), b.getInt32(kLeastExponent))};
}

void straighten(llvm::BasicBlock& body) {
  std::vector<llvm::Instruction*> roots, dependent;   // dependent: on a root, or one
  std::unordered_set<const llvm::Value*> depends;
  for (llvm::Instruction& i : body) {
    if (llvm::isa<llvm::PHINode>(i) || i.isTerminator()) continue;
    if (branches(i)) roots.push_back(&i);
    if (!branches(i) && llvm::none_of(i.operands(), [&](const llvm::Use& use) { return depends.count(use.get()) > 0; })) continue;
    depends.insert(&i);
    dependent.push_back(&i);
  }
  if (roots.empty()) return;

  llvm::BasicBlock* end = body.splitBasicBlock(body.getTerminator(), "end");
  llvm::BasicBlock* exact = llvm::BasicBlock::Create(body.getContext(), "exact", body.getParent(), end);
  llvm::ValueToValueMapTy copies;
  for (llvm::Instruction* i : dependent) {
    llvm::Instruction* copy = i->clone();
    copy->insertInto(exact, exact->end());
    llvm::RemapInstruction(copy, copies, llvm::RF_NoModuleLevelChanges | llvm::RF_IgnoreMissingLocals);
    copies[i] = copy;
  }
  llvm::IRBuilder<>(exact).CreateBr(end);
  // What is looked at from beyond the body.
  for (llvm::Instruction* i : dependent) {
    std::vector<llvm::Use*> beyond;
    for (llvm::Use& use : i->uses()) {
      auto* user = llvm::cast<llvm::Instruction>(use.getUser());
      if (llvm::isa<llvm::PHINode>(user) || (user->getParent() != &body && user->getParent() != exact)) beyond.push_back(&use);
    }
    if (beyond.empty()) continue;
    llvm::PHINode* either = llvm::PHINode::Create(i->getType(), 2, "", end->begin());
    either->addIncoming(i, &body);
    either->addIncoming(copies[i], exact);
    for (llvm::Use* use : beyond) use->set(either);
  }
  llvm::Value* ordinary = nullptr;
  for (llvm::Instruction* root : roots) {
    llvm::IRBuilder<> b(root);
    const Short made = short_sequence(b, *root);
    ordinary = ordinary ? b.CreateAnd(ordinary, made.ordinary) : made.ordinary;
    root->replaceAllUsesWith(made.value);
    root->eraseFromParent();
  }
  llvm::Instruction* jump = body.getTerminator();
  llvm::IRBuilder<> b(jump);
  b.CreateCondBr(ordinary, end, exact, llvm::MDBuilder(body.getContext()).createLikelyBranchWeights());
  jump->eraseFromParent();
}

}  // namespace

void request_unrolling(llvm::Module& module) {
  llvm::LLVMContext& context = module.getContext();
  for (llvm::Function& function : module) {
    for (llvm::BasicBlock& block : function) {
      llvm::BranchInst* branch = back_edge(block);
      if (!branch || block.size() > kMostInstructions || branch->getMetadata(llvm::LLVMContext::MD_loop) || llvm::none_of(block, branches)) continue;
      llvm::Metadata* count[] = {llvm::MDString::get(context, "llvm.loop.unroll.count"), llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), kUnrolled))};
      llvm::MDNode* loop = llvm::MDNode::getDistinct(context, {nullptr, llvm::MDNode::get(context, count)});
      loop->replaceOperandWith(0, loop);
      branch->setMetadata(llvm::LLVMContext::MD_loop, loop);
    }
  }
}

void straight_roots(llvm::Module& module) {
  for (llvm::Function& function : module) {
    std::vector<llvm::BasicBlock*> bodies;
    for (llvm::BasicBlock& block : function)
      if (back_edge(block) && block.size() <= kMostBody) bodies.push_back(&block);
    for (llvm::BasicBlock* body : bodies) straighten(*body);
  }
}

}  // namespace bendc::codegen
