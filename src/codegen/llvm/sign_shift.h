// fold_sign_shifts: Bend has no arithmetic shift of U32, so programs write the sign's copies beside a logical shift; LLVM does not see through it.
//   (x >> 8) | ((0 - (x >> 31)) << 24)   becomes   ashr x, 8
#pragma once

namespace llvm {
class Module;
}

namespace bendc::codegen {

void fold_sign_shifts(llvm::Module& module);

}  // namespace bendc::codegen
