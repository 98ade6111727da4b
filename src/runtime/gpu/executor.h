// Runs a device machine: the root task in, rounds until no task is left, the result out. Rounds are enqueued several at a time with bend_flip
// between them, so the host looks at the control block only now and then (about 10 us a look, 2 to 5 us a round that finds no task).
#pragma once
#include "runtime/gpu/space.h"

namespace bendc::rt::gpu {

struct Counters {
  uint64_t calls, refused, rounds, tasks, widest, launches, looks;
  uint64_t groups, warps;    // perfect trees, and warp-tasks of theirs
  uint64_t device_ns;        // by events, copies included
  uint64_t wall_ns;
  uint64_t grids;            // launched from the device
  uint64_t launched_trees;   // perfect trees with a place in such a grid
  uint64_t refused_forks;    // and trees: no grid for a full pool or a refused launch
};

// The calls of one entry; times by events, only with statistics.
struct EntryTimes {
  uint64_t calls;
  uint64_t rounds_ns;        // the kernels of its rounds: control block in, rounds, control block out
  uint64_t least_rounds_ns;  // of the call that took least
  uint64_t device_ns;        // with what moved before and after
};

struct Launches;

struct Run {
  const GpuConfig* config;
  const BendGpuProgram* program;
  Space* space;
  Launches* launches;        // null: forks go to rounds
  Counters* counters;
  const char* record;        // the root's task record, task_stride bytes
  uint64_t used, top;        // heap bytes below and above what is free
  uint32_t entry;
  uint32_t* rounds_hint;     // rounds of the entry's last call, 0: none yet
  uint32_t* widest_hint;     // and the tasks of the widest
  uint32_t* chunk_hint;      // the largest heap chunk that its last call wants, 0: none yet
  BendDeviceControl* control;// out: as the last round left it
  char* result;              // out: the size of the entry's result
};

// False: the device failed, `why` says how. An error that the program made is in control->error.
[[nodiscard]] bool run_rounds(Run* run, Message* why);

// The emulator's part: all threads of one round, in an order that the seed decides.
void emulate_round(const Run* run, BendDeviceControl* control, uint64_t round);
// Its groups, all warps of them, likewise.
void emulate_groups(const Run* run, BendDeviceControl* control, uint64_t round);
// Widths and budgets of the emulator, so that small programs go through every path.
void emulate_limits(const Run* run, BendDeviceControl* control);

}  // namespace bendc::rt::gpu
