#include "codegen/gpu/perfect_trees.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "codegen/gpu/array_effects.h"
#include "codegen/memory_layout.h"
#include "codegen/ownership.h"
#include "codegen/prim_types.h"
#include "codegen/walk.h"

namespace bendc {

using namespace flow;

namespace {

constexpr uint32_t kMostGrain = 4;           // 16 leaves a thread: at depth 28 that was 6 times one leaf a thread (H200)
constexpr uint32_t kMostNodes = 600;         // Flow nodes of a leaf or a node that is not heavy
constexpr uint32_t kMostUnrolled = 1200;     // of the subtree that one thread computes, unrolled: a hash tree of 37 nodes a level gets 16 leaves a thread
constexpr uint32_t kMostWords = 24;          // of a tree's arguments, which every thread keeps in registers
constexpr uint32_t kMostResultWords = 16;    // of a result, which goes from lane to lane

// What a body is up to its fork.
struct Shape {
  NodeId choice, fork;           // the Switch on the depth, and the fork in its other arm
  NodeId leaf;                   // the arm of depth 0
};

class Finder {
 public:
  Finder(Module& module, const std::vector<bool>& reachable, const std::vector<bool>& async) : m_(module), layouts_(module), effects_(module), reachable_(reachable), async_(async) {}

  std::vector<PerfectTree> run() {
    std::vector<PerfectTree> out;
    const uint32_t count = m_.funcs.size();
    for (uint32_t i = 0; i < count; ++i) {
      if (!reachable_[i] || !async_[i]) continue;
      bool forks = false;
      each_node(m_, m_.funcs[FuncId(i)].body, [&](NodeId at) { forks |= m_.nodes[at].kind == NodeKind::Fork; });
      if (!forks) continue;
      PerfectTree tree;
      tree.func = FuncId(i);
      Shape shape;
      tree.why = refusal(tree, shape);
      if (tree.why.empty()) make(tree, shape);
      out.push_back(std::move(tree));
    }
    return out;
  }

 private:
  std::string name(VarId v) const { return "`" + m_.vars[v].name.substr(0, m_.vars[v].name.find('.')) + "`"; }
  std::string name(FuncId f) const { return "`" + m_.funcs[f].name.substr(0, m_.funcs[f].name.find('~')) + "`"; }

  // ---- the proof ----

  // Boxed values have one owner each; array handles are words that any number of lanes may hold.
  bool only_words_and_arrays(TypeId id) const {
    const Type& type = m_.types[id];
    switch (type.kind) {
      case TypeKind::U32: case TypeKind::F32: case TypeKind::Nat: case TypeKind::Enum: case TypeKind::Array: return true;
      case TypeKind::Struct:
        return std::all_of(type.parts.begin(), type.parts.end(), [&](TypeId part) { return only_words_and_arrays(part); });
      case TypeKind::Sum:
        return std::all_of(type.variants.begin(), type.variants.end(), [&](const auto& fields) { return std::all_of(fields.begin(), fields.end(), [&](TypeId part) { return !is_counted(m_, part); }); });
      case TypeKind::Ref: case TypeKind::Fn: case TypeKind::Any: case TypeKind::Token: return false;
    }
    return false;
  }

  // Arithmetic on unboxed values, without loops: may be computed again by every thread below.
  bool pure_function(FuncId f) {
    auto [it, fresh] = pure_.try_emplace(f.index, false);
    if (!fresh) return it->second;
    const Func& func = m_.funcs[f];
    bool pure = !async_[f.index] && func.body.valid() && !is_counted(m_, func.result);
    for (VarId param : func.params) pure = pure && !is_counted(m_, m_.vars[param].type);
    each_node(m_, func.body, [&](NodeId at) {
      const Node& n = m_.nodes[at];
      switch (n.kind) {
        case NodeKind::Let: pure = pure && pure_value(n); break;
        case NodeKind::Open: pure = pure && m_.types[m_.vars[n.subject].type].kind == TypeKind::Struct; break;
        case NodeKind::Tail: pure = pure && pure_function(n.func); break;
        case NodeKind::Join: pure = pure && !n.loop; break;
        case NodeKind::Fork: pure = false; break;
        case NodeKind::Dup: case NodeKind::Drop: case NodeKind::Case: case NodeKind::Switch: case NodeKind::Ret: case NodeKind::Jump: case NodeKind::Abort: break;
      }
    });
    return pure_[f.index] = pure;
  }

