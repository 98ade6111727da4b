// Which part of the device's free heap holds zeros: nodes of a call grow from below, places from above (places.h), and what either has touched is not zero
// any more. One thread makes an array, and writes 4 bytes a nanosecond; where the memory is zero already it need not. Offsets from the heap's start.
#pragma once
#include <stdint.h>

namespace bendc::rt::gpu {

struct Zeros {
  uint64_t from, to;   // equal: nothing is known to be zero

  // What lies below `low`, and from `high` on, may have been written.
  void touched(uint64_t low, uint64_t high) {
    if (from < low) from = low;
    if (to > high) to = high;
    if (from > to) from = to;
  }

  // [low, high) shall be zero: calls zero(at, bytes) for what is not known to be. False: it failed, and nothing is known.
  template <class Zero>
  bool extend(uint64_t low, uint64_t high, const Zero& zero) {
    touched(low, high);
    const Zeros known = *this;
    from = to = low;
    if (low >= high) return true;
    if (known.from == known.to) {
      if (!zero(low, high - low)) return false;
    } else {
      if (known.from > low && !zero(low, known.from - low)) return false;
      if (known.to < high && !zero(known.to, high - known.to)) return false;
    }
    to = high;
    return true;
  }
};

}  // namespace bendc::rt::gpu
