// The lowering in progress (inside from_core only). A walk over Core directed by types: every term is visited with its type at hand, as the
// checker visits it, so that erased parts are left out and the representation of every value is known. Files:
//   from_core.cpp        entry, worklist, main            specialise.cpp   instances of defs by their erased arguments
//   from_core_term.cpp   terms, constructors              closures.cpp     lambdas, partial application, currying
//   from_core_let.cpp    lets and forks
//   from_core_match.cpp  case trees                       coerce.cpp       conversions between representations
//   from_core_call.cpp   calls, natives                   show_main.cpp    printers of value mains
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <unordered_set>

#include "codegen/from_core.h"
#include "codegen/layout.h"

namespace bendc {

struct Operand {
  flow::VarId var;
  RepId rep;                         // the representation the variable has; may know less than the type at hand
};

struct Frame;                        // one binder in scope, outermost reached through `up`
struct Scope {
  const Env* env = nullptr;          // values, for types
  const Frame* frame = nullptr;      // operands, for code; as deep as env
};
struct Frame {
  const Frame* up = nullptr;
  uint32_t level = 0;
  bool live = false;
  Operand op;                        // live
  const Value* type = nullptr;
};

struct Typed {
  Operand op;
  const Value* type = nullptr;
};

// An argument waiting for the binder or match that consumes it.
struct Pending {
  bool live = false;
  Operand op;                        // live
  const Value* value = nullptr;      // for types: its value, or a fresh variable
};
using PendingList = std::vector<Pending>;   // the next one is last

// An argument of a call: a term, or a pending value.
struct Argument {
  core::TermId term;
  Scope scope;
  std::optional<Pending> pending;
};

// Where the value of a term goes.
struct Dest {
  enum class Kind : uint8_t { Return, Jump, Value } kind = Kind::Value;
  RepId rep;                         // wanted representation
  flow::JoinId join;                 // Jump
  Operand result;                    // Value: set by the lowering
};

// A Flow function with its calling convention.
struct Callable {
  flow::FuncId func;
  std::vector<RepId> params;         // live ones, in order
  RepId result;
  core::DefId def;                   // what it is an instance of; invalid for others
  uint32_t asked_by = UINT32_MAX;    // the instance whose body called for it first
};

// The place where the next node goes.
struct Hole {
  enum class Slot : uint8_t { None, FuncBody, Next, Body, Other, Arm } slot = Slot::None;
  flow::FuncId func;
  flow::NodeId node;
  uint32_t arm = 0;
};

// A function body under construction; `outer` is the one whose variables a lambda captures.
struct Builder {
  flow::FuncId func;
  uint32_t id = 0;
  Builder* outer = nullptr;
  std::vector<std::pair<flow::VarId, flow::VarId>> captures;  // outer variable -> own parameter
  std::unordered_map<flow::VarId, flow::VarId> captured;
  Hole hole;
  uint32_t lambdas = 0;
};

class Lowerer {
 public:
  Lowerer(core::Book& book, const SourceMap& sources, Interner& names, size_t stack, const ElementKinds& boxed);
  [[nodiscard]] LowerResult run();
  // After run: element kinds of arrays that must store `any` before the result can be used; none: it is good.
  [[nodiscard]] ElementKinds arrays_to_box() const { return undecided_array_boxed_ ? boxed_elements_ : ElementKinds(); }

 private:
  // --- from_core.cpp: driving
  void lower_instance_bodies();
  void lower_main();
  [[nodiscard]] bool is_io(const Value* type, const Value** answer);
  void fail(Code code, std::string message, std::string fix = {});
  struct LimitReached {};            // ends the lowering; caught in run()
  void stop_at_limit();
  void report_limit();
  [[noreturn]] void internal(std::string_view what) const;
  [[nodiscard]] std::string name_of(Name name) const { return core::display_name(names_.text(name)); }

