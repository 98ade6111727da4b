// The evaluator, conversion, descent and usage vectors on books built by hand.
#include "checker/eval.h"

#include <doctest/doctest.h>

#include "checker/convert.h"
#include "checker/machine.h"
#include "checker/quantity.h"
#include "checker/termination.h"

using namespace bendc;
using core::CtorId;
using core::DataId;
using core::DefId;
using core::Quantity;
using core::Term;
using core::TermId;
using core::TermKind;

namespace {

// Nat, and add(a, b) by recursion on a.
struct NatBook {
  Interner names;
  core::Book book;
  DataId nat;
  CtorId zero, succ;
  DefId add, spin;

  TermId make(TermKind kind, uint32_t a = TermId::kNone, uint32_t b = TermId::kNone, uint32_t c = TermId::kNone) {
    Term t;
    t.kind = kind;
    t.a = a;
    t.b = b;
    t.c = c;
    return book.add(t, {});
  }
  TermId var(uint32_t level) { return make(TermKind::Var, level); }
  TermId number(uint32_t n) { return make(TermKind::Nat, n); }
  TermId lam(TermId body) { return make(TermKind::Lam, body.index); }
  TermId many(TermKind kind, uint32_t head, std::vector<TermId> items) {
    const Slice s = book.lists.add(items);
    return make(kind, head, s.offset, s.length);
  }
  TermId ref(DefId def) { return make(TermKind::Ref, def.index); }
  TermId app(TermId head, std::vector<TermId> args) { return many(TermKind::App, head.index, std::move(args)); }
  TermId succ_of(TermId n) { return many(TermKind::Ctr, succ.index, {n}); }
  TermId arrow(TermId to) { return make(TermKind::All, make(TermKind::Adt, nat.index, 0, 0).index, to.index); }

  NatBook() {
    book.module_keys.push_back("");
    book.module_is_stdlib.push_back(false);
    core::Datatype data;
    data.name = names.intern("Nat");
    nat = book.datatypes.add(data);
    book.datatypes[nat].kind = make(TermKind::Kind, make(TermKind::Qua, 2).index);
    core::Ctor z;
    z.name = names.intern("Zero");
    z.data = nat;
    zero = book.ctors.add(z);
    core::Ctor s;
    s.name = names.intern("Succ");
    s.data = nat;
    s.index = 1;
    s.fields.push_back({names.intern("pred"), Quantity::Lone, make(TermKind::Adt, nat.index, 0, 0), {}});
    succ = book.ctors.add(s);
    book.datatypes[nat].ctors = {zero, succ};

    core::Def def;
    def.name = names.intern("add");
    def.arity = 2;
    add = book.defs.add(def);
    // Mat(Zero, b. b; Mat(Succ, p. b. Succ{add(p, b)}; Efq))
    const TermId tail = make(TermKind::Mat, succ.index, lam(lam(succ_of(app(ref(add), {var(0), var(1)})))).index, make(TermKind::Efq).index);
    const TermId body = make(TermKind::Mat, zero.index, lam(var(0)).index, tail.index);
    const TermId type = arrow(arrow(make(TermKind::Adt, nat.index, 0, 0)));
    book.defs[add].body = body;
    book.defs[add].type = type;

    core::Def loop;
    loop.name = names.intern("spin");
    loop.arity = 1;
    spin = book.defs.add(loop);
    const TermId loop_body = lam(app(ref(spin), {var(0)}));
    const TermId loop_type = arrow(make(TermKind::Adt, nat.index, 0, 0));
    book.defs[spin].body = loop_body;
    book.defs[spin].type = loop_type;
  }
};

}  // namespace

TEST_CASE("environments find every level") {
  NatBook b;
  Machine m(b.book, b.names, {});
  const Env* env = m.empty();
  std::vector<const Value*> values;
  for (uint32_t i = 0; i < 1000; ++i) {
    values.push_back(m.number(Tag::Nat, i));
    env = m.extend(env, values.back());
  }
  for (uint32_t i = 0; i < 1000; ++i) CHECK(Machine::lookup(env, i) == values[i]);
  CHECK(Machine::lookup(env, 1000) == nullptr);
}

TEST_CASE("a call computes on literals and stays folded on variables") {
  NatBook b;
  Evaluator e(b.book, b.names);
  const TermId sum = b.app(b.ref(b.add), {b.number(2), b.number(3)});
  const TermId normal = e.quote(b.book, e.eval(sum, e.empty()), 0, true);
  CHECK(core::print_term(b.book, b.names, normal) == "Succ{Succ{3n}}");

  const Value* x = e.fresh(0, b.names.intern("x"), nullptr);
  const Env* env = e.extend(e.empty(), x);
  const TermId stuck = b.app(b.ref(b.add), {b.var(0), b.number(3)});
  const Value* v = e.eval(stuck, env);
  CHECK(e.kind(v) == ValueKind::Neutral);
  REQUIRE(e.call(v).has_value());
  CHECK(e.call(v)->def == b.add);
  const TermId one_more = b.app(b.ref(b.add), {b.succ_of(b.var(0)), b.number(3)});
  const Value* w = e.eval(one_more, env);
  CHECK(e.kind(w) == ValueKind::Ctr);
}

