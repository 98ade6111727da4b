// Reference counts of nodes, objects and array blocks, in one place. A count at or past BEND_IMMORTAL never changes: static data starts there,
// and a count that climbs that far (2^31 references are 16 GiB of words) stays there, so that it leaks instead of being freed early.
// With BEND_ATOMIC_COUNTS the same operations are safe between workers: increments are relaxed, the last decrement acquires.
#pragma once
#include <atomic>

#include "runtime/abi.h"

namespace bendc::rt {

#ifdef BEND_ATOMIC_COUNTS
inline uint32_t count_read(uint32_t* count) { return std::atomic_ref<uint32_t>(*count).load(std::memory_order_acquire); }

inline void count_up(uint32_t* count) {
  std::atomic_ref<uint32_t> shared(*count);
  if (shared.load(std::memory_order_relaxed) < BEND_IMMORTAL) shared.fetch_add(1, std::memory_order_relaxed);
}

// Gives up one reference; true when it was the last one.
[[nodiscard]] inline bool count_down(uint32_t* count) {
  std::atomic_ref<uint32_t> shared(*count);
  uint32_t now = shared.load(std::memory_order_acquire);
  if (now >= BEND_IMMORTAL) return false;
  return now == 1 || shared.fetch_sub(1, std::memory_order_acq_rel) == 1;
}
#else
inline uint32_t count_read(const uint32_t* count) { return *count; }

inline void count_up(uint32_t* count) {
  if (*count < BEND_IMMORTAL) ++*count;
}

// Gives up one reference; true when it was the last one.
[[nodiscard]] inline bool count_down(uint32_t* count) {
  uint32_t now = *count;
  if (now >= BEND_IMMORTAL) return false;
  if (now == 1) return true;
  *count = now - 1;
  return false;
}
#endif

}  // namespace bendc::rt
