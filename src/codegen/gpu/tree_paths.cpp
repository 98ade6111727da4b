// Both functions are straight lines of pure lets, so one symbolic run of each says what every word of the result is made of.
#include "codegen/gpu/tree_paths.h"

#include <algorithm>
#include <map>
#include <optional>

#include "codegen/memory_layout.h"
#include "codegen/prim_types.h"
#include "codegen/walk.h"

namespace bendc {

using namespace flow;

namespace {

struct Term {
  enum class Kind : uint8_t { Param, Const, Prim, Unknown } kind = Kind::Unknown;
  uint64_t number = 0;               // of the parameter word, the constant's bits, which unknown
  Prim prim{};
  std::vector<uint32_t> operands;    // terms
  auto operator<=>(const Term&) const = default;
};

class Terms {
 public:
  explicit Terms(const Module& module) : m_(module), layouts_(module) {}

  using Words = std::vector<uint32_t>;   // a value: the term of each word

  void params(FuncId f, size_t count) {
    uint64_t next = 0;
    for (size_t i = 0; i < count; ++i) {
      const VarId param = m_.funcs[f].params[i];
      for (size_t k = leaves(m_.vars[param].type); k > 0; --k) values_[param.index].push_back(term({Term::Kind::Param, next++, {}, {}}));
    }
  }

  // What a body without choices returns; nothing when it has any. Stops at a Case on `choice`, which is then `at`.
  std::optional<Words> run(NodeId& at, VarId choice) {
    while (at.valid()) {
      const Node& n = m_.nodes[at];
      switch (n.kind) {
        case NodeKind::Let: values_[n.var.index] = let(n); break;
        case NodeKind::Open: {
          if (m_.types[m_.vars[n.subject].type].kind != TypeKind::Struct) return std::nullopt;
          const Words whole = value(n.subject);
          size_t next = 0;
          for (VarId part : m_.list(n.vars)) {
            const size_t count = leaves(m_.vars[part].type);
            values_[part.index] = Words(whole.begin() + static_cast<long>(next), whole.begin() + static_cast<long>(next + count));
            next += count;
          }
          break;
        }
        case NodeKind::Dup: case NodeKind::Drop: break;
        case NodeKind::Ret: return value(n.subject);
        case NodeKind::Case:
          if (n.subject == choice) return Words();
          return std::nullopt;
        case NodeKind::Switch: case NodeKind::Join: case NodeKind::Fork: case NodeKind::Tail: case NodeKind::Jump: case NodeKind::Abort: return std::nullopt;
      }
      at = n.next;
    }
    return std::nullopt;
  }

  const Term& operator[](uint32_t id) const { return terms_[id]; }
  bool is_param(uint32_t id, uint64_t number) const { return terms_[id].kind == Term::Kind::Param && terms_[id].number == number; }
  bool is_const(uint32_t id, uint64_t number) const { return terms_[id].kind == Term::Kind::Const && terms_[id].number == number; }
  bool is_prim(uint32_t id, Prim prim) const { return terms_[id].kind == Term::Kind::Prim && terms_[id].prim == prim; }
  size_t leaves(TypeId type) { return layouts_.of(type).leaves.size(); }

 private:
  uint32_t term(Term t) {
    const auto [it, fresh] = ids_.try_emplace(t, static_cast<uint32_t>(terms_.size()));
    if (fresh) terms_.push_back(std::move(t));
    return it->second;
  }

  Words unknown(TypeId type) {
    Words out;
    for (size_t i = leaves(type); i > 0; --i) out.push_back(term({Term::Kind::Unknown, terms_.size(), {}, {}}));
    return out;
  }

  Words value(VarId var) {
    const auto it = values_.find(var.index);
    return it != values_.end() ? it->second : unknown(m_.vars[var].type);
  }

  Words let(const Node& n) {
    const TypeId type = m_.vars[n.var].type;
    const auto args = m_.list(n.expr.args);
    Words out;
    switch (n.expr.kind) {
      case ExprKind::Const:
        if (leaves(type) != 1) return unknown(type);
        return {term({Term::Kind::Const, n.expr.imm, {}, {}})};
      case ExprKind::Struct:
        for (VarId arg : args) {
          const Words part = value(arg);
          out.insert(out.end(), part.begin(), part.end());
        }
        return out;
      case ExprKind::Get: {
        const Words whole = value(args[0]);
        const size_t first = layouts_.struct_leaf(m_.vars[args[0]].type, static_cast<uint32_t>(n.expr.imm));
        return Words(whole.begin() + static_cast<long>(first), whole.begin() + static_cast<long>(first + leaves(type)));
      }
      case ExprKind::Prim: {
        if (n.expr.prim == Prim::ArrayJoin) return value(args[0]);
        for (VarId arg : args) {
          const Words part = value(arg);
          out.insert(out.end(), part.begin(), part.end());
        }
        if (n.expr.prim == Prim::ArrayFork) return {out[0], out[0]};
        if (leaves(type) != 1 || n.expr.prim >= Prim::ArrayNew) return unknown(type);
        return {term({Term::Kind::Prim, 0, n.expr.prim, out})};
      }
      case ExprKind::Str: case ExprKind::Variant: case ExprKind::VariantGet: case ExprKind::Con: case ExprKind::ConGet: case ExprKind::Call: case ExprKind::Apply:
      case ExprKind::Closure: case ExprKind::Request: case ExprKind::Box: case ExprKind::Unbox:
        return unknown(type);
    }
    return unknown(type);
  }

  const Module& m_;
  Layouts layouts_;
  std::vector<Term> terms_;
  std::map<Term, uint32_t> ids_;
  std::map<uint32_t, Words> values_;   // by variable
};

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

std::vector<PathForm> path_forms(const Module& module, FuncId step, uint32_t measure) {
  Terms terms(module);
  const Func& func = module.funcs[step];
  terms.params(step, func.params.size() - 1);
  size_t depth = 0;
  for (uint32_t i = 0; i < measure; ++i) depth += terms.leaves(module.vars[func.params[i]].type);
  NodeId at = func.body;
  if (!terms.run(at, func.params.back())) return {};
  const Node& choice = module.nodes[at];
  if (choice.kind != NodeKind::Case || choice.arms.size() != 2) return {};
  Terms::Words child[2];
  for (const Arm& arm : choice.arms) {
    NodeId body = arm.body;
    std::optional<Terms::Words> words = terms.run(body, VarId());
    if (!words || arm.value > 1) return {};
    child[arm.value] = std::move(*words);
  }
  if (child[0].size() != child[1].size()) return {};
  std::vector<PathForm> out;
  for (uint32_t k = 0; k < child[0].size(); ++k) {
    const auto form = form_of(terms, k, child[0][k], child[1][k], static_cast<uint32_t>(depth));
    if (!form) return {};
    out.push_back(*form);
  }
  // A second step must leave alone what the first one copied.
  for (const PathForm& form : out) {
    if (form.kind != PathForm::Kind::Copy) continue;
    for (uint32_t from : {form.left, form.right}) {
      const PathForm& before = out[from];
      if (before.kind != PathForm::Kind::Copy || before.left != form.left || before.right != form.right) return {};
    }
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
