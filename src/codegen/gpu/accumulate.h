// accumulate_forks: the sum of a fork tree is carried along in place of being put together on the way back. A device keeps a frame for every call that
// waits; of a fork that adds its children's results only the children that have not begun need to wait when the sum so far goes into the next child.
//
//   fn f(x) { .. ret v .. fork { a = f(y); b = f(z) } let s = u32.add(a, b) ret s }
//   becomes   fn f(x) { let zero = 0 tail f~acc(x, zero) }
//             fn f~acc(x, acc) { .. let v' = u32.add(acc, v) ret v' .. fork { a = f~acc(y, acc); b = f~acc(z, zero) } let s = u32.add(a, b) ret s }
//
// The machine (machine_plan.h: Cut::accumulates) runs such a fork in one thread as a call of the first child and a tail call of the last one, each child
// starting from the value of the one before; children that become tasks start from the operation's identity, and a join puts the parts together as before.
// For operations on U32 that can be regrouped without changing a bit: add, mul, and, or, xor.
//
// In: an owned module; `candidate(f)`: async functions whose trees are not run otherwise. Out: the functions made, each async.
#pragma once
#include <functional>
#include <vector>

#include "codegen/flow.h"

namespace bendc {

struct Accumulator {
  flow::FuncId func, original;   // func's parameters are original's and, last, the value so far
  flow::Prim prim{};
  uint32_t identity = 0;         // of the operation
};

[[nodiscard]] std::vector<Accumulator> accumulate_forks(flow::Module& module, const std::function<bool(flow::FuncId)>& candidate);

}  // namespace bendc
