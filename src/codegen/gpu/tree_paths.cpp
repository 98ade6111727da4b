// Both functions are straight lines of pure lets, so one symbolic run of each says what every word of the result is made of.
#include "codegen/gpu/tree_paths.h"

#include "codegen/gpu/symbolic_terms.h"
#include "codegen/prim_types.h"
#include "codegen/walk.h"

namespace bendc {

using namespace flow;

namespace {

// The form of word k, of which the children get `left` and `right`.
std::optional<PathForm> form_of(const Terms& t, uint32_t k, uint32_t left, uint32_t right, uint32_t depth) {
  PathForm form;
  auto less = [&](uint32_t id) { return t.is_prim(id, Prim::NatPred) && t.is_param(t[id].operands[0], depth); };
  auto other_operand = [&](uint32_t id, auto&& one) -> std::optional<uint32_t> {
    const std::vector<uint32_t>& o = t[id].operands;
    if (o.size() != 2) return std::nullopt;
    return one(o[0]) ? std::optional(o[1]) : one(o[1]) ? std::optional(o[0]) : std::nullopt;
  };
  if (k == depth) {
    form.kind = PathForm::Kind::Depth;
    return less(left) && less(right) ? std::optional(form) : std::nullopt;
  }
  if (t[left].kind == Term::Kind::Param && t[right].kind == Term::Kind::Param) {
    form.left = static_cast<uint32_t>(t[left].number);
    form.right = static_cast<uint32_t>(t[right].number);
    return form;
  }
  if (!t.is_prim(right, Prim::U32Add)) return std::nullopt;
  if (t.is_prim(left, Prim::U32Mul)) {
    const auto factor = other_operand(left, [&](uint32_t id) { return t.is_param(id, k); });
    const auto added = other_operand(right, [&](uint32_t id) { return id == left; });
    if (!factor || !t.is_const(*factor, 2) || !added || !t.is_const(*added, 1)) return std::nullopt;
    form.kind = PathForm::Kind::Number;
    return form;
  }
  if (!t.is_param(left, k)) return std::nullopt;
  const auto added = other_operand(right, [&](uint32_t id) { return id == left; });
  if (!added || !t.is_prim(*added, Prim::U32Shln) || !less(t[*added].operands[1]) || t[t[*added].operands[0]].kind != Term::Kind::Const) return std::nullopt;
  form.kind = PathForm::Kind::Spread;
  form.factor = static_cast<uint32_t>(t[t[*added].operands[0]].number);
  return form;
}

}  // namespace

std::optional<StepWords> step_words(const Module& module, Terms& terms, FuncId step) {
  const Func& func = module.funcs[step];
  NodeId at = func.body;
  if (!terms.run(at, func.params.back())) return std::nullopt;
  const Node& choice = module.nodes[at];
  if (choice.kind != NodeKind::Case || choice.arms.size() != 2) return std::nullopt;
  Terms::Words child[2];
  for (const Arm& arm : choice.arms) {
    NodeId body = arm.body;
    std::optional<Terms::Words> words = terms.run(body, VarId());
    if (!words || arm.value > 1) return std::nullopt;
    child[arm.value] = std::move(*words);
  }
  if (child[0].size() != child[1].size()) return std::nullopt;
  return StepWords{std::move(child[0]), std::move(child[1])};
}

std::vector<std::optional<PathForm>> word_forms(const Module& module, FuncId step, uint32_t measure) {
  Terms terms(module);
  const Func& func = module.funcs[step];
  terms.params(step, func.params.size() - 1);
  size_t depth = 0;
  for (uint32_t i = 0; i < measure; ++i) depth += terms.leaves(module.vars[func.params[i]].type);
  const std::optional<StepWords> child = step_words(module, terms, step);
  if (!child) return {};
  std::vector<std::optional<PathForm>> out;
  for (uint32_t k = 0; k < child->left.size(); ++k) out.push_back(form_of(terms, k, child->left[k], child->right[k], static_cast<uint32_t>(depth)));
  // A second step must leave alone what the first one copied.
  for (bool changed = true; changed;) {
    changed = false;
    for (std::optional<PathForm>& form : out) {
      if (!form || form->kind != PathForm::Kind::Copy) continue;
      bool fine = true;
      for (uint32_t from : {form->left, form->right}) {
        const std::optional<PathForm>& before = out[from];
        fine = fine && before && before->kind == PathForm::Kind::Copy && before->left == form->left && before->right == form->right;
      }
      if (!fine) {
        form.reset();
        changed = true;
      }
    }
  }
  return out;
}

std::vector<PathForm> path_forms(const Module& module, FuncId step, uint32_t measure) {
  std::vector<PathForm> out;
  for (const std::optional<PathForm>& form : word_forms(module, step, measure)) {
    if (!form) return {};
    out.push_back(*form);
  }
  return out;
}

bool gives_left(const Module& module, FuncId post) {
  // Nothing but words and handles moves: a write is seen whoever gets the handle.
  bool moves = true;
  each_node(module, module.funcs[post].body, [&](NodeId at) {
    const Node& n = module.nodes[at];
    if (n.kind != NodeKind::Let) return;
    const ExprKind kind = n.expr.kind;
    const bool handles = kind == ExprKind::Prim && (n.expr.prim == Prim::ArrayFork || n.expr.prim == Prim::ArrayJoin || prim_is_pure(n.expr));
    moves = moves && (handles || kind == ExprKind::Const || kind == ExprKind::Struct || kind == ExprKind::Get);
  });
  if (!moves) return false;
  Terms terms(module);
  const Func& func = module.funcs[post];
  terms.params(post, func.params.size());
  NodeId at = func.body;
  const std::optional<Terms::Words> words = terms.run(at, VarId());
  if (!words || func.params.size() != 2 || words->size() != terms.leaves(func.result)) return false;
  for (uint32_t k = 0; k < words->size(); ++k)
    if (!terms.is_param((*words)[k], k)) return false;
  return true;
}

}  // namespace bendc
