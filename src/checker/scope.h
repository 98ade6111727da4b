// Binders and scopes of one declaration. A Binder is a local variable's meaning at the current point of elaboration; a Scope says
// which binder a written name means. A binder changes its state along one path through a case tree and gets it back afterwards.
//   Pending   a parameter or field that can still be matched
//   Closed    bound by a lambda, let or telescope: a variable with a level
//   Opened    matched: stands for K{fields}, whose fields are binders with consecutive ids
//   Known     matched against a literal: stands for it
#pragma once
#include <vector>

#include "checker/core.h"

namespace bendc::elab {

inline constexpr uint32_t kNil = 0xFFFFFFFFu;

struct BinderTag;
using BinderId = Id<BinderTag>;

enum class BinderState : uint8_t { Pending, Closed, Opened, Known };
enum class LiteralKind : uint8_t { Nat, U32, F32, Word };

struct Literal {
  LiteralKind kind = LiteralKind::Nat;
  uint32_t value = 0;
  uint32_t bits = 0;          // Word: how many are left, lowest first
  friend bool operator==(const Literal&, const Literal&) = default;
};

struct Binder {
  Name name;
  Span span;
  core::Quantity mark = core::Quantity::Lone;
  BinderState state = BinderState::Closed;
  uint32_t level = 0;         // Closed
  core::CtorId ctor;          // Opened
  BinderId first_field;       // Opened
  uint32_t field_count = 0;   // Opened
  Literal literal;            // Known
  uint32_t taken = kNil;      // Pending: list of constructors and literals already ruled out (CaseTree::taken_)
  uint32_t taken_ctors = 0;   // how many constructors among them
};

// Name -> binder with shadowing: the innermost binding of each name is found by one load.
class Scope {
 public:
  [[nodiscard]] BinderId find(Name name) const {
    if (name.index >= heads_.size() || heads_[name.index] == kNil) return BinderId();
    return entries_[heads_[name.index]].binder;
  }
  void push(Name name, BinderId binder) {
    if (name.index >= heads_.size()) heads_.resize(std::max<size_t>(name.index + 1, heads_.size() * 2), kNil);
    entries_.push_back({name, heads_[name.index], binder});
    heads_[name.index] = static_cast<uint32_t>(entries_.size() - 1);
  }
  [[nodiscard]] size_t size() const { return entries_.size(); }
  void pop_to(size_t size) {
    while (entries_.size() > size) {
      heads_[entries_.back().name.index] = entries_.back().outer;
      entries_.pop_back();
    }
  }
  [[nodiscard]] std::vector<Name> names() const {
    std::vector<Name> out;
    for (const Entry& e : entries_) out.push_back(e.name);
    return out;
  }

 private:
  struct Entry {
    Name name;
    uint32_t outer;   // entry this one shadows
    BinderId binder;
  };
  std::vector<uint32_t> heads_;   // by name
  std::vector<Entry> entries_;
};

// Recursion bound: the bytes of C++ stack that elaboration may use from here on. The parser bounds the nesting of what is written; a long
// list or string pattern nests the case tree by itself, one test in another.
class Nesting {
 public:
  explicit Nesting(size_t stack) : stack_(stack) { char here; base_ = reinterpret_cast<uintptr_t>(&here); }
  [[nodiscard]] bool enter() const {
    char here;
    const uintptr_t at = reinterpret_cast<uintptr_t>(&here);
    return (at < base_ ? base_ - at : at - base_) <= stack_;
  }

 private:
  uintptr_t base_ = 0;
  size_t stack_;
};

}  // namespace bendc::elab
