// Printers of value mains: one Flow function for each representation, made on demand, which prints a value as the language's normal forms are
// printed (language.md section 11). Types that hold functions, types or parts whose type only run time knows have no printer.
#include <fmt/format.h>

#include <unordered_set>

#include "codegen/lowerer.h"

namespace bendc {

namespace {

std::u32string decode(std::string_view text) { return std::u32string(text.begin(), text.end()); }   // names are ASCII

}  // namespace

bool Lowerer::showable(RepId root) {
  std::vector<RepId> todo{root};
  std::unordered_set<RepId> seen;
  while (!todo.empty()) {
    const RepId id = todo.back();
    todo.pop_back();
    if (!seen.insert(id).second) continue;
    const Rep rep = reps_[id];
    switch (rep.kind) {
      case RepKind::U32: case RepKind::F32: case RepKind::Nat: case RepKind::Proof: break;
      case RepKind::Quantity: case RepKind::Type: case RepKind::Any: case RepKind::Fn: return false;
      case RepKind::Array: todo.push_back(rep.a); break;
      case RepKind::Adt:
        for (core::CtorId ctor : book_.datatypes[rep.data].ctors)
          for (const core::Telescope& field : book_.ctors[ctor].fields)
            if (field.quantity == core::Quantity::None) return false;
        for (const auto& fields : rep.fields) todo.insert(todo.end(), fields.begin(), fields.end());
        break;
    }
  }
  return true;
}

void Lowerer::show_text(std::string_view text) {
  const RepId rep = reps_.adt(reps_.string_data);
  const flow::TypeId type = reps_.flow(rep);
  const flow::VarId s = expr(flow::ExprKind::Str, {}, type, string_index(decode(text)), 0, "s");
  (void)prim(flow::Prim::ShowText, {s}, unit_type());
}

void Lowerer::show(Operand op) {
  auto print = [&](flow::Prim p) { (void)prim(p, std::span(&op.var, 1), unit_type()); };
  const Rep rep = reps_[op.rep];
  switch (rep.kind) {
    case RepKind::U32: return print(flow::Prim::ShowU32);
    case RepKind::F32: return print(flow::Prim::ShowF32);
    case RepKind::Nat: return print(flow::Prim::ShowNat);
    case RepKind::Proof: return show_text("{==}");
    case RepKind::Quantity: case RepKind::Type: case RepKind::Any: case RepKind::Fn: internal("a value without a printed form");
    case RepKind::Adt:
      if (rep.data == reps_.char_data) return print(flow::Prim::ShowChar);
      if (rep.data == reps_.string_data) return print(flow::Prim::ShowString);
      break;
    case RepKind::Array: break;
  }
  (void)call(show_function(op.rep), std::span(&op.var, 1), unit_type());
}

flow::FuncId Lowerer::show_function(RepId id) {
  if (auto it = shows_.find(id.index); it != shows_.end()) return it->second;
  const Rep rep = reps_[id];
  const std::string name = rep.kind == RepKind::Array ? "Array" : name_of(book_.datatypes[rep.data].name);
  const flow::FuncId func = new_func("show." + name, Span{});
  shows_.emplace(id.index, func);
  set_signature(func, std::span(&id, 1), reps_.basic(RepKind::Proof));
  Builder builder;
  open(builder, func, nullptr);
  const Operand op{out_.funcs[func].params[0], id};
  if (rep.kind == RepKind::Array) {
    show_text("[");
    show_array(op);
    show_text("]");
    ret(unit(RepKind::Proof).var);
  } else if (rep.data == reps_.list_data) {
    show_list(op);
  } else if (rep.data == reps_.sigma_data) {
    show_text("(");
    Operand rest = op;
    for (;;) {
      show(project(rest, 0, 0));
      show_text(", ");
      const Operand second = project(rest, 0, 1);
      if (reps_[second.rep].kind != RepKind::Adt || reps_[second.rep].data != reps_.sigma_data) {
        show(second);
        break;
      }
      rest = second;   // (a, (b, c)) is (a, b, c)
    }
    show_text(")");
    ret(unit(RepKind::Proof).var);
  } else {
    show_data(op);
  }
  close(builder);
  return func;
}

// [a, b]: the elements after the first in a function of its own, which is a loop.
void Lowerer::show_list(Operand op) {
  const core::Datatype& list = book_.datatypes[reps_.list_data];
  const uint32_t nil = book_.ctors[list.ctors[0]].fields.empty() ? 0 : 1, con = 1 - nil;
  const flow::FuncId tail = new_func("show.List.tail", Span{});
  const RepId id = op.rep;
  set_signature(tail, std::span(&id, 1), reps_.basic(RepKind::Proof));
  auto branch = [&](Operand xs, bool first) {
    flow::Node node;
    node.kind = flow::NodeKind::Case;
    node.subject = own(xs.var);
    node.arms = {{nil, {}}, {con, {}}};
    const flow::NodeId at = emit(std::move(node));
    b_->hole = {Hole::Slot::Arm, {}, at, 0};
    show_text(first ? "[]" : "]");
    ret(unit(RepKind::Proof).var);
    b_->hole = {Hole::Slot::Arm, {}, at, 1};
    show_text(first ? "[" : ", ");
    const Operand head = project(xs, con, 0), rest = project(xs, con, 1);
    show(head);
    flow::Node call;
    call.kind = flow::NodeKind::Tail;
    call.func = tail;
    call.args = own_list(std::span(&rest.var, 1));
    emit(std::move(call));
    b_->hole = {};
  };
  branch(op, true);
  Builder builder;
  open(builder, tail, nullptr);
  branch({out_.funcs[tail].params[0], id}, false);
  close(builder);
}

void Lowerer::show_fields(Operand op, uint32_t ctor) {
  const Rep rep = reps_[op.rep];
  const core::CtorId id = book_.datatypes[rep.data].ctors[ctor];
  show_text(name_of(book_.ctors[id].name) + "{");
  for (uint32_t f = 0; f < rep.fields[ctor].size(); ++f) {
    if (f > 0) show_text(", ");
    show(project(op, ctor, f));
  }
  show_text("}");
  ret(unit(RepKind::Proof).var);
}

void Lowerer::show_data(Operand op) {
  (void)reps_.flow(op.rep);
  const uint32_t ctors = static_cast<uint32_t>(reps_[op.rep].fields.size());
  if (ctors == 0) return abort(2);
  if (ctors == 1) return show_fields(op, 0);
  flow::Node node;
  node.kind = flow::NodeKind::Case;
  node.subject = own(op.var);
  for (uint32_t c = 0; c < ctors; ++c) node.arms.push_back({c, {}});
  const flow::NodeId id = emit(std::move(node));
  for (uint32_t c = 0; c < ctors; ++c) {
    b_->hole = {Hole::Slot::Arm, {}, id, c};
    show_fields(op, c);
  }
}

// By halves: elements may be of a kind that cannot be copied out of the array, and the depth is at most 31.
void Lowerer::show_array(Operand op) {
  const RepId id = op.rep;
  const flow::TypeId type = reps_.flow(id);
  const flow::FuncId slots = new_func("show.Array.slots", Span{});
  set_signature(slots, std::span(&id, 1), reps_.basic(RepKind::Proof));
  (void)call(slots, std::span(&op.var, 1), unit_type());
  Builder builder;
  open(builder, slots, nullptr);
  const flow::VarId a = out_.funcs[slots].params[0];
  flow::Node node;
  node.kind = flow::NodeKind::Case;
  node.subject = prim(flow::Prim::ArrayIsLeaf, {a}, bool_type());
  node.arms = {{1, {}}, {0, {}}};
  const flow::NodeId at = emit(std::move(node));
  b_->hole = {Hole::Slot::Arm, {}, at, 0};
  const RepId stored = reps_[id].b;
  show(coerce({prim(flow::Prim::ArrayTake, {a}, reps_.flow(stored)), stored}, reps_[id].a));
  ret(unit(RepKind::Proof).var);
  b_->hole = {Hole::Slot::Arm, {}, at, 1};
  const flow::VarId halves = prim(flow::Prim::ArraySplit, {a}, struct_type({type, type}));
  for (uint32_t half = 0; half < 2; ++half) {
    if (half == 1) show_text(", ");
    const flow::VarId part = expr(flow::ExprKind::Get, std::span(&halves, 1), type, half);
    (void)call(slots, std::span(&part, 1), unit_type());
  }
  ret(unit(RepKind::Proof).var);
  close(builder);
}

}  // namespace bendc
