// straight_roots: F32 square roots and reciprocals in loops without a branch each, for NVPTX. ptxas makes of either a short exact sequence for ordinary operands and a
// branch to a longer one for the others, and moves nothing across: in a loop over bodies each root waits for all before it, some 300 cycles an iteration with one
// warp on a scheduler. Here a loop's body computes all of them by the short sequences, tests all operands by one branch at its end, and where one is not
// ordinary computes what depends on them again, exactly:
//   loop: s = sqrt(x); r = 1 / s; ..      becomes      loop: s' = short(x), r' = short(s'); .. if x and s' are ordinary: go on, else: s = sqrt(x); r = 1 / s; .. go on
// The short sequences are exact for ordinary operands: bench/gpu/roots.cu compares them with the hardware's own for every operand.
// request_unrolling, before loops are unrolled: such loops several times, since the iterations then overlap.
#pragma once

namespace llvm {
class Module;
}

namespace bendc::codegen {

void request_unrolling(llvm::Module& module);
void straight_roots(llvm::Module& module);

}  // namespace bendc::codegen
