// The machine behind eval.h: call-by-need weak-head evaluation over value.h, with direct access for the checker and the converter.
// Two strengths of head normal form: `force` leaves a call of a def folded, `whnf` unfolds it as far as it goes.
// Running out of steps, memory or stack sets a sticky flag and yields Error values, which fit everywhere: the caller reports once.
#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

#include "checker/value.h"
#include "support/arena.h"

namespace bendc {

enum class Native : uint8_t;

enum class Halt : uint8_t { None, Fuel, Memory, Stack, NatOverflow };

struct MachineOptions {
  bool floats = false;                    // compute F32 natives on literals
  bool all_unfold = true;                 // every def with a body unfolds; else only those marked with allow()
  uint64_t fuel = 0;                      // steps between two refills; 0 = unlimited
  size_t memory = size_t{1} << 29;        // bytes of values
  size_t stack = size_t{6} << 20;         // bytes of C++ stack below the construction of the machine
};

// Constructors and datatypes of Base (or of the file itself) that literals stand for; none when not declared.
struct KnownNames {
  core::CtorId zero, succ, snil, scon, chr, u32, f32, wnil, wcon, false_, true_, lt, eq, gt, tuple, none, some;
  core::DataId nat, u32_type, f32_type, string, io;   // Base's own
};

class Machine {
 public:
  Machine(const Machine&) = delete;   // the empty environment points to itself
  Machine(const core::Book& book, const Interner& names, MachineOptions options);

  // Environments.
  [[nodiscard]] const Env* empty() const { return &empty_; }
  [[nodiscard]] const Env* extend(const Env* env, const Value* value) {
    const Env* jump = env;
    if (env->length != 0) {
      const Env* far = env->jump;
      if (env->length - far->length == far->length - far->jump->length) jump = far->jump;
    }
    Env* node = arena_.make<Env>();
    *node = {value, env, jump, env->length + 1};
    return node;
  }
  [[nodiscard]] static const Value* lookup(const Env* env, uint32_t level) {
    if (level >= env->length) return nullptr;
    const uint32_t want = level + 1;   // the node whose length is level + 1 binds it
    while (env->length != want) env = env->jump->length >= want ? env->jump : env->parent;
    return env->value;
  }

  // Evaluation.
  [[nodiscard]] const Value* delay(core::TermId term, const Env* env);
  [[nodiscard]] const Value* eval(core::TermId term, const Env* env);        // head normal, calls folded
  [[nodiscard]] const Value* force(const Value* v) {                          // head normal, calls folded
    if (v->tag > Tag::Forward) return v;
    return force_thunk(v);
  }
  [[nodiscard]] const Value* whnf(const Value* v) {                           // head normal, calls unfolded
    v = force(v);
    return v->tag == Tag::Call ? unfold_fully(as<CallValue>(v)) : v;
  }
  [[nodiscard]] const Value* apply(const Value* fn, const Value* const* args, uint32_t count);  // calls folded
  [[nodiscard]] const Value* apply(const Value* fn, const Value* arg) { return apply(fn, &arg, 1); }
  // The unfolding of a folded call by one step; null when it is stuck.
  [[nodiscard]] const Value* unfold(const CallValue* call);
  [[nodiscard]] bool is_partial(const CallValue* call) const;                 // has a body but too few arguments

  // Function types.
  [[nodiscard]] const Value* domain(const Value* all);
  [[nodiscard]] const Value* codomain(const Value* all, const Value* arg);    // may be a thunk
  [[nodiscard]] core::Quantity binder_quantity(const Value* all) const;
  [[nodiscard]] Name binder_name(const Value* all) const;
  // The type of a match arm of constructor `ctor` against `motive`, whose domain is `adt`; with no field left, the result itself.
  [[nodiscard]] const Value* arm_type(core::CtorId ctor, const AdtValue* adt, const Value* motive);
  [[nodiscard]] const Value* without(const AdtValue* adt, core::CtorId ctor); // residual type
  [[nodiscard]] const Value* whole(const AdtValue* adt);                            // with all its constructors again
  [[nodiscard]] static bool is_removed(const AdtValue* adt, uint32_t index) { return adt->removed.has(index); }
  [[nodiscard]] const Value* with_domain(const Value* all, const Value* domain);
  [[nodiscard]] const Env* env_of(const AdtValue* adt);                       // its arguments as an environment

  // Literals.
  [[nodiscard]] const Value* step(const Value* literal);                      // one constructor layer; null when not a literal
  [[nodiscard]] uint32_t string_length(const NumberValue* text) const;
  [[nodiscard]] char32_t string_at(const NumberValue* text, uint32_t i) const;

