// find_perfect_trees: which forking functions make perfect trees, so that a whole tree can run as one grid. A tree is perfect when every
// node forks alike: its depth alone says how many leaves there are, and a leaf's number says which arguments reach it.
//
//   fn f(d, x) { switch d { 0 => leaf  else => { p = nat.pred d; fork { a = f(p, x*2); b = f(p, x*2+1) } post } } }
//   gives   f@step(d, x, child) -> {d, x}    the arguments of either child
//           f@leaf0(d, x)                    what a leaf does; f@leaf2: a subtree of depth 2 in one thread
//           f@post(a, b)                     what comes after the fork; with f's parameters first when it uses them
//
// In: an owned module before any cut, and which functions are async (segments.h). Out: those functions, ordinary ones, and the plan.
#pragma once
#include <string>
#include <vector>

#include "codegen/flow.h"
#include "codegen/gpu/tree_paths.h"

namespace bendc {

struct PerfectTree {
  flow::FuncId func;
  std::string why;              // when it is not one; nothing below is meaningful then
  uint32_t measure = 0;         // index of the Nat parameter that is the depth
  uint32_t grain = 0;           // depth of the subtree that one thread computes at once
  bool heavy = false;           // a leaf loops: its work is not told by the depth
  bool post_args = false;       // f@post takes f's parameters before the two results
  bool gives_left = false;      // a node's result is its left child's, so a tree's is that of its first leaf (tree_paths.h)
  std::vector<PathForm> paths;  // by word of the arguments, when all have a form
  std::vector<std::pair<uint32_t, uint32_t>> apart;   // words of the arguments: arrays that nodes read before they fork, and arrays that leaves write. The tree is
                                                      // a grid when no two of a pair are one block
  flow::FuncId step, leaf, post;
  std::vector<flow::FuncId> leaves;   // f@leaf0 .. f@leaf<grain>
};

// One row per async function that forks, in order of FuncId.
[[nodiscard]] std::vector<PerfectTree> find_perfect_trees(flow::Module& module, const std::vector<bool>& reachable, const std::vector<bool>& async);

}  // namespace bendc
