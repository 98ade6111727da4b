#include "codegen/llvm/wide_frames.h"

#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

namespace bendc::codegen {

namespace {

constexpr uint64_t kCallersAlignment = 128;   // bits

bool wide(const llvm::Type* type) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  return vector && vector->getPrimitiveSizeInBits().getFixedValue() > kCallersAlignment;
}

}  // namespace

void align_wide_frames(llvm::Module& module) {
  for (llvm::Function& function : module)
    for (const llvm::Instruction& instruction : llvm::instructions(function))
      if (wide(instruction.getType())) {
        function.addFnAttr("stackrealign");
        break;
      }
}

}  // namespace bendc::codegen
