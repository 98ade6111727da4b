// Method: abstract evaluation of every body, a place for each leaf of a variable. Functions start as if none of them returned; each return takes away
// what it contradicts, so recursion is assumed to keep handles until a path shows otherwise (the greatest fixpoint). Components of the call graph
// are settled callees first; within one, a function is evaluated again when one that it calls has changed, so that a long cycle of defs takes as
// many evaluations as it has calls, not its square.
#include "codegen/handle_identity.h"

#include <algorithm>
#include <deque>

#include "codegen/call_graph.h"
#include "codegen/prim_types.h"
#include "codegen/walk.h"

namespace bendc::flow {

const LeafTypes::Row& LeafTypes::row(TypeId id) {
  if (auto it = rows_.find(id.index); it != rows_.end()) return it->second;
  Row out;
  const Type& type = m_.types[id];
  if (type.kind == TypeKind::Struct) {
    const std::vector<TypeId> parts = type.parts;
    for (TypeId part : parts) {
      const Row& inner = row(part);
      out.splits = out.splits || inner.splits || m_.types[part].kind == TypeKind::Array;
      out.leaves.insert(out.leaves.end(), inner.leaves.begin(), inner.leaves.end());
    }
  }
  if (!out.splits) out.leaves = {id};
  return rows_.emplace(id.index, std::move(out)).first->second;
}

const std::vector<TypeId>& LeafTypes::of(TypeId type) { return row(type).leaves; }
bool LeafTypes::splits(TypeId type) { return row(type).splits; }

// One evaluation of a body.
struct HandleIdentity::Walk {
  const Module& m;
  LeafTypes& leaves;
  const std::vector<std::vector<int32_t>>& results;
  std::unordered_map<uint32_t, Places> known;            // variables with other places than their own
  std::unordered_map<uint32_t, uint32_t> born;           // variable -> number of its binding
  struct Arrival {
    uint32_t number = 0;                                 // of the join's binding
    bool loop = false;
    std::vector<Places> params;                          // where all jumps so far agree; kDiffer where they do not
  };
  std::unordered_map<uint32_t, Arrival> joins;
  uint32_t bindings = 0;
  std::vector<Places> returned;                          // by return: the leaves of its value

  Places own(VarId v) {
    Places out;
    const uint32_t count = static_cast<uint32_t>(leaves.of(m.vars[v].type).size());
    for (uint32_t i = 0; i < count; ++i) out.push_back({v, i});
    return out;
  }
  Places of(VarId v) {
    auto it = known.find(v.index);
    return it != known.end() ? it->second : own(v);
  }
  Places of(Slice list) {
    Places out;
    for (VarId v : m.list(list)) {
      const Places part = of(v);
      out.insert(out.end(), part.begin(), part.end());
    }
    return out;
  }
  void bind(VarId v) { born[v.index] = ++bindings; }
  void bind(VarId v, Places places) {
    bind(v);
    known[v.index] = std::move(places);
  }

  // What a call gives: the arguments it is known to give back, and leaves of its own.
  Places called(FuncId callee, Slice args, VarId result) {
    const Places given = of(args);
    const std::vector<int32_t>& facts = results[callee.index];
    Places out;
    for (uint32_t i = 0; i < facts.size(); ++i) {
      if (facts[i] >= 0) out.push_back(given[static_cast<size_t>(facts[i])]);
      else if (facts[i] == kUnseen) out.push_back(Place{});
      else out.push_back({result, i});
    }
    return out;
  }