  bool pure_value(const Node& n) {
    switch (n.expr.kind) {
      case ExprKind::Const: case ExprKind::Struct: case ExprKind::Get: case ExprKind::Variant: case ExprKind::VariantGet: return true;
      case ExprKind::Prim:
        if (n.expr.prim == Prim::ArrayFork || n.expr.prim == Prim::ArraySize || n.expr.prim == Prim::ArrayMask) return true;
        return n.expr.prim < Prim::ArrayNew;
      case ExprKind::Call: return pure_function(n.expr.func);
      case ExprKind::Str: case ExprKind::Con: case ExprKind::ConGet: case ExprKind::Apply: case ExprKind::Closure: case ExprKind::Request: case ExprKind::Box: case ExprKind::Unbox:
        return false;
    }
    return false;
  }

  // Why f makes no perfect tree, or empty: `shape` and the depth's parameter are known then.
  std::string refusal(PerfectTree& tree, Shape& shape) {
    const FuncId f = tree.func;
    const Func& func = m_.funcs[f];
    std::map<uint32_t, uint32_t> param;   // by variable
    for (uint32_t i = 0; i < func.params.size(); ++i) param[func.params[i].index] = i;
    NodeId at = func.body;
    VarId less;
    std::vector<VarId> read;              // arrays, before the fork
    bool chosen = false;
    while (at.valid()) {
      const Node& n = m_.nodes[at];
      if (n.kind == NodeKind::Fork) {
        if (!chosen) return "it forks before it looks at a depth";
        shape.fork = at;
        break;
      }
      switch (n.kind) {
        case NodeKind::Let:
          if (n.expr.kind == ExprKind::Prim && n.expr.prim == Prim::NatPred && chosen && m_.list(n.expr.args)[0] == func.params[tree.measure]) less = n.var;
          if (n.expr.kind == ExprKind::Call && n.expr.func == f) return "it calls itself outside the fork";
          if (is_slot_read(n)) {
            read.push_back(m_.list(n.expr.args)[0]);
            break;
          }
          if (!pure_value(n)) return "what comes before the fork is more than arithmetic";
          break;
        case NodeKind::Open:
          if (m_.types[m_.vars[n.subject].type].kind != TypeKind::Struct) return fmt::format("its argument {} is a boxed value", name(n.subject));
          break;
        case NodeKind::Dup: case NodeKind::Drop: break;
        case NodeKind::Case: return fmt::format("whether it forks depends on {}, not on a depth alone", name(n.subject));
        case NodeKind::Switch: {
          if (chosen && n.subject == less) return "it ends at more depths than 0";
          if (chosen) return fmt::format("whether it forks depends on {} too", name(n.subject));
          const auto it = param.find(n.subject.index);
          if (it == param.end() || m_.types[m_.vars[n.subject].type].kind != TypeKind::Nat) return fmt::format("whether it forks depends on {}, not on a depth alone", name(n.subject));
          if (n.arms.size() != 1 || n.arms[0].value != 0) return "it ends at more depths than 0";
          chosen = true;
          tree.measure = it->second;
          shape.choice = at;
          shape.leaf = n.arms[0].body;
          at = n.other;
          continue;
        }
        case NodeKind::Join: return "paths meet before the fork";
        case NodeKind::Ret: case NodeKind::Tail: case NodeKind::Jump: case NodeKind::Abort: return "not every path forks";
        case NodeKind::Fork: break;
      }
      at = n.next;
    }
    if (!shape.fork.valid()) return "not every path forks";
    const Node& fork = m_.nodes[shape.fork];
    for (const CallSite& call : fork.calls) {
      if (call.func != f) return fmt::format("it forks {}, which is another def", name(call.func));
      if (!less.valid() || m_.list(call.args)[tree.measure] != less) return "its calls are not all one level less deep";
    }
    if (fork.calls.size() != 2) return fmt::format("it forks {} calls, not two", fork.calls.size());
    std::string why = waits(f, shape.leaf, "a leaf");
    if (why.empty()) why = waits(f, fork.next, "what follows the fork");
    if (!why.empty()) return why;
    size_t words = 0;
    for (uint32_t i = 0; i < func.params.size(); ++i) {
      const TypeId type = m_.vars[func.params[i]].type;
      words += layouts_.of(type).leaves.size();
      if (!only_words_and_arrays(type)) return fmt::format("its argument {} holds boxed values", name(func.params[i]));
    }
    if (words > kMostWords) return fmt::format("its arguments are {} words, more than {}", words, kMostWords);
    if (layouts_.of(func.result).leaves.size() > kMostResultWords) return fmt::format("its result is {} words, more than {}", layouts_.of(func.result).leaves.size(), kMostResultWords);
    return read.empty() ? "" : reads(tree, read);
  }

