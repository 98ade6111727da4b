// Array blocks on a device: what the host leaves to its runtime, as one function per element type. All loops run over slots in one thread.
#include "codegen/llvm/device.h"
#include "codegen/llvm/emitter.h"
#include "runtime/gpu/device_abi.h"

#include <cstddef>

namespace bendc::codegen {

using flow::TypeId;

namespace {
constexpr uint32_t kErrorMatch = 2, kErrorArray = 8;   // base.md 5.2
}  // namespace

llvm::Value* ModuleEmitter::device_block(Builder& b, llvm::Value* word) { return b.CreateIntToPtr(b.CreateAnd(word, BEND_ARRAY_ADDRESS), ptr); }

llvm::Value* ModuleEmitter::device_block_bytes(Builder& b, TypeId element, llvm::Value* log2) {
  llvm::Value* slots = b.CreateShl(llvm::ConstantInt::get(i64, layouts.of(element).size), log2);
  return b.CreateAnd(b.CreateAdd(slots, llvm::ConstantInt::get(i64, BEND_ARRAY_HEADER + 7)), ~uint64_t{7});
}

// Large blocks are never freed during a call and unboxed slots hold nothing to give up, so nobody reads such a block's count: whether a handle
// is of that kind shows in its top byte alone, and forks and joins of big arrays need no atomic. Null: the count of every block matters.
llvm::Value* ModuleEmitter::device_is_uncounted(Builder& b, TypeId element, llvm::Value* word) {
  const flow::TypeLayout& layout = layouts.of(element);
  if (layout.counted) return nullptr;
  if (layout.size == 0) return nullptr;   // every block is small
  uint64_t log2 = 0;
  while (BEND_ARRAY_HEADER + (uint64_t{layout.size} << log2) <= BEND_DEVICE_SMALL) ++log2;
  return b.CreateICmpUGE(word, llvm::ConstantInt::get(i64, log2 << BEND_ARRAY_SHIFT));
}

void ModuleEmitter::device_retain_array(Builder& b, TypeId element, llvm::Value* word, llvm::Value* amount) {
  llvm::BasicBlock* done = nullptr;
  if (llvm::Value* uncounted = device_is_uncounted(b, element, word)) {
    llvm::BasicBlock* counted = block(b, "small_array");
    done = block(b, "kept_array");
    b.CreateCondBr(uncounted, done, counted);
    b.SetInsertPoint(counted);
  }
  device_add(b, device_block(b, word), amount);
  if (!done) return;
  b.CreateBr(done);
  b.SetInsertPoint(done);
}

// To `done` when a new block is to hold zeros and is memory that does (zeros.h). Blocks above BEND_DEVICE_SMALL had no node of this call before them.
void ModuleEmitter::device_skip_zeros(Builder& b, llvm::Value* worker, llvm::Value* word, TypeId element, LeafSpan value, llvm::BasicBlock* done) {
  llvm::Value* large = device_is_uncounted(b, element, word);
  if (!large) return;
  for (llvm::Value* leaf : value) {
    llvm::Value* bits = leaf->getType()->isFloatTy() ? b.CreateBitCast(leaf, i32) : leaf;
    large = b.CreateAnd(large, b.CreateICmpEQ(bits, llvm::Constant::getNullValue(bits->getType())));
  }
  if (llvm::isa<llvm::Constant>(large) && llvm::cast<llvm::Constant>(large)->isNullValue()) return;
  llvm::BasicBlock *zeros = block(b, "zeros"), *fill = block(b, "fill_slots");
  b.CreateCondBr(large, zeros, fill);
  b.SetInsertPoint(zeros);
  llvm::Value* control = device_control(b, worker);
  llvm::Value* start = b.CreateAnd(word, BEND_ARRAY_ADDRESS);
  llvm::Value* end = b.CreateAdd(start, device_block_bytes(b, element, b.CreateLShr(word, BEND_ARRAY_SHIFT)));
  llvm::Value* above = b.CreateICmpUGE(start, load(b, i64, control, offsetof(BendDeviceControl, zero_from), Region::Frame));
  llvm::Value* below = b.CreateICmpULE(end, load(b, i64, control, offsetof(BendDeviceControl, zero_to), Region::Frame));
  b.CreateCondBr(b.CreateAnd(above, below), done, fill);
  b.SetInsertPoint(fill);
}

// visit(builder, index) for index in [0, count), count at least 1.
void ModuleEmitter::device_loop(Builder& b, llvm::Value* count, const std::function<void(Builder&, llvm::Value*)>& visit) {
  llvm::BasicBlock *entry = b.GetInsertBlock(), *loop = block(b, "slots"), *done = block(b, "slots_done");
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  llvm::PHINode* index = b.CreatePHI(i64, 2);
  index->addIncoming(llvm::ConstantInt::get(i64, 0), entry);
  visit(b, index);
  llvm::Value* next = b.CreateNUWAdd(index, llvm::ConstantInt::get(i64, 1));
  index->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpULT(next, count), loop, done);
  b.SetInsertPoint(done);
}

