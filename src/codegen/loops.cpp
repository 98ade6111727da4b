#include "codegen/loops.h"

#include "codegen/passes.h"
#include "codegen/walk.h"

namespace bendc {

using namespace flow;

void normalise_tails(Module& m, const PassOptions&) {
  for (Node& n : m.nodes) {
    if (n.kind != NodeKind::Let || n.expr.kind != ExprKind::Call || n.expr.bang || !n.next.valid()) continue;
    const Node& next = m.nodes[n.next];
    if (next.kind != NodeKind::Ret || next.subject != n.var) continue;
    Node tail;
    tail.kind = NodeKind::Tail;
    tail.func = n.expr.func;
    tail.args = n.expr.args;
    tail.span = n.span;
    n = tail;
  }
}

void make_loops(Module& m, const PassOptions&) {
  for (uint32_t i = 0; i < m.funcs.size(); ++i) {
    const FuncId id(i);
    bool recursive = false;
    each_node(m, m.funcs[id].body, [&](NodeId n) { recursive |= m.nodes[n].kind == NodeKind::Tail && m.nodes[n].func == id; });
    if (!recursive) continue;
    const JoinId join = m.new_join();
    each_node(m, m.funcs[id].body, [&](NodeId at) {
      Node& n = m.nodes[at];
      if (n.kind != NodeKind::Tail || n.func != id) return;
      n.kind = NodeKind::Jump;
      n.func = FuncId();
      n.join = join;
    });
    std::vector<VarId> inner = m.funcs[id].params, outer;
    for (VarId p : inner) {
      Var copy = m.vars[p];
      outer.push_back(m.vars.add(std::move(copy)));
    }
    const std::vector<bool>& marks = m.funcs[id].borrowed;
    for (size_t p = 0; p < marks.size(); ++p) if (marks[p]) m.vars[inner[p]].borrowed = true;
    Node enter;
    enter.kind = NodeKind::Jump;
    enter.join = join;
    enter.args = m.var_lists.add(outer);
    enter.span = m.funcs[id].span;
    Node loop;
    loop.kind = NodeKind::Join;
    loop.loop = true;
    loop.join = join;
    loop.vars = m.var_lists.add(inner);
    loop.body = m.funcs[id].body;
    loop.span = m.funcs[id].span;
    loop.next = m.nodes.add(std::move(enter));
    m.funcs[id].body = m.nodes.add(std::move(loop));
    m.funcs[id].params = std::move(outer);
  }
}

}  // namespace bendc