TEST_CASE("unfolding is transactional: a match stuck below a constructor gives the call back") {
  NatBook b;
  // f(n) = match n: Succ{p}: match p: Zero: n..: stuck on p although n is a constructor.
  core::Def def;
  def.name = b.names.intern("f");
  def.arity = 1;
  const DefId f = b.book.defs.add(def);
  const TermId inner = b.make(TermKind::Mat, b.zero.index, b.number(0).index, b.make(TermKind::Efq).index);
  const TermId body = b.make(TermKind::Mat, b.succ.index, inner.index, b.make(TermKind::Efq).index);
  b.book.defs[f].body = body;
  b.book.defs[f].type = b.arrow(b.make(TermKind::Adt, b.nat.index, 0, 0));
  Evaluator e(b.book, b.names);
  const Env* env = e.extend(e.empty(), e.fresh(0, b.names.intern("x"), nullptr));
  const TermId stuck = b.app(b.ref(f), {b.succ_of(b.var(0))});
  const Value* v = e.eval(stuck, env);
  REQUIRE(e.call(v).has_value());
  CHECK(e.call(v)->def == f);
}

TEST_CASE("fuel ends an endless computation") {
  NatBook b;
  Evaluator e(b.book, b.names, {.fuel = 1000});
  const TermId endless = b.app(b.ref(b.spin), {b.number(0)});
  CHECK(e.kind(e.eval(endless, e.empty())) == ValueKind::Error);
  CHECK(e.out_of_fuel());
}

TEST_CASE("conversion: literals against constructors, eta, folded calls first") {
  NatBook b;
  Machine m(b.book, b.names, {.fuel = 100000});
  Converter c(m);
  auto eval = [&](TermId t, const Env* env) { return m.delay(t, env); };
  CHECK(c.equal(eval(b.number(2), m.empty()), eval(b.succ_of(b.succ_of(b.number(0))), m.empty()), 0));
  CHECK_FALSE(c.equal(eval(b.number(2), m.empty()), eval(b.succ_of(b.number(0)), m.empty()), 0));
  // add == x => y => add(x, y)
  const TermId expanded = b.lam(b.lam(b.app(b.ref(b.add), {b.var(0), b.var(1)})));
  CHECK(c.equal(eval(b.ref(b.add), m.empty()), eval(expanded, m.empty()), 0));
  // spin(x) == spin(x) without unfolding it.
  const Env* env = m.extend(m.empty(), m.var(0, b.names.intern("x"), nullptr));
  const TermId left = b.app(b.ref(b.spin), {b.var(0)});
  const TermId right = b.app(b.ref(b.spin), {b.var(0)});
  CHECK(c.equal(eval(left, env), eval(right, env), 1));
  CHECK(m.halt() == Halt::None);
}

TEST_CASE("conversion of shared cells is linear") {
  NatBook b;
  core::Datatype tree;
  tree.name = b.names.intern("T");
  const DataId data = b.book.datatypes.add(tree);
  core::Ctor node;
  node.name = b.names.intern("Node");
  node.data = data;
  node.fields.resize(2);
  const CtorId id = b.book.ctors.add(node);
  Machine m(b.book, b.names, {.fuel = 1000000});
  const Value* x = m.number(Tag::Nat, 1);
  const Value* y = m.number(Tag::Nat, 1);
  for (int i = 0; i < 200; ++i) {
    x = m.ctor(id, {x, x});
    y = m.ctor(id, {y, y});
  }
  Converter c(m);
  CHECK(c.equal(x, y, 0));
  CHECK(m.halt() == Halt::None);
}

TEST_CASE("descent compares with patterns from left to right") {
  NatBook b;
  Machine m(b.book, b.names, {});
  Descent d(m);
  const Value* p = m.var(0, b.names.intern("p"), nullptr);
  const Value* q = m.var(1, b.names.intern("q"), nullptr);
  const Value* sp = m.ctor(b.succ, {p});
  CHECK(d.compare(p, sp) == Order::Less);
  CHECK(d.compare(sp, sp) == Order::Equal);
  CHECK(d.compare(m.ctor(b.succ, {p}), sp) == Order::Equal);
  CHECK(d.compare(m.ctor(b.succ, {sp}), sp) == Order::Greater);
  CHECK(d.compare(q, sp) == Order::Greater);
  CHECK(d.compare(m.number(Tag::Nat, 8), m.number(Tag::Nat, 400)) == Order::Less);
  CHECK(d.compare(m.number(Tag::Nat, 9), m.number(Tag::Nat, 8)) == Order::Greater);
  const Value* patterns[] = {sp, q};
  const Value* shrinking[] = {p, sp};
  const Value* growing[] = {sp, m.ctor(b.succ, {q})};
  CHECK(d.lexicographic(shrinking, patterns, {false, false}).descends);
  const Descent::Result bad = d.lexicographic(growing, patterns, {false, false});
  CHECK_FALSE(bad.descends);
  CHECK(bad.failing == 1);
}

TEST_CASE("uses of branches are joined, uses in sequence are added") {
  Usage u;
  u.push();
  u.push();
  const size_t mark = u.mark();
  CHECK(u.use(0, TermId(1)) == Quantity::Lone);
  std::vector<Usage::Saved> saved;
  u.rewind(mark, saved);
  CHECK(u.use(1, TermId(2)) == Quantity::Lone);
  for (const Usage::Saved& s : saved) u.join(s);
  CHECK(u.first_use(0) == TermId(1));
  CHECK(u.use(0, TermId(3)) == Quantity::Many);
  CHECK(u.use(1, TermId(4)) == Quantity::Many);
}
