// Checker: the two judgements of language.md section 5 over one declaration at a time, with usage counting, descent and templates.
// infer(term) -> type, check(term, type); both in an environment whose size is the number of binders in scope, live or dead.
// Errors go to the diagnostics; what was reported has the type Error, which fits everywhere. Split by concept: infer.cpp, check.cpp
// (lambdas, lets, constructors), check_match.cpp, equality.cpp, calls.cpp (names and self-calls), declarations.cpp, templates.cpp,
// messages.cpp.
#pragma once
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "checker/book.h"
#include "checker/convert.h"
#include "checker/machine.h"
#include "checker/quantity.h"
#include "checker/termination.h"

namespace bendc {

// One binder in scope.
struct Binding {
  Name name;
  core::Quantity quantity = core::Quantity::Lone;
  bool constant = false;             // a `~` parameter inside its template: mentions cost nothing
  bool reported = false;             // C6 was reported for it
  const Value* type = nullptr;
  Span span;
};

// How the case tree came to the point being checked: the left-hand side of the def, latest event first.
struct Path {
  enum class Kind : uint8_t { Bind, Open, Literal } kind = Kind::Bind;
  const Path* before = nullptr;
  const Value* value = nullptr;      // Bind: the variable; Literal: the literal
  core::CtorId ctor;                 // Open: its fields follow
  core::TermId term;                 // for spans
};

// The applications around a call whose head it is: `f(a)(b)` from inside out.
struct Spine {
  core::TermId call;
  const Spine* outer = nullptr;
};

// The declaration being checked.
struct Frame {
  core::DefId def;                   // what calls of it are self-calls; none for a datatype
  core::DefId instance;              // the instance being checked, if it is one
  bool unsafe = false;
  bool generic = false;              // template text: `~` parameters are opaque, template calls stay generic
  const Path* path = nullptr;
  uint32_t columns = 0;              // parameters that count for descent
  uint32_t constants = 0;            // leading parameters that are opaque constants (generic)
  uint32_t level = 0;                // nesting of instances
};

class Checker {
 public:
  Checker(core::Book& book, const SourceMap& sources, Interner& names, const CheckOptions& options, Diagnostics& diagnostics);

  // declarations.cpp
  void check_data(core::DataId id);
  void check_law_type(core::DefId id);
  void check_def(core::DefId id);

  struct Todo {
    Span span;
    core::DefId def;
  };
  std::vector<Todo> todos;

 private:
  using TermId = core::TermId;
  using Quantity = core::Quantity;

  // infer.cpp
  const Value* infer(TermId id, const Env* env, bool live);
  const Value* infer_app(TermId id, const Env* env, bool live, const Spine* outer = nullptr);
  bool explains_all(core::DefId called, uint32_t argument, Diagnostic& d) const;
  uint32_t written_params(TermId type) const;
  bool ends_in_data(TermId type) const;
  void suggest_arguments(TermId call, const std::vector<uint32_t>& misplaced, size_t first);
  void wrong_count(core::DefId def, uint32_t given, uint32_t params, Span at);
  const Value* infer_family(TermId id, const Env* env, bool live);
  const Value* infer_variable(TermId id, bool live);
  // The type's kind quantity; Error when it is no type (reported).
  const Value* check_type(TermId id, const Env* env);
  bool fits_quantity(const Value* kind_quantity, Quantity q);      // Kind(g) <= Kind(q), as `+` binders need
  const Value* not_inferable(TermId id);

  // check.cpp
  void check(TermId id, const Env* env, const Value* goal, bool live, bool spine = false);
  void check_inferred(TermId id, const Env* env, const Value* goal, bool live);
  bool open_lambda(TermId id, const Env*& env, const Value*& goal, bool live, bool spine);
  void open_let(TermId id, const Env*& env, bool live);
  bool check_fields(TermId id, const Env* env, const Value*& goal, bool& live, TermId& last);
  void check_literal(TermId id, const Value* goal);
  void check_hole(TermId id, const Value* goal, const Env* env);

  // check_match.cpp
  void check_match(TermId id, const Env* env, const Value* goal, bool live, bool spine);
  void check_arm(TermId arm, const Env* env, const Value* goal, bool live, bool spine, Path event);
  bool literal_belongs(TermId literal, const AdtValue* adt) const;
  bool unreachable_here();
  void missing_cases(TermId id, const AdtValue* adt, bool spine, bool literals, bool bare);   // bare: no case at all
  void report_missing();
  void mark_unchecked(TermId id);

  // equality.cpp
  void check_reflexivity(TermId id, const Value* goal);
  bool open_rewrite(TermId id, const Env* env, const Value*& goal, bool live);

  // calls.cpp
  // A name in head position with `args` arguments (the App `call`, none when bare). False: reported, its type is Error.
  bool check_name(TermId ref, const Spine* spine, const Env* env, bool live);
  void check_descent(TermId ref, const Spine* spine, const Env* env);
  std::vector<const Value*> left_hand_side(size_t* written = nullptr);   // written: how many patterns the path has given, past the parameters too
  std::string pattern_text(const Value* pattern);
  bool pattern_holds(const Value* pattern, core::CtorId outer, core::CtorId first);   // somewhere `outer`, whose first field is a `first`
  void suggest_order();
  std::string signature_text(const std::vector<size_t>& order);

