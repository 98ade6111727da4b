// Interned strings. A Name is compared as an integer; its text lives as long as the interner.
// One Interner belongs to one compilation (no global state).
#pragma once
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

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
  std::deque<std::string> texts_;  // deque: stable addresses for the views used as keys
  std::unordered_map<std::string_view, Name> ids_;
};

}  // namespace bendc
