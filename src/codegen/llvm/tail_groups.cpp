// Which functions call each other in tail position on a cycle. Tail calls inside such a group must not grow the stack; all others are
// ordinary calls (LLVM's argument passes leave functions with `musttail` alone, so the group is kept as small as it can be).
#include "codegen/llvm/emitter.h"

namespace bendc::codegen {

using flow::ExprKind;
using flow::NodeKind;

bool is_tail_apply(const flow::Module& module, const flow::Node& node) {
  if (node.kind != NodeKind::Let || node.expr.kind != ExprKind::Apply || !node.next.valid()) return false;
  const flow::Node& next = module.nodes[node.next];
  return next.kind == NodeKind::Ret && next.subject == node.var;
}

namespace {

// Edges of each function (and of "any closure", the last vertex).
std::vector<std::vector<uint32_t>> tail_edges(const flow::Module& module) {
  const uint32_t closures = module.funcs.size();
  std::vector<std::vector<uint32_t>> edges(closures + 1);
  for (uint32_t i = 0; i < module.funcs.size(); ++i) {
    std::vector<flow::NodeId> work{module.funcs[flow::FuncId(i)].body};
    while (!work.empty()) {
      const flow::NodeId id = work.back();
      work.pop_back();
      if (!id.valid()) continue;
      const flow::Node& node = module.nodes[id];
      if (node.kind == NodeKind::Tail) edges[i].push_back(node.func.index);
      if (is_tail_apply(module, node)) edges[i].push_back(closures);
      if (node.kind == NodeKind::Let && node.expr.kind == ExprKind::Closure) edges[closures].push_back(node.expr.func.index);
      work.push_back(node.next);
      work.push_back(node.body);
      work.push_back(node.other);
      for (const flow::Arm& arm : node.arms) work.push_back(arm.body);
    }
  }
  return edges;
}

}  // namespace

// Tarjan's algorithm with an explicit stack.
TailGroups find_tail_groups(const flow::Module& module) {
  const std::vector<std::vector<uint32_t>> edges = tail_edges(module);
  const auto count = static_cast<uint32_t>(edges.size());
  constexpr uint32_t kUnseen = 0xFFFFFFFFu;
  TailGroups out;
  out.group.assign(count, kUnseen);
  out.cyclic.assign(count, false);
  std::vector<uint32_t> index(count, kUnseen), low(count, 0), open;
  struct Visit {
    uint32_t vertex;
    size_t edge;
  };
  std::vector<Visit> stack;
  uint32_t next_index = 0, next_group = 0;
  auto enter = [&](uint32_t v) {
    index[v] = low[v] = next_index++;
    open.push_back(v);
    stack.push_back({v, 0});
  };
  for (uint32_t root = 0; root < count; ++root) {
    if (index[root] == kUnseen) enter(root);
    while (!stack.empty()) {
      const uint32_t v = stack.back().vertex;
      if (stack.back().edge < edges[v].size()) {
        const uint32_t w = edges[v][stack.back().edge++];
        if (w == v) out.cyclic[v] = true;
        if (index[w] == kUnseen) enter(w);
        else if (out.group[w] == kUnseen) low[v] = std::min(low[v], index[w]);
        continue;
      }
      stack.pop_back();
      if (!stack.empty()) low[stack.back().vertex] = std::min(low[stack.back().vertex], low[v]);
      if (low[v] != index[v]) continue;
      const bool alone = open.back() == v;
      uint32_t w;
      do {
        w = open.back();
        open.pop_back();
        out.group[w] = next_group;
        if (!alone) out.cyclic[w] = true;
      } while (w != v);
      ++next_group;
    }
  }
  return out;
}

}  // namespace bendc::codegen
