// hoist_index_masks: a loop that walks consecutive slots of an array gets a copy without index masks, entered when one test at the
// loop's entry proves that every slot it touches is below the array's size (indices wrap modulo the size otherwise).
//   loop (n, j, a) { switch n { 0 => .. else => { .. a[j] .. jump (n - 1, j + 1, a) } } }
// has indices j .. j + n - 1, so `j <= mask and n - 1 <= mask - j` at entry proves all; with an access at j + 1, or at j where n may be 0, they
// are j .. j + n. In the copy the accesses carry `in_range` and the index
// additions cannot wrap, which lets LLVM see consecutive addresses. A loop that reads the next slot ahead reads beyond its last one at the end; where nothing but the loop's
// end looks at its counter, the copy runs as many iterations as have their slots, and jumps to the loop as it was for the others.
#pragma once
#include "codegen/flow.h"

namespace bendc {
struct PassOptions;
void hoist_index_masks(flow::Module& module, const PassOptions& options);
}  // namespace bendc
