// What a run is told about the GPU: options of `bendc run` and BEND_GPU* variables. An option wins over its variable.
#pragma once
#include "runtime/abi.h"

namespace bendc::rt::gpu {

enum class Use : uint8_t {
  Off,         // every `!` is an ordinary call
  Auto,        // on the device when there is one
  Require,     // a `!` that cannot run there ends the program
  Emulate,     // the device machine compiled for the host
};

// How forks are dealt out on the device.
enum class Fork : uint8_t {
  Auto,        // rounds while the frontier is narrow, then inside threads with a budget (rounds.h)
  Thread,      // grids launched from the device (launch_abi.h), by each thread ..
  Warp,        // .. by one lane for its warp
  Block,       // .. by one thread for its block
  Host,        // always rounds: every fork goes to the next round's queue
  Flat,        // as auto, but perfect trees become grids when the frontier is wide, too
  Sequential,  // one thread: for comparison
};

inline bool launched_from_device(Fork fork) { return fork == Fork::Thread || fork == Fork::Warp || fork == Fork::Block; }

struct GpuConfig {
  Use use;
  Fork fork;
  const char* device;     // index or UUID; null: the first
  uint64_t memory;        // bytes; 0: a share of what is free
  uint64_t threshold;     // size measures below run inside their thread
  uint64_t seed;          // BEND_SCHED_SEED: order of emulated threads
  const char* device_runtime; // BEND_CUDADEVRT: another libcudadevrt.a than a toolkit's
  const char* library;    // BEND_CUDA_LIBRARY: another driver library, for tests
  bool stats;             // counters on stderr at the end
  bool audit;             // and of the pages that either side wrote (page_audit.h)
};

// False after a message on stderr.
[[nodiscard]] bool read_gpu_config(GpuConfig* config, const BendOptions* options);

}  // namespace bendc::rt::gpu
