// A set of at most 128 workers who ask for a task: they enter and leave themselves, and whoever has a task takes one of them out. Exactly one of
// the two ends each asking.
#pragma once
#include <stdint.h>

#include <atomic>

namespace bendc::rt {

struct Askers {
  std::atomic<uint64_t> bits[2];

  bool any() const { return (bits[0].load(std::memory_order_seq_cst) | bits[1].load(std::memory_order_seq_cst)) != 0; }
  bool has(uint32_t index) const { return (bits[index >> 6].load(std::memory_order_acquire) & bit(index)) != 0; }
  void add(uint32_t index) { bits[index >> 6].fetch_or(bit(index), std::memory_order_seq_cst); }
  // False when somebody else just did.
  [[nodiscard]] bool remove(uint32_t index) { return (bits[index >> 6].fetch_and(~bit(index), std::memory_order_seq_cst) & bit(index)) != 0; }

  // Removes some worker, the first from a random one on; false when there is none.
  [[nodiscard]] bool pick(uint64_t random, uint32_t* index) {
    const uint32_t from = static_cast<uint32_t>(random % 128);
    for (uint32_t half = 0; half < 2; ++half) {
      const uint32_t word = (from >> 6) ^ half;
      while (uint64_t set = bits[word].load(std::memory_order_seq_cst)) {
        const uint64_t above = set & ~(bit(from) - 1);
        *index = word * 64 + static_cast<uint32_t>(__builtin_ctzll(above ? above : set));
        if (remove(*index)) return true;
      }
    }
    return false;
  }

 private:
  static uint64_t bit(uint32_t index) { return 1ull << (index & 63); }
};

}  // namespace bendc::rt