llvm::Value* ModuleEmitter::device_slot(Builder& b, TypeId element, llvm::Value* block_address, llvm::Value* index) {
  llvm::Value* slots = b.CreateConstInBoundsGEP1_64(i8, block_address, BEND_ARRAY_HEADER);
  return b.CreateInBoundsGEP(llvm::ArrayType::get(i8, layouts.of(element).size), slots, {index});
}

void ModuleEmitter::device_copy_slots(Builder& b, TypeId element, llvm::Value* from, llvm::Value* first, llvm::Value* to, llvm::Value* to_first, llvm::Value* count) {
  if (layouts.of(element).leaves.empty()) return;
  device_loop(b, count, [&](Builder& body, llvm::Value* index) {
    const Leaves value = load_value(body, element, device_slot(body, element, from, body.CreateAdd(first, index)), 0, true);
    store_value(body, element, value, device_slot(body, element, to, body.CreateAdd(to_first, index)), 0, true);
  });
}

void ModuleEmitter::device_retain_slots(Builder& b, llvm::Value* worker, TypeId element, llvm::Value* block_address, llvm::Value* count) {
  if (!layouts.of(element).counted) return;
  device_loop(b, count, [&](Builder& body, llvm::Value* index) {
    retain(body, worker, element, load_value(body, element, device_slot(body, element, block_address, index), 0, true), nullptr);
  });
}

// (worker, log2): an uninitialised block's word with one handle.
llvm::Function* ModuleEmitter::device_new_block(TypeId element) {
  return helper("bend.block.T" + std::to_string(element.index), llvm::FunctionType::get(i64, {ptr, i64}, false), [&](llvm::Function* fn, Builder& body) {
    llvm::Value* log2 = fn->getArg(1);
    llvm::CallInst* made = body.CreateCall(device_alloc_bytes(), {fn->getArg(0), device_block_bytes(body, element, log2)});
    made->setCallingConv(device_alloc_bytes()->getCallingConv());
    store(body, number(1), made, 0, Region::ArrayHeader);
    store(body, number(0), made, 4, Region::ArrayHeader);
    store(body, llvm::ConstantInt::get(i64, 0), made, 8, Region::ArrayHeader);
    body.CreateRet(body.CreateOr(body.CreatePtrToInt(made, i64), body.CreateShl(log2, BEND_ARRAY_SHIFT)));
  });
}

void ModuleEmitter::device_free_block(Builder& b, llvm::Value* worker, TypeId element, llvm::Value* word) {
  llvm::Value* bytes = device_block_bytes(b, element, b.CreateLShr(word, BEND_ARRAY_SHIFT));
  llvm::BasicBlock *small = block(b, "small"), *done = block(b, "freed");
  b.CreateCondBr(b.CreateICmpULE(bytes, llvm::ConstantInt::get(i64, BEND_DEVICE_SMALL)), small, done);
  b.SetInsertPoint(small);
  device_push(b, worker, device_block(b, word), bytes, 0);
  b.CreateBr(done);
  b.SetInsertPoint(done);
}

llvm::Value* ModuleEmitter::device_slots(Builder& b, llvm::Value* word) {
  return b.CreateShl(llvm::ConstantInt::get(i64, 1), b.CreateLShr(word, BEND_ARRAY_SHIFT));
}

