#include "codegen/index_range.h"

#include <map>
#include <optional>

#include "codegen/passes.h"
#include "codegen/walk.h"

namespace bendc {

using namespace flow;

namespace {

// Where an array value comes from: loop parameter and path of struct fields inside it.
struct Origin {
  uint32_t param = 0;
  std::vector<uint32_t> path;
  friend auto operator<=>(const Origin&, const Origin&) = default;
};

// One loop made of a function's self tail calls: its join node is the function's first node.
class LoopAnalysis {
 public:
  LoopAnalysis(Module& module, FuncId func) : m_(module), func_(func), join_node_(module.funcs[func].body) {}

  void run() {
    const Node join = m_.nodes[join_node_];
    if (join.kind != NodeKind::Join || !join.loop || m_.nodes[join.next].kind != NodeKind::Jump || m_.nodes[join.next].join != join.join) return;
    join_ = join.join;
    params_.assign(m_.list(join.vars).begin(), m_.list(join.vars).end());
    initial_.assign(m_.list(m_.nodes[join.next].args).begin(), m_.list(m_.nodes[join.next].args).end());
    gather(join.body);
    if (jumps_.empty()) return;
    find_counter(join.body);
    if (!counter_) return;
    find_indices();
    if (indices_.empty()) return;
    find_accesses(join.body, false);
    if (wanted_.empty()) return;
    version(join);
  }

 private:
  const Expr* definition(VarId v) const {
    auto it = defs_.find(v.index);
    return it == defs_.end() ? nullptr : &m_.nodes[it->second].expr;
  }
  VarId arg(const Expr& e, size_t i) const { return m_.list(e.args)[i]; }
  bool is_const(VarId v, uint64_t value) const {
    const Expr* e = definition(v);
    return e && e->kind == ExprKind::Const && e->imm == value;
  }
  std::optional<uint32_t> param_index(VarId v) const {
    for (uint32_t i = 0; i < params_.size(); ++i) if (params_[i] == v) return i;
    return std::nullopt;
  }

  void gather(NodeId body) {
    each_node(m_, body, [&](NodeId id) {
      const Node& n = m_.nodes[id];
      if (n.kind == NodeKind::Let) defs_[n.var.index] = id;
      if (n.kind == NodeKind::Jump && n.join == join_) jumps_.push_back(id);
      if (n.kind == NodeKind::Join && n.loop) nested_ = true;
    });
    if (nested_) jumps_.clear();
  }

  // x with x + 1 (index) or x - 1 (counter) among the definitions.
  bool is_increment(VarId v, VarId base) const {
    const Expr* e = definition(v);
    if (!e || e->kind != ExprKind::Prim) return false;
    if (e->prim == Prim::U32Inc) return arg(*e, 0) == base;
    if (e->prim != Prim::U32Add) return false;
    return (arg(*e, 0) == base && is_const(arg(*e, 1), 1)) || (arg(*e, 1) == base && is_const(arg(*e, 0), 1));
  }
  bool is_decrement(VarId v, VarId base) const {
    const Expr* e = definition(v);
    if (!e || e->kind != ExprKind::Prim) return false;
    if (e->prim == Prim::NatPred) return arg(*e, 0) == base;
    return e->prim == Prim::NatSub && arg(*e, 0) == base && is_const(arg(*e, 1), 1);
  }

  // A nat parameter that every jump decreases by one, switched on at the head of the loop with an arm for zero.
  void find_counter(NodeId body) {
    NodeId id = body;
    while (id.valid() && m_.nodes[id].kind == NodeKind::Let) id = m_.nodes[id].next;
    const Node& n = m_.nodes[id];
    if (n.kind != NodeKind::Switch || m_.types[m_.vars[n.subject].type].kind != TypeKind::Nat) return;
    auto k = param_index(n.subject);
    if (!k) return;
    bool zero_arm = false;
    for (const Arm& arm : n.arms) zero_arm |= arm.value == 0;
    if (!zero_arm) return;
    for (NodeId jump : jumps_)
      if (!is_decrement(m_.list(m_.nodes[jump].args)[*k], n.subject)) return;
    counter_ = *k;
    head_switch_ = id;
  }

