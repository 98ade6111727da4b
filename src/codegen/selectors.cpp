#include "codegen/selectors.h"

#include <algorithm>

#include "codegen/ownership.h"
#include "codegen/prim_types.h"
#include "codegen/walk.h"

namespace bendc::flow {

namespace {

constexpr uint32_t kSmall = 24;   // nodes: a choice among eight, with a bit of arithmetic

bool may_stand(const Module& m, const Node& n) {
  if (n.kind == NodeKind::Case || n.kind == NodeKind::Switch || n.kind == NodeKind::Ret) return true;
  if (n.kind != NodeKind::Let) return false;
  const TypeId type = m.vars[n.var].type;
  const bool plain = is_lendable_value(m, type) || !is_counted(m, type);
  switch (n.expr.kind) {
    case ExprKind::Const: case ExprKind::Get: case ExprKind::Variant: case ExprKind::VariantGet: case ExprKind::ConGet: return plain;
    case ExprKind::Con: return con_is_word(m, type, n.expr.imm);
    case ExprKind::Prim: return prim_is_pure(n.expr) && !is_counted(m, type);
    case ExprKind::Str: case ExprKind::Struct: case ExprKind::Call: case ExprKind::Apply: case ExprKind::Closure: case ExprKind::Request: case ExprKind::Box:
    case ExprKind::Unbox:
      return false;
  }
  return false;
}

}  // namespace

bool is_lendable_value(const Module& module, TypeId id) {
  const Type& type = module.types[id];
  if (type.kind == TypeKind::Ref) return true;
  if (type.kind != TypeKind::Sum) return false;
  bool refs = false;
  for (const auto& variant : type.variants)
    for (TypeId part : variant) {
      const bool ref = module.types[part].kind == TypeKind::Ref;
      if (!ref && is_counted(module, part)) return false;
      refs |= ref;
    }
  return refs;
}

bool con_is_word(const Module& module, TypeId type, uint64_t ctor) {
  const Type& t = module.types[type];
  return t.kind == TypeKind::Ref && module.datas[t.data].ctors[ctor].repr != CtorRepr::Node;
}

bool is_selector(const Module& m, FuncId id) {
  const Func& f = m.funcs[id];
  if (id == m.entry || !is_lendable_value(m, f.result)) return false;
  const bool params = std::all_of(f.params.begin(), f.params.end(), [&](VarId p) { return is_lendable_value(m, m.vars[p].type) || !is_counted(m, m.vars[p].type); });
  if (!params) return false;
  uint32_t nodes = 0;
  bool selects = true;
  each_node(m, f.body, [&](NodeId at) { selects = selects && ++nodes <= kSmall && may_stand(m, m.nodes[at]); });
  return selects;
}

void inline_lent_choice(Module& m, NodeId id) {
  const Node call = m.nodes[id];
  BodyCopier copier(m);
  const std::vector<VarId> args(m.list(call.expr.args).begin(), m.list(call.expr.args).end());
  for (size_t i = 0; i < args.size(); ++i) copier.map_var(m.funcs[call.expr.func].params[i], args[i]);
  const NodeId choice = copier.copy(m.funcs[call.expr.func].body);
  Node join;
  join.kind = NodeKind::Join;
  join.join = m.new_join();
  join.vars = m.var_lists.add(std::vector<VarId>{call.var});
  join.body = call.next;
  join.next = choice;
  join.span = call.span;
  m.vars[call.var].borrowed = true;
  each_node(m, choice, [&](NodeId at) {
    Node& n = m.nodes[at];
    if (n.kind == NodeKind::Let && (n.expr.kind == ExprKind::Variant || n.expr.kind == ExprKind::Con) && is_counted(m, m.vars[n.var].type)) m.vars[n.var].borrowed = true;
    if (n.kind != NodeKind::Ret) return;
    n.kind = NodeKind::Jump;
    n.join = join.join;
    n.args = m.var_lists.add(std::vector<VarId>{n.subject});
    n.subject = VarId();
  });
  m.nodes[id] = std::move(join);
}

}  // namespace bendc::flow
