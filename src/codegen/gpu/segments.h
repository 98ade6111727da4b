// split_segments: what the device runs, cut into segments without native recursion.
// In: an owned Flow module with `!` calls. Out: a Flow module of its own holding every def reachable from a `!` target, in cut form:
// an *async* function (one that forks, lies on a call cycle, or calls such a function) ends at each fork and at each call of an async
// function with a tail call of the lifted continuation, so that nothing is live across the cut but its arguments.
//
//   fork { a = call f(x); b = call f(y) } let s = u32.add(a, z) ret s
//   becomes   fork { a = call f(x); b = call f(y) } tail f$1(a, b, z)      fn f$1(a, b, z) { let s = u32.add(a, z) ret s }
//
// Joins reached from a continuation become functions too. Functions that are not async stay ordinary calls.
#pragma once
#include <string>
#include <vector>

#include "codegen/flow.h"
#include "codegen/gpu/accumulate.h"
#include "codegen/gpu/bounded_recursion.h"
#include "codegen/gpu/perfect_trees.h"
#include "codegen/gpu/scan_trees.h"

namespace bendc {

struct DeviceEntry {
  flow::FuncId host;             // the `!` target in the host module
  flow::FuncId device;           // the same def in the device module; none when refused
  bool reads_only = false;       // nothing that it reaches writes to an array
  std::string refusal;           // why it cannot run on the device ("`show` uses F32.show, which is host only"); empty when it can
};

struct DeviceModule {
  flow::Module module;           // functions not reachable from an entry have no body
  std::vector<bool> reachable;   // by FuncId
  std::vector<bool> async;       // by FuncId: runs as segments
  std::vector<bool> copy;        // by FuncId: made by bound_recursion; called, never inlined: copies call copies many times
  std::vector<bool> inlined;     // by FuncId: made by find_perfect_trees, always part of the grid's kernel
  std::vector<BoundedRecursion> bounded;
  std::vector<PerfectTree> trees;
  std::vector<ScanTree> scans;
  std::vector<Accumulator> accumulators;
  std::vector<DeviceEntry> entries;
};

// What keeps the code of a function itself, without the functions it calls, off the device; empty when nothing does.
[[nodiscard]] std::string host_only(flow::Module& module, flow::FuncId func);

[[nodiscard]] DeviceModule split_segments(const flow::Module& host);

}  // namespace bendc
