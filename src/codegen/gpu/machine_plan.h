// plan_machine: the numbering and the records of the machine of segments that a device runs (runtime/gpu/device_abi.h).
// In: a device module in cut form (segments.h). Out: one segment per async function, and the small segments between them: load a function's
// arguments from a task's payload, start the next child of a fork that runs in one thread, go on after a cut from its frame or join record,
// hand a value to what waits outside of the thread.
//
//   fork { a = call f(x); b = call f(y) } tail f$1(a, b, z)      frame: { payload of f$1: a b z, arguments of child 1: y, header }
//   segments: run f, load f, run f$1, next child 1, resume from the frame, resume from the join record, hand out what f returns
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/gpu/made_nodes.h"
#include "codegen/gpu/segments.h"
#include "codegen/memory_layout.h"

namespace bendc {

// A Call or Fork of an async function, followed by the tail call of its continuation.
struct Cut {
  flow::FuncId func;                     // where it stands
  flow::NodeId node;
  bool fork = false;
  bool accumulates = false;              // each child starts from the value of the one before, the last one takes the frame's place (accumulate.h)
  uint32_t identity = 0;                 // what a child that becomes a task starts from
  uint32_t sum = 0;                      // of a fork that accumulates: the place in a parent word (device_abi.h) that adds a value to a join's; 0: no atomic does
  bool heavy = false;                    // its segments may be long: what it calls loops, handles whole arrays, or makes many ordinary calls
  flow::VarId measure;                   // a Nat in scope that says how much work the fork is: below a threshold it runs in its thread
  std::vector<flow::FuncId> children;
  flow::FuncId continuation;
  flow::FieldsLayout payload;            // of the continuation's parameters: results first; offsets from a frame's start
  std::vector<flow::FieldsLayout> late;  // arguments of children 1.. in a frame; offsets from the frame's start. Without the last one in a fork that accumulates
  uint32_t frame_bytes = 0;              // with the header, which comes last
  uint32_t join_bytes = 0;               // the payload lies behind the header
  uint32_t next_child = 0;               // segment of child 1; the others follow
  uint32_t resume_frame = 0;             // without `accumulates`
  uint32_t resume_join = 0;              // of a fork without `sum`
};

struct Segment {
  // Call: an ordinary function as a task of its own (a fork's child, a `!` target). Out: the value of a task's last function, to its parent.
  // Relay: from a join record that holds nothing but the value of a perfect tree. Kept: from one that also holds the stack of the task that waits for it.
  enum class Kind : uint8_t { Run, Call, Load, NextChild, ResumeFrame, ResumeJoin, Out, Relay, Kept } kind = Kind::Run;
  flow::FuncId func;                     // Run, Call, Load; Out, Relay and Kept: one that returns such a value
  uint32_t cut = 0, child = 0;           // NextChild, ResumeFrame, ResumeJoin
};

// The header of a frame is one word: its size in words of 8 bytes, 16 bits; the Out segment of the function that waits in it, 16 bits; and
// the segment that takes the value it waits for, 32 bits.

// A perfect tree, or two that are a scan, that may run as one grid (device_abi.h: BendGroup).
struct TreePlan {
  uint32_t tree = 0;                     // index into DeviceModule::trees, of a scan into DeviceModule::scans
  flow::FieldsLayout payload;            // of the function's parameters; offsets from the record's start
  bool scan = false;
  MadeNodes staged;                      // of its leaf, when a warp makes them in shared memory; else no bytes
};

struct MachinePlan {
  std::vector<Segment> segments;
  std::vector<Cut> cuts;
  std::map<uint32_t, uint32_t> cut_of;   // by node
  std::vector<uint32_t> run, load;       // by function; kNone for functions that are only called
  std::map<uint32_t, flow::FieldsLayout> task_payload;  // by function that a task starts with; offsets from the record's start
  std::map<uint32_t, uint32_t> out, relay, kept;  // segments, by type; Out segments are the first ones
  bool makes_arrays = false;             // by Array.new
  std::vector<bool> last_frees;          // by function (last_frees.h)
  uint32_t stack_bytes = 0;              // a thread's stack of frames in its own memory
  uint32_t largest_frame = 0;            // of forks that are not perfect trees
  uint32_t fewest_stack_bytes = 0;       // for the largest frame of all
  std::set<uint32_t> sums;               // of its cuts
  bool sums_publish = false;             // a child that adds to a sum may have written to an array that whoever takes the sum reads
  bool loops = false;                    // some segment loops, or calls what does
  uint32_t words32 = 0, words64 = 0;     // of the widest arguments or value
  uint32_t task_stride = 0;
  std::vector<TreePlan> trees;
  std::map<uint32_t, uint32_t> tree_of;  // by function: index into trees
  uint32_t stage_bytes = 0;              // most of `staged`
  uint32_t group_stride = 0, result_stride = 0;  // 0: no trees
  [[nodiscard]] uint64_t frame_header(const Cut& cut, uint32_t segment, flow::TypeId returns) const {
    return cut.frame_bytes / 8 | uint64_t{out.at(returns.index)} << 16 | uint64_t{segment} << 32;
  }
  // The lowest word of a stack.
  [[nodiscard]] uint64_t bottom_header(flow::TypeId returns) const { return uint64_t{out.at(returns.index)} << 16 | uint64_t{out.at(returns.index)} << 32; }
  static constexpr uint32_t kNone = 0xFFFFFFFFu;
};

[[nodiscard]] MachinePlan plan_machine(DeviceModule& device);

// Types of a function's parameters.
[[nodiscard]] std::vector<flow::TypeId> param_types(const flow::Module& module, flow::FuncId func);

}  // namespace bendc
