// Method: handle_identity.h says where each leaf of each variable first appeared. One walk over every body then rewrites it in place names: leaves of split
// structs become variables of their own where they appear, and a struct that is used whole is built again there, which costs nothing in registers.
#include "codegen/elide_handles.h"

#include <map>
#include <unordered_set>

#include "codegen/handle_identity.h"
#include "codegen/passes.h"
#include "codegen/prim_types.h"
#include "codegen/walk.h"

namespace bendc {

using namespace flow;

namespace {

class Elider {
 public:
  explicit Elider(Module& module) : m_(module), leaves_(module), facts_(module, leaves_) {}

  void run() {
    if (!any_array()) return;
    facts_.solve();
    const uint32_t count = m_.funcs.size();
    find_plain();
    add_wrappers();
    const uint32_t all = m_.funcs.size();
    originals_.reserve(all);
    for (uint32_t i = 0; i < all; ++i) originals_.push_back(m_.funcs[FuncId(i)].result);
    for (uint32_t i = 0; i < all; ++i)
      if (i >= count || touches_arrays(FuncId(i))) rewrite(FuncId(i));
  }

 private:
  bool any_array() const {
    for (uint32_t i = 0; i < m_.types.size(); ++i)
      if (m_.types[TypeId(i)].kind == TypeKind::Array) return true;
    return false;
  }
  bool is_array_leaf(TypeId t) const { return m_.types[t].kind == TypeKind::Array; }
  bool holds_array(TypeId t) { return is_array_leaf(t) || leaves_.splits(t); }

  // ---- which functions change their signature ----

  void find_plain() {
    const uint32_t count = m_.funcs.size();
    plain_.assign(count, false);
    std::vector<bool> called(count, false);
    wrapped_.assign(count, FuncId());
    kept_whole_.assign(count, false);
    for (uint32_t i = 0; i < count; ++i)
      each_node(m_, m_.funcs[FuncId(i)].body, [&](NodeId at) {
        const Node& n = m_.nodes[at];
        auto call = [&](FuncId f, bool bang) { (bang ? kept_whole_ : called)[f.index] = true; };
        if (n.kind == NodeKind::Let && n.expr.kind == ExprKind::Call) call(n.expr.func, n.expr.bang);
        if (n.kind == NodeKind::Let && n.expr.kind == ExprKind::Closure) kept_whole_[n.expr.func.index] = true;
        if (n.kind == NodeKind::Tail) call(n.func, false);
        for (const CallSite& site : n.calls) call(site.func, site.bang);
      });
    if (m_.entry.valid()) kept_whole_[m_.entry.index] = true;
    for (uint32_t i = 0; i < count; ++i) {
      if (!called[i]) continue;
      bool gains = false;
      for (int32_t fact : facts_.results(FuncId(i))) gains |= fact >= 0;
      for (VarId p : m_.funcs[FuncId(i)].params) gains |= leaves_.splits(m_.vars[p].type);
      plain_[i] = gains;
    }
  }

  // fn f~whole(x) { tail f(x) }, in the form that rewriting expects.
  void add_wrappers() {
    const uint32_t count = m_.funcs.size();
    for (uint32_t i = 0; i < count; ++i) {
      if (!plain_[i] || !kept_whole_[i]) continue;
      Func wrapper;
      wrapper.name = m_.funcs[FuncId(i)].name + "~whole";
      wrapper.result = m_.funcs[FuncId(i)].result;
      wrapper.span = m_.funcs[FuncId(i)].span;
      for (VarId p : std::vector<VarId>(m_.funcs[FuncId(i)].params)) {
        Var copy = m_.vars[p];
        wrapper.params.push_back(m_.vars.add(std::move(copy)));
      }
      Node tail;
      tail.kind = NodeKind::Tail;
      tail.func = FuncId(i);
      tail.args = m_.var_lists.add(wrapper.params);
      tail.span = wrapper.span;
      wrapper.body = m_.nodes.add(std::move(tail));
      wrapped_[i] = m_.funcs.add(std::move(wrapper));
      facts_.add_unknown(wrapped_[i]);
    }
    plain_.resize(m_.funcs.size(), false);
    wrapped_.resize(m_.funcs.size(), FuncId());
    if (m_.entry.valid() && wrapped_[m_.entry.index].valid()) m_.entry = wrapped_[m_.entry.index];
  }
  FuncId whole_form(FuncId f) const { return wrapped_[f.index].valid() ? wrapped_[f.index] : f; }

