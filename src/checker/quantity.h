// Quantities and the usage vector (language.md 4.1, 5). A use is counted the moment it is met; branches of a match are counted from the
// same state and joined by maximum, which equals adding the joined branches because adding is monotone.
// Example: arms using x once and y once: {x:1} then rewound, {y:1}, joined {x:1, y:1}.
#pragma once
#include <vector>

#include "checker/core.h"

namespace bendc {

[[nodiscard]] inline core::Quantity add(core::Quantity a, core::Quantity b) {
  if (a == core::Quantity::None) return b;
  if (b == core::Quantity::None) return a;
  return core::Quantity::Many;
}

class Usage {
 public:
  struct Saved {
    uint32_t level;
    core::Quantity used;
    core::TermId first;
  };

  void push() { entries_.push_back({}); }
  void truncate(size_t size) { entries_.resize(size); }
  [[nodiscard]] size_t size() const { return entries_.size(); }
  [[nodiscard]] core::Quantity used(uint32_t level) const { return entries_[level].used; }
  [[nodiscard]] core::TermId first_use(uint32_t level) const { return entries_[level].first; }

  // Counts one more use and returns the new total.
  core::Quantity use(uint32_t level, core::TermId at) {
    Entry& e = entries_[level];
    if (e.used == core::Quantity::Many) return e.used;
    log_.push_back({level, e.used, e.first});
    if (e.used == core::Quantity::None) e.first = at;
    e.used = add(e.used, core::Quantity::Lone);
    return e.used;
  }

  [[nodiscard]] size_t mark() const { return log_.size(); }
  // Takes back everything since the mark, appending it to `out`. Levels opened since are gone already.
  void rewind(size_t mark, std::vector<Saved>& out) {
    while (log_.size() > mark) {
      const Saved old = log_.back();
      log_.pop_back();
      if (old.level >= entries_.size()) continue;
      Entry& e = entries_[old.level];
      out.push_back({old.level, e.used, e.first});
      e = {old.used, old.first};
    }
  }
  // Joins a rewound branch into the current state.
  void join(const Saved& branch) {
    Entry& e = entries_[branch.level];
    if (branch.used <= e.used) return;
    log_.push_back({branch.level, e.used, e.first});
    e = {branch.used, branch.first};
  }
  void clear() {
    entries_.clear();
    log_.clear();
  }

 private:
  struct Entry {
    core::Quantity used = core::Quantity::None;
    core::TermId first;
  };
  std::vector<Entry> entries_;
  std::vector<Saved> log_;
};

}  // namespace bendc
