// one_latch: device only. A def that calls itself at several places is one loop with several ways round, and lanes of a warp that part in a turn meet where the turn
// ends. LLVM makes two loops of it, one in the other, where some ways leave a variable as it is (LoopSimplify): a warp then stays in the inner loop until its last lane has left
// it, again and again. A small machine of seven instructions took 36.1 ms on an H200, and 4.7 as one loop; three ways that Collatz's rule goes on 4.2 and 1.6.
// In: a device module as emitted. Out: such loops have one back edge, from a block in which all ways meet; a mark there keeps LLVM from undoing it.
//   head: ..; a: ..; br head; b: ..; br head      becomes      head: ..; a: ..; br latch; b: ..; br latch; latch: mark; br head
// Below the head the arms of each branch meet in a block of their own, and what all of them compute is computed before they part.
// release_latches, between two pipelines: takes the mark from latches that stay without it, since no loop with a mark is unrolled or walked by tiles, and asks for several turns
// of small loops in a row.
#pragma once

namespace llvm {
class Module;
}

namespace bendc::codegen {

void keep_one_latch(llvm::Module& module);
void release_latches(llvm::Module& module);

}  // namespace bendc::codegen
