#include "codegen/walk.h"

namespace bendc::flow {

VarId BodyCopier::var(VarId v) const {
  auto it = vars_.find(v.index);
  return it == vars_.end() ? v : it->second;
}

VarId BodyCopier::bind(VarId v) {
  if (!v.valid()) return v;
  Var copy = m_.vars[v];
  VarId to = m_.vars.add(std::move(copy));
  vars_[v.index] = to;
  return to;
}

Slice BodyCopier::uses(Slice s) {
  std::vector<VarId> out(m_.list(s).begin(), m_.list(s).end());
  for (VarId& v : out) v = var(v);
  return m_.var_lists.add(out);
}

Slice BodyCopier::binds(Slice s) {
  std::vector<VarId> out(m_.list(s).begin(), m_.list(s).end());
  for (VarId& v : out) v = bind(v);
  return m_.var_lists.add(out);
}

NodeId BodyCopier::copy(NodeId id) {
  NodeId first, last;
  while (id.valid()) {
    Node n = m_.nodes[id];
    const NodeId next = n.next;
    if (n.subject.valid()) n.subject = var(n.subject);
    if (n.kind == NodeKind::Let) {
      n.expr.args = uses(n.expr.args);
      if (n.expr.reuse.valid()) n.expr.reuse = var(n.expr.reuse);
      n.var = bind(n.var);
    } else if (n.kind == NodeKind::Open) {
      n.vars = binds(n.vars);
      n.var = bind(n.var);
    } else if (n.kind == NodeKind::Fork) {
      for (CallSite& call : n.calls) call.args = uses(call.args);
      n.vars = binds(n.vars);
    } else if (n.kind == NodeKind::Tail || n.kind == NodeKind::Jump) {
      n.args = uses(n.args);
      if (n.kind == NodeKind::Jump)
        if (auto it = joins_.find(n.join.index); it != joins_.end()) n.join = it->second;
    } else if (n.kind == NodeKind::Join) {
      const JoinId fresh = m_.new_join();
      joins_[n.join.index] = fresh;
      n.join = fresh;
      n.vars = binds(n.vars);
    }
    for (Arm& arm : n.arms) arm.body = copy(arm.body);
    if (n.other.valid()) n.other = copy(n.other);
    if (n.body.valid()) n.body = copy(n.body);
    n.next = NodeId();
    NodeId made = m_.nodes.add(std::move(n));
    node_copy[id.index] = made;
    if (last.valid()) m_.nodes[last].next = made;
    else first = made;
    last = made;
    id = next;
  }
  return first;
}

}  // namespace bendc::flow
