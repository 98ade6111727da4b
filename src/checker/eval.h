// The evaluator: call-by-need weak-head evaluation of Core (language.md 4.6), used by the checker, by the lowering to find the
// run-time shape of types, and to normalise mains without a run-time form.
// Values are immutable nodes in a bump arena owned by the Evaluator; raw pointers are valid until the Evaluator dies.
// Literals stay literals; natives of Base (U32.add, Nat.sub, ..) compute on literal arguments. F32 natives compute only when
// EvalOptions::floats is set (never in conversion).
#pragma once
#include <memory>
#include <optional>
#include <span>

#include "checker/core.h"

namespace bendc {

struct Value;
struct Env;                      // persistent environment: level -> Value (thunk)

enum class ValueKind : uint8_t {
  Thunk,                         // unevaluated; never returned by whnf
  Neutral,                       // a variable, open law, stuck call or stuck match applied to arguments
  Lam, Mat, MatLit, Efq,         // functions: closures over an Env; Mat* are lambda-matches
  Kind, Quant, Qua, Meet, All, Adt, Ctr, U32, Nat, F32, Str, Eql, Rfl, Hole, Error,
  Partial,                       // a def applied to fewer arguments than its arity (or a bare def)
};

struct EvalOptions {
  bool unfold = true;            // unfold defs
  bool floats = false;
  uint64_t fuel = 0;             // steps; 0 = unlimited
  size_t memory = size_t{1} << 30;   // bytes of values
  size_t stack = size_t{6} << 20;    // bytes of C++ stack that evaluation may use below the Evaluator's construction
};

class Evaluator {
 public:
  Evaluator(const core::Book& book, const Interner& names, EvalOptions options = {});
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  // Environments. `extend` binds the next level. A term must be evaluated in an Env whose size is the term's depth.
  [[nodiscard]] const Env* empty() const;
  [[nodiscard]] const Env* extend(const Env* env, const Value* value);
  [[nodiscard]] uint32_t size(const Env* env) const;
  [[nodiscard]] const Value* lookup(const Env* env, uint32_t level) const;

  [[nodiscard]] const Value* delay(core::TermId term, const Env* env);   // a thunk, shared
  [[nodiscard]] const Value* eval(core::TermId term, const Env* env);    // = whnf(delay(..))
  [[nodiscard]] const Value* whnf(const Value* value);                   // weak-head normal form
  [[nodiscard]] const Value* force(const Value* value);                  // head normal form with calls of defs left folded (see `call`)
  [[nodiscard]] const Value* apply(const Value* fn, const Value* arg);   // whnf of the application
  [[nodiscard]] const Value* fresh(uint32_t level, Name name, const Value* type);  // a neutral variable

  // Views of a whnf value (assert on the wrong kind).
  [[nodiscard]] ValueKind kind(const Value* v) const;
  struct AllView { core::Quantity quantity; Name name; const Value* domain; };
  [[nodiscard]] AllView all(const Value* v) const;                          // domain may be a thunk
  [[nodiscard]] const Value* codomain(const Value* all, const Value* arg);          // whnf of B[arg]
  struct AdtView { core::DataId data; std::span<const Value* const> args; uint64_t removed; };  // removed: bit i = constructor index i (first 64)
  [[nodiscard]] AdtView adt(const Value* v) const;
  struct CtrView { core::CtorId ctor; std::span<const Value* const> fields; };
  [[nodiscard]] CtrView ctr(const Value* v) const;   // literals are not stepped: see step_literal
  struct CallView { core::DefId def; std::span<const Value* const> args; };
  [[nodiscard]] std::optional<CallView> call(const Value* v) const;   // a folded, stuck or partial call of a def
  [[nodiscard]] uint32_t literal(const Value* v) const;       // U32, F32 bits, Qua, string index; low 32 bits of a Nat
  [[nodiscard]] uint64_t nat(const Value* v) const;
  [[nodiscard]] const Value* step_literal(const Value* v);    // one constructor layer of a literal
  // Type of field i of a constructor, given the datatype's arguments and the earlier fields' values (whnf).
  [[nodiscard]] const Value* field_type(core::CtorId ctor, std::span<const Value* const> args, std::span<const Value* const> fields, uint32_t i);
  // Quote back to a Core term at the given depth (normal = strong normal form). Adds terms to `book`.
  [[nodiscard]] core::TermId quote(core::Book& book, const Value* v, uint32_t depth, bool normal);
  [[nodiscard]] bool out_of_fuel() const;            // fuel, memory or stack ran out: results since then are Error values
  // Frees every value made since the mark.
  struct Mark { size_t block, used; };
  [[nodiscard]] Mark mark() const;
  void reset(Mark to);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bendc
