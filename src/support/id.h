// Strong 32-bit ids into tables. An id names a row of exactly one table type; kNone (all ones) means "absent".
// Example: `struct TermTag; using TermId = Id<TermTag>;`
#pragma once
#include <compare>
#include <cstdint>
#include <functional>

namespace bendc {

template <class Tag> struct Id {
  static constexpr uint32_t kNone = 0xFFFFFFFFu;
  uint32_t index = kNone;

  constexpr Id() = default;
  constexpr explicit Id(uint32_t i) : index(i) {}
  [[nodiscard]] constexpr bool valid() const { return index != kNone; }
  constexpr explicit operator bool() const { return valid(); }
  friend constexpr auto operator<=>(const Id&, const Id&) = default;
};

// (offset, length) into a flat id vector owned by the same table set.
struct Slice {
  uint32_t offset = 0;
  uint32_t length = 0;
  [[nodiscard]] constexpr bool empty() const { return length == 0; }
};

}  // namespace bendc

template <class Tag> struct std::hash<bendc::Id<Tag>> {
  size_t operator()(bendc::Id<Tag> id) const noexcept { return std::hash<uint32_t>{}(id.index); }
};
