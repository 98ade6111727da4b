// What a run is told from outside: the options of `bendc run` and the BEND_* variables, read once at the start. An option wins over a
// variable. A bad value is reported with the variable's name and ends the process with exit status 2 before the program starts.
#pragma once
#include "runtime/abi.h"
#include "runtime/gpu/options.h"

namespace bendc::rt {

struct Config {
  uint32_t threads;       // 1..128; default: the CPUs that affinity and the control group allow
  uint64_t sched_seed;    // BEND_SCHED_SEED; 0: nothing perturbs the schedule
  uint32_t watchdog_seconds; // BEND_WATCHDOG; 0: none (cpu/watchdog.h)
  bool debug_heap;        // BEND_DEBUG_HEAP=1
  uint64_t stack_bytes;   // BEND_STACK; default: half of the memory available at the start, at most 256 GiB
  uint64_t heap_bytes;    // BEND_HEAP; default: the machine's or the control group's memory
  gpu::GpuConfig gpu;     // BEND_GPU, BEND_GPU_DEVICE, ...; BEND_STATS
  bool returns_errors;    // BendOptions.returns_errors
  int argc;               // the program's own words, argv[0] replaced by the file as written under `bendc run`
  char** argv;
  const char* program_name;
};

// False after a message on stderr.
[[nodiscard]] bool read_config(Config* config, const BendOptions* options, int argc, char** argv);

// `8GB`, `512MB`, `64KB` (powers of 1024) or plain bytes, above zero.
[[nodiscard]] bool parse_size(const char* text, uint64_t* bytes);

}  // namespace bendc::rt
