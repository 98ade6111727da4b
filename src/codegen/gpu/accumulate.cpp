#include "codegen/gpu/accumulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "codegen/walk.h"

namespace bendc {

using namespace flow;

namespace {

std::optional<uint32_t> identity_of(Prim prim) {
  if (prim == Prim::U32Add || prim == Prim::U32Or || prim == Prim::U32Xor) return 0;
  if (prim == Prim::U32Mul) return 1;
  if (prim == Prim::U32And) return ~0u;
  return std::nullopt;
}

// What follows a fork: the results, each once, and other values under one operation.
struct Reduction {
  Prim prim{};
  uint32_t identity = 0;
  std::vector<VarId> others;                        // in scope at the fork
  std::vector<std::pair<uint64_t, VarId>> constants;  // made after it: bits, the variable
};

class Accumulate {
 public:
  explicit Accumulate(Module& module) : m_(module) {}

  std::optional<Accumulator> run(FuncId f) {
    if (m_.types[m_.funcs[f].result].kind != TypeKind::U32) return std::nullopt;
    std::map<uint32_t, Reduction> forks;   // by node, those of `f` that only put results of `f` together
    std::optional<Prim> prim;
    bool one = true;
    each_node(m_, m_.funcs[f].body, [&](NodeId at) {
      if (m_.nodes[at].kind != NodeKind::Fork) return;
      std::optional<Reduction> found = reduction(f, m_.nodes[at]);
      if (!found) return;
      one &= !prim || *prim == found->prim;
      prim = found->prim;
      forks.emplace(at.index, std::move(*found));
    });
    if (forks.empty() || !one) return std::nullopt;
    return make(f, *prim, forks);
  }

 private:
  std::optional<Reduction> reduction(FuncId f, const Node& fork) const {
    for (const CallSite& call : fork.calls)
      if (call.func != f) return std::nullopt;
    std::set<uint32_t> results, combined;     // combined: values that hold results
    for (VarId v : m_.list(fork.vars)) results.insert(v.index);
    combined = results;
    Reduction out;
    bool first = true;
    for (NodeId at = fork.next; at.valid(); at = m_.nodes[at].next) {
      const Node& n = m_.nodes[at];
      if (n.kind == NodeKind::Ret) {
        if (combined.size() != 1 || !combined.count(n.subject.index) || first) return std::nullopt;
        for (VarId v : out.others)
          if (m_.types[m_.vars[v].type].kind != TypeKind::U32) return std::nullopt;
        return out;
      }
      if (n.kind != NodeKind::Let) return std::nullopt;
      if (n.expr.kind == ExprKind::Const) {
        out.constants.emplace_back(n.expr.imm, n.var);
        continue;
      }
      const std::optional<uint32_t> identity = n.expr.kind == ExprKind::Prim ? identity_of(n.expr.prim) : std::nullopt;
      if (!identity || (!first && n.expr.prim != out.prim)) return std::nullopt;
      out.prim = n.expr.prim;
      out.identity = *identity;
      first = false;
      const std::span<const VarId> args = m_.list(n.expr.args);
      if (args[0] == args[1] || (!combined.count(args[0].index) && !combined.count(args[1].index))) return std::nullopt;
      for (VarId arg : args)
        if (combined.erase(arg.index) == 0) out.others.push_back(arg);
      combined.insert(n.var.index);
    }
    return std::nullopt;
  }

  VarId fresh(const char* name) { return m_.vars.add({u32_, name, false}); }
  Slice with(Slice args, VarId last) {
    std::vector<VarId> all(m_.list(args).begin(), m_.list(args).end());
    all.push_back(last);
    return m_.var_lists.add(all);
  }
  Node constant(VarId var, uint64_t bits, Span span) const {
    Node n;
    n.kind = NodeKind::Let;
    n.var = var;
    n.expr.kind = ExprKind::Const;
    n.expr.imm = bits;
    n.span = span;
    return n;
  }
  Node combine(Prim prim, VarId var, VarId a, VarId b, Span span) {
    Node n;
    n.kind = NodeKind::Let;
    n.var = var;
    n.expr.kind = ExprKind::Prim;
    n.expr.prim = prim;
    n.expr.args = m_.var_lists.add(std::vector<VarId>{a, b});
    n.span = span;
    return n;
  }
  // Puts `before` in the place of node `at`, which follows them.
  void insert(NodeId at, std::vector<Node> before) {
    NodeId next = m_.nodes.add(Node(m_.nodes[at]));
    for (size_t i = before.size(); i-- > 0;) {
      before[i].next = next;
      if (i > 0) next = m_.nodes.add(std::move(before[i]));
      else m_.nodes[at] = std::move(before[i]);
    }
  }

