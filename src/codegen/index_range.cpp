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
              ahead_ = ahead_ || index != params_[k];
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

  NodeId jump(JoinId to, const std::vector<VarId>& args) {
    Node n;
    n.kind = NodeKind::Jump;
    n.join = to;
    n.args = m_.var_lists.add(args);
    n.span = m_.nodes[join_node_].span;
    return m_.nodes.add(std::move(n));
  }

  // Whether the counter is only counted down: another number of iterations is no other meaning. Nothing is done before the head's switch looks at it.
  bool counts_only() const {
    if (m_.nodes[join_node_].body != head_switch_) return false;
    const VarId counter = params_[*counter_];
    bool only = true;
    each_node(m_, m_.nodes[join_node_].body, [&](NodeId id) {
      const Node& n = m_.nodes[id];
      auto uses = [&](VarId v) { only = only && v != counter; };
      if (id != head_switch_ && n.subject.valid()) uses(n.subject);
      for (VarId v : m_.list(n.args)) uses(v);
      if (n.kind == NodeKind::Let && !is_decrement(n.var, counter))
        for (VarId v : m_.list(n.expr.args)) uses(v);
    });
    return only;
  }

  // In the copy: where the count ends, the loop as it was goes on with the iterations that are left, if there are any.
  void go_on_slowly(const BodyCopier& copier, std::vector<VarId>& fast_params, TypeId nat) {
    const VarId left = m_.vars.add(Var{nat, "left"});
    std::vector<VarId> slow = fast_params;
    slow[*counter_] = left;
    fast_params.push_back(left);
    for (NodeId id : jumps_) {
      Node& copy = m_.nodes[copier.node_copy.at(id.index)];
      std::vector<VarId> args(m_.list(copy.args).begin(), m_.list(copy.args).end());
      args.push_back(left);
      copy.args = m_.var_lists.add(args);
    }
    const NodeId head = copier.node_copy.at(head_switch_.index);
    for (size_t i = 0; i < m_.nodes[head].arms.size(); ++i) {
      if (m_.nodes[head].arms[i].value != 0) continue;
      Node ended;
      ended.kind = NodeKind::Switch;
      ended.subject = left;
      ended.arms = {Arm{0, m_.nodes[head].arms[i].body}};
      ended.other = jump(join_, slow);
      ended.span = m_.nodes[head].span;
      const NodeId id = m_.nodes.add(std::move(ended));
      m_.nodes[head].arms[i].body = id;
    }
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

    const bool split = ahead_ && counts_only();
    Type enum2{TypeKind::Enum};
    enum2.count = 2;
    const TypeId boolean = m_.intern(enum2), nat = m_.intern(Type{TypeKind::Nat}), u32 = m_.intern(Type{TypeKind::U32});
    std::vector<Node> test;
    VarId all, all_inside, most;   // most: iterations whose slots are all there
    auto both = [&](VarId x, VarId y) { return x.valid() ? prim(test, boolean, Prim::BoolAnd, {x, y}, "in_range") : y; };
    auto one = [&] {
      Expr e;
      e.imm = 1;
      return emit(test, nat, e, "c");
    };
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
      if (split) {
        const VarId fit = last ? room : prim(test, nat, Prim::NatAdd, {room, one()}, "fit");
        all_inside = both(all_inside, inside);
        most = most.valid() ? prim(test, nat, Prim::NatMin, {most, fit}, "most") : fit;
        continue;
      }
      const VarId beyond = last ? initial_[*counter_] : prim(test, nat, Prim::NatSub, {initial_[*counter_], one()}, "beyond");
      const VarId short_of = prim(test, boolean, Prim::NatIsLt, {room, beyond}, "short");
      all = both(all, prim(test, boolean, Prim::BoolAnd, {inside, prim(test, boolean, Prim::BoolNot, {short_of}, "fits")}, "in_range"));
    }
    std::vector<VarId> fast_initial = initial_;
    if (split) {
      all = all_inside;
      const VarId left = prim(test, nat, Prim::NatSub, {initial_[*counter_], most}, "left");
      fast_initial[*counter_] = prim(test, nat, Prim::NatSub, {initial_[*counter_], left}, "count");
      fast_initial.push_back(left);
      go_on_slowly(copier, fast_params, nat);
      fast_join.vars = m_.var_lists.add(fast_params);
    }
    Node choose;
    choose.kind = NodeKind::Case;
    choose.subject = all;
    choose.arms = {Arm{0, jump(join_, initial_)}, Arm{1, jump(fast, fast_initial)}};
    choose.span = join.span;
    NodeId next = m_.nodes.add(std::move(choose));
    for (size_t i = test.size(); i-- > 0;) {
      test[i].next = next;
      next = m_.nodes.add(test[i]);
    }
    // The loop as it was is declared first where the copy goes on there.
    NodeId outer = join_node_;
    if (split) {
      fast_join.next = next;
      m_.nodes[join_node_].next = m_.nodes.add(std::move(fast_join));
    } else {
      m_.nodes[join_node_].next = next;
      fast_join.next = join_node_;
      outer = m_.nodes.add(std::move(fast_join));
    }
    m_.funcs[func_].body = outer;
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
  bool ahead_ = false;                                   // an access at the next index
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
