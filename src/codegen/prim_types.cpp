#include "codegen/prim_types.h"

namespace bendc::flow {

namespace {

struct Scalars {
  TypeId u32, f32, nat, boolean, cmp, unit;
};

Scalars scalars(Module& m) {
  Type enum2{TypeKind::Enum}, enum3{TypeKind::Enum};
  enum2.count = 2;
  enum3.count = 3;
  return {m.intern(Type{TypeKind::U32}), m.intern(Type{TypeKind::F32}), m.intern(Type{TypeKind::Nat}), m.intern(enum2), m.intern(enum3),
          m.intern(Type{TypeKind::Struct})};
}

TypeId pair(Module& m, TypeId a, TypeId b) {
  Type t{TypeKind::Struct};
  t.parts = {a, b};
  return m.intern(t);
}

}  // namespace

bool gives_handle_back(Prim prim) {
  switch (prim) {
    case Prim::ArrayGet: case Prim::ArraySet: case Prim::ArraySwap: case Prim::ArraySize: case Prim::ArrayClone:
    case Prim::AtomicAdd: case Prim::AtomicMin: case Prim::AtomicMax: case Prim::AtomicAnd: case Prim::AtomicOr: case Prim::AtomicXor:
    case Prim::AtomicExch: case Prim::AtomicCas: case Prim::AtomicFadd:
      return true;
    default:
      return false;
  }
}

std::optional<TypeId> prim_result(Module& m, Prim prim, std::span<const TypeId> ops, bool in_place) {
  if (in_place) {
    const std::optional<TypeId> whole = gives_handle_back(prim) ? prim_result(m, prim, ops) : std::nullopt;
    if (!whole) return std::nullopt;
    return m.types[*whole].kind == TypeKind::Struct ? m.types[*whole].parts[1] : m.intern(Type{TypeKind::Struct});
  }
  const Scalars s = scalars(m);
  auto is = [&](std::initializer_list<TypeId> want) { return ops.size() == want.size() && std::equal(ops.begin(), ops.end(), want.begin()); };
  auto when = [](bool ok, TypeId result) { return ok ? std::optional<TypeId>(result) : std::nullopt; };
  auto is_array = [&](size_t i) { return i < ops.size() && m.types[ops[i]].kind == TypeKind::Array; };
  auto element = [&](size_t i) { return m.types[ops[i]].parts[0]; };
  auto array_of = [&](TypeId e) { Type t{TypeKind::Array}; t.parts = {e}; return m.intern(t); };
  auto is_string = [&](size_t i) { return i < ops.size() && m.types[ops[i]].kind == TypeKind::Ref && m.types[ops[i]].data == m.string_data; };
  switch (prim) {
    case Prim::U32Add: case Prim::U32Sub: case Prim::U32Mul: case Prim::U32Div: case Prim::U32Mod:
    case Prim::U32And: case Prim::U32Or: case Prim::U32Xor:
      return when(is({s.u32, s.u32}), s.u32);
    case Prim::U32Inc: case Prim::U32Not: case Prim::U32Shl: case Prim::U32Shr:
      return when(is({s.u32}), s.u32);
    case Prim::U32Shln: case Prim::U32Shrn:
      return when(is({s.u32, s.nat}), s.u32);
    case Prim::U32IsZero:
      return when(is({s.u32}), s.boolean);
    case Prim::U32IsEq: case Prim::U32IsNe: case Prim::U32IsLt: case Prim::U32IsLe: case Prim::U32IsGt: case Prim::U32IsGe:
      return when(is({s.u32, s.u32}), s.boolean);
    case Prim::U32Cmp: return when(is({s.u32, s.u32}), s.cmp);
    case Prim::U32ToF32: return when(is({s.u32}), s.f32);
    case Prim::U32ToNat: return when(is({s.u32}), s.nat);
    case Prim::U32FromNat: return when(is({s.nat}), s.u32);
    case Prim::NatAdd: case Prim::NatSub: case Prim::NatMul: case Prim::NatMin: case Prim::NatMax:
      return when(is({s.nat, s.nat}), s.nat);
    case Prim::NatDouble: case Prim::NatSucc: case Prim::NatPred:
      return when(is({s.nat}), s.nat);
    case Prim::NatCmp: return when(is({s.nat, s.nat}), s.cmp);
    case Prim::NatIsLt: case Prim::NatIsEq: return when(is({s.nat, s.nat}), s.boolean);
    case Prim::NatDivmod: return when(is({s.nat, s.nat}), pair(m, s.nat, s.nat));
    case Prim::BoolNot: return when(is({s.boolean}), s.boolean);
    case Prim::BoolAnd: case Prim::BoolOr: case Prim::BoolXor: return when(is({s.boolean, s.boolean}), s.boolean);
    case Prim::F32Add: case Prim::F32Sub: case Prim::F32Mul: case Prim::F32Div: case Prim::F32Mod: case Prim::F32Pow: case Prim::F32Atan2:
      return when(is({s.f32, s.f32}), s.f32);
    case Prim::F32Sqrt: case Prim::F32Neg: case Prim::F32Abs: case Prim::F32Floor: case Prim::F32Ceil: case Prim::F32Trunc:
    case Prim::F32Exp: case Prim::F32Log: case Prim::F32Log2: case Prim::F32Log10: case Prim::F32Sin: case Prim::F32Cos: case Prim::F32Tan:
    case Prim::F32Asin: case Prim::F32Acos: case Prim::F32Atan: case Prim::F32Sinh: case Prim::F32Cosh: case Prim::F32Tanh:
      return when(is({s.f32}), s.f32);
    case Prim::F32Fma: return when(is({s.f32, s.f32, s.f32}), s.f32);
    case Prim::F32IsEq: case Prim::F32IsNe: case Prim::F32IsLt: case Prim::F32IsLe: case Prim::F32IsGt: case Prim::F32IsGe:
      return when(is({s.f32, s.f32}), s.boolean);
    case Prim::F32ToU32: case Prim::F32Bits: return when(is({s.f32}), s.u32);
    case Prim::F32FromBits: return when(is({s.u32}), s.f32);
    case Prim::F32Show: {
      if (!m.string_data.valid()) return std::nullopt;
      Type t{TypeKind::Ref};
      t.data = m.string_data;
      return when(is({s.f32}), m.intern(t));
    }
    case Prim::F32Read: {
      Type t{TypeKind::Sum};
      t.variants = {{}, {s.f32}};
      return when(ops.size() == 1 && is_string(0), m.intern(t));
    }
    case Prim::ArrayNew:
      return ops.size() == 2 && ops[0] == s.nat ? std::optional(array_of(ops[1])) : std::nullopt;
    case Prim::ArrayGet:
      return ops.size() == 2 && is_array(0) && ops[1] == s.u32 ? std::optional(pair(m, ops[0], element(0))) : std::nullopt;
    case Prim::ArraySet:
      return ops.size() == 3 && is_array(0) && ops[1] == s.u32 && ops[2] == element(0) ? std::optional(ops[0]) : std::nullopt;
    case Prim::ArraySwap:
      return ops.size() == 3 && is_array(0) && ops[1] == s.u32 && ops[2] == element(0) ? std::optional(pair(m, ops[0], element(0))) : std::nullopt;
    case Prim::ArraySize: return ops.size() == 1 && is_array(0) ? std::optional(pair(m, ops[0], s.u32)) : std::nullopt;
    case Prim::ArrayClone: case Prim::ArrayFork: case Prim::ArraySplit:
      return ops.size() == 1 && is_array(0) ? std::optional(pair(m, ops[0], ops[0])) : std::nullopt;
    case Prim::ArrayJoin: case Prim::ArrayNode:
      return ops.size() == 2 && is_array(0) && ops[0] == ops[1] ? std::optional(ops[0]) : std::nullopt;
    case Prim::ArrayLeaf: return ops.size() == 1 ? std::optional(array_of(ops[0])) : std::nullopt;
    case Prim::ArrayIsLeaf: return when(ops.size() == 1 && is_array(0), s.boolean);
    case Prim::ArrayMask: return when(ops.size() == 1 && is_array(0), s.u32);
    case Prim::ArrayTake: return ops.size() == 1 && is_array(0) ? std::optional(element(0)) : std::nullopt;
    case Prim::AtomicAdd: case Prim::AtomicMin: case Prim::AtomicMax: case Prim::AtomicAnd: case Prim::AtomicOr: case Prim::AtomicXor: case Prim::AtomicExch:
      return ops.size() == 3 && is_array(0) && element(0) == s.u32 && ops[1] == s.u32 && ops[2] == s.u32 ? std::optional(pair(m, ops[0], s.u32)) : std::nullopt;
    case Prim::AtomicCas:
      return ops.size() == 4 && is_array(0) && element(0) == s.u32 && ops[1] == s.u32 && ops[2] == s.u32 && ops[3] == s.u32
                 ? std::optional(pair(m, ops[0], s.u32)) : std::nullopt;
    case Prim::AtomicFadd:
      return ops.size() == 3 && is_array(0) && element(0) == s.f32 && ops[1] == s.u32 && ops[2] == s.f32 ? std::optional(pair(m, ops[0], s.f32)) : std::nullopt;
    case Prim::ShowText: case Prim::ShowString: return when(ops.size() == 1 && is_string(0), s.unit);
    case Prim::ShowU32: case Prim::ShowChar: return when(is({s.u32}), s.unit);
    case Prim::ShowNat: return when(is({s.nat}), s.unit);
    case Prim::ShowF32: return when(is({s.f32}), s.unit);
  }
  return std::nullopt;
}

bool prim_borrows(const Expr& e, size_t operand) {
  if (e.in_place) return operand == 0;
  return e.prim == Prim::ArrayIsLeaf || e.prim == Prim::ArrayMask || e.prim == Prim::ShowText || e.prim == Prim::ShowString;
}

bool prim_is_pure(const Expr& e) {
  if (e.in_place && (e.prim == Prim::ArrayGet || e.prim == Prim::ArraySize)) return true;
  switch (e.prim) {
    case Prim::NatAdd: case Prim::NatMul: case Prim::NatDouble: case Prim::NatSucc:   // error 5
    case Prim::ArrayNew: case Prim::ArrayNode: case Prim::ArraySplit:                 // errors 8, 2
    case Prim::ArraySet: case Prim::ArraySwap: case Prim::ArrayGet: case Prim::ArraySize: case Prim::ArrayClone: case Prim::ArrayFork: case Prim::ArrayJoin:
    case Prim::ArrayLeaf: case Prim::ArrayTake: case Prim::ArrayIsLeaf: case Prim::ArrayMask:
    case Prim::AtomicAdd: case Prim::AtomicMin: case Prim::AtomicMax: case Prim::AtomicAnd: case Prim::AtomicOr: case Prim::AtomicXor: case Prim::AtomicExch:
    case Prim::AtomicCas: case Prim::AtomicFadd:
    case Prim::ShowText: case Prim::ShowU32: case Prim::ShowNat: case Prim::ShowF32: case Prim::ShowChar: case Prim::ShowString:
    case Prim::F32Show: case Prim::F32Read:
      return false;
    case Prim::U32Add: case Prim::U32Sub: case Prim::U32Mul: case Prim::U32Div: case Prim::U32Mod: case Prim::U32Inc: case Prim::U32And: case Prim::U32Or:
    case Prim::U32Xor: case Prim::U32Not: case Prim::U32Shl: case Prim::U32Shr: case Prim::U32Shln: case Prim::U32Shrn: case Prim::U32IsZero:
    case Prim::U32IsEq: case Prim::U32IsNe: case Prim::U32IsLt: case Prim::U32IsLe: case Prim::U32IsGt: case Prim::U32IsGe: case Prim::U32Cmp:
    case Prim::U32ToF32: case Prim::U32ToNat: case Prim::U32FromNat: case Prim::NatSub: case Prim::NatPred: case Prim::NatCmp: case Prim::NatIsLt:
    case Prim::NatIsEq: case Prim::NatMin: case Prim::NatMax: case Prim::NatDivmod: case Prim::BoolNot: case Prim::BoolAnd: case Prim::BoolOr: case Prim::BoolXor:
    case Prim::F32Add: case Prim::F32Sub: case Prim::F32Mul: case Prim::F32Div: case Prim::F32Mod: case Prim::F32Sqrt: case Prim::F32Neg: case Prim::F32Abs:
    case Prim::F32Floor: case Prim::F32Ceil: case Prim::F32Trunc: case Prim::F32Exp: case Prim::F32Log: case Prim::F32Log2: case Prim::F32Log10:
    case Prim::F32Sin: case Prim::F32Cos: case Prim::F32Tan: case Prim::F32Asin: case Prim::F32Acos: case Prim::F32Atan: case Prim::F32Sinh: case Prim::F32Cosh:
    case Prim::F32Tanh: case Prim::F32Pow: case Prim::F32Atan2: case Prim::F32Fma: case Prim::F32IsEq: case Prim::F32IsNe: case Prim::F32IsLt: case Prim::F32IsLe:
    case Prim::F32IsGt: case Prim::F32IsGe: case Prim::F32ToU32: case Prim::F32Bits: case Prim::F32FromBits:
      return true;
  }
  return false;
}

}  // namespace bendc::flow
