// Flow types as LLVM types: leaves, function signatures, result packing.
#include "codegen/llvm/emitter.h"

namespace bendc::codegen {

using flow::LeafKind;
using flow::TypeId;
using flow::TypeKind;

namespace {
// x86-64 returns in rax, rdx, rcx and xmm0, xmm1; more would be demoted to memory by LLVM, which rules out `musttail`.
constexpr size_t kMaxIntResults = 3, kMaxFloatResults = 2;
// And takes arguments in rdi, rsi, rdx, rcx, r8, r9 and xmm0 to xmm7.
constexpr size_t kMaxIntArguments = 6, kMaxFloatArguments = 8;

bool fits_registers(const llvm::FunctionType& type) {
  size_t ints = 0, floats = 0;
  for (llvm::Type* argument : type.params()) (argument->isFloatingPointTy() ? floats : ints) += 1;
  return ints <= kMaxIntArguments && floats <= kMaxFloatArguments;
}
}  // namespace

llvm::CallInst::TailCallKind guaranteed_tail(const llvm::Function& caller, const llvm::FunctionType& callee) {
  return fits_registers(*caller.getFunctionType()) && fits_registers(callee) ? llvm::CallInst::TCK_MustTail : llvm::CallInst::TCK_Tail;
}

llvm::Type* ModuleEmitter::leaf_type(LeafKind kind) const {
  switch (kind) {
    case LeafKind::I32: return i32;
    case LeafKind::F32: return f32;
    case LeafKind::I64: return i64;
  }
  return i64;
}

bool ModuleEmitter::returns_indirect(TypeId type) {
  size_t ints = 0, floats = 0;
  for (flow::Leaf leaf : layouts.of(type).leaves) (leaf.kind == LeafKind::F32 ? floats : ints) += 1;
  return ints > kMaxIntResults || floats > kMaxFloatResults;
}

llvm::Type* ModuleEmitter::return_type(TypeId type) {
  const auto& leaves = layouts.of(type).leaves;
  if (leaves.empty() || returns_indirect(type)) return void_type;
  if (leaves.size() == 1) return leaf_type(leaves[0].kind);
  llvm::SmallVector<llvm::Type*, 4> types;
  for (flow::Leaf leaf : leaves) types.push_back(leaf_type(leaf.kind));
  return llvm::StructType::get(context, types);
}

llvm::FunctionType* ModuleEmitter::function_type(llvm::ArrayRef<llvm::Type*> leading, llvm::ArrayRef<TypeId> params, TypeId result) {
  llvm::SmallVector<llvm::Type*, 8> types{ptr};
  if (returns_indirect(result)) types.push_back(ptr);
  types.append(leading.begin(), leading.end());
  for (TypeId param : params)
    for (flow::Leaf leaf : layouts.of(param).leaves) types.push_back(leaf_type(leaf.kind));
  return llvm::FunctionType::get(return_type(result), types, false);
}

llvm::FunctionType* ModuleEmitter::code_type(TypeId fn) {
  const flow::Type& type = flow.types[fn];
  return function_type({i64}, {type.parts[0]}, type.parts[1]);
}

std::vector<uint64_t> ModuleEmitter::leaf_limits(TypeId id) {
  const flow::Type& type = flow.types[id];
  switch (type.kind) {
    case TypeKind::Enum: return {type.count};
    case TypeKind::Nat: return {BEND_NAT_MAX + 1};
    case TypeKind::Struct: {
      std::vector<uint64_t> out;
      for (TypeId part : type.parts)
        for (uint64_t limit : leaf_limits(part)) out.push_back(limit);
      return out;
    }
    case TypeKind::Sum: {
      std::vector<uint64_t> out(layouts.of(id).leaves.size(), 0);
      out[0] = type.variants.size();
      return out;
    }
    case TypeKind::U32:
    case TypeKind::F32:
    case TypeKind::Ref:
    case TypeKind::Array:
    case TypeKind::Fn:
    case TypeKind::Any:
    case TypeKind::Token:
      return {0};
  }
  return {0};
}

Leaves ModuleEmitter::split_result(Builder& b, llvm::Value* result, TypeId type) {
  const size_t count = layouts.of(type).leaves.size();
  Leaves out;
  if (count == 1) out.push_back(result);
  if (count > 1)
    for (size_t i = 0; i < count; ++i) out.push_back(b.CreateExtractValue(result, static_cast<unsigned>(i)));
  return out;
}

llvm::Value* ModuleEmitter::join_result(Builder& b, LeafSpan leaves, TypeId type) {
  if (leaves.size() == 1) return leaves[0];
  llvm::Value* out = llvm::PoisonValue::get(return_type(type));
  for (size_t i = 0; i < leaves.size(); ++i) out = b.CreateInsertValue(out, leaves[i], static_cast<unsigned>(i));
  return out;
}

llvm::Value* ModuleEmitter::cast_leaf(Builder& b, llvm::Value* value, LeafKind to) {
  llvm::Type* target = leaf_type(to);
  if (value->getType() == target) return value;
  if (value->getType()->isFloatTy()) value = b.CreateBitCast(value, i32);
  if (to == LeafKind::I64) return b.CreateZExt(value, i64);
  if (value->getType() == i64) value = b.CreateTrunc(value, i32);
  return to == LeafKind::F32 ? b.CreateBitCast(value, f32) : value;
}

}  // namespace bendc::codegen
