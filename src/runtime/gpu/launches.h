// Forks as nested launches (launch_abi.h), the host's side: the launch module linked with the CUDA device runtime, the pool of children's records,
// and rounds that launch one grid each, whose descendants do the rest. Only there when a program is run with --gpu-fork=thread, warp or block.
#pragma once
#include "runtime/gpu/executor.h"
#include "runtime/gpu/launch_abi.h"

namespace bendc::rt::gpu {

struct Launches {
  const BendGpuProgram* program;
  Device* device;            // null: emulated
  uint64_t seed;             // of the emulator
  void* module;
  void* children;            // the kernel
  uint64_t base;             // pool: BendLaunchPool, then its records
  uint32_t capacity;
  uint32_t way;
  uint32_t most_waiting;     // BendLaunchPool
  uint32_t registers, local_bytes;
};

// False: `why` says what is missing, and forks go to rounds. `launches` is zeroed before.
[[nodiscard]] bool launches_open(Launches* launches, const GpuConfig& config, const BendGpuProgram* program, Device* device, Message* why);
void launches_close(Launches* launches);
// In place of rounds: control and the first task are on the device.
[[nodiscard]] bool run_launches(Run* run, Message* why);

// ---- the emulator's part (launches_emulated.cpp) ----
// One round: the tasks of IN and all grids that they and their children launch, in an order that the seed decides. A grid runs at once, at its
// parent's end, or in between.
[[nodiscard]] bool emulate_launches(const Launches* launches, BendDeviceControl* control, uint64_t round, Message* why);

}  // namespace bendc::rt::gpu
