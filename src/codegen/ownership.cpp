// Method. Two sweeps over each body.
//  1. expose (forward): a counted struct is taken apart where it is defined, a counted sum or a ref where a case names its constructor
//     (an `open` marker at the head of the arm); every get of a field becomes the field's variable. By-value structs and sums used
//     whole afterwards are built again from their parts, which costs nothing in registers.
//  2. place (backward): liveness in one pass. A consumed operand that stays live is dup'ed before; a variable that dies is dropped at
//     its definition or at the head of the branch where it is dead; an open marker whose subject stays live turns into con_gets with
//     dups, one whose fields are all dead into a drop.
//  3. reuse (forward): the node freed by an open becomes the token of the first constructor of the same shape on each path.
// After Perceus (Reinking, Xie, de Moura, Leijen 2021) and counting immutable beans (Ullrich, de Moura 2019).
#include "codegen/ownership.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "codegen/passes.h"
#include "codegen/prim_types.h"

namespace bendc::flow {

bool is_counted(const Module& module, TypeId id) {
  const Type& type = module.types[id];
  switch (type.kind) {
    case TypeKind::U32:
    case TypeKind::F32:
    case TypeKind::Nat:
    case TypeKind::Enum:
      return false;
    case TypeKind::Ref:
    case TypeKind::Array:
    case TypeKind::Fn:
    case TypeKind::Any:
    case TypeKind::Token:
      return true;
    case TypeKind::Struct:
      return std::any_of(type.parts.begin(), type.parts.end(), [&](TypeId t) { return is_counted(module, t); });
    case TypeKind::Sum:
      for (const auto& variant : type.variants)
        for (TypeId t : variant)
          if (is_counted(module, t)) return true;
      return false;
  }
  return false;
}

namespace {

class Inserter {
 public:
  explicit Inserter(Module& module) : m_(module) {}

  void run() {
    counted_types_.reserve(m_.types.size());
    join_free_.resize(m_.join_count);
    join_params_.resize(m_.join_count);
    join_bodies_.resize(m_.join_count);
    for (uint32_t i = 0; i < m_.funcs.size(); ++i) func(FuncId(i));
    mark_shared();
    m_.owned = true;
  }

 private:
  using Live = std::unordered_set<uint32_t>;

  // A `+` binder of @unsafe code may hold what has one owner elsewhere: an affine datatype or a closure. Whatever such a dup reaches is counted:
  // opening or applying it once more finds its fields again.
  void mark_shared() {
    std::vector<TypeId> work;
    std::unordered_set<uint32_t> seen;
    std::vector<TypeId> captured;
    for (const Node& n : m_.nodes) {
      if (n.kind == NodeKind::Dup) work.push_back(m_.vars[n.subject].type);
      if (n.kind == NodeKind::Let && n.expr.kind == ExprKind::Closure)
        for (VarId v : m_.list(n.expr.args)) captured.push_back(m_.vars[v].type);
    }
    while (!work.empty()) {
      const TypeId id = work.back();
      work.pop_back();
      if (!seen.insert(id.index).second) continue;
      const Type& type = m_.types[id];
      switch (type.kind) {
        case TypeKind::Ref:
          m_.datas[type.data].shareable = true;
          for (const CtorLayout& ctor : m_.datas[type.data].ctors) work.insert(work.end(), ctor.fields.begin(), ctor.fields.end());
          break;
        case TypeKind::Fn:
          m_.shared_closure = id;
          work.insert(work.end(), captured.begin(), captured.end());
          break;
        case TypeKind::Struct: case TypeKind::Array: work.insert(work.end(), type.parts.begin(), type.parts.end()); break;
        case TypeKind::Sum:
          for (const auto& variant : type.variants) work.insert(work.end(), variant.begin(), variant.end());
          break;
        case TypeKind::U32: case TypeKind::F32: case TypeKind::Nat: case TypeKind::Enum: case TypeKind::Any: case TypeKind::Token: break;
      }
    }
  }

