// Method. A counted struct is taken apart where it is defined, a counted sum or a ref where a case names its constructor (an `open` marker
// at the head of the arm); every get of a field becomes the field's variable. By-value structs and sums used whole afterwards are built
// again from their parts, which costs nothing in registers.
#include <algorithm>

#include "codegen/ownership_sweeps.h"

namespace bendc::flow {

NodeId ExposeSweep::run(FuncId id) {
  alias_.clear();
  opened_.clear();
  rebuilt_trail_.clear();
  chain_ = {};
  const std::vector<VarId> params = m_.funcs[id].params;
  const std::vector<bool>& marks = m_.funcs[id].borrowed;
  for (size_t i = 0; i < params.size(); ++i)
    if (i < marks.size() && marks[i]) mark_borrowed(params[i]);
  for (VarId p : params) define(p, m_.funcs[id].span);
  return expose(m_.funcs[id].body);
}

VarId ExposeSweep::resolve(VarId v) const {
  // A field read before its node's opening sank into the arms stands for another variable in each of them.
  for (auto it = alias_.find(v.index); it != alias_.end(); it = alias_.find(v.index)) v = it->second;
  return v;
}

void ExposeSweep::set_alias(VarId v, VarId target) {
  alias_[v.index] = target;
  alias_trail_.push_back(v.index);
}

void ExposeSweep::set_opened(VarId v, Opened o) {
  if (o.rebuild) rebuilt_trail_.push_back(v.index);
  opened_[v.index] = std::move(o);
  opened_trail_.push_back(v.index);
}

std::vector<TypeId> ExposeSweep::fields_of(VarId x, uint64_t ctor) const {
  const Type& t = type(x);
  if (t.kind == TypeKind::Struct) return t.parts;
  if (t.kind == TypeKind::Sum) return t.variants[ctor];
  if (t.kind == TypeKind::Ref) return m_.datas[t.data].ctors[ctor].fields;
  return {};
}

// Takes a counted struct apart where it is defined.
void ExposeSweep::define(VarId v, Span span) {
  if (!counted(v) || type(v).kind != TypeKind::Struct) return;
  open_now(v, 0, true, span);
}

void ExposeSweep::open_now(VarId x, uint64_t ctor, bool rebuild, Span span) {
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
VarId ExposeSweep::whole(VarId v, Span span) {
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

Slice ExposeSweep::wholes(Slice s, Span span) {
  std::vector<VarId> in(m_.list(s).begin(), m_.list(s).end());
  for (VarId& v : in) v = whole(v, span);
  return m_.var_lists.add(in);
}

NodeId ExposeSweep::seal(Node end) { return seal_chain(m_, chain_, std::move(end)); }

// A sub-body in its own scope of aliases and openings; `head` runs first inside it.
template <class F> NodeId ExposeSweep::scoped(NodeId body, F head) {
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

NodeId ExposeSweep::expose(NodeId id) {
  while (true) {
    Node n = m_.nodes[id];
    switch (n.kind) {
      case NodeKind::Let: expose_let(n); break;
      case NodeKind::Open: case NodeKind::Dup: case NodeKind::Drop: break;   // only in owned modules; never here
      case NodeKind::Join: {
        Span span = n.span;
        facts_.join_params[n.join.index] = n.vars;
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
std::vector<Node> ExposeSweep::sink_opens(const Node& branch) {
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

void ExposeSweep::open_again(const std::vector<Node>& sunk) {
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
bool ExposeSweep::used_whole(const Node& branch, VarId x) {
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

void ExposeSweep::expose_let(Node& n) {
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

}  // namespace bendc::flow
