// Values: the nodes that eval.h hands out, as the checker's own files see them. A value is a tagged node in a bump arena; a thunk is
// overwritten by a forward to its result, nothing else ever changes. A call of a def stays *folded* (CallValue) with its unfolding
// beside it, so that conversion can compare calls before it computes them and messages show what the user wrote.
#pragma once
#include <cstdint>

#include "checker/core.h"
#include "checker/index_set.h"

namespace bendc {

struct Value;

// Persistent environment: a skew-binary random-access list (Myers 1983). Extending is one node, lookup is logarithmic.
struct Env {
  const Value* value = nullptr;
  const Env* parent = nullptr;
  const Env* jump = nullptr;
  uint32_t length = 0;
};

enum class Tag : uint8_t {
  Thunk,          // term in env, not evaluated
  Forward,        // evaluated thunk
  Var, App,       // neutral: variable; neutral head applied
  StuckMatch,     // a lambda-match applied to a neutral
  StuckRewrite,   // a rewrite whose evidence is neutral
  Call,           // a def applied to arguments, folded
  Lam, Mat, MatLit, Efq,
  Kind, Quant, Qua, Meet, All, Adt, Ctr, U32, Nat, F32, Str, Eql, Rfl, Hole, Error,
};

struct Value {
  mutable Tag tag = Tag::Error;
  core::Quantity quantity = core::Quantity::Lone;
  mutable uint8_t flags = 0;
  uint8_t spare = 0;
  mutable uint32_t a = 0;  // term, level, def, constructor, count: by tag
};

struct ThunkValue : Value {        // Thunk: a = term. Forward: target
  mutable const void* link = nullptr;
  [[nodiscard]] const Env* env() const { return static_cast<const Env*>(link); }
  [[nodiscard]] const Value* target() const { return static_cast<const Value*>(link); }
};
// A thunk (flags: kLayer) for the constructor that the arms of nested matches stand in: from the match `a` of the chain inwards.
inline constexpr uint8_t kLayer = 1;
struct LayerValue : ThunkValue {   // link = the chain: an Env of the TelescopeValues on the way, each at its last field, outermost first
  const Value* last = nullptr;     // the last field of the innermost
};
struct ClosureValue : Value {      // Lam, Mat, MatLit, Efq: a = term
  const Env* env = nullptr;
};
struct VarValue : Value {          // a = level
  Name name;
  const Value* type = nullptr;
};
struct AppValue : Value {          // a = count
  const Value* head = nullptr;     // Var, StuckMatch, StuckRewrite, Hole
  const Value** args = nullptr;
};
struct StuckMatchValue : Value {
  const ClosureValue* fn = nullptr;
  const Value* scrutinee = nullptr;  // whnf
};
struct StuckRewriteValue : Value {   // a = term (Rwt)
  const Env* env = nullptr;
  const Value* evidence = nullptr;   // whnf
};
inline constexpr uint8_t kStuckCall = 1;     // flags: tried and stuck
inline constexpr uint8_t kUnfolding = 2;     // flags: its unfolding is being computed
struct CallValue : Value {           // a = def
  uint32_t count = 0;
  mutable const Value* unfolded = nullptr;
  const CallValue* base = nullptr;   // over-application: the saturated call it extends
  const Value** args = nullptr;
};
struct KindValue : Value {
  const Value* of = nullptr;
};
struct PairValue : Value {           // Meet
  const Value* left = nullptr;
  const Value* right = nullptr;
};
struct AllValue : Value {            // flags 0; a = term (All)
  const Env* env = nullptr;
  const Value* domain = nullptr;     // replaces the term's own domain when set (a residual)
};
inline constexpr uint8_t kTelescope = 1;  // flags of an All: a TelescopeValue
// The type of a match arm: a function of the fields of a constructor, from field `index` on, into motive[s := K{fields}].
struct TelescopeValue : Value {      // a = constructor; quantity = the scrutinee's
  uint32_t index = 0;
  const Env* env = nullptr;          // datatype's arguments, then the fields so far
  const Value* motive = nullptr;     // the All that the match is checked against; past the matches in `outer`, the one they stand in
  const Env* outer = nullptr;        // the matches around this one that its scrutinee is the last field of, as in LayerValue
  const Value* domain = nullptr;     // replaces the type of field `index` when set (a residual)
};
struct AdtValue : Value {            // a = datatype
  uint32_t count = 0;                // arguments
  IndexSet removed;                  // constructor indices that a match has taken
  const Value** args = nullptr;
};
struct CtrValue : Value {            // a = constructor
  uint32_t count = 0;
  const Value** fields = nullptr;
};
struct NumberValue : Value {         // U32, F32, Qua: number. Nat: number (64 bits). Str: a = string, number = offset
  uint64_t number = 0;
};
struct EqlValue : Value {
  const Value* left = nullptr;
  const Value* right = nullptr;
  const Value* type = nullptr;
};
struct HoleValue : Value {
  Name name;
};

template <class T> [[nodiscard]] inline const T* as(const Value* v) { return static_cast<const T*>(v); }

}  // namespace bendc