  // ---- shared helpers ----
  bool counted_type(TypeId t) {
    while (counted_types_.size() <= t.index) counted_types_.push_back(is_counted(m_, TypeId(static_cast<uint32_t>(counted_types_.size()))));
    return counted_types_[t.index];
  }
  bool counted(VarId v) { return counted_type(m_.vars[v].type); }
  const Type& type(VarId v) const { return m_.types[m_.vars[v].type]; }
  bool borrowed(VarId v) const { return m_.vars[v].borrowed || (v.index < borrowed_.size() && borrowed_[v.index]); }
  void mark_borrowed(VarId v) {
    if (borrowed_.size() <= v.index) borrowed_.resize(m_.vars.size(), false);
    borrowed_[v.index] = true;
  }
  VarId fresh(TypeId t, const std::string& name) { return m_.vars.add(Var{t, name}); }
  std::vector<TypeId> fields_of(VarId x, uint64_t ctor) const {
    const Type& t = type(x);
    if (t.kind == TypeKind::Struct) return t.parts;
    if (t.kind == TypeKind::Sum) return t.variants[ctor];
    if (t.kind == TypeKind::Ref) {
      std::vector<TypeId> fields = m_.datas[t.data].ctors[ctor].fields;
      return fields;
    }
    return {};
  }
  static Node let(VarId v, Expr e, Span span) {
    Node n;
    n.kind = NodeKind::Let;
    n.var = v;
    n.expr = e;
    n.span = span;
    return n;
  }
  static Node mark(NodeKind kind, VarId subject, Span span) {
    Node n;
    n.kind = kind;
    n.subject = subject;
    n.span = span;
    return n;
  }

  void func(FuncId id) {
    std::vector<bool> borrow_marks = m_.funcs[id].borrowed;
    std::vector<VarId> params = m_.funcs[id].params;
    for (size_t i = 0; i < params.size(); ++i)
      if (i < borrow_marks.size() && borrow_marks[i]) mark_borrowed(params[i]);
    alias_.clear();
    opened_.clear();
    rebuilt_trail_.clear();
    chain_ = {};
    for (VarId p : params) define(p, m_.funcs[id].span);
    NodeId exposed = expose(m_.funcs[id].body);

    Live live;
    NodeId placed = place(exposed, live);
    std::vector<Node> head;
    for (VarId p : params)
      if (counted(p) && !borrowed(p) && !live.count(p.index)) head.push_back(mark(NodeKind::Drop, p, m_.funcs[id].span));
    placed = prepend(head, placed);
    m_.funcs[id].body = placed;
    built_.resize(m_.nodes.size(), ~uint64_t{0});
    (void)note_built(placed);
    reuse_body(placed);
  }

  NodeId prepend(const std::vector<Node>& head, NodeId body) {
    for (size_t i = head.size(); i-- > 0;) {
      Node n = head[i];
      n.next = body;
      body = m_.nodes.add(std::move(n));
    }
    return body;
  }

  // ---- 1. expose ----
  struct Opened {
    uint64_t ctor = 0;
    std::vector<VarId> fields;
    bool rebuild = true;      // struct and sum: a whole use is built again; ref: the variable itself stays
  };

  void emit(Node n) { chain_.push_back(std::move(n)); }

  VarId resolve(VarId v) const {
    // A field read before its node's opening sank into the arms stands for another variable in each of them.
    for (auto it = alias_.find(v.index); it != alias_.end(); it = alias_.find(v.index)) v = it->second;
    return v;
  }
  void set_alias(VarId v, VarId target) {
    alias_[v.index] = target;
    alias_trail_.push_back(v.index);
  }
  void set_opened(VarId v, Opened o) {
    if (o.rebuild) rebuilt_trail_.push_back(v.index);
    opened_[v.index] = std::move(o);
    opened_trail_.push_back(v.index);
  }

  // Takes a counted struct apart where it is defined.
  void define(VarId v, Span span) {
    if (!counted(v) || type(v).kind != TypeKind::Struct) return;
    open_now(v, 0, true, span);
  }

  void open_now(VarId x, uint64_t ctor, bool rebuild, Span span) {
    Opened o;
    o.ctor = ctor;
    o.rebuild = rebuild;
    std::vector<TypeId> parts = fields_of(x, ctor);
    const std::string base = m_.vars[x].name;
    for (size_t i = 0; i < parts.size(); ++i) o.fields.push_back(fresh(parts[i], base.empty() ? "f" : base));
    if (borrowed(x)) {
      for (size_t i = 0; i < parts.size(); ++i) {
        Expr e;
        const TypeKind k = type(x).kind;
        e.kind = k == TypeKind::Struct ? ExprKind::Get : k == TypeKind::Sum ? ExprKind::VariantGet : ExprKind::ConGet;
        e.imm = k == TypeKind::Struct ? i : ctor;
        e.imm2 = i;
        e.args = m_.var_lists.add(std::vector<VarId>{x});
        if (counted(o.fields[i])) mark_borrowed(o.fields[i]);
        emit(let(o.fields[i], e, span));
      }
      o.rebuild = false;
    } else {
      Node n = mark(NodeKind::Open, x, span);
      n.imm = ctor;
      n.vars = m_.var_lists.add(o.fields);
      emit(std::move(n));
    }
    std::vector<VarId> fields = o.fields;
    set_opened(x, std::move(o));
    for (VarId f : fields) define(f, span);
  }

