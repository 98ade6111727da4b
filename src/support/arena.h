// A bump arena: objects without destructors, freed all at once or back to a mark. Blocks are kept for reuse after a reset.
// Example: `Node* n = arena.make<Node>(..)`, later `arena.reset(mark)`.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace bendc {

class Arena {
 public:
  struct Mark {
    size_t block = 0;
    size_t used = 0;
  };

  [[nodiscard]] void* allocate(size_t bytes) {
    bytes = (bytes + 7) & ~size_t{7};
    if (static_cast<size_t>(end_ - next_) < bytes) refill(bytes);
    void* result = next_;
    next_ += bytes;
    return result;
  }
  template <class T, class... Args> [[nodiscard]] T* make(Args&&... args) {
    return new (allocate(sizeof(T))) T{std::forward<Args>(args)...};
  }
  template <class T> [[nodiscard]] T* array(size_t count) { return static_cast<T*>(allocate(sizeof(T) * count)); }

  [[nodiscard]] Mark mark() const { return {current_, blocks_.empty() ? 0 : static_cast<size_t>(next_ - blocks_[current_].memory.get())}; }
  void reset(Mark to) {
    if (blocks_.empty()) return;
    current_ = to.block;
    next_ = blocks_[current_].memory.get() + to.used;
    end_ = blocks_[current_].memory.get() + blocks_[current_].size;
  }
  // Bytes of all blocks up to the current one; an upper bound on what is live.
  [[nodiscard]] size_t bytes() const {
    size_t total = 0;
    for (size_t i = 0; i <= current_ && i < blocks_.size(); ++i) total += blocks_[i].size;
    return total;
  }
  [[nodiscard]] size_t block_index() const { return current_; }

 private:
  struct Block {
    std::unique_ptr<std::byte[]> memory;
    size_t size;
  };
  static constexpr size_t kFirstBlock = 64 * 1024;
  static constexpr size_t kLargestBlock = 4 * 1024 * 1024;

  void refill(size_t bytes) {
    while (current_ + 1 < blocks_.size()) {
      ++current_;
      if (blocks_[current_].size >= bytes) {
        next_ = blocks_[current_].memory.get();
        end_ = next_ + blocks_[current_].size;
        return;
      }
    }
    size_t size = blocks_.empty() ? kFirstBlock : std::min(blocks_.back().size * 2, kLargestBlock);
    if (size < bytes) size = bytes;
    blocks_.push_back({std::unique_ptr<std::byte[]>(new std::byte[size]), size});
    current_ = blocks_.size() - 1;
    next_ = blocks_[current_].memory.get();
    end_ = next_ + size;
  }

  std::vector<Block> blocks_;
  size_t current_ = 0;
  std::byte* next_ = nullptr;
  std::byte* end_ = nullptr;
};

}  // namespace bendc