  // templates.cpp
  // The instance that a live call of a template runs; false: reported.
  bool instantiate(TermId ref, TermId call);
  core::DefId mint(core::DefId tmpl, TermId call, TermId ref, std::string key);
  TermId check_template_argument(core::DefId tmpl, core::DefId instance, TermId arg, TermId type, uint32_t index);
  // Copies a term: levels below `outer` are replaced (by closed terms, or by a marked local), the others move by shift - outer.
  struct Copy {
    uint32_t outer = 0;
    uint32_t shift = 0;
    const std::vector<TermId>* replace = nullptr;
  };
  TermId copy(TermId id, const Copy& how, uint32_t place);
  bool key_of(TermId id, uint32_t outer, std::string& out);

  // messages.cpp
  [[nodiscard]] std::string show(const Value* v);
  [[nodiscard]] std::string show_normal(const Value* v);
  [[nodiscard]] std::string name_text(Name name) const;
  [[nodiscard]] std::string def_text(core::DefId def) const;
  Diagnostic& report(Code code, Span span, std::string message);
  void keep_few_alike();
  void mismatch(TermId at, const Value* expected, const Value* observed);
  [[nodiscard]] static std::string count_text(size_t n, std::string_view what);   // "1 argument", "2 arguments"
  // Says so when the term is a call with fewer arguments than its def takes.
  void suggest(Diagnostic& d, const Value* expected, const Value* observed);
  [[nodiscard]] std::string copyable(const Value* type);
  void note_missing_arguments(Diagnostic& d, TermId at, const Value* type);
  void quantity_exceeded(uint32_t level, TermId at);
  void not_data(Span span, Name name, const Value* type, std::string_view what);
  // Turns a halted machine into one diagnostic for the declaration; true when it was halted.
  bool halted(TermId at);

  // Binders.
  [[nodiscard]] uint32_t depth() const { return static_cast<uint32_t>(bindings_.size()); }
  const Value* bind(Name name, Quantity quantity, const Value* type, Span span, bool constant = false);
  void bind_value(Name name, Quantity quantity, const Value* type, Span span);
  void unbind(uint32_t to);
  [[nodiscard]] bool is_io(const Value* type);
  void warn_of_unused_actions(uint32_t from);

  [[nodiscard]] const core::Term& term(TermId id) const { return book_.terms[id]; }
  [[nodiscard]] TermId item(uint32_t offset, uint32_t i) const { return book_.list(offset + i, 1)[0]; }
  [[nodiscard]] Span span(TermId id) const { return id.valid() ? book_.span(id) : Span{}; }
  [[nodiscard]] const Value* error() const { return m_.error(); }
  [[nodiscard]] static bool is_error(const Value* v) { return v->tag == Tag::Error; }
  void check_signature(core::DefId id);
  void start_declaration(core::DefId def);
  void finish_declaration(Arena::Mark mark);
  core::DefId add_def(core::Def def);
  [[nodiscard]] bool fits(const Value* a, const Value* b, TermId at);
  [[nodiscard]] bool equal(const Value* a, const Value* b, TermId at);

  core::Book& book_;
  const SourceMap& sources_;
  Interner& names_;
  const CheckOptions& options_;
  Diagnostics& diagnostics_;
  Machine m_;
  Converter conv_;
  Descent descent_;
  Usage usage_;
  std::vector<Binding> bindings_;
  std::vector<Usage::Saved> saved_;        // uses of finished arms waiting for their siblings
  Frame frame_;
  enum class State : uint8_t { Unchecked, Checking, Done, Broken };
  std::vector<State> state_;               // by def
  std::vector<bool> type_checked_, type_broken_;   // by def
  bool shown_error_ = false;               // a type shown since it was cleared has a part that is in error
  uint32_t reported_ = 0;                  // errors in the current declaration
  size_t first_report_ = 0;                // of the current declaration
  bool halt_reported_ = false;
  bool too_many_instances_ = false;   // reported
  std::unordered_map<std::string, core::DefId> instances_;   // by template and argument text
  std::vector<core::DefId> minting_;       // instances being checked, outermost first
  // Live self-calls of the current def: how each argument compares. Failing ones are reported when all are known.
  struct SelfCall {
    std::vector<Order> orders;
    bool descends = false;
    Diagnostic diagnostic;
  };
  std::vector<SelfCall> self_calls_;
  // Cases that matches of the current def leave out, by match.
  struct Missing {
    Span match;
    std::vector<std::string> cases;
    uint32_t more = 0;
    bool literals = false, bare = false;
    bool chars = false, strings = false;   // it is literals of these that do not cover all
    bool lambda = false;   // a lambda-match: it has arms and belongs to no row of the def
    core::DataId data;
  };
  std::vector<Missing> missing_;
  // Lets of type IO that are in scope: an action that nothing uses does nothing.
  struct Action {
    uint32_t level;
    uint32_t reported;   // errors until then; after more of them a use may have been overlooked
  };
  std::vector<Action> actions_;
  Name ellipsis_, wildcard_;
  core::DefId base_io_;
};

}  // namespace bendc