  // Making values.
  [[nodiscard]] const Value* var(uint32_t level, Name name, const Value* type);
  [[nodiscard]] const Value* ctor(core::CtorId id, std::initializer_list<const Value*> fields);
  [[nodiscard]] const Value* number(Tag tag, uint64_t n);
  [[nodiscard]] const Value* adt_constant(core::DataId id);                   // a datatype without parameters
  [[nodiscard]] const Value* call_constant(core::DefId def);
  [[nodiscard]] const Value* all_of_partial(const CallValue* call);           // the type of a partial call
  [[nodiscard]] const Value* all_of_def(core::DefId def);                     // its type, evaluated
  [[nodiscard]] const Value* kind_of(const Value* quantity);
  [[nodiscard]] const Value* eql(const Value* left, const Value* right, const Value* type);
  [[nodiscard]] const Value* qua(core::Quantity q) const { return &qua_[static_cast<int>(q)]; }
  [[nodiscard]] const Value* type() const { return &kind_[1]; }
  [[nodiscard]] const Value* data() const { return &kind_[2]; }
  [[nodiscard]] const Value* quant() const { return &quant_; }
  [[nodiscard]] const Value* rfl() const { return &rfl_; }
  [[nodiscard]] const Value* error() const { return &error_; }

  // Quote back at `depth`; `normal` unfolds and goes under binders. After `limit` nodes the rest becomes the hole `...` (0: no limit).
  [[nodiscard]] core::TermId quote(core::Book& book, const Value* v, uint32_t depth, bool normal, uint32_t limit, Name ellipsis);

  // State.
  void allow(core::DefId def);                                                // its body may be unfolded from now on
  void poison(core::DefId def);                                               // its body is wrong: saturated calls are Error
  [[nodiscard]] bool unfoldable(core::DefId def) const;
  [[nodiscard]] const KnownNames& known() const { return known_; }
  [[nodiscard]] const core::Book& book() const { return book_; }
  [[nodiscard]] Arena& arena() { return arena_; }
  void reset(Arena::Mark to) { arena_.reset(to); ++constants_epoch_; }        // forgets all values made since
  [[nodiscard]] Halt halt() const { return halt_; }
  void stop(Halt reason) { if (halt_ == Halt::None) halt_ = reason; }
  void refill() { fuel_left_ = options_.fuel; halt_ = Halt::None; }
  [[nodiscard]] bool tick() {                                                 // false: out of fuel, memory or stack
    if (options_.fuel != 0 && fuel_left_-- == 0) { fuel_left_ = 0; stop(Halt::Fuel); }
    return halt_ == Halt::None;
  }
  [[nodiscard]] bool deep() {                                                 // true: the C++ stack is nearly used up
    const char here = 0;
    if (stack_base_ - &here < static_cast<ptrdiff_t>(options_.stack)) return halt_ != Halt::None;   // may be above its base: negative
    stop(Halt::Stack);
    return true;
  }
  [[nodiscard]] bool floats() const { return options_.floats; }
  [[nodiscard]] Native native(core::DefId def) const { return def.index < natives_.size() ? natives_[def.index] : Native{}; }

 private:
  friend class Quoter;
  const Value* force_thunk(const Value* v);
  const Value* unfold_fully(const CallValue* call);
  const Value* run_tree(const CallValue* call);
  const Value* match(const ClosureValue* fn, const Value* scrutinee, const Value* const* rest, uint32_t rest_count);
  const Value* match_literal(core::TermId literal, const Value* scrutinee, bool& hit);
  const Value* constant(core::DefId def);
  const Value* call(core::DefId def, const Value** args, uint32_t count);
  const Value* extend_call(const CallValue* call, const Value* const* args, uint32_t count);
  const Value* neutral(const Value* head, const Value* const* args, uint32_t count);
  const Value* meet(const Value* left, const Value* right);
  const Value* word(uint32_t bits);
  const Value* layer(const Env* chain, uint32_t level, const Value* last);
  const Value* build_layer(const LayerValue* v);
  const Value** delay_list(uint32_t offset, uint32_t count, const Env* env);
  void check_memory();

  const core::Book& book_;
  MachineOptions options_;
  Arena arena_;
  Env empty_;
  NumberValue qua_[3];
  KindValue kind_[3];
  Value quant_, rfl_, error_;
  KnownNames known_;
  std::vector<AdtValue> adt_constants_;       // by datatype
  std::vector<Native> natives_;               // by def
  enum class Body : uint8_t { Opaque, Allowed, Poisoned };
  std::vector<Body> bodies_;                  // by def
  struct Constant { const Value* value = nullptr; uint32_t epoch = 0; };
  std::vector<Constant> constants_;           // by def; valid while the epoch is the current one
  uint32_t constants_epoch_ = 1;
  uint64_t fuel_left_ = 0;
  const char* stack_base_;
  Halt halt_ = Halt::None;
  uint32_t memory_ticks_ = 0;
};

}  // namespace bendc
