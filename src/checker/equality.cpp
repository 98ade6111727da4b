// Equality proofs (language.md 5.9): `{==}` and rewriting.
#include <fmt/format.h>

#include "checker/typecheck.h"

namespace bendc {

using core::Quantity;
using core::Term;
using core::TermId;
using core::TermKind;

void Checker::check_reflexivity(TermId id, const Value* goal) {
  const Value* type = m_.whnf(goal);
  if (is_error(type) || halted(id)) return;
  if (type->tag != Tag::Eql) {
    Diagnostic& d = report(Code::C17, span(id), "`{==}` where no equation is to be proved");
    d.expected = show(goal);
    d.observed = "{==}";
    d.notes.push_back("`{==}` proves `{a == b : T}` when both sides compute to the same value");
    return;
  }
  const EqlValue* e = as<EqlValue>(type);
  if (equal(e->left, e->right, id)) return;
  Diagnostic& d = report(Code::C17, span(id), "the two sides are different");
  d.expected = show(e->left);
  d.observed = show(e->right);
  const std::string left = show_normal(e->left);
  const std::string right = show_normal(e->right);
  if (left != d.expected || right != d.observed) {
    d.notes.push_back(fmt::format("the left side computes to  `{}`", left));
    d.notes.push_back(fmt::format("the right side computes to `{}`", right));
  }
  d.notes.push_back("`{==}` needs both sides to compute to the same value; a variable stops the computation");
  d.fix = "match on what stops it, or rewrite by an equation first: `%e : P; ...`";
}

// `%e : P; f`: e : {a == b : A}, P[b, e] fits the goal, and f is checked against P[a, {==}].
bool Checker::open_rewrite(TermId id, const Env* env, const Value*& goal, bool live) {
  const Term t = term(id);
  const Value* evidence_type = m_.whnf(infer(TermId(t.a), env, live));
  if (halted(id)) return false;
  const bool known = evidence_type->tag == Tag::Eql;
  if (!known && !is_error(evidence_type)) {
    Diagnostic& d = report(Code::C18, span(TermId(t.a)), "the evidence of a rewrite is no equation");
    d.expected = "{a == b : T}";
    d.observed = show(evidence_type);
    return false;
  }
  if (!known) return false;
  const EqlValue* e = as<EqlValue>(evidence_type);

  // The motive: two lambdas, the right endpoint `_` and the evidence, around a type.
  const Term outer = term(TermId(t.b));
  if (outer.kind != TermKind::Lam || term(TermId(outer.a)).kind != TermKind::Lam) return false;
  const Term inner = term(TermId(outer.a));
  const uint32_t base = depth();
  const Value* x = bind(outer.name, Quantity::None, e->type, span(TermId(t.b)));
  const Value* h = bind(inner.name, Quantity::None, m_.eql(e->left, x, e->type), span(TermId(outer.a)));
  const uint32_t errors = reported_;
  (void)check_type(TermId(inner.a), m_.extend(m_.extend(env, x), h));
  unbind(base);
  if (reported_ != errors) return false;

  const Value* value = m_.delay(TermId(t.a), env);
  const Value* before = m_.delay(TermId(inner.a), m_.extend(m_.extend(env, e->right), value));
  if (!fits(before, goal, id)) {
    Diagnostic& d = report(Code::C18, span(id), "the motive of the rewrite does not give the goal");
    d.expected = show(goal);
    d.observed = show(before);
    d.notes.push_back(fmt::format("the evidence proves `{}`; in the motive `_` stands for its right side `{}`", show(evidence_type), show(e->right)));
    return false;
  }
  goal = m_.delay(TermId(inner.a), m_.extend(m_.extend(env, e->left), m_.rfl()));
  return true;
}

}  // namespace bendc
