// Memory: tagged loads and stores, allocation and freeing of nodes, calls of the runtime. Fast paths are IR (a g++-built runtime cannot
// be inlined), slow paths are runtime calls.
//
// Alias regions (TBAA). All bytes of nodes share one region: a freed node's memory comes back with other fields at the same offsets, and
// finer regions would let LLVM move a new field's store above an old field's load. Array slots have a region per leaf kind: a block
// changes its element type only through runtime calls, which LLVM takes as touching everything.
#include <fmt/format.h>

#include <cstddef>

#include "codegen/llvm/emitter.h"
#include "codegen/llvm/sanitize.h"
#include "support/internal.h"

namespace bendc::codegen {

using flow::LeafKind;
using flow::TypeId;

namespace {

llvm::FunctionType* runtime_type(ModuleEmitter& m, char result, std::string_view args) {
  auto type = [&m](char letter) -> llvm::Type* {
    switch (letter) {
      case 'p': return m.ptr;
      case 'i': return m.i32;
      case 'l': return m.i64;
      case 'f': return m.f32;
      default: return m.void_type;
    }
  };
  llvm::SmallVector<llvm::Type*, 6> types;
  for (char letter : args) types.push_back(type(letter));
  return llvm::FunctionType::get(type(result), types, false);
}

struct RuntimeRow {
  const char* name;
  char result;
  const char* args;
};
constexpr RuntimeRow kRuntime[] = {
#define BENDC_RT(name, result, args) {#name, #result[0], args},
#include "runtime/abi.def"
#undef BENDC_RT
};

}  // namespace

llvm::CallInst* ModuleEmitter::call_runtime(Builder& b, Rt id, llvm::ArrayRef<llvm::Value*> args) {
  const size_t index = static_cast<size_t>(id);
  if (runtime_.size() <= index) runtime_.resize(std::size(kRuntime));
  llvm::Function*& function = runtime_[index];
  if (options.target == TargetKind::Device) internal_error("code generation", fmt::format("device code calls {}", kRuntime[index].name));
  if (!function) function = ir.getFunction(kRuntime[index].name);   // another emitter of the same module
  if (!function) {
    const RuntimeRow& row = kRuntime[index];
    function = llvm::Function::Create(runtime_type(*this, row.result, row.args), llvm::GlobalValue::ExternalLinkage, row.name, ir);
    function->setDoesNotThrow();
    const std::string_view args_text = row.args;
    if (id == Rt::bend_fail) {
      function->setDoesNotReturn();
      function->addFnAttr(llvm::Attribute::Cold);
    } else if (id == Rt::bend_alloc_slow || id == Rt::bend_alloc_large) {
      function->addRetAttr(llvm::Attribute::NoAlias);
      function->addRetAttr(llvm::Attribute::NonNull);
      if (id == Rt::bend_alloc_slow) function->addFnAttr(llvm::Attribute::Cold);
    } else if (row.result == 'f' && args_text.find_first_not_of('f') == std::string_view::npos) {
      // Pure functions of floats: LLVM may merge and move calls.
      function->setDoesNotAccessMemory();
      function->addFnAttr(llvm::Attribute::WillReturn);
    }
  }
  return b.CreateCall(function, args);
}

void ModuleEmitter::fail(Builder& b, llvm::Value* worker, uint32_t error, const std::string& site) {
  if (on_device()) return device_fail(b, worker, number(error), site_number(site));
  llvm::Value* where = site.empty() ? static_cast<llvm::Value*>(llvm::ConstantPointerNull::get(llvm::PointerType::get(context, 0))) : text(site);
  call_runtime(b, Rt::bend_fail, {worker, number(error), where});
  b.CreateUnreachable();
}

llvm::Value* ModuleEmitter::load(Builder& b, llvm::Type* type, llvm::Value* base, uint32_t offset, Region region, uint64_t limit) {
  llvm::Value* address = offset == 0 ? base : b.CreateConstInBoundsGEP1_64(i8, base, offset);
  llvm::LoadInst* value = b.CreateAlignedLoad(type, address, llvm::Align(type == i64 || type == ptr ? 8 : 4));
  if (llvm::MDNode* tag = regions_[static_cast<size_t>(region)]) value->setMetadata(llvm::LLVMContext::MD_tbaa, tag);
  if (limit != 0 && type->isIntegerTy()) {
    const unsigned bits = type->getIntegerBitWidth();
    value->setMetadata(llvm::LLVMContext::MD_range, llvm::MDBuilder(context).createRange(llvm::APInt(bits, 0), llvm::APInt(bits, limit)));
  }
  return value;
}

void ModuleEmitter::store(Builder& b, llvm::Value* value, llvm::Value* base, uint32_t offset, Region region) {
  llvm::Value* address = offset == 0 ? base : b.CreateConstInBoundsGEP1_64(i8, base, offset);
  const bool wide = value->getType() == i64 || value->getType() == ptr;
  llvm::StoreInst* inst = b.CreateAlignedStore(value, address, llvm::Align(wide ? 8 : 4));
  if (llvm::MDNode* tag = regions_[static_cast<size_t>(region)]) inst->setMetadata(llvm::LLVMContext::MD_tbaa, tag);
}

namespace {
ModuleEmitter::Region slot_region(LeafKind kind) {
  switch (kind) {
    case LeafKind::I32: return ModuleEmitter::Region::ArrayI32;
    case LeafKind::F32: return ModuleEmitter::Region::ArrayF32;
    case LeafKind::I64: return ModuleEmitter::Region::ArrayI64;
  }
  return ModuleEmitter::Region::ArrayI64;
}
}  // namespace

Leaves ModuleEmitter::load_value(Builder& b, TypeId type, llvm::Value* base, uint32_t offset, bool array_slot) {
  Leaves out;
  const std::vector<uint64_t> limits = leaf_limits(type);
  const auto& leaves = layouts.of(type).leaves;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const Region region = array_slot ? slot_region(leaves[i].kind) : Region::Node;
    out.push_back(load(b, leaf_type(leaves[i].kind), base, offset + leaves[i].offset, region, limits[i]));
  }
  return out;
}