  // The variable to use for a whole-value use of v, building it again when it was taken apart.
  VarId whole(VarId v, Span span) {
    v = resolve(v);
    auto it = opened_.find(v.index);
    if (it == opened_.end() || !it->second.rebuild) return v;
    const Opened o = it->second;
    std::vector<VarId> fields;
    for (VarId f : o.fields) fields.push_back(whole(f, span));
    Expr e;
    e.kind = type(v).kind == TypeKind::Struct ? ExprKind::Struct : ExprKind::Variant;
    e.imm = o.ctor;
    e.args = m_.var_lists.add(fields);
    VarId again = fresh(m_.vars[v].type, m_.vars[v].name);
    emit(let(again, e, span));
    return again;
  }
  Slice wholes(Slice s, Span span) {
    std::vector<VarId> in(m_.list(s).begin(), m_.list(s).end());
    for (VarId& v : in) v = whole(v, span);
    return m_.var_lists.add(in);
  }

  NodeId seal(Node end) { return seal_chain(m_, chain_, std::move(end)); }

  // A sub-body in its own scope of aliases and openings; `head` runs first inside it.
  template <class F> NodeId scoped(NodeId body, F head) {
    std::vector<Node> saved = std::move(chain_);
    chain_.clear();
    const size_t aliases = alias_trail_.size(), opens = opened_trail_.size(), rebuilt = rebuilt_trail_.size();
    head();
    NodeId id = expose(body);
    while (alias_trail_.size() > aliases) { alias_.erase(alias_trail_.back()); alias_trail_.pop_back(); }
    while (opened_trail_.size() > opens) { opened_.erase(opened_trail_.back()); opened_trail_.pop_back(); }
    rebuilt_trail_.resize(rebuilt);
    chain_ = std::move(saved);
    return id;
  }

  NodeId expose(NodeId id) {
    while (true) {
      Node n = m_.nodes[id];
      switch (n.kind) {
        case NodeKind::Let: expose_let(n); break;
        case NodeKind::Open: case NodeKind::Dup: case NodeKind::Drop: break;   // only in owned modules; never here
        case NodeKind::Join: {
          Span span = n.span;
          join_params_[n.join.index] = n.vars;
          std::vector<VarId> params(m_.list(n.vars).begin(), m_.list(n.vars).end());
          n.body = scoped(n.body, [&] { for (VarId p : params) define(p, span); });
          join_bodies_[n.join.index] = n.body;
          emit(n);
          break;
        }
        case NodeKind::Fork: {
          for (CallSite& call : n.calls) call.args = wholes(call.args, n.span);
          std::vector<VarId> results(m_.list(n.vars).begin(), m_.list(n.vars).end());
          emit(n);
          for (VarId v : results) define(v, n.span);
          break;
        }
        case NodeKind::Case: {
          const VarId x = resolve(n.subject);
          n.subject = x;
          const TypeKind k = type(x).kind;
          auto known = opened_.find(x.index);
          if (known != opened_.end() && k != TypeKind::Enum) {
            // Already taken apart on this path: its constructor is known.
            NodeId target = n.other;
            for (const Arm& arm : n.arms) if (arm.value == known->second.ctor) target = arm.body;
            if (!target.valid()) {
              Node absurd = mark(NodeKind::Abort, VarId(), n.span);
              absurd.imm = 2;
              return seal(absurd);
            }
            id = target;
            continue;
          }
          const std::vector<Node> sunk = sink_opens(n);
          for (Arm& arm : n.arms)
            arm.body = scoped(arm.body, [&] {
              open_again(sunk);
              if (k != TypeKind::Enum && counted(x)) open_now(resolve(x), arm.value, k == TypeKind::Sum, n.span);
            });
          if (n.other.valid()) n.other = scoped(n.other, [&] { open_again(sunk); });
          return seal(n);
        }
        case NodeKind::Switch: {
          n.subject = resolve(n.subject);
          const std::vector<Node> sunk = sink_opens(n);
          for (Arm& arm : n.arms) arm.body = scoped(arm.body, [&] { open_again(sunk); });
          n.other = scoped(n.other, [&] { open_again(sunk); });
          return seal(n);
        }
        case NodeKind::Ret:
          n.subject = whole(n.subject, n.span);
          return seal(n);
        case NodeKind::Tail:
        case NodeKind::Jump:
          n.args = wholes(n.args, n.span);
          return seal(n);
        case NodeKind::Abort: return seal(n);
      }
      id = n.next;
    }
  }

