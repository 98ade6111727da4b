#include "codegen/gpu/segments.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "codegen/call_graph.h"
#include "codegen/gpu/bounded_recursion.h"
#include "codegen/gpu/defunctionalise.h"
#include "codegen/gpu/merge_calls.h"
#include "codegen/ownership.h"
#include "codegen/prim_types.h"
#include "codegen/walk.h"

namespace bendc {

using namespace flow;

namespace {

// Every direct callee of a function.
template <class F> void each_callee(Module& m, FuncId f, F&& visit) {
  each_node(m, m.funcs[f].body, [&](NodeId at) {
    const Node& n = m.nodes[at];
    if (n.kind == NodeKind::Let && n.expr.kind == ExprKind::Call) visit(n.expr.func);
    if (n.kind == NodeKind::Tail) visit(n.func);
    for (const CallSite& call : n.calls) visit(call.func);
  });
}

// Whether a function, or one that it reaches, stores into an array that it did not make.
bool writes_arrays(Module& m, FuncId from) {
  std::vector<bool> seen(m.funcs.size(), false);
  std::vector<FuncId> work;
  auto reach = [&](FuncId f) {
    if (!seen[f.index]) work.push_back(f);
    seen[f.index] = true;
  };
  reach(from);
  while (!work.empty()) {
    const FuncId f = work.back();
    work.pop_back();
    bool writes = false;
    each_node(m, m.funcs[f].body, [&](NodeId at) {
      const Node& n = m.nodes[at];
      if (n.kind != NodeKind::Let || n.expr.kind != ExprKind::Prim) return;
      const Prim p = n.expr.prim;
      writes |= p == Prim::ArraySet || p == Prim::ArraySwap || (p >= Prim::AtomicAdd && p <= Prim::AtomicFadd);
    });
    if (writes) return true;
    each_callee(m, f, reach);
  }
  return false;
}

}  // namespace

std::string host_only(Module& m, FuncId f) {
  std::string why;
  each_node(m, m.funcs[f].body, [&](NodeId at) {
    const Node& n = m.nodes[at];
    if (n.kind != NodeKind::Let || !why.empty()) return;
    const std::string name = m.funcs[f].name.substr(0, m.funcs[f].name.find('~'));
    switch (n.expr.kind) {
      case ExprKind::Request: why = fmt::format("`{}` performs an effect", name); break;
      case ExprKind::Prim: {
        const Prim p = n.expr.prim;
        if (p == Prim::F32Show || p == Prim::F32Read || p == Prim::ShowText || p == Prim::ShowU32 || p == Prim::ShowNat || p == Prim::ShowF32 ||
            p == Prim::ShowChar || p == Prim::ShowString)
          why = fmt::format("`{}` uses `{}`, which exists on the host only", name, prim_base(p).empty() ? prim_text(p) : prim_base(p));
        break;
      }
      case ExprKind::Const: case ExprKind::Str: case ExprKind::Struct: case ExprKind::Get: case ExprKind::Variant: case ExprKind::VariantGet:
      case ExprKind::Con: case ExprKind::ConGet: case ExprKind::Call: case ExprKind::Apply: case ExprKind::Closure: case ExprKind::Box: case ExprKind::Unbox:
        break;
    }
  });
  return why;
}

namespace {

// The cutting of one function and of the functions lifted out of it.
class Cutter {
  using Refs = std::map<uint32_t, int>;   // counted variables with references of their own

 public:
  Cutter(Module& module, std::vector<bool>& async, FuncId root) : m_(module), async_(async), root_(root), base_(module.funcs[root].name) {}

  void run() {
    work_ = {root_};
    while (!work_.empty()) {
      FuncId next = work_.back();
      work_.pop_back();
      func(next);
    }
  }

 private:
  bool is_cut(const Node& n) const {
    if (n.kind == NodeKind::Fork) return true;
    return n.kind == NodeKind::Let && n.expr.kind == ExprKind::Call && async_[n.expr.func.index];
  }
  // Already in cut form: nothing but a tail call of a lifted function follows, and that takes the results first, each once.
  bool is_cut_form(const Node& n, std::span<const VarId> results) const {
    const Node& tail = m_.nodes[n.next];
    if (tail.kind != NodeKind::Tail || !lifted_.count(tail.func.index)) return false;
    const std::span<const VarId> args = m_.list(tail.args);
    if (args.size() < results.size()) return false;
    for (size_t i = 0; i < args.size(); ++i) {
      if (i < results.size() ? args[i] != results[i] : std::find(results.begin(), results.end(), args[i]) != results.end()) return false;
    }
    return true;
  }

