// Forks that are provably too small to share. A function that recurs only on a Nat parameter's predecessors, and does a bounded amount of
// other work a call, does at most T(n) operations for n; below the n where T passes kSmallFork its forks run in order, as if the machine had
// one core. Taking a task over costs another worker a microsecond or two, so nobody gains from smaller ones, and the many forks near the
// leaves of such a tree become plain calls. A function whose leaves loop, apply closures or follow data has no such bound: all its forks count.
#pragma once
#include <cstdint>
#include <vector>

#include "codegen/flow.h"

namespace bendc::flow {

inline constexpr uint64_t kSmallFork = 4096;   // Flow operations: one to two microseconds

struct SmallFork {
  uint32_t param = 0;      // forks run in order while this parameter ..
  uint64_t limit = 0;      // .. is below this; 0: never
};
[[nodiscard]] std::vector<SmallFork> find_small_forks(const Module& module);   // by function

}  // namespace bendc::flow
