#include "codegen/gpu/symbolic_terms.h"

#include "codegen/prim_types.h"

namespace bendc {

using namespace flow;

void Terms::params(FuncId f, size_t count) {
  uint64_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    const VarId param = m_.funcs[f].params[i];
    for (size_t k = leaves(m_.vars[param].type); k > 0; --k) values_[param.index].push_back(term({Term::Kind::Param, next++, {}, {}}));
  }
}

void Terms::bind(std::span<const VarId> vars, const Words& words) {
  size_t next = 0;
  for (VarId var : vars) {
    const size_t count = leaves(m_.vars[var].type);
    values_[var.index] = Words(words.begin() + static_cast<long>(next), words.begin() + static_cast<long>(next + count));
    next += count;
  }
}

bool Terms::open(const Node& n) {
  if (m_.types[m_.vars[n.subject].type].kind != TypeKind::Struct) return false;
  bind(m_.list(n.vars), value(n.subject));
  return true;
}

std::optional<Terms::Words> Terms::run(NodeId& at, VarId choice) {
  while (at.valid()) {
    const Node& n = m_.nodes[at];
    switch (n.kind) {
      case NodeKind::Let: let(n); break;
      case NodeKind::Open:
        if (!open(n)) return std::nullopt;
        break;
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

uint32_t Terms::term(Term t) {
  // One term for either order.
  const bool commutes = t.kind == Term::Kind::Prim && (t.prim == Prim::U32Add || t.prim == Prim::U32Mul || t.prim == Prim::U32And || t.prim == Prim::U32Or || t.prim == Prim::U32Xor);
  if (commutes && t.operands[0] > t.operands[1]) std::swap(t.operands[0], t.operands[1]);
  const auto [it, fresh] = ids_.try_emplace(t, static_cast<uint32_t>(terms_.size()));
  if (fresh) terms_.push_back(std::move(t));
  return it->second;
}

Terms::Words Terms::unknown(TypeId type) {
  Words out;
  for (size_t i = leaves(type); i > 0; --i) out.push_back(term({Term::Kind::Unknown, terms_.size(), {}, {}}));
  return out;
}

Terms::Words Terms::value(VarId var) {
  const auto it = values_.find(var.index);
  if (it != values_.end()) return it->second;
  return values_[var.index] = unknown(m_.vars[var].type);
}

std::optional<uint32_t> Terms::beside(uint32_t id, uint32_t one) const {
  const std::vector<uint32_t>& o = terms_[id].operands;
  if (o.size() != 2) return std::nullopt;
  return o[0] == one ? std::optional(o[1]) : o[1] == one ? std::optional(o[0]) : std::nullopt;
}

Terms::Words Terms::value_of(const Node& n) {
  const TypeId type = m_.vars[n.var].type;
  const auto args = m_.list(n.expr.args);
  Words out;
  switch (n.expr.kind) {
    case ExprKind::Const:
      if (leaves(type) != 1) return unknown(type);
      return {constant(n.expr.imm)};
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
      if (gives_handle_back(n.expr.prim) && !n.expr.in_place) {
        Words back = unknown(type);
        back[0] = out[0];
        return back;
      }
      // What a slot holds may change: whoever wants to know says so of a read.
      const bool read = n.expr.prim == Prim::ArrayGet && n.expr.in_place;
      if (leaves(type) != 1 || (n.expr.prim >= Prim::ArrayNew && !read)) return unknown(type);
      return {prim(n.expr.prim, out)};
    }
    case ExprKind::Str: case ExprKind::Variant: case ExprKind::VariantGet: case ExprKind::Con: case ExprKind::ConGet: case ExprKind::Call: case ExprKind::Apply:
    case ExprKind::Closure: case ExprKind::Request: case ExprKind::Box: case ExprKind::Unbox:
      return unknown(type);
  }
  return unknown(type);
}

}  // namespace bendc
