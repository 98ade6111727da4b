// Who has which part of the upper end of the device's heap: blocks that stay where they are for a call or longer. Offsets from the heap's start;
// what lies below floor() is free for a call's nodes.
#pragma once
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

namespace bendc::rt::gpu {

inline constexpr uint64_t kPlaceStep = 512;
inline constexpr uint64_t kNoPlace = UINT64_MAX;

class Places {
 public:
  void open(uint64_t heap_bytes) {
    *this = Places();
    end_ = lowest_ = heap_bytes / kPlaceStep * kPlaceStep;
  }
  void close() {
    free(taken_);
    *this = Places();
  }

  uint64_t floor() const { return count_ ? taken_[count_ - 1].at : end_; }

  // The lowest floor since this was asked last.
  uint64_t lowest_floor() {
    const uint64_t lowest = lowest_;
    lowest_ = floor();
    return lowest;
  }

  // The highest place of `bytes` that leaves the floor at `lowest` or above; kNoPlace when there is none, or the list cannot grow.
  uint64_t take(uint64_t bytes, uint64_t lowest) {
    const uint64_t need = (bytes + kPlaceStep - 1) / kPlaceStep * kPlaceStep;
    if (floor() < lowest) return kNoPlace;
    uint64_t top = end_;
    uint64_t i = 0;
    for (; i < count_ && top - (taken_[i].at + taken_[i].bytes) < need; ++i) top = taken_[i].at;
    if (i == count_ && (top < lowest || top - lowest < need)) return kNoPlace;
    if (count_ == capacity_) {
      uint64_t size = capacity_ ? capacity_ * 2 : 16;
      Place* grown = static_cast<Place*>(realloc(taken_, size * sizeof(Place)));
      if (!grown) return kNoPlace;
      taken_ = grown;
      capacity_ = size;
    }
    memmove(taken_ + i + 1, taken_ + i, (count_ - i) * sizeof(Place));
    taken_[i] = {top - need, need};
    ++count_;
    if (floor() < lowest_) lowest_ = floor();
    return top - need;
  }

  void give(uint64_t at) {
    uint64_t low = 0, high = count_;
    while (high - low > 1) {
      uint64_t middle = (low + high) / 2;
      (taken_[middle].at >= at ? low : high) = middle;
    }
    if (low == count_ || taken_[low].at != at) return;
    --count_;
    memmove(taken_ + low, taken_ + low + 1, (count_ - low) * sizeof(Place));
  }

 private:
  struct Place {
    uint64_t at, bytes;
  };
  Place* taken_ = nullptr;   // from the highest down
  uint64_t count_ = 0, capacity_ = 0, end_ = 0, lowest_ = 0;
};

}  // namespace bendc::rt::gpu
