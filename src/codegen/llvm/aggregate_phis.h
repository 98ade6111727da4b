// split_aggregate_phis: results of several values are structs to LLVM, and where paths of an inlined function meet they are phis of structs, which loop
// analyses do not see through: bfs kept an index mask and a second counter in its loop, 5 % of its time. A phi whose fields are taken out, here or by a caller
// that it is inlined into, becomes a phi a field.
//   %r = phi { i32, i32 } [ %a, .. ], [ %b, .. ]; extractvalue %r, 0   becomes   %r.0 = phi i32 [ extractvalue %a, 0, .. ], ..
#pragma once

namespace llvm {
class Module;
}

namespace bendc::codegen {

void split_aggregate_phis(llvm::Module& module);

}  // namespace bendc::codegen
