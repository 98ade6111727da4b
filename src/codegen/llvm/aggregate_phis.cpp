// Method: a split phi takes the fields out of what comes in, at the end of the block it comes from. Where that is itself a phi it is next. Phis of calls'
// results that are only returned stay whole: a call before a return remains a tail call.
#include "codegen/llvm/aggregate_phis.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <set>
#include <vector>

namespace bendc::codegen {

namespace {

// Does a call's result come in, by way of other phis or not?
bool takes_call(const llvm::PHINode& phi, std::set<const llvm::PHINode*>& seen) {
  if (!seen.insert(&phi).second) return false;
  return std::any_of(phi.value_op_begin(), phi.value_op_end(), [&](const llvm::Value* value) {
    const auto* inner = llvm::dyn_cast<llvm::PHINode>(value);
    return inner ? takes_call(*inner, seen) : llvm::isa<llvm::CallInst>(value);
  });
}

bool is_split(const llvm::PHINode& phi) {
  if (!phi.getType()->isStructTy()) return false;
  const bool taken = std::any_of(phi.user_begin(), phi.user_end(), [](const llvm::User* user) {
    const auto* field = llvm::dyn_cast<llvm::ExtractValueInst>(user);
    return field && field->getNumIndices() == 1;
  });
  std::set<const llvm::PHINode*> seen;
  return taken || !takes_call(phi, seen);
}

class Splitter {
 public:
  explicit Splitter(llvm::Function& function) {
    for (llvm::Instruction& instruction : llvm::instructions(function))
      if (auto* phi = llvm::dyn_cast<llvm::PHINode>(&instruction); phi && is_split(*phi)) add(phi);
  }

  void run() {
    for (size_t i = 0; i < found_.size(); ++i) split(*found_[i]);
    for (llvm::PHINode* phi : found_) phi->eraseFromParent();
  }

 private:
  void add(llvm::PHINode* phi) {
    if (seen_.insert(phi).second) found_.push_back(phi);
  }

  // The field of a value at the end of a block: what was put in, where that shows.
  llvm::Value* field_of(llvm::Value* value, unsigned field, llvm::IRBuilder<>& b) {
    while (auto* insert = llvm::dyn_cast<llvm::InsertValueInst>(value)) {
      if (insert->getNumIndices() != 1) break;
      if (insert->getIndices()[0] == field) return insert->getInsertedValueOperand();
      value = insert->getAggregateOperand();
    }
    if (auto* phi = llvm::dyn_cast<llvm::PHINode>(value)) add(phi);
    return b.CreateExtractValue(value, field);
  }

  void split(llvm::PHINode& phi) {
    const auto* type = llvm::cast<llvm::StructType>(phi.getType());
    llvm::IRBuilder<> b(&phi);
    std::vector<llvm::PHINode*> fields;
    for (llvm::Type* field : type->elements()) fields.push_back(b.CreatePHI(field, phi.getNumIncomingValues(), phi.getName()));
    for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i) {
      llvm::BasicBlock* from = phi.getIncomingBlock(i);
      b.SetInsertPoint(from->getTerminator());
      for (unsigned field = 0; field < fields.size(); ++field) {
        // A block may come in more than once; its value is the same then, and must be the same here.
        const int before = fields[field]->getBasicBlockIndex(from);
        fields[field]->addIncoming(before >= 0 ? fields[field]->getIncomingValue(static_cast<unsigned>(before)) : field_of(phi.getIncomingValue(i), field, b), from);
      }
    }
    const std::vector<llvm::User*> users(phi.user_begin(), phi.user_end());
    for (llvm::User* user : users) {
      auto* taken = llvm::dyn_cast<llvm::ExtractValueInst>(user);
      if (!taken || taken->getNumIndices() != 1) continue;
      taken->replaceAllUsesWith(fields[taken->getIndices()[0]]);
      taken->eraseFromParent();
    }
    // It goes at the end: its address stays its own until then.
    for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i) phi.setIncomingValue(i, llvm::PoisonValue::get(phi.getType()));
    if (phi.use_empty()) return;
    b.SetInsertPoint(phi.getParent(), phi.getParent()->getFirstInsertionPt());
    llvm::Value* whole = llvm::PoisonValue::get(phi.getType());
    for (unsigned field = 0; field < fields.size(); ++field) whole = b.CreateInsertValue(whole, fields[field], field);
    phi.replaceAllUsesWith(whole);
  }

  std::vector<llvm::PHINode*> found_;
  std::set<llvm::PHINode*> seen_;
};

}  // namespace

void split_aggregate_phis(llvm::Module& module) {
  for (llvm::Function& function : module) Splitter(function).run();
}

}  // namespace bendc::codegen