  void let(const Node& n) {
    const Expr& e = n.expr;
    const std::span<const VarId> args = m.list(e.args);
    switch (e.kind) {
      case ExprKind::Call:
        if (e.bang) return bind(n.var);                  // small arrays come back from a device as new blocks
        return bind(n.var, called(e.func, e.args, n.var));
      case ExprKind::Struct:
        if (!leaves.splits(m.vars[n.var].type)) return bind(n.var);
        return bind(n.var, of(e.args));
      case ExprKind::Get: {
        const TypeId whole = m.vars[args[0]].type;
        if (!leaves.splits(whole)) return bind(n.var);
        const Places places = of(args[0]);
        size_t first = 0;
        for (size_t i = 0; i < e.imm; ++i) first += leaves.of(m.types[whole].parts[i]).size();
        const size_t count = leaves.of(m.types[whole].parts[e.imm]).size();
        return bind(n.var, Places(places.begin() + static_cast<std::ptrdiff_t>(first), places.begin() + static_cast<std::ptrdiff_t>(first + count)));
      }
      case ExprKind::Prim: {
        Places out = own(n.var);
        if (e.prim == Prim::ArrayFork) out = {of(args[0])[0], of(args[0])[0]};
        else if (e.prim == Prim::ArrayJoin || gives_handle_back(e.prim)) out[0] = of(args[0])[0];
        else return bind(n.var);
        return bind(n.var, std::move(out));
      }
      case ExprKind::Const: case ExprKind::Str: case ExprKind::Variant: case ExprKind::VariantGet: case ExprKind::Con: case ExprKind::ConGet:
      case ExprKind::Apply: case ExprKind::Closure: case ExprKind::Request: case ExprKind::Box: case ExprKind::Unbox:
        return bind(n.var);
    }
  }

  void jump(const Node& n) {
    Arrival& join = joins.at(n.join.index);
    const std::span<const VarId> args = m.list(n.args);
    const bool first = join.params.empty();
    for (size_t i = 0; i < args.size(); ++i) {
      const Places now = of(args[i]);
      if (first) {
        join.params.push_back(now);
        continue;
      }
      Places& before = join.params[i];
      for (size_t k = 0; k < now.size(); ++k) {
        if (before[k] == kDiffer || !now[k].var.valid()) continue;
        if (!before[k].var.valid()) before[k] = now[k];
        else if (before[k] != now[k]) before[k] = kDiffer;
      }
    }
  }
  static constexpr Place kDiffer = {VarId(), 1};

  // Array leaves on which all jumps agree, of variables that the join can see, are those; all else is the parameter's own.
  void enter(const Node& n) {
    const Arrival& join = joins.at(n.join.index);
    const std::span<const VarId> params = m.list(n.vars);
    for (size_t i = 0; i < params.size(); ++i) {
      Places places = own(params[i]);
      if (!join.loop && !join.params.empty()) {
        const std::vector<TypeId>& types = leaves.of(m.vars[params[i]].type);
        for (size_t k = 0; k < places.size(); ++k) {
          const Place from = join.params[i][k];
          if (m.types[types[k]].kind != TypeKind::Array) continue;
          if (from != kDiffer && (!from.var.valid() || born.at(from.var.index) < join.number)) places[k] = from;
        }
      }
      bind(params[i], std::move(places));
    }
  }

  void body(NodeId id) {
    std::vector<NodeId> inner;                           // joins of this chain: their bodies come after every jump to them
    while (id.valid()) {
      const Node& n = m.nodes[id];
      switch (n.kind) {
        case NodeKind::Let: let(n); break;
        case NodeKind::Join:
          joins[n.join.index] = {++bindings, n.loop, {}};
          inner.push_back(id);
          break;
        case NodeKind::Fork: {
          const std::span<const VarId> vars = m.list(n.vars);
          for (size_t i = 0; i < vars.size(); ++i) {
            if (n.calls[i].bang) bind(vars[i]);
            else bind(vars[i], called(n.calls[i].func, n.calls[i].args, vars[i]));
          }
          break;
        }
        case NodeKind::Case: case NodeKind::Switch:
          for (const Arm& arm : n.arms) body(arm.body);
          if (n.other.valid()) body(n.other);
          break;
        case NodeKind::Ret: returned.push_back(of(n.subject)); break;
        case NodeKind::Tail: returned.push_back(called(n.func, n.args, VarId(kTailResult))); break;
        case NodeKind::Jump: jump(n); break;
        case NodeKind::Open: case NodeKind::Dup: case NodeKind::Drop: case NodeKind::Abort: break;
      }
      id = n.next;
    }
    while (!inner.empty()) {
      const Node& join = m.nodes[inner.back()];
      inner.pop_back();
      enter(join);
      body(join.body);
    }
  }
  static constexpr uint32_t kTailResult = 0xFFFFFFFE;    // stands for the result of a tail call, which has no variable

