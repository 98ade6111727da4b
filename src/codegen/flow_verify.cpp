// Invariants:
//  1  every variable is bound once and used only where it is in scope
//  2  operands and results of every expression have the types its kind asks for
//  3  calls, tail calls and forks pass exactly the callee's parameters; results have the callee's result type
//  4  `case` is on an enum, sum or ref; arms are distinct and in range; without `else` all constructors have an arm
//  5  `switch` is on a u32 or nat, with distinct values and an `else`
//  6  a jump goes to a join point in scope with matching arguments; only a loop's own body jumps back to it
//  7  `ret` has the function's result type
//  8  a loop body uses no counted variable from outside the loop
//  9  ownership nodes (open, dup, drop, reuse) stand only in a module marked owned
// 10  see flow_verify_ownership.cpp
#include "codegen/flow_verify.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/flow_text.h"
#include "codegen/ownership.h"
#include "codegen/prim_types.h"

namespace bendc::flow {

namespace {

class Verifier {
 public:
  explicit Verifier(Module& module) : m_(module) {
    scope_.assign(m_.vars.size(), 0);
    bound_.assign(m_.vars.size(), false);
    join_params_.resize(m_.join_count);
    join_state_.assign(m_.join_count, 0);
  }

  std::string run() {
    for (uint32_t i = 0; i < m_.funcs.size() && error_.empty(); ++i) func(FuncId(i));
    if (error_.empty() && m_.main_kind != MainKind::None && (!m_.entry.valid() || m_.entry.index >= m_.funcs.size())) error_ = "no entry function";
    return error_;
  }

 private:
  void fail(const std::string& what) {
    if (error_.empty()) error_ = fmt::format("in `{}`: {}", m_.funcs[func_].name, what);
  }
  bool bind(VarId v) {
    if (!v.valid() || v.index >= m_.vars.size()) { fail("1: an unbound variable id"); return false; }
    if (bound_[v.index]) { fail(fmt::format("1: `{}` (%{}) bound twice", m_.vars[v].name, v.index)); return false; }
    bound_[v.index] = true;
    scope_[v.index] = ++serial_;
    trail_.push_back(v.index);
    return true;
  }
  bool use(VarId v) {
    if (!v.valid() || v.index >= m_.vars.size() || scope_[v.index] == 0) {
      fail(fmt::format("1: `{}` (%{}) used out of scope", v.valid() && v.index < m_.vars.size() ? m_.vars[v].name : "?", v.index));
      return false;
    }
    if (scope_[v.index] <= loop_floor_ && is_counted(m_, m_.vars[v].type)) fail(fmt::format("8: loop body uses `{}` from outside", m_.vars[v].name));
    return true;
  }
  TypeId type(VarId v) const { return m_.vars[v].type; }
  const Type& kind(VarId v) const { return m_.types[type(v)]; }
  void same(TypeId a, TypeId b, const char* what) {
    if (a != b) fail(fmt::format("{}: {} against {}", what, print_type(m_, a), print_type(m_, b)));
  }

  void func(FuncId id) {
    func_ = id;
    const Func& f = m_.funcs[id];
    for (VarId p : f.params) if (!bind(p)) return;
    if (!f.borrowed.empty() && f.borrowed.size() != f.params.size()) return fail("borrow marks do not match the parameters");
    body(f.body, 0);
    unwind(0);
  }
  void unwind(size_t mark) {
    while (trail_.size() > mark) {
      scope_[trail_.back()] = 0;
      trail_.pop_back();
    }
  }

  void call(FuncId callee, std::span<const VarId> args) {
    if (!callee.valid() || callee.index >= m_.funcs.size()) return fail("3: call of no function");
    const Func& f = m_.funcs[callee];
    if (args.size() != f.params.size()) return fail(fmt::format("3: `{}` takes {} arguments, not {}", f.name, f.params.size(), args.size()));
    for (size_t i = 0; i < args.size(); ++i) {
      if (!use(args[i])) return;
      if (type(args[i]) != type(f.params[i]))
        return fail(fmt::format("3: argument {} of `{}` is {} not {}", i, f.name, print_type(m_, type(args[i])), print_type(m_, type(f.params[i]))));
    }
  }

