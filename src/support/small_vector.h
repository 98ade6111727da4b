// SmallVector<T, N>: a vector of plain values whose first N live in the object itself, for short lists on hot recursive paths.
// Example: the rows of a match are rarely more than eight; keeping them on the stack saves a malloc and a free per match.
#pragma once
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace bendc {

template <class T, size_t N> class SmallVector {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  SmallVector() = default;
  explicit SmallVector(size_t count) {
    reserve(count);
    for (size_t i = 0; i < count; ++i) push_back(T());
  }
  SmallVector(const SmallVector&) = delete;
  SmallVector& operator=(const SmallVector&) = delete;
  ~SmallVector() {
    if (data_ != inline_data()) ::operator delete(data_);
  }

  void push_back(const T& item) {
    T copy = item;  // `item` may be an element of this vector
    if (size_ == capacity_) reserve(2 * capacity_);
    ::new (static_cast<void*>(data_ + size_++)) T(copy);
  }
  void pop_back() { assert(size_ > 0); --size_; }
  void clear() { size_ = 0; }
  void reserve(size_t capacity) {
    if (capacity <= capacity_) return;
    T* grown = static_cast<T*>(::operator new(capacity * sizeof(T)));
    std::memcpy(static_cast<void*>(grown), data_, size_ * sizeof(T));
    if (data_ != inline_data()) ::operator delete(data_);
    data_ = grown;
    capacity_ = capacity;
  }

  [[nodiscard]] T& operator[](size_t i) { assert(i < size_); return data_[i]; }
  [[nodiscard]] const T& operator[](size_t i) const { assert(i < size_); return data_[i]; }
  [[nodiscard]] T& back() { return (*this)[size_ - 1]; }
  [[nodiscard]] T* data() { return data_; }
  [[nodiscard]] const T* data() const { return data_; }
  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] T* begin() { return data_; }
  [[nodiscard]] T* end() { return data_ + size_; }
  [[nodiscard]] const T* begin() const { return data_; }
  [[nodiscard]] const T* end() const { return data_ + size_; }
  operator std::span<const T>() const { return {data_, size_}; }
  operator std::span<T>() { return {data_, size_}; }

 private:
  [[nodiscard]] T* inline_data() { return reinterpret_cast<T*>(inline_); }

  T* data_ = inline_data();
  size_t size_ = 0, capacity_ = N;
  alignas(T) std::byte inline_[N * sizeof(T)];
};

}  // namespace bendc
