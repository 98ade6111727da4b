// Core: the dependent calculus of language.md section 4, one term table for the whole book. Sugar is gone (elaborate.h makes these
// terms), dependent types and erased parts are still here. Nodes are plain values in tables, addressed by ids, never mutated
// once their declaration is elaborated. Spans sit beside the nodes.
// Example: `def id(-A: Type, x: A) -> A: x` has type All(0,A,Kind(1), All(1,x,Var 0, Var 0)) and body Lam A. Lam x. Var 1.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "support/interner.h"
#include "support/source.h"
#include "support/table.h"

namespace bendc::core {

enum class TermKind : uint8_t {
#define BENDC_CORE(kind, payload) kind,
#include "checker/core.def"
#undef BENDC_CORE
};

enum class Quantity : uint8_t { None = 0, Lone = 1, Many = 2 };

inline constexpr uint8_t kBang = 1;      // Ref under `!`
inline constexpr uint8_t kOperator = 4;  // App written with a binary operator
inline constexpr uint8_t kOfMatched = 8; // Var that stands where a matched name is written, whose pattern binds it
inline constexpr uint8_t kParallel = 2;  // Let written as a parallel let (two or more live names)

struct TermTag; using TermId = Id<TermTag>;
struct DefTag;  using DefId = Id<DefTag>;
struct DataTag; using DataId = Id<DataTag>;
struct CtorTag; using CtorId = Id<CtorTag>;

struct Term {
  TermKind kind = TermKind::Error;
  Quantity quantity = Quantity::Lone;  // All, Lam
  uint8_t flags = 0;
  uint8_t extra = 0;                   // App: number of `~`-marked arguments
  Name name;                           // binder or scrutinee name, for messages and printing
  uint32_t a = TermId::kNone, b = TermId::kNone, c = TermId::kNone;
};

struct LetRow {
  Name name;
  Quantity quantity = Quantity::Lone;
  TermId value;                        // at the depth of the Let itself
  Span span;                           // of the name
};

// A parameter or field. `type` is a term at level = its position (parameters first, then fields).
struct Telescope {
  Name name;
  Quantity quantity = Quantity::Lone;
  TermId type;
  Span span;
};

struct Datatype {
  Name name;                           // full key, "ns:name" or "name"
  uint32_t module = 0;                 // ModuleId index
  std::vector<Telescope> params;
  uint32_t leading_quants = 0;         // consecutive Quant-typed parameters at the front (for fills)
  TermId kind;                         // at level params.size()
  std::vector<CtorId> ctors;           // in declaration order
  Span span, name_span;
  uint32_t order = 0;                  // position in the book's checking order
};

struct Ctor {
  Name name;
  DataId data;
  uint32_t index = 0;                  // position in its datatype
  std::vector<Telescope> fields;       // types at level params + position
  Span span, name_span;
};

enum class DefKind : uint8_t { Def, Law };   // Law: a claim; `body` valid once filled

struct Def {
  Name name;                           // full key
  uint32_t module = 0;
  DefKind kind = DefKind::Def;
  TermId type;                         // closed, nested All
  TermId body;                         // closed; none: open law, foreign, or broken
  uint32_t arity = 0;                  // n: parameters consumed by the case tree before it unfolds
  uint32_t templates = 0;              // x: leading `~` parameters
  bool unsafe = false;
  bool foreign = false;
  std::vector<std::string> foreign_paths;
  bool broken = false;                 // an error in it was already reported; never cascade
  std::vector<Span> param_spans;
  Span span, name_span, result_span;
  Span fill_span;                      // of the `def L(..)` that fills a law
  uint32_t order = 0;                  // position of its final event in checking order
  // An instance of a template (minted by the checker): an ordinary def without the `~` parameters, or a def that stands for one of its
  // `~` arguments. Later phases treat both as any other def.
  DefId instance_of;                   // the template
};

// What happens at each step of checking: types are declared from the start, bodies become usable in this order.
enum class EventKind : uint8_t { CheckData, CheckDef, CheckLawType };
struct Event {
  EventKind kind;
  uint32_t id;                         // DataId or DefId index
};

// Where the scrutinee of a Mat, MatLit or Efq is written; the term's own span is the pattern's (Efq: the match statement's head).
struct MatchSite {
  TermId term;
  Span scrutinee;
};

struct Builtins;

struct Book {
  Table<TermId, Term> terms;
  std::vector<Span> spans;             // parallel to terms
  ListPool<TermId> lists;
  std::vector<LetRow> let_rows;
  std::vector<std::u32string> strings;
  Table<DataId, Datatype> datatypes;
  Table<CtorId, Ctor> ctors;
  Table<DefId, Def> defs;
  std::vector<Event> events;
  std::vector<MatchSite> match_sites;        // by increasing term
  std::vector<std::string> module_keys;      // by module index: "" entry/base, "std/Scan", "lib/words"
  std::vector<bool> module_is_stdlib;        // by module index: Base or embedded module
  DefId main;                                // entry's `main`, if any
  bool entry_uses_base = false;

  TermId add(Term term, Span span) { spans.push_back(span); return terms.add(term); }
  [[nodiscard]] std::span<const TermId> list(uint32_t offset, uint32_t length) const { return lists[Slice{offset, length}]; }
  [[nodiscard]] Span span(TermId id) const { return spans[id.index]; }
  [[nodiscard]] Span scrutinee_span(TermId id) const;   // of a Mat, MatLit or Efq; the term's own span when it was not written
  // Lookup of a name's key; none when absent.
  [[nodiscard]] DefId find_def(Name key) const;
  [[nodiscard]] DataId find_data(Name key) const;
  [[nodiscard]] CtorId find_ctor(Name key) const;
  // Live calls of templates outside template text: App term -> the instance it calls. The first `templates` arguments of the App are
  // consumed by the instance. A live Ref in head position of such an App still names the template.
  std::unordered_map<TermId, DefId> instance_calls;
  // Parts of checked bodies that no evaluation reaches and that were never checked (a default past the last constructor): do not lower.
  std::unordered_set<TermId> unchecked;
  std::unordered_map<Name, DefId> def_by_name;
  std::unordered_map<Name, DataId> data_by_name;
  std::unordered_map<Name, CtorId> ctor_by_name;
};

// `ns:name` shown to the user: ':' becomes '.', "std/" is dropped.
[[nodiscard]] std::string display_name(std::string_view key);
[[nodiscard]] std::string_view kind_name(TermKind kind);
// Term as text for --dump=core and messages; `names` are the names of enclosing binders by level.
[[nodiscard]] std::string print_term(const Book& book, const Interner& interner, TermId term, std::vector<Name> scope = {});
[[nodiscard]] std::string print_book(const Book& book, const Interner& interner);

}  // namespace bendc::core