  void find_indices() {
    for (uint32_t k = 0; k < params_.size(); ++k) {
      if (m_.types[m_.vars[params_[k]].type].kind != TypeKind::U32) continue;
      bool all = true;
      for (NodeId jump : jumps_) all &= is_increment(m_.list(m_.nodes[jump].args)[k], params_[k]);
      if (all) indices_.push_back(k);
    }
  }

  // The array at `path` inside v, traced to a loop parameter; operations that give the same block back are seen through.
  std::optional<Origin> origin(VarId v, std::vector<uint32_t> path, int fuel = 64) const {
    while (fuel-- > 0) {
      if (auto k = param_index(v)) return Origin{*k, path};
      const Expr* e = definition(v);
      if (!e) return std::nullopt;
      if (e->kind == ExprKind::Get) {
        path.insert(path.begin(), static_cast<uint32_t>(e->imm));
        v = arg(*e, 0);
        continue;
      }
      if (e->kind == ExprKind::Struct && !path.empty()) {
        v = arg(*e, path.front());
        path.erase(path.begin());
        continue;
      }
      if (e->kind == ExprKind::Prim && e->prim == Prim::ArraySet && path.empty()) {
        v = arg(*e, 0);
        continue;
      }
      if (e->kind == ExprKind::Prim && (e->prim == Prim::ArrayGet || e->prim == Prim::ArraySwap || e->prim == Prim::ArraySize) && path.size() == 1 && path[0] == 0) {
        path.clear();
        v = arg(*e, 0);
        continue;
      }
      return std::nullopt;
    }
    return std::nullopt;
  }
  bool invariant(const Origin& o) const {
    for (NodeId jump : jumps_) {
      auto from = origin(m_.list(m_.nodes[jump].args)[o.param], o.path);
      if (!from || *from != o) return false;
    }
    return true;
  }

  // Accesses at an index variable, or at the next index where the counter is known to be positive.
  void find_accesses(NodeId id, bool positive) {
    while (id.valid()) {
      const Node& n = m_.nodes[id];
      if (n.kind == NodeKind::Let && n.expr.kind == ExprKind::Prim &&
          (n.expr.prim == Prim::ArrayGet || n.expr.prim == Prim::ArraySet || n.expr.prim == Prim::ArraySwap)) {
        auto o = origin(arg(n.expr, 0), {});
        const VarId index = arg(n.expr, 1);
        if (o && invariant(*o))
          for (uint32_t k : indices_)
            if (index == params_[k] || (positive && is_increment(index, params_[k]))) {
              bool& last = wanted_[{k, *o}];
              last = last || !positive || index != params_[k];
              marked_.push_back(id);
            }
      }
      if (positive && n.kind == NodeKind::Let)
        for (uint32_t k : indices_) if (is_increment(n.var, params_[k])) increments_[k].push_back(id);
      for (const Arm& arm : n.arms) find_accesses(arm.body, positive || (id == head_switch_ && arm.value != 0));
      if (n.other.valid()) find_accesses(n.other, positive || id == head_switch_);
      if (n.body.valid()) find_accesses(n.body, positive);
      id = n.next;
    }
  }

  VarId emit(std::vector<Node>& out, TypeId type, Expr e, const char* name) {
    Node n;
    n.kind = NodeKind::Let;
    n.var = m_.vars.add(Var{type, name});
    n.expr = e;
    n.span = m_.nodes[join_node_].span;
    out.push_back(n);
    return n.var;
  }
  VarId prim(std::vector<Node>& out, TypeId type, Prim p, std::vector<VarId> args, const char* name) {
    Expr e;
    e.kind = ExprKind::Prim;
    e.prim = p;
    e.args = m_.var_lists.add(args);
    return emit(out, type, e, name);
  }

