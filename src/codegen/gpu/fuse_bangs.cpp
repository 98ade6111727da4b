// Works backwards from each `!` call over the lets before it in the same straight line. Flow is pure here, so the first call may move down to the
// second; only which of two run-time errors comes first could change, and that is open for calls without a data dependence.
#include "codegen/gpu/fuse_bangs.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "codegen/gpu/segments.h"
#include "codegen/walk.h"

namespace bendc {

using namespace flow;

namespace {

class Fuser {
 public:
  explicit Fuser(Module& module) : m_(module) {}

  void run() {
    const uint32_t count = m_.funcs.size();
    for (uint32_t i = 0; i < count; ++i) {
      bool bang = false;
      each_node(m_, m_.funcs[FuncId(i)].body, [&](NodeId at) { bang |= is_bang(m_.nodes[at]); });
      if (!bang) continue;
      count_uses(m_.funcs[FuncId(i)].body);
      std::vector<NodeId> starts{m_.funcs[FuncId(i)].body};
      each_node(m_, m_.funcs[FuncId(i)].body, [&](NodeId at) {
        const Node& n = m_.nodes[at];
        for (const Arm& arm : n.arms) starts.push_back(arm.body);
        if (n.other.valid()) starts.push_back(n.other);
        if (n.body.valid()) starts.push_back(n.body);
        if (n.kind != NodeKind::Let && n.next.valid()) starts.push_back(n.next);
      });
      for (NodeId start : starts) line(i, start);
    }
  }

 private:
  static bool is_bang(const Node& n) { return n.kind == NodeKind::Let && n.expr.kind == ExprKind::Call && n.expr.bang; }

  void count_uses(NodeId body) {
    uses_.clear();
    each_node(m_, body, [&](NodeId at) {
      const Node& n = m_.nodes[at];
      if (n.subject.valid()) ++uses_[n.subject.index];
      for (VarId v : m_.list(n.args)) ++uses_[v.index];
      if (n.kind == NodeKind::Let)
        for (VarId v : m_.list(n.expr.args)) ++uses_[v.index];
      for (const CallSite& call : n.calls)
        for (VarId v : m_.list(call.args)) ++uses_[v.index];
    });
  }

  void line(uint32_t func, NodeId id) {
    std::unordered_map<uint32_t, NodeId> made;   // result -> its `!` call, in this line and not fused yet
    for (; id.valid() && m_.nodes[id].kind == NodeKind::Let; id = m_.nodes[id].next) {
      if (!is_bang(m_.nodes[id])) continue;
      for (bool changed = true; changed;) {
        changed = false;
        std::vector<VarId> args(m_.list(m_.nodes[id].expr.args).begin(), m_.list(m_.nodes[id].expr.args).end());
        for (size_t i = 0; i < args.size() && !changed; ++i) {
          auto it = made.find(args[i].index);
          if (it == made.end() || uses_[args[i].index] != 1) continue;
          const NodeId first = it->second;
          if (!runs_there(m_.nodes[first].expr.func) || !runs_there(m_.nodes[id].expr.func)) continue;
          made.erase(it);
          fuse(func, first, id, i);
          changed = true;
        }
      }
      made[m_.nodes[id].var.index] = id;
    }
  }

  // Which closures an application meets is known only for a whole device module.
  bool has_objects(FuncId func) {
    bool any = false;
    each_node(m_, m_.funcs[func].body, [&](NodeId at) {
      const Node& n = m_.nodes[at];
      any |= n.kind == NodeKind::Let && (n.expr.kind == ExprKind::Closure || n.expr.kind == ExprKind::Apply);
    });
    return any;
  }

  // Nothing that `func` reaches keeps it off the device; fused with such a call, the other one would stay on the host too.
  bool runs_there(FuncId func) {
    auto [known, fresh] = runs_there_.try_emplace(func.index, true);
    if (!fresh) return known->second;
    std::set<uint32_t> seen{func.index};
    std::vector<FuncId> work{func};
    bool runs = true;
    while (runs && !work.empty()) {
      const FuncId f = work.back();
      work.pop_back();
      runs = host_only(m_, f).empty() && !has_objects(f);
      auto visit = [&](FuncId g) { if (seen.insert(g.index).second) work.push_back(g); };
      each_node(m_, m_.funcs[f].body, [&](NodeId at) {
        const Node& n = m_.nodes[at];
        if (n.kind == NodeKind::Let && n.expr.kind == ExprKind::Call) visit(n.expr.func);
        if (n.kind == NodeKind::Tail) visit(n.func);
        for (const CallSite& call : n.calls) visit(call.func);
      });
    }
    return runs_there_[func.index] = runs;
  }

