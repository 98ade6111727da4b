// Conversion: folded comparison first (no unfolding, bounded), then by head normal forms; eta for functions; literals step.
#include "checker/convert.h"

namespace bendc {

using core::CtorId;
using core::DefId;
using core::Quantity;
using core::TermId;
using core::TermKind;

namespace {

// A folded comparison that needs more is given up and decided by unfolding; keeps nested probes linear.
constexpr uint64_t kProbeSteps = 2048;
// Comparisons of at least this many steps are remembered, so that shared cells cost once.
constexpr uint64_t kRememberSteps = 6;

bool is_function(const Value* v) { return v->tag == Tag::Lam || v->tag == Tag::Mat || v->tag == Tag::MatLit || v->tag == Tag::Efq; }
bool is_literal(const Value* v) { return v->tag == Tag::Nat || v->tag == Tag::U32 || v->tag == Tag::F32 || v->tag == Tag::Str; }

size_t slot_of(const Value* a, const Value* b, size_t mask) {
  const size_t h = (reinterpret_cast<size_t>(a) >> 3) * 0x9E3779B97F4A7C15ull ^ (reinterpret_cast<size_t>(b) >> 3) * 0xC2B2AE3D27D4EB4Full;
  return (h >> 20) & mask;
}

}  // namespace

bool Converter::known_equal(const Value* a, const Value* b) const {
  if (seen_count_ == 0) return false;
  const size_t mask = seen_.size() - 1;
  for (size_t i = slot_of(a, b, mask);; i = (i + 1) & mask) {
    if (seen_[i].a == nullptr) return false;
    if (seen_[i].a == a && seen_[i].b == b) return true;
  }
}

void Converter::remember(const Value* a, const Value* b) {
  if (seen_.empty() || seen_count_ * 2 >= seen_.size()) {
    std::vector<Pair> old = std::move(seen_);
    seen_.assign(old.empty() ? 64 : old.size() * 2, Pair{nullptr, nullptr});
    seen_count_ = 0;
    for (const Pair& p : old) {
      if (p.a != nullptr) remember(p.a, p.b);
    }
  }
  const size_t mask = seen_.size() - 1;
  size_t i = slot_of(a, b, mask);
  while (seen_[i].a != nullptr) {
    if (seen_[i].a == a && seen_[i].b == b) return;
    i = (i + 1) & mask;
  }
  seen_[i] = {a, b};
  ++seen_count_;
}

bool Converter::start(const Value* a, const Value* b, uint32_t depth, bool subtype) {
  if (seen_count_ != 0) {
    seen_.assign(64, Pair{nullptr, nullptr});
    seen_count_ = 0;
  }
  probing_ = false;
  return convert(a, b, depth, subtype, true);
}

bool Converter::convert(const Value* a, const Value* b, uint32_t depth, bool subtype, bool unfold) {
  if (m_.deep()) return true;  // halted: reported by the caller
  const uint64_t before = steps_;
  const Value* first_a = a;
  const Value* first_b = b;
  bool more = true;
  bool result = true;
  while (more) {
    ++steps_;
    if (probing_ && probe_left_-- == 0) {
      probe_left_ = 0;
      return false;
    }
    if ((steps_ & 0xF) == 0 && !m_.tick()) return true;
    more = false;
    a = m_.force(a);
    b = m_.force(b);
    if (a == b || known_equal(a, b)) {
      result = true;
    } else {
      result = structure(a, b, depth, subtype, unfold, more);
      subtype = false;  // what `more` continues with is an equality
    }
  }
  if (result && !subtype && steps_ - before >= kRememberSteps) remember(m_.force(first_a), m_.force(first_b));
  return result;
}

bool Converter::lists(const Value* const* a, const Value* const* b, uint32_t count, uint32_t depth, bool unfold) {
  for (uint32_t i = 0; i < count; ++i) {
    if (a[i] != b[i] && !convert(a[i], b[i], depth, false, unfold)) return false;
  }
  return true;
}

bool Converter::closures(const ClosureValue* a, const ClosureValue* b, uint32_t depth, bool unfold) {
  for (;;) {
    if (a->a == b->a && a->env == b->env) return true;
    if (a->tag != b->tag) return false;
    const core::Term& x = m_.book().terms[TermId(a->a)];
    const core::Term& y = m_.book().terms[TermId(b->a)];
    if (a->tag == Tag::Efq) return true;
    if (a->tag == Tag::Mat) {
      if (x.a != y.a) return false;
    } else {
      const core::Term& p = m_.book().terms[TermId(x.a)];
      const core::Term& q = m_.book().terms[TermId(y.a)];
      if (p.kind != q.kind || p.a != q.a) return false;
    }
    if (!convert(m_.delay(TermId(x.b), a->env), m_.delay(TermId(y.b), b->env), depth, false, unfold)) return false;
    const Value* next_a = m_.eval(TermId(x.c), a->env);
    const Value* next_b = m_.eval(TermId(y.c), b->env);
    if (!is_function(next_a) || !is_function(next_b) || next_a->tag == Tag::Lam || next_b->tag == Tag::Lam) {
      return convert(next_a, next_b, depth, false, unfold);
    }
    a = as<ClosureValue>(next_a);
    b = as<ClosureValue>(next_b);
  }
}

// One layer. When the last component is to be compared in turn, `a` and `b` become its two sides and `more` is set.
bool Converter::structure(const Value*& a, const Value*& b, uint32_t depth, bool subtype, bool unfold, bool& more) {
  if (a->tag == Tag::Error || b->tag == Tag::Error) return true;

  if (a->tag == Tag::Call || b->tag == Tag::Call) {
    if (a->tag == Tag::Call && b->tag == Tag::Call) {
      const CallValue* x = as<CallValue>(a);
      const CallValue* y = as<CallValue>(b);
      if (x->a == y->a && x->count == y->count) {
        if (!unfold) return lists(x->args, y->args, x->count, depth, false);
        if (x->count == 0) return true;
        // Folded first, unless both are known to be stuck: then the arguments decide.
        const bool outer = !probing_;
        if (outer) {
          probing_ = true;
          probe_left_ = kProbeSteps;
        }
        const bool same = lists(x->args, y->args, x->count, depth, false);
        if (outer) probing_ = false;
        if (same) return true;
      }
    }
    if (!unfold) {
      // A partial call against a function can still be compared by eta below; a saturated one cannot.
      const bool a_ok = a->tag != Tag::Call || m_.is_partial(as<CallValue>(a));
      const bool b_ok = b->tag != Tag::Call || m_.is_partial(as<CallValue>(b));
      if (!a_ok || !b_ok) return false;
    } else {
      a = m_.whnf(a);
      b = m_.whnf(b);
      if (a == b) return true;
      if (a->tag == Tag::Error || b->tag == Tag::Error) return true;
    }
    const bool a_partial = a->tag == Tag::Call && m_.is_partial(as<CallValue>(a));
    const bool b_partial = b->tag == Tag::Call && m_.is_partial(as<CallValue>(b));
    if (a->tag == Tag::Call && b->tag == Tag::Call) {
      const CallValue* x = as<CallValue>(a);
      const CallValue* y = as<CallValue>(b);
      if (x->a == y->a && x->count == y->count) return lists(x->args, y->args, x->count, depth, unfold);
    }
    if (a_partial || b_partial) {
      const Value* x = m_.var(depth, m_.book().terms.size() != 0 ? Name{} : Name{}, m_.error());
      a = m_.apply(a, x);
      b = m_.apply(b, x);
      if (a->tag == Tag::Error || b->tag == Tag::Error) return false;  // one side is no function
      return convert(a, b, depth + 1, false, unfold);
    }
    if (a->tag == Tag::Call || b->tag == Tag::Call) {
      if (!is_function(a) && !is_function(b)) return false;
    }
  }

  if (is_function(a) || is_function(b)) {
    if (is_function(a) && is_function(b) && a->tag == b->tag && a->tag != Tag::Lam) {
      return closures(as<ClosureValue>(a), as<ClosureValue>(b), depth, unfold);
    }
    Name name{};
    if (a->tag == Tag::Lam) name = m_.book().terms[TermId(a->a)].name;
    const Value* x = m_.var(depth, name, m_.error());
    const Value* left = m_.apply(a, x);
    const Value* right = m_.apply(b, x);
    if ((left->tag == Tag::Error) != (right->tag == Tag::Error)) return false;
    return convert(left, right, depth + 1, false, unfold);
  }

  if (is_literal(a) != is_literal(b)) {
    if (is_literal(a) && b->tag == Tag::Ctr) {
      const Value* layer = m_.step(a);
      if (layer == nullptr) return false;
      a = layer;
    } else if (is_literal(b) && a->tag == Tag::Ctr) {
      const Value* layer = m_.step(b);
      if (layer == nullptr) return false;
      b = layer;
    } else {
      return false;
    }
  }
  if (a->tag != b->tag) return false;

  switch (a->tag) {
    case Tag::Thunk: case Tag::Forward: case Tag::Error: case Tag::Lam: case Tag::Mat: case Tag::MatLit: case Tag::Efq: case Tag::Call:
      return false;
    case Tag::Var:
      return a->a == b->a;
    case Tag::App: {
      if (a->a != b->a) return false;
      return convert(as<AppValue>(a)->head, as<AppValue>(b)->head, depth, false, unfold) &&
             lists(as<AppValue>(a)->args, as<AppValue>(b)->args, a->a, depth, unfold);
    }
    case Tag::StuckMatch: {
      const StuckMatchValue* x = as<StuckMatchValue>(a);
      const StuckMatchValue* y = as<StuckMatchValue>(b);
      return convert(x->scrutinee, y->scrutinee, depth, false, unfold) && closures(x->fn, y->fn, depth, unfold);
    }
    case Tag::StuckRewrite: {
      const StuckRewriteValue* x = as<StuckRewriteValue>(a);
      const StuckRewriteValue* y = as<StuckRewriteValue>(b);
      if (!convert(x->evidence, y->evidence, depth, false, unfold)) return false;
      if (x->a == y->a && x->env == y->env) return true;
      const core::Term& s = m_.book().terms[TermId(x->a)];
      const core::Term& t = m_.book().terms[TermId(y->a)];
      return convert(m_.delay(TermId(s.b), x->env), m_.delay(TermId(t.b), y->env), depth, false, unfold) &&
             convert(m_.delay(TermId(s.c), x->env), m_.delay(TermId(t.c), y->env), depth, false, unfold);
    }
    case Tag::Kind:
      if (subtype) return quantity_fits(as<KindValue>(a)->of, as<KindValue>(b)->of, depth);
      a = as<KindValue>(a)->of;
      b = as<KindValue>(b)->of;
      more = true;
      return true;
    case Tag::Quant: case Tag::Rfl:
      return true;
    case Tag::Qua: case Tag::U32: case Tag::F32: case Tag::Nat:
      return as<NumberValue>(a)->number == as<NumberValue>(b)->number;
    case Tag::Str: {
      const NumberValue* x = as<NumberValue>(a);
      const NumberValue* y = as<NumberValue>(b);
      const uint32_t length = m_.string_length(x);
      if (length != m_.string_length(y)) return false;
      for (uint32_t i = 0; i < length; ++i) {
        if (m_.string_at(x, i) != m_.string_at(y, i)) return false;
      }
      return true;
    }
    case Tag::Meet:
      return convert(as<PairValue>(a)->left, as<PairValue>(b)->left, depth, false, unfold) &&
             convert(as<PairValue>(a)->right, as<PairValue>(b)->right, depth, false, unfold);
    case Tag::All: {
      if (m_.binder_quantity(a) != m_.binder_quantity(b)) return false;
      if (a->flags != kTelescope && b->flags != kTelescope && a->a == b->a && as<AllValue>(a)->env == as<AllValue>(b)->env &&
          as<AllValue>(a)->domain == as<AllValue>(b)->domain) {
        return true;
      }
      const Value* domain = m_.domain(b);
      if (!convert(domain, m_.domain(a), depth, subtype, unfold)) return false;
      const Value* x = m_.var(depth, m_.binder_name(b), domain);
      return convert(m_.codomain(a, x), m_.codomain(b, x), depth + 1, subtype, unfold);
    }
    case Tag::Adt: {
      const AdtValue* x = as<AdtValue>(a);
      const AdtValue* y = as<AdtValue>(b);
      if (x->a != y->a || x->count != y->count) return false;
      if (!x->removed.contains(y->removed) || (!subtype && x->removed.size() != y->removed.size())) return false;
      return lists(x->args, y->args, x->count, depth, unfold);
    }
    case Tag::Ctr: {
      const CtrValue* x = as<CtrValue>(a);
      const CtrValue* y = as<CtrValue>(b);
      if (x->a != y->a || x->count != y->count) return false;
      if (x->count == 0) return true;
      if (!lists(x->fields, y->fields, x->count - 1, depth, unfold)) return false;
      a = x->fields[x->count - 1];
      b = y->fields[x->count - 1];
      more = true;
      return true;
    }
    case Tag::Eql: {
      const EqlValue* x = as<EqlValue>(a);
      const EqlValue* y = as<EqlValue>(b);
      return convert(x->left, y->left, depth, false, unfold) && convert(x->right, y->right, depth, false, unfold) &&
             convert(x->type, y->type, depth, false, unfold);
    }
    case Tag::Hole:
      return as<HoleValue>(a)->name == as<HoleValue>(b)->name;
  }
  return false;
}

bool Converter::quantity_fits(const Value* g, const Value* h, uint32_t depth) {
  g = m_.whnf(g);
  h = m_.whnf(h);
  if (g == h || g->tag == Tag::Error || h->tag == Tag::Error) return true;
  if (g->tag == Tag::Qua && as<NumberValue>(g)->number == 2) return true;
  if (h->tag == Tag::Qua && as<NumberValue>(h)->number < 2) return true;
  if (m_.deep()) return true;
  if (g->tag == Tag::Meet) return quantity_fits(as<PairValue>(g)->left, h, depth) && quantity_fits(as<PairValue>(g)->right, h, depth);
  if (h->tag == Tag::Meet) return quantity_fits(g, as<PairValue>(h)->left, depth) || quantity_fits(g, as<PairValue>(h)->right, depth);
  return convert(g, h, depth, false, true);
}

const Value* Converter::kind_quantity(const Value* type, uint32_t depth) {
  type = m_.force(type);
  switch (type->tag) {
    case Tag::Error:
      return type;
    case Tag::Kind: case Tag::Quant: case Tag::All:
      return m_.qua(Quantity::Lone);
    case Tag::Eql:
      return m_.qua(Quantity::Many);
    case Tag::Adt: {
      const AdtValue* adt = as<AdtValue>(type);
      const Value* kind = m_.whnf(m_.delay(m_.book().datatypes[core::DataId(adt->a)].kind, m_.env_of(adt)));
      return kind->tag == Tag::Kind ? m_.force(as<KindValue>(kind)->of) : kind->tag == Tag::Error ? kind : nullptr;
    }
    case Tag::Call: case Tag::Var: case Tag::App: {
      const Value* t = nullptr;
      const Value* const* args = nullptr;
      uint32_t count = 0;
      if (type->tag == Tag::Call) {
        t = m_.all_of_def(DefId(type->a));
        args = as<CallValue>(type)->args;
        count = as<CallValue>(type)->count;
      } else if (type->tag == Tag::Var) {
        t = as<VarValue>(type)->type;
      } else {
        const Value* head = as<AppValue>(type)->head;
        if (head->tag != Tag::Var) break;
        t = as<VarValue>(head)->type;
        args = as<AppValue>(type)->args;
        count = type->a;
      }
      for (uint32_t i = 0; i < count; ++i) {
        t = m_.whnf(t);
        if (t->tag == Tag::Error) return t;
        if (t->tag != Tag::All) return nullptr;
        t = m_.codomain(t, args[i]);
      }
      t = m_.whnf(t);
      return t->tag == Tag::Kind ? m_.force(as<KindValue>(t)->of) : t->tag == Tag::Error ? t : nullptr;
    }
    case Tag::StuckMatch: case Tag::StuckRewrite: case Tag::Thunk: case Tag::Forward: case Tag::Lam: case Tag::Mat: case Tag::MatLit:
    case Tag::Efq: case Tag::Qua: case Tag::Meet: case Tag::Ctr: case Tag::U32: case Tag::Nat: case Tag::F32: case Tag::Str: case Tag::Rfl:
    case Tag::Hole:
      break;
  }
  (void)depth;
  return m_.qua(Quantity::Lone);  // a stuck type-level match: nothing better than Type is known
}

}  // namespace bendc
