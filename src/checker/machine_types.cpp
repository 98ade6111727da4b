// Function types as the checker sees them (including the types of match arms and residual domains) and literals as constructors.
#include "checker/machine.h"

namespace bendc {

using core::CtorId;
using core::DataId;
using core::Quantity;
using core::TermId;

const Env* Machine::env_of(const AdtValue* adt) {
  const Env* env = &empty_;
  for (uint32_t i = 0; i < adt->count; ++i) env = extend(env, adt->args[i]);
  return env;
}

Quantity Machine::binder_quantity(const Value* all) const {
  if (all->flags != kTelescope) return all->quantity;
  const Quantity field = book_.ctors[CtorId(all->a)].fields[as<TelescopeValue>(all)->index].quantity;
  switch (field) {
    case Quantity::None: return Quantity::None;
    case Quantity::Lone: return all->quantity;
    case Quantity::Many: return all->quantity == Quantity::None ? Quantity::None : Quantity::Many;
  }
  return field;
}

Name Machine::binder_name(const Value* all) const {
  if (all->flags != kTelescope) return book_.terms[TermId(all->a)].name;
  return book_.ctors[CtorId(all->a)].fields[as<TelescopeValue>(all)->index].name;
}

const Value* Machine::domain(const Value* all) {
  if (all->flags != kTelescope) {
    const AllValue* v = as<AllValue>(all);
    return v->domain != nullptr ? v->domain : delay(TermId(book_.terms[TermId(v->a)].a), v->env);
  }
  const TelescopeValue* v = as<TelescopeValue>(all);
  if (v->domain != nullptr) return v->domain;
  return delay(book_.ctors[CtorId(v->a)].fields[v->index].type, v->env);
}

const Value* Machine::codomain(const Value* all, const Value* arg) {
  if (all->flags != kTelescope) {
    const AllValue* v = as<AllValue>(all);
    return delay(TermId(book_.terms[TermId(v->a)].b), extend(v->env, arg));
  }
  const TelescopeValue* v = as<TelescopeValue>(all);
  const uint32_t count = static_cast<uint32_t>(book_.ctors[CtorId(v->a)].fields.size());
  if (v->index + 1 < count) {
    TelescopeValue* next = arena_.make<TelescopeValue>(*v);
    next->index = v->index + 1;
    next->env = extend(v->env, arg);
    next->domain = nullptr;
    return next;
  }
  return codomain(v->motive, layer(extend(v->outer, v), 0, arg));
}

// The arms of a pattern of n constructors, each the last field of the one before, stand in n values that share nothing. They are built as far as
// they are looked at: a type that does not depend on the scrutinee builds none, and n arms stay linear.
const Value* Machine::layer(const Env* chain, uint32_t level, const Value* last) {
  LayerValue* v = arena_.make<LayerValue>();
  v->tag = Tag::Thunk;
  v->flags = kLayer;
  v->a = level;
  v->link = chain;
  v->last = last;
  return v;
}

const Value* Machine::build_layer(const LayerValue* v) {
  const TelescopeValue* arm = as<TelescopeValue>(lookup(v->env(), v->a));
  CtrValue* whole = arena_.make<CtrValue>();
  whole->tag = Tag::Ctr;
  whole->a = arm->a;
  whole->count = arm->index + 1;
  whole->fields = arena_.array<const Value*>(whole->count);
  whole->fields[arm->index] = v->a + 1 == v->env()->length ? v->last : layer(v->env(), v->a + 1, v->last);
  const Env* env = arm->env;
  for (uint32_t i = arm->index; i-- > 0; env = env->parent) whole->fields[i] = env->value;
  return whole;
}

const Value* Machine::arm_type(CtorId id, const AdtValue* adt, const Value* motive) {
  if (book_.ctors[id].fields.empty()) return codomain(motive, ctor(id, {}));
  TelescopeValue* v = arena_.make<TelescopeValue>();
  v->tag = Tag::All;
  v->flags = kTelescope;
  v->quantity = binder_quantity(motive);
  v->a = id.index;
  v->env = env_of(adt);
  v->motive = motive;
  v->outer = &empty_;
  if (motive->flags == kTelescope) {
    const TelescopeValue* around = as<TelescopeValue>(motive);
    if (around->index + 1 == book_.ctors[CtorId(around->a)].fields.size()) {
      v->motive = around->motive;
      v->outer = extend(around->outer, around);
    }
  }
  return v;
}

const Value* Machine::with_domain(const Value* all, const Value* domain) {
  if (all->flags != kTelescope) {
    AllValue* v = arena_.make<AllValue>(*as<AllValue>(all));
    v->domain = domain;
    return v;
  }
  TelescopeValue* v = arena_.make<TelescopeValue>(*as<TelescopeValue>(all));
  v->domain = domain;
  return v;
}

const Value* Machine::without(const AdtValue* adt, CtorId id) {
  const uint32_t total = static_cast<uint32_t>(book_.datatypes[DataId(adt->a)].ctors.size());
  AdtValue* v = arena_.make<AdtValue>(*adt);
  v->removed = adt->removed.with(arena_, book_.ctors[id].index, total);
  return v;
}

const Value* Machine::whole(const AdtValue* adt) {
  AdtValue* v = arena_.make<AdtValue>(*adt);
  v->removed = {};
  return v;
}

// --- Literals ---------------------------------------------------------------------------------------------------------------------

uint32_t Machine::string_length(const NumberValue* text) const {
  return static_cast<uint32_t>(book_.strings[text->a].size() - text->number);
}

char32_t Machine::string_at(const NumberValue* text, uint32_t i) const { return book_.strings[text->a][text->number + i]; }

const Value* Machine::word(uint32_t bits) {
  if (!known_.wnil.valid() || !known_.wcon.valid() || !known_.true_.valid() || !known_.false_.valid()) return nullptr;
  const Value* yes = ctor(known_.true_, {});
  const Value* no = ctor(known_.false_, {});
  const Value* result = ctor(known_.wnil, {});
  for (uint32_t i = 32; i-- > 0;) result = ctor(known_.wcon, {((bits >> i) & 1) != 0 ? yes : no, result});
  return result;
}

const Value* Machine::step(const Value* literal) {
  switch (literal->tag) {
    case Tag::Nat: {
      const uint64_t n = as<NumberValue>(literal)->number;
      if (!known_.zero.valid() || !known_.succ.valid()) return nullptr;
      return n == 0 ? ctor(known_.zero, {}) : ctor(known_.succ, {number(Tag::Nat, n - 1)});
    }
    case Tag::U32: case Tag::F32: {
      const CtorId id = literal->tag == Tag::U32 ? known_.u32 : known_.f32;
      const Value* bits = id.valid() ? word(static_cast<uint32_t>(as<NumberValue>(literal)->number)) : nullptr;
      return bits != nullptr ? ctor(id, {bits}) : nullptr;
    }
    case Tag::Str: {
      const NumberValue* text = as<NumberValue>(literal);
      if (!known_.snil.valid() || !known_.scon.valid() || !known_.chr.valid()) return nullptr;
      if (string_length(text) == 0) return ctor(known_.snil, {});
      NumberValue* rest = arena_.make<NumberValue>(*text);
      rest->number = text->number + 1;
      return ctor(known_.scon, {ctor(known_.chr, {number(Tag::U32, string_at(text, 0))}), rest});
    }
    case Tag::Thunk: case Tag::Forward: case Tag::Var: case Tag::App: case Tag::StuckMatch: case Tag::StuckRewrite: case Tag::Call: case Tag::Lam:
    case Tag::Mat: case Tag::MatLit: case Tag::Efq: case Tag::Kind: case Tag::Quant: case Tag::Qua: case Tag::Meet: case Tag::All: case Tag::Adt:
    case Tag::Ctr: case Tag::Eql: case Tag::Rfl: case Tag::Hole: case Tag::Error:
      return nullptr;
  }
  return nullptr;
}

}  // namespace bendc
