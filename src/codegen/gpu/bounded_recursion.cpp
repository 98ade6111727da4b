#include "codegen/gpu/bounded_recursion.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "codegen/walk.h"

namespace bendc {

using namespace flow;

namespace {

constexpr uint32_t kMostCalls = 256;     // some microseconds in one thread, about what another round costs
constexpr uint32_t kMostDepth = 16;
constexpr uint32_t kMostNodes = 3000;    // of all copies of one function
constexpr uint32_t kErrorDeviceCode = 4; // base.md 5.2

class Bounder {
 public:
  Bounder(Module& module, const std::vector<bool>& reachable, const std::vector<bool>& async) : m_(module), reachable_(reachable), async_(async) {}

  BoundedCopies run() {
    const uint32_t count = m_.funcs.size();
    heavy_.assign(count, Unknown);
    for (uint32_t i = 0; i < count; ++i) {
      if (!reachable_[i] || !async_[i]) continue;
      BoundedRecursion row;
      row.func = FuncId(i);
      bound(row);
      out_.functions.push_back(std::move(row));
    }
    return std::move(out_);
  }

 private:
  enum Weight : uint8_t { Unknown, Light, Heavy };

  // Loops and whole-array operations: work that the depth says nothing about.
  bool heavy(FuncId f) {
    if (heavy_[f.index] != Unknown) return heavy_[f.index] == Heavy;
    bool found = false;
    each_node(m_, m_.funcs[f].body, [&](NodeId at) {
      const Node& n = m_.nodes[at];
      if (n.kind == NodeKind::Join && n.loop) found = true;
      if (n.kind == NodeKind::Let && n.expr.kind == ExprKind::Prim) {
        const Prim p = n.expr.prim;
        found |= p == Prim::ArrayNew || p == Prim::ArrayClone || p == Prim::ArraySplit || p == Prim::ArrayNode;
      }
    });
    heavy_[f.index] = found ? Heavy : Light;
    if (found) return true;
    // Callees of a function that is not async lie on no cycle.
    for (FuncId g : callees(f))
      if (g != f && (async_[g.index] || heavy(g))) {
        heavy_[f.index] = Heavy;
        return true;
      }
    return false;
  }

  std::vector<FuncId> callees(FuncId f) {
    std::vector<FuncId> out;
    each_node(m_, m_.funcs[f].body, [&](NodeId at) {
      const Node& n = m_.nodes[at];
      if (n.kind == NodeKind::Let && n.expr.kind == ExprKind::Call) out.push_back(n.expr.func);
      if (n.kind == NodeKind::Tail) out.push_back(n.func);
      for (const CallSite& call : n.calls) out.push_back(call.func);
    });
    return out;
  }

  // How much smaller than parameter `measure` the argument of a self call is; nothing when that is unknown.
  struct SelfCall {
    NodeId node;
    size_t index;      // of the fork's calls
    uint32_t less;
  };
  std::optional<std::vector<SelfCall>> self_calls(FuncId f, size_t measure) {
    std::map<uint32_t, uint32_t> less{{m_.funcs[f].params[measure].index, 0}};
    std::vector<SelfCall> out;
    bool known = true;
    auto note = [&](NodeId at, size_t index, Slice args) {
      const auto it = less.find(m_.list(args)[measure].index);
      if (it == less.end() || it->second == 0) known = false;
      else out.push_back({at, index, it->second});
    };
    // Parents come first, so that a predecessor is known before its uses.
    each_node(m_, m_.funcs[f].body, [&](NodeId at) {
      const Node& n = m_.nodes[at];
      if (n.kind == NodeKind::Let && n.expr.kind == ExprKind::Prim && n.expr.prim == Prim::NatPred) {
        if (const auto it = less.find(m_.list(n.expr.args)[0].index); it != less.end()) less[n.var.index] = it->second + 1;
      }
      if (n.kind == NodeKind::Let && n.expr.kind == ExprKind::Call && n.expr.func == f) note(at, 0, n.expr.args);
      if (n.kind == NodeKind::Tail && n.func == f) known = false;   // a loop that make_loops left: not ours
      for (size_t i = 0; i < n.calls.size(); ++i)
        if (n.calls[i].func == f) note(at, i, n.calls[i].args);
    });
    if (!known) return std::nullopt;
    return out;
  }

