// Reference counts of nodes, objects and array blocks, in one place. A count at or past BEND_IMMORTAL never changes: static data starts there,
// and a count that climbs that far (2^31 references are 16 GiB of words) stays there, so that it leaks instead of being freed early.
// `atomic` (BendWorker.atomic): other workers may hold the value too; increments are then relaxed, and the last decrement acquires. A count of
// 1 seen by who holds that reference stays 1: nobody else can raise it.
#pragma once
#include <atomic>

#include "runtime/abi.h"

namespace bendc::rt {

inline uint32_t count_read(uint32_t* count) { return std::atomic_ref<uint32_t>(*count).load(std::memory_order_acquire); }

inline void count_up(uint32_t* count, bool atomic = false) {
  std::atomic_ref<uint32_t> shared(*count);
  uint32_t now = shared.load(std::memory_order_relaxed);
  if (now >= BEND_IMMORTAL) return;
  if (atomic) shared.fetch_add(1, std::memory_order_relaxed);
  else shared.store(now + 1, std::memory_order_relaxed);
}

// Gives up one reference; true when it was the last one.
[[nodiscard]] inline bool count_down(uint32_t* count, bool atomic = false) {
  std::atomic_ref<uint32_t> shared(*count);
  uint32_t now = shared.load(std::memory_order_acquire);
  if (now >= BEND_IMMORTAL) return false;
  if (now == 1) return true;
  if (atomic) return shared.fetch_sub(1, std::memory_order_acq_rel) == 1;
  shared.store(now - 1, std::memory_order_relaxed);
  return false;
}

}  // namespace bendc::rt
