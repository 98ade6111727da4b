// Method. Liveness in one pass. A consumed operand that stays live is dup'ed before; a variable that dies is dropped at its definition or at
// the head of the branch where it is dead; an open marker whose subject stays live turns into con_gets with dups, one whose fields are all
// dead into a drop.
#include <algorithm>

#include "codegen/ownership_sweeps.h"
#include "codegen/prim_types.h"

namespace bendc::flow {

NodeId PlaceSweep::run(FuncId id, NodeId body) {
  Live live;
  const NodeId placed = place(body, live);
  std::vector<Node> head;
  for (VarId p : m_.funcs[id].params)
    if (tracked(p) && !live.count(p.index)) head.push_back(mark(NodeKind::Drop, p, m_.funcs[id].span));
  return prepend(head, placed);
}

void PlaceSweep::operands_of(const Expr& e, std::vector<Operand>& out) {
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

void PlaceSweep::consume(const std::vector<Operand>& operands, Live& live, std::vector<VarId>& dups, std::vector<VarId>& drops) {
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

bool PlaceSweep::removable(const Expr& e) {
  switch (e.kind) {
    case ExprKind::Const: case ExprKind::Str: case ExprKind::Struct: case ExprKind::Get: case ExprKind::Variant: case ExprKind::VariantGet:
    case ExprKind::Con: case ExprKind::ConGet: case ExprKind::Closure: case ExprKind::Request: case ExprKind::Box:
      return true;
    case ExprKind::Prim: return prim_is_pure(e);
    case ExprKind::Call: case ExprKind::Apply: case ExprKind::Unbox: return false;
  }
  return false;
}

NodeId PlaceSweep::place(NodeId id, Live& live) {
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

void PlaceSweep::place_join(NodeId id) {
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

NodeId PlaceSweep::place_end(NodeId id, Live& live) {
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
      auto params = m_.list(facts_.join_params[n.join.index]);
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

NodeId PlaceSweep::place_step(NodeId id, NodeId after, Live& live) {
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
      for (Operand& o : ops) {
        o.consumed = o.consumed && !m_.vars[n.var].borrowed;   // made of lent parts
        used_.insert(o.var.index);
      }
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

}  // namespace bendc::flow
