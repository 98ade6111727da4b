// A hash table from addresses to words with open addressing, for the memo of a transfer. Keys are never 0.
#pragma once
#include <stdint.h>
#include <stdlib.h>

#include "runtime/memory/heap.h"

namespace bendc::rt::gpu {

class AddressMap {
 public:
  // The value of a key, or null.
  uint64_t* find(uint64_t key) {
    if (count_ == 0) return nullptr;
    for (uint64_t i = slot(key);; i = (i + 1) & mask_) {
      if (entries_[i].key == key) return &entries_[i].value;
      if (entries_[i].key == 0) return nullptr;
    }
  }
  void add(BendWorker* worker, uint64_t key, uint64_t value) {
    if ((count_ + 1) * 2 > capacity()) grow(worker);
    place(key, value);
  }
  void close() {
    free(entries_);
    *this = AddressMap();
  }
  void clear() {
    if (count_ == 0) return;
    free(entries_);
    *this = AddressMap();
  }

 private:
  struct Entry {
    uint64_t key, value;
  };
  uint64_t capacity() const { return entries_ ? mask_ + 1 : 0; }
  // Nodes stand at multiples of 8; the product's high bits mix all of them.
  uint64_t slot(uint64_t key) const { return (key >> 3) * 0x9E3779B97F4A7C15ull >> shift_ & mask_; }
  void place(uint64_t key, uint64_t value) {
    uint64_t i = slot(key);
    while (entries_[i].key != 0) i = (i + 1) & mask_;
    entries_[i] = {key, value};
    ++count_;
  }
  void grow(BendWorker* worker) {
    AddressMap old = *this;
    uint64_t size = old.entries_ ? (mask_ + 1) * 2 : 64;
    entries_ = static_cast<Entry*>(system_alloc(worker, size * sizeof(Entry)));
    mask_ = size - 1;
    shift_ = 64u - static_cast<uint32_t>(__builtin_ctzll(size));
    count_ = 0;
    for (uint64_t i = 0; i < old.capacity(); ++i)
      if (old.entries_[i].key != 0) place(old.entries_[i].key, old.entries_[i].value);
    free(old.entries_);
  }

  Entry* entries_ = nullptr;
  uint64_t mask_ = 0, count_ = 0;
  uint32_t shift_ = 0;
};

}  // namespace bendc::rt::gpu
