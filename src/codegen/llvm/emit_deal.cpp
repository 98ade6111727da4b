// Frames leave a thread's stack in two ways, oldest last. *Spilled* to the heap, each to a BendFrame that comes back alone. *Dealt out*, when the task's
// forks become parallel or the stack is full: a frame whose fork has children that have not begun becomes a join record, its children tasks of the
// next round, the others are spilled. So a task whose time is over gives away the large subtrees at the bottom of its stack, not just the next small
// one. What lies n frames below the top is taken to have n levels that are worth dealing out: those above it took the task's time.
#include <cstddef>

#include "codegen/gpu/machine_plan.h"
#include "codegen/llvm/device.h"
#include "codegen/llvm/emitter.h"
#include "runtime/gpu/device_abi.h"

namespace bendc::codegen {

namespace {
constexpr uint32_t kKeptFrames = 4;
static_assert(offsetof(BendFrame, segment) == offsetof(BendFrame, shape) + 4, "both are one word, a frame's header");
}  // namespace

// Frames leave the stack by one of the functions below; gives the parent word of what runs now.
llvm::Value* ModuleEmitter::move_stack(Builder& b, llvm::Function* function, llvm::Value* worker, llvm::Value* state) {
  llvm::CallInst* call = b.CreateCall(function, {worker, get_state(b, state, kStateStack), get_state(b, state, kStateTop), get_state(b, state, kStateParent)});
  call->setCallingConv(function->getCallingConv());
  return call;
}

// The parent word of what runs now once its task has ended: frames of the stack are dealt out.
llvm::Value* ModuleEmitter::deal_stack(Builder& b, llvm::Value* worker, llvm::Value* state) {
  llvm::BasicBlock *entry = b.GetInsertBlock(), *some = block(b, "frames"), *dealt = block(b, "dealt");
  llvm::Value* parent = get_state(b, state, kStateParent);
  b.CreateCondBr(b.CreateICmpUGT(get_state(b, state, kStateTop), number(kStackWord)), some, dealt);
  std::vector<std::pair<llvm::BasicBlock*, llvm::Value*>> parents{{entry, parent}};
  auto move = [&](llvm::Function* way) {
    llvm::Value* moved = move_stack(b, way, worker, state);
    parents.emplace_back(b.GetInsertBlock(), moved);
    b.CreateBr(dealt);
  };
  b.SetInsertPoint(some);
  if (options.launches) {
    // Tasks that are launched are children of one grid: those of other forks stay in their frames.
    llvm::BasicBlock *nested = block(b, "nested"), *rounds = block(b, "rounds");
    b.CreateCondBr(b.CreateICmpNE(load(b, i64, device_control(b, worker), offsetof(BendDeviceControl, launches), Region::Frame), llvm::ConstantInt::get(i64, 0)), nested, rounds);
    b.SetInsertPoint(nested);
    move(spill_stack_function());
    b.SetInsertPoint(rounds);
  }
  move(deal_stack_function());
  b.SetInsertPoint(dealt);
  llvm::PHINode* out = b.CreatePHI(i64, static_cast<unsigned>(parents.size()));
  for (const auto& [from, word] : parents) out->addIncoming(word, from);
  return out;
}

// One case for each way in which a frame can have children that have not begun, which are those from `child` on.
void ModuleEmitter::switch_waiting(Builder& b, llvm::Value* header, llvm::BasicBlock* none, const std::function<void(const Cut&, uint32_t)>& visit) {
  llvm::SwitchInst* cases = b.CreateSwitch(b.CreateTrunc(b.CreateLShr(header, 32), i32), none);
  for (const Cut& cut : options.gpu->plan->cuts) {
    for (uint32_t child = 1; child < cut.children.size(); ++child) {
      llvm::BasicBlock* arm = block(b, "fork");
      cases->addCase(llvm::cast<llvm::ConstantInt>(number(cut.next_child + child - 1)), arm);
      b.SetInsertPoint(arm);
      visit(cut, child);
    }
  }
}

// A frame to the heap; gives the place of its parent. `place`: of the word that names it.
llvm::Value* ModuleEmitter::spill_frame(Builder& b, llvm::Value* worker, llvm::Value* header, llvm::Value* frame, llvm::Value* place) {
  llvm::Value* words = b.CreateAnd(header, kFrameWords);
  llvm::Function* allocate = device_alloc_bytes();
  llvm::CallInst* node = b.CreateCall(allocate, {worker, b.CreateAdd(b.CreateShl(words, 3), llvm::ConstantInt::get(i64, sizeof(BendFrame) - kStackWord))});
  node->setCallingConv(allocate->getCallingConv());
  store(b, b.CreatePtrToInt(node, i64), place, 0, Region::Frame);
  store(b, header, node, offsetof(BendFrame, shape), Region::Frame);
  copy_words(b, b.CreateConstInBoundsGEP1_64(i8, node, sizeof(BendFrame)), Place::Memory, frame, Place::Stack, b.CreateSub(words, llvm::ConstantInt::get(i64, 1)));
  return b.CreateConstInBoundsGEP1_64(i8, node, offsetof(BendFrame, parent));
}

// (worker, stack, top, parent) -> the parent of what runs now: all frames to the heap.
llvm::Function* ModuleEmitter::spill_stack_function() {
  return helper("bend.spill", llvm::FunctionType::get(i64, {ptr, ptr, i32, i64}, false), [&](llvm::Function* fn, Builder& b) {
    fn->addFnAttr(llvm::Attribute::NoInline);
    llvm::Value *worker = fn->getArg(0), *stack = fn->getArg(1), *top = fn->getArg(2), *parent = fn->getArg(3);
    Builder entry(b.GetInsertBlock(), b.GetInsertBlock()->begin());
    llvm::AllocaInst *out = entry.CreateAlloca(i64), *place = entry.CreateAlloca(ptr);
    b.CreateStore(out, place);
    each_frame(b, stack, top, [&](llvm::Value* header, llvm::Value* frame) { b.CreateStore(spill_frame(b, worker, header, frame, b.CreateLoad(ptr, place)), place); });
    store(b, parent, b.CreateLoad(ptr, place), 0, Region::Frame);
    b.CreateRet(load(b, i64, out, 0, Region::Frame));
  });
}

// One atomic for the children of a stack's frames that have not begun: places for them, the first in `next`. To `room`, or to `full`, where what was reserved below
// the queue's end holds no task.
ModuleEmitter::ChildQueue ModuleEmitter::reserve_for_stack(Builder& b, llvm::Value* worker, llvm::Value* stack, llvm::Value* top, llvm::Value* next, llvm::BasicBlock* room, llvm::BasicBlock* full) {
  b.CreateStore(number(0), next);
  each_frame(b, stack, top, [&](llvm::Value* header, llvm::Value*) {
    llvm::BasicBlock* counted = block(b, "counted");
    switch_waiting(b, header, counted, [&](const Cut& cut, uint32_t child) {
      b.CreateStore(b.CreateAdd(b.CreateLoad(i32, next), number(cut.children.size() - child)), next);
      b.CreateBr(counted);
    });
    b.SetInsertPoint(counted);
  });
  llvm::Value* count = b.CreateLoad(i32, next);
  const ChildQueue queue = round_queue(b, device_control(b, worker));
  llvm::Value* first = device_add(b, queue.cursor, count);
  b.CreateStore(first, next);
  llvm::Value* end = b.CreateAdd(b.CreateZExt(first, i64), b.CreateZExt(count, i64));
  llvm::BasicBlock *asked = b.GetInsertBlock(), *mark = block(b, "mark"), *each = block(b, "each");
  b.CreateCondBr(b.CreateICmpUGT(end, b.CreateZExt(queue.capacity, i64)), mark, room, unlikely_);
  b.SetInsertPoint(mark);
  llvm::PHINode* index = b.CreatePHI(i32, 2);
  index->addIncoming(first, asked);
  b.CreateCondBr(b.CreateAnd(b.CreateICmpULT(index, queue.capacity), b.CreateICmpULT(b.CreateSub(index, first), count)), each, full);
  b.SetInsertPoint(each);
  store(b, number(BEND_SEGMENT_NONE), task_place(b, {queue, index}, 0), offsetof(BendTaskRecord, segment), Region::Frame);
  index->addIncoming(b.CreateAdd(index, number(1)), each);
  b.CreateBr(mark);
  return queue;
}

// (worker, stack, top, parent) -> the parent of what runs now: frames become joins, or go to the heap where no child waits or the queue has no room for all.
llvm::Function* ModuleEmitter::deal_stack_function() {
  return helper("bend.deal", llvm::FunctionType::get(i64, {ptr, ptr, i32, i64}, false), [&](llvm::Function* fn, Builder& b) {
    fn->addFnAttr(llvm::Attribute::NoInline);
    llvm::Value *worker = fn->getArg(0), *stack = fn->getArg(1), *top = fn->getArg(2), *parent = fn->getArg(3);
    Builder entry(b.GetInsertBlock(), b.GetInsertBlock()->begin());
    llvm::AllocaInst *out = entry.CreateAlloca(i64), *place = entry.CreateAlloca(ptr), *next = entry.CreateAlloca(i32), *depth = entry.CreateAlloca(i32);
    const OpenSum open{entry.CreateAlloca(i64), entry.CreateAlloca(i32)};
    llvm::BasicBlock *full = block(b, "full"), *room = block(b, "room");
    const ChildQueue queue = reserve_for_stack(b, worker, stack, top, next, room, full);
    b.SetInsertPoint(full);
    llvm::Function* spill = spill_stack_function();
    llvm::CallInst* spilled = b.CreateCall(spill, {worker, stack, top, parent});
    spilled->setCallingConv(spill->getCallingConv());
    b.CreateRet(spilled);
    b.SetInsertPoint(room);
    b.CreateStore(out, place);
    b.CreateStore(number(0), depth);
    const auto close_sum = [&] { b.CreateStore(llvm::ConstantInt::get(i64, 0), open.join); };
    close_sum();
    b.CreateStore(number(0), open.place);
    each_frame(b, stack, top, [&](llvm::Value* header, llvm::Value* frame) {
      llvm::BasicBlock *waits_for_none = block(b, "spill"), *moved = block(b, "moved");
      llvm::Value *named = b.CreateLoad(ptr, place), *index = b.CreateLoad(i32, next), *levels = b.CreateLoad(i32, depth);
      b.CreateStore(b.CreateAdd(levels, number(1)), depth);
      switch_waiting(b, header, waits_for_none, [&](const Cut& cut, uint32_t child) {
        if (cut.sum) {
          deal_into_sum(b, worker, cut, child, frame, place, {queue, index}, levels, open);
        } else {
          b.CreateStore(deal_frame(b, worker, cut, child, frame, named, {queue, index}, levels), place);
          close_sum();
        }
        b.CreateStore(b.CreateAdd(index, number(cut.children.size() - child)), next);
        b.CreateBr(moved);
      });
      b.SetInsertPoint(waits_for_none);
      b.CreateStore(spill_frame(b, worker, header, frame, named), place);
      close_sum();
      b.CreateBr(moved);
      b.SetInsertPoint(moved);
    });
    store(b, parent, b.CreateLoad(ptr, place), 0, Region::Frame);
    b.CreateRet(load(b, i64, out, 0, Region::Frame));
  });
}

// Deals out what lies below the topmost frames, which stay: they are the smallest, and most of a stack's frames would be tasks of a few turns. To `few`
// when there is nothing below them.
void ModuleEmitter::thin_stack(Builder& b, llvm::Value* worker, llvm::Value* state, llvm::BasicBlock* few) {
  llvm::BasicBlock* thinned = block(b, "thinned");
  llvm::Function* function = thin_stack_function();
  llvm::CallInst* parent = b.CreateCall(function, {worker, get_state(b, state, kStateStack), get_state(b, state, kStateTop), get_state(b, state, kStateParent)});
  parent->setCallingConv(function->getCallingConv());
  b.CreateCondBr(b.CreateICmpEQ(parent, llvm::ConstantInt::get(i64, 0)), few, thinned);
  b.SetInsertPoint(thinned);
  set_state(b, state, kStateParent, parent);
  set_state(b, state, kStateTop, load(b, i32, worker, kDeviceWorkerTop, Region::Frame));
  set_state(b, state, kStateLeft, load(b, i32, worker, kDeviceWorkerBudget, Region::Frame));
}

// (worker, stack, top, parent) -> the parent of the frames that stay, and the stack's new top in the worker record; 0: all frames stay.
llvm::Function* ModuleEmitter::thin_stack_function() {
  llvm::FunctionType* type = llvm::FunctionType::get(i64, {ptr, ptr, i32, i64}, false);
  return helper("bend.thin", type, [&](llvm::Function* fn, Builder& b) {
    fn->addFnAttr(llvm::Attribute::NoInline);
    llvm::Value *worker = fn->getArg(0), *stack = fn->getArg(1), *top = fn->getArg(2), *parent = fn->getArg(3);
    llvm::BasicBlock *entry = b.GetInsertBlock(), *loop = block(b, "loop"), *keep = block(b, "keep"), *found = block(b, "found"), *few = block(b, "few");
    b.CreateBr(loop);
    b.SetInsertPoint(loop);
    llvm::PHINode *at = b.CreatePHI(i32, 2), *kept = b.CreatePHI(i32, 2), *lowest = b.CreatePHI(i64, 2);
    at->addIncoming(top, entry);
    kept->addIncoming(number(0), entry);
    lowest->addIncoming(llvm::ConstantInt::get(i64, 0), entry);
    b.CreateCondBr(b.CreateICmpUGT(at, number(kStackWord)), keep, few);
    b.SetInsertPoint(keep);
    llvm::BasicBlock* next = block(b, "next");
    b.CreateCondBr(b.CreateICmpEQ(kept, number(kKeptFrames)), found, next);
    b.SetInsertPoint(next);
    llvm::Value* header = load(b, i64, stack_at(b, stack, b.CreateSub(at, number(kStackWord))), 0, Region::Frame);
    at->addIncoming(b.CreateSub(at, b.CreateShl(b.CreateTrunc(b.CreateAnd(header, kFrameWords), i32), 3)), next);
    kept->addIncoming(b.CreateAdd(kept, number(1)), next);
    lowest->addIncoming(header, next);
    b.CreateBr(loop);
    b.SetInsertPoint(few);
    b.CreateRet(llvm::ConstantInt::get(i64, 0));
    b.SetInsertPoint(found);
    llvm::Function* deal = deal_stack_function();
    llvm::CallInst* dealt = b.CreateCall(deal, {worker, stack, at, parent});
    dealt->setCallingConv(deal->getCallingConv());
    // Those that stay move to the stack's start. Their words go to lower places, the lowest first.
    llvm::Value* bytes = b.CreateSub(top, at);
    copy_words(b, stack_at(b, stack, number(kStackWord)), Place::Stack, stack_at(b, stack, at), Place::Stack, b.CreateZExt(b.CreateLShr(bytes, 3), i64));
    llvm::Value* out = b.CreateAnd(b.CreateLShr(lowest, 16), kFrameWords);
    store(b, b.CreateOr(b.CreateShl(out, 16), b.CreateShl(out, 32)), stack, 0, Region::Frame);
    store(b, b.CreateAdd(bytes, number(kStackWord)), worker, kDeviceWorkerTop, Region::Frame);
    b.CreateRet(dealt);
  });
}

// A frame that waits for child `child` - 1 becomes a join record, the children from `child` on tasks. Gives the place of the join's parent.
llvm::Value* ModuleEmitter::deal_frame(Builder& b, llvm::Value* worker, const Cut& cut, uint32_t child, llvm::Value* frame, llvm::Value* place, const Places& tasks, llvm::Value* levels) {
  const uint32_t count = static_cast<uint32_t>(cut.children.size()) - child;
  llvm::Value* join = alloc(b, worker, cut.join_bytes);
  llvm::Value* address = b.CreatePtrToInt(join, i64);
  store(b, parent_word(b, address, cut, child - 1), place, 0, Region::Frame);
  store(b, join_count(b, count + 1, levels), join, offsetof(BendJoin, remaining), Region::Frame);
  store(b, number(cut.resume_join), join, offsetof(BendJoin, segment), Region::Frame);
  llvm::Value* payload = b.CreateConstInBoundsGEP1_64(i8, join, BEND_JOIN_HEADER);
  if (cut.accumulates) {
    // The values of children that have ended are in the one that runs.
    for (uint32_t ended = 0; ended + 1 < child; ++ended) store(b, number(cut.identity), payload, cut.payload.offsets[ended], Region::Frame);
  } else {
    copy_words(b, payload, Place::Memory, frame, Place::Stack, llvm::ConstantInt::get(i64, cut.payload.bytes / kStackWord));
  }
  for (uint32_t i = 0; i < count; ++i) {
    Leaves args = load_record(b, late_types(cut, child + i), cut.late[child + i - 1], frame, Place::Stack);
    if (cut.accumulates) args.push_back(number(cut.identity));
    store_task(b, task_place(b, tasks, i), cut.children[child + i], parent_word(b, address, cut, child + i), levels, args);
  }
  return b.CreateConstInBoundsGEP1_64(i8, join, offsetof(BendJoin, parent));
}

// A frame of a fork that accumulates: its children are added up in one join with those of the frames above it that accumulate by the same operation, so
// that no value climbs through a join for each frame.
void ModuleEmitter::deal_into_sum(Builder& b, llvm::Value* worker, const Cut& cut, uint32_t child, llvm::Value* frame, llvm::Value* place, const Places& tasks, llvm::Value* levels, OpenSum open) {
  const uint32_t count = static_cast<uint32_t>(cut.children.size()) - child;
  llvm::BasicBlock *fresh = block(b, "sum"), *add = block(b, "add");
  llvm::Value* same = b.CreateAnd(b.CreateICmpNE(b.CreateLoad(i64, open.join), llvm::ConstantInt::get(i64, 0)), b.CreateICmpEQ(b.CreateLoad(i32, open.place), number(cut.sum)));
  b.CreateCondBr(same, add, fresh);
  b.SetInsertPoint(fresh);
  llvm::Value* made = make_sum(b, worker, cut, 1, levels);
  llvm::Value* made_address = b.CreatePtrToInt(made, i64);
  store(b, sum_word(b, made_address, cut), b.CreateLoad(ptr, place), 0, Region::Frame);
  b.CreateStore(b.CreateConstInBoundsGEP1_64(i8, made, offsetof(BendJoin, parent)), place);
  b.CreateStore(made_address, open.join);
  b.CreateStore(number(cut.sum), open.place);
  b.CreateBr(add);
  b.SetInsertPoint(add);
  llvm::Value* address = b.CreateLoad(i64, open.join);
  llvm::Value* join = b.CreateIntToPtr(address, ptr);
  // Its children do not run yet.
  const uint32_t counter = cut.sum == BEND_SUM_ADD ? BEND_JOIN_HEADER : offsetof(BendJoin, remaining);
  store(b, b.CreateAdd(load(b, i32, join, counter, Region::Frame), number(count)), join, counter, Region::Frame);
  for (uint32_t i = 0; i < count; ++i) {
    Leaves args = load_record(b, late_types(cut, child + i), cut.late[child + i - 1], frame, Place::Stack);
    args.push_back(number(cut.identity));
    store_task(b, task_place(b, tasks, i), cut.children[child + i], sum_word(b, address, cut), levels, args);
  }
}

}  // namespace bendc::codegen
