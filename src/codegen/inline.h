// inline_small: small functions that call no function of their own cycle are copied into their callers, so that ownership sees through
// them: a node opened in the caller is reused by a constructor of the callee, and values that only pass through are never counted.
//   fn f(t) { case t { 1 => { .. tail pair(a, b) } } }   becomes   fn f(t) { case t { 1 => { .. let c = con 1(a, b); ret c } } }
// A tail call takes any small body; a call whose result is used further takes one without branches. Functions that can report a run-time
// error stay calls: the error names the function it is in.
#pragma once
#include "codegen/flow.h"

namespace bendc {
struct PassOptions;
void inline_small(flow::Module& module, const PassOptions& options);
}  // namespace bendc
