#include "codegen/run_once.h"

#include "codegen/walk.h"

namespace bendc::flow {

std::vector<bool> find_run_once(const Module& m) {
  const uint32_t count = m.funcs.size();
  std::vector<bool> once(count);
  if (m.main_kind == MainKind::None) return once;
  // What is not reached from the entry, such as a def of which there are only inlined copies, refers to nothing.
  std::vector<uint32_t> references(count), reached{m.entry.index};
  std::vector<std::vector<uint32_t>> refers(count);
  std::vector<bool> seen(count), loops(count);
  seen[m.entry.index] = true;
  for (size_t next = 0; next < reached.size(); ++next) {
    const uint32_t from = reached[next];
    auto refer = [&](FuncId to) {
      ++references[to.index];
      refers[from].push_back(to.index);
      if (seen[to.index]) return;
      seen[to.index] = true;
      reached.push_back(to.index);
    };
    each_node(m, m.funcs[FuncId(from)].body, [&](NodeId at) {
      const Node& n = m.nodes[at];
      if (n.kind == NodeKind::Join && n.loop) loops[from] = true;
      if (n.kind == NodeKind::Let && (n.expr.kind == ExprKind::Call || n.expr.kind == ExprKind::Closure)) refer(n.expr.func);
      if (n.kind == NodeKind::Tail) refer(n.func);
      for (const CallSite& call : n.calls) refer(call.func);
    });
  }
  // From the entry along single references, which are no cycle: its first function would have a second one.
  std::vector<uint32_t> work;
  if (references[m.entry.index] == 0) work.push_back(m.entry.index);
  while (!work.empty()) {
    const uint32_t at = work.back();
    work.pop_back();
    if (loops[at]) continue;
    once[at] = true;
    for (const uint32_t to : refers[at])
      if (references[to] == 1) work.push_back(to);
  }
  return once;
}

}  // namespace bendc::flow
