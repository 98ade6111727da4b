// elide_handles: an array has one name from where it appears to where it ends. Operations that would give a handle back work in place, fork and join
// of one block are the same name twice, and a function does not return a handle that is always its argument's (handle_identity.h): its
// caller goes on with the argument, which it lends. Structs that hold arrays are passed part by part, so that a handle in them can be lent.
//
//   fn fill(n, a) -> array u32 { switch n { 0 => { ret a } else => { .. let b = array.set(a, i, x) tail fill(p, b) } } }
//   becomes   fn fill(n, borrow a) -> struct{} { switch n { 0 => { .. ret unit } else => { .. let u = array.set(a, i, x) in_place tail fill(p, a) } } }
//
// Blocks are what counts here, not words: a name stands for one reference as before, and insert_ownership counts what is used twice. A fork and
// a join whose names are one block therefore cost nothing; a join of two others still drops the second. Closures, `!` calls and the
// entry keep a function's signature through a wrapper `f~whole`. Forks stay forks when nothing is left of their results.
#pragma once
#include "codegen/flow.h"

namespace bendc {
struct PassOptions;
void elide_handles(flow::Module& module, const PassOptions& options);
}  // namespace bendc