  // Self calls of the path with the most of them.
  std::vector<uint32_t> widest_path(NodeId id, const std::map<uint32_t, std::vector<uint32_t>>& less) {
    std::vector<uint32_t> out;
    std::map<uint32_t, std::vector<uint32_t>> joins;
    while (id.valid()) {
      const Node& n = m_.nodes[id];
      if (const auto it = less.find(id.index); it != less.end()) out.insert(out.end(), it->second.begin(), it->second.end());
      if (n.kind == NodeKind::Join) {
        // Counted once, whoever jumps there.
        const std::vector<uint32_t> body = widest_path(n.body, less);
        out.insert(out.end(), body.begin(), body.end());
      }
      std::vector<uint32_t> best;
      auto arm = [&](NodeId body) {
        std::vector<uint32_t> path = widest_path(body, less);
        if (path.size() > best.size()) best = std::move(path);
      };
      for (const Arm& a : n.arms) arm(a.body);
      if (n.other.valid()) arm(n.other);
      out.insert(out.end(), best.begin(), best.end());
      id = n.next;
    }
    return out;
  }

  void bound(BoundedRecursion& row) {
    const FuncId f = row.func;
    const std::vector<FuncId> called = callees(f);
    if (std::find(called.begin(), called.end(), f) == called.end()) {
      row.why = "it does not call itself";
      return;
    }
    for (FuncId g : called) {
      if (g != f && async_[g.index]) {
        row.why = fmt::format("it calls `{}`, which forks or recurses too", display(g));
        return;
      }
    }
    if (heavy(f)) {
      row.why = "it loops or handles whole arrays: its work is more than its calls";
      return;
    }
    std::optional<std::vector<SelfCall>> calls;
    size_t measure = 0;
    for (; measure < m_.funcs[f].params.size(); ++measure) {
      if (m_.types[m_.vars[m_.funcs[f].params[measure]].type].kind != TypeKind::Nat) continue;
      calls = self_calls(f, measure);
      if (calls) break;
    }
    if (!calls) {
      row.why = "no Nat parameter becomes smaller by a known number in every call";
      return;
    }
    std::map<uint32_t, std::vector<uint32_t>> less;
    for (const SelfCall& call : *calls) less[call.node.index].push_back(call.less);
    const std::vector<uint32_t> path = widest_path(m_.funcs[f].body, less);
    uint32_t nodes = 0;
    each_node(m_, m_.funcs[f].body, [&](NodeId) { ++nodes; });
    std::vector<uint32_t> cost{1};
    while (cost.size() <= kMostDepth && nodes * (cost.size() + 1) <= kMostNodes) {
      uint32_t next = 1;
      for (uint32_t l : path)
        if (l <= cost.size()) next += cost[cost.size() - l];
      if (next > kMostCalls) break;
      cost.push_back(next);
    }
    const auto depth = static_cast<uint32_t>(cost.size() - 1);
    if (depth < 2) {
      row.why = "its body is too large, or forks too wide, for copies";
      return;
    }
    row.depth = depth;
    row.measure = static_cast<uint32_t>(measure);
    row.calls = cost[depth];
    make_copies(f, measure, depth, *calls);
  }

  std::string display(FuncId f) const { return m_.funcs[f].name.substr(0, m_.funcs[f].name.find('~')); }

