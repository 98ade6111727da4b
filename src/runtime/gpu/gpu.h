// The GPU side of a run: exists only when the program has a `!` and the GPU is not off. Its device is made ready by a background thread that starts
// with the program; the first `!` waits for it. What is refused then is remembered, and every `!` runs on the CPU or ends the program.
#pragma once
#include <pthread.h>

#include "runtime/gpu/launches.h"
#include "runtime/gpu/residency.h"
#include "runtime/gpu/space.h"

namespace bendc::rt::gpu {

struct Gpu {
  GpuConfig config;
  const BendGpuProgram* program;
  Device device;
  Space space;
  Residency residency;
  bool emulated;
  pthread_mutex_t lock;      // one call at a time
  pthread_t starter;
  bool starting;             // the thread has been started and not been joined
  bool stop;                 // tells it to give up between its steps
  bool ready, refused;
  Message why;               // of refused
  bool* noted;               // by entry: its refusal has been told
  uint32_t* rounds;          // by entry: rounds of its last call
  uint32_t* widths;          // by entry: tasks of the widest of them
  uint32_t* chunks;          // by entry: its heap chunk
  EntryTimes* times;         // by entry
  Counters counters;
  Launches launches;         // way 0: forks go to rounds
  uint64_t start_ns[5];      // driver, context, module, memory, total
  uint64_t link_ns;          // of the launch module
  uint64_t waited_ns;        // of the first `!`, for the starter
  uint64_t first_ns;         // of the first `!`, with that
};

// Null when there is nothing to do; `failed` with a message on stderr when the options ask for what the program lacks.
[[nodiscard]] Gpu* gpu_open(const GpuConfig& config, const BendGpuProgram* program, bool* failed);
// Waits for the starter; prints the counters when asked for.
void gpu_close(Gpu* gpu);

// A fault of a program's thread at `at` (residency.h); `gpu` may be null.
[[nodiscard]] Touch gpu_touch(Gpu* gpu, const void* at, Message* why);

[[nodiscard]] uint64_t now_ns();

}  // namespace bendc::rt::gpu