  void func(FuncId f) {
    Refs refs;
    for (size_t i = 0; i < m_.funcs[f].params.size(); ++i) {
      const bool borrowed = i < m_.funcs[f].borrowed.size() && m_.funcs[f].borrowed[i];
      if (!borrowed) refs[m_.funcs[f].params[i].index] = 1;
    }
    lift_.clear();
    find_joins(m_.funcs[f].body, {}, {});
    body(m_.funcs[f].body, refs);
  }

  // ---- joins that a continuation jumps to ----
  // Marks every join with a jump to it beyond a cut that lies in its scope. `open`: joins in scope here; `cut`: those whose scope holds
  // a cut before this point.
  void find_joins(NodeId id, std::set<uint32_t> cut, std::set<uint32_t> open) {
    while (id.valid()) {
      const Node& n = m_.nodes[id];
      if (n.kind == NodeKind::Join) {
        std::set<uint32_t> inner = open;
        if (n.loop) inner.insert(n.join.index);
        find_joins(n.body, cut, inner);
        open.insert(n.join.index);
      }
      if (is_cut(n)) cut.insert(open.begin(), open.end());
      if (n.kind == NodeKind::Jump && cut.count(n.join.index)) lift_.insert(n.join.index);
      for (const Arm& arm : n.arms) find_joins(arm.body, cut, open);
      if (n.other.valid()) find_joins(n.other, cut, open);
      id = n.next;
    }
  }

  // Turns a marked join into a function of its parameters and free variables and its jumps into tail calls; the node itself becomes its
  // successor.
  void lift(NodeId id, const Refs& refs) {
    const Node n = m_.nodes[id];
    std::vector<VarId> params(m_.list(n.vars).begin(), m_.list(n.vars).end());
    std::vector<VarId> free = free_vars(n.body, params);
    FuncId g = new_func(root_, params, free, n.body, [&](VarId v) { return !refs.count(v.index); });
    replace_jumps(n.next, n.join, g, free);
    const std::vector<VarId> inner(m_.funcs[g].params.begin() + static_cast<long>(params.size()), m_.funcs[g].params.end());
    replace_jumps(m_.funcs[g].body, n.join, g, inner);
    Node next = m_.nodes[n.next];
    m_.nodes[id] = std::move(next);
    work_.push_back(g);
  }

  void replace_jumps(NodeId body, JoinId join, FuncId g, const std::vector<VarId>& free) {
    each_node(m_, body, [&](NodeId at) {
      Node n = m_.nodes[at];
      if (n.kind != NodeKind::Jump || n.join != join) return;
      std::vector<VarId> args(m_.list(n.args).begin(), m_.list(n.args).end());
      args.insert(args.end(), free.begin(), free.end());
      n.kind = NodeKind::Tail;
      n.func = g;
      n.join = JoinId();
      n.args = m_.var_lists.add(args);
      m_.nodes[at] = n;
    });
  }

  std::vector<VarId> free_vars(NodeId body, const std::vector<VarId>& bound) {
    std::set<uint32_t> binds, uses;
    for (VarId v : bound) binds.insert(v.index);
    each_node(m_, body, [&](NodeId at) {
      const Node& n = m_.nodes[at];
      if (n.subject.valid()) uses.insert(n.subject.index);
      if (n.var.valid()) binds.insert(n.var.index);
      for (VarId v : m_.list(n.vars)) binds.insert(v.index);
      for (VarId v : m_.list(n.args)) uses.insert(v.index);
      if (n.kind == NodeKind::Let) {
        for (VarId v : m_.list(n.expr.args)) uses.insert(v.index);
        if (n.expr.reuse.valid()) uses.insert(n.expr.reuse.index);
      }
      for (const CallSite& call : n.calls)
        for (VarId v : m_.list(call.args)) uses.insert(v.index);
    });
    std::vector<VarId> free;
    for (uint32_t v : uses) if (!binds.count(v)) free.push_back(VarId(v));
    return free;
  }

  // A function of params ++ free with a copy of body.
  template <class B> FuncId new_func(FuncId from, const std::vector<VarId>& params, const std::vector<VarId>& free, NodeId body, B borrowed) {
    BodyCopier copier(m_);
    Func g;
    g.name = fmt::format("{}${}", base_, ++count_);
    g.result = m_.funcs[from].result;
    g.span = m_.funcs[from].span;
    bool any = false;
    std::vector<bool> marks;
    auto add = [&](VarId v, bool borrow) {
      Var copy = m_.vars[v];
      copy.borrowed = false;
      VarId w = m_.vars.add(std::move(copy));
      copier.map_var(v, w);
      g.params.push_back(w);
      borrow = borrow && is_counted(m_, m_.vars[w].type);
      marks.push_back(borrow);
      any |= borrow;
    };
    for (VarId v : params) add(v, m_.vars[v].borrowed);
    for (VarId v : free) add(v, borrowed(v));
    if (any) g.borrowed = marks;
    g.body = copier.copy(body);
    FuncId id = m_.funcs.add(std::move(g));
    async_.resize(m_.funcs.size(), false);
    async_[id.index] = true;
    lifted_.insert(id.index);
    return id;
  }