  // A slot's unboxed value, from an array that stays where it is.
  bool is_slot_read(const Node& n) const {
    if (n.expr.kind != ExprKind::Prim || n.expr.prim != Prim::ArrayGet || !n.expr.in_place) return false;
    return !is_counted(m_, m_.vars[n.var].type);
  }

  // What a node reads before it forks, a grid's threads read when they come by, after any leaf: no leaf and no node may write it.
  std::string reads(PerfectTree& tree, const std::vector<VarId>& read) {
    const FuncId f = tree.func;
    const Func& func = m_.funcs[f];
    const ArrayEffects& effects = effects_.of(f);
    std::vector<uint32_t> from(func.params.size() + 1, 0);   // first word of each parameter
    for (size_t i = 0; i < func.params.size(); ++i) from[i + 1] = from[i] + static_cast<uint32_t>(layouts_.of(m_.vars[func.params[i]].type).leaves.size());
    std::set<uint32_t> groups;
    for (VarId v : read) {
      const uint32_t group = effects_.group_in(f, v);
      if (group == ArrayEffects::kNone || effects.written[group]) return fmt::format("it reads {} before the fork and may write it below", name(v));
      groups.insert(group);
    }
    for (size_t i = 0; i < func.params.size(); ++i) {
      const uint32_t group = effects.group[i];
      if (group == ArrayEffects::kNone || !(effects.written[group] || groups.count(group))) continue;
      if (m_.types[m_.vars[func.params[i]].type].kind != TypeKind::Array) return fmt::format("it reads an array before the fork, and its argument {} is more than an array", name(func.params[i]));
      for (size_t k = 0; k < i; ++k)
        if (const uint32_t other = effects.group[k]; other != ArrayEffects::kNone && (effects.written[group] ? groups.count(other) > 0 : effects.written[other])) tree.apart.emplace_back(from[k], from[i]);
    }
    return "";
  }

  // A part that forks or recurses runs as segments, which a lane of a grid cannot.
  std::string waits(FuncId f, NodeId body, const char* part) {
    std::string why;
    auto callee = [&](FuncId g) {
      if (g == f) why = fmt::format("{} calls it again", part);
      else if (async_[g.index]) why = fmt::format("{} calls {}, which forks or recurses", part, name(g));
    };
    each_node(m_, body, [&](NodeId at) {
      const Node& n = m_.nodes[at];
      if (n.kind == NodeKind::Let && n.expr.kind == ExprKind::Call) callee(n.expr.func);
      if (n.kind == NodeKind::Tail) callee(n.func);
      if (n.kind == NodeKind::Fork) why = fmt::format("{} forks", part);
    });
    return why;
  }