  // --- emission (from_core.cpp)
  [[nodiscard]] flow::FuncId new_func(std::string name, Span span);
  void set_signature(flow::FuncId func, std::span<const RepId> params, RepId result);
  void open(Builder& builder, flow::FuncId func, Builder* outer);
  void close(Builder& builder);
  [[nodiscard]] flow::VarId new_var(flow::TypeId type, std::string name);
  [[nodiscard]] flow::VarId own(flow::VarId var);            // as seen in the current body: captures outer variables
  [[nodiscard]] Slice own_list(std::span<const flow::VarId> vars);
  flow::NodeId emit(flow::Node node);
  void fill(const Hole& hole, flow::NodeId node);
  [[nodiscard]] flow::VarId let(flow::Expr expr, flow::TypeId type, std::string name = {});
  [[nodiscard]] flow::VarId expr(flow::ExprKind kind, std::span<const flow::VarId> args, flow::TypeId type, uint64_t imm = 0, uint64_t imm2 = 0, std::string name = {});
  [[nodiscard]] flow::VarId constant(uint64_t bits, flow::TypeId type);
  [[nodiscard]] flow::VarId prim(flow::Prim prim, std::span<const flow::VarId> args, flow::TypeId type, std::string name = {});
  [[nodiscard]] flow::VarId prim(flow::Prim p, std::initializer_list<flow::VarId> args, flow::TypeId type) { return prim(p, std::span(args.begin(), args.size()), type); }
  [[nodiscard]] flow::VarId call(flow::FuncId func, std::span<const flow::VarId> args, flow::TypeId type, bool bang = false);
  [[nodiscard]] uint64_t string_index(const std::u32string& text);
  void ret(flow::VarId var);
  void abort(uint64_t code);                                 // what follows is unreachable
  [[nodiscard]] Operand unreachable(RepId rep);              // abort, and a variable to go on with
  void finish(Dest& dest, Operand op);
  [[nodiscard]] flow::TypeId basic(flow::TypeKind kind);
  [[nodiscard]] flow::TypeId bool_type();
  [[nodiscard]] flow::TypeId unit_type();
  [[nodiscard]] flow::TypeId struct_type(std::vector<flow::TypeId> parts);
  [[nodiscard]] Operand unit(RepKind kind);

  // --- scopes
  [[nodiscard]] Scope empty_scope() const { return {m_.empty(), nullptr}; }
  [[nodiscard]] Scope bind_live(Scope s, Operand op, const Value* value, const Value* type);
  [[nodiscard]] Scope bind_erased(Scope s, const Value* value, const Value* type);
  [[nodiscard]] const Frame* lookup(Scope s, uint32_t level) const;

  // --- from_core_term.cpp
  void lower(core::TermId term, Scope s, const Value* goal, PendingList pending, Dest& dest);
  [[nodiscard]] Operand check(core::TermId term, Scope s, const Value* goal);
  [[nodiscard]] const Value* type_of(core::TermId term, Scope s);   // of an inferable term, without code; null when it is not one
  void lower_let(const core::Term& term, Scope& s);
  [[nodiscard]] bool lower_fork(std::span<const core::LetRow> rows, std::span<const uint32_t> live, Scope s, std::vector<Typed>& out);
  [[nodiscard]] Operand literal(core::TermId term, const Value* goal);
  [[nodiscard]] Operand construct(core::TermId term, Scope s, const Value* goal);
  [[nodiscard]] Operand construct_apart(core::TermId term, Scope s, const Value* goal);
  [[nodiscard]] Operand meet(const core::Term& term, Scope s);
  [[nodiscard]] bool occurs(core::TermId term, uint32_t level) const;

  // --- from_core_match.cpp
  void match(core::TermId term, Scope s, const Value* goal, PendingList pending, Dest& dest);
  void match_data(core::TermId term, Scope s, const Value* goal, const AdtValue* adt, Operand op, const Pending& whole, const PendingList& pending, Dest& dest);
  void match_nat(core::TermId term, Scope s, const Value* goal, const AdtValue* adt, Operand op, const Pending& whole, const PendingList& pending, Dest& dest);
  void match_bits(core::TermId term, Scope s, const Value* goal, const AdtValue* adt, Operand op, const Pending& whole, const PendingList& pending, Dest& dest);
  void match_array(core::TermId term, Scope s, const Value* goal, const AdtValue* adt, Operand op, const Pending& whole, const PendingList& pending, Dest& dest);
  void arm(core::CtorId ctor, core::TermId hit, Scope s, const Value* goal, const AdtValue* adt, std::span<const Operand> fields, const PendingList& pending, Dest& dest);
  void miss(core::TermId term, Scope s, const Value* goal, const AdtValue* adt, const Pending& whole, const PendingList& pending, Dest& dest);

  // --- from_core_call.cpp
  void spine(core::TermId term, Scope s, PendingList pending, Dest* dest, Typed* out);
  [[nodiscard]] Typed infer(core::TermId term, Scope s);
  void call_def(core::DefId def, bool bang, std::vector<Argument>& args, Dest* dest, Typed* out);
  void apply_closure(Typed fn, std::span<Argument> args, Dest* dest, Typed* out);
  void deliver(Typed value, Dest* dest, Typed* out);
  void call_or_tail(const Callable& callee, std::vector<Operand>& args, const Value* type, bool bang, bool last, Dest* dest, Typed* out);
  [[nodiscard]] Pending argument(const Argument& arg, const Value* domain, bool live);
  [[nodiscard]] const Value* argument_value(const Argument& arg);
  [[nodiscard]] Operand run_prim(flow::Prim prim, std::span<const Operand> args, RepId result);
  void store_element(flow::Prim prim, std::vector<Operand>& args, RepId result);

