// The machine's limits as this process may use them: CPUs by affinity and control group quota, memory by control group and what is free.
#pragma once
#include <stdint.h>

namespace bendc::rt {

struct MemoryLimits {
  uint64_t total;       // the machine's memory and swap, or the control group's limit when lower
  uint64_t available;   // what can be taken now without pushing others out
  uint64_t addresses;   // RLIMIT_AS, or UINT64_MAX
};

[[nodiscard]] MemoryLimits memory_limits();
[[nodiscard]] uint32_t usable_cpus();

}  // namespace bendc::rt
