// Conversions between representations of one type, taking values apart and putting them together by shape, and U32 as a word of bits.
// Two representations of one type with the same Flow type hold the same bits, so only differing Flow types cost anything: through the uniform
// representation to and from `any`, field by field between two layouts of a datatype (a generated function), by a wrapper for functions.
#include <fmt/format.h>

#include "codegen/lowerer.h"

namespace bendc {

Operand Lowerer::coerce(Operand op, RepId to) {
  if (!op.var.valid()) internal("a conversion of nothing");
  if (!op.rep.valid() || !to.valid()) internal("a conversion without representations");
  if (reps_.same(op.rep, to)) return {op.var, to};
  const RepKind from_kind = reps_[op.rep].kind, to_kind = reps_[to].kind;
  if (to_kind == RepKind::Any && from_kind == RepKind::Array) box_array(op.rep);
  if (from_kind == RepKind::Any && to_kind == RepKind::Array) box_array(to);
  if (to_kind == RepKind::Any) {
    const Operand uniform = coerce(op, reps_.uniform(op.rep));
    return {expr(flow::ExprKind::Box, std::span(&uniform.var, 1), reps_.flow(to)), to};
  }
  if (from_kind == RepKind::Any) {
    const RepId uniform = reps_.uniform(to);
    const Operand inner{expr(flow::ExprKind::Unbox, std::span(&op.var, 1), reps_.flow(uniform)), uniform};
    return coerce(inner, to);
  }
  if (from_kind == RepKind::Fn && to_kind == RepKind::Fn) {
    flow::Expr closure;
    closure.kind = flow::ExprKind::Closure;
    closure.func = function_conversion(op.rep, to);
    closure.args = own_list(std::span(&op.var, 1));
    return {let(closure, reps_.flow(to), "f"), to};
  }
  if (from_kind == RepKind::Adt && to_kind == RepKind::Adt && reps_[op.rep].data == reps_[to].data) {
    return {call(conversion(op.rep, to), std::span(&op.var, 1), reps_.flow(to)), to};
  }
  if (from_kind == RepKind::Array && to_kind == RepKind::Array) {
    box_array(op.rep);
    box_array(to);
    undecided_array_boxed_ = true;
    return unreachable(to);
  }
  // Two different types can only meet where a proof equates them, that is in code that never runs.
  return unreachable(to);
}

// A block is shared by handles and cannot be converted, so both sides of a box must have laid it out alike. Where one of them does not know the
// element type, all arrays that are boxed anywhere store `any`: the program is lowered again with that (see lower()).
void Lowerer::box_array(RepId array) {
  if (reps_[reps_[array].b].kind != RepKind::Any) boxed_elements_.insert(reps_.element_kind(array));
  if (reps_.undecided(reps_[array].a)) undecided_array_boxed_ = true;
}

flow::FuncId Lowerer::function_conversion(RepId from, RepId to) {
  const auto key = std::make_pair(from.index, to.index);
  if (auto it = conversions_.find(key); it != conversions_.end()) return it->second;
  const flow::FuncId func = new_func("convert.fn", Span{});
  conversions_.emplace(key, func);
  const Rep source = reps_[from], target = reps_[to];
  const RepId params[] = {from, target.a};
  set_signature(func, params, target.b);
  Builder builder;
  open(builder, func, nullptr);
  const Operand x = coerce({out_.funcs[func].params[1], target.a}, source.a);
  const flow::VarId operands[] = {out_.funcs[func].params[0], x.var};
  const Operand y{expr(flow::ExprKind::Apply, operands, reps_.flow(source.b)), source.b};
  ret(coerce(y, target.b).var);
  close(builder);
  return func;
}

flow::FuncId Lowerer::conversion(RepId from, RepId to) {
  const auto key = std::make_pair(from.index, to.index);
  if (auto it = conversions_.find(key); it != conversions_.end()) return it->second;
  const Rep source = reps_[from], target = reps_[to];
  const flow::FuncId func = new_func("convert." + name_of(book_.datatypes[source.data].name), Span{});
  conversions_.emplace(key, func);
  set_signature(func, std::span(&from, 1), to);
  Builder builder;
  open(builder, func, nullptr);
  const Operand op{out_.funcs[func].params[0], from};
  const uint32_t ctors = static_cast<uint32_t>(source.fields.size());
  flow::NodeId node_id;
  if (ctors != 1) {
    flow::Node node;
    node.kind = flow::NodeKind::Case;
    node.subject = op.var;
    for (uint32_t c = 0; c < ctors; ++c) node.arms.push_back({c, {}});
    node_id = emit(std::move(node));
  }
  for (uint32_t c = 0; c < ctors; ++c) {
    if (ctors != 1) b_->hole = {Hole::Slot::Arm, {}, node_id, c};
    std::vector<Operand> fields;
    for (uint32_t f = 0; f < source.fields[c].size(); ++f) fields.push_back(coerce(project(op, c, f), target.fields[c][f]));
    ret(build(to, c, fields).var);
  }
  close(builder);
  return func;
}

// --- Datatypes by shape -----------------------------------------------------------------------------------------------------------

Operand Lowerer::project(Operand op, uint32_t ctor, uint32_t field, std::string name) {
  (void)reps_.flow(op.rep);
  const Shape shape = reps_[op.rep].shape;   // of a big sum nothing else is copied: its arms would make that a square
  const RepId stored = reps_[op.rep].fields[ctor][field];
  const flow::TypeId type = reps_.flow(stored);
  Operand out{{}, stored};
  switch (shape) {
    case Shape::Newtype: return {op.var, stored};
    case Shape::Struct: out.var = expr(flow::ExprKind::Get, std::span(&op.var, 1), type, field, 0, std::move(name)); break;
    case Shape::Sum: out.var = expr(flow::ExprKind::VariantGet, std::span(&op.var, 1), type, ctor, field, std::move(name)); break;
    case Shape::Ref: out.var = expr(flow::ExprKind::ConGet, std::span(&op.var, 1), type, ctor, field, std::move(name)); break;
    case Shape::Unit:
    case Shape::Enum:
    case Shape::Undecided: internal("a field of a value without fields");
  }
  projections_[out.var] = {op.var, op.rep, ctor, field};
  return out;
}

// K{fields} right after a match that opened a K into exactly these fields is the value that was matched.
std::optional<Operand> Lowerer::unchanged(RepId rep, uint32_t ctor, std::span<const Operand> fields) const {
  flow::VarId subject;
  for (uint32_t f = 0; f < fields.size(); ++f) {
    auto it = projections_.find(fields[f].var);
    if (it == projections_.end() || it->second.rep != rep || it->second.ctor != ctor || it->second.field != f) return std::nullopt;
    if (f > 0 && it->second.subject != subject) return std::nullopt;
    subject = it->second.subject;
  }
  if (!subject.valid()) return std::nullopt;
  return Operand{subject, rep};
}

Operand Lowerer::build(RepId id, uint32_t ctor, std::span<const Operand> fields) {
  const flow::TypeId type = reps_.flow(id);
  if (reps_[id].kind != RepKind::Adt || ctor >= reps_[id].fields.size() || reps_[id].fields[ctor].size() != fields.size())
    internal("a constructor with the wrong fields");
  if (auto same = unchanged(id, ctor, fields)) return *same;
  const Shape shape = reps_[id].shape;
  const std::vector<RepId> stored = reps_[id].fields[ctor];
  std::vector<flow::VarId> vars;
  for (size_t f = 0; f < fields.size(); ++f) vars.push_back(coerce(fields[f], stored[f]).var);
  switch (shape) {
    case Shape::Newtype: return {vars[0], id};
    case Shape::Unit:
    case Shape::Struct: return {expr(flow::ExprKind::Struct, vars, type), id};
    case Shape::Enum: return {constant(ctor, type), id};
    case Shape::Sum: return {expr(flow::ExprKind::Variant, vars, type, ctor), id};
    case Shape::Ref: return {expr(flow::ExprKind::Con, vars, type, ctor), id};
    case Shape::Undecided: break;
  }
  internal("a constructor of no layout");
}

// --- Bits -------------------------------------------------------------------------------------------------------------------------

namespace {

constexpr uint32_t kBits = 32;

}  // namespace

// Word(32n) is WCon{bit 0, WCon{bit 1, .. WNil{}}}; its tails are boxed, as their length is no part of the representation.
Operand Lowerer::word_of_bits(flow::VarId bits, RepId word) {
  const core::CtorId wnil = m_.known().wnil, wcon = m_.known().wcon;
  const flow::TypeId u32 = basic(flow::TypeKind::U32), nat = basic(flow::TypeKind::Nat);
  const RepId nil = reps_.adt(book_.ctors[wnil].data), con = reps_.adt(book_.ctors[wcon].data);
  const RepId boolean = reps_.adt(reps_.bool_data);
  Operand rest = build(nil, book_.ctors[wnil].index, {});
  const flow::VarId one = constant(1, u32);
  for (uint32_t i = kBits; i-- > 0;) {
    const flow::VarId shifted = prim(flow::Prim::U32Shrn, {bits, constant(i, nat)}, u32);
    const flow::VarId bit = prim(flow::Prim::U32And, {shifted, one}, u32);
    const Operand fields[] = {{prim(flow::Prim::U32IsEq, {bit, one}, bool_type()), boolean}, rest};
    rest = build(con, book_.ctors[wcon].index, fields);
  }
  return coerce(rest, word);
}

flow::VarId Lowerer::bits_of_word(Operand word) {
  const core::CtorId wcon = m_.known().wcon;
  const flow::TypeId u32 = basic(flow::TypeKind::U32), nat = basic(flow::TypeKind::Nat);
  const RepId con = reps_.adt(book_.ctors[wcon].data);
  if (auto it = projections_.find(word.var); it != projections_.end() && reps_[it->second.rep].kind == RepKind::U32) return it->second.subject;
  if (!bit_function_.valid()) {
    // Bool -> U32
    bit_function_ = new_func("bit", Span{});
    const RepId boolean = reps_.adt(reps_.bool_data);
    set_signature(bit_function_, std::span(&boolean, 1), reps_.basic(RepKind::U32));
    Builder builder;
    open(builder, bit_function_, nullptr);
    flow::Node node;
    node.kind = flow::NodeKind::Case;
    node.subject = out_.funcs[bit_function_].params[0];
    node.arms = {{0, {}}, {1, {}}};
    const flow::NodeId id = emit(std::move(node));
    for (uint32_t i = 0; i < 2; ++i) {
      b_->hole = {Hole::Slot::Arm, {}, id, i};
      ret(constant(i, u32));
    }
    close(builder);
  }
  flow::VarId total = constant(0, u32);
  Operand rest = word;
  for (uint32_t i = 0; i < kBits; ++i) {
    rest = coerce(rest, con);
    const flow::VarId bit = project(rest, book_.ctors[wcon].index, 0).var;
    const flow::VarId value = call(bit_function_, std::span(&bit, 1), u32);
    const flow::VarId shifted = prim(flow::Prim::U32Shln, {value, constant(i, nat)}, u32);
    total = prim(flow::Prim::U32Or, {total, shifted}, u32);
    rest = project(rest, book_.ctors[wcon].index, 1);
  }
  return total;
}

}  // namespace bendc