  // Openings just before a case move into its arms when the opened node is still used whole in some of them: an arm that does not use
  // it opens it without a count, where an opening before the case would have to keep the node and share its fields for all arms.
  //   open %x; case %y { 0 => .. 1 => { .. %x .. } }   becomes   case %y { 0 => { open %x; .. } 1 => { .. %x .. } }
  std::vector<Node> sink_opens(const Node& branch) {
    std::vector<Node> sunk;
    std::unordered_set<uint32_t> between;      // what the nodes after the opening use
    std::unordered_set<uint32_t> read{branch.subject.index};   // of these, the case and openings that sink only read
    for (size_t i = chain_.size(); i-- > 0;) {
      const Node n = chain_[i];
      if (n.kind == NodeKind::Let) {
        for (VarId v : m_.list(n.expr.args)) between.insert(v.index);
        continue;
      }
      if (n.kind != NodeKind::Open) break;
      auto opened = opened_.find(n.subject.index);
      const std::vector<VarId> fields(m_.list(n.vars).begin(), m_.list(n.vars).end());
      const bool movable = type(n.subject).kind == TypeKind::Ref && n.subject != branch.subject && opened != opened_.end() &&
                           std::none_of(fields.begin(), fields.end(), [&](VarId f) { return counted(f) && between.count(f.index); });
      if (!movable || !used_whole(branch, n.subject)) {
        between.insert(n.subject.index);
        continue;
      }
      sunk.push_back(n);
      read.insert(n.subject.index);
      std::vector<Node> reads;
      for (size_t f = 0; f < fields.size(); ++f) {
        if (counted(fields[f])) {
          if (!read.count(fields[f].index)) continue;
          mark_borrowed(fields[f]);
        }
        Expr e;
        e.kind = ExprKind::ConGet;
        e.imm = n.imm;
        e.imm2 = f;
        e.args = m_.var_lists.add(std::vector<VarId>{n.subject});
        reads.push_back(let(fields[f], e, n.span));
      }
      chain_.erase(chain_.begin() + static_cast<std::ptrdiff_t>(i));
      chain_.insert(chain_.begin() + static_cast<std::ptrdiff_t>(i), reads.begin(), reads.end());
    }
    std::reverse(sunk.begin(), sunk.end());
    return sunk;
  }
  void open_again(const std::vector<Node>& sunk) {
    for (Node n : sunk) {
      std::vector<VarId> binders(m_.list(n.vars).begin(), m_.list(n.vars).end()), fields = binders;
      for (size_t f = 0; f < binders.size(); ++f) {
        const VarId own = binders[f];
        binders[f] = fresh(m_.vars[own].type, m_.vars[own].name);
        if (!counted(own)) continue;
        fields[f] = binders[f];
        set_alias(own, binders[f]);
      }
      n.vars = m_.var_lists.add(binders);
      n.subject = resolve(n.subject);
      set_opened(n.subject, {n.imm, fields, false});
      emit(n);
    }
  }
  // Is x used whole below a branch: itself, or a value that is built again from it? A big body is not searched to its end.
  bool used_whole(const Node& branch, VarId x) {
    std::unordered_set<uint32_t> wholes{x.index};
    for (bool grown = true; grown;) {
      grown = false;
      for (uint32_t v : rebuilt_trail_) {
        auto o = opened_.find(v);
        if (o == opened_.end() || !o->second.rebuild || wholes.count(v)) continue;
        for (VarId f : o->second.fields)
          if (wholes.count(resolve(f).index)) grown |= wholes.insert(v).second;
      }
    }
    auto uses = [&](VarId v) { return v.valid() && wholes.count(resolve(v).index) > 0; };
    auto uses_any = [&](Slice s) {
      auto list = m_.list(s);
      return std::any_of(list.begin(), list.end(), uses);
    };
    int budget = 600;
    std::vector<NodeId> todo;
    std::unordered_set<uint32_t> searched;
    auto add_bodies = [&](const Node& n) {
      for (const Arm& arm : n.arms) todo.push_back(arm.body);
      for (NodeId id : {n.other, n.body, n.next}) if (id.valid()) todo.push_back(id);
    };
    add_bodies(branch);
    while (!todo.empty()) {
      const NodeId id = todo.back();
      todo.pop_back();
      if (--budget < 0) return false;
      const Node& n = m_.nodes[id];
      add_bodies(n);
      switch (n.kind) {
        case NodeKind::Let:
          if (n.expr.kind != ExprKind::ConGet && n.expr.kind != ExprKind::Get && n.expr.kind != ExprKind::VariantGet && uses_any(n.expr.args)) return true;
          break;
        case NodeKind::Fork:
          for (const CallSite& call : n.calls) if (uses_any(call.args)) return true;
          break;
        case NodeKind::Ret: if (uses(n.subject)) return true; break;
        case NodeKind::Tail: if (uses_any(n.args)) return true; break;
        case NodeKind::Jump:
          if (uses_any(n.args)) return true;
          if (join_bodies_[n.join.index].valid() && searched.insert(n.join.index).second) todo.push_back(join_bodies_[n.join.index]);
          break;
        case NodeKind::Join: case NodeKind::Open: case NodeKind::Dup: case NodeKind::Drop: case NodeKind::Case: case NodeKind::Switch: case NodeKind::Abort: break;
      }
    }
    return false;
  }

