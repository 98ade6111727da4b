// Patterns: case and let patterns read from their syntax (which is that of terms) into one small table per declaration.
// Reports P8-P10. Literals stay literals; `expand` shows one constructor layer of a literal on demand.
// Example: `[h, 2n]` becomes Con{h, Con{2n, Nil{}}}, and expand(2n) is Succ{1n}.
#pragma once
#include <span>
#include <vector>

#include "checker/elab_reports.h"
#include "checker/scope.h"
#include "checker/symbols.h"
#include "support/small_vector.h"

namespace bendc::elab {

enum class PatternKind : uint8_t { Any, Ctor, Nat, U32, F32, Word, String };

struct PatternTag;
using PatternId = Id<PatternTag>;

struct Pattern {
  PatternKind kind = PatternKind::Any;
  core::Quantity mark = core::Quantity::Lone;  // Any
  Name name;                                   // Any: none when nothing is bound
  uint32_t a = 0;       // Ctor: CtorId; Nat, U32, F32 (bits), Word: value; String: index into Ast::strings
  uint32_t b = 0;       // Ctor: offset of its subpatterns; Word: bits left; String: first code point still to match
  uint32_t count = 0;   // Ctor: number of subpatterns
  Span span;
};

class Patterns {
 public:
  Patterns(Symbols& symbols, Interner& names, const core::Book& book, Scope& scope, Reports& reports);

  void enter(const ast::Ast* ast, uint32_t position) { ast_ = ast; position_ = position; }
  void clear() {
    table_.clear();
    subs_.clear();
  }

  [[nodiscard]] PatternId convert(ast::NodeId node);
  [[nodiscard]] const Pattern& operator[](PatternId id) const { return table_[id]; }
  [[nodiscard]] std::span<const PatternId> subs(const Pattern& p) const { return subs_[Slice{p.b, p.count}]; }
  [[nodiscard]] PatternId any(Span span) { return table_.add(Pattern{.span = span}); }
  // A literal as its outermost constructor over smaller patterns; a constructor pattern is its own expansion.
  [[nodiscard]] PatternId expand(PatternId id);
  // The constructor `expand` would show, without building it.
  [[nodiscard]] core::CtorId head(const Pattern& p);
  [[nodiscard]] core::CtorId bool_ctor(bool value) { return builtin(value ? true_ : false_); }
  [[nodiscard]] core::CtorId word_ctor(bool empty) { return builtin(empty ? wnil_ : wcon_); }
  [[nodiscard]] core::CtorId number_ctor(LiteralKind kind);  // U32, F32
  [[nodiscard]] core::CtorId nat_ctor(bool zero) { return builtin(zero ? zero_ : succ_); }

 private:
  PatternId error(Code code, Span span, std::string message, std::string note, std::string fix);
  PatternId name(ast::NodeId node, core::Quantity mark);
  PatternId ctor(core::CtorId id, std::span<const PatternId> fields, Span span);
  PatternId ctor_node(const ast::Node& n);
  PatternId chain(ast::NodeId node);
  PatternId list(const ast::Node& n);
  PatternId tuple(const ast::Node& n);
  PatternId nat_plus(ast::NodeId node);
  [[nodiscard]] core::CtorId builtin(Name name);
  // A constructor that sugar stands for; reports P10 at `span` when it is not declared above with `fields` fields.
  core::CtorId require(Name name, uint32_t fields, Span span);

  Symbols& symbols_;
  Interner& names_;
  const core::Book& book_;
  Scope& scope_;
  Reports& reports_;
  const ast::Ast* ast_ = nullptr;
  uint32_t position_ = 0;
  BlockTable<PatternId, Pattern> table_;
  ListPool<PatternId> subs_;
  Name underscore_, zero_, succ_, chr_, snil_, scon_, nil_, con_, tuple_, u32_, f32_, wnil_, wcon_, false_, true_;
};

}  // namespace bendc::elab
