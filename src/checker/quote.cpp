// Values back to Core terms: for messages (calls stay folded, bounded size) and for normal forms (everything unfolded, functions
// opened under fresh variables, words and texts folded back into literals).
#include "checker/machine.h"

namespace bendc {

using core::CtorId;
using core::DefId;
using core::Quantity;
using core::Term;
using core::TermId;
using core::TermKind;

class Quoter {
 public:
  Quoter(Machine& machine, core::Book& book, bool normal, uint32_t limit, Name ellipsis)
      : m_(machine), book_(book), normal_(normal), limit_(limit), ellipsis_(ellipsis) {}

  TermId quote(const Value* v, uint32_t depth) {
    if (m_.deep() || (limit_ != 0 && ++count_ > limit_)) return add(TermKind::Hole, kN, kN, kN, ellipsis_);
    v = normal_ ? m_.whnf(v) : m_.force(v);
    switch (v->tag) {
      case Tag::Thunk: case Tag::Forward: case Tag::Error:
        return add(TermKind::Error);
      case Tag::Var:
        return add(TermKind::Var, v->a, kN, kN, as<VarValue>(v)->name);
      case Tag::App:
        return app(quote(as<AppValue>(v)->head, depth), as<AppValue>(v)->args, v->a, depth);
      case Tag::StuckMatch: {
        const TermId fn = quote(as<StuckMatchValue>(v)->fn, depth);
        return app(fn, &as<StuckMatchValue>(v)->scrutinee, 1, depth);
      }
      case Tag::StuckRewrite: {
        const StuckRewriteValue* r = as<StuckRewriteValue>(v);
        const Term term = book_.terms[TermId(v->a)];
        const TermId evidence = quote(r->evidence, depth);
        const TermId motive = quote(m_.delay(TermId(term.b), r->env), depth);
        const TermId body = quote(m_.delay(TermId(term.c), r->env), depth);
        return add(TermKind::Rwt, evidence.index, motive.index, body.index);
      }
      case Tag::Call: {
        const CallValue* c = as<CallValue>(v);
        if (normal_ && m_.is_partial(c)) return eta(v, m_.all_of_partial(c), depth);
        const TermId head = add(TermKind::Ref, v->a);
        return app(head, c->args, c->count, depth);
      }
      case Tag::Lam: {
        const Term term = book_.terms[TermId(v->a)];
        const Value* x = m_.var(depth, term.name, m_.error());
        const TermId body = quote(m_.apply(v, x), depth + 1);
        return add(TermKind::Lam, body.index, kN, kN, term.name, term.quantity);
      }
      case Tag::Mat: case Tag::MatLit: {
        const ClosureValue* c = as<ClosureValue>(v);
        const Term term = book_.terms[TermId(v->a)];
        const TermId hit = quote(m_.delay(TermId(term.b), c->env), depth);
        const TermId miss = quote(m_.delay(TermId(term.c), c->env), depth);
        return add(v->tag == Tag::Mat ? TermKind::Mat : TermKind::MatLit, term.a, hit.index, miss.index, term.name);
      }
      case Tag::Efq:
        return add(TermKind::Efq);
      case Tag::Kind:
        return add(TermKind::Kind, quote(as<KindValue>(v)->of, depth).index);
      case Tag::Quant:
        return add(TermKind::Quant);
      case Tag::Qua:
        return add(TermKind::Qua, static_cast<uint32_t>(as<NumberValue>(v)->number));
      case Tag::Meet: {
        const TermId left = quote(as<PairValue>(v)->left, depth);
        const TermId right = quote(as<PairValue>(v)->right, depth);
        return add(TermKind::Meet, left.index, right.index);
      }
      case Tag::All: {
        const Name name = m_.binder_name(v);
        const Quantity quantity = m_.binder_quantity(v);
        const Value* domain = m_.domain(v);
        const TermId from = quote(domain, depth);
        const TermId to = quote(m_.codomain(v, m_.var(depth, name, domain)), depth + 1);
        return add(TermKind::All, from.index, to.index, kN, name, quantity);
      }
      case Tag::Adt: {
        const AdtValue* adt = as<AdtValue>(v);
        if (adt->removed.size() > 0) return residual(adt, depth);
        const Slice items = list(adt->args, adt->count, depth);
        return add(TermKind::Adt, v->a, items.offset, items.length);
      }
      case Tag::Ctr:
        return constructor(v, depth);
      case Tag::U32:
        return add(TermKind::U32, static_cast<uint32_t>(as<NumberValue>(v)->number));
      case Tag::F32:
        return add(TermKind::F32, static_cast<uint32_t>(as<NumberValue>(v)->number));
      case Tag::Nat:
        return nat(as<NumberValue>(v)->number);
      case Tag::Str: {
        const NumberValue* text = as<NumberValue>(v);
        if (text->number == 0) return add(TermKind::Str, v->a);
        return string(book_.strings[v->a].substr(text->number));
      }
      case Tag::Eql: {
        const TermId left = quote(as<EqlValue>(v)->left, depth);
        const TermId right = quote(as<EqlValue>(v)->right, depth);
        const TermId type = quote(as<EqlValue>(v)->type, depth);
        return add(TermKind::Eql, left.index, right.index, type.index);
      }
      case Tag::Rfl:
        return add(TermKind::Rfl);
      case Tag::Hole:
        return add(TermKind::Hole, kN, kN, kN, as<HoleValue>(v)->name);
    }
    return add(TermKind::Error);
  }

