// The public face of the machine.
#include "checker/eval.h"

#include <cassert>

#include "checker/machine.h"

namespace bendc {

using core::CtorId;
using core::DataId;
using core::TermId;

struct Evaluator::Impl {
  Impl(const core::Book& book, const Interner& names, const MachineOptions& options, bool unfolds) : machine(book, names, options), unfold(unfolds) {}
  Machine machine;
  bool unfold;
};

Evaluator::Evaluator(const core::Book& book, const Interner& names, EvalOptions options)
    : impl_(std::make_unique<Impl>(
          book, names, MachineOptions{.floats = options.floats, .all_unfold = options.unfold, .fuel = options.fuel, .memory = options.memory, .stack = options.stack},
          options.unfold)) {}
Evaluator::~Evaluator() = default;

const Env* Evaluator::empty() const { return impl_->machine.empty(); }
const Env* Evaluator::extend(const Env* env, const Value* value) { return impl_->machine.extend(env, value); }
uint32_t Evaluator::size(const Env* env) const { return env->length; }
const Value* Evaluator::lookup(const Env* env, uint32_t level) const { return Machine::lookup(env, level); }
const Value* Evaluator::delay(TermId term, const Env* env) { return impl_->machine.delay(term, env); }
const Value* Evaluator::eval(TermId term, const Env* env) { return whnf(impl_->machine.delay(term, env)); }
const Value* Evaluator::force(const Value* value) { return impl_->machine.force(value); }
const Value* Evaluator::whnf(const Value* value) { return impl_->unfold ? impl_->machine.whnf(value) : impl_->machine.force(value); }
const Value* Evaluator::apply(const Value* fn, const Value* arg) { return whnf(impl_->machine.apply(fn, arg)); }
const Value* Evaluator::fresh(uint32_t level, Name name, const Value* type) { return impl_->machine.var(level, name, type); }

ValueKind Evaluator::kind(const Value* v) const {
  switch (v->tag) {
    case Tag::Thunk: case Tag::Forward: return ValueKind::Thunk;
    case Tag::Var: case Tag::App: case Tag::StuckMatch: case Tag::StuckRewrite: return ValueKind::Neutral;
    case Tag::Call: return impl_->machine.is_partial(as<CallValue>(v)) ? ValueKind::Partial : ValueKind::Neutral;
    case Tag::Lam: return ValueKind::Lam;
    case Tag::Mat: return ValueKind::Mat;
    case Tag::MatLit: return ValueKind::MatLit;
    case Tag::Efq: return ValueKind::Efq;
    case Tag::Kind: return ValueKind::Kind;
    case Tag::Quant: return ValueKind::Quant;
    case Tag::Qua: return ValueKind::Qua;
    case Tag::Meet: return ValueKind::Meet;
    case Tag::All: return ValueKind::All;
    case Tag::Adt: return ValueKind::Adt;
    case Tag::Ctr: return ValueKind::Ctr;
    case Tag::U32: return ValueKind::U32;
    case Tag::Nat: return ValueKind::Nat;
    case Tag::F32: return ValueKind::F32;
    case Tag::Str: return ValueKind::Str;
    case Tag::Eql: return ValueKind::Eql;
    case Tag::Rfl: return ValueKind::Rfl;
    case Tag::Hole: return ValueKind::Hole;
    case Tag::Error: return ValueKind::Error;
  }
  return ValueKind::Error;
}

Evaluator::AllView Evaluator::all(const Value* v) const {
  assert(v->tag == Tag::All);
  return {impl_->machine.binder_quantity(v), impl_->machine.binder_name(v), impl_->machine.domain(v)};
}
const Value* Evaluator::codomain(const Value* all, const Value* arg) { return whnf(impl_->machine.codomain(all, arg)); }

Evaluator::AdtView Evaluator::adt(const Value* v) const {
  assert(v->tag == Tag::Adt);
  const AdtValue* a = as<AdtValue>(v);
  return {DataId(a->a), {a->args, a->count}, a->removed.first_word()};
}
Evaluator::CtrView Evaluator::ctr(const Value* v) const {
  assert(v->tag == Tag::Ctr);
  return {CtorId(v->a), {as<CtrValue>(v)->fields, as<CtrValue>(v)->count}};
}
std::optional<Evaluator::CallView> Evaluator::call(const Value* v) const {
  if (v->tag != Tag::Call) return std::nullopt;
  return CallView{core::DefId(v->a), {as<CallValue>(v)->args, as<CallValue>(v)->count}};
}
uint32_t Evaluator::literal(const Value* v) const {
  return v->tag == Tag::Str ? v->a : static_cast<uint32_t>(as<NumberValue>(v)->number);
}
uint64_t Evaluator::nat(const Value* v) const {
  assert(v->tag == Tag::Nat);
  return as<NumberValue>(v)->number;
}
const Value* Evaluator::step_literal(const Value* v) { return impl_->machine.step(v); }

const Value* Evaluator::field_type(CtorId ctor, std::span<const Value* const> args, std::span<const Value* const> fields, uint32_t i) {
  Machine& m = impl_->machine;
  const Env* env = m.empty();
  for (const Value* a : args) env = m.extend(env, a);
  for (uint32_t k = 0; k < i; ++k) env = m.extend(env, fields[k]);
  return whnf(m.delay(m.book().ctors[ctor].fields[i].type, env));
}

TermId Evaluator::quote(core::Book& book, const Value* v, uint32_t depth, bool normal) {
  return impl_->machine.quote(book, v, depth, normal, 0, Name{});
}
bool Evaluator::out_of_fuel() const { return impl_->machine.halt() != Halt::None; }

Evaluator::Mark Evaluator::mark() const {
  const Arena::Mark m = impl_->machine.arena().mark();
  return {m.block, m.used};
}
void Evaluator::reset(Mark to) { impl_->machine.reset({to.block, to.used}); }

}  // namespace bendc