  // ---- the functions ----

  // Nodes of a body and of what it calls; past the limit for loops and whole-array work.
  uint32_t weight(FuncId f) {
    auto [it, fresh] = weights_.try_emplace(f.index, 0);   // what is not async lies on no call cycle
    if (!fresh) return it->second;
    return weights_[f.index] = weight(m_.funcs[f].body);
  }
  uint32_t weight(NodeId body) {
    uint32_t nodes = 0;
    each_node(m_, body, [&](NodeId at) {
      const Node& n = m_.nodes[at];
      ++nodes;
      if (n.kind == NodeKind::Join && n.loop) nodes += kMostNodes;
      FuncId callee;
      if (n.kind == NodeKind::Let && n.expr.kind == ExprKind::Call) callee = n.expr.func;
      if (n.kind == NodeKind::Tail) callee = n.func;
      if (callee.valid() && callee.index < async_.size() && !async_[callee.index]) nodes += weight(callee);
      if (n.kind == NodeKind::Let && n.expr.kind == ExprKind::Prim) {
        const Prim p = n.expr.prim;
        if (p == Prim::ArrayNew || p == Prim::ArrayClone || p == Prim::ArraySplit || p == Prim::ArrayNode) nodes += kMostNodes;
      }
      nodes = std::min(nodes, 2 * kMostNodes);
    });
    return nodes;
  }

  struct Copy {
    FuncId func;
    NodeId fork;                  // the copy's
    std::vector<VarId> params;
  };

  // f with one arm of the choice for all depths. With holes where the caller changes it: the fork.
  Copy copy(FuncId f, const Shape& shape, const std::string& suffix, bool leaf) {
    BodyCopier copier(m_);
    Copy out;
    Func g;
    g.name = m_.funcs[f].name + suffix;
    g.result = m_.funcs[f].result;
    g.borrowed = m_.funcs[f].borrowed;
    g.span = m_.funcs[f].span;
    for (VarId param : m_.funcs[f].params) {
      Var fresh = m_.vars[param];
      const VarId to = m_.vars.add(std::move(fresh));
      copier.map_var(param, to);
      g.params.push_back(to);
    }
    out.params = g.params;
    g.body = copier.copy(m_.funcs[f].body);
    const NodeId choice = copier.node_copy.at(shape.choice.index);
    const Node there = m_.nodes[choice];
    const NodeId arm = leaf ? there.arms[0].body : there.other;
    Node first = m_.nodes[arm];
    m_.nodes[choice] = std::move(first);
    out.fork = copier.node_copy.at(shape.fork.index);
    if (out.fork == arm) out.fork = choice;
    out.func = m_.funcs.add(std::move(g));
    return out;
  }

  NodeId let(VarId var, Expr expr, Span span, NodeId next) {
    Node n;
    n.kind = NodeKind::Let;
    n.var = var;
    n.expr = expr;
    n.span = span;
    n.next = next;
    return m_.nodes.add(std::move(n));
  }

  NodeId count(NodeKind kind, VarId subject, Span span, NodeId next) {
    Node n;
    n.kind = kind;
    n.subject = subject;
    n.span = span;
    n.next = next;
    return m_.nodes.add(std::move(n));
  }
  bool lent(FuncId f, size_t i) const {
    const std::vector<bool>& marks = m_.funcs[f].borrowed;
    return i < marks.size() && marks[i];
  }

  // Gives up the counted arguments that a call would have taken, then goes on with `next`.
  NodeId drop_all(const CallSite& call, Span span, NodeId next) {
    const std::vector<VarId> args(m_.list(call.args).begin(), m_.list(call.args).end());
    for (size_t i = 0; i < args.size(); ++i)
      if (is_counted(m_, m_.vars[args[i]].type) && !lent(call.func, i)) next = count(NodeKind::Drop, args[i], span, next);
    return next;
  }

