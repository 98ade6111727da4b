// IndexSet: a persistent set of constructor indices. `with` shares all but the path to the new member, so the n residual types that a match over
// n constructors walks through take n log n memory together. Nodes lie in the arena that is passed in.
// Example: `s.with(arena, 3, 100)` is s and 3, for indices below 100.
#pragma once
#include <cstdint>

#include "support/arena.h"

namespace bendc {

class IndexSet {
 public:
  [[nodiscard]] uint32_t size() const { return size_; }
  [[nodiscard]] bool has(uint32_t index) const;
  [[nodiscard]] IndexSet with(Arena& arena, uint32_t index, uint32_t total) const;  // all members of one set have one `total`
  [[nodiscard]] bool contains(const IndexSet& other) const;                         // every member of `other`
  [[nodiscard]] uint64_t first_word() const;                                        // bit i: index i, of the first 64

 private:
  struct Node;
  static constexpr uint32_t kWordBits = 6;    // a leaf is a word of 64 indices
  static constexpr uint32_t kBranchBits = 3;  // 64 bytes a node: wide enough to be shallow, small enough to copy
  union Link {
    uint64_t word;      // height 0
    const Node* node;   // above; null: nothing below
  };
  struct Node { Link below[1u << kBranchBits]; };

  static uint32_t slot(uint32_t index, uint32_t height) { return (index >> (kWordBits + kBranchBits * (height - 1))) & ((1u << kBranchBits) - 1); }
  static Link set(Arena& arena, Link old, uint32_t index, uint32_t height);
  static bool covers(Link whole, Link part, uint32_t height);

  Link root_{0};
  uint32_t size_ = 0;
  uint32_t height_ = 0;
};

}  // namespace bendc