  // outer(.., inner(..), ..) as a function of inner's arguments, then outer's others.
  FuncId composed(NodeId first, NodeId second, size_t position) {
    const Expr inner = m_.nodes[first].expr, outer = m_.nodes[second].expr;
    const std::vector<VarId> inner_args(m_.list(inner.args).begin(), m_.list(inner.args).end());
    const std::vector<VarId> outer_args(m_.list(outer.args).begin(), m_.list(outer.args).end());
    Func g;
    g.name = fresh_name(fmt::format("{}.of.{}", m_.funcs[outer.func].name, m_.funcs[inner.func].name));
    g.result = m_.funcs[outer.func].result;
    g.span = m_.funcs[outer.func].span;
    for (VarId v : inner_args) g.params.push_back(copy_var(v));
    for (size_t i = 0; i < outer_args.size(); ++i) if (i != position) g.params.push_back(copy_var(outer_args[i]));
    std::vector<VarId> inner_params(g.params.begin(), g.params.begin() + static_cast<long>(inner_args.size()));
    std::vector<VarId> outer_params;
    const VarId middle = copy_var(m_.nodes[first].var);
    size_t next = inner_args.size();
    for (size_t i = 0; i < outer_args.size(); ++i) outer_params.push_back(i == position ? middle : g.params[next++]);
    const VarId result = copy_var(m_.nodes[second].var);
    Node ret;
    ret.kind = NodeKind::Ret;
    ret.subject = result;
    ret.span = m_.nodes[second].span;
    g.body = call(inner.func, inner_params, middle, m_.nodes[first].span, call(outer.func, outer_params, result, m_.nodes[second].span, m_.nodes.add(std::move(ret))));
    return m_.funcs.add(std::move(g));
  }

  void fuse(uint32_t func, NodeId first, NodeId second, size_t position) {
    const Expr inner = m_.nodes[first].expr, outer = m_.nodes[second].expr;
    std::vector<VarId> inner_args(m_.list(inner.args).begin(), m_.list(inner.args).end());
    std::vector<VarId> outer_args(m_.list(outer.args).begin(), m_.list(outer.args).end());
    std::vector<VarId> args = inner_args;
    for (size_t i = 0; i < outer_args.size(); ++i) if (i != position) args.push_back(outer_args[i]);

    auto [made, fresh] = made_.try_emplace({inner.func.index, outer.func.index, position});
    if (fresh) made->second = composed(first, second, position);
    m_.nodes[second].expr.func = made->second;
    m_.nodes[second].expr.args = m_.var_lists.add(args);
    unlink(FuncId(func), first);
  }

  // Whatever goes to `gone` goes to its successor instead.
  void unlink(FuncId func, NodeId gone) {
    const NodeId next = m_.nodes[gone].next;
    if (m_.funcs[func].body == gone) m_.funcs[func].body = next;
    std::vector<NodeId> all;
    each_node(m_, m_.funcs[func].body, [&](NodeId at) { all.push_back(at); });
    for (NodeId at : all) {
      Node& n = m_.nodes[at];
      if (n.next == gone) n.next = next;
      if (n.body == gone) n.body = next;
      if (n.other == gone) n.other = next;
      for (Arm& arm : n.arms) if (arm.body == gone) arm.body = next;
    }
  }

  NodeId call(FuncId func, const std::vector<VarId>& args, VarId result, Span span, NodeId next) {
    Node n;
    n.kind = NodeKind::Let;
    n.var = result;
    n.expr.kind = ExprKind::Call;
    n.expr.func = func;
    n.expr.args = m_.var_lists.add(args);
    n.next = next;
    n.span = span;
    return m_.nodes.add(std::move(n));
  }

  VarId copy_var(VarId v) {
    Var copy = m_.vars[v];
    return m_.vars.add(std::move(copy));
  }

  std::string fresh_name(const std::string& wanted) {
    if (names_.empty())
      for (uint32_t i = 0; i < m_.funcs.size(); ++i) names_.insert(m_.funcs[FuncId(i)].name);
    std::string name = wanted;
    for (uint32_t k = 2; !names_.insert(name).second; ++k) name = fmt::format("{}~{}", wanted, k);
    return name;
  }

  Module& m_;
  std::unordered_map<uint32_t, uint32_t> uses_;
  std::unordered_map<uint32_t, bool> runs_there_;
  std::map<std::tuple<uint32_t, uint32_t, size_t>, FuncId> made_;   // by inner, outer, position
  std::set<std::string> names_;
};

}  // namespace

void fuse_bangs(Module& module, const PassOptions&) { Fuser(module).run(); }

}  // namespace bendc
