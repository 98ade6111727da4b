#include "codegen/gpu/merge_calls.h"

#include <algorithm>

#include "codegen/walk.h"

namespace bendc {

using namespace flow;

namespace {

constexpr uint32_t kSmallBody = 48;   // nodes of a function whose code may be there twice

// A let that does nothing when its variable is not used.
bool is_idle(const Node& n) {
  return n.kind == NodeKind::Let && (n.expr.kind == ExprKind::Const || (n.expr.kind == ExprKind::Struct && n.expr.args.empty()));
}

// `let x = call f(..) ret x`, with nothing between that does anything.
void make_tail(Module& m, NodeId id) {
  const Node call = m.nodes[id];
  NodeId at = call.next;
  while (at.valid() && is_idle(m.nodes[at])) at = m.nodes[at].next;
  if (!at.valid() || m.nodes[at].kind != NodeKind::Ret || m.nodes[at].subject != call.var) return;
  Node tail;
  tail.kind = NodeKind::Tail;
  tail.func = call.expr.func;
  tail.args = call.expr.args;
  tail.span = call.span;
  m.nodes[id] = std::move(tail);
}

// The last node of a body without branches, joins and forks; none else.
NodeId end_of_straight(const Module& m, NodeId body) {
  for (NodeId at = body;; at = m.nodes[at].next) {
    switch (m.nodes[at].kind) {
      case NodeKind::Let: case NodeKind::Open: case NodeKind::Dup: case NodeKind::Drop: break;
      case NodeKind::Tail: return at;
      case NodeKind::Ret: case NodeKind::Case: case NodeKind::Switch: case NodeKind::Join: case NodeKind::Fork: case NodeKind::Jump: case NodeKind::Abort: return NodeId();
    }
  }
}

NodeId copy_of(Module& m, FuncId callee, Slice args) {
  BodyCopier copier(m);
  const std::vector<VarId> actual(m.list(args).begin(), m.list(args).end());
  for (size_t i = 0; i < actual.size(); ++i) copier.map_var(m.funcs[callee].params[i], actual[i]);
  return copier.copy(m.funcs[callee].body);
}

// A call of a straight function that ends with a tail call: its body, whose last call's result is the call's.
void replace_call(Module& m, NodeId id) {
  const Node call = m.nodes[id];
  const NodeId copy = copy_of(m, call.expr.func, call.expr.args), last = end_of_straight(m, copy);
  m.nodes[last] = let_of_tail(Node(m.nodes[last]), call);
  Node head = m.nodes[copy];
  m.nodes[id] = std::move(head);
}

uint32_t size_of(Module& m, NodeId body) {
  uint32_t nodes = 0;
  each_node(m, body, [&](NodeId) { ++nodes; });
  return nodes;
}

}  // namespace

std::vector<FuncId> merge_calls(Module& m, const MergeRules& rules) {
  std::vector<std::vector<std::pair<FuncId, NodeId>>> sites(m.funcs.size());   // of each function: caller and node
  const auto is_call = [&](const Node& n) { return n.kind == NodeKind::Let && n.expr.kind == ExprKind::Call; };
  for (uint32_t i = 0; i < m.funcs.size(); ++i) {
    const FuncId caller(i);
    if (!rules.is_async(caller)) continue;   // nobody else calls an async function
    std::vector<NodeId> calls;
    each_node(m, m.funcs[caller].body, [&](NodeId at) {
      if (is_call(m.nodes[at]) && rules.is_async(m.nodes[at].expr.func)) calls.push_back(at);
    });
    for (NodeId at : calls) make_tail(m, at);
    each_node(m, m.funcs[caller].body, [&](NodeId at) {
      const Node& n = m.nodes[at];
      if (is_call(n)) sites[n.expr.func.index].push_back({caller, at});
      if (n.kind == NodeKind::Tail) sites[n.func.index].push_back({caller, at});
      for (const CallSite& call : n.calls) sites[call.func.index].push_back({caller, at});
    });
  }
  std::vector<FuncId> merged;
  for (uint32_t i = 0; i < sites.size(); ++i) {
    const FuncId callee(i);
    if (sites[i].size() != 1 || !rules.is_async(callee) || !rules.movable(callee)) continue;
    const auto [caller, at] = sites[i][0];
    if (caller == callee || !is_call(m.nodes[at]) || m.nodes[at].expr.func != callee || !end_of_straight(m, m.funcs[callee].body).valid()) continue;
    // The call has moved with its caller's body.
    if (std::find(merged.begin(), merged.end(), caller) != merged.end()) continue;
    replace_call(m, at);
    merged.push_back(callee);
  }
  return merged;
}

void merge_tails(Module& m, uint32_t first_lifted, const MergeRules& rules) {
  const uint32_t count = m.funcs.size();
  std::vector<uint32_t> sizes(count);
  for (uint32_t i = 0; i < count; ++i) sizes[i] = size_of(m, m.funcs[FuncId(i)].body);
  for (uint32_t i = first_lifted; i < count; ++i) {
    const NodeId last = end_of_straight(m, m.funcs[FuncId(i)].body);
    if (!last.valid() || sizes[i] > kSmallBody) continue;
    const Node tail = m.nodes[last];
    const FuncId callee = tail.func;
    if (callee == FuncId(i) || !rules.is_async(callee) || !rules.movable(callee) || sizes[callee.index] > kSmallBody) continue;
    // A cut is a call with its tail call behind it: that one stays.
    bool cut = false;
    for (NodeId at = m.funcs[FuncId(i)].body; at != last; at = m.nodes[at].next) {
      const Node& n = m.nodes[at];
      cut |= n.kind == NodeKind::Let && n.expr.kind == ExprKind::Call && rules.is_async(n.expr.func);
    }
    if (cut) continue;
    const NodeId copy = copy_of(m, callee, tail.args);
    Node head = m.nodes[copy];
    m.nodes[last] = std::move(head);
  }
}

}  // namespace bendc