void ModuleEmitter::store_value(Builder& b, TypeId type, LeafSpan leaves, llvm::Value* base, uint32_t offset, bool array_slot) {
  const auto& layout = layouts.of(type).leaves;
  for (size_t i = 0; i < layout.size(); ++i)
    store(b, leaves[i], base, offset + layout[i].offset, array_slot ? slot_region(layout[i].kind) : Region::Node);
}

Leaves ModuleEmitter::load_frame(Builder& b, TypeId type, llvm::Value* base) {
  Leaves out;
  for (flow::Leaf leaf : layouts.of(type).leaves) out.push_back(load(b, leaf_type(leaf.kind), base, leaf.offset, Region::Frame));
  return out;
}

void ModuleEmitter::store_frame(Builder& b, TypeId type, LeafSpan leaves, llvm::Value* base) {
  const auto& layout = layouts.of(type).leaves;
  for (size_t i = 0; i < layout.size(); ++i) store(b, leaves[i], base, layout[i].offset, Region::Frame);
}

llvm::Value* ModuleEmitter::alloc(Builder& b, llvm::Value* worker, uint32_t bytes) {
  if (on_device()) return device_alloc(b, worker, bytes);
  if (bytes > BEND_MAX_SMALL || kWatchAddresses) return call_runtime(b, Rt::bend_alloc_large, {worker, llvm::ConstantInt::get(i64, bytes)});
  llvm::Function* function = helper("bend.alloc." + std::to_string(bytes), llvm::FunctionType::get(ptr, {ptr}, false), [&](llvm::Function* fn, Builder& body) {
    fn->addFnAttr(llvm::Attribute::AlwaysInline);
    llvm::Value* self = fn->getArg(0);
    const uint32_t list = static_cast<uint32_t>(offsetof(BendWorker, free_lists)) + bytes / 8 * static_cast<uint32_t>(sizeof(void*));
    llvm::BasicBlock *pop = block(body, "pop"), *fresh = block(body, "fresh"), *bump = block(body, "bump"), *slow = block(body, "slow"), *done = block(body, "done");
    llvm::Value* head = load(body, ptr, self, list, Region::Worker);
    body.CreateCondBr(body.CreateIsNotNull(head), pop, fresh);
    body.SetInsertPoint(pop);
    store(body, load(body, ptr, head, 0, Region::Node), self, list, Region::Worker);
    body.CreateBr(done);
    body.SetInsertPoint(fresh);
    llvm::Value* start = load(body, ptr, self, offsetof(BendWorker, bump), Region::Worker);
    llvm::Value* limit = load(body, ptr, self, offsetof(BendWorker, limit), Region::Worker);
    llvm::Value* end = body.CreateConstGEP1_64(i8, start, bytes);
    body.CreateCondBr(body.CreateICmpUGT(end, limit), slow, bump, unlikely_);
    body.SetInsertPoint(bump);
    store(body, end, self, offsetof(BendWorker, bump), Region::Worker);
    body.CreateBr(done);
    body.SetInsertPoint(slow);
    llvm::Value* refill = call_runtime(body, Rt::bend_alloc_slow, {self, llvm::ConstantInt::get(i64, bytes)});
    body.CreateBr(done);
    body.SetInsertPoint(done);
    llvm::PHINode* result = body.CreatePHI(ptr, 3);
    result->addIncoming(head, pop);
    result->addIncoming(start, bump);
    result->addIncoming(refill, slow);
    body.CreateRet(result);
  });
  // Code that runs once is two thirds allocations' fast paths, which LLVM takes a millisecond each to compile.
  if (runs_once_) {
    llvm::Function* inner = function;
    function = helper("bend.alloc_once." + std::to_string(bytes), inner->getFunctionType(), [&](llvm::Function* fn, Builder& body) {
      fn->addFnAttr(llvm::Attribute::NoInline);
      fn->addRetAttr(llvm::Attribute::NoAlias);
      fn->addRetAttr(llvm::Attribute::NonNull);
      llvm::CallInst* call = body.CreateCall(inner, {fn->getArg(0)});
      call->setCallingConv(inner->getCallingConv());
      body.CreateRet(call);
    });
  }
  llvm::CallInst* call = b.CreateCall(function, {worker});
  call->setCallingConv(function->getCallingConv());
  return call;
}

void ModuleEmitter::free(Builder& b, llvm::Value* worker, llvm::Value* node, uint32_t bytes) {
  if (!flow.owned) return;
  if (on_device()) return device_free(b, worker, node, bytes);
  if (bytes > BEND_MAX_SMALL || kWatchAddresses) {
    call_runtime(b, Rt::bend_free_large, {worker, node, llvm::ConstantInt::get(i64, bytes)});
    return;
  }
  const uint32_t list = static_cast<uint32_t>(offsetof(BendWorker, free_lists)) + bytes / 8 * static_cast<uint32_t>(sizeof(void*));
  store(b, load(b, ptr, worker, list, Region::Worker), node, 0, Region::Node);
  store(b, node, worker, list, Region::Worker);
}

}  // namespace bendc::codegen
