// Method. Three sweeps over each body, one after the other (ownership_sweeps.h); then what the dups reach is marked as shared.
#include "codegen/ownership.h"

#include <algorithm>
#include <unordered_set>

#include "codegen/ownership_sweeps.h"
#include "codegen/passes.h"

namespace bendc::flow {

bool is_counted(const Module& module, TypeId id) {
  const Type& type = module.types[id];
  switch (type.kind) {
    case TypeKind::U32:
    case TypeKind::F32:
    case TypeKind::Nat:
    case TypeKind::Enum:
      return false;
    case TypeKind::Ref:
    case TypeKind::Array:
    case TypeKind::Fn:
    case TypeKind::Any:
    case TypeKind::Token:
      return true;
    case TypeKind::Struct:
      return std::any_of(type.parts.begin(), type.parts.end(), [&](TypeId t) { return is_counted(module, t); });
    case TypeKind::Sum:
      for (const auto& variant : type.variants)
        for (TypeId t : variant)
          if (is_counted(module, t)) return true;
      return false;
  }
  return false;
}

namespace {

// A `+` binder of @unsafe code may hold what has one owner elsewhere: an affine datatype or a closure. Whatever such a dup reaches is counted:
// opening or applying it once more finds its fields again.
void mark_shared(Module& m) {
  std::vector<TypeId> work;
  std::unordered_set<uint32_t> seen;
  std::vector<TypeId> captured;
  for (const Node& n : m.nodes) {
    if (n.kind == NodeKind::Dup) work.push_back(m.vars[n.subject].type);
    if (n.kind == NodeKind::Let && n.expr.kind == ExprKind::Closure)
      for (VarId v : m.list(n.expr.args)) captured.push_back(m.vars[v].type);
  }
  while (!work.empty()) {
    const TypeId id = work.back();
    work.pop_back();
    if (!seen.insert(id.index).second) continue;
    const Type& type = m.types[id];
    switch (type.kind) {
      case TypeKind::Ref:
        m.datas[type.data].shareable = true;
        for (const CtorLayout& ctor : m.datas[type.data].ctors) work.insert(work.end(), ctor.fields.begin(), ctor.fields.end());
        break;
      case TypeKind::Fn:
        m.shared_closure = id;
        work.insert(work.end(), captured.begin(), captured.end());
        break;
      case TypeKind::Struct: case TypeKind::Array: work.insert(work.end(), type.parts.begin(), type.parts.end()); break;
      case TypeKind::Sum:
        for (const auto& variant : type.variants) work.insert(work.end(), variant.begin(), variant.end());
        break;
      case TypeKind::U32: case TypeKind::F32: case TypeKind::Nat: case TypeKind::Enum: case TypeKind::Any: case TypeKind::Token: break;
    }
  }
}

}  // namespace

bool OwnershipSweep::counted_type(TypeId t) {
  std::vector<bool>& known = facts_.counted_types;
  while (known.size() <= t.index) known.push_back(is_counted(m_, TypeId(static_cast<uint32_t>(known.size()))));
  return known[t.index];
}

void OwnershipSweep::mark_borrowed(VarId v) {
  if (facts_.borrowed.size() <= v.index) facts_.borrowed.resize(m_.vars.size(), false);
  facts_.borrowed[v.index] = true;
}

Node OwnershipSweep::let(VarId v, Expr e, Span span) {
  Node n;
  n.kind = NodeKind::Let;
  n.var = v;
  n.expr = e;
  n.span = span;
  return n;
}

Node OwnershipSweep::mark(NodeKind kind, VarId subject, Span span) {
  Node n;
  n.kind = kind;
  n.subject = subject;
  n.span = span;
  return n;
}

NodeId OwnershipSweep::prepend(const std::vector<Node>& head, NodeId body) {
  for (size_t i = head.size(); i-- > 0;) {
    Node n = head[i];
    n.next = body;
    body = m_.nodes.add(std::move(n));
  }
  return body;
}

}  // namespace bendc::flow

namespace bendc {

void insert_ownership(flow::Module& module, const PassOptions&) {
  using namespace flow;
  OwnershipFacts facts{module, {}, {}, std::vector<Slice>(module.join_count)};
  ExposeSweep expose(facts);
  PlaceSweep place(facts);
  ReuseSweep reuse(facts);
  for (uint32_t i = 0; i < module.funcs.size(); ++i) {
    const FuncId id(i);
    const NodeId body = place.run(id, expose.run(id));
    reuse.run(body);
    module.funcs[id].body = body;
  }
  mark_shared(module);
  module.owned = true;
}

}  // namespace bendc
