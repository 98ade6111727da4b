// find_fork_sites: what becomes of every fork of a program, and why.
// In: the owned host module, its device module and machine. Out: one row a place in the source, in order of the source; instances of one
// template share a row, that of an instance which a `!` reaches if there is one.
//
// The facts are those known when the program is compiled: how the calls of a fork shrink a Nat, whether copies bound a small subtree, whether the tree is
// perfect. `explain_forks` and `explain_html` show them; a structure test pins strategy and reason of the programs of the repository.
#pragma once
#include <string>
#include <vector>

#include "codegen/gpu/machine_plan.h"
#include "codegen/gpu/segments.h"

namespace bendc {

// What `auto` does with a fork on a device. Below a size that copies bound, and with a frontier that is wide enough, all run in their thread.
enum class ForkStrategy : uint8_t {
  Cpu,      // no `!` call that can run on a device reaches it
  Host,     // children go to the next round
  Flat,     // the whole tree is one grid
};

[[nodiscard]] const char* strategy_name(ForkStrategy strategy);

struct ForkSite {
  Span span;
  flow::FuncId func;
  std::string def;                        // as written
  std::vector<std::string> callees;       // as written, each once
  uint32_t calls = 0;
  ForkStrategy strategy = ForkStrategy::Cpu;
  std::string reason;                     // of the strategy
  std::string measure;                    // the Nat that every call makes smaller; empty: none
  uint32_t bounded_depth = 0, bounded_calls = 0;  // below that size: ordinary calls in one thread, so many at most; 0: not bounded
  std::string unbounded;                  // why not
  uint32_t flat_from = 0, flat_leaves = 0;  // flat: the least depth that is a grid, and the leaves of a thread
  bool flat_loops = false;                // flat: a leaf loops, so that few of them are worth a warp
  bool scan = false;                      // flat: one of two trees that are a scan in one pass (scan_trees.h)
  std::string not_flat;                   // why not; empty when flat or on the CPU
  uint32_t task_bytes = 0, task_stride = 0, join_bytes = 0, frame_bytes = 0;  // 0: on the CPU
};

[[nodiscard]] std::vector<ForkSite> find_fork_sites(const flow::Module& host, const DeviceModule& device, const MachinePlan& plan);

// A function's name as the source has it, without instance and lifting marks.
[[nodiscard]] std::string source_name(const std::string& name);

}  // namespace bendc