  void run(FuncId func) {
    for (VarId p : m.funcs[func].params) bind(p);
    body(m.funcs[func].body);
  }
};

bool HandleIdentity::update(FuncId func) {
  std::vector<int32_t>& facts = results_[func.index];
  bool open = false;
  for (int32_t fact : facts) open |= fact != kOther;
  if (!open) return false;
  Walk walk{m_, leaves_, results_, {}, {}, {}, 0, {}};
  walk.run(func);
  Places params;
  for (VarId p : m_.funcs[func].params) {
    const Places own = walk.own(p);
    params.insert(params.end(), own.begin(), own.end());
  }
  bool changed = false;
  for (const Places& value : walk.returned)
    for (size_t i = 0; i < facts.size(); ++i) {
      if (facts[i] == kOther || !value[i].var.valid()) continue;
      int32_t found = kOther;
      for (size_t p = 0; p < params.size(); ++p) if (params[p] == value[i]) found = static_cast<int32_t>(p);
      if (facts[i] == found) continue;
      facts[i] = facts[i] == kUnseen ? found : kOther;
      changed = true;
    }
  return changed;
}

void HandleIdentity::solve() {
  const uint32_t count = m_.funcs.size();
  results_.resize(count);
  for (uint32_t i = 0; i < count; ++i)
    for (TypeId leaf : leaves_.of(m_.funcs[FuncId(i)].result)) results_[i].push_back(m_.types[leaf].kind == TypeKind::Array ? kUnseen : kOther);
  const std::vector<uint32_t> component = call_components(m_);
  std::vector<std::vector<FuncId>> members;
  for (uint32_t i = 0; i < count; ++i) {
    if (component[i] >= members.size()) members.resize(component[i] + 1);
    members[component[i]].push_back(FuncId(i));
  }
  // By function: those of its component that call it.
  std::vector<std::vector<FuncId>> callers(count);
  for (uint32_t i = 0; i < count; ++i) {
    auto call = [&](FuncId callee) {
      std::vector<FuncId>& known = callers[callee.index];
      if (component[callee.index] == component[i] && (known.empty() || known.back() != FuncId(i))) known.push_back(FuncId(i));
    };
    each_node(m_, m_.funcs[FuncId(i)].body, [&](NodeId at) {
      const Node& n = m_.nodes[at];
      if (n.kind == NodeKind::Let && n.expr.kind == ExprKind::Call) call(n.expr.func);
      if (n.kind == NodeKind::Tail) call(n.func);
      for (const CallSite& site : n.calls) call(site.func);
    });
  }
  std::vector<bool> waiting(count, false);
  for (const std::vector<FuncId>& group : members) {
    auto settle = [&] {
      std::deque<FuncId> work(group.begin(), group.end());
      for (FuncId f : group) waiting[f.index] = true;
      while (!work.empty()) {
        const FuncId f = work.front();
        work.pop_front();
        waiting[f.index] = false;
        if (!update(f)) continue;
        for (FuncId caller : callers[f.index]) {
          if (waiting[caller.index]) continue;
          waiting[caller.index] = true;
          work.push_back(caller);
        }
      }
    };
    settle();
    // What never returns gives nothing back; its callers keep the calls they have.
    bool silent = false;
    for (FuncId f : group)
      for (int32_t& fact : results_[f.index])
        if (fact == kUnseen) {
          fact = kOther;
          silent = true;
        }
    if (silent) settle();
  }
}

void HandleIdentity::add_unknown(FuncId func) {
  results_.resize(std::max<size_t>(results_.size(), func.index + 1));
  results_[func.index].assign(leaves_.of(m_.funcs[func].result).size(), kOther);
}

std::unordered_map<uint32_t, Places> HandleIdentity::places(FuncId func) {
  Walk walk{m_, leaves_, results_, {}, {}, {}, 0, {}};
  walk.run(func);
  return std::move(walk.known);
}

}  // namespace bendc::flow