  // References held at `end`, of a straight body whose parameters are all its own.
  std::map<uint32_t, int> held(const std::vector<VarId>& params, NodeId at, NodeId end) {
    std::map<uint32_t, int> refs;
    auto add = [&](VarId v, int by) {
      if (v.valid() && is_counted(m_, m_.vars[v].type)) refs[v.index] += by;
    };
    for (VarId p : params) add(p, +1);
    for (; at != end; at = m_.nodes[at].next) {
      const Node& n = m_.nodes[at];
      if (n.kind == NodeKind::Dup) add(n.subject, +1);
      if (n.kind == NodeKind::Drop || n.kind == NodeKind::Open) add(n.subject, -1);
      if (n.kind == NodeKind::Open)
        for (VarId v : m_.list(n.vars)) add(v, +1);
      if (n.kind != NodeKind::Let) continue;
      const Expr& e = n.expr;
      if (e.kind == ExprKind::Get || e.kind == ExprKind::VariantGet || e.kind == ExprKind::ConGet) continue;
      const std::span<const VarId> args = m_.list(e.args);
      for (size_t i = 0; i < args.size(); ++i)
        if (!(e.kind == ExprKind::Prim && prim_borrows(e, i)) && !(e.kind == ExprKind::Call && lent(e.func, i))) add(args[i], -1);
      add(n.var, +1);
    }
    return refs;
  }

  void make(PerfectTree& tree, const Shape& shape) {
    const FuncId f = tree.func;
    const uint32_t leaf_weight = weight(shape.leaf), node_weight = weight(m_.nodes[shape.choice].other);
    bool arrays = false;
    for (VarId param : m_.funcs[f].params) arrays |= is_counted(m_, m_.vars[param].type);
    tree.heavy = leaf_weight >= kMostNodes || node_weight >= kMostNodes;
    // Neighbouring leaves touch neighbouring slots more often than not: then a leaf a thread lets a warp's lanes share their lines.
    while (!arrays && tree.grain < kMostGrain && (leaf_weight + node_weight) << (tree.grain + 1) <= kMostUnrolled) ++tree.grain;
    make_step(tree, shape);
    for (uint32_t k = 0; k <= tree.grain; ++k) make_leaf(tree, shape, k);
    tree.leaf = tree.leaves.back();
    make_post(tree, shape);
    tree.paths = path_forms(m_, tree.step, tree.measure);
    tree.gives_left = !tree.post_args && only_words_and_arrays(m_.funcs[f].result) && gives_left(m_, tree.post);
  }

  void make_step(PerfectTree& tree, const Shape& shape) {
    const Copy made = copy(tree.func, shape, "@step", false);
    Type boolean;
    boolean.kind = TypeKind::Enum;
    boolean.count = 2;
    const VarId child = m_.vars.add({m_.intern(boolean), "child", false});
    Type type;
    type.kind = TypeKind::Struct;
    for (VarId param : made.params) type.parts.push_back(m_.vars[param].type);
    const TypeId result = m_.intern(type);
    const std::map<uint32_t, int> refs = held(made.params, m_.funcs[made.func].body, made.fork);
    m_.funcs[made.func].params.push_back(child);
    m_.funcs[made.func].borrowed.clear();   // lent arguments go on to the child too
    m_.funcs[made.func].result = result;
    const Node fork = m_.nodes[made.fork];
    Node choose;
    choose.kind = NodeKind::Case;
    choose.subject = child;
    choose.span = fork.span;
    for (size_t i = 0; i < 2; ++i) {
      const VarId args = m_.vars.add({result, "args", false});
      Node ret;
      ret.kind = NodeKind::Ret;
      ret.subject = args;
      ret.span = fork.span;
      Expr make_struct;
      make_struct.kind = ExprKind::Struct;
      make_struct.args = fork.calls[i].args;
      NodeId built = let(args, make_struct, fork.span, m_.nodes.add(std::move(ret)));
      std::map<uint32_t, int> spare = refs;
      for (VarId v : m_.list(fork.calls[i].args))
        if (is_counted(m_, m_.vars[v].type)) --spare[v.index];
      for (const auto& [v, by] : spare)
        for (int k = 0; k < std::abs(by); ++k) built = count(by > 0 ? NodeKind::Drop : NodeKind::Dup, VarId(v), fork.span, built);
      choose.arms.push_back({i, built});
    }
    m_.nodes[made.fork] = std::move(choose);
    tree.step = made.func;
  }