  // ---- cuts ----
  void take(Refs& refs, VarId v) { if (auto it = refs.find(v.index); it != refs.end() && --it->second <= 0) refs.erase(it); }
  void give(Refs& refs, VarId v) { ++refs[v.index]; }
  bool passes_borrowed(FuncId f, size_t i) const {
    const auto& marks = m_.funcs[f].borrowed;
    return i < marks.size() && marks[i];
  }

  void body(NodeId id, Refs refs) {
    while (id.valid()) {
      const Node n = m_.nodes[id];
      switch (n.kind) {
        case NodeKind::Let: {
          const Expr& e = n.expr;
          if (m_.vars[n.var].borrowed) break;   // made of lent parts
          auto args = m_.list(e.args);
          const bool read = e.kind == ExprKind::Get || e.kind == ExprKind::VariantGet || e.kind == ExprKind::ConGet;
          for (size_t i = 0; i < args.size(); ++i) {
            const bool keeps = read || (e.kind == ExprKind::Prim && prim_borrows(e, i)) || (e.kind == ExprKind::Call && passes_borrowed(e.func, i));
            if (!keeps) take(refs, args[i]);
          }
          if (e.reuse.valid()) take(refs, e.reuse);
          if (!read) give(refs, n.var);
          break;
        }
        case NodeKind::Open:
          take(refs, n.subject);
          for (VarId v : m_.list(n.vars)) give(refs, v);
          if (n.var.valid()) give(refs, n.var);
          break;
        case NodeKind::Dup: give(refs, n.subject); break;
        case NodeKind::Drop: take(refs, n.subject); break;
        case NodeKind::Join: {
          if (lift_.count(n.join.index)) {
            lift(id, refs);
            continue;
          }
          Refs inner = refs;
          for (VarId v : m_.list(n.vars)) if (!m_.vars[v].borrowed) give(inner, v);
          body(n.body, inner);
          break;
        }
        case NodeKind::Fork:
          for (const CallSite& call : n.calls) {
            auto args = m_.list(call.args);
            for (size_t i = 0; i < args.size(); ++i) if (!passes_borrowed(call.func, i)) take(refs, args[i]);
          }
          for (VarId v : m_.list(n.vars)) give(refs, v);
          break;
        case NodeKind::Case: case NodeKind::Switch:
          for (const Arm& arm : n.arms) body(arm.body, refs);
          if (n.other.valid()) body(n.other, refs);
          return;
        case NodeKind::Ret: case NodeKind::Tail: case NodeKind::Jump: case NodeKind::Abort: return;
      }
      if (is_cut(n)) {
        std::vector<VarId> results;
        if (n.kind == NodeKind::Fork) results.assign(m_.list(n.vars).begin(), m_.list(n.vars).end());
        else results.push_back(n.var);
        if (is_cut_form(n, results)) return;
        std::vector<VarId> free = free_vars(n.next, results);
        FuncId g = new_func(root_, results, free, n.next, [&](VarId v) { return !refs.count(v.index); });
        Node tail;
        tail.kind = NodeKind::Tail;
        tail.func = g;
        std::vector<VarId> args = results;
        args.insert(args.end(), free.begin(), free.end());
        tail.args = m_.var_lists.add(args);
        tail.span = n.span;
        NodeId t = m_.nodes.add(std::move(tail));
        m_.nodes[id].next = t;
        work_.push_back(g);
        return;
      }
      id = n.next;
    }
  }
  Module& m_;
  std::vector<bool>& async_;
  FuncId root_;                 // every function lifted from one def returns what the def returns
  std::string base_;
  std::vector<FuncId> work_;
  uint32_t count_ = 0;
  std::set<uint32_t> lifted_;   // functions made here
  std::set<uint32_t> lift_;     // joins of the current function to lift
};

}  // namespace

// What other parts of the device module name keeps its own function.
static MergeRules merge_rules(const DeviceModule& device) {
  std::set<uint32_t> named;
  auto name = [&](FuncId f) { if (f.valid()) named.insert(f.index); };
  for (const DeviceEntry& entry : device.entries) name(entry.device);
  for (const PerfectTree& tree : device.trees) for (FuncId f : {tree.func, tree.step, tree.leaf, tree.post}) name(f);
  for (const ScanTree& scan : device.scans) name(scan.func);
  for (const BoundedRecursion& row : device.bounded) if (row.depth > 0) name(row.func);
  for (const Accumulator& row : device.accumulators) for (FuncId f : {row.func, row.original}) name(f);
  return {[&device](FuncId f) { return device.reachable[f.index] && device.async[f.index]; }, [named](FuncId f) { return named.count(f.index) == 0; }};
}

DeviceModule split_segments(const Module& host) {
  DeviceModule device;
  device.module = host;
  Module& m = device.module;
  m.main_kind = MainKind::None;
  m.entry = FuncId();

  // `!` targets, in order of first appearance.
  std::vector<FuncId> targets;
  auto want = [&](FuncId f) { if (std::find(targets.begin(), targets.end(), f) == targets.end()) targets.push_back(f); };
  for (uint32_t i = 0; i < m.funcs.size(); ++i)
    each_node(m, m.funcs[FuncId(i)].body, [&](NodeId at) {
      const Node& n = m.nodes[at];
      if (n.kind == NodeKind::Let && n.expr.kind == ExprKind::Call && n.expr.bang) want(n.expr.func);
      for (const CallSite& call : n.calls) if (call.bang) want(call.func);
    });

  std::vector<std::string> refused(m.funcs.size());
  for (uint32_t i = 0; i < m.funcs.size(); ++i) refused[i] = host_only(m, FuncId(i));
  const std::vector<BangTarget> decided = defunctionalise(m, targets, refused);
  const uint32_t count = m.funcs.size();
  device.reachable.assign(count, false);
  std::vector<FuncId> work;
  auto reach = [&](FuncId f) {
    if (device.reachable[f.index]) return;
    device.reachable[f.index] = true;
    work.push_back(f);
  };
  for (const BangTarget& target : decided) {
    const bool runs = target.refusal.empty();
    device.entries.push_back({target.func, runs ? target.func : FuncId(), runs && !writes_arrays(m, target.func), target.refusal});
    if (runs) reach(target.func);
  }
  while (!work.empty()) {
    const FuncId f = work.back();
    work.pop_back();
    each_callee(m, f, reach);
  }

  // Inside the device a `!` is an ordinary call.
  for (Node& n : m.nodes) {
    n.expr.bang = false;
    for (CallSite& call : n.calls) call.bang = false;
  }

  // Async: forks, lies on a cycle, or reaches an async function.
  const std::vector<uint32_t> component = call_components(m);
  std::vector<uint32_t> members(count + 1, 0);
  for (uint32_t i = 0; i < count; ++i) ++members[component[i]];
  device.async.assign(count, false);
  for (uint32_t i = 0; i < count; ++i) {
    bool async = members[component[i]] > 1;
    each_callee(m, FuncId(i), [&](FuncId g) { async |= g.index == i; });
    each_node(m, m.funcs[FuncId(i)].body, [&](NodeId at) { async |= m.nodes[at].kind == NodeKind::Fork; });
    device.async[i] = async;
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t i = 0; i < count; ++i) {
      if (device.async[i]) continue;
      each_callee(m, FuncId(i), [&](FuncId g) { if (device.async[g.index]) device.async[i] = changed = true; });
    }
  }

