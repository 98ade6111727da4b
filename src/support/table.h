// Tables: dense vectors (or blocks of them) indexed by a strong id, and flat child lists addressed by Slice.
#pragma once
#include <algorithm>
#include <cassert>
#include <span>
#include <vector>

#include "support/id.h"

namespace bendc {

template <class IdT, class T> class Table {
 public:
  IdT add(T row) {
    rows_.push_back(std::move(row));
    return IdT(static_cast<uint32_t>(rows_.size() - 1));
  }
  [[nodiscard]] T& operator[](IdT id) { assert(id.index < rows_.size()); return rows_[id.index]; }
  [[nodiscard]] const T& operator[](IdT id) const { assert(id.index < rows_.size()); return rows_[id.index]; }
  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(rows_.size()); }
  [[nodiscard]] auto begin() { return rows_.begin(); }
  [[nodiscard]] auto end() { return rows_.end(); }
  [[nodiscard]] auto begin() const { return rows_.begin(); }
  [[nodiscard]] auto end() const { return rows_.end(); }
  void reserve(size_t n) { rows_.reserve(n); }
  void clear() { rows_.clear(); }

 private:
  std::vector<T> rows_;
};

// The same for tables that grow to millions of rows: in blocks, so that growing copies nothing and rows stay where they are.
template <class IdT, class T> class BlockTable {
 public:
  IdT add(T row) {
    const uint32_t at = size_++;
    if (at >> kBits == blocks_.size()) blocks_.emplace_back().reserve(kRows);
    std::vector<T>& block = blocks_[at >> kBits];
    block.push_back(std::move(row));
    return IdT(at);
  }
  [[nodiscard]] const T& operator[](IdT id) const { assert(id.index < size_); return blocks_[id.index >> kBits][id.index & (kRows - 1)]; }
  [[nodiscard]] uint32_t size() const { return size_; }
  void clear() {
    blocks_.resize(std::min<size_t>(blocks_.size(), 1));
    for (std::vector<T>& block : blocks_) block.clear();
    size_ = 0;
  }

 private:
  static constexpr uint32_t kBits = 12, kRows = 1 << kBits;
  std::vector<std::vector<T>> blocks_;
  uint32_t size_ = 0;
};

// Child lists of many nodes in one vector. A returned span is invalidated by the next add().
template <class T> class ListPool {
 public:
  [[nodiscard]] Slice add(std::span<const T> items) {
    Slice s{static_cast<uint32_t>(flat_.size()), static_cast<uint32_t>(items.size())};
    flat_.insert(flat_.end(), items.begin(), items.end());
    return s;
  }
  [[nodiscard]] std::span<const T> operator[](Slice s) const { return {flat_.data() + s.offset, s.length}; }
  [[nodiscard]] std::span<T> operator[](Slice s) { return {flat_.data() + s.offset, s.length}; }
  void clear() { flat_.clear(); }

 private:
  std::vector<T> flat_;
};

}  // namespace bendc
