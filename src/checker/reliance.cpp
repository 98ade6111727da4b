// Marks defs and datatypes backwards along "names X in its type, checked body, kind, parameters or fields".
#include "checker/reliance.h"

#include <algorithm>

namespace bendc {

using core::Book;
using core::CtorId;
using core::DataId;
using core::DefId;
using core::Term;
using core::TermId;
using core::TermKind;

namespace {

// Nodes: defs first, then datatypes.
class Walk {
 public:
  explicit Walk(const Book& book) : book_(book), users_(book.defs.size() + book.datatypes.size()) {}

  // Adds an edge to `from` for every name in the term.
  void names_in(TermId root, uint32_t from) {
    if (!root.valid()) return;
    stack_.push_back(root);
    while (!stack_.empty()) {
      const TermId id = stack_.back();
      stack_.pop_back();
      if (book_.unchecked.count(id) != 0) continue;
      const Term& t = book_.terms[id];
      switch (t.kind) {
        case TermKind::Ref:
          users_[t.a].push_back(from);
          break;
        case TermKind::Let:
          for (uint32_t i = 0; i < t.b; ++i) stack_.push_back(book_.let_rows[t.a + i].value);
          push(t.c);
          break;
        case TermKind::Kind: case TermKind::Lam:
          push(t.a);
          break;
        case TermKind::Meet: case TermKind::All: case TermKind::Ann:
          push(t.a);
          push(t.b);
          break;
        case TermKind::App: {
          push(t.a);
          list(t.b, t.c);
          const auto instance = book_.instance_calls.find(id);
          if (instance != book_.instance_calls.end()) users_[instance->second.index].push_back(from);
          break;
        }
        case TermKind::Adt:
          users_[book_.defs.size() + t.a].push_back(from);
          list(t.b, t.c);
          break;
        case TermKind::Ctr:
          users_[book_.defs.size() + book_.ctors[CtorId(t.a)].data.index].push_back(from);
          list(t.b, t.c);
          break;
        case TermKind::Mat:
          push(t.b);
          push(t.c);
          break;
        case TermKind::MatLit: case TermKind::Eql: case TermKind::Rwt:
          push(t.a);
          push(t.b);
          push(t.c);
          break;
        case TermKind::Var: case TermKind::Quant: case TermKind::Qua: case TermKind::U32: case TermKind::Nat: case TermKind::F32:
        case TermKind::Str: case TermKind::Efq: case TermKind::Rfl: case TermKind::Hole: case TermKind::Error:
          break;
      }
    }
  }

  [[nodiscard]] const std::vector<uint32_t>& users(uint32_t node) const { return users_[node]; }

 private:
  void push(uint32_t index) { stack_.push_back(TermId(index)); }
  void list(uint32_t offset, uint32_t count) {
    for (const TermId id : book_.list(offset, count)) stack_.push_back(id);
  }

  const Book& book_;
  std::vector<std::vector<uint32_t>> users_;
  std::vector<TermId> stack_;
};

}  // namespace

std::vector<DefId> relies_on_unsafe(const Book& book) {
  const uint32_t defs = book.defs.size();
  auto is_stdlib = [&](uint32_t module) { return module < book.module_is_stdlib.size() && book.module_is_stdlib[module]; };
  std::vector<uint8_t> marked(defs + book.datatypes.size(), 0);
  std::vector<uint32_t> work;
  for (uint32_t i = 0; i < defs; ++i) {
    const core::Def& def = book.defs[DefId(i)];
    if (!def.unsafe && !(def.foreign && !is_stdlib(def.module))) continue;
    // A named stdlib module answers for itself; Base's @unsafe defs are the ones that count.
    if (is_stdlib(def.module) && !book.module_keys[def.module].empty()) continue;
    marked[i] = 1;
    work.push_back(i);
  }
  std::vector<DefId> result;
  if (work.empty()) return result;

  Walk walk(book);
  for (uint32_t i = 0; i < defs; ++i) {
    const core::Def& def = book.defs[DefId(i)];
    walk.names_in(def.type, i);
    walk.names_in(def.body, i);
  }
  for (uint32_t i = 0; i < book.datatypes.size(); ++i) {
    const core::Datatype& data = book.datatypes[DataId(i)];
    for (const core::Telescope& p : data.params) walk.names_in(p.type, defs + i);
    walk.names_in(data.kind, defs + i);
    for (const CtorId ctor : data.ctors) {
      for (const core::Telescope& f : book.ctors[ctor].fields) walk.names_in(f.type, defs + i);
    }
  }
  while (!work.empty()) {
    const uint32_t node = work.back();
    work.pop_back();
    for (const uint32_t user : walk.users(node)) {
      if (marked[user] != 0) continue;
      const uint32_t module = user < defs ? book.defs[DefId(user)].module : book.datatypes[DataId(user - defs)].module;
      if (is_stdlib(module) && !book.module_keys[module].empty()) continue;
      marked[user] = 1;
      work.push_back(user);
    }
  }
  for (uint32_t i = 0; i < defs; ++i) {
    const core::Def& def = book.defs[DefId(i)];
    if (marked[i] != 0 && !is_stdlib(def.module) && !def.instance_of.valid()) result.push_back(DefId(i));
  }
  std::sort(result.begin(), result.end(), [&](DefId a, DefId b) { return book.defs[a].order < book.defs[b].order; });
  return result;
}

}  // namespace bendc
