#include "codegen/gpu/fork_sites.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "codegen/call_graph.h"
#include "codegen/walk.h"
#include "runtime/gpu/device_abi.h"

namespace bendc {

using namespace flow;

namespace {

constexpr uint32_t kUnknown = 0xFFFFFFFFu;

// How much smaller the calls of one fork make parameter `param` of their function; kUnknown where that shows at run time only.
struct Shrink {
  size_t param = 0;
  std::vector<uint32_t> by;
};

class Finder {
 public:
  Finder(const Module& host, const DeviceModule& device, const MachinePlan& plan) : m_(host), device_(device), plan_(plan), component_(call_components(host)) {}

  std::vector<ForkSite> run() {
    std::map<std::pair<uint32_t, uint32_t>, ForkSite> sites;
    for (uint32_t f = 0; f < m_.funcs.size(); ++f) {
      forks_of(FuncId(f), [&](const Node& fork) {
        ForkSite row = site(FuncId(f), fork);
        const auto [it, fresh] = sites.try_emplace({fork.span.file.index, fork.span.offset}, row);
        if (!fresh && it->second.strategy == ForkStrategy::Cpu && row.strategy != ForkStrategy::Cpu) it->second = std::move(row);
      });
    }
    std::vector<ForkSite> out;
    for (auto& [place, row] : sites) out.push_back(std::move(row));
    return out;
  }

 private:
  template <class F> void forks_of(FuncId f, F&& visit) const {
    each_node(m_, m_.funcs[f].body, [&](NodeId at) {
      if (m_.nodes[at].kind == NodeKind::Fork) visit(m_.nodes[at]);
    });
  }

  // By variable: how many predecessors lie between it and the parameter it comes from.
  std::map<uint32_t, std::pair<size_t, uint32_t>> predecessors(FuncId f) const {
    std::map<uint32_t, std::pair<size_t, uint32_t>> less;
    const std::vector<VarId>& params = m_.funcs[f].params;
    for (size_t i = 0; i < params.size(); ++i)
      if (m_.types[m_.vars[params[i]].type].kind == TypeKind::Nat) less[params[i].index] = {i, 0};
    // A predecessor is bound before what uses it, and nodes are visited in that order.
    each_node(m_, m_.funcs[f].body, [&](NodeId at) {
      const Node& n = m_.nodes[at];
      if (n.kind != NodeKind::Let || n.expr.kind != ExprKind::Prim || n.expr.prim != Prim::NatPred) return;
      if (const auto it = less.find(m_.list(n.expr.args)[0].index); it != less.end()) less[n.var.index] = {it->second.first, it->second.second + 1};
    });
    return less;
  }

  // The Nat parameter that most calls of the fork are known to shrink.
  Shrink shrink(FuncId f, const Node& fork) const {
    const auto less = predecessors(f);
    Shrink best;
    size_t best_known = 0;
    for (size_t p = 0; p < m_.funcs[f].params.size(); ++p) {
      if (m_.types[m_.vars[m_.funcs[f].params[p]].type].kind != TypeKind::Nat) continue;
      Shrink row{p, {}};
      for (const CallSite& call : fork.calls) {
        const auto it = less.find(m_.list(call.args)[p].index);
        row.by.push_back(it == less.end() || it->second.first != p || it->second.second == 0 ? kUnknown : it->second.second);
      }
      const auto known = static_cast<size_t>(std::count_if(row.by.begin(), row.by.end(), [](uint32_t by) { return by != kUnknown; }));
      if (known > best_known || best.by.empty()) {
        best = std::move(row);
        best_known = known;
      }
    }
    return best;
  }

