// The heap of a device thread, and how its code fails. Same words and counts as the host's; what differs is where memory comes from.
//
// Allocation: a per-thread free list by size, else the thread's chunk (bump, limit), else a new chunk by one atomic on the heap's cursor.
// Dropping is lazy, so that it needs no stack: a dead node whose fields are counted goes to the free list with the number of its kind in
// bits 48..63 of the list's link; its fields are given up when its memory is taken again.
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <cstddef>

#include "codegen/llvm/device.h"
#include "codegen/llvm/emitter.h"
#include "runtime/gpu/device_abi.h"
#include "support/internal.h"

namespace bendc::codegen {

using flow::CtorRepr;
using flow::DataId;
using flow::TypeId;

namespace {
constexpr uint32_t kErrorMemory = 3;   // base.md 5.2
constexpr uint32_t kKindShift = 48;
constexpr uint64_t kAddressMask = (uint64_t{1} << kKindShift) - 1;
}  // namespace

llvm::SyncScope::ID ModuleEmitter::device_scope() {
  if (options.target == TargetKind::Device) return context.getOrInsertSyncScopeID("device");
  return llvm::SyncScope::System;
}

llvm::Value* ModuleEmitter::device_add(Builder& b, llvm::Value* address, llvm::Value* amount) {
  const llvm::Align align(amount->getType()->getIntegerBitWidth() / 8);
  return b.CreateAtomicRMW(llvm::AtomicRMWInst::Add, address, amount, align, llvm::AtomicOrdering::Monotonic, device_scope());
}

// NVPTX drops the ordering of an atomicrmw, so what must be ordered has a fence beside it.
void ModuleEmitter::device_fence(Builder& b) { b.CreateFence(llvm::AtomicOrdering::AcquireRelease, device_scope()); }

// Not `atom.add.f32`: it flushes subnormals.
llvm::Value* ModuleEmitter::device_add_f32(Builder& b, llvm::Value* address, llvm::Value* amount) {
  llvm::BasicBlock *entry = b.GetInsertBlock(), *loop = block(b, "fadd"), *done = block(b, "fadd_done");
  llvm::Value* first = b.CreateAlignedLoad(i32, address, llvm::Align(4));
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  llvm::PHINode* seen = b.CreatePHI(i32, 2);
  seen->addIncoming(first, entry);
  llvm::Value* sum = b.CreateBitCast(b.CreateFAdd(b.CreateBitCast(seen, f32), amount), i32);
  constexpr auto kRelaxed = llvm::AtomicOrdering::Monotonic;
  llvm::Value* pair = b.CreateAtomicCmpXchg(address, seen, sum, llvm::Align(4), kRelaxed, kRelaxed, device_scope());
  seen->addIncoming(b.CreateExtractValue(pair, 0), loop);
  b.CreateCondBr(b.CreateExtractValue(pair, 1), done, loop);
  b.SetInsertPoint(done);
  return b.CreateBitCast(seen, f32);
}

llvm::Value* ModuleEmitter::device_control(Builder& b, llvm::Value* worker) {
  return b.CreateIntToPtr(load(b, i64, worker, kDeviceWorkerControl, Region::Frame), ptr);
}

// Posts number and site, unless another error came first, and ends the thread.
void ModuleEmitter::device_fail(Builder& b, llvm::Value* worker, llvm::Value* error, llvm::Value* site) {
  llvm::Function* post = helper("bend.post", llvm::FunctionType::get(void_type, {ptr, i32, i32}, false), [&](llvm::Function* fn, Builder& body) {
    fn->addFnAttr(llvm::Attribute::NoInline);
    fn->addFnAttr(llvm::Attribute::NoReturn);
    fn->addFnAttr(llvm::Attribute::Cold);
    llvm::Value* control = device_control(body, fn->getArg(0));
    llvm::Value* word = body.CreateOr(body.CreateZExt(fn->getArg(1), i64), body.CreateShl(body.CreateZExt(fn->getArg(2), i64), 32));
    llvm::Value* place = body.CreateConstGEP1_64(i8, control, offsetof(BendDeviceControl, error));
    constexpr auto kRelaxed = llvm::AtomicOrdering::Monotonic;
    body.CreateAtomicCmpXchg(place, llvm::ConstantInt::get(i64, 0), word, llvm::Align(8), kRelaxed, kRelaxed, device_scope());
    if (options.target == TargetKind::Device) body.CreateIntrinsic(void_type, llvm::Intrinsic::nvvm_exit, {});
    else call_runtime(body, Rt::bend_emulated_exit, {control});
    body.CreateUnreachable();
  });
  b.CreateCall(post, {worker, error, site})->setCallingConv(post->getCallingConv());
  b.CreateUnreachable();
}

llvm::Value* ModuleEmitter::site_number(const std::string& site) {
  if (site.empty()) return number(BEND_NO_SITE);
  std::vector<std::string>& sites = options.gpu->sites;
  size_t index = 0;
  while (index < sites.size() && sites[index] != site) ++index;
  if (index == sites.size()) sites.push_back(site);
  return number(index);
}

// `bytes` of fresh memory when the thread's chunk has no room. Large blocks come straight from the heap and leave the chunk alone.
llvm::Function* ModuleEmitter::device_refill() {
  return helper("bend.refill", llvm::FunctionType::get(ptr, {ptr, i64}, false), [&](llvm::Function* fn, Builder& body) {
    fn->addFnAttr(llvm::Attribute::NoInline);
    llvm::Value *worker = fn->getArg(0), *bytes = fn->getArg(1);
    llvm::Value* control = device_control(body, worker);
    llvm::Value* chunk = body.CreateZExt(load(body, i32, control, offsetof(BendDeviceControl, chunk_bytes), Region::Frame), i64);
    llvm::Value* large = body.CreateICmpUGT(bytes, body.CreateLShr(chunk, 2));
    llvm::Value* rounded = body.CreateAnd(body.CreateAdd(bytes, llvm::ConstantInt::get(i64, 15)), ~uint64_t{15});
    llvm::Value* taken = body.CreateSelect(large, rounded, chunk);
    llvm::Value* start = device_add(body, body.CreateConstGEP1_64(i8, control, offsetof(BendDeviceControl, heap_cursor)), taken);
    llvm::Value* end = body.CreateAdd(start, taken);
    llvm::BasicBlock *full = block(body, "full"), *fits = block(body, "fits"), *keep = block(body, "keep"), *done = block(body, "done");
    body.CreateCondBr(body.CreateICmpUGT(end, load(body, i64, control, offsetof(BendDeviceControl, heap_limit), Region::Frame)), full, fits, unlikely_);
    body.SetInsertPoint(full);
    device_fail(body, worker, number(kErrorMemory), number(BEND_NO_SITE));
    body.SetInsertPoint(fits);
    body.CreateCondBr(large, done, keep);
    body.SetInsertPoint(keep);
    store(body, body.CreateAdd(start, bytes), worker, kDeviceWorkerBump, Region::Frame);
    store(body, end, worker, kDeviceWorkerLimit, Region::Frame);
    body.CreateBr(done);
    body.SetInsertPoint(done);
    body.CreateRet(body.CreateIntToPtr(start, ptr));
  });
}

// The place of the free list for nodes of `bytes` (a constant or not).
llvm::Value* ModuleEmitter::device_list(Builder& b, llvm::Value* worker, llvm::Value* bytes) {
  llvm::Value* thread = b.CreateIntToPtr(load(b, i64, worker, kDeviceWorkerThread, Region::Frame), ptr);
  const uint32_t shift = device_record_shift();
  llvm::Value* lists = b.CreateConstInBoundsGEP1_64(i8, thread, offsetof(BendDeviceThread, free_lists) << shift);
  return b.CreateInBoundsGEP(i8, lists, {b.CreateShl(bytes, shift)});   // class c = bytes / 8, a word each
}

void ModuleEmitter::build_device_alloc(llvm::Function* fn, Builder& body, llvm::Value* bytes, bool small_only) {
  llvm::Value* worker = fn->getArg(0);
  llvm::BasicBlock *look = block(body, "look"), *pop = block(body, "pop"), *lazy = block(body, "lazy"), *reused = block(body, "reused"), *fresh = block(body, "fresh"), *bump = block(body, "bump"),
                   *slow = block(body, "slow");
  if (small_only) body.CreateBr(look);
  else body.CreateCondBr(body.CreateICmpULE(bytes, llvm::ConstantInt::get(i64, BEND_DEVICE_SMALL)), look, fresh);
  body.SetInsertPoint(look);
  llvm::Value* list = device_list(body, worker, bytes);
  llvm::Value* head = load(body, i64, list, 0, Region::Frame);
  body.CreateCondBr(body.CreateICmpNE(head, llvm::ConstantInt::get(i64, 0)), pop, fresh);
  body.SetInsertPoint(pop);
  llvm::Value* node = body.CreateIntToPtr(body.CreateAnd(head, kAddressMask), ptr);
  store(body, load(body, i64, node, 0, Region::Node), list, 0, Region::Frame);
  llvm::Value* kind = body.CreateTrunc(body.CreateLShr(head, kKindShift), i32);
  body.CreateCondBr(body.CreateICmpNE(kind, number(0)), lazy, reused, unlikely_);
  body.SetInsertPoint(lazy);
  llvm::CallInst* drop = body.CreateCall(device_drop_fields(), {worker, kind, node});
  drop->setCallingConv(device_drop_fields()->getCallingConv());
  body.CreateBr(reused);
  body.SetInsertPoint(reused);
  body.CreateRet(node);

  body.SetInsertPoint(fresh);
  llvm::Value* start = load(body, i64, worker, kDeviceWorkerBump, Region::Frame);
  llvm::Value* limit = load(body, i64, worker, kDeviceWorkerLimit, Region::Frame);
  llvm::Value* end = body.CreateAdd(start, bytes);
  body.CreateCondBr(body.CreateICmpUGT(end, limit), slow, bump, unlikely_);
  body.SetInsertPoint(bump);
  store(body, end, worker, kDeviceWorkerBump, Region::Frame);
  body.CreateRet(body.CreateIntToPtr(start, ptr));
  body.SetInsertPoint(slow);
  llvm::CallInst* refill = body.CreateCall(device_refill(), {worker, bytes});
  refill->setCallingConv(device_refill()->getCallingConv());
  body.CreateRet(refill);
}

llvm::Value* ModuleEmitter::device_alloc(Builder& b, llvm::Value* worker, uint32_t bytes) {
  llvm::Function* function = bytes > BEND_DEVICE_SMALL
      ? device_alloc_bytes()
      : helper("bend.alloc." + std::to_string(bytes), llvm::FunctionType::get(ptr, {ptr}, false),
               [&](llvm::Function* fn, Builder& body) { build_device_alloc(fn, body, llvm::ConstantInt::get(i64, bytes), true); });
  llvm::CallInst* call = bytes > BEND_DEVICE_SMALL ? b.CreateCall(function, {worker, llvm::ConstantInt::get(i64, bytes)}) : b.CreateCall(function, {worker});
  call->setCallingConv(function->getCallingConv());
  return call;
}

// (worker, bytes: a multiple of 8)
llvm::Function* ModuleEmitter::device_alloc_bytes() {
  return helper("bend.alloc", llvm::FunctionType::get(ptr, {ptr, i64}, false), [&](llvm::Function* fn, Builder& body) {
    fn->addFnAttr(llvm::Attribute::NoInline);
    build_device_alloc(fn, body, fn->getArg(1), false);
  });
}

void ModuleEmitter::device_push(Builder& b, llvm::Value* worker, llvm::Value* node, llvm::Value* bytes, uint32_t kind) {
  llvm::Value* list = device_list(b, worker, bytes);
  store(b, load(b, i64, list, 0, Region::Frame), node, 0, Region::Node);
  llvm::Value* word = b.CreatePtrToInt(node, i64);
  if (kind != 0) word = b.CreateOr(word, uint64_t{kind} << kKindShift);
  store(b, word, list, 0, Region::Frame);
}

void ModuleEmitter::device_free(Builder& b, llvm::Value* worker, llvm::Value* node, uint32_t bytes) {
  // Larger nodes are left: they go with the heap at the end of the call.
  if (bytes <= BEND_DEVICE_SMALL) device_push(b, worker, node, llvm::ConstantInt::get(i64, bytes), 0);
}

// ---- counts ----

void ModuleEmitter::device_retain(Builder& b, llvm::Value* node, llvm::Value* amount) {
  llvm::BasicBlock *counted = block(b, "counted"), *done = block(b, "kept");
  b.CreateCondBr(b.CreateICmpSGE(load(b, i32, node, 0, Region::Node), number(0)), counted, done);
  b.SetInsertPoint(counted);
  device_add(b, node, amount);
  b.CreateBr(done);
  b.SetInsertPoint(done);
}

// Branches to `last` when the reference given up was the last one, else to `done`.
void ModuleEmitter::device_count_down(Builder& b, llvm::Value* header, llvm::BasicBlock* last, llvm::BasicBlock* done) {
  llvm::BasicBlock *shared = block(b, "shared"), *counted = block(b, "counted"), *raced = block(b, "raced");
  llvm::Value* count = load(b, i32, header, 0, Region::Node);
  b.CreateCondBr(b.CreateICmpEQ(count, number(1)), last, shared);
  b.SetInsertPoint(shared);
  b.CreateCondBr(b.CreateICmpSGE(count, number(0)), counted, done);
  b.SetInsertPoint(counted);
  device_fence(b);
  llvm::Value* before = device_add(b, header, llvm::ConstantInt::getSigned(i32, -1));
  b.CreateCondBr(b.CreateICmpEQ(before, number(1)), raced, done, unlikely_);
  b.SetInsertPoint(raced);
  device_fence(b);
  b.CreateBr(last);
}

// The number of a node constructor with counted fields, from 1; 0 for plain ones and for nodes whose memory is never reused.
uint32_t ModuleEmitter::device_kind(DataId data, uint32_t ctor) {
  const flow::FieldsLayout& node = layouts.node(data, ctor);
  if (!node.counted || node.bytes > BEND_DEVICE_SMALL) return 0;
  auto [it, fresh] = device_kinds_.try_emplace({data.index, ctor}, static_cast<uint32_t>(device_kind_list_.size() + 1));
  if (fresh) device_kind_list_.push_back({data, ctor});
  if (it->second > 0xFFFF) internal_error("code generation", "more than 65535 kinds of nodes on the device");
  return it->second;
}

llvm::Function* ModuleEmitter::device_release_ref(TypeId id) {
  const DataId data = flow.types[id].data;
  return helper("bend.release.D" + std::to_string(data.index), llvm::FunctionType::get(void_type, {ptr, i64}, false), [&](llvm::Function* fn, Builder& body) {
    llvm::Value *worker = fn->getArg(0), *word = fn->getArg(1);
    llvm::BasicBlock *done = block(body, "done"), *last = block(body, "last");
    if (llvm::Value* is_node = ref_is_node(body, word, data)) {
      llvm::BasicBlock* node = block(body, "node");
      body.CreateCondBr(is_node, node, done);
      body.SetInsertPoint(node);
    }
    llvm::Value* address = ref_address(body, word, data);
    if (flow.datas[data].shareable) device_count_down(body, address, last, done);
    else body.CreateBr(last);
    body.SetInsertPoint(last);
    llvm::SwitchInst* cases = body.CreateSwitch(ref_ctor(body, word, data), done);
    for (uint32_t c = 0; c < flow.datas[data].ctors.size(); ++c) {
      if (flow.datas[data].ctors[c].repr != CtorRepr::Node) continue;
      const flow::FieldsLayout& node = layouts.node(data, c);
      if (node.bytes > BEND_DEVICE_SMALL) continue;
      llvm::BasicBlock* arm = block(body, "ctor");
      cases->addCase(llvm::cast<llvm::ConstantInt>(number(c)), arm);
      body.SetInsertPoint(arm);
      device_push(body, worker, address, llvm::ConstantInt::get(i64, node.bytes), device_kind(data, c));
      body.CreateBr(done);
    }
    body.SetInsertPoint(done);
    body.CreateRetVoid();
  });
}

// (worker, kind, node): gives up the fields of a dead node. Its body is made last, when all kinds are known.
llvm::Function* ModuleEmitter::device_drop_fields() {
  if (!device_drop_fields_) {
    device_drop_fields_ = llvm::Function::Create(llvm::FunctionType::get(void_type, {ptr, i32, ptr}, false), llvm::GlobalValue::InternalLinkage, "bend.drop_fields", ir);
    mark_function(device_drop_fields_);
    device_drop_fields_->addFnAttr(llvm::Attribute::NoInline);
  }
  return device_drop_fields_;
}

void ModuleEmitter::finish_device_heap() {
  llvm::Function* fn = device_drop_fields();
  Builder b(llvm::BasicBlock::Create(context, "entry", fn));
  llvm::BasicBlock* done = block(b, "done");
  llvm::SwitchInst* cases = b.CreateSwitch(fn->getArg(1), done);
  // Releases may bring further kinds.
  for (size_t i = 0; i < device_kind_list_.size(); ++i) {
    const auto [data, ctor] = device_kind_list_[i];
    llvm::BasicBlock* arm = block(b, "kind");
    cases->addCase(llvm::cast<llvm::ConstantInt>(number(i + 1)), arm);
    b.SetInsertPoint(arm);
    const std::vector<TypeId> fields = flow.datas[data].ctors[ctor].fields;
    for (uint32_t f = 0; f < fields.size(); ++f) {
      if (!layouts.of(fields[f]).counted) continue;
      const Leaves leaves = load_value(b, fields[f], fn->getArg(2), layouts.node(data, ctor).offsets[f], false);
      release(b, fn->getArg(0), fields[f], leaves);
    }
    b.CreateBr(done);
  }
  b.SetInsertPoint(done);
  b.CreateRetVoid();
}

// A String from its code points: SNil is word 0, SCon a node { count, char, tail } with tag 1 in its word.
llvm::Value* ModuleEmitter::device_string(Builder& b, llvm::Value* worker, uint32_t index) {
  const std::u32string& chars = flow.strings[index];
  if (chars.empty()) return llvm::ConstantInt::get(i64, 0);
  llvm::Function* function = helper("bend.string." + std::to_string(index), llvm::FunctionType::get(i64, {ptr}, false), [&](llvm::Function* fn, Builder& body) {
    fn->addFnAttr(llvm::Attribute::NoInline);
    const std::vector<uint32_t> codes(chars.begin(), chars.end());
    llvm::Constant* data = llvm::ConstantDataArray::get(context, codes);
    const unsigned space = options.target == TargetKind::Device ? 1 : 0;
    auto* text = new llvm::GlobalVariable(ir, data->getType(), true, llvm::GlobalValue::InternalLinkage, data, "bend.codes", nullptr, llvm::GlobalValue::NotThreadLocal, space);
    text->setAlignment(llvm::Align(4));
    llvm::BasicBlock *entry = body.GetInsertBlock(), *loop = block(body, "loop"), *done = block(body, "done");
    body.CreateBr(loop);
    body.SetInsertPoint(loop);
    llvm::PHINode *left = body.CreatePHI(i64, 2), *tail = body.CreatePHI(i64, 2);
    left->addIncoming(llvm::ConstantInt::get(i64, codes.size()), entry);
    tail->addIncoming(llvm::ConstantInt::get(i64, 0), entry);
    llvm::Value* at = body.CreateSub(left, llvm::ConstantInt::get(i64, 1));
    llvm::Value* node = device_alloc(body, fn->getArg(0), 16);
    store(body, number(1), node, 0, Region::Node);
    store(body, body.CreateAlignedLoad(i32, body.CreateInBoundsGEP(i32, text, {at}), llvm::Align(4)), node, 4, Region::Node);
    store(body, tail, node, 8, Region::Node);
    llvm::Value* word = body.CreateOr(body.CreatePtrToInt(node, i64), 1);
    left->addIncoming(at, body.GetInsertBlock());
    tail->addIncoming(word, body.GetInsertBlock());
    body.CreateCondBr(body.CreateICmpNE(at, llvm::ConstantInt::get(i64, 0)), loop, done);
    body.SetInsertPoint(done);
    body.CreateRet(word);
  });
  llvm::CallInst* call = b.CreateCall(function, {worker});
  call->setCallingConv(function->getCallingConv());
  return call;
}

}  // namespace bendc::codegen
