// One walk over a body, without regard to order: what a node hands on joins the groups of the variables that it joins.
#include "codegen/gpu/array_effects.h"

#include "codegen/ownership.h"
#include "codegen/prim_types.h"
#include "codegen/walk.h"

namespace bendc {

using namespace flow;

namespace {

constexpr uint32_t kMostDepth = 256;   // of calls: the finder's own stack

class Groups {
 public:
  uint32_t find(uint32_t v) {
    uint32_t root = v;
    for (uint32_t up = above(root); up != root; up = above(root)) root = up;
    while (v != root) {
      uint32_t& up = above(v);
      v = up;
      up = root;
    }
    return root;
  }
  void join(uint32_t a, uint32_t b) { above_[find(a)] = find(b); }

 private:
  uint32_t& above(uint32_t v) { return above_.try_emplace(v, v).first->second; }
  std::map<uint32_t, uint32_t> above_;
};

bool writes(Prim p) { return p == Prim::ArraySet || p == Prim::ArraySwap || (p >= Prim::AtomicAdd && p <= Prim::AtomicFadd); }

}  // namespace

const ArrayEffects& ArrayEffectsFinder::of(FuncId f) {
  if (const auto it = done_.find(f.index); it != done_.end()) return it->second;
  // On a cycle, or deep below: all in one, and written. Not kept, since the answer for the whole body comes later.
  static const ArrayEffects kUnknown;
  if (active_[f.index] || depth_ > kMostDepth) return kUnknown;
  active_[f.index] = true;
  ++depth_;
  ArrayEffects found = find(f);
  --depth_;
  active_[f.index] = false;
  return done_[f.index] = std::move(found);
}

uint32_t ArrayEffectsFinder::group_in(FuncId f, VarId var) {
  (void)of(f);
  const auto& vars = groups_[f.index];
  const auto it = vars.find(var.index);
  return it == vars.end() ? ArrayEffects::kNone : it->second;
}

ArrayEffects ArrayEffectsFinder::find(FuncId f) {
  const Func& func = m_.funcs[f];
  Groups groups;
  std::vector<uint32_t> written;   // variables
  std::map<uint32_t, VarId> seen;
  auto counted = [&](VarId v) {
    if (!v.valid() || !is_counted(m_, m_.vars[v].type)) return false;
    seen[v.index] = v;
    return true;
  };
  auto join = [&](VarId a, VarId b) {
    if (counted(a) && counted(b)) groups.join(a.index, b.index);
  };
  std::map<uint32_t, std::vector<VarId>> joins;   // parameters of join points
  each_node(m_, func.body, [&](NodeId at) {
    const Node& n = m_.nodes[at];
    if (n.kind == NodeKind::Join) joins[n.join.index].assign(m_.list(n.vars).begin(), m_.list(n.vars).end());
  });
  VarId result;
  auto returns = [&](VarId v) {
    if (!counted(v)) return;
    if (result.valid()) join(result, v);
    result = v;
  };
  auto call = [&](FuncId g, std::span<const VarId> args, VarId value) {
    if (g == f) {
      for (size_t i = 0; i < args.size(); ++i) join(args[i], func.params[i]);
      if (value.valid() && counted(value)) returns(value);
      return;
    }
    const ArrayEffects& inner = of(g);
    std::map<uint32_t, VarId> first;
    VarId any;
    for (size_t i = 0; i < args.size(); ++i) {
      if (!counted(args[i])) continue;
      const bool known = i < inner.group.size() && inner.group[i] != ArrayEffects::kNone;
      if (!known) {
        // Nothing is known of it.
        if (any.valid()) join(any, args[i]);
        any = args[i];
        written.push_back(args[i].index);
        if (value.valid()) join(value, args[i]);
        continue;
      }
      const uint32_t group = inner.group[i];
      if (const auto [it, fresh] = first.try_emplace(group, args[i]); !fresh) join(it->second, args[i]);
      if (inner.written[group]) written.push_back(args[i].index);
      if (value.valid() && group == inner.result) join(value, args[i]);
    }
  };
  each_node(m_, func.body, [&](NodeId at) {
    const Node& n = m_.nodes[at];
    switch (n.kind) {
      case NodeKind::Let: {
        const std::span<const VarId> args = m_.list(n.expr.args);
        if (n.expr.kind == ExprKind::Call) {
          call(n.expr.func, args, n.var);
          break;
        }
        const bool value = counted(n.var);
        for (VarId arg : args)
          if (counted(arg) && value) groups.join(arg.index, n.var.index);
        // An element may go into an array, and a closure may do anything with what it holds and gets.
        const bool applies = n.expr.kind == ExprKind::Apply || n.expr.kind == ExprKind::Request;
        const bool stores = n.expr.kind == ExprKind::Prim && writes(n.expr.prim);
        for (VarId arg : args) {
          if (!counted(arg) || !(applies || stores)) continue;
          join(args[0], arg);
          written.push_back(arg.index);
        }
        break;
      }
      case NodeKind::Open:
        for (VarId v : m_.list(n.vars)) join(v, n.subject);
        if (n.var.valid()) join(n.var, n.subject);
        break;
      case NodeKind::Fork: {
        const std::span<const VarId> results = m_.list(n.vars);
        for (size_t i = 0; i < n.calls.size(); ++i) call(n.calls[i].func, m_.list(n.calls[i].args), results[i]);
        break;
      }
      case NodeKind::Ret: returns(n.subject); break;
      case NodeKind::Tail: {
        const std::span<const VarId> args = m_.list(n.args);
        call(n.func, args, VarId());
        // The value of the call is ours.
        if (!is_counted(m_, func.result)) break;
        const ArrayEffects* inner = n.func == f ? nullptr : &of(n.func);
        for (size_t i = 0; i < args.size(); ++i)
          if (counted(args[i]) && (!inner || i >= inner->group.size() || inner->group[i] == inner->result)) returns(args[i]);
        break;
      }
      case NodeKind::Jump: {
        const std::span<const VarId> args = m_.list(n.args);
        const std::vector<VarId>& to = joins[n.join.index];
        for (size_t i = 0; i < args.size(); ++i) join(args[i], to[i]);
        break;
      }
      case NodeKind::Dup: case NodeKind::Drop: case NodeKind::Join: case NodeKind::Case: case NodeKind::Switch: case NodeKind::Abort: break;
    }
  });
  ArrayEffects out;
  for (VarId p : func.params) (void)counted(p);
  std::map<uint32_t, uint32_t> number;   // by root
  auto group = [&](uint32_t v) {
    const auto [it, fresh] = number.try_emplace(groups.find(v), static_cast<uint32_t>(number.size()));
    return it->second;
  };
  for (VarId p : func.params) out.group.push_back(is_counted(m_, m_.vars[p].type) ? group(p.index) : ArrayEffects::kNone);
  std::map<uint32_t, uint32_t>& vars = groups_[f.index];
  for (const auto& [v, var] : seen) vars[v] = group(v);
  if (result.valid()) out.result = group(result.index);
  out.written.assign(number.size(), false);
  for (uint32_t v : written) out.written[group(v)] = true;
  return out;
}

}  // namespace bendc
