// Evaluation of terms to head normal form, application, and the transactional unfolding of calls (language.md 4.6).
#include "checker/machine.h"

#include <algorithm>

#include "checker/natives.h"

namespace bendc {

using core::CtorId;
using core::DataId;
using core::DefId;
using core::Quantity;
using core::Term;
using core::TermId;
using core::TermKind;

namespace {

[[gnu::noinline]] const char* frame_address() { return static_cast<const char*>(__builtin_frame_address(0)); }

Value plain(Tag tag) {
  Value v;
  v.tag = tag;
  return v;
}

}  // namespace

Machine::Machine(const core::Book& book, const Interner& names, MachineOptions options)
    : book_(book), options_(options), fuel_left_(options.fuel), stack_base_(frame_address()) {
  empty_.parent = empty_.jump = &empty_;
  for (int i = 0; i < 3; ++i) {
    qua_[i].tag = Tag::Qua;
    qua_[i].number = static_cast<uint64_t>(i);
    kind_[i].tag = Tag::Kind;
    kind_[i].of = &qua_[i];
  }
  quant_ = plain(Tag::Quant);
  rfl_ = plain(Tag::Rfl);
  error_ = plain(Tag::Error);

  auto in_base = [&](uint32_t module) {
    return module < book.module_is_stdlib.size() && book.module_is_stdlib[module] && book.module_keys[module].empty();
  };
  for (uint32_t i = 0; i < book.ctors.size(); ++i) {
    const std::string_view text = names.text(book.ctors[CtorId(i)].name);
    if (text.size() > 5) continue;
    auto set = [&](std::string_view name, CtorId& slot) {
      if (text == name) slot = CtorId(i);
    };
    set("Zero", known_.zero); set("Succ", known_.succ); set("SNil", known_.snil); set("SCon", known_.scon); set("Chr", known_.chr);
    set("U32", known_.u32); set("F32", known_.f32); set("WNil", known_.wnil); set("WCon", known_.wcon); set("False", known_.false_);
    set("True", known_.true_); set("LT", known_.lt); set("EQ", known_.eq); set("GT", known_.gt); set("Tuple", known_.tuple);
    set("None", known_.none); set("Some", known_.some);
  }
  adt_constants_.resize(book.datatypes.size());
  for (uint32_t i = 0; i < book.datatypes.size(); ++i) {
    adt_constants_[i].tag = Tag::Adt;
    adt_constants_[i].a = i;
    if (!in_base(book.datatypes[DataId(i)].module)) continue;
    const std::string_view text = names.text(book.datatypes[DataId(i)].name);
    if (text == "Nat") known_.nat = DataId(i);
    if (text == "U32") known_.u32_type = DataId(i);
    if (text == "F32") known_.f32_type = DataId(i);
    if (text == "String") known_.string = DataId(i);
  }
  natives_.resize(book.defs.size(), Native::None);
  for (uint32_t i = 0; i < book.defs.size(); ++i) {
    const core::Def& def = book.defs[DefId(i)];
    if (!in_base(def.module)) continue;
    const Native native = find_native(names.text(def.name));
    if (native != Native::None && (options.floats || !native_uses_floats(native)) && def.arity == native_arity(native)) natives_[i] = native;
  }
}

// --- Small constructors -----------------------------------------------------------------------------------------------------------

const Value* Machine::var(uint32_t level, Name name, const Value* type) {
  VarValue* v = arena_.make<VarValue>();
  v->tag = Tag::Var;
  v->a = level;
  v->name = name;
  v->type = type;
  return v;
}

const Value* Machine::ctor(CtorId id, std::initializer_list<const Value*> fields) {
  CtrValue* v = arena_.make<CtrValue>();
  v->tag = Tag::Ctr;
  v->a = id.index;
  v->count = static_cast<uint32_t>(fields.size());
  v->fields = arena_.array<const Value*>(fields.size());
  std::copy(fields.begin(), fields.end(), v->fields);
  return v;
}

const Value* Machine::number(Tag tag, uint64_t n) {
  NumberValue* v = arena_.make<NumberValue>();
  v->tag = tag;
  v->number = n;
  return v;
}

const Value* Machine::adt_constant(DataId id) { return &adt_constants_[id.index]; }

const Value* Machine::call_constant(DefId def) { return constant(def); }

const Value* Machine::all_of_def(DefId def) { return eval(book_.defs[def].type, &empty_); }

const Value* Machine::kind_of(const Value* quantity) {
  if (quantity->tag == Tag::Qua) return &kind_[as<NumberValue>(quantity)->number];
  KindValue* v = arena_.make<KindValue>();
  v->tag = Tag::Kind;
  v->of = quantity;
  return v;
}

const Value* Machine::eql(const Value* left, const Value* right, const Value* type) {
  EqlValue* v = arena_.make<EqlValue>();
  v->tag = Tag::Eql;
  v->left = left;
  v->right = right;
  v->type = type;
  return v;
}

// One value for each def without arguments, so that what it unfolds to is shared: `v9()` of `N{v8(), v8()}` has 10 values and not 2^9.
const Value* Machine::constant(DefId def) {
  if (def.index >= constants_.size()) constants_.resize(std::max<size_t>(def.index + 1, book_.defs.size()));
  Constant& known = constants_[def.index];
  if (known.epoch != constants_epoch_) known = {call(def, nullptr, 0), constants_epoch_};
  return known.value;
}

const Value* Machine::call(DefId def, const Value** args, uint32_t count) {
  CallValue* v = arena_.make<CallValue>();
  v->tag = Tag::Call;
  v->a = def.index;
  v->count = count;
  v->args = args;
  const uint32_t arity = book_.defs[def].arity;
  if (count > arity) v->base = as<CallValue>(call(def, args, arity));
  return v;
}

const Value* Machine::extend_call(const CallValue* old, const Value* const* args, uint32_t count) {
  const Value** all = arena_.array<const Value*>(old->count + count);
  std::copy(old->args, old->args + old->count, all);
  std::copy(args, args + count, all + old->count);
  const uint32_t arity = book_.defs[DefId(old->a)].arity;
  CallValue* v = arena_.make<CallValue>();
  v->tag = Tag::Call;
  v->a = old->a;
  v->count = old->count + count;
  v->args = all;
  if (v->count > arity) {
    v->base = old->base != nullptr ? old->base : old->count == arity ? old : as<CallValue>(call(DefId(old->a), all, arity));
  }
  return v;
}

const Value* Machine::neutral(const Value* head, const Value* const* args, uint32_t count) {
  if (count == 0) return head;
  uint32_t before = 0;
  const Value* const* old = nullptr;
  if (head->tag == Tag::App) {
    old = as<AppValue>(head)->args;
    before = head->a;
    head = as<AppValue>(head)->head;
  }
  AppValue* v = arena_.make<AppValue>();
  v->tag = Tag::App;
  v->a = before + count;
  v->head = head;
  v->args = arena_.array<const Value*>(before + count);
  std::copy(old, old + before, v->args);
  std::copy(args, args + count, v->args + before);
  return v;
}

const Value* Machine::meet(const Value* left, const Value* right) {
  const Value* l = whnf(left);
  if (l->tag == Tag::Qua) {
    const uint64_t n = as<NumberValue>(l)->number;
    if (n == 2) return whnf(right);
    if (n == 0) return l;
  }
  const Value* r = whnf(right);
  if (r->tag == Tag::Qua) {
    const uint64_t n = as<NumberValue>(r)->number;
    if (n == 2) return l;
    if (n == 0) return r;
    if (l->tag == Tag::Qua) return l;  // 1 <&> 1
  }
  if (l->tag == Tag::Error || r->tag == Tag::Error) return &error_;
  PairValue* v = arena_.make<PairValue>();
  v->tag = Tag::Meet;
  v->left = l;
  v->right = r;
  return v;
}

void Machine::allow(DefId def) {
  if (bodies_.size() <= def.index) bodies_.resize(def.index + 1, Body::Opaque);
  bodies_[def.index] = Body::Allowed;
  ++constants_epoch_;   // what was stuck may go on now
}

void Machine::poison(DefId def) {
  if (bodies_.size() <= def.index) bodies_.resize(def.index + 1, Body::Opaque);
  bodies_[def.index] = Body::Poisoned;
}

bool Machine::unfoldable(DefId def) const {
  if (!book_.defs[def].body.valid()) return false;
  return options_.all_unfold || (def.index < bodies_.size() && bodies_[def.index] == Body::Allowed);
}

void Machine::check_memory() {
  if ((++memory_ticks_ & 0xFF) == 0 && arena_.bytes() > options_.memory) stop(Halt::Memory);
}

// --- Terms ------------------------------------------------------------------------------------------------------------------------

const Value** Machine::delay_list(uint32_t offset, uint32_t count, const Env* env) {
  const Value** items = arena_.array<const Value*>(count);
  const std::span<const TermId> terms = book_.list(offset, count);
  for (uint32_t i = 0; i < count; ++i) items[i] = delay(terms[i], env);
  return items;
}

const Value* Machine::delay(TermId id, const Env* env) {
  const Term& term = book_.terms[id];
  switch (term.kind) {
    case TermKind::Var:
    case TermKind::Ann:
      if (term.kind == TermKind::Ann) return delay(TermId(term.a), env);
      if (const Value* v = lookup(env, term.a)) return v;
      return &error_;
    case TermKind::Ref: case TermKind::Quant: case TermKind::Qua: case TermKind::All: case TermKind::Lam: case TermKind::Adt:
    case TermKind::U32: case TermKind::Nat: case TermKind::F32: case TermKind::Str: case TermKind::Mat: case TermKind::MatLit:
    case TermKind::Efq: case TermKind::Rfl: case TermKind::Hole: case TermKind::Error:
      return eval(id, env);
    case TermKind::Kind:
      if (book_.terms[TermId(term.a)].kind == TermKind::Qua) return eval(id, env);
      break;
    case TermKind::Let: case TermKind::Meet: case TermKind::App: case TermKind::Ctr: case TermKind::Eql: case TermKind::Rwt:
      break;
  }
  ThunkValue* v = arena_.make<ThunkValue>();
  v->tag = Tag::Thunk;
  v->a = id.index;
  v->link = env;
  return v;
}

const Value* Machine::eval(TermId id, const Env* env) {
  for (;;) {
    const Term& term = book_.terms[id];
    switch (term.kind) {
      case TermKind::Var: {
        const Value* v = lookup(env, term.a);
        return v != nullptr ? force(v) : &error_;
      }
      case TermKind::Ref:
        return constant(DefId(term.a));
      case TermKind::Let: {
        const Env* inner = env;
        for (uint32_t i = 0; i < term.b; ++i) {
          const core::LetRow& row = book_.let_rows[term.a + i];
          inner = extend(inner, delay(row.value, env));
        }
        env = inner;
        id = TermId(term.c);
        continue;
      }
      case TermKind::Kind: {
        const Term& of = book_.terms[TermId(term.a)];
        if (of.kind == TermKind::Qua) return &kind_[of.a];
        KindValue* v = arena_.make<KindValue>();
        v->tag = Tag::Kind;
        v->of = delay(TermId(term.a), env);
        return v;
      }
      case TermKind::Quant:
        return &quant_;
      case TermKind::Qua:
        return &qua_[term.a];
      case TermKind::Meet: {
        if (deep()) return &error_;
        return meet(delay(TermId(term.a), env), delay(TermId(term.b), env));
      }
      case TermKind::All: {
        AllValue* v = arena_.make<AllValue>();
        v->tag = Tag::All;
        v->quantity = term.quantity;
        v->a = id.index;
        v->env = env;
        return v;
      }
      case TermKind::Lam: case TermKind::Mat: case TermKind::MatLit: case TermKind::Efq: {
        ClosureValue* v = arena_.make<ClosureValue>();
        v->tag = term.kind == TermKind::Lam ? Tag::Lam : term.kind == TermKind::Mat ? Tag::Mat : term.kind == TermKind::MatLit ? Tag::MatLit : Tag::Efq;
        v->quantity = term.quantity;
        v->a = id.index;
        v->env = env;
        return v;
      }
      case TermKind::App: {
        const TermId head(term.a);
        const Value** args = delay_list(term.b, term.c, env);
        const Term& h = book_.terms[head];
        if (h.kind == TermKind::Ref) return call(DefId(h.a), args, term.c);
        if (deep()) return &error_;
        const uint32_t count = term.c;
        return apply(eval(head, env), args, count);
      }
      case TermKind::Adt: {
        if (term.c == 0) return adt_constant(DataId(term.a));
        AdtValue* v = arena_.make<AdtValue>();
        v->tag = Tag::Adt;
        v->a = term.a;
        v->count = term.c;
        v->args = delay_list(term.b, term.c, env);
        return v;
      }
      case TermKind::Ctr: {
        CtrValue* v = arena_.make<CtrValue>();
        v->tag = Tag::Ctr;
        v->a = term.a;
        v->count = term.c;
        v->fields = delay_list(term.b, term.c, env);
        return v;
      }
      case TermKind::U32:
        return number(Tag::U32, term.a);
      case TermKind::Nat:
        return number(Tag::Nat, term.a | (term.b == TermId::kNone ? 0 : static_cast<uint64_t>(term.b) << 32));
      case TermKind::F32:
        return number(Tag::F32, term.a);
      case TermKind::Str: {
        NumberValue* v = arena_.make<NumberValue>();
        v->tag = Tag::Str;
        v->a = term.a;
        return v;
      }
      case TermKind::Eql:
        return eql(delay(TermId(term.a), env), delay(TermId(term.b), env), delay(TermId(term.c), env));
      case TermKind::Rfl:
        return &rfl_;
      case TermKind::Rwt: {
        if (deep()) return &error_;
        const Value* evidence = whnf(eval(TermId(term.a), env));
        if (evidence->tag == Tag::Rfl) {
          id = TermId(book_.terms[id].c);
          continue;
        }
        if (evidence->tag == Tag::Error) return &error_;
        StuckRewriteValue* v = arena_.make<StuckRewriteValue>();
        v->tag = Tag::StuckRewrite;
        v->a = id.index;
        v->env = env;
        v->evidence = evidence;
        return v;
      }
      case TermKind::Hole: {
        HoleValue* v = arena_.make<HoleValue>();
        v->tag = Tag::Hole;
        v->name = term.name;
        return v;
      }
      case TermKind::Ann:
        id = TermId(term.a);
        continue;
      case TermKind::Error:
        return &error_;
    }
  }
}

const Value* Machine::force_thunk(const Value* v) {
  if (v->tag == Tag::Thunk) {
    if (deep()) return &error_;
    const ThunkValue* thunk = as<ThunkValue>(v);
    const Value* result = v->flags == kLayer ? force(build_layer(as<LayerValue>(v))) : eval(TermId(v->a), thunk->env());
    if (halt_ != Halt::None) return result;
    thunk->link = result;
    v->tag = Tag::Forward;
    return result;
  }
  const Value* target = as<ThunkValue>(v)->target();
  while (target->tag == Tag::Forward) target = as<ThunkValue>(target)->target();
  if (target->tag == Tag::Thunk) target = force_thunk(target);
  as<ThunkValue>(v)->link = target;
  return target;
}

// --- Application ------------------------------------------------------------------------------------------------------------------

const Value* Machine::apply(const Value* fn, const Value* const* args, uint32_t count) {
  while (count != 0) {
    fn = force(fn);
    switch (fn->tag) {
      case Tag::Lam: {
        const Env* env = as<ClosureValue>(fn)->env;
        TermId body(fn->a);
        do {
          env = extend(env, *args);
          ++args;
          --count;
          body = TermId(book_.terms[body].a);
        } while (count != 0 && book_.terms[body].kind == TermKind::Lam);
        if (deep()) return &error_;
        fn = eval(body, env);
        break;
      }
      case Tag::Mat: case Tag::MatLit: case Tag::Efq:
        if (deep()) return &error_;
        return match(as<ClosureValue>(fn), whnf(args[0]), args + 1, count - 1);
      case Tag::Call:
        return extend_call(as<CallValue>(fn), args, count);
      case Tag::Var: case Tag::App: case Tag::StuckMatch: case Tag::StuckRewrite: case Tag::Hole:
        return neutral(fn, args, count);
      case Tag::Thunk: case Tag::Forward: case Tag::Kind: case Tag::Quant: case Tag::Qua: case Tag::Meet: case Tag::All: case Tag::Adt:
      case Tag::Ctr: case Tag::U32: case Tag::Nat: case Tag::F32: case Tag::Str: case Tag::Eql: case Tag::Rfl: case Tag::Error:
        return &error_;  // ill typed; reported where it was checked
    }
  }
  return force(fn);
}

const Value* Machine::match(const ClosureValue* fn, const Value* scrutinee, const Value* const* rest, uint32_t rest_count) {
  if (scrutinee->tag == Tag::Error) return &error_;
  const Env* env = fn->env;
  TermId id(fn->a);
  const Value* layer = nullptr;  // the scrutinee as a constructor
  auto stuck = [&]() -> const Value* {
    StuckMatchValue* v = arena_.make<StuckMatchValue>();
    v->tag = Tag::StuckMatch;
    v->fn = fn;
    v->scrutinee = scrutinee;
    return neutral(v, rest, rest_count);
  };
  for (;;) {
    const Term& term = book_.terms[id];
    if (term.kind == TermKind::Mat) {
      if (layer == nullptr) {
        layer = scrutinee->tag == Tag::Ctr ? scrutinee : step(scrutinee);
        if (layer == nullptr) return stuck();
      }
      if (layer->a == term.a) {
        const CtrValue* c = as<CtrValue>(layer);
        const Value* result = eval(TermId(term.b), env);
        result = apply(result, c->fields, c->count);
        return apply(result, rest, rest_count);
      }
      id = TermId(term.c);
    } else if (term.kind == TermKind::MatLit) {
      bool hit = false;
      if (match_literal(TermId(term.a), scrutinee, hit) == nullptr) return stuck();
      if (hit) return apply(eval(TermId(term.b), env), rest, rest_count);
      id = TermId(term.c);
    } else if (term.kind == TermKind::Efq) {
      return stuck();
    } else {
      return apply(apply(eval(id, env), &scrutinee, 1), rest, rest_count);
    }
  }
}

// Compares a literal pattern with a whnf value bit by bit, as its expansion into constructors would; null when that gets stuck.
const Value* Machine::match_literal(TermId literal, const Value* scrutinee, bool& hit) {
  const Term& lit = book_.terms[literal];
  hit = false;
  switch (lit.kind) {
    case TermKind::Nat: {
      uint64_t left = lit.a;
      for (;;) {
        if (scrutinee->tag == Tag::Nat) {
          hit = as<NumberValue>(scrutinee)->number == left;
          return scrutinee;
        }
        if (scrutinee->tag != Tag::Ctr) return nullptr;
        const CtrValue* c = as<CtrValue>(scrutinee);
        if (c->count == 0) {
          hit = left == 0;
          return scrutinee;
        }
        if (left == 0) return scrutinee;
        --left;
        scrutinee = whnf(c->fields[0]);
      }
    }
    case TermKind::U32: case TermKind::F32: {
      if (scrutinee->tag == Tag::U32 || scrutinee->tag == Tag::F32) {
        hit = as<NumberValue>(scrutinee)->number == lit.a;
        return scrutinee;
      }
      if (scrutinee->tag != Tag::Ctr || as<CtrValue>(scrutinee)->count != 1) return nullptr;
      const Value* bits = as<CtrValue>(scrutinee)->fields[0];
      for (uint32_t i = 0; i < 32; ++i) {
        bits = whnf(bits);
        if (bits->tag != Tag::Ctr || as<CtrValue>(bits)->count != 2) return nullptr;
        const Value* bit = whnf(as<CtrValue>(bits)->fields[0]);
        if (bit->tag != Tag::Ctr) return nullptr;
        if ((bit->a == known_.true_.index) != (((lit.a >> i) & 1) != 0)) return scrutinee;
        bits = as<CtrValue>(bits)->fields[1];
      }
      hit = true;
      return scrutinee;
    }
    case TermKind::Var: case TermKind::Ref: case TermKind::Let: case TermKind::Kind: case TermKind::Quant: case TermKind::Qua: case TermKind::Meet:
    case TermKind::All: case TermKind::Lam: case TermKind::App: case TermKind::Adt: case TermKind::Ctr: case TermKind::Str: case TermKind::Mat:
    case TermKind::MatLit: case TermKind::Efq: case TermKind::Eql: case TermKind::Rfl: case TermKind::Rwt: case TermKind::Hole: case TermKind::Ann:
    case TermKind::Error:
      return nullptr;
  }
  return nullptr;
}

// --- Unfolding --------------------------------------------------------------------------------------------------------------------

bool Machine::is_partial(const CallValue* c) const {
  return unfoldable(DefId(c->a)) && c->count < book_.defs[DefId(c->a)].arity;
}

const Value* Machine::unfold(const CallValue* c) {
  if (c->unfolded != nullptr) return c->unfolded;
  if ((c->flags & kStuckCall) != 0) return nullptr;
  if (deep()) return &error_;
  const Value* result = nullptr;
  if (c->base != nullptr) {
    const Value* function = unfold_fully(c->base);
    if (function == c->base) {
      if (halt_ == Halt::None && unfoldable(DefId(c->a))) c->flags |= kStuckCall;
      return nullptr;
    }
    const uint32_t used = c->base->count;
    result = apply(function, c->args + used, c->count - used);
  } else {
    const DefId def(c->a);
    const Native fast = native(def);
    if (fast != Native::None && c->count == native_arity(fast)) result = run_native(*this, fast, c->args);
    if (result == nullptr) {
      if (c->count < book_.defs[def].arity) return nullptr;
      if (!unfoldable(def)) return def.index < bodies_.size() && bodies_[def.index] == Body::Poisoned ? &error_ : nullptr;
      check_memory();
      if (!tick()) return &error_;
      result = run_tree(c);
    }
  }
  if (halt_ != Halt::None) return result == nullptr ? &error_ : result;
  if (result == nullptr) c->flags |= kStuckCall;
  c->unfolded = result;
  return result;
}

const Value* Machine::unfold_fully(const CallValue* first) {
  const CallValue* c = first;
  for (;;) {
    const Value* next = unfold(c);
    if (next == nullptr) break;
    next = force(next);
    if (next->tag != Tag::Call) {
      if (halt_ == Halt::None) first->unfolded = next;
      return next;
    }
    c = as<CallValue>(next);
  }
  if (c != first && halt_ == Halt::None) first->unfolded = c;
  return c;
}

// Runs the case tree of a def on the arguments. The arguments and the fields that matches open are pending; a neutral scrutinee while
// anything is pending gives the call back (null).
const Value* Machine::run_tree(const CallValue* c) {
  struct Segment {
    const Value* const* items;
    uint32_t count;
  };
  constexpr uint32_t kInline = 6;
  Segment inline_segments[kInline];
  std::vector<Segment> spilled;
  uint32_t used = 0;
  auto push = [&](const Value* const* items, uint32_t count) {
    if (count == 0) return;
    if (used < kInline) {
      inline_segments[used] = {items, count};
    } else {
      spilled.push_back({items, count});
    }
    ++used;
  };
  auto top = [&]() -> Segment& { return used <= kInline ? inline_segments[used - 1] : spilled.back(); };
  auto pop_one = [&]() {
    Segment& s = top();
    ++s.items;
    if (--s.count == 0) {
      if (used > kInline) spilled.pop_back();
      --used;
    }
  };

  push(c->args, c->count);
  const Env* env = &empty_;
  TermId id = book_.defs[DefId(c->a)].body;
  const Value* seen = nullptr;   // the scrutinee on top, when already whnf
  const Value* layer = nullptr;  // its constructor layer
  while (used != 0) {
    const Term& term = book_.terms[id];
    switch (term.kind) {
      case TermKind::Lam:
        env = extend(env, seen != nullptr ? seen : *top().items);
        pop_one();
        seen = layer = nullptr;
        id = TermId(term.a);
        continue;
      case TermKind::Mat:
        if (seen == nullptr) seen = whnf(*top().items);
        if (layer == nullptr) {
          if (seen->tag == Tag::Error) return &error_;
          layer = seen->tag == Tag::Ctr ? seen : step(seen);
          if (layer == nullptr) return nullptr;
        }
        if (layer->a == term.a) {
          pop_one();
          push(as<CtrValue>(layer)->fields, as<CtrValue>(layer)->count);
          seen = layer = nullptr;
          id = TermId(term.b);
        } else {
          id = TermId(term.c);
        }
        continue;
      case TermKind::MatLit: {
        if (seen == nullptr) seen = whnf(*top().items);
        if (seen->tag == Tag::Error) return &error_;
        bool hit = false;
        if (match_literal(TermId(term.a), seen, hit) == nullptr) return nullptr;
        if (hit) {
          pop_one();
          seen = layer = nullptr;
          id = TermId(term.b);
        } else {
          id = TermId(term.c);
        }
        continue;
      }
      case TermKind::Efq:
        return nullptr;
      case TermKind::Var: case TermKind::Ref: case TermKind::Let: case TermKind::Kind: case TermKind::Quant: case TermKind::Qua:
      case TermKind::Meet: case TermKind::All: case TermKind::App: case TermKind::Adt: case TermKind::Ctr: case TermKind::U32:
      case TermKind::Nat: case TermKind::F32: case TermKind::Str: case TermKind::Eql: case TermKind::Rfl: case TermKind::Rwt:
      case TermKind::Hole: case TermKind::Ann: case TermKind::Error: {
        const Value* fn = eval(id, env);  // an under-applied tree: the rest are ordinary arguments
        while (used != 0) {
          const Value* arg = *top().items;
          pop_one();
          fn = apply(fn, &arg, 1);
        }
        return fn;
      }
    }
  }
  return eval(id, env);
}

}  // namespace bendc
