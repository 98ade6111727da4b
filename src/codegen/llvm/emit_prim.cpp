// Primitive operations on scalars, and printing. F32 is strict IEEE: no fast-math flags anywhere, NaN canonical where bits show.
#include <llvm/IR/IntrinsicInst.h>

#include "codegen/llvm/emitter.h"
#include "support/internal.h"
#include "support/text.h"

namespace bendc::codegen {

using flow::Prim;
using flow::VarId;

namespace {
constexpr uint32_t kErrorNat = 5;   // base.md 5.2
constexpr uint32_t kCanonicalNan = 0x7FC00000u;
}  // namespace

llvm::Value* FuncEmitter::boolean(llvm::Value* bit) { return b_.CreateZExt(bit, m_.i32); }

llvm::Value* FuncEmitter::cmp(llvm::Value* less, llvm::Value* equal) {
  return b_.CreateSelect(less, b_.getInt32(0), b_.CreateSelect(equal, b_.getInt32(1), b_.getInt32(2)));
}

Leaves FuncEmitter::nat_checked(llvm::Value* value) {
  check(b_.CreateICmpUGT(value, b_.getInt64(BEND_NAT_MAX)), kErrorNat);
  return {value};
}

Leaves FuncEmitter::show_text(const flow::Node& node) {
  // The operand is a string constant (flow's contract); its bytes are printed, the String itself is never built.
  const VarId var = m_.flow.list(node.expr.args)[0];
  auto known = string_of_.find(var.index);
  if (known == string_of_.end()) internal_error("code generation", "show.text of a string that is no constant");
  std::string bytes;
  for (char32_t c : m_.flow.strings[known->second]) {
    char buffer[text::kUtf8Chars];
    bytes.append(buffer, text::utf8_encode(static_cast<uint32_t>(c), buffer));
  }
  m_.call_runtime(b_, Rt::bend_show_text, {worker_, m_.text(bytes), b_.getInt64(bytes.size())});
  return {};
}

Leaves FuncEmitter::prim(const flow::Node& node) {
  const std::span<const VarId> args = m_.flow.list(node.expr.args);
  auto arg = [&](size_t i) { return scalar(args[i]); };
  auto less = [&] { return b_.CreateICmpULT(arg(0), arg(1)); };
  auto equal = [&] { return b_.CreateICmpEQ(arg(0), arg(1)); };
  // Without the instruction LLVM would call libm.
  auto rounding = [&](llvm::Intrinsic::ID id) -> Leaves {
    return {m_.options.cpu.rounding ? b_.CreateUnaryIntrinsic(id, arg(0)) : m_.f32_function(b_, node.expr.prim, {arg(0)})};
  };
  llvm::Value* zero32 = b_.getInt32(0);
  switch (node.expr.prim) {
    case Prim::U32Add: return {b_.CreateAdd(arg(0), arg(1), "", node.expr.in_range)};
    case Prim::U32Sub: return {b_.CreateSub(arg(0), arg(1))};
    case Prim::U32Mul: return {b_.CreateMul(arg(0), arg(1))};
    case Prim::U32Div:
    case Prim::U32Mod: {
      // Division by zero is undefined in LLVM: divide by one instead, then choose.
      llvm::Value* none = b_.CreateICmpEQ(arg(1), zero32);
      llvm::Value* divisor = b_.CreateSelect(none, b_.getInt32(1), arg(1));
      if (node.expr.prim == Prim::U32Div) return {b_.CreateSelect(none, zero32, b_.CreateUDiv(arg(0), divisor))};
      return {b_.CreateSelect(none, arg(0), b_.CreateURem(arg(0), divisor))};
    }
    case Prim::U32Inc: return {b_.CreateAdd(arg(0), b_.getInt32(1), "", node.expr.in_range)};
    case Prim::U32And: return {b_.CreateAnd(arg(0), arg(1))};
    case Prim::U32Or: return {b_.CreateOr(arg(0), arg(1))};
    case Prim::U32Xor: return {b_.CreateXor(arg(0), arg(1))};
    case Prim::U32Not: return {b_.CreateNot(arg(0))};
    case Prim::U32Shl: return {b_.CreateShl(arg(0), 1)};
    case Prim::U32Shr: return {b_.CreateLShr(arg(0), 1)};
    case Prim::U32Shln:
    case Prim::U32Shrn: {
      llvm::Value* amount = b_.CreateAnd(b_.CreateTrunc(arg(1), m_.i32), 31);
      llvm::Value* shifted = node.expr.prim == Prim::U32Shln ? b_.CreateShl(arg(0), amount) : b_.CreateLShr(arg(0), amount);
      return {b_.CreateSelect(b_.CreateICmpULT(arg(1), b_.getInt64(32)), shifted, zero32)};
    }
    case Prim::U32IsZero: return {boolean(b_.CreateICmpEQ(arg(0), zero32))};
    case Prim::U32IsEq: return {boolean(equal())};
    case Prim::U32IsNe: return {boolean(b_.CreateICmpNE(arg(0), arg(1)))};
    case Prim::U32IsLt: return {boolean(less())};
    case Prim::U32IsLe: return {boolean(b_.CreateICmpULE(arg(0), arg(1)))};
    case Prim::U32IsGt: return {boolean(b_.CreateICmpUGT(arg(0), arg(1)))};
    case Prim::U32IsGe: return {boolean(b_.CreateICmpUGE(arg(0), arg(1)))};
    case Prim::U32Cmp:
    case Prim::NatCmp: return {cmp(less(), equal())};
    case Prim::U32ToF32: return {b_.CreateUIToFP(arg(0), m_.f32)};
    case Prim::U32ToNat: return {b_.CreateZExt(arg(0), m_.i64)};
    case Prim::U32FromNat: return {b_.CreateTrunc(arg(0), m_.i32)};

    // Operands are below 2^48, so sums cannot wrap 64 bits; only products need the overflow bit.
    case Prim::NatAdd: return nat_checked(b_.CreateNUWAdd(arg(0), arg(1)));
    case Prim::NatDouble: return nat_checked(b_.CreateNUWAdd(arg(0), arg(0)));
    case Prim::NatSucc: return nat_checked(b_.CreateNUWAdd(arg(0), b_.getInt64(1)));
    case Prim::NatSub: return {b_.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, arg(0), arg(1))};
    case Prim::NatPred: return {b_.CreateNUWSub(arg(0), b_.getInt64(1))};
    case Prim::NatMul: {
      llvm::Value* both = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umul_with_overflow, arg(0), arg(1));
      llvm::Value* product = b_.CreateExtractValue(both, 0);
      check(b_.CreateOr(b_.CreateExtractValue(both, 1), b_.CreateICmpUGT(product, b_.getInt64(BEND_NAT_MAX))), kErrorNat);
      return {product};
    }
    case Prim::NatIsLt: return {boolean(less())};
    case Prim::NatIsEq: return {boolean(equal())};
    case Prim::NatMin: return {b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, arg(0), arg(1))};
    case Prim::NatMax: return {b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, arg(0), arg(1))};
    case Prim::NatDivmod: {
      llvm::Value* zero = b_.getInt64(0);
      llvm::Value* none = b_.CreateICmpEQ(arg(1), zero);
      llvm::Value* divisor = b_.CreateSelect(none, b_.getInt64(1), arg(1));
      return {b_.CreateSelect(none, zero, b_.CreateUDiv(arg(0), divisor)), b_.CreateSelect(none, arg(0), b_.CreateURem(arg(0), divisor))};
    }

    case Prim::BoolNot: return {b_.CreateXor(arg(0), b_.getInt32(1))};
    case Prim::BoolAnd: return {b_.CreateAnd(arg(0), arg(1))};
    case Prim::BoolOr: return {b_.CreateOr(arg(0), arg(1))};
    case Prim::BoolXor: return {b_.CreateXor(arg(0), arg(1))};

    case Prim::F32Add: return {b_.CreateFAdd(arg(0), arg(1))};
    case Prim::F32Sub: return {b_.CreateFSub(arg(0), arg(1))};
    case Prim::F32Mul: return {b_.CreateFMul(arg(0), arg(1))};
    case Prim::F32Div: return {b_.CreateFDiv(arg(0), arg(1))};
    case Prim::F32Sqrt: return {b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, arg(0))};
    case Prim::F32Neg: return {b_.CreateFNeg(arg(0))};
    case Prim::F32Abs: return {b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, arg(0))};
    case Prim::F32Floor: return rounding(llvm::Intrinsic::floor);
    case Prim::F32Ceil: return rounding(llvm::Intrinsic::ceil);
    case Prim::F32Trunc: return rounding(llvm::Intrinsic::trunc);
    case Prim::F32Exp:
    case Prim::F32Log:
    case Prim::F32Log2:
    case Prim::F32Log10:
    case Prim::F32Sin:
    case Prim::F32Cos:
    case Prim::F32Tan:
    case Prim::F32Asin:
    case Prim::F32Acos:
    case Prim::F32Atan:
    case Prim::F32Sinh:
    case Prim::F32Cosh:
    case Prim::F32Tanh: return {m_.f32_function(b_, node.expr.prim, {arg(0)})};
    case Prim::F32Mod:
    case Prim::F32Pow:
    case Prim::F32Atan2: return {m_.f32_function(b_, node.expr.prim, {arg(0), arg(1)})};
    case Prim::F32Fma:
      if (!m_.options.cpu.fma) return {m_.f32_function(b_, node.expr.prim, {arg(0), arg(1), arg(2)})};
      return {b_.CreateIntrinsic(m_.f32, llvm::Intrinsic::fma, {arg(0), arg(1), arg(2)})};
    case Prim::F32IsEq: return {boolean(b_.CreateFCmpOEQ(arg(0), arg(1)))};
    case Prim::F32IsNe: return {boolean(b_.CreateFCmpUNE(arg(0), arg(1)))};
    case Prim::F32IsLt: return {boolean(b_.CreateFCmpOLT(arg(0), arg(1)))};
    case Prim::F32IsLe: return {boolean(b_.CreateFCmpOLE(arg(0), arg(1)))};
    case Prim::F32IsGt: return {boolean(b_.CreateFCmpOGT(arg(0), arg(1)))};
    case Prim::F32IsGe: return {boolean(b_.CreateFCmpOGE(arg(0), arg(1)))};
    case Prim::F32ToU32: {
      llvm::Value* zero = llvm::ConstantFP::get(m_.f32, 0.0);
      llvm::Value* fits = b_.CreateAnd(b_.CreateFCmpOGE(arg(0), zero), b_.CreateFCmpOLT(arg(0), llvm::ConstantFP::get(m_.f32, 4294967296.0)));
      return {b_.CreateFPToUI(b_.CreateSelect(fits, arg(0), zero), m_.i32)};
    }
    case Prim::F32Bits: {
      llvm::Value* bits = b_.CreateBitCast(arg(0), m_.i32);
      return {b_.CreateSelect(b_.CreateFCmpUNO(arg(0), arg(0)), b_.getInt32(kCanonicalNan), bits)};
    }
    case Prim::F32FromBits: return {b_.CreateBitCast(arg(0), m_.f32)};
    case Prim::F32Show: return {m_.call_runtime(b_, Rt::bend_f32_show, {worker_, arg(0)})};
    case Prim::F32Read: {
      llvm::Value* packed = m_.call_runtime(b_, Rt::bend_f32_read, {worker_, arg(0)});
      return {b_.CreateTrunc(b_.CreateLShr(packed, 32), m_.i32), b_.CreateTrunc(packed, m_.i32)};
    }

    case Prim::ArrayNew:
    case Prim::ArrayGet:
    case Prim::ArraySet:
    case Prim::ArraySwap:
    case Prim::ArraySize:
    case Prim::ArrayClone:
    case Prim::ArrayFork:
    case Prim::ArrayJoin:
    case Prim::ArrayLeaf:
    case Prim::ArrayNode:
    case Prim::ArrayIsLeaf:
    case Prim::ArrayTake:
    case Prim::ArraySplit:
    case Prim::ArrayMask:
      return array_prim(node);
    case Prim::AtomicAdd:
    case Prim::AtomicMin:
    case Prim::AtomicMax:
    case Prim::AtomicAnd:
    case Prim::AtomicOr:
    case Prim::AtomicXor:
    case Prim::AtomicExch:
    case Prim::AtomicCas:
    case Prim::AtomicFadd:
      return atomic_prim(node);

    case Prim::ShowText: return show_text(node);
    case Prim::ShowU32: m_.call_runtime(b_, Rt::bend_show_u32, {worker_, arg(0)}); return {};
    case Prim::ShowNat: m_.call_runtime(b_, Rt::bend_show_nat, {worker_, arg(0)}); return {};
    case Prim::ShowF32: m_.call_runtime(b_, Rt::bend_show_f32, {worker_, arg(0)}); return {};
    case Prim::ShowChar: m_.call_runtime(b_, Rt::bend_show_char, {worker_, arg(0)}); return {};
    case Prim::ShowString: m_.call_runtime(b_, Rt::bend_show_string, {worker_, arg(0)}); return {};
  }
  return {};
}

}  // namespace bendc::codegen
