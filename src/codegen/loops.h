// make_loops: self tail calls become jumps to a loop join point, so that they run in constant stack on every target.
//   fn f(n) { .. tail f(m) .. }   becomes   fn f(n0) { loop j(n) { .. jump j(m) .. } jump j(n0) }
// normalise_tails before it: `let x = call f(..); ret x` becomes `tail f(..)`.
#pragma once
#include "codegen/flow.h"

namespace bendc {
struct PassOptions;
void normalise_tails(flow::Module& module, const PassOptions& options);
void make_loops(flow::Module& module, const PassOptions& options);
}  // namespace bendc