  Accumulator make(FuncId f, Prim prim, const std::map<uint32_t, Reduction>& forks) {
    u32_ = m_.funcs[f].result;
    const uint32_t identity = *identity_of(prim);
    BodyCopier copier(m_);
    Func g;
    g.name = fmt::format("{}~acc", m_.funcs[f].name);
    g.result = u32_;
    g.span = m_.funcs[f].span;
    g.borrowed = m_.funcs[f].borrowed;
    if (!g.borrowed.empty()) g.borrowed.push_back(false);
    for (VarId param : m_.funcs[f].params) {
      const VarId to = m_.vars.add(Var(m_.vars[param]));
      copier.map_var(param, to);
      g.params.push_back(to);
    }
    const VarId acc = fresh("acc");
    g.params.push_back(acc);
    g.body = copier.copy(m_.funcs[f].body);
    const NodeId body = g.body;
    const FuncId made = m_.funcs.add(std::move(g));

    std::map<uint32_t, uint32_t> origin;   // copies of those forks
    for (const auto& [fork, row] : forks) origin[copier.node_copy.at(fork).index] = fork;
    std::vector<NodeId> ends;
    std::set<uint32_t> reduced;            // ends that only put results together
    each_node(m_, body, [&](NodeId at) {
      const NodeKind kind = m_.nodes[at].kind;
      if (kind == NodeKind::Ret || kind == NodeKind::Tail) ends.push_back(at);
      if (kind != NodeKind::Fork || !origin.count(at.index)) return;
      for (NodeId end = at; end.valid(); end = m_.nodes[end].next)
        if (m_.nodes[end].kind == NodeKind::Ret) reduced.insert(end.index);
    });
    for (NodeId at : ends) {
      const Node end = m_.nodes[at];
      if (reduced.count(at.index)) continue;
      if (end.kind == NodeKind::Tail && end.func == f) {
        m_.nodes[at].func = made;
        m_.nodes[at].args = with(end.args, acc);
        continue;
      }
      std::vector<Node> before;
      VarId value = end.subject;
      if (end.kind == NodeKind::Tail) {
        Node call;
        call.kind = NodeKind::Let;
        call.var = value = fresh("v");
        call.expr.kind = ExprKind::Call;
        call.expr.func = end.func;
        call.expr.args = end.args;
        call.span = end.span;
        before.push_back(std::move(call));
      }
      const VarId sum = fresh("s");
      before.push_back(combine(prim, sum, acc, value, end.span));
      Node ret;
      ret.kind = NodeKind::Ret;
      ret.subject = sum;
      ret.span = end.span;
      m_.nodes[at] = std::move(ret);
      insert(at, std::move(before));
    }
    for (const auto& [copy, fork] : origin) reduce(NodeId(copy), forks.at(fork), copier, made, acc);

    // The original: a call from elsewhere.
    const VarId none = fresh("none");
    Node tail;
    tail.kind = NodeKind::Tail;
    tail.func = made;
    tail.args = with(m_.var_lists.add(m_.funcs[f].params), none);
    tail.span = m_.funcs[f].span;
    Node first = constant(none, identity, m_.funcs[f].span);
    first.next = m_.nodes.add(std::move(tail));
    m_.funcs[f].body = m_.nodes.add(std::move(first));
    return {made, f, prim, identity};
  }

  // The fork's first child gets the value so far and what else is put together, the others nothing; their results alone remain after it.
  void reduce(NodeId at, const Reduction& row, const BodyCopier& copier, FuncId made, VarId acc) {
    const Span span = m_.nodes[at].span;
    std::vector<Node> before, after;
    std::map<uint32_t, VarId> moved;
    for (const auto& [bits, var] : row.constants) {
      if (std::find(row.others.begin(), row.others.end(), var) == row.others.end()) continue;
      const VarId to = fresh("c");
      moved[var.index] = to;
      before.push_back(constant(to, bits, span));
    }
    VarId start = acc;
    for (VarId other : row.others) {
      const VarId sum = fresh("s"), value = moved.count(other.index) ? moved.at(other.index) : copier.var(other);
      before.push_back(combine(row.prim, sum, start, value, span));
      start = sum;
    }
    const VarId none = fresh("none");
    before.push_back(constant(none, row.identity, span));
    const std::vector<VarId> results(m_.list(m_.nodes[at].vars).begin(), m_.list(m_.nodes[at].vars).end());
    VarId total = results[0];
    for (size_t i = 1; i < results.size(); ++i) {
      const VarId sum = fresh("s");
      after.push_back(combine(row.prim, sum, total, results[i], span));
      total = sum;
    }
    Node ret;
    ret.kind = NodeKind::Ret;
    ret.subject = total;
    ret.span = span;
    NodeId next = m_.nodes.add(std::move(ret));
    for (size_t i = after.size(); i-- > 0;) {
      after[i].next = next;
      next = m_.nodes.add(std::move(after[i]));
    }
    m_.nodes[at].next = next;
    for (size_t i = 0; i < results.size(); ++i) {
      const Slice args = with(m_.nodes[at].calls[i].args, i == 0 ? start : none);
      m_.nodes[at].calls[i].func = made;
      m_.nodes[at].calls[i].args = args;
    }
    insert(at, std::move(before));
  }

  Module& m_;
  TypeId u32_;
};

}  // namespace

std::vector<Accumulator> accumulate_forks(Module& module, const std::function<bool(FuncId)>& candidate) {
  std::vector<Accumulator> out;
  const uint32_t count = module.funcs.size();
  for (uint32_t i = 0; i < count; ++i) {
    if (!candidate(FuncId(i)) || !module.funcs[FuncId(i)].body.valid()) continue;
    if (std::optional<Accumulator> made = Accumulate(module).run(FuncId(i))) out.push_back(*made);
  }
  return out;
}

}  // namespace bendc