  bool touches_arrays(FuncId f) {
    bool touches = false;
    auto look = [&](VarId v) { touches = touches || (v.valid() && holds_array(m_.vars[v].type)); };
    for (VarId p : m_.funcs[f].params) look(p);
    each_node(m_, m_.funcs[f].body, [&](NodeId at) {
      const Node& n = m_.nodes[at];
      look(n.var);
      for (VarId v : m_.list(n.vars)) look(v);
      if (n.kind == NodeKind::Let && (n.expr.kind == ExprKind::Call || n.expr.kind == ExprKind::Closure)) touches |= changes(n.expr.func);
      if (n.kind == NodeKind::Tail) touches |= changes(n.func);
      for (const CallSite& site : n.calls) touches |= changes(site.func);
    });
    return touches;
  }
  bool changes(FuncId f) const { return plain_[f.index] || wrapped_[f.index].valid(); }

  // Leaves of a result that a call still gives.
  bool elided(FuncId f, size_t leaf) const { return plain_[f.index] && facts_.results(f)[leaf] >= 0; }
  bool elides(FuncId f) const {
    for (size_t i = 0; i < facts_.results(f).size(); ++i) if (elided(f, i)) return true;
    return false;
  }
  bool same_form(FuncId f, FuncId g) const {
    for (size_t i = 0; i < facts_.results(f).size(); ++i) if (elided(f, i) != elided(g, i)) return false;
    return true;
  }
  std::vector<TypeId> left_of(FuncId f) {
    const std::vector<TypeId>& all = leaves_.of(originals_[f.index]);
    std::vector<TypeId> out;
    for (size_t i = 0; i < all.size(); ++i) if (!elided(f, i)) out.push_back(all[i]);
    return out;
  }
  TypeId result_of(FuncId f) {
    if (!elides(f)) return originals_[f.index];
    std::vector<TypeId> left = left_of(f);
    if (left.size() == 1) return left[0];
    Type type{TypeKind::Struct};
    type.parts = std::move(left);
    return m_.intern(type);
  }
  TypeId unit() { return m_.intern(Type{TypeKind::Struct}); }

  // ---- names ----

  static uint64_t key(Place p) { return uint64_t{p.var.index} << 32 | p.leaf; }
  Places places_of(VarId v) {
    if (auto it = places_.find(v.index); it != places_.end()) return it->second;
    Places out;
    const size_t count = leaves_.of(m_.vars[v].type).size();
    for (uint32_t i = 0; i < count; ++i) out.push_back({v, i});
    return out;
  }
  VarId name(Place p) const {
    auto it = names_.find(key(p));
    return it != names_.end() ? it->second : p.var;
  }
  void set_name(Place p, VarId v) { names_[key(p)] = v; }
  VarId fresh(TypeId type, VarId like) {
    std::string text = like.valid() ? m_.vars[like].name : "";
    return m_.vars.add(Var{type, std::move(text)});
  }

  VarId emit(TypeId type, VarId like, Expr e, Span span) {
    Node n;
    n.kind = NodeKind::Let;
    n.var = fresh(type, like);
    n.expr = e;
    n.span = span;
    const VarId out = n.var;
    chain_.push_back(std::move(n));
    return out;
  }
  VarId emit(TypeId type, VarId like, ExprKind kind, uint64_t imm, const std::vector<VarId>& args, Span span) {
    Expr e;
    e.kind = kind;
    e.imm = imm;
    e.args = m_.var_lists.add(args);
    return emit(type, like, e, span);
  }