  ForkSite site(FuncId f, const Node& fork) const {
    ForkSite row;
    row.span = fork.span;
    row.func = f;
    row.def = source_name(m_.funcs[f].name);
    row.calls = static_cast<uint32_t>(fork.calls.size());
    for (const CallSite& call : fork.calls) {
      const std::string name = source_name(m_.funcs[call.func].name);
      if (std::find(row.callees.begin(), row.callees.end(), name) == row.callees.end()) row.callees.push_back(name);
    }
    if (device_.entries.empty()) {
      row.reason = "no call outside of a fork is marked with `!`";
      return row;
    }
    if (f.index >= device_.reachable.size() || !device_.reachable[f.index]) {
      row.reason = "no `!` call that can run there reaches it";
      return row;
    }
    const Cut* cut = nullptr;
    for (const Cut& c : plan_.cuts) {
      const Span span = device_.module.nodes[c.node].span;
      if (c.fork && span.file == fork.span.file && span.offset == fork.span.offset) cut = &c;
    }
    if (!cut) {
      row.reason = "its calls run in order on a device";
      return row;
    }
    for (FuncId child : cut->children) {
      const auto it = plan_.task_payload.find(child.index);
      row.task_bytes = std::max(row.task_bytes, BEND_TASK_HEADER + (it == plan_.task_payload.end() ? 0 : it->second.bytes));
    }
    row.task_stride = plan_.task_stride;
    row.join_bytes = cut->join_bytes;
    row.frame_bytes = cut->frame_bytes;
    for (const BoundedRecursion& bounded : device_.bounded) {
      if (bounded.func != f) continue;
      row.bounded_depth = bounded.depth;
      row.bounded_calls = bounded.calls;
      row.unbounded = bounded.why;
      if (bounded.depth > 0) row.measure = m_.vars[m_.funcs[f].params[bounded.measure]].name;
    }
    row.strategy = ForkStrategy::Host;
    shape(f, fork, row);
    for (const PerfectTree& tree : device_.trees) {
      if (tree.func != f) continue;
      row.not_flat = tree.why;
      if (!tree.why.empty()) continue;
      row.strategy = ForkStrategy::Flat;
      row.flat_from = tree.heavy ? 2 : tree.grain + BEND_LANE_BITS;
      row.flat_leaves = 1u << tree.grain;
      row.flat_loops = tree.heavy;
      row.reason = fmt::format("its tree is perfect: the depth `{}` alone says how many leaves there are", m_.vars[m_.funcs[f].params[tree.measure]].name);
    }
    for (const ScanTree& scan : device_.scans) {
      const FuncId first = device_.trees[scan.first].func, second = device_.trees[scan.second].func;
      if (first != f && second != f) continue;
      const std::string other = fmt::format("`{}` {} it", source_name(m_.funcs[first == f ? second : first].name), first == f ? "after" : "before");
      row.scan = row.scan || scan.why.empty();
      row.reason += scan.why.empty() ? fmt::format("; with {} a scan, in one pass and without the table between them", other) : fmt::format("; not in one pass with {}: {}", other, scan.why);
    }
    return row;
  }

  // What the tree below the fork is known to look like.
  void shape(FuncId f, const Node& fork, ForkSite& row) const {
    const bool self = std::all_of(fork.calls.begin(), fork.calls.end(), [&](const CallSite& call) { return call.func == f; });
    if (!self) {
      row.not_flat = "only a def that forks calls of itself makes a tree";
      if (std::none_of(fork.calls.begin(), fork.calls.end(), [&](const CallSite& call) { return call.func == f; }) &&
          std::any_of(fork.calls.begin(), fork.calls.end(), [&](const CallSite& call) { return component_[call.func.index] == component_[f.index]; })) {
        row.reason = fmt::format("its calls come back to `{}` by way of other defs: the tree's shape shows at run time", row.def);
        return;
      }
      row.reason = std::any_of(fork.calls.begin(), fork.calls.end(), [&](const CallSite& call) { return call.func == f; })
                       ? fmt::format("only some of its calls are of `{}` itself: the tree's shape shows at run time", row.def)
                       : fmt::format("it calls other defs than `{}`: a fork of {} calls, as often as `{}` is called", row.def, row.calls, row.def);
      return;
    }
    const Shrink less = shrink(f, fork);
    const bool known = !less.by.empty() && std::none_of(less.by.begin(), less.by.end(), [](uint32_t by) { return by == kUnknown; });
    if (!known) {
      row.reason = "no Nat shrinks by a known number in every call: how large a call is shows when it runs";
      row.not_flat = "the depth of its tree is not known when it starts";
      return;
    }
    row.measure = m_.vars[m_.funcs[f].params[less.param]].name;
    const auto [low, high] = std::minmax_element(less.by.begin(), less.by.end());
    if (*low != *high) {
      row.reason = fmt::format("the calls make `{}` smaller by {} to {}: subtrees differ in size", row.measure, *low, *high);
      row.not_flat = "its leaves lie at different depths";
      return;
    }
    row.reason = fmt::format("every call makes `{}` smaller by {}", row.measure, *low);
  }

  const Module& m_;
  const DeviceModule& device_;
  const MachinePlan& plan_;
  const std::vector<uint32_t> component_;   // of the call graph, by function
};

}  // namespace

const char* strategy_name(ForkStrategy strategy) {
  switch (strategy) {
    case ForkStrategy::Cpu: return "cpu";
    case ForkStrategy::Host: return "host";
    case ForkStrategy::Flat: return "flat";
  }
  return "";
}

std::string source_name(const std::string& name) { return name.substr(0, name.find_first_of("~@$")); }

std::vector<ForkSite> find_fork_sites(const Module& host, const DeviceModule& device, const MachinePlan& plan) { return Finder(host, device, plan).run(); }

}  // namespace bendc