  void make_leaf(PerfectTree& tree, const Shape& shape, uint32_t depth) {
    const Copy made = copy(tree.func, shape, fmt::format("@leaf{}", depth), depth == 0);
    if (depth > 0) {
      const Node fork = m_.nodes[made.fork];
      const std::vector<VarId> results(m_.list(fork.vars).begin(), m_.list(fork.vars).end());
      NodeId next = fork.next;
      for (size_t i = results.size(); i-- > 0;) {
        Expr call;
        call.kind = ExprKind::Call;
        call.func = tree.leaves[depth - 1];
        call.args = fork.calls[i].args;
        next = let(results[i], call, fork.span, next);
      }
      Node first = m_.nodes[next];
      m_.nodes[made.fork] = std::move(first);
    }
    tree.leaves.push_back(made.func);
  }

  void make_post(PerfectTree& tree, const Shape& shape) {
    const Node fork = m_.nodes[shape.fork];
    std::set<uint32_t> binds;
    for (VarId v : m_.list(fork.vars)) binds.insert(v.index);
    each_node(m_, fork.next, [&](NodeId at) {
      const Node& n = m_.nodes[at];
      if (n.var.valid()) binds.insert(n.var.index);
      for (VarId v : m_.list(n.vars)) binds.insert(v.index);
    });
    auto outside = [&](VarId v) { tree.post_args |= v.valid() && !binds.count(v.index); };
    each_node(m_, fork.next, [&](NodeId at) {
      const Node& n = m_.nodes[at];
      outside(n.subject);
      for (VarId v : m_.list(n.args)) outside(v);
      if (n.kind != NodeKind::Let) return;
      for (VarId v : m_.list(n.expr.args)) outside(v);
      outside(n.expr.reuse);
    });
    if (tree.post_args) {
      const Copy made = copy(tree.func, shape, "@post", false);
      const Node there = m_.nodes[made.fork];
      for (VarId result : m_.list(there.vars)) m_.funcs[made.func].params.push_back(result);
      if (std::vector<bool>& marks = m_.funcs[made.func].borrowed; !marks.empty()) marks.resize(m_.funcs[made.func].params.size(), false);
      NodeId next = there.next;
      for (const CallSite& call : there.calls) next = drop_all(call, there.span, next);
      Node first = m_.nodes[next];
      m_.nodes[made.fork] = std::move(first);
      tree.post = made.func;
      return;
    }
    BodyCopier copier(m_);
    Func g;
    g.name = m_.funcs[tree.func].name + "@post";
    g.result = m_.funcs[tree.func].result;
    g.span = m_.funcs[tree.func].span;
    for (VarId result : m_.list(fork.vars)) {
      Var fresh = m_.vars[result];
      const VarId to = m_.vars.add(std::move(fresh));
      copier.map_var(result, to);
      g.params.push_back(to);
    }
    g.body = copier.copy(fork.next);
    tree.post = m_.funcs.add(std::move(g));
  }

  Module& m_;
  Layouts layouts_;
  ArrayEffectsFinder effects_;
  const std::vector<bool>&reachable_, &async_;
  std::map<uint32_t, bool> pure_;
  std::map<uint32_t, uint32_t> weights_;
};

}  // namespace

std::vector<PerfectTree> find_perfect_trees(Module& module, const std::vector<bool>& reachable, const std::vector<bool>& async) { return Finder(module, reachable, async).run(); }

}  // namespace bendc