  // --- specialise.cpp
  [[nodiscard]] uint32_t arity_of(core::DefId def);          // parameters that a call takes at once
  [[nodiscard]] uint32_t instance(core::DefId def, std::vector<StaticArg> statics);   // index into callables_
  [[nodiscard]] std::optional<flow::Prim> prim_of(core::DefId def) const;

  // --- from_core_foreign.cpp
  void lower_foreign_body(core::DefId def, const Callable& callable, std::span<const Operand> params);
  void name_effect(core::DefId def, flow::Effect& effect);

  // --- closures.cpp
  [[nodiscard]] Operand lambda(core::TermId term, Scope s, const Value* goal);
  [[nodiscard]] Operand partial(const Callable& callable, std::span<const Operand> args);
  [[nodiscard]] flow::FuncId curried(const Callable& callable, uint32_t captured);
  [[nodiscard]] RepId curried_rep(const Callable& callable, uint32_t from);
  [[nodiscard]] flow::FuncId apply_function(flow::TypeId fn_type);

  // --- coerce.cpp
  [[nodiscard]] Operand coerce(Operand op, RepId to);
  [[nodiscard]] flow::FuncId conversion(RepId from, RepId to);
  void box_array(RepId array);
  [[nodiscard]] flow::FuncId function_conversion(RepId from, RepId to);
  [[nodiscard]] Operand project(Operand op, uint32_t ctor, uint32_t field, std::string name = {});
  [[nodiscard]] Operand build(RepId rep, uint32_t ctor, std::span<const Operand> fields);
  [[nodiscard]] Operand word_of_bits(flow::VarId bits, RepId word);     // U32 -> Word(32n)
  [[nodiscard]] flow::VarId bits_of_word(Operand word);                 // and back
  [[nodiscard]] std::optional<Operand> unchanged(RepId rep, uint32_t ctor, std::span<const Operand> fields) const;

  // --- show_main.cpp
  [[nodiscard]] bool showable(RepId rep);
  [[nodiscard]] flow::FuncId show_function(RepId rep);
  void show(Operand op);
  void show_text(std::string_view text);
  void show_list(Operand op);
  void show_data(Operand op);
  void show_fields(Operand op, uint32_t ctor);
  void show_array(Operand op);

  struct Work {
    core::DefId def;
    uint32_t callable;
    std::vector<const Value*> statics;    // by position; null for live parameters
  };

  core::Book& book_;
  const SourceMap& sources_;
  Interner& names_;
  Machine m_;
  flow::Module out_;
  RepTable reps_;
  Diagnostics diags_;
  ElementKinds boxed_elements_;                // of arrays that pass through `any` and store their elements flat
  bool undecided_array_boxed_ = false;         // an array of unknown element type does too
  bool needs_normalise_ = false;

  Builder* b_ = nullptr;
  std::vector<Builder*> saved_;
  uint32_t builders_ = 0;
  std::vector<uint32_t> var_owner_;       // by variable: builder id
  std::vector<uint32_t> var_uses_;
  Span span_;
  std::deque<Frame> frames_;
  struct Projection { flow::VarId subject; RepId rep; uint32_t ctor = 0, field = 0; };
  std::unordered_map<flow::VarId, Projection> projections_;   // field variables -> where they come from

  std::deque<Callable> callables_;
  std::unordered_map<std::string, uint32_t> instances_;
  std::unordered_map<core::DefId, uint32_t> instance_counts_;
  uint32_t lowering_ = UINT32_MAX;   // the instance whose body is being lowered
  bool grows(core::DefId) const;     // the instances of this def call for ever new ones
  std::unordered_map<core::DefId, uint32_t> arities_;
  std::unordered_map<std::string, uint32_t> name_counts_;
  std::unordered_set<std::string> func_names_;
  std::deque<Work> work_;
  std::unordered_map<core::DefId, flow::Prim> prims_;
  std::unordered_map<core::DefId, flow::EffectId> effects_;
  std::unordered_map<std::string, size_t> custom_files_;     // C files of custom effects, numbered
  bool refused_effect_ = false;
  std::map<std::pair<uint32_t, uint32_t>, flow::FuncId> curried_;        // function, captured
  std::map<std::pair<uint32_t, uint32_t>, flow::FuncId> conversions_;
  std::map<uint32_t, flow::FuncId> apply_functions_, shows_;
  flow::FuncId bit_function_;
  std::unordered_map<std::u32string, uint64_t> strings_;
};

}  // namespace bendc