  // Names the leaves of `value`, a split struct, as those of `owner` from leaf `first` on.
  void name_leaves(VarId owner, uint32_t& first, VarId value, Span span) {
    const TypeId type = m_.vars[value].type;
    if (!leaves_.splits(type)) {
      set_name({owner, first++}, value);
      return;
    }
    const std::vector<TypeId> parts = m_.types[type].parts;
    for (size_t i = 0; i < parts.size(); ++i) name_leaves(owner, first, emit(parts[i], owner, ExprKind::Get, i, {value}, span), span);
  }
  // A variable that stays and whose leaves appear with it.
  void appear(VarId v, Span span) {
    if (!leaves_.splits(m_.vars[v].type)) return;
    uint32_t first = 0;
    name_leaves(v, first, v, span);
    whole_.insert(v.index);
  }

  VarId build(TypeId type, VarId like, const Places& places, size_t& next, Span span) {
    if (!leaves_.splits(type)) return name(places[next++]);
    const std::vector<TypeId> parts = m_.types[type].parts;
    std::vector<VarId> args;
    for (TypeId part : parts) args.push_back(build(part, like, places, next, span));
    return emit(type, like, ExprKind::Struct, 0, args, span);
  }
  // The variable for a whole use of v.
  VarId whole(VarId v, Span span) {
    const Places places = places_of(v);
    const TypeId type = m_.vars[v].type;
    const VarId from = places.empty() ? v : places[0].var;
    bool untouched = whole_.count(from.index) && m_.vars[from].type == type;
    for (uint32_t i = 0; i < places.size() && untouched; ++i) untouched = places[i] == Place{from, i};
    if (untouched) return from;
    size_t next = 0;
    return build(type, v, places, next, span);
  }
  Slice wholes(Slice list, Span span) {
    std::vector<VarId> out(m_.list(list).begin(), m_.list(list).end());
    for (VarId& v : out) v = whole(v, span);
    return m_.var_lists.add(out);
  }
  // Arguments part by part.
  Slice parts_of(Slice list) {
    std::vector<VarId> out;
    for (VarId v : std::vector<VarId>(m_.list(list).begin(), m_.list(list).end()))
      for (Place p : places_of(v)) out.push_back(name(p));
    return m_.var_lists.add(out);
  }
  Slice args_for(FuncId f, Slice list, Span span) { return plain_[f.index] ? parts_of(list) : wholes(list, span); }

  // ---- results ----

  // The variable that takes what is left of a call's result, and whether that is the whole of it.
  VarId left_var(FuncId f, VarId result) { return elides(f) ? fresh(result_of(f), result) : result; }
  // After the call: names for the leaves that are left.
  void name_left(FuncId f, VarId result, VarId left, Span span) {
    if (left == result) return appear(result, span);
    const std::vector<TypeId> types = left_of(f);
    uint32_t at = 0;
    for (uint32_t i = 0; i < facts_.results(f).size(); ++i) {
      if (elided(f, i)) continue;
      set_name({result, i}, types.size() == 1 ? left : emit(types[at], result, ExprKind::Get, at, {left}, span));
      ++at;
    }
  }
  // What the function being rewritten returns of a value.
  VarId returned(const Places& places, VarId like, Span span) {
    std::vector<VarId> left;
    for (size_t i = 0; i < places.size(); ++i) if (!elided(func_, i)) left.push_back(name(places[i]));
    if (left.size() == 1) return left[0];
    return emit(result_of(func_), like, ExprKind::Struct, 0, left, span);
  }
  VarId returned(VarId v, Span span) { return elides(func_) ? returned(places_of(v), v, span) : whole(v, span); }

  // ---- bodies ----

  NodeId seal(Node end) { return seal_chain(m_, chain_, std::move(end)); }
  NodeId branch(NodeId id) {
    std::vector<Node> saved = std::move(chain_);
    chain_.clear();
    const NodeId out = body(id);
    chain_ = std::move(saved);
    return out;
  }