  void expr(const Expr& e, VarId bound) {
    auto args = m_.list(e.args);
    if (e.kind != ExprKind::Call)
      for (VarId a : args) if (!use(a)) return;
    TypeId result = type(bound);
    const Type& r = m_.types[result];
    auto fields = [&](const std::vector<TypeId>& want, const char* what) {
      if (args.size() != want.size()) return fail(fmt::format("2: {} takes {} fields, not {}", what, want.size(), args.size()));
      for (size_t i = 0; i < want.size(); ++i) same(type(args[i]), want[i], what);
    };
    auto one = [&]() { if (args.size() != 1) fail("2: one operand expected"); return error_.empty(); };
    switch (e.kind) {
      case ExprKind::Const:
        if (r.kind != TypeKind::U32 && r.kind != TypeKind::F32 && r.kind != TypeKind::Nat && r.kind != TypeKind::Enum) fail("2: constant of a type that is no scalar");
        else if (r.kind == TypeKind::Enum && e.imm >= r.count) fail("2: enum constant out of range");
        return;
      case ExprKind::Str:
        if (e.imm >= m_.strings.size() || r.kind != TypeKind::Ref || r.data != m_.string_data) fail("2: string constant");
        return;
      case ExprKind::Prim: {
        std::vector<TypeId> ops;
        for (VarId a : args) ops.push_back(type(a));
        auto got = prim_result(m_, e.prim, ops, e.in_place);
        if (!got) {
          std::string text;
          for (TypeId t : ops) text += " " + print_type(m_, t);
          fail(fmt::format("2: operands of {}:{}", prim_text(e.prim), text));
        } else same(*got, result, "2: primitive result");
        return;
      }
      case ExprKind::Struct:
        if (r.kind != TypeKind::Struct) return fail("2: struct of another type");
        return fields(r.parts, "2: struct");
      case ExprKind::Get: {
        if (!one()) return;
        const Type& t = kind(args[0]);
        if (t.kind != TypeKind::Struct || e.imm >= t.parts.size()) return fail("2: get of no field");
        return same(t.parts[e.imm], result, "2: get");
      }
      case ExprKind::Variant:
        if (r.kind == TypeKind::Enum) { if (e.imm >= r.count || !args.empty()) fail("2: enum constructor"); return; }
        if (r.kind != TypeKind::Sum || e.imm >= r.variants.size()) return fail("2: variant of another type");
        return fields(r.variants[e.imm], "2: variant");
      case ExprKind::VariantGet: {
        if (!one()) return;
        const Type& t = kind(args[0]);
        if (t.kind != TypeKind::Sum || e.imm >= t.variants.size() || e.imm2 >= t.variants[e.imm].size()) return fail("2: variant_get of no field");
        return same(t.variants[e.imm][e.imm2], result, "2: variant_get");
      }
      case ExprKind::Con: {
        if (r.kind != TypeKind::Ref || e.imm >= m_.datas[r.data].ctors.size()) return fail("2: con of another type");
        if (e.reuse.valid()) {
          if (!m_.owned) return fail("9: reuse before ownership");
          if (!use(e.reuse)) return;
          if (kind(e.reuse).kind != TypeKind::Token) return fail("2: reuse of no token");
        }
        return fields(m_.datas[r.data].ctors[e.imm].fields, "2: con");
      }
      case ExprKind::ConGet: {
        if (!one()) return;
        const Type& t = kind(args[0]);
        if (t.kind != TypeKind::Ref || e.imm >= m_.datas[t.data].ctors.size() || e.imm2 >= m_.datas[t.data].ctors[e.imm].fields.size()) return fail("2: con_get of no field");
        return same(m_.datas[t.data].ctors[e.imm].fields[e.imm2], result, "2: con_get");
      }
      case ExprKind::Call:
        call(e.func, args);
        if (error_.empty()) same(m_.funcs[e.func].result, result, "3: call result");
        return;
      case ExprKind::Apply: {
        if (args.size() != 2 || kind(args[0]).kind != TypeKind::Fn) return fail("2: apply of no closure");
        same(kind(args[0]).parts[0], type(args[1]), "2: apply argument");
        return same(kind(args[0]).parts[1], result, "2: apply result");
      }
      case ExprKind::Closure: {
        if (r.kind != TypeKind::Fn || !e.func.valid() || e.func.index >= m_.funcs.size()) return fail("2: closure of another type");
        const Func& f = m_.funcs[e.func];
        if (f.params.size() != args.size() + 1) return fail(fmt::format("2: closure of `{}` captures {} of {} parameters", f.name, args.size(), f.params.size()));
        for (size_t i = 0; i < args.size(); ++i) same(type(args[i]), type(f.params[i]), "2: capture");
        same(type(f.params.back()), r.parts[0], "2: closure parameter");
        return same(f.result, r.parts[1], "2: closure result");
      }
      case ExprKind::Request: {
        if (e.imm >= m_.effects.size() || r.kind != TypeKind::Ref || r.data != m_.io_op_data) return fail("2: request");
        const Effect& effect = m_.effects[EffectId(static_cast<uint32_t>(e.imm))];
        if (args.size() != effect.args.size() + 1) return fail(fmt::format("2: request of `{}` takes {} arguments", effect.name, effect.args.size()));
        for (size_t i = 0; i < effect.args.size(); ++i) same(type(args[i]), effect.args[i], "2: request argument");
        const Type& k = kind(args.back());
        if (k.kind != TypeKind::Fn) return fail("2: request continuation");
        same(k.parts[0], effect.answer, "2: request answer");
        return same(k.parts[1], result, "2: request result");
      }
      case ExprKind::Box:
        if (one() && r.kind != TypeKind::Any) fail("2: box to another type");
        return;
      case ExprKind::Unbox:
        if (one() && kind(args[0]).kind != TypeKind::Any) fail("2: unbox of another type");
        return;
    }
  }

