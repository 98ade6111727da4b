// Method. The node freed by an open becomes the token of the first constructor of the same shape on each path; where a path has none, the token is
// dropped at its head.
#include "codegen/ownership_sweeps.h"

namespace bendc::flow {

void ReuseSweep::run(NodeId body) {
  built_.resize(m_.nodes.size(), ~uint64_t{0});
  (void)note_built(body);
  reuse_body(body);
}

bool ReuseSweep::fits(const Node& n, const Shape& shape) const {
  if (n.kind != NodeKind::Let || n.expr.kind != ExprKind::Con || n.expr.reuse.valid()) return false;
  const Type& t = m_.types[m_.vars[n.var].type];
  const CtorLayout& ctor = m_.datas[t.data].ctors[n.expr.imm];
  return t.data == shape.data && ctor.repr == CtorRepr::Node && ctor.fields == shape.fields;
}

// The datatypes whose nodes a body builds, a bit for each index modulo 64, for every node that give() may stand at: a deep tree that builds
// nothing of the opened shape is not searched once for each of its openings.
uint64_t ReuseSweep::note_built(NodeId id) {
  std::vector<NodeId> chain;
  for (; id.valid(); id = m_.nodes[id].next) chain.push_back(id);
  uint64_t built = 0;
  for (size_t i = chain.size(); i-- > 0;) {
    const Node& n = m_.nodes[chain[i]];
    if (n.kind == NodeKind::Let && n.expr.kind == ExprKind::Con) built |= uint64_t{1} << (m_.types[m_.vars[n.var].type].data.index % 64);
    for (const Arm& arm : n.arms) built |= note_built(arm.body);
    if (n.other.valid()) built |= note_built(n.other);
    if (n.body.valid()) (void)note_built(n.body);
    built_[chain[i].index] = built;
  }
  return built;
}

bool ReuseSweep::may_build(NodeId id, const Shape& shape) const { return id.index >= built_.size() || ((built_[id.index] >> (shape.data.index % 64)) & 1) != 0; }

// Hands the token to the first fitting constructor on each path from `id`; paths without one are collected in `misses` as places
// where the token must be dropped. False when no path uses it (then nothing was changed).
bool ReuseSweep::give(NodeId id, const Shape& shape, VarId token, std::vector<NodeId*>& misses, NodeId* link) {
  if (!may_build(id, shape)) return false;
  NodeId* at = link;
  while (true) {
    Node& n = m_.nodes[*at];
    if (fits(n, shape)) {
      n.expr.reuse = token;
      return true;
    }
    if (n.kind == NodeKind::Case || n.kind == NodeKind::Switch) {
      std::vector<NodeId*> links;
      for (Arm& arm : n.arms) links.push_back(&arm.body);
      if (n.other.valid()) links.push_back(&n.other);
      bool any = false;
      std::vector<NodeId*> missing;
      for (NodeId* l : links) {
        if (give(*l, shape, token, misses, l)) any = true;
        else missing.push_back(l);
      }
      if (any) misses.insert(misses.end(), missing.begin(), missing.end());
      return any;
    }
    if (n.kind == NodeKind::Ret || n.kind == NodeKind::Tail || n.kind == NodeKind::Jump || n.kind == NodeKind::Abort) return false;
    at = &n.next;
  }
}

void ReuseSweep::reuse_body(NodeId id) {
  while (id.valid()) {
    if (m_.nodes[id].kind == NodeKind::Open) try_reuse(id);
    Node& n = m_.nodes[id];
    std::vector<NodeId> bodies;
    for (const Arm& arm : n.arms) bodies.push_back(arm.body);
    if (n.other.valid()) bodies.push_back(n.other);
    if (n.body.valid()) bodies.push_back(n.body);
    for (NodeId b : bodies) reuse_body(b);
    id = m_.nodes[id].next;
  }
}

void ReuseSweep::try_reuse(NodeId id) {
  const VarId x = m_.nodes[id].subject;
  if (type(x).kind != TypeKind::Ref) return;
  const DataId data = type(x).data;
  const CtorLayout& ctor = m_.datas[data].ctors[m_.nodes[id].imm];
  if (ctor.repr != CtorRepr::Node) return;
  Shape shape{data, ctor.fields};
  const TypeId token_type = m_.intern(Type{TypeKind::Token});
  VarId token = fresh(token_type, "token");
  std::vector<NodeId*> misses;
  if (!give(m_.nodes[id].next, shape, token, misses, &m_.nodes[id].next)) return;
  m_.nodes[id].var = token;
  // The links stay valid while nodes are only read; collect first, then add.
  std::vector<NodeId> targets;
  for (NodeId* l : misses) targets.push_back(*l);
  for (NodeId target : targets) {
    // Adding a node may move the table: rewrite in place instead by turning the target's copy into the successor of a drop.
    Node copy = m_.nodes[target];
    NodeId moved = m_.nodes.add(std::move(copy));
    Node drop = mark(NodeKind::Drop, token, m_.nodes[moved].span);
    drop.next = moved;
    m_.nodes[target] = std::move(drop);
  }
}

}  // namespace bendc::flow
