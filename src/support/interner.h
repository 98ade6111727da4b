// Interned strings. A Name is compared as an integer; its text lives as long as the interner.
// One Interner belongs to one compilation (no global state).
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "support/id.h"

namespace bendc {

struct NameTag;
using Name = Id<NameTag>;

class Interner {
 public:
  [[nodiscard]] Name intern(std::string_view text);
  [[nodiscard]] std::string_view text(Name name) const;
  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(texts_.size()); }

 private:
  [[nodiscard]] std::string_view store(std::string_view text);
  void grow();

  // Open addressing with linear probing: one identifier of a source costs one probe and one compare, where
  // std::unordered_map costs a list walk and an allocation per new name.
  std::vector<std::string_view> texts_;        // by name
  std::vector<uint32_t> hashes_;               // by name
  std::vector<uint32_t> slots_;                // name index, or kNone; a power of two long
  std::vector<std::unique_ptr<char[]>> pages_; // text storage with stable addresses
  size_t page_used_ = 0, page_size_ = 0;
};

}  // namespace bendc