  void arms(const Node& n, uint64_t count, bool limited) {
    std::vector<uint64_t> values;
    for (const Arm& arm : n.arms) {
      if (limited && arm.value >= count) return fail("4: arm out of range");
      values.push_back(arm.value);
    }
    std::sort(values.begin(), values.end());
    if (std::adjacent_find(values.begin(), values.end()) != values.end()) return fail("4: an arm twice");
    if (!n.other.valid() && (!limited || values.size() != count)) return fail(limited ? "4: cases missing" : "5: switch without else");
    for (const Arm& arm : n.arms) branch(arm.body);
    if (n.other.valid()) branch(n.other);
  }
  void branch(NodeId id) {
    size_t mark = trail_.size();
    body(id, depth_ + 1);
    unwind(mark);
  }

  void body(NodeId id, uint32_t depth) {
    const uint32_t saved_depth = depth_;
    depth_ = depth;
    std::vector<JoinId> joins;
    while (error_.empty()) {
      if (!id.valid() || id.index >= m_.nodes.size()) { fail("a body without an end"); break; }
      const Node& n = m_.nodes[id];
      bool end = false;
      switch (n.kind) {
        case NodeKind::Let:
          expr(n.expr, n.var);
          if (error_.empty()) bind(n.var);
          break;
        case NodeKind::Open: {
          if (!m_.owned) { fail("9: open before ownership"); break; }
          if (!use(n.subject)) break;
          const Type& t = kind(n.subject);
          const std::vector<TypeId>* want = nullptr;
          if (t.kind == TypeKind::Ref && n.imm < m_.datas[t.data].ctors.size()) want = &m_.datas[t.data].ctors[n.imm].fields;
          if (t.kind == TypeKind::Struct) want = &t.parts;
          if (t.kind == TypeKind::Sum && n.imm < t.variants.size()) want = &t.variants[n.imm];
          auto vars = m_.list(n.vars);
          if (!want || vars.size() != want->size()) { fail("2: open"); break; }
          for (size_t i = 0; i < vars.size(); ++i) {
            same(type(vars[i]), (*want)[i], "2: open field");
            bind(vars[i]);
          }
          if (n.var.valid()) bind(n.var);
          break;
        }
        case NodeKind::Dup:
        case NodeKind::Drop:
          if (!m_.owned) fail("9: dup or drop before ownership");
          else use(n.subject);
          break;
        case NodeKind::Join: {
          if (!n.join.valid() || n.join.index >= m_.join_count || join_state_[n.join.index] != 0) { fail("6: join point bound twice"); break; }
          join_params_[n.join.index] = n.vars;
          join_state_[n.join.index] = n.loop ? 1 : 2;   // 2: not yet visible in its own body
          size_t mark = trail_.size();
          uint64_t floor = loop_floor_;
          if (n.loop) loop_floor_ = serial_;
          for (VarId v : m_.list(n.vars)) bind(v);
          body(n.body, depth + 1);
          unwind(mark);
          loop_floor_ = floor;
          join_state_[n.join.index] = 1;
          joins.push_back(n.join);
          break;
        }
        case NodeKind::Fork: {
          auto results = m_.list(n.vars);
          if (results.size() != n.calls.size() || results.size() < 2) { fail("3: fork of fewer than two calls"); break; }
          for (size_t i = 0; i < n.calls.size() && error_.empty(); ++i) {
            call(n.calls[i].func, m_.list(n.calls[i].args));
            if (error_.empty()) same(m_.funcs[n.calls[i].func].result, type(results[i]), "3: fork result");
          }
          for (VarId v : results) bind(v);
          break;
        }
        case NodeKind::Case: {
          end = true;
          if (!use(n.subject)) break;
          const Type& t = kind(n.subject);
          if (t.kind == TypeKind::Enum) arms(n, t.count, true);
          else if (t.kind == TypeKind::Sum) arms(n, t.variants.size(), true);
          else if (t.kind == TypeKind::Ref) arms(n, m_.datas[t.data].ctors.size(), true);
          else fail("4: case on a value without constructors");
          break;
        }
        case NodeKind::Switch: {
          end = true;
          if (!use(n.subject)) break;
          const TypeKind k = kind(n.subject).kind;
          if (k != TypeKind::U32 && k != TypeKind::Nat) fail("5: switch on a value that is no u32 or nat");
          else arms(n, 0, false);
          break;
        }
        case NodeKind::Ret:
          end = true;
          if (use(n.subject)) same(type(n.subject), m_.funcs[func_].result, "7: ret");
          break;
        case NodeKind::Tail:
          end = true;
          call(n.func, m_.list(n.args));
          if (error_.empty()) same(m_.funcs[n.func].result, m_.funcs[func_].result, "7: tail call");
          break;
        case NodeKind::Jump: {
          end = true;
          if (!n.join.valid() || n.join.index >= m_.join_count || join_state_[n.join.index] != 1) { fail("6: jump to a join point not in scope"); break; }
          auto params = m_.list(join_params_[n.join.index]);
          auto args = m_.list(n.args);
          if (params.size() != args.size()) { fail("6: jump arguments"); break; }
          for (size_t i = 0; i < args.size(); ++i)
            if (use(args[i])) same(type(args[i]), type(params[i]), "6: jump argument");
          break;
        }
        case NodeKind::Abort:
          end = true;
          break;
      }
      if (end) break;
      id = n.next;
    }
    for (JoinId j : joins) join_state_[j.index] = 3;   // out of scope
    depth_ = saved_depth;
  }

  Module& m_;
  std::string error_;
  FuncId func_{0};
  uint32_t depth_ = 0;
  uint64_t serial_ = 0, loop_floor_ = 0;
  std::vector<uint64_t> scope_;       // by variable: serial of its binding, 0 = out of scope
  std::vector<bool> bound_;
  std::vector<uint32_t> trail_;
  std::vector<Slice> join_params_;
  std::vector<uint8_t> join_state_;   // 0 unseen, 1 in scope, 2 defining, 3 closed
};

}  // namespace

std::string verify(const Module& module) {
  // Type interning in prim_result only adds types that the module already implies; work on a shallow copy's tables.
  std::string complaint = Verifier(const_cast<Module&>(module)).run();
  return complaint.empty() && module.owned ? verify_ownership(module) : complaint;
}

}  // namespace bendc::flow
