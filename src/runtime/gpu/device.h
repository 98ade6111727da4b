// One CUDA device made ready: driver opened, device chosen, primary context, the program's module and the runtime's own kernels loaded.
// Runs in the background thread that starts with a program that has a `!`; everything that can be refused is found out here, before a launch.
#pragma once
#include "runtime/gpu/driver.h"
#include "runtime/gpu/options.h"

namespace bendc::rt::gpu {

struct Device {
  Driver driver;
  int ordinal;
  char name[128];
  char uuid[48];             // GPU-...; empty when the driver does not say
  int major, minor, processors;
  uint64_t total_memory;
  void* context;
  void* stream;
  void* begin;               // events around a call
  void* end;
  void* rounds_begin;        // events around its rounds
  void* rounds_end;
  void* own_module;          // bend_flip, bend_diff, bend_move, bend_selftest
  void* flip;
  void* diff;
  void* move;
  void* selftest;
  void* module;              // the program's
  void* round;
  void* flat;                // null: the program has no perfect trees
  uint32_t arch;             // of the code that was loaded
  bool overlaps;             // both modules hold kernels that wait for what is ahead of them (overlap.h)
  uint32_t local_bytes;      // of the round kernel, a thread
  uint32_t registers;
  uint32_t blocks;           // resident blocks of the round kernel on the whole device
  uint32_t flat_blocks;      // of the flat kernel
  uint32_t flat_registers;
  uint64_t statics;          // address of the immortal nodes, 0: none
  uint64_t statics_bytes;
};

// The driver and its devices; no context yet.
[[nodiscard]] bool device_probe(Device* device, const GpuConfig& config, Message* why);
// A context on the chosen device, and the runtime's kernels.
[[nodiscard]] bool device_open(Device* device, Message* why);
// The program's module.
[[nodiscard]] bool device_load(Device* device, const BendGpuProgram* program, Message* why);
void device_close(Device* device);

// Facts about device `ordinal`, without choosing it.
[[nodiscard]] bool device_describe(Device* device, int ordinal, Message* why);

}  // namespace bendc::rt::gpu