  void expose_let(Node& n) {
    Expr& e = n.expr;
    std::vector<VarId> args(m_.list(e.args).begin(), m_.list(e.args).end());
    if (e.kind == ExprKind::Get || e.kind == ExprKind::VariantGet || e.kind == ExprKind::ConGet) {
      const VarId x = resolve(args[0]);
      if (counted(x) || opened_.count(x.index)) {
        const uint64_t ctor = e.kind == ExprKind::Get ? 0 : e.imm;
        if (!opened_.count(x.index)) open_now(x, ctor, e.kind != ExprKind::ConGet, n.span);
        set_alias(n.var, opened_[x.index].fields[e.kind == ExprKind::Get ? e.imm : e.imm2]);
        return;
      }
      e.args = m_.var_lists.add(std::vector<VarId>{x});
      emit(n);
      return;
    }
    if (e.kind == ExprKind::Struct && counted(n.var)) {
      Opened o;
      for (VarId& a : args) {
        a = resolve(a);
        o.fields.push_back(a);
      }
      // Parts that are opened sums stay by their own variable: whole() builds them again at each use.
      set_opened(n.var, std::move(o));
      return;
    }
    e.args = wholes(e.args, n.span);
    VarId v = n.var;
    Span span = n.span;
    emit(n);
    define(v, span);
  }

  // ---- 2. place ----
  bool tracked(VarId v) { return counted(v) && !borrowed(v); }

  struct Operand {
    VarId var;
    bool consumed;
  };
  void operands_of(const Expr& e, std::vector<Operand>& out) {
    auto args = m_.list(e.args);
    for (size_t i = 0; i < args.size(); ++i) {
      bool consumed = true;
      switch (e.kind) {
        case ExprKind::Get: case ExprKind::VariantGet: case ExprKind::ConGet: consumed = false; break;
        case ExprKind::Prim: consumed = !prim_borrows(e, i); break;
        case ExprKind::Call: {
          const Func& f = m_.funcs[e.func];
          consumed = !(i < f.borrowed.size() && f.borrowed[i]);
          break;
        }
        case ExprKind::Const: case ExprKind::Str: case ExprKind::Struct: case ExprKind::Variant: case ExprKind::Con: case ExprKind::Apply:
        case ExprKind::Closure: case ExprKind::Request: case ExprKind::Box: case ExprKind::Unbox:
          break;
      }
      out.push_back({args[i], consumed});
    }
  }
  // Adds the dups needed before a node with these operands and the drops needed after it; updates live to before the node.
  void consume(const std::vector<Operand>& operands, Live& live, std::vector<VarId>& dups, std::vector<VarId>& drops) {
    for (size_t i = 0; i < operands.size(); ++i) {
      const auto [v, consumed] = operands[i];
      if (!counted(v)) continue;
      if (!consumed) continue;
      bool again = borrowed(v) || live.count(v.index);
      for (size_t j = i + 1; j < operands.size() && !again; ++j) again = operands[j].var == v && operands[j].consumed;
      for (size_t j = 0; j < operands.size() && !again; ++j) again = operands[j].var == v && !operands[j].consumed;
      if (again) dups.push_back(v);
    }
    for (size_t i = 0; i < operands.size(); ++i) {
      const auto [v, consumed] = operands[i];
      if (!tracked(v)) continue;
      if (!consumed && !live.count(v.index)) {
        bool seen = false;
        for (size_t j = 0; j < i; ++j) seen |= operands[j].var == v && !operands[j].consumed;
        if (!seen) drops.push_back(v);
      }
    }
    for (const Operand& o : operands) if (tracked(o.var)) live.insert(o.var.index);
  }

  static bool removable(const Expr& e) {
    switch (e.kind) {
      case ExprKind::Const: case ExprKind::Str: case ExprKind::Struct: case ExprKind::Get: case ExprKind::Variant: case ExprKind::VariantGet:
      case ExprKind::Con: case ExprKind::ConGet: case ExprKind::Closure: case ExprKind::Request: case ExprKind::Box:
        return true;
      case ExprKind::Prim: return prim_is_pure(e);
      case ExprKind::Call: case ExprKind::Apply: case ExprKind::Unbox: return false;
    }
    return false;
  }

  // Rewrites the body; `live` comes back as the tracked variables live at its start.
  NodeId place(NodeId id, Live& live) {
    std::vector<NodeId> chain;
    while (true) {
      chain.push_back(id);
      const NodeKind kind = m_.nodes[id].kind;
      if (kind == NodeKind::Join) place_join(id);   // adds nodes: no reference into the table may live across it
      if (kind == NodeKind::Case || kind == NodeKind::Switch || kind == NodeKind::Ret || kind == NodeKind::Tail || kind == NodeKind::Jump ||
          kind == NodeKind::Abort)
        break;
      id = m_.nodes[id].next;
    }
    NodeId after = place_end(chain.back(), live);
    for (size_t i = chain.size() - 1; i-- > 0;) after = place_step(chain[i], after, live);
    return after;
  }

