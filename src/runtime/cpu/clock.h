// Nanoseconds of a clock that only goes forward.
#pragma once
#include <stdint.h>
#include <time.h>

namespace bendc::rt {

inline uint64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

}  // namespace bendc::rt