void ModuleEmitter::device_release_array(Builder& b, llvm::Value* worker, TypeId element, llvm::Value* word) {
  llvm::Function* function = helper("bend.release.A" + std::to_string(element.index), llvm::FunctionType::get(void_type, {ptr, i64}, false), [&](llvm::Function* fn, Builder& body) {
    llvm::BasicBlock *last = block(body, "last"), *done = block(body, "done");
    llvm::Value* address = device_block(body, fn->getArg(1));
    device_count_down(body, address, last, done);
    body.SetInsertPoint(last);
    if (layouts.of(element).counted) {
      device_loop(body, device_slots(body, fn->getArg(1)), [&](Builder& inner, llvm::Value* index) {
        release(inner, fn->getArg(0), element, load_value(inner, element, device_slot(inner, element, address, index), 0, true));
      });
    }
    device_free_block(body, fn->getArg(0), element, fn->getArg(1));
    body.CreateBr(done);
    body.SetInsertPoint(done);
    body.CreateRetVoid();
  });
  llvm::BasicBlock* done = nullptr;
  if (llvm::Value* uncounted = device_is_uncounted(b, element, word)) {
    llvm::BasicBlock* counted = block(b, "small_array");
    done = block(b, "released_array");
    b.CreateCondBr(uncounted, done, counted);
    b.SetInsertPoint(counted);
  }
  b.CreateCall(function, {worker, word})->setCallingConv(function->getCallingConv());
  if (!done) return;
  b.CreateBr(done);
  b.SetInsertPoint(done);
}

llvm::Value* ModuleEmitter::device_array_alloc(Builder& b, llvm::Value* worker, llvm::Value* depth, TypeId element, const std::string& site) {
  llvm::BasicBlock *deep = block(b, "too_deep"), *fine = block(b, "fits");
  const uint64_t limit = BEND_MAX_ARRAY_CLASS - layouts.words_log2(element);
  b.CreateCondBr(b.CreateICmpUGT(depth, llvm::ConstantInt::get(i64, limit)), deep, fine, unlikely_);
  b.SetInsertPoint(deep);
  device_fail(b, worker, number(kErrorArray), site_number(site));
  b.SetInsertPoint(fine);
  llvm::CallInst* call = b.CreateCall(device_new_block(element), {worker, depth});
  call->setCallingConv(device_new_block(element)->getCallingConv());
  return call;
}

llvm::Value* ModuleEmitter::device_array_clone(Builder& b, llvm::Value* worker, llvm::Value* word, TypeId element) {
  llvm::Function* function = helper("bend.clone.A" + std::to_string(element.index), llvm::FunctionType::get(i64, {ptr, i64}, false), [&](llvm::Function* fn, Builder& body) {
    fn->addFnAttr(llvm::Attribute::NoInline);
    llvm::Value *source = fn->getArg(1), *zero = llvm::ConstantInt::get(i64, 0);
    llvm::CallInst* copy = body.CreateCall(device_new_block(element), {fn->getArg(0), body.CreateLShr(source, BEND_ARRAY_SHIFT)});
    copy->setCallingConv(device_new_block(element)->getCallingConv());
    llvm::Value* count = device_slots(body, source);
    device_copy_slots(body, element, device_block(body, source), zero, device_block(body, copy), zero, count);
    device_retain_slots(body, fn->getArg(0), element, device_block(body, copy), count);
    body.CreateRet(copy);
  });
  llvm::CallInst* call = b.CreateCall(function, {worker, word});
  call->setCallingConv(function->getCallingConv());
  return call;
}

// The slots of an owned handle have been copied out: the block goes, or, shared, the copied slots are references more.
void ModuleEmitter::device_array_consumed(Builder& b, llvm::Value* worker, llvm::Value* word, TypeId element) {
  llvm::Function* function = helper("bend.consumed.A" + std::to_string(element.index), llvm::FunctionType::get(void_type, {ptr, i64}, false), [&](llvm::Function* fn, Builder& body) {
    fn->addFnAttr(llvm::Attribute::NoInline);
    llvm::Value* source = fn->getArg(1);
    if (llvm::Value* uncounted = device_is_uncounted(body, element, source)) {
      llvm::BasicBlock *large = block(body, "large"), *counted = block(body, "counted");
      body.CreateCondBr(uncounted, large, counted);
      body.SetInsertPoint(large);
      body.CreateRetVoid();
      body.SetInsertPoint(counted);
    }
    llvm::Value* address = device_block(body, source);
    llvm::BasicBlock *unique = block(body, "unique"), *shared = block(body, "shared"), *done = block(body, "done");
    body.CreateCondBr(is_unique(body, address, false), unique, shared);
    body.SetInsertPoint(unique);
    device_free_block(body, fn->getArg(0), element, source);
    body.CreateBr(done);
    body.SetInsertPoint(shared);
    device_retain_slots(body, fn->getArg(0), element, address, device_slots(body, source));
    device_release_array(body, fn->getArg(0), element, source);
    body.CreateBr(done);
    body.SetInsertPoint(done);
    body.CreateRetVoid();
  });
  b.CreateCall(function, {worker, word})->setCallingConv(function->getCallingConv());
}