  void version(const Node& join) {
    BodyCopier copier(m_);
    const JoinId fast = m_.new_join();
    copier.map_join(join_, fast);
    std::vector<VarId> fast_params;
    for (VarId p : params_) {
      Var copy = m_.vars[p];
      VarId q = m_.vars.add(std::move(copy));
      copier.map_var(p, q);
      fast_params.push_back(q);
    }
    Node fast_join = join;
    fast_join.join = fast;
    fast_join.vars = m_.var_lists.add(fast_params);
    fast_join.body = copier.copy(join.body);
    for (NodeId id : marked_) m_.nodes[copier.node_copy.at(id.index)].expr.in_range = true;
    for (const auto& [key, _] : wanted_)
      for (NodeId id : increments_[key.first]) m_.nodes[copier.node_copy.at(id.index)].expr.in_range = true;

    Type enum2{TypeKind::Enum};
    enum2.count = 2;
    const TypeId boolean = m_.intern(enum2), nat = m_.intern(Type{TypeKind::Nat}), u32 = m_.intern(Type{TypeKind::U32});
    std::vector<Node> test;
    VarId all;
    for (const auto& [key, last] : wanted_) {
      const auto& [k, o] = key;
      VarId array = initial_[o.param];
      for (uint32_t field : o.path) {
        Expr e;
        e.kind = ExprKind::Get;
        e.imm = field;
        e.args = m_.var_lists.add(std::vector<VarId>{array});
        array = emit(test, m_.types[m_.vars[array].type].parts[field], e, "array");
      }
      const VarId mask = prim(test, u32, Prim::ArrayMask, {array}, "mask");
      const VarId inside = prim(test, boolean, Prim::U32IsLe, {initial_[k], mask}, "inside");
      const VarId room = prim(test, nat, Prim::NatSub, {prim(test, nat, Prim::U32ToNat, {mask}, "mask"), prim(test, nat, Prim::U32ToNat, {initial_[k]}, "from")}, "room");
      VarId beyond = initial_[*counter_];
      if (!last) {
        Expr one;
        one.imm = 1;
        beyond = prim(test, nat, Prim::NatSub, {beyond, emit(test, nat, one, "c")}, "beyond");
      }
      const VarId short_of = prim(test, boolean, Prim::NatIsLt, {room, beyond}, "short");
      const VarId ok = prim(test, boolean, Prim::BoolAnd, {inside, prim(test, boolean, Prim::BoolNot, {short_of}, "fits")}, "in_range");
      all = all.valid() ? prim(test, boolean, Prim::BoolAnd, {all, ok}, "in_range") : ok;
    }
    auto jump = [&](JoinId to) {
      Node n;
      n.kind = NodeKind::Jump;
      n.join = to;
      n.args = m_.var_lists.add(initial_);
      n.span = join.span;
      return m_.nodes.add(std::move(n));
    };
    Node choose;
    choose.kind = NodeKind::Case;
    choose.subject = all;
    choose.arms = {Arm{0, jump(join_)}, Arm{1, jump(fast)}};
    choose.span = join.span;
    NodeId next = m_.nodes.add(std::move(choose));
    for (size_t i = test.size(); i-- > 0;) {
      test[i].next = next;
      next = m_.nodes.add(test[i]);
    }
    m_.nodes[join_node_].next = next;
    fast_join.next = join_node_;
    m_.funcs[func_].body = m_.nodes.add(std::move(fast_join));
  }

  Module& m_;
  FuncId func_;
  NodeId join_node_;
  JoinId join_;
  bool nested_ = false;
  std::vector<VarId> params_, initial_;
  std::unordered_map<uint32_t, NodeId> defs_;
  std::vector<NodeId> jumps_;
  std::optional<uint32_t> counter_;
  NodeId head_switch_;
  std::vector<uint32_t> indices_;
  std::map<std::pair<uint32_t, Origin>, bool> wanted_;   // true: the slot at index + counter too, else those before it
  std::vector<NodeId> marked_;
  std::map<uint32_t, std::vector<NodeId>> increments_;
};

}  // namespace

void hoist_index_masks(Module& m, const PassOptions&) {
  const uint32_t count = m.funcs.size();
  for (uint32_t i = 0; i < count; ++i)
    if (m.nodes[m.funcs[FuncId(i)].body].kind == NodeKind::Join) LoopAnalysis(m, FuncId(i)).run();
}

}  // namespace bendc
