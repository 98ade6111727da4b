#include "support/interner.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace bendc {

namespace {

constexpr size_t kPage = 1 << 16;
constexpr uint32_t kEmpty = Name::kNone;

// Multiply-and-fold over 8 bytes a step; names are short, so the tail copy dominates.
uint32_t hash_of(std::string_view text) {
  uint64_t h = 0x9E3779B97F4A7C15ull ^ text.size();
  const char* p = text.data();
  size_t n = text.size();
  while (n > 0) {
    uint64_t word = 0;
    size_t take = std::min<size_t>(n, 8);
    std::memcpy(&word, p, take);
    h = (h ^ word) * 0xD6E8FEB86659FD93ull;
    h ^= h >> 32;
    p += take;
    n -= take;
  }
  h *= 0xD6E8FEB86659FD93ull;
  return static_cast<uint32_t>(h >> 32);
}

}  // namespace

Name Interner::intern(std::string_view text) {
  if ((texts_.size() + 1) * 2 > slots_.size()) grow();
  uint32_t hash = hash_of(text);
  uint32_t mask = static_cast<uint32_t>(slots_.size() - 1);
  for (uint32_t i = hash & mask;; i = (i + 1) & mask) {
    uint32_t index = slots_[i];
    if (index == kEmpty) {
      slots_[i] = static_cast<uint32_t>(texts_.size());
      texts_.push_back(store(text));
      hashes_.push_back(hash);
      return Name(slots_[i]);
    }
    if (hashes_[index] == hash && texts_[index] == text) return Name(index);
  }
}

std::string_view Interner::text(Name name) const {
  assert(name.valid() && name.index < texts_.size());
  return texts_[name.index];
}

std::string_view Interner::store(std::string_view text) {
  if (text.empty()) return {};
  if (page_size_ - page_used_ < text.size()) {
    page_size_ = std::max(kPage, text.size());
    page_used_ = 0;
    pages_.push_back(std::make_unique<char[]>(page_size_));
  }
  char* place = pages_.back().get() + page_used_;
  std::memcpy(place, text.data(), text.size());
  page_used_ += text.size();
  return {place, text.size()};
}

void Interner::grow() {
  size_t size = std::max<size_t>(1024, slots_.size() * 2);
  slots_.assign(size, kEmpty);
  for (uint32_t index = 0; index < texts_.size(); ++index) {
    size_t i = hashes_[index] & (size - 1);
    while (slots_[i] != kEmpty) i = (i + 1) & (size - 1);
    slots_[i] = index;
  }
}

}  // namespace bendc
