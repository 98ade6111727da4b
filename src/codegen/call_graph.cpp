// Tarjan's algorithm with an explicit stack: call chains can be as long as the program.
#include "codegen/call_graph.h"

#include "codegen/walk.h"

namespace bendc::flow {

std::vector<uint32_t> call_components(const Module& m) {
  const uint32_t count = m.funcs.size();
  std::vector<std::vector<uint32_t>> callees(count);
  for (uint32_t i = 0; i < count; ++i)
    each_node(m, m.funcs[FuncId(i)].body, [&](NodeId at) {
      const Node& n = m.nodes[at];
      if (n.kind == NodeKind::Let && n.expr.kind == ExprKind::Call) callees[i].push_back(n.expr.func.index);
      if (n.kind == NodeKind::Tail) callees[i].push_back(n.func.index);
      for (const CallSite& call : n.calls) callees[i].push_back(call.func.index);
    });
  constexpr uint32_t kUnseen = 0xFFFFFFFFu;
  std::vector<uint32_t> order(count, kUnseen), low(count, 0), component(count, kUnseen), stack;
  uint32_t next_order = 0, next_component = 0;
  struct Frame { uint32_t func; size_t edge; };
  for (uint32_t root = 0; root < count; ++root) {
    if (order[root] != kUnseen) continue;
    std::vector<Frame> frames{{root, 0}};
    order[root] = low[root] = next_order++;
    stack.push_back(root);
    while (!frames.empty()) {
      Frame& f = frames.back();
      if (f.edge < callees[f.func].size()) {
        const uint32_t to = callees[f.func][f.edge++];
        if (order[to] == kUnseen) {
          order[to] = low[to] = next_order++;
          stack.push_back(to);
          frames.push_back({to, 0});
        } else if (component[to] == kUnseen) {
          low[f.func] = std::min(low[f.func], order[to]);
        }
        continue;
      }
      const uint32_t done = f.func;
      frames.pop_back();
      if (!frames.empty()) low[frames.back().func] = std::min(low[frames.back().func], low[done]);
      if (low[done] != order[done]) continue;
      while (true) {
        const uint32_t member = stack.back();
        stack.pop_back();
        component[member] = next_component;
        if (member == done) break;
      }
      ++next_component;
    }
  }
  return component;
}

}  // namespace bendc::flow