  void make_copies(FuncId f, size_t measure, uint32_t depth, const std::vector<SelfCall>& calls) {
    std::vector<FuncId> copies;
    for (uint32_t k = 0; k <= depth; ++k) {
      BodyCopier copier(m_);
      Func g;
      g.name = fmt::format("{}@{}", m_.funcs[f].name, k);
      g.result = m_.funcs[f].result;
      g.span = m_.funcs[f].span;
      g.borrowed = m_.funcs[f].borrowed;
      for (VarId param : m_.funcs[f].params) {
        Var copy = m_.vars[param];
        const VarId to = m_.vars.add(std::move(copy));
        copier.map_var(param, to);
        g.params.push_back(to);
      }
      g.body = copier.copy(m_.funcs[f].body);
      std::vector<NodeId> forks;
      for (const SelfCall& call : calls) {
        const NodeId at = copier.node_copy.at(call.node.index);
        Node& n = m_.nodes[at];
        if (call.less > k) {
          // n is at most k here, so this path is never taken.
          Node never;
          never.kind = NodeKind::Abort;
          never.imm = kErrorDeviceCode;
          never.span = n.span;
          n = std::move(never);
        } else if (n.kind == NodeKind::Let) {
          n.expr.func = copies[k - call.less];
        } else if (n.kind == NodeKind::Fork) {
          n.calls[call.index].func = copies[k - call.less];
        }
      }
      each_node(m_, g.body, [&](NodeId at) { if (m_.nodes[at].kind == NodeKind::Fork) forks.push_back(at); });
      for (NodeId at : forks) in_order(at);
      copies.push_back(m_.funcs.add(std::move(g)));
    }
    out_.copies.insert(out_.copies.end(), copies.begin(), copies.end());

    const std::vector<VarId> params = m_.funcs[f].params;
    const TypeId nat = m_.vars[params[measure]].type;
    Type boolean;
    boolean.kind = TypeKind::Enum;
    boolean.count = 2;
    const VarId limit = m_.vars.add({nat, "limit", false}), small = m_.vars.add({m_.intern(boolean), "small", false});
    Node tail;
    tail.kind = NodeKind::Tail;
    tail.func = copies[depth];
    tail.args = m_.var_lists.add(params);
    tail.span = m_.funcs[f].span;
    const NodeId there = m_.nodes.add(std::move(tail));
    Node choose;
    choose.kind = NodeKind::Case;
    choose.subject = small;
    choose.arms = {{0, m_.funcs[f].body}, {1, there}};
    choose.span = m_.funcs[f].span;
    const NodeId chosen = m_.nodes.add(std::move(choose));
    Node compare;
    compare.kind = NodeKind::Let;
    compare.var = small;
    compare.expr.kind = ExprKind::Prim;
    compare.expr.prim = Prim::NatIsLt;
    compare.expr.args = m_.var_lists.add(std::vector<VarId>{params[measure], limit});
    compare.span = m_.funcs[f].span;
    compare.next = chosen;
    const NodeId compared = m_.nodes.add(std::move(compare));
    Node constant;
    constant.kind = NodeKind::Let;
    constant.var = limit;
    constant.expr.kind = ExprKind::Const;
    constant.expr.imm = depth + 1;
    constant.span = m_.funcs[f].span;
    constant.next = compared;
    m_.funcs[f].body = m_.nodes.add(std::move(constant));
  }

  // A fork becomes its calls, one after another.
  void in_order(NodeId at) {
    const Node fork = m_.nodes[at];
    const std::vector<VarId> results(m_.list(fork.vars).begin(), m_.list(fork.vars).end());
    NodeId next = fork.next;
    for (size_t i = results.size(); i-- > 0;) {
      Node call;
      call.kind = NodeKind::Let;
      call.var = results[i];
      call.expr.kind = ExprKind::Call;
      call.expr.func = fork.calls[i].func;
      call.expr.args = fork.calls[i].args;
      call.span = fork.span;
      call.next = next;
      if (i == 0) m_.nodes[at] = std::move(call);
      else next = m_.nodes.add(std::move(call));
    }
  }

  Module& m_;
  const std::vector<bool>&reachable_, &async_;
  std::vector<Weight> heavy_;
  BoundedCopies out_;
};

}  // namespace

BoundedCopies bound_recursion(Module& module, const std::vector<bool>& reachable, const std::vector<bool>& async) { return Bounder(module, reachable, async).run(); }

}  // namespace bendc
