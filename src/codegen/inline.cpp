// Method: functions in the order of their call components, callees first, so that a callee is already in its final form. Within a function
// calls are replaced where they stand; results that are a variable of the caller are renamed in one walk at the end.
#include "codegen/inline.h"

#include <unordered_map>

#include "codegen/call_graph.h"
#include "codegen/passes.h"
#include "codegen/prim_types.h"
#include "codegen/walk.h"

namespace bendc {

using namespace flow;

namespace {

constexpr uint32_t kSmall = 16;           // nodes of a callee
constexpr uint32_t kMostGrown = 400;      // nodes of a caller after which nothing more is copied into it

struct Shape {
  uint32_t nodes = 0;
  bool takes_tail = false;                // may replace a tail call
  bool straight = false;                  // and has no branch: may replace any call
};

class Inliner {
 public:
  explicit Inliner(Module& module) : m_(module) {}

  void run() {
    components_ = call_components(m_);
    const uint32_t count = m_.funcs.size();
    std::vector<std::vector<FuncId>> members;
    for (uint32_t i = 0; i < count; ++i) {
      if (components_[i] >= members.size()) members.resize(components_[i] + 1);
      members[components_[i]].push_back(FuncId(i));
    }
    shapes_.resize(count);
    for (const std::vector<FuncId>& component : members)
      for (FuncId f : component) {
        inline_into(f);
        shapes_[f.index] = shape_of(f);
      }
  }

 private:
  static bool can_fail(Prim prim) {
    return prim == Prim::NatAdd || prim == Prim::NatMul || prim == Prim::NatDouble || prim == Prim::NatSucc || prim == Prim::ArrayNew || prim == Prim::ArrayNode ||
           prim == Prim::ArraySplit;
  }

  Shape shape_of(FuncId f) {
    Shape shape;
    bool fits = f != m_.entry, branches = false;
    each_node(m_, m_.funcs[f].body, [&](NodeId id) {
      const Node& n = m_.nodes[id];
      ++shape.nodes;
      switch (n.kind) {
        case NodeKind::Let:
          fits &= !(n.expr.kind == ExprKind::Prim && can_fail(n.expr.prim));
          if (n.expr.kind == ExprKind::Call) fits &= !n.expr.bang && components_[n.expr.func.index] != components_[f.index];
          break;
        case NodeKind::Tail: fits &= components_[n.func.index] != components_[f.index]; break;
        case NodeKind::Case: case NodeKind::Switch: branches = true; break;
        case NodeKind::Ret: break;
        case NodeKind::Open: case NodeKind::Dup: case NodeKind::Drop: case NodeKind::Join: case NodeKind::Fork: case NodeKind::Jump: case NodeKind::Abort:
          fits = false;
          break;
      }
    });
    shape.takes_tail = fits && shape.nodes <= kSmall;
    shape.straight = shape.takes_tail && !branches;
    return shape;
  }

  void inline_into(FuncId f) {
    renamed_.clear();
    std::vector<NodeId> calls;
    uint32_t size = 0;
    each_node(m_, m_.funcs[f].body, [&](NodeId id) {
      const Node& n = m_.nodes[id];
      ++size;
      if (n.kind == NodeKind::Tail || (n.kind == NodeKind::Let && n.expr.kind == ExprKind::Call && !n.expr.bang)) calls.push_back(id);
    });
    // Last calls first: a node may take its successor's place, which must be in its final form.
    for (size_t at = calls.size(); at-- > 0;) {
      const NodeId id = calls[at];
      const bool tail = m_.nodes[id].kind == NodeKind::Tail;
      const FuncId callee = tail ? m_.nodes[id].func : m_.nodes[id].expr.func;
      const Shape& shape = shapes_[callee.index];
      if (callee == f || components_[callee.index] == components_[f.index]) continue;
      if (!(tail ? shape.takes_tail : shape.straight) || size > kMostGrown) continue;
      size += shape.nodes;
      if (tail) replace_tail(id, callee);
      else replace_call(id, callee);
    }
    if (!renamed_.empty()) rename(m_.funcs[f].body);
  }

  NodeId copy_of(FuncId callee, Slice args) {
    BodyCopier copier(m_);
    const std::vector<VarId> actual(m_.list(args).begin(), m_.list(args).end());
    for (size_t i = 0; i < actual.size(); ++i) copier.map_var(m_.funcs[callee].params[i], actual[i]);
    return copier.copy(m_.funcs[callee].body);
  }

  void replace_tail(NodeId id, FuncId callee) {
    const NodeId copy = copy_of(callee, m_.nodes[id].args);
    Node head = m_.nodes[copy];
    m_.nodes[id] = std::move(head);
  }

  void replace_call(NodeId id, FuncId callee) {
    const Node call = m_.nodes[id];
    const NodeId copy = copy_of(callee, call.expr.args);
    NodeId before, last = copy;
    while (m_.nodes[last].next.valid()) {
      before = last;
      last = m_.nodes[last].next;
    }
    Node end = m_.nodes[last];
    if (end.kind == NodeKind::Ret) {
      renamed_[call.var.index] = end.subject;
      if (!before.valid()) {                       // the callee is `ret x`: the call's successor, already done, takes its place
        Node next = m_.nodes[call.next];
        m_.nodes[id] = std::move(next);
        return;
      }
      m_.nodes[before].next = call.next;
    } else {                                       // a tail call: its result is the call's
      m_.nodes[last] = let_of_tail(end, call);
    }
    Node head = m_.nodes[copy];
    m_.nodes[id] = std::move(head);
  }

  VarId final_name(VarId v) const {
    for (auto it = renamed_.find(v.index); v.valid() && it != renamed_.end(); it = renamed_.find(v.index)) v = it->second;
    return v;
  }
  void rename(NodeId body) {
    auto list = [&](Slice& s) {
      std::vector<VarId> out(m_.list(s).begin(), m_.list(s).end());
      bool changed = false;
      for (VarId& v : out) {
        const VarId to = final_name(v);
        changed |= to != v;
        v = to;
      }
      if (changed) s = m_.var_lists.add(out);
    };
    each_node(m_, body, [&](NodeId id) {
      Node& n = m_.nodes[id];
      if (n.subject.valid()) n.subject = final_name(n.subject);
      if (n.kind == NodeKind::Let) list(n.expr.args);
      list(n.args);
      for (CallSite& call : n.calls) list(call.args);
    });
  }

  Module& m_;
  std::vector<uint32_t> components_;
  std::vector<Shape> shapes_;
  std::unordered_map<uint32_t, VarId> renamed_;
};

}  // namespace

void inline_small(Module& module, const PassOptions& options) {
  if (options.optimize > 0) Inliner(module).run();
}

}  // namespace bendc