  void place_join(NodeId id) {
    Live inner;
    NodeId body = place(m_.nodes[id].body, inner);
    std::vector<Node> head;
    std::vector<VarId> params(m_.list(m_.nodes[id].vars).begin(), m_.list(m_.nodes[id].vars).end());
    for (VarId p : params) {
      if (tracked(p) && !inner.count(p.index)) head.push_back(mark(NodeKind::Drop, p, m_.nodes[id].span));
      inner.erase(p.index);
      used_.insert(p.index);
    }
    m_.nodes[id].body = prepend(head, body);
    join_free_[m_.nodes[id].join.index] = std::move(inner);
  }

  NodeId place_end(NodeId id, Live& live) {
    Node n = m_.nodes[id];
    std::vector<VarId> dups, drops;
    switch (n.kind) {
      case NodeKind::Case:
      case NodeKind::Switch: {
        std::vector<Live> in(n.arms.size() + 1);
        for (size_t i = 0; i < n.arms.size(); ++i) n.arms[i].body = place(n.arms[i].body, in[i]);
        if (n.other.valid()) n.other = place(n.other, in.back());
        live.clear();
        for (Live& l : in) live.insert(l.begin(), l.end());
        const bool owned_subject = n.kind == NodeKind::Case && tracked(n.subject);
        if (owned_subject) live.insert(n.subject.index);
        auto heal = [&](NodeId body, const Live& has) {
          std::vector<uint32_t> dead;
          for (uint32_t v : live) if (!has.count(v)) dead.push_back(v);
          std::sort(dead.begin(), dead.end());
          std::vector<Node> head;
          for (uint32_t v : dead) head.push_back(mark(NodeKind::Drop, VarId(v), n.span));
          return prepend(head, body);
        };
        for (size_t i = 0; i < n.arms.size(); ++i) n.arms[i].body = heal(n.arms[i].body, in[i]);
        if (n.other.valid()) n.other = heal(n.other, in.back());
        m_.nodes[id] = n;
        used_.insert(n.subject.index);
        return id;
      }
      case NodeKind::Ret: {
        live.clear();
        used_.insert(n.subject.index);
        consume({{n.subject, true}}, live, dups, drops);
        break;
      }
      case NodeKind::Tail: {
        live.clear();
        std::vector<Operand> ops;
        const Func& f = m_.funcs[n.func];
        auto args = m_.list(n.args);
        bool drops_after = false;
        for (size_t i = 0; i < args.size(); ++i) {
          bool consumed = !(i < f.borrowed.size() && f.borrowed[i]);
          ops.push_back({args[i], consumed});
          drops_after |= !consumed && tracked(args[i]);
          used_.insert(args[i].index);
        }
        if (drops_after) {
          // The callee only borrows something that dies here: call, drop, return.
          VarId v = fresh(m_.funcs[n.func].result, "r");
          Expr e;
          e.kind = ExprKind::Call;
          e.func = n.func;
          e.args = n.args;
          Node call = let(v, e, n.span);
          NodeId ret = m_.nodes.add(mark(NodeKind::Ret, v, n.span));
          call.next = ret;
          NodeId c = m_.nodes.add(std::move(call));
          NodeId end = place_end(ret, live);
          return place_step(c, end, live);
        }
        consume(ops, live, dups, drops);
        break;
      }
      case NodeKind::Jump: {
        live = join_free_[n.join.index];
        std::vector<Operand> ops;
        auto args = m_.list(n.args);
        auto params = m_.list(join_params_[n.join.index]);
        for (size_t i = 0; i < args.size(); ++i) {
          ops.push_back({args[i], !m_.vars[params[i]].borrowed});
          used_.insert(args[i].index);
        }
        consume(ops, live, dups, drops);
        break;
      }
      case NodeKind::Abort: live.clear(); break;
      case NodeKind::Let: case NodeKind::Open: case NodeKind::Dup: case NodeKind::Drop: case NodeKind::Join: case NodeKind::Fork: break;
    }
    std::vector<Node> head;
    for (VarId v : dups) head.push_back(mark(NodeKind::Dup, v, n.span));
    return prepend(head, id);
  }