  void let(Node n) {
    Expr& e = n.expr;
    const std::vector<VarId> args(m_.list(e.args).begin(), m_.list(e.args).end());
    if (e.kind == ExprKind::Struct && leaves_.splits(m_.vars[n.var].type)) return;
    if (e.kind == ExprKind::Get && leaves_.splits(m_.vars[args[0]].type)) return;
    if (e.kind == ExprKind::Prim && (e.prim == Prim::ArrayFork || e.prim == Prim::ArrayJoin)) return;
    if (e.kind == ExprKind::Prim && gives_handle_back(e.prim)) return in_place(n);
    if (e.kind == ExprKind::Call && !e.bang) {
      const FuncId f = e.func;
      const VarId result = n.var;
      e.args = args_for(f, e.args, n.span);
      n.var = left_var(f, result);
      const VarId left = n.var;
      const Span span = n.span;
      chain_.push_back(std::move(n));
      return name_left(f, result, left, span);
    }
    if (e.kind == ExprKind::Call || e.kind == ExprKind::Closure) e.func = whole_form(e.func);
    e.args = wholes(e.args, n.span);
    const VarId var = n.var;
    const Span span = n.span;
    chain_.push_back(std::move(n));
    appear(var, span);
  }

  // The operation without its handle in the result.
  void in_place(Node& n) {
    const VarId result = n.var;
    const TypeId type = m_.vars[result].type;
    n.expr.args = wholes(n.expr.args, n.span);
    n.expr.in_place = true;
    const TypeId rest = leaves_.splits(type) ? m_.types[type].parts[1] : unit();
    n.var = fresh(rest, result);
    const VarId value = n.var;
    const Span span = n.span;
    chain_.push_back(std::move(n));
    if (!leaves_.splits(type)) return;
    uint32_t first = 1;
    name_leaves(result, first, value, span);
  }

  void fork(Node n) {
    const std::vector<VarId> results(m_.list(n.vars).begin(), m_.list(n.vars).end());
    std::vector<VarId> vars = results;
    for (size_t i = 0; i < n.calls.size(); ++i) {
      CallSite& site = n.calls[i];
      if (site.bang) {
        site.func = whole_form(site.func);
        site.args = wholes(site.args, n.span);
        continue;
      }
      site.args = args_for(site.func, site.args, n.span);
      vars[i] = left_var(site.func, results[i]);
    }
    n.vars = m_.var_lists.add(vars);
    const std::vector<CallSite> calls = n.calls;
    const Span span = n.span;
    chain_.push_back(std::move(n));
    for (size_t i = 0; i < calls.size(); ++i) {
      if (calls[i].bang) appear(results[i], span);
      else name_left(calls[i].func, results[i], vars[i], span);
    }
  }

  // Leaves of a join's parameters that are not a name from outside.
  void join(Node n) {
    std::vector<VarId> params;
    std::vector<std::pair<size_t, uint32_t>> kept;
    const std::vector<VarId> before(m_.list(n.vars).begin(), m_.list(n.vars).end());
    for (size_t i = 0; i < before.size(); ++i) {
      const VarId p = before[i];
      const std::vector<TypeId> types = leaves_.of(m_.vars[p].type);
      const Places places = places_of(p);
      for (uint32_t k = 0; k < places.size(); ++k) {
        if (places[k] != Place{p, k}) continue;
        const VarId v = leaves_.splits(m_.vars[p].type) ? fresh(types[k], p) : p;
        set_name(places[k], v);
        params.push_back(v);
        kept.push_back({i, k});
      }
    }
    kept_[n.join.index] = std::move(kept);
    n.vars = m_.var_lists.add(params);
    n.body = branch(n.body);
    chain_.push_back(std::move(n));
  }
  void jump(Node& n) {
    const std::vector<VarId> args(m_.list(n.args).begin(), m_.list(n.args).end());
    std::vector<VarId> out;
    for (const auto& [i, k] : kept_.at(n.join.index)) out.push_back(name(places_of(args[i])[k]));
    n.args = m_.var_lists.add(out);
  }

