// Walking and copying Flow bodies.
#pragma once
#include <unordered_map>
#include <vector>

#include "codegen/flow.h"

namespace bendc::flow {

// Calls visit(NodeId) on every node of a body, sub-bodies included, parents first. `visit` may add nodes but not relink.
template <class M, class F> void each_node(M& m, NodeId body, F&& visit) {
  std::vector<NodeId> work{body};
  while (!work.empty()) {
    NodeId id = work.back();
    work.pop_back();
    while (id.valid()) {
      visit(id);
      const Node& n = m.nodes[id];
      for (const Arm& arm : n.arms) work.push_back(arm.body);
      if (n.other.valid()) work.push_back(n.other);
      if (n.body.valid()) work.push_back(n.body);
      id = n.next;
    }
  }
}

// Copies bodies with fresh variables and join points; variables bound outside the copied part stay.
class BodyCopier {
 public:
  explicit BodyCopier(Module& module) : m_(module) {}
  void map_var(VarId from, VarId to) { vars_[from.index] = to; }
  void map_join(JoinId from, JoinId to) { joins_[from.index] = to; }
  [[nodiscard]] VarId var(VarId v) const;
  [[nodiscard]] NodeId copy(NodeId body);
  // original node -> its copy, for passes that mark nodes
  std::unordered_map<uint32_t, NodeId> node_copy;

 private:
  VarId bind(VarId v);
  Slice uses(Slice s);
  Slice binds(Slice s);
  Module& m_;
  std::unordered_map<uint32_t, VarId> vars_;
  std::unordered_map<uint32_t, JoinId> joins_;
};

// A copied body's tail call where the call that it replaces is not one: the same call, whose result is that of `call`, and what comes after `call` next.
[[nodiscard]] inline Node let_of_tail(const Node& tail, const Node& call) {
  Node let;
  let.kind = NodeKind::Let;
  let.var = call.var;
  let.expr.kind = ExprKind::Call;
  let.expr.func = tail.func;
  let.expr.args = tail.args;
  let.span = tail.span;
  let.next = call.next;
  return let;
}

}  // namespace bendc::flow