  NodeId place_step(NodeId id, NodeId after, Live& live) {
    Node n = m_.nodes[id];
    std::vector<Node> before, behind;
    std::vector<VarId> dups, drops;
    switch (n.kind) {
      case NodeKind::Let: {
        const bool is_used = used_.count(n.var.index) || live.count(n.var.index);
        if (!is_used && removable(n.expr)) return after;
        if (tracked(n.var) && !live.count(n.var.index)) behind.push_back(mark(NodeKind::Drop, n.var, n.span));
        live.erase(n.var.index);
        std::vector<Operand> ops;
        operands_of(n.expr, ops);
        for (const Operand& o : ops) used_.insert(o.var.index);
        consume(ops, live, dups, drops);
        break;
      }
      case NodeKind::Open: {
        std::vector<VarId> fields(m_.list(n.vars).begin(), m_.list(n.vars).end());
        const VarId x = n.subject;
        bool any_used = false;
        for (VarId f : fields) any_used |= used_.count(f.index) > 0 || live.count(f.index) > 0;
        const bool is_ref = type(x).kind == TypeKind::Ref;
        if (is_ref && live.count(x.index)) {
          // The whole stays in use: read the fields that are needed and take references of their own.
          NodeId next = after;
          for (size_t i = fields.size(); i-- > 0;) {
            VarId f = fields[i];
            // Any use of a counted field keeps it live here (reads that are last uses were given their drop already).
            if (counted(f) ? !live.count(f.index) : !used_.count(f.index)) continue;
            if (counted(f)) {
              Node dup = mark(NodeKind::Dup, f, n.span);
              dup.next = next;
              next = m_.nodes.add(dup);
            }
            Expr e;
            e.kind = ExprKind::ConGet;
            e.imm = n.imm;
            e.imm2 = i;
            e.args = m_.var_lists.add(std::vector<VarId>{x});
            Node get = let(f, e, n.span);
            get.next = next;
            next = m_.nodes.add(get);
            live.erase(f.index);
          }
          used_.insert(x.index);
          return next;
        }
        // Nothing in it is used: a drop, unless opening is all that giving it up takes (and leaves its memory for reuse).
        const bool counts_inside = std::any_of(fields.begin(), fields.end(), [&](VarId f) { return counted(f); });
        if (is_ref && !any_used && counts_inside) {
          n = mark(NodeKind::Drop, x, n.span);
          live.insert(x.index);
          used_.insert(x.index);
          n.next = after;
          m_.nodes[id] = n;
          return id;
        }
        for (VarId f : fields) {
          if (tracked(f) && !live.count(f.index)) behind.push_back(mark(NodeKind::Drop, f, n.span));
          live.erase(f.index);
        }
        live.insert(x.index);
        used_.insert(x.index);
        break;
      }
      case NodeKind::Fork: {
        for (VarId v : m_.list(n.vars)) {
          if (tracked(v) && !live.count(v.index)) behind.push_back(mark(NodeKind::Drop, v, n.span));
          live.erase(v.index);
        }
        std::vector<Operand> ops;
        for (const CallSite& call : n.calls) {
          const Func& f = m_.funcs[call.func];
          auto args = m_.list(call.args);
          for (size_t i = 0; i < args.size(); ++i) {
            ops.push_back({args[i], !(i < f.borrowed.size() && f.borrowed[i])});
            used_.insert(args[i].index);
          }
        }
        consume(ops, live, dups, drops);
        break;
      }
      case NodeKind::Join:
        break;
      case NodeKind::Dup: case NodeKind::Drop: case NodeKind::Case: case NodeKind::Switch: case NodeKind::Ret: case NodeKind::Tail: case NodeKind::Jump:
      case NodeKind::Abort:
        break;
    }
    for (VarId v : dups) before.push_back(mark(NodeKind::Dup, v, n.span));
    for (VarId v : drops) behind.push_back(mark(NodeKind::Drop, v, n.span));
    n.next = prepend(behind, after);
    m_.nodes[id] = n;
    return prepend(before, id);
  }

  // ---- 3. reuse ----
  struct Shape {
    DataId data;
    std::vector<TypeId> fields;
  };
  bool fits(const Node& n, const Shape& shape) const {
    if (n.kind != NodeKind::Let || n.expr.kind != ExprKind::Con || n.expr.reuse.valid()) return false;
    const Type& t = m_.types[m_.vars[n.var].type];
    const CtorLayout& ctor = m_.datas[t.data].ctors[n.expr.imm];
    return t.data == shape.data && ctor.repr == CtorRepr::Node && ctor.fields == shape.fields;
  }
  // The datatypes whose nodes a body builds, a bit for each index modulo 64, for every node that give() may stand at: a deep tree that builds
  // nothing of the opened shape is not searched once for each of its openings.
  uint64_t note_built(NodeId id) {
    std::vector<NodeId> chain;
    for (; id.valid(); id = m_.nodes[id].next) chain.push_back(id);
    uint64_t built = 0;
    for (size_t i = chain.size(); i-- > 0;) {
      const Node& n = m_.nodes[chain[i]];
      if (n.kind == NodeKind::Let && n.expr.kind == ExprKind::Con) built |= uint64_t{1} << (m_.types[m_.vars[n.var].type].data.index % 64);
      for (const Arm& arm : n.arms) built |= note_built(arm.body);
      if (n.other.valid()) built |= note_built(n.other);
      if (n.body.valid()) (void)note_built(n.body);
      built_[chain[i].index] = built;
    }
    return built;
  }
  bool may_build(NodeId id, const Shape& shape) const { return id.index >= built_.size() || ((built_[id.index] >> (shape.data.index % 64)) & 1) != 0; }