// Two copies of half the slots each.
Leaves ModuleEmitter::device_array_split(Builder& b, llvm::Value* worker, llvm::Value* word, TypeId element, const std::string& site) {
  llvm::BasicBlock *leaf = block(b, "one_slot"), *fine = block(b, "halves");
  llvm::Value* log2 = b.CreateLShr(word, BEND_ARRAY_SHIFT);
  b.CreateCondBr(b.CreateICmpEQ(log2, llvm::ConstantInt::get(i64, 0)), leaf, fine, unlikely_);
  b.SetInsertPoint(leaf);
  device_fail(b, worker, number(kErrorMatch), site_number(site));
  b.SetInsertPoint(fine);
  llvm::Function* function = helper("bend.half.A" + std::to_string(element.index), llvm::FunctionType::get(i64, {ptr, i64, i64}, false), [&](llvm::Function* fn, Builder& body) {
    fn->addFnAttr(llvm::Attribute::NoInline);
    llvm::Value* half = body.CreateSub(body.CreateLShr(fn->getArg(1), BEND_ARRAY_SHIFT), llvm::ConstantInt::get(i64, 1));
    llvm::CallInst* copy = body.CreateCall(device_new_block(element), {fn->getArg(0), half});
    copy->setCallingConv(device_new_block(element)->getCallingConv());
    llvm::Value* count = body.CreateShl(llvm::ConstantInt::get(i64, 1), half);
    device_copy_slots(body, element, device_block(body, fn->getArg(1)), body.CreateMul(fn->getArg(2), count), device_block(body, copy), llvm::ConstantInt::get(i64, 0), count);
    body.CreateRet(copy);
  });
  Leaves halves;
  for (uint64_t i = 0; i < 2; ++i) {
    llvm::CallInst* call = b.CreateCall(function, {worker, word, llvm::ConstantInt::get(i64, i)});
    call->setCallingConv(function->getCallingConv());
    halves.push_back(call);
  }
  device_array_consumed(b, worker, word, element);
  return halves;
}

llvm::Value* ModuleEmitter::device_array_node(Builder& b, llvm::Value* worker, llvm::Value* low, llvm::Value* high, TypeId element, const std::string& site) {
  llvm::BasicBlock *bad = block(b, "unequal"), *fine = block(b, "equal");
  llvm::Value* log2 = b.CreateLShr(low, BEND_ARRAY_SHIFT);
  llvm::Value* unequal = b.CreateICmpNE(log2, b.CreateLShr(high, BEND_ARRAY_SHIFT));
  const uint64_t limit = BEND_MAX_ARRAY_CLASS - layouts.words_log2(element);
  b.CreateCondBr(b.CreateOr(unequal, b.CreateICmpUGE(log2, llvm::ConstantInt::get(i64, limit))), bad, fine, unlikely_);
  b.SetInsertPoint(bad);
  device_fail(b, worker, number(kErrorMatch), site_number(site));
  b.SetInsertPoint(fine);
  llvm::Function* function = helper("bend.node.A" + std::to_string(element.index), llvm::FunctionType::get(i64, {ptr, i64, i64}, false), [&](llvm::Function* fn, Builder& body) {
    fn->addFnAttr(llvm::Attribute::NoInline);
    llvm::Value* worker_arg = fn->getArg(0);
    llvm::Value* size = body.CreateLShr(fn->getArg(1), BEND_ARRAY_SHIFT);
    llvm::CallInst* whole = body.CreateCall(device_new_block(element), {worker_arg, body.CreateAdd(size, llvm::ConstantInt::get(i64, 1))});
    whole->setCallingConv(device_new_block(element)->getCallingConv());
    llvm::Value *count = body.CreateShl(llvm::ConstantInt::get(i64, 1), size), *zero = llvm::ConstantInt::get(i64, 0);
    for (unsigned half = 0; half < 2; ++half) {
      device_copy_slots(body, element, device_block(body, fn->getArg(1 + half)), zero, device_block(body, whole), half == 0 ? zero : count, count);
      device_array_consumed(body, worker_arg, fn->getArg(1 + half), element);
    }
    body.CreateRet(whole);
  });
  llvm::CallInst* call = b.CreateCall(function, {worker, low, high});
  call->setCallingConv(function->getCallingConv());
  return call;
}

}  // namespace bendc::codegen