 private:
  static constexpr uint32_t kN = TermId::kNone;
  TermId add(TermKind kind, uint32_t a = kN, uint32_t b = kN, uint32_t c = kN, Name name = {}, Quantity quantity = Quantity::Lone) {
    Term term;
    term.kind = kind;
    term.quantity = quantity;
    term.name = name;
    term.a = a;
    term.b = b;
    term.c = c;
    return book_.add(term, Span{});
  }
  TermId nat(uint64_t n) {
    const uint32_t high = static_cast<uint32_t>(n >> 32);
    return add(TermKind::Nat, static_cast<uint32_t>(n), high == 0 ? TermId::kNone : high);
  }
  TermId string(std::u32string text) {
    book_.strings.push_back(std::move(text));
    return add(TermKind::Str, static_cast<uint32_t>(book_.strings.size() - 1));
  }
  Slice list(const Value* const* items, uint32_t count, uint32_t depth) {
    std::vector<TermId> ids(count);
    for (uint32_t i = 0; i < count; ++i) ids[i] = quote(items[i], depth);
    return book_.lists.add(ids);
  }
  // A residual type with the first few constructors it lacks.
  TermId residual(const AdtValue* adt, uint32_t depth) {
    constexpr uint32_t kShown = 4;
    std::vector<TermId> ids(adt->count);
    for (uint32_t i = 0; i < adt->count; ++i) ids[i] = quote(adt->args[i], depth);
    const std::vector<CtorId> ctors = book_.datatypes[core::DataId(adt->a)].ctors;
    uint8_t shown = 0;
    for (uint32_t i = 0; i < ctors.size() && shown < kShown; ++i) {
      if (!adt->removed.has(i)) continue;
      ids.push_back(add(TermKind::Ctr, ctors[i].index, 0, 0));
      ++shown;
    }
    const Slice items = book_.lists.add(ids);
    const TermId id = add(TermKind::Adt, adt->a, items.offset, adt->count);
    book_.terms[id].extra = shown;
    return id;
  }
  TermId app(TermId head, const Value* const* args, uint32_t count, uint32_t depth) {
    if (count == 0) return head;
    const Slice items = list(args, count, depth);
    return add(TermKind::App, head.index, items.offset, items.length);
  }
  TermId eta(const Value* fn, const Value* type, uint32_t depth) {
    type = m_.whnf(type);
    const bool typed = type->tag == Tag::All;
    const Name name = typed ? m_.binder_name(type) : ellipsis_;
    const Value* x = m_.var(depth, name, m_.error());
    const TermId body = quote(m_.apply(fn, x), depth + 1);
    return add(TermKind::Lam, body.index, kN, kN, name, typed && m_.binder_quantity(type) == Quantity::Many ? Quantity::Many : Quantity::Lone);
  }
  // A chain along the last field is walked by a loop: lists of 10^5 elements are ordinary values.
  TermId constructor(const Value* v, uint32_t depth) {
    if (const TermId literal = as_literal(v); literal.valid()) return literal;
    struct Layer {
      uint32_t ctor;
      std::vector<TermId> fields;
    };
    std::vector<Layer> layers;
    TermId last;
    while (v->tag == Tag::Ctr && as<CtrValue>(v)->count != 0) {
      if (!layers.empty()) {
        if (const TermId literal = as_literal(v); literal.valid()) {
          last = literal;
          break;
        }
        if (limit_ != 0 && ++count_ > limit_) {
          last = add(TermKind::Hole, kN, kN, kN, ellipsis_);
          break;
        }
      }
      const CtrValue* c = as<CtrValue>(v);
      Layer layer{c->a, {}};
      for (uint32_t i = 0; i + 1 < c->count; ++i) layer.fields.push_back(quote(c->fields[i], depth));
      layers.push_back(std::move(layer));
      const Value* next = c->fields[c->count - 1];
      v = normal_ ? m_.whnf(next) : m_.force(next);
      if (m_.halt() != Halt::None) break;
    }
    if (!last.valid()) {
      last = v->tag == Tag::Ctr ? add(TermKind::Ctr, v->a, book_.lists.add({}).offset, 0) : quote(v, depth);
    }
    for (size_t i = layers.size(); i-- > 0;) {
      layers[i].fields.push_back(last);
      const Slice items = book_.lists.add(layers[i].fields);
      last = add(TermKind::Ctr, layers[i].ctor, items.offset, items.length);
    }
    return last;
  }
  // A closed word, number or text built from constructors, as the literal it is.
  TermId as_literal(const Value* v) {
    if (!normal_) return {};
    const KnownNames& k = m_.known();
    const CtrValue* c = as<CtrValue>(v);
    if ((c->a == k.u32.index && k.u32_type.valid()) || (c->a == k.f32.index && k.f32_type.valid())) {
      uint32_t bits = 0;
      const Value* word = c->fields[0];
      for (uint32_t i = 0; i < 32; ++i) {
        word = m_.whnf(word);
        if (word->tag != Tag::Ctr || as<CtrValue>(word)->count != 2) return {};
        const Value* bit = m_.whnf(as<CtrValue>(word)->fields[0]);
        if (bit->tag != Tag::Ctr) return {};
        if (bit->a == k.true_.index) bits |= 1u << i;
        word = as<CtrValue>(word)->fields[1];
      }
      return add(c->a == k.u32.index ? TermKind::U32 : TermKind::F32, bits);
    }
    if (c->a == k.zero.index && k.nat.valid()) return nat(0);
    if (c->a == k.succ.index && k.nat.valid()) {
      uint64_t n = 0;
      const Value* rest = v;
      while (rest->tag == Tag::Ctr && as<CtrValue>(rest)->count == 1) {
        ++n;
        rest = m_.whnf(as<CtrValue>(rest)->fields[0]);
      }
      if (rest->tag == Tag::Ctr) return nat(n);
      if (rest->tag == Tag::Nat) return nat(n + as<NumberValue>(rest)->number);
      return {};
    }
    if ((c->a == k.scon.index || c->a == k.snil.index) && k.string.valid()) {
      std::u32string text;
      const Value* rest = v;
      while (rest->tag == Tag::Ctr && as<CtrValue>(rest)->count == 2) {
        const Value* chr = m_.whnf(as<CtrValue>(rest)->fields[0]);
        if (chr->tag != Tag::Ctr || as<CtrValue>(chr)->count != 1) return {};
        const Value* code = m_.whnf(as<CtrValue>(chr)->fields[0]);
        if (code->tag != Tag::U32) return {};
        text.push_back(static_cast<char32_t>(as<NumberValue>(code)->number));
        rest = m_.whnf(as<CtrValue>(rest)->fields[1]);
      }
      if (rest->tag == Tag::Str) {
        text += book_.strings[rest->a].substr(as<NumberValue>(rest)->number);
      } else if (rest->tag != Tag::Ctr) {
        return {};
      }
      return string(std::move(text));
    }
    return {};
  }

  Machine& m_;
  core::Book& book_;
  bool normal_;
  uint32_t limit_;
  uint32_t count_ = 0;
  Name ellipsis_;
};

const Value* Machine::all_of_partial(const CallValue* c) {
  const Value* t = all_of_def(DefId(c->a));
  for (uint32_t i = 0; i < c->count; ++i) {
    t = whnf(t);
    if (t->tag != Tag::All) return &error_;
    t = codomain(t, c->args[i]);
  }
  return t;
}

TermId Machine::quote(core::Book& book, const Value* v, uint32_t depth, bool normal, uint32_t limit, Name ellipsis) {
  return Quoter(*this, book, normal, limit, ellipsis).quote(v, depth);
}

}  // namespace bendc