  // Hands the token to the first fitting constructor on each path from `id`; paths without one are collected in `misses` as places
  // where the token must be dropped. False when no path uses it (then nothing was changed).
  bool give(NodeId id, const Shape& shape, VarId token, std::vector<NodeId*>& misses, NodeId* link) {
    if (!may_build(id, shape)) return false;
    NodeId* at = link;
    while (true) {
      Node& n = m_.nodes[*at];
      if (fits(n, shape)) {
        n.expr.reuse = token;
        return true;
      }
      if (n.kind == NodeKind::Case || n.kind == NodeKind::Switch) {
        std::vector<NodeId*> links;
        for (Arm& arm : n.arms) links.push_back(&arm.body);
        if (n.other.valid()) links.push_back(&n.other);
        bool any = false;
        std::vector<NodeId*> missing;
        for (NodeId* l : links) {
          if (give(*l, shape, token, misses, l)) any = true;
          else missing.push_back(l);
        }
        if (any) misses.insert(misses.end(), missing.begin(), missing.end());
        return any;
      }
      if (n.kind == NodeKind::Ret || n.kind == NodeKind::Tail || n.kind == NodeKind::Jump || n.kind == NodeKind::Abort) return false;
      at = &n.next;
    }
  }
  void reuse_body(NodeId id) {
    while (id.valid()) {
      if (m_.nodes[id].kind == NodeKind::Open) try_reuse(id);
      Node& n = m_.nodes[id];
      std::vector<NodeId> bodies;
      for (const Arm& arm : n.arms) bodies.push_back(arm.body);
      if (n.other.valid()) bodies.push_back(n.other);
      if (n.body.valid()) bodies.push_back(n.body);
      for (NodeId b : bodies) reuse_body(b);
      id = m_.nodes[id].next;
    }
  }
  void try_reuse(NodeId id) {
    const VarId x = m_.nodes[id].subject;
    if (type(x).kind != TypeKind::Ref) return;
    const DataId data = type(x).data;
    const CtorLayout& ctor = m_.datas[data].ctors[m_.nodes[id].imm];
    if (ctor.repr != CtorRepr::Node) return;
    Shape shape{data, ctor.fields};
    const TypeId token_type = m_.intern(Type{TypeKind::Token});
    VarId token = fresh(token_type, "token");
    std::vector<NodeId*> misses;
    if (!give(m_.nodes[id].next, shape, token, misses, &m_.nodes[id].next)) return;
    m_.nodes[id].var = token;
    // The links stay valid while nodes are only read; collect first, then add.
    std::vector<std::pair<NodeId*, NodeId>> edits;
    std::vector<NodeId> targets;
    for (NodeId* l : misses) targets.push_back(*l);
    for (size_t i = 0; i < misses.size(); ++i) {
      // Adding a node may move the table: rewrite in place instead by turning the target's copy into the successor of a drop.
      NodeId target = targets[i];
      Node copy = m_.nodes[target];
      NodeId moved = m_.nodes.add(std::move(copy));
      Node drop = mark(NodeKind::Drop, token, m_.nodes[moved].span);
      drop.next = moved;
      m_.nodes[target] = std::move(drop);
    }
  }

  Module& m_;
  std::vector<bool> counted_types_;
  std::vector<bool> borrowed_;
  std::vector<Node> chain_;                          // expose: the nodes of the body being built
  std::unordered_map<uint32_t, VarId> alias_;
  std::unordered_map<uint32_t, Opened> opened_;
  std::vector<uint32_t> alias_trail_, opened_trail_;
  std::vector<uint32_t> rebuilt_trail_;              // of opened_trail_, what a whole use builds again: the one thing used_whole looks through
  std::vector<Slice> join_params_;
  std::vector<NodeId> join_bodies_;
  std::vector<Live> join_free_;                      // tracked variables a join body uses from outside
  std::vector<uint64_t> built_;                      // by node; see note_built
  std::unordered_set<uint32_t> used_;                // variables with any use in the part already placed (all kinds)
};

}  // namespace

}  // namespace bendc::flow

namespace bendc {

void insert_ownership(flow::Module& module, const PassOptions&) { flow::Inserter(module).run(); }

}  // namespace bendc
