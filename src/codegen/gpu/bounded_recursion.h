// bound_recursion: small subtrees of a fork tree as ordinary calls. A device has no stack for recursion of unknown depth, but a function that
// recurses on a Nat which every call makes smaller is at most k deep when that Nat is at most k. So f gets copies f@0 .. f@K, f@k for
// arguments up to k, which calls f@(k-1) for `nat.pred`: no cycle, and no frame, queue or atomic below a size that is worth none.
//
//   fn f(n, x) { switch n { .. else => { p = nat.pred n; fork { a = f(p, x); b = f(p, y) } .. } } }
//   becomes  fn f(n, x) { if n < K + 1 then tail f@K(n, x) else <as before> }   fn f@3(n, x) { .. a = call f@2(p, x) b = call f@2(p, y) .. }
//
// In: an owned module and which functions are async (segments.h). Out: the copies, not async, and what was bounded.
#pragma once
#include <string>
#include <vector>

#include "codegen/flow.h"

namespace bendc {

struct BoundedRecursion {
  flow::FuncId func;
  uint32_t depth = 0;          // K; 0: not bounded
  uint32_t measure = 0;        // index of the Nat parameter; meaningful when bounded
  uint32_t calls = 0;          // at most, below one call with n = K
  std::string why;             // when not bounded
};

struct BoundedCopies {
  std::vector<BoundedRecursion> functions;   // one per async function that forks or recurses, in order of FuncId
  std::vector<flow::FuncId> copies;          // in the order of making
};

[[nodiscard]] BoundedCopies bound_recursion(flow::Module& module, const std::vector<bool>& reachable, const std::vector<bool>& async);

}  // namespace bendc
