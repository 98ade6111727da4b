// Kept stacks: a small stack whose task waits for a perfect tree goes into the join record that takes the tree's value, as it stands, and comes back as a
// whole. Frame by frame through the heap each is memory that is asked for, a chain of loads when it comes back, and turns of the machine; that was a third of what the one
// thread of a round did between two grids. Not for stacks with children that have not begun: those become tasks (emit_deal.cpp).
// The record that a stack has come back from is kept as well: the stack that leaves next is about as large, and a free list is two loads that wait for each other.
//
//   record: parent, remaining, segment | value | stack, bottom header first; how many words it has stands in `remaining` where joins have levels
#include <algorithm>
#include <cstddef>

#include "codegen/gpu/machine_plan.h"
#include "codegen/llvm/device.h"
#include "codegen/llvm/emitter.h"
#include "runtime/gpu/device_abi.h"

namespace bendc::codegen {

using flow::TypeId;

namespace {
constexpr uint32_t kAtOnce = 8;   // words under way together
}  // namespace

// The first words of `most`, and where `all` the others as well. Loads first, then stores: a thread waits for the first word once, not for each. Which words there are to
// copy does not depend on how many the stack has, which is in memory, too: those beyond its top are there, and mean nothing.
void ModuleEmitter::copy_at_once(Builder& b, llvm::Value* to, Place to_place, llvm::Value* from, Place from_place, llvm::Value* all, uint32_t most) {
  auto copy = [&](uint32_t first, uint32_t end) {
    auto at = [&](llvm::Value* base, uint32_t index, Place place) { return b.CreateConstInBoundsGEP1_64(i8, base, place_of(index * kStackWord, place)); };
    Leaves loaded;
    for (uint32_t i = first; i < end; ++i) loaded.push_back(load(b, i64, at(from, i, from_place), 0, Region::Frame));
    for (uint32_t i = first; i < end; ++i) store(b, loaded[i - first], at(to, i, to_place), 0, Region::Frame);
  };
  copy(0, std::min(most, kAtOnce));
  if (most <= kAtOnce) return;
  llvm::BasicBlock *more = block(b, "more"), *done = block(b, "copied");
  b.CreateCondBr(all, more, done);
  b.SetInsertPoint(more);
  copy(kAtOnce, most);
  b.CreateBr(done);
  b.SetInsertPoint(done);
}

// Most words of a stack that are kept with a value of the type: records of that size are used again.
uint32_t ModuleEmitter::most_kept_words(TypeId type) {
  const uint32_t head = relay_bytes(type);
  const uint32_t most = head < BEND_DEVICE_SMALL ? (BEND_DEVICE_SMALL - head) / kStackWord : 0;
  return std::min(most, stack_bytes() / kStackWord);
}

// Bytes of the record of a stack of so many words.
llvm::Value* ModuleEmitter::kept_bytes(Builder& b, TypeId type, llvm::Value* words) {
  const uint32_t head = relay_bytes(type), most = most_kept_words(type);
  return b.CreateSelect(b.CreateICmpULE(words, number(kAtOnce)), llvm::ConstantInt::get(i64, head + std::min(most, kAtOnce) * kStackWord), llvm::ConstantInt::get(i64, head + most * kStackWord));
}

// Threads that are launched live for one task.
bool ModuleEmitter::has_spare() const { return !options.launches && !options.gpu->plan->trees.empty(); }

llvm::Value* ModuleEmitter::alloc_kept(Builder& b, llvm::Value* worker, llvm::Value* bytes) {
  llvm::BasicBlock *take = block(b, "spare"), *ask = block(b, "no_spare"), *done = block(b, "record");
  llvm::Value* spare = nullptr;
  if (has_spare()) {
    spare = load(b, i64, worker, kDeviceWorkerSpare, Region::Frame);
    llvm::Value* same = b.CreateICmpEQ(load(b, i64, worker, kDeviceWorkerSpareBytes, Region::Frame), bytes);
    b.CreateCondBr(b.CreateAnd(b.CreateICmpNE(spare, llvm::ConstantInt::get(i64, 0)), same), take, ask);
    b.SetInsertPoint(take);
    spare = b.CreateIntToPtr(spare, ptr);
    store(b, llvm::ConstantInt::get(i64, 0), worker, kDeviceWorkerSpare, Region::Frame);
    b.CreateBr(done);
  } else {
    b.CreateBr(ask);
  }
  b.SetInsertPoint(ask);
  llvm::Function* allocate = device_alloc_bytes();
  llvm::CallInst* made = b.CreateCall(allocate, {worker, bytes});
  made->setCallingConv(allocate->getCallingConv());
  b.CreateBr(done);
  b.SetInsertPoint(done);
  llvm::PHINode* out = b.CreatePHI(ptr, 2);
  if (spare) out->addIncoming(spare, take);
  else take->eraseFromParent();
  out->addIncoming(made, ask);
  return out;
}

// The spare record, if there is one, to the list of its size.
void ModuleEmitter::give_up_spare(Builder& b, llvm::Value* worker) {
  if (!has_spare()) return;
  llvm::BasicBlock *some = block(b, "give_up"), *done = block(b, "no_spare");
  llvm::Value* spare = load(b, i64, worker, kDeviceWorkerSpare, Region::Frame);
  b.CreateCondBr(b.CreateICmpNE(spare, llvm::ConstantInt::get(i64, 0)), some, done, unlikely_);
  b.SetInsertPoint(some);
  device_push(b, worker, b.CreateIntToPtr(spare, ptr), load(b, i64, worker, kDeviceWorkerSpareBytes, Region::Frame), 0);
  b.CreateBr(done);
  b.SetInsertPoint(done);
}

// (worker, stack, top, parent) -> the parent word of what the stack's task waits for; 0: the stack is not kept.
llvm::Function* ModuleEmitter::keep_stack_function(TypeId type) {
  return helper("bend.keep." + std::to_string(type.index), llvm::FunctionType::get(i64, {ptr, ptr, i32, i64}, false), [&](llvm::Function* fn, Builder& b) {
    fn->addFnAttr(llvm::Attribute::NoInline);
    llvm::Value *worker = fn->getArg(0), *stack = fn->getArg(1), *top = fn->getArg(2), *parent = fn->getArg(3);
    const uint32_t head = relay_bytes(type), most = most_kept_words(type);
    llvm::BasicBlock *small = block(b, "small"), *other = block(b, "other");
    b.CreateCondBr(b.CreateICmpULE(top, number(most * kStackWord)), small, other);
    b.SetInsertPoint(other);
    b.CreateRet(llvm::ConstantInt::get(i64, 0));
    b.SetInsertPoint(small);
    each_frame(b, stack, top, [&](llvm::Value* header, llvm::Value*) {
      llvm::BasicBlock* next = block(b, "next");
      switch_waiting(b, header, next, [&](const Cut&, uint32_t) { b.CreateBr(other); });
      b.SetInsertPoint(next);
    });
    llvm::Value* words = b.CreateLShr(top, 3);
    llvm::Value* join = alloc_kept(b, worker, kept_bytes(b, type, words));
    store(b, parent, join, offsetof(BendJoin, parent), Region::Frame);
    store(b, join_count(b, 1, words), join, offsetof(BendJoin, remaining), Region::Frame);
    store(b, number(options.gpu->plan->kept.at(type.index)), join, offsetof(BendJoin, segment), Region::Frame);
    copy_at_once(b, b.CreateConstInBoundsGEP1_64(i8, join, head), Place::Memory, stack, Place::Stack, b.CreateICmpUGT(words, number(kAtOnce)), most);
    b.CreateRet(b.CreateOr(b.CreatePtrToInt(join, i64), uint64_t{1 | BEND_PARENT_ALONE} | uint64_t{BEND_JOIN_HEADER} << BEND_PARENT_SLOT));
  });
}

// The parent word of a perfect tree: a join record or the root. What waits for it on the stack is kept, or leaves the thread as at any fork.
llvm::Value* ModuleEmitter::keep_stack(Builder& b, llvm::Value* worker, llvm::Value* state, TypeId type) {
  llvm::BasicBlock *some = block(b, "stack"), *other = block(b, "other"), *done = block(b, "kept");
  b.CreateCondBr(b.CreateICmpUGT(get_state(b, state, kStateTop), number(kStackWord)), some, other);
  b.SetInsertPoint(some);
  llvm::Value* kept = move_stack(b, keep_stack_function(type), worker, state);
  b.CreateCondBr(b.CreateICmpNE(kept, llvm::ConstantInt::get(i64, 0)), done, other);
  llvm::BasicBlock* kept_from = b.GetInsertBlock();
  b.SetInsertPoint(other);
  llvm::Value* moved = relayed(b, worker, deal_stack(b, worker, state), type);
  llvm::BasicBlock* moved_from = b.GetInsertBlock();
  b.CreateBr(done);
  b.SetInsertPoint(done);
  llvm::PHINode* out = b.CreatePHI(i64, 2);
  out->addIncoming(kept, kept_from);
  out->addIncoming(moved, moved_from);
  return out;
}

// The tree's value has come: its task goes on where it was.
void ModuleEmitter::emit_kept(Builder& b, llvm::Value* worker, llvm::Value* state, TypeId type, llvm::Value* join) {
  const uint32_t head = relay_bytes(type);
  Leaves value;
  for (flow::Leaf leaf : layouts.of(type).leaves) value.push_back(load(b, leaf_type(leaf.kind), join, BEND_JOIN_HEADER + leaf.offset, Region::Frame));
  llvm::Value* words = b.CreateLShr(load(b, i32, join, offsetof(BendJoin, remaining), Region::Frame), BEND_JOIN_LEVELS);
  llvm::Value* parent = load(b, i64, join, offsetof(BendJoin, parent), Region::Frame);
  llvm::Value* stack = get_state(b, state, kStateStack);
  copy_at_once(b, stack, Place::Stack, b.CreateConstInBoundsGEP1_64(i8, join, head), Place::Memory, b.CreateICmpUGT(words, number(kAtOnce)), most_kept_words(type));
  llvm::Value* bytes = kept_bytes(b, type, words);
  if (has_spare()) {
    give_up_spare(b, worker);
    store(b, b.CreatePtrToInt(join, i64), worker, kDeviceWorkerSpare, Region::Frame);
    store(b, bytes, worker, kDeviceWorkerSpareBytes, Region::Frame);
  } else {
    device_push(b, worker, join, bytes, 0);
  }
  set_levels(b, worker, state, number(0), false);
  set_state(b, state, kStateParent, parent);
  llvm::Value* top = b.CreateShl(words, 3);
  set_state(b, state, kStateTop, top);
  set_words(b, state, value);
  set_state(b, state, kStateSegment, load(b, i32, stack_at(b, stack, b.CreateSub(top, number(kStackWord))), 4, Region::Frame));
}

}  // namespace bendc::codegen
