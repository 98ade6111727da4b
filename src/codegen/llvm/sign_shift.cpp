// Method: instcombine has made `or (lshr x, c), (and (ashr x, c - 1), high c bits)` of it, which is matched here.
#include "codegen/llvm/sign_shift.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>

#include <vector>

namespace bendc::codegen {

void fold_sign_shifts(llvm::Module& module) {
  using namespace llvm::PatternMatch;
  std::vector<llvm::Instruction*> folded;
  for (llvm::Function& function : module) {
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      if (!instruction.getType()->isIntegerTy(32)) continue;
      llvm::Value *x = nullptr, *sign = nullptr;
      const llvm::APInt *down = nullptr, *by = nullptr, *mask = nullptr;
      if (!match(&instruction, m_c_Or(m_LShr(m_Value(x), m_APInt(down)), m_And(m_Value(sign), m_APInt(mask))))) continue;
      if (!match(sign, m_AShr(m_Specific(x), m_APInt(by)))) continue;
      const uint64_t c = down->getZExtValue();
      // The mask keeps the c bits that the logical shift left empty; there `sign` must hold copies of x's top bit alone.
      if (c == 0 || c > 31 || *mask != llvm::APInt::getHighBitsSet(32, static_cast<unsigned>(c)) || by->getZExtValue() + 1 < c) continue;
      llvm::IRBuilder<> b(&instruction);
      instruction.replaceAllUsesWith(b.CreateAShr(x, c));
      folded.push_back(&instruction);
    }
  }
  for (llvm::Instruction* instruction : folded) instruction->eraseFromParent();
}

}  // namespace bendc::codegen