  device.trees = find_perfect_trees(m, device.reachable, device.async);
  device.inlined.assign(count, false);
  device.inlined.resize(m.funcs.size(), true);
  device.reachable.resize(m.funcs.size(), true);
  device.async.resize(m.funcs.size(), false);

  device.scans = find_scan_trees(m, device.trees, device.reachable);
  device.inlined.resize(m.funcs.size(), false);
  device.reachable.resize(m.funcs.size(), true);
  device.async.resize(m.funcs.size(), true);

  BoundedCopies bounded = bound_recursion(m, device.reachable, device.async);
  device.reachable.resize(m.funcs.size(), true);
  device.async.resize(m.funcs.size(), false);
  device.bounded = std::move(bounded.functions);
  device.copy.assign(m.funcs.size(), false);
  for (FuncId copy : bounded.copies) device.copy[copy.index] = true;

  // Perfect trees are put together by warps.
  device.accumulators = accumulate_forks(m, [&](FuncId f) {
    const bool tree = std::any_of(device.trees.begin(), device.trees.end(), [&](const PerfectTree& row) { return row.func == f && row.why.empty(); });
    return f.index < count && device.reachable[f.index] && device.async[f.index] && !tree;
  });
  const uint32_t whole = m.funcs.size();
  device.reachable.resize(whole, true);
  device.async.resize(whole, true);
  device.copy.resize(whole, false);

  const MergeRules rules = merge_rules(device);
  for (FuncId merged : merge_calls(m, rules)) device.reachable[merged.index] = device.async[merged.index] = false;
  for (uint32_t i = 0; i < whole; ++i) {
    if (!device.reachable[i] || !device.async[i]) continue;
    Cutter(m, device.async, FuncId(i)).run();
  }
  device.reachable.resize(m.funcs.size(), true);
  device.async.resize(m.funcs.size(), true);
  device.copy.resize(m.funcs.size(), false);
  device.inlined.resize(m.funcs.size(), false);
  merge_tails(m, whole, rules);
  return device;
}

}  // namespace bendc