  NodeId tail(Node n) {
    const FuncId g = n.func;
    if (same_form(func_, g)) {
      n.args = args_for(g, n.args, n.span);
      return seal(std::move(n));
    }
    const Span span = n.span;
    const VarId result = m_.vars.add(Var{originals_[g.index], "r"});
    // The leaves of the result that are arguments of g, where those are.
    Places given, value;
    for (VarId v : std::vector<VarId>(m_.list(n.args).begin(), m_.list(n.args).end()))
      for (Place p : places_of(v)) given.push_back(p);
    for (uint32_t i = 0; i < facts_.results(g).size(); ++i) value.push_back(elided(g, i) ? given[static_cast<size_t>(facts_.results(g)[i])] : Place{result, i});
    Expr e;
    e.kind = ExprKind::Call;
    e.func = g;
    e.args = args_for(g, n.args, span);
    Node let;
    let.kind = NodeKind::Let;
    let.var = left_var(g, result);
    let.expr = e;
    let.span = span;
    const VarId left = let.var;
    chain_.push_back(std::move(let));
    name_left(g, result, left, span);
    places_[result.index] = value;
    Node end;
    end.kind = NodeKind::Ret;
    end.subject = returned(result, span);
    end.span = span;
    return seal(std::move(end));
  }

  NodeId body(NodeId id) {
    while (true) {
      Node n = m_.nodes[id];
      const NodeId next = n.next;
      n.next = NodeId();
      switch (n.kind) {
        case NodeKind::Let: let(std::move(n)); break;
        case NodeKind::Fork: fork(std::move(n)); break;
        case NodeKind::Join: join(std::move(n)); break;
        case NodeKind::Case:
        case NodeKind::Switch:
          n.subject = whole(n.subject, n.span);
          for (Arm& arm : n.arms) arm.body = branch(arm.body);
          if (n.other.valid()) n.other = branch(n.other);
          return seal(std::move(n));
        case NodeKind::Ret:
          n.subject = returned(n.subject, n.span);
          return seal(std::move(n));
        case NodeKind::Tail: return tail(std::move(n));
        case NodeKind::Jump:
          jump(n);
          return seal(std::move(n));
        case NodeKind::Abort: return seal(std::move(n));
        case NodeKind::Open: case NodeKind::Dup: case NodeKind::Drop: break;   // only in owned modules; never here
      }
      id = next;
    }
  }

  void rewrite(FuncId f) {
    func_ = f;
    places_ = facts_.places(f);
    names_.clear();
    whole_.clear();
    chain_.clear();
    const Span span = m_.funcs[f].span;
    std::vector<VarId> params;
    for (VarId p : std::vector<VarId>(m_.funcs[f].params)) {
      const TypeId type = m_.vars[p].type;
      if (!leaves_.splits(type) || !plain_[f.index]) {
        params.push_back(p);
        appear(p, span);
        continue;
      }
      const std::vector<TypeId> types = leaves_.of(type);
      for (uint32_t i = 0; i < types.size(); ++i) {
        params.push_back(fresh(types[i], p));
        set_name({p, i}, params.back());
      }
    }
    const NodeId made = body(m_.funcs[f].body);
    Func& func = m_.funcs[f];
    func.params = std::move(params);
    // The caller goes on with an argument that the result would have been, so it is lent.
    for (size_t i = 0; i < facts_.results(f).size(); ++i) {
      if (!elided(f, i)) continue;
      func.borrowed.resize(func.params.size(), false);
      func.borrowed[static_cast<size_t>(facts_.results(f)[i])] = true;
    }
    func.body = made;
    func.result = result_of(f);
  }

  Module& m_;
  LeafTypes leaves_;
  HandleIdentity facts_;
  std::vector<bool> plain_;                        // passes struct parts and does not return arguments
  std::vector<bool> kept_whole_;                   // some use needs the signature that the def has
  std::vector<FuncId> wrapped_;                    // the form with that signature, where it is another function
  std::vector<TypeId> originals_;                  // results before rewriting
  // The function being rewritten.
  FuncId func_;
  std::unordered_map<uint32_t, Places> places_;
  std::unordered_map<uint64_t, VarId> names_;      // place -> variable, where it is another
  std::unordered_set<uint32_t> whole_;             // split variables that exist whole
  std::map<uint32_t, std::vector<std::pair<size_t, uint32_t>>> kept_;   // by join: parameter and leaf of each parameter left
  std::vector<Node> chain_;                        // nodes of the body being built
};

}  // namespace

void elide_handles(Module& module, const PassOptions& options) {
  if (options.optimize > 0) Elider(module).run();
}

}  // namespace bendc
