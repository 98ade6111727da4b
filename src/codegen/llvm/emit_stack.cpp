// A device thread's stack of frames. What waits for a value inside the task that runs lies there: results of children, live values, arguments of
// children that have not begun, and on top a header (machine_plan.h). The stack is memory of the thread alone, which a device interleaves by lanes,
// so lanes that go through equal trees touch one line together; frames of the heap are 32 lines.
//
//   stack: bottom header | payload, header | payload, header        top: behind the last header
//
// Frames leave the stack in two ways, oldest last. *Spilled* to the heap, each to a BendFrame that comes back alone. *Dealt out*, when the task's
// forks become parallel or the stack is full: a frame whose fork has children that have not begun becomes a join record, its children tasks of the
// next round, the others are spilled. So a task whose time is over gives away the large subtrees at the bottom of its stack, not just the next small
// one. What lies n frames below the top is taken to have n levels that are worth dealing out: those above it took the task's time.
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <cstddef>

#include "codegen/gpu/machine_plan.h"
#include "codegen/llvm/device.h"
#include "codegen/llvm/emitter.h"
#include "runtime/gpu/device_abi.h"

namespace bendc::codegen {

using flow::FuncId;
using flow::TypeId;

namespace {
constexpr uint32_t kWord = 8;
constexpr uint64_t kSizeMask = 0xFFFF;
constexpr uint32_t kBlockBits = 7;                 // log2 of BEND_BLOCK_THREADS
constexpr uint32_t kSharedFrames = 11, kMostSharedStackBytes = 368;   // 128 stacks of the latter are 46 KiB, of 48 that a block can have
constexpr uint32_t kKeptFrames = 4;
constexpr uint32_t kPollTurns = 16;                // between two looks at whether there are tasks to take
static_assert(offsetof(BendFrame, segment) == offsetof(BendFrame, shape) + 4, "both are one word, a frame's header");
}  // namespace

// A device whose threads share blocks of fast memory has the stacks there, the words of a block's threads side by side: lanes that are at different
// depths still use banks of their own. 0: the stack is in the thread's own memory.
uint32_t ModuleEmitter::shared_stack_bytes() const {
  if (options.target != TargetKind::Device || !tasks_on_request()) return 0;
  const uint32_t bytes = std::max(kWord + kSharedFrames * options.gpu->plan->largest_frame, options.gpu->plan->fewest_stack_bytes);
  return bytes > kMostSharedStackBytes ? 0 : bytes;
}

uint32_t ModuleEmitter::stack_bytes() const {
  const uint32_t shared = shared_stack_bytes();
  return shared ? shared : options.gpu->plan->stack_bytes;
}

// log2 of the distance of a stack's words, in words.
uint32_t ModuleEmitter::stack_shift() const {
  static_assert(BEND_BLOCK_THREADS == 1u << kBlockBits);
  return shared_stack_bytes() ? kBlockBits : 0;
}

uint32_t ModuleEmitter::place_of(uint32_t offset, Place place) const { return place == Place::Stack ? (offset / kWord * kWord << stack_shift()) + offset % kWord : offset; }

llvm::Value* ModuleEmitter::stack_at(Builder& b, llvm::Value* stack, llvm::Value* offset) {
  return b.CreateInBoundsGEP(i8, stack, {b.CreateZExt(b.CreateShl(offset, stack_shift()), i64)});
}

llvm::Value* ModuleEmitter::stack_place(Builder& b, llvm::Value* state, llvm::Value* offset) { return stack_at(b, get_state(b, state, kStateStack), offset); }

// The thread's stack, for the state.
void ModuleEmitter::open_stack(Builder& b, llvm::Value* state) {
  if (const uint32_t shared = shared_stack_bytes()) {
    constexpr unsigned kShared = 3;
    llvm::Type* type = llvm::ArrayType::get(i64, uint64_t{shared} / kWord * BEND_BLOCK_THREADS);
    auto* stacks = new llvm::GlobalVariable(ir, type, false, llvm::GlobalValue::InternalLinkage, llvm::PoisonValue::get(type), "bend.stacks", nullptr, llvm::GlobalValue::NotThreadLocal, kShared);
    stacks->setAlignment(llvm::Align(16));
    llvm::Value* thread = b.CreateIntrinsic(i32, llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {});
    llvm::Value* own = b.CreateInBoundsGEP(i64, stacks, {b.CreateZExt(thread, i64)});
    set_state(b, state, kStateStack, b.CreateAddrSpaceCast(own, ptr));
    return;
  }
  llvm::BasicBlock& top = b.GetInsertBlock()->getParent()->getEntryBlock();
  Builder entry(&top, top.begin());
  llvm::AllocaInst* stack = entry.CreateAlloca(i8, number(stack_bytes()), "stack");
  stack->setAlignment(llvm::Align(16));
  set_state(b, state, kStateStack, stack);
}

// An empty stack: what a function with this result returns goes out of the thread.
void ModuleEmitter::empty_stack(Builder& b, llvm::Value* state, TypeId returns) {
  store(b, llvm::ConstantInt::get(i64, options.gpu->plan->bottom_header(returns)), get_state(b, state, kStateStack), 0, Region::Frame);
  set_state(b, state, kStateTop, number(kWord));
}

// Room for `bytes` more; gives the place where they start.
llvm::Value* ModuleEmitter::push_frame(Builder& b, llvm::Value* worker, llvm::Value* state, uint32_t bytes, TypeId returns) {
  llvm::BasicBlock *full = block(b, "full"), *room = block(b, "room");
  llvm::Value* end = b.CreateAdd(get_state(b, state, kStateTop), number(bytes));
  b.CreateCondBr(b.CreateICmpUGT(end, number(stack_bytes())), full, room, unlikely_);
  b.SetInsertPoint(full);
  // A task with a budget gives its forks away, the others keep the order of one thread.
  llvm::BasicBlock *deal = block(b, "deal"), *spill = block(b, "spill"), *moved = block(b, "moved");
  b.CreateCondBr(b.CreateICmpNE(load(b, i32, worker, kDeviceWorkerBudget, Region::Frame), number(kNoBudget)), deal, spill);
  b.SetInsertPoint(deal);
  set_state(b, state, kStateParent, deal_stack(b, worker, state));
  b.CreateBr(moved);
  b.SetInsertPoint(spill);
  set_state(b, state, kStateParent, move_stack(b, worker, state, false));
  b.CreateBr(moved);
  b.SetInsertPoint(moved);
  empty_stack(b, state, returns);
  b.CreateBr(room);
  b.SetInsertPoint(room);
  llvm::Value* start = get_state(b, state, kStateTop);
  set_state(b, state, kStateTop, b.CreateAdd(start, number(bytes)));
  return stack_place(b, state, start);
}

// Frames to the heap; gives the parent word of what runs now.
llvm::Value* ModuleEmitter::move_stack(Builder& b, llvm::Value* worker, llvm::Value* state, bool deal) {
  llvm::Function* function = move_stack_function(deal);
  llvm::CallInst* call = b.CreateCall(function, {worker, get_state(b, state, kStateStack), get_state(b, state, kStateTop), get_state(b, state, kStateParent)});
  call->setCallingConv(function->getCallingConv());
  return call;
}

// The parent word of what runs now once its task has ended: frames of the stack are dealt out.
llvm::Value* ModuleEmitter::deal_stack(Builder& b, llvm::Value* worker, llvm::Value* state) {
  llvm::BasicBlock *entry = b.GetInsertBlock(), *some = block(b, "frames"), *dealt = block(b, "dealt");
  llvm::Value* parent = get_state(b, state, kStateParent);
  b.CreateCondBr(b.CreateICmpUGT(get_state(b, state, kStateTop), number(kWord)), some, dealt);
  std::vector<std::pair<llvm::BasicBlock*, llvm::Value*>> parents{{entry, parent}};
  auto move = [&](bool deal) {
    llvm::Value* moved = move_stack(b, worker, state, deal);
    parents.emplace_back(b.GetInsertBlock(), moved);
    b.CreateBr(dealt);
  };
  b.SetInsertPoint(some);
  if (options.launches) {
    // Tasks that are launched are children of one grid: those of other forks stay in their frames.
    llvm::BasicBlock *nested = block(b, "nested"), *rounds = block(b, "rounds");
    b.CreateCondBr(b.CreateICmpNE(load(b, i64, device_control(b, worker), offsetof(BendDeviceControl, launches), Region::Frame), llvm::ConstantInt::get(i64, 0)), nested, rounds);
    b.SetInsertPoint(nested);
    move(false);
    b.SetInsertPoint(rounds);
  }
  move(true);
  b.SetInsertPoint(dealt);
  llvm::PHINode* out = b.CreatePHI(i64, static_cast<unsigned>(parents.size()));
  for (const auto& [from, word] : parents) out->addIncoming(word, from);
  return out;
}

void ModuleEmitter::copy_words(Builder& b, llvm::Value* to, Place to_place, llvm::Value* from, Place from_place, llvm::Value* words) {
  llvm::BasicBlock *some = block(b, "words"), *done = block(b, "copied");
  b.CreateCondBr(b.CreateICmpNE(words, llvm::ConstantInt::get(i64, 0)), some, done);
  b.SetInsertPoint(some);
  device_loop(b, words, [&](Builder& body, llvm::Value* index) {
    auto at = [&](llvm::Value* base, Place place) { return body.CreateInBoundsGEP(i64, base, {body.CreateShl(index, place == Place::Stack ? stack_shift() : 0)}); };
    store(body, load(body, i64, at(from, from_place), 0, Region::Frame), at(to, to_place), 0, Region::Frame);
  });
  b.CreateBr(done);
  b.SetInsertPoint(done);
}

// visit(builder, header, base) for each frame of a stack, the topmost first; it leaves the builder where the next one is to follow.
void ModuleEmitter::each_frame(Builder& b, llvm::Value* stack, llvm::Value* from, const std::function<void(llvm::Value*, llvm::Value*)>& visit) {
  llvm::BasicBlock *entry = b.GetInsertBlock(), *loop = block(b, "loop"), *frame = block(b, "frame"), *done = block(b, "done");
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  llvm::PHINode* top = b.CreatePHI(i32, 2);
  top->addIncoming(from, entry);
  b.CreateCondBr(b.CreateICmpUGT(top, number(kWord)), frame, done);
  b.SetInsertPoint(frame);
  llvm::Value* header = load(b, i64, stack_at(b, stack, b.CreateSub(top, number(kWord))), 0, Region::Frame);
  llvm::Value* below = b.CreateSub(top, b.CreateShl(b.CreateTrunc(b.CreateAnd(header, kSizeMask), i32), 3));
  visit(header, stack_at(b, stack, below));
  top->addIncoming(below, b.GetInsertBlock());
  b.CreateBr(loop);
  b.SetInsertPoint(done);
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
  llvm::Value* words = b.CreateAnd(header, kSizeMask);
  llvm::Function* allocate = device_alloc_bytes();
  llvm::CallInst* node = b.CreateCall(allocate, {worker, b.CreateAdd(b.CreateShl(words, 3), llvm::ConstantInt::get(i64, sizeof(BendFrame) - kWord))});
  node->setCallingConv(allocate->getCallingConv());
  store(b, b.CreatePtrToInt(node, i64), place, 0, Region::Frame);
  store(b, header, node, offsetof(BendFrame, shape), Region::Frame);
  copy_words(b, b.CreateConstInBoundsGEP1_64(i8, node, sizeof(BendFrame)), Place::Memory, frame, Place::Stack, b.CreateSub(words, llvm::ConstantInt::get(i64, 1)));
  return b.CreateConstInBoundsGEP1_64(i8, node, offsetof(BendFrame, parent));
}

// (worker, stack, top, parent) -> the parent of what runs now.
llvm::Function* ModuleEmitter::move_stack_function(bool deal) {
  llvm::FunctionType* type = llvm::FunctionType::get(i64, {ptr, ptr, i32, i64}, false);
  return helper(deal ? "bend.deal" : "bend.spill", type, [&](llvm::Function* fn, Builder& b) {
    fn->addFnAttr(llvm::Attribute::NoInline);
    llvm::Value *worker = fn->getArg(0), *stack = fn->getArg(1), *top = fn->getArg(2), *parent = fn->getArg(3);
    Builder entry(b.GetInsertBlock(), b.GetInsertBlock()->begin());
    llvm::AllocaInst *out = entry.CreateAlloca(i64), *place = entry.CreateAlloca(ptr), *next = entry.CreateAlloca(i32), *depth = entry.CreateAlloca(i32);
    b.CreateStore(out, place);
    const OpenSum open{entry.CreateAlloca(i64), entry.CreateAlloca(i32)};
    b.CreateStore(llvm::ConstantInt::get(i64, 0), open.join);
    b.CreateStore(number(0), open.place);
    ChildQueue queue{};
    if (deal) {
      // One atomic for all tasks of the stack.
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
      queue = round_queue(b, device_control(b, worker));
      llvm::Value* first = device_add(b, queue.cursor, count);
      llvm::Value* end = b.CreateAdd(b.CreateZExt(first, i64), b.CreateZExt(count, i64));
      llvm::BasicBlock *full = block(b, "full"), *mark = block(b, "mark"), *each = block(b, "each"), *room = block(b, "room");
      llvm::BasicBlock* asked = b.GetInsertBlock();
      b.CreateCondBr(b.CreateICmpUGT(end, b.CreateZExt(queue.capacity, i64)), mark, room, unlikely_);
      // No room for all: what was reserved below the queue's end holds no task, and the frames keep their children.
      b.SetInsertPoint(mark);
      llvm::PHINode* index = b.CreatePHI(i32, 2);
      index->addIncoming(first, asked);
      b.CreateCondBr(b.CreateAnd(b.CreateICmpULT(index, queue.capacity), b.CreateICmpULT(b.CreateSub(index, first), count)), each, full);
      b.SetInsertPoint(each);
      store(b, number(BEND_SEGMENT_NONE), task_place(b, {queue, index}, 0), offsetof(BendTaskRecord, segment), Region::Frame);
      index->addIncoming(b.CreateAdd(index, number(1)), each);
      b.CreateBr(mark);
      b.SetInsertPoint(full);
      llvm::CallInst* spilled = b.CreateCall(move_stack_function(false), {worker, stack, top, parent});
      spilled->setCallingConv(move_stack_function(false)->getCallingConv());
      b.CreateRet(spilled);
      b.SetInsertPoint(room);
      b.CreateStore(first, next);
      b.CreateStore(number(0), depth);
    }
    each_frame(b, stack, top, [&](llvm::Value* header, llvm::Value* frame) {
      llvm::BasicBlock *spill = block(b, "spill"), *moved = block(b, "moved");
      llvm::Value* named = b.CreateLoad(ptr, place);
      if (deal) {
        llvm::Value *index = b.CreateLoad(i32, next), *levels = b.CreateLoad(i32, depth);
        b.CreateStore(b.CreateAdd(levels, number(1)), depth);
        switch_waiting(b, header, spill, [&](const Cut& cut, uint32_t child) {
          if (cut.sum) {
            deal_into_sum(b, worker, cut, child, frame, place, {queue, index}, levels, open);
          } else {
            b.CreateStore(deal_frame(b, worker, cut, child, frame, named, {queue, index}, levels), place);
            b.CreateStore(llvm::ConstantInt::get(i64, 0), open.join);
          }
          b.CreateStore(b.CreateAdd(index, number(cut.children.size() - child)), next);
          b.CreateBr(moved);
        });
      } else {
        b.CreateBr(spill);
      }
      b.SetInsertPoint(spill);
      b.CreateStore(spill_frame(b, worker, header, frame, named), place);
      if (deal) b.CreateStore(llvm::ConstantInt::get(i64, 0), open.join);
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

// A task at a fork has gone through its budget, or the fork is to be parallel at once. While there are tasks to take, nobody waits for its children. Ends the block.
void ModuleEmitter::ask_for_tasks(Builder& b, llvm::Value* worker, llvm::Value* state, llvm::Value* heavy, llvm::BasicBlock* parallel, llvm::BasicBlock* sequential) {
  llvm::BasicBlock *busy = block(b, "busy"), *idle = block(b, "idle"), *thin = block(b, "thin");
  llvm::Value* all = b.CreateICmpEQ(load(b, i32, worker, kDeviceWorkerMode, Region::Frame), number(BEND_MODE_PARALLEL));
  llvm::Value* at_once = b.CreateOr(heavy, b.CreateICmpNE(load(b, i32, worker, kDeviceWorkerLevels, Region::Frame), number(0)));
  b.CreateCondBr(b.CreateOr(all, are_tasks_taken(b, worker)), idle, busy);
  b.SetInsertPoint(busy);
  llvm::Value* left = get_state(b, state, kStateLeft);
  set_state(b, state, kStateLeft, b.CreateSelect(b.CreateOr(at_once, b.CreateICmpSGE(left, number(0))), left, number(kPollTurns)));
  b.CreateBr(sequential);
  b.SetInsertPoint(idle);
  // A spent budget: most of the stack is dealt out, and the task goes on with the rest. The second time all of it, since the round waits for the last task:
  // searches keep 8 of 32 lanes at work otherwise.
  llvm::Value* again = b.CreateICmpNE(load(b, i32, worker, kDeviceWorkerThinned, Region::Frame), number(0));
  b.CreateCondBr(b.CreateOr(b.CreateOr(all, at_once), again), parallel, thin);
  b.SetInsertPoint(thin);
  thin_stack(b, worker, state, parallel);
  store(b, number(1), worker, kDeviceWorkerThinned, Region::Frame);
  b.CreateBr(sequential);
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
    b.CreateCondBr(b.CreateICmpUGT(at, number(kWord)), keep, few);
    b.SetInsertPoint(keep);
    llvm::BasicBlock* next = block(b, "next");
    b.CreateCondBr(b.CreateICmpEQ(kept, number(kKeptFrames)), found, next);
    b.SetInsertPoint(next);
    llvm::Value* header = load(b, i64, stack_at(b, stack, b.CreateSub(at, number(kWord))), 0, Region::Frame);
    at->addIncoming(b.CreateSub(at, b.CreateShl(b.CreateTrunc(b.CreateAnd(header, kSizeMask), i32), 3)), next);
    kept->addIncoming(b.CreateAdd(kept, number(1)), next);
    lowest->addIncoming(header, next);
    b.CreateBr(loop);
    b.SetInsertPoint(few);
    b.CreateRet(llvm::ConstantInt::get(i64, 0));
    b.SetInsertPoint(found);
    llvm::Function* deal = move_stack_function(true);
    llvm::CallInst* dealt = b.CreateCall(deal, {worker, stack, at, parent});
    dealt->setCallingConv(deal->getCallingConv());
    // Those that stay move to the stack's start. Their words go to lower places, the lowest first.
    llvm::Value* bytes = b.CreateSub(top, at);
    copy_words(b, stack_at(b, stack, number(kWord)), Place::Stack, stack_at(b, stack, at), Place::Stack, b.CreateZExt(b.CreateLShr(bytes, 3), i64));
    llvm::Value* out = b.CreateAnd(b.CreateLShr(lowest, 16), kSizeMask);
    store(b, b.CreateOr(b.CreateShl(out, 16), b.CreateShl(out, 32)), stack, 0, Region::Frame);
    store(b, b.CreateAdd(bytes, number(kWord)), worker, kDeviceWorkerTop, Region::Frame);
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
    copy_words(b, payload, Place::Memory, frame, Place::Stack, llvm::ConstantInt::get(i64, cut.payload.bytes / kWord));
  }
  for (uint32_t i = 0; i < count; ++i) {
    Leaves args = load_record(b, late_types(cut, child + i), cut.late[child + i - 1], frame, Place::Stack);
    if (cut.accumulates) args.push_back(number(cut.identity));
    store_task(b, task_place(b, tasks, i), cut.children[child + i], parent_word(b, address, cut, child + i), levels, args);
  }
  return b.CreateConstInBoundsGEP1_64(i8, join, offsetof(BendJoin, parent));
}

// Types of what a frame holds of a child that has not begun.
std::vector<TypeId> ModuleEmitter::late_types(const Cut& cut, uint32_t child) const {
  std::vector<TypeId> types = param_types(flow, cut.children[child]);
  if (cut.accumulates) types.pop_back();
  return types;
}

// A join record whose children's values are put together by one operation, but for its parent.
llvm::Value* ModuleEmitter::make_sum(Builder& b, llvm::Value* worker, const Cut& cut, uint32_t children, llvm::Value* levels) {
  const TypeId type = flow.funcs[cut.func].result;
  llvm::Value* record = alloc(b, worker, relay_bytes(type));
  if (cut.sum == BEND_SUM_ADD) {
    // The sum and the count of its children are one word, for one atomic.
    store(b, llvm::ConstantInt::get(i64, uint64_t{cut.identity} << 32 | children), record, BEND_JOIN_HEADER, Region::Frame);
  } else {
    store(b, number(cut.identity), record, BEND_JOIN_HEADER, Region::Frame);
    store(b, join_count(b, children, levels), record, offsetof(BendJoin, remaining), Region::Frame);
  }
  store(b, number(options.gpu->plan->relay.at(type.index)), record, offsetof(BendJoin, segment), Region::Frame);
  return record;
}

// The parent word of a child of such a record.
llvm::Value* ModuleEmitter::sum_word(Builder& b, llvm::Value* address, const Cut& cut) { return b.CreateOr(address, uint64_t{1} | uint64_t{cut.sum} << BEND_PARENT_SLOT); }

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

// The value of a child of a join whose place says how values are put together. To `last` with the whole sum behind the record's header when it is the
// last one, else to `over`.
void ModuleEmitter::add_to_sum(Builder& b, llvm::Value* record, llvm::Value* place, llvm::Value* value, llvm::BasicBlock* last, llvm::BasicBlock* over) {
  const MachinePlan& plan = *options.gpu->plan;
  llvm::Value* sum = b.CreateConstInBoundsGEP1_64(i8, record, BEND_JOIN_HEADER);
  llvm::BasicBlock *counted = block(b, "counted"), *unknown = block(b, "unknown");
  llvm::SwitchInst* cases = b.CreateSwitch(place, unknown);
  bool others = false;
  for (const uint32_t kind : plan.sums) {
    if (kind == 0) continue;
    llvm::BasicBlock* arm = block(b, "add");
    cases->addCase(llvm::cast<llvm::ConstantInt>(llvm::ConstantInt::get(i64, kind)), arm);
    b.SetInsertPoint(arm);
    if (kind == BEND_SUM_ADD) {
      // The count lies in the lower half and is not 0, so taking one from it does not reach the sum. Who reads the sum reads nothing else that the
      // child has written, unless that may be an array.
      llvm::Value* change = b.CreateSub(b.CreateShl(b.CreateZExt(value, i64), 32), llvm::ConstantInt::get(i64, 1));
      llvm::Value* before = plan.sums_publish ? device_arrive(b, sum, change) : device_add(b, sum, change);
      llvm::BasicBlock* whole = block(b, "whole");
      b.CreateCondBr(b.CreateICmpEQ(b.CreateTrunc(before, i32), number(1)), whole, over);
      b.SetInsertPoint(whole);
      if (plan.sums_publish) device_fence(b);
      store(b, b.CreateAdd(b.CreateTrunc(b.CreateLShr(before, 32), i32), value), sum, 0, Region::Frame);
      b.CreateBr(last);
      continue;
    }
    others = true;
    const auto operation = kind == BEND_SUM_OR ? llvm::AtomicRMWInst::Or : kind == BEND_SUM_XOR ? llvm::AtomicRMWInst::Xor : llvm::AtomicRMWInst::And;
    b.CreateAtomicRMW(operation, sum, value, llvm::Align(4), llvm::AtomicOrdering::Monotonic, device_scope());
    b.CreateBr(counted);
  }
  b.SetInsertPoint(unknown);
  b.CreateUnreachable();
  b.SetInsertPoint(counted);
  if (others) arrive(b, record, last, over);
  else b.CreateUnreachable();
}

// One child less to wait for. In `last` all that the others have written is seen.
void ModuleEmitter::arrive(Builder& b, llvm::Value* record, llvm::BasicBlock* last, llvm::BasicBlock* over) {
  llvm::BasicBlock* fence = block(b, "fence");
  llvm::Value* before = device_arrive(b, b.CreateConstGEP1_64(i8, record, offsetof(BendJoin, remaining)), llvm::ConstantInt::getSigned(i32, -1));
  b.CreateCondBr(is_last(b, before), fence, over);
  b.SetInsertPoint(fence);
  device_fence(b);
  b.CreateBr(last);
}

// ---- tasks ----

llvm::Value* ModuleEmitter::is_spent(Builder& b, llvm::Value* state) { return b.CreateICmpSLT(get_state(b, state, kStateLeft), number(0)); }

// Levels of a task that begins, or of a join or anything else that goes on in one, as the round's mode takes them.
void ModuleEmitter::set_levels(Builder& b, llvm::Value* worker, llvm::Value* state, llvm::Value* levels, bool begins) {
  llvm::Value* left = nullptr;
  if (begins) {
    if (tasks_on_request()) store(b, number(0), worker, kDeviceWorkerThinned, Region::Frame);
    left = load(b, i32, worker, kDeviceWorkerBudget, Region::Frame);
  } else {
    left = get_state(b, state, kStateLeft);
    llvm::Value* at_once = b.CreateICmpNE(load(b, i32, worker, kDeviceWorkerLevels, Region::Frame), number(0));
    left = b.CreateSelect(at_once, b.CreateAdd(left, number(kForksAtOnce)), left);
  }
  llvm::Value* mode = load(b, i32, worker, kDeviceWorkerMode, Region::Frame);
  // In mode parallel every fork is dealt out as it is; what its children are worth shows in their own rounds.
  llvm::Value* all = b.CreateSelect(b.CreateICmpEQ(mode, number(BEND_MODE_PARALLEL)), b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, levels, number(1)), levels);
  llvm::Value* taken = b.CreateSelect(b.CreateICmpEQ(mode, number(BEND_MODE_SEQUENTIAL)), number(0), all);
  store(b, taken, worker, kDeviceWorkerLevels, Region::Frame);
  set_state(b, state, kStateLeft, b.CreateSelect(b.CreateICmpNE(taken, number(0)), b.CreateSub(left, number(kForksAtOnce)), left));
}

// The first value of a join's `remaining`.
llvm::Value* ModuleEmitter::join_count(Builder& b, uint32_t children, llvm::Value* levels) {
  llvm::Value* most = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, levels, number(0xFF));
  return b.CreateOr(b.CreateShl(most, BEND_JOIN_LEVELS), number(children));
}

llvm::Value* ModuleEmitter::is_last(Builder& b, llvm::Value* remaining) { return b.CreateICmpEQ(b.CreateAnd(remaining, (1u << BEND_JOIN_LEVELS) - 1), number(1)); }

// The parent word of a child: its place in the join record at `address`.
llvm::Value* ModuleEmitter::parent_word(Builder& b, llvm::Value* address, const Cut& cut, uint32_t child) {
  return b.CreateOr(address, uint64_t{1} | uint64_t{BEND_JOIN_HEADER + cut.payload.offsets[child]} << BEND_PARENT_SLOT);
}

// Places for `count` tasks, where the task's forks go now; in `overflow` there is not room for all of them. Ends the block.
ModuleEmitter::Places ModuleEmitter::reserve_tasks(Builder& b, llvm::Value* worker, llvm::Value* control, uint32_t count, llvm::BasicBlock* append, llvm::BasicBlock* overflow) {
  const ChildQueue to = child_queue(b, worker, control);
  llvm::Value* first = device_append(b, to.cursor, count);
  llvm::Value* end = b.CreateAdd(b.CreateZExt(first, i64), llvm::ConstantInt::get(i64, count));
  b.CreateCondBr(b.CreateICmpUGT(end, b.CreateZExt(to.capacity, i64)), overflow, append, unlikely_);
  return {to, first};
}

llvm::Value* ModuleEmitter::task_place(Builder& b, const Places& places, uint32_t index) {
  llvm::Value* at = b.CreateZExt(b.CreateAdd(places.first, number(index)), i64);
  return b.CreateInBoundsGEP(i8, places.queue.records, {b.CreateMul(at, llvm::ConstantInt::get(i64, options.gpu->plan->task_stride))});
}

// What was reserved below the queue's end holds no task.
void ModuleEmitter::mark_empty(Builder& b, const Places& places, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    llvm::BasicBlock *mark = block(b, "mark"), *marked = block(b, "marked");
    // A counter past 2^32 would take more than 2^32 failed appends in one round.
    b.CreateCondBr(b.CreateICmpULT(b.CreateAdd(places.first, number(i)), places.queue.capacity), mark, marked);
    b.SetInsertPoint(mark);
    store(b, number(BEND_SEGMENT_NONE), task_place(b, places, i), offsetof(BendTaskRecord, segment), Region::Frame);
    b.CreateBr(marked);
    b.SetInsertPoint(marked);
  }
}

void ModuleEmitter::store_task(Builder& b, llvm::Value* task, FuncId func, llvm::Value* parent, llvm::Value* levels, LeafSpan args) {
  const MachinePlan& plan = *options.gpu->plan;
  store(b, number(plan.load[func.index]), task, offsetof(BendTaskRecord, segment), Region::Frame);
  store(b, levels, task, offsetof(BendTaskRecord, levels), Region::Frame);
  store(b, parent, task, offsetof(BendTaskRecord, parent), Region::Frame);
  store_record(b, param_types(flow, func), plan.task_payload.at(func.index), args, task);
}

// ---- segments ----

// The next child of a fork begins; the value of the one before is in the state.
void ModuleEmitter::emit_next_child(Builder& b, llvm::Value* state, const Cut& cut, uint32_t child) {
  const MachinePlan& plan = *options.gpu->plan;
  llvm::Value* start = b.CreateSub(get_state(b, state, kStateTop), number(cut.frame_bytes));
  llvm::Value* frame = stack_place(b, state, start);
  const TypeId type = flow.vars[flow.funcs[cut.continuation].params[child - 1]].type;
  const Leaves value = get_words(b, state, {type});
  const bool last = child + 1 == cut.children.size();
  if (!cut.accumulates) store_field(b, type, value, frame, cut.payload.offsets[child - 1], Place::Stack);
  if (cut.accumulates && last) {
    set_state(b, state, kStateTop, start);
  } else {
    const uint32_t segment = last ? cut.resume_frame : cut.next_child + child;
    store(b, llvm::ConstantInt::get(i64, plan.frame_header(cut, segment, flow.funcs[cut.func].result)), frame, place_of(cut.frame_bytes - kWord, Place::Stack), Region::Frame);
  }
  Leaves words = load_record(b, late_types(cut, child), cut.late[child - 1], frame, Place::Stack);
  if (cut.accumulates) words.append(value.begin(), value.end());
  set_words(b, state, words);
  next_segment(b, state, plan.run[cut.children[child].index]);
}

// The continuation of a cut, from its frame and the value in the state.
void ModuleEmitter::emit_resume_frame(Builder& b, llvm::Value* state, const Cut& cut) {
  llvm::Value* start = b.CreateSub(get_state(b, state, kStateTop), number(cut.frame_bytes));
  llvm::Value* frame = stack_place(b, state, start);
  set_state(b, state, kStateTop, start);
  const std::vector<TypeId> types = param_types(flow, cut.continuation);
  const size_t last = cut.children.size() - 1;
  Leaves words;
  for (size_t i = 0; i < types.size(); ++i) {
    if (i == last) words.append(get_words(b, state, {types[i]}));
    else for (flow::Leaf leaf : layouts.of(types[i]).leaves) words.push_back(load(b, leaf_type(leaf.kind), frame, place_of(cut.payload.offsets[i] + leaf.offset, Place::Stack), Region::Frame));
  }
  set_words(b, state, words);
  next_segment(b, state, options.gpu->plan->run[cut.continuation.index]);
}

void ModuleEmitter::emit_resume_join(Builder& b, llvm::Value* worker, llvm::Value* state, const Cut& cut, llvm::Value* join) {
  const Leaves words = load_record(b, param_types(flow, cut.continuation), cut.payload, b.CreateConstInBoundsGEP1_64(i8, join, BEND_JOIN_HEADER));
  set_state(b, state, kStateParent, load(b, i64, join, offsetof(BendJoin, parent), Region::Frame));
  // What follows a fork is about as large as the fork was.
  llvm::Value* levels = b.CreateLShr(load(b, i32, join, offsetof(BendJoin, remaining), Region::Frame), BEND_JOIN_LEVELS);
  // The list's head comes with the record's words, before the thread waits for one of them.
  device_free(b, worker, join, cut.join_bytes);
  set_levels(b, worker, state, levels, false);
  empty_stack(b, state, flow.funcs[cut.func].result);
  set_words(b, state, words);
  next_segment(b, state, options.gpu->plan->run[cut.continuation.index]);
}

// Adds to the counter of a join, when a child arrives; what the thread has written is seen by who counts after it. Not a fence: that one also drops what the
// processor has in its first cache, which only the last child to arrive must.
llvm::Value* ModuleEmitter::device_arrive(Builder& b, llvm::Value* counter, llvm::Value* change) {
  if (options.target != TargetKind::Device) {
    device_fence(b);
    return device_add(b, counter, change);
  }
  const bool wide = change->getType() == i64;
  llvm::FunctionType* type = llvm::FunctionType::get(change->getType(), {ptr, change->getType()}, false);
  const char* text = wide ? "atom.release.gpu.add.u64 $0, [$1], $2;" : "atom.release.gpu.add.u32 $0, [$1], $2;";
  return b.CreateCall(llvm::InlineAsm::get(type, text, wide ? "=l,l,l,~{memory}" : "=r,l,r,~{memory}", true), {counter, change});
}

// The value in the state goes out of the thread, to the parent.
void ModuleEmitter::emit_out(Builder& b, llvm::Value* worker, llvm::Value* state, TypeId type) {
  const Leaves leaves = get_words(b, state, {type});
  llvm::Value* parent = get_state(b, state, kStateParent);
  llvm::BasicBlock *root = block(b, "root"), *inner = block(b, "inner"), *join = block(b, "join"), *frame = block(b, "frame"), *last = block(b, "last"), *over = block(b, "over"), *done = block(b, "done");
  b.CreateCondBr(b.CreateICmpEQ(parent, llvm::ConstantInt::get(i64, 0)), root, inner, unlikely_);

  b.SetInsertPoint(root);
  llvm::Value* control = device_control(b, worker);
  store_field(b, type, leaves, b.CreateIntToPtr(load(b, i64, control, offsetof(BendDeviceControl, result), Region::Frame), ptr), 0);
  store(b, number(1), control, offsetof(BendDeviceControl, finished), Region::Frame);
  b.CreateBr(over);

  b.SetInsertPoint(inner);
  b.CreateCondBr(b.CreateTrunc(parent, i1), join, frame);

  // A spilled frame comes back to the stack; the value stays in the state for it.
  b.SetInsertPoint(frame);
  llvm::Value* waiting = b.CreateIntToPtr(parent, ptr);
  llvm::Value* header = load(b, i64, waiting, offsetof(BendFrame, shape), Region::Frame);
  llvm::Value* words = b.CreateAnd(header, kSizeMask);
  llvm::Value* bytes = b.CreateShl(words, 3);
  llvm::Value* stack = get_state(b, state, kStateStack);
  llvm::Value* out = b.CreateAnd(b.CreateLShr(header, 16), kSizeMask);
  store(b, b.CreateOr(b.CreateShl(out, 16), b.CreateShl(out, 32)), stack, 0, Region::Frame);
  copy_words(b, stack_at(b, stack, number(kWord)), Place::Stack, b.CreateConstInBoundsGEP1_64(i8, waiting, sizeof(BendFrame)), Place::Memory, b.CreateSub(words, llvm::ConstantInt::get(i64, 1)));
  store(b, header, stack_at(b, stack, b.CreateTrunc(bytes, i32)), 0, Region::Frame);
  set_state(b, state, kStateTop, b.CreateAdd(b.CreateTrunc(bytes, i32), number(kWord)));
  set_state(b, state, kStateParent, load(b, i64, waiting, offsetof(BendFrame, parent), Region::Frame));
  set_state(b, state, kStateSegment, b.CreateTrunc(b.CreateLShr(header, 32), i32));
  llvm::Value* whole = b.CreateAdd(bytes, llvm::ConstantInt::get(i64, sizeof(BendFrame) - kWord));
  llvm::BasicBlock* reuse = block(b, "reuse");
  b.CreateCondBr(b.CreateICmpULE(whole, llvm::ConstantInt::get(i64, BEND_DEVICE_SMALL)), reuse, done);
  b.SetInsertPoint(reuse);
  device_push(b, worker, waiting, whole, 0);
  b.CreateBr(done);

  // The last child to arrive goes on with the continuation; it sees what the others have written.
  b.SetInsertPoint(join);
  llvm::Value* address = b.CreateAnd(parent, BEND_PARENT_ADDRESS);
  llvm::Value* record = b.CreateIntToPtr(address, ptr);
  llvm::Value* place = b.CreateLShr(parent, BEND_PARENT_SLOT);
  if (!options.gpu->plan->sums.empty() && flow.types[type].kind == flow::TypeKind::U32) {
    llvm::BasicBlock *sum = block(b, "sum"), *slot = block(b, "slot");
    b.CreateCondBr(b.CreateICmpNE(b.CreateAnd(place, 3), llvm::ConstantInt::get(i64, 0)), sum, slot);
    b.SetInsertPoint(sum);
    add_to_sum(b, record, place, leaves[0], last, over);
    b.SetInsertPoint(slot);
  }
  store_field(b, type, leaves, b.CreateInBoundsGEP(i8, record, {place}), 0);
  arrive(b, record, last, over);
  b.SetInsertPoint(last);
  set_state(b, state, kStateRecord, address);
  set_state(b, state, kStateSegment, load(b, i32, record, offsetof(BendJoin, segment), Region::Frame));
  b.CreateBr(done);

  b.SetInsertPoint(over);
  next_segment(b, state, BEND_SEGMENT_NONE);
  b.CreateBr(done);
  b.SetInsertPoint(done);
}

// The value of a perfect tree whose task's parent was a spilled frame.
void ModuleEmitter::emit_relay(Builder& b, llvm::Value* worker, llvm::Value* state, TypeId type, llvm::Value* join) {
  Leaves words;
  for (flow::Leaf leaf : layouts.of(type).leaves) words.push_back(load(b, leaf_type(leaf.kind), join, BEND_JOIN_HEADER + leaf.offset, Region::Frame));
  set_state(b, state, kStateParent, load(b, i64, join, offsetof(BendJoin, parent), Region::Frame));
  device_free(b, worker, join, relay_bytes(type));
  set_levels(b, worker, state, number(0), false);
  empty_stack(b, state, type);
  set_words(b, state, words);
  next_segment(b, state, options.gpu->plan->out.at(type.index));
}

uint32_t ModuleEmitter::relay_bytes(TypeId type) { return BEND_JOIN_HEADER + (layouts.of(type).size + 7) / 8 * 8; }

// A parent word that names a join record or the root. The value of a perfect tree comes from other threads, which have no stack for a frame.
llvm::Value* ModuleEmitter::relayed(Builder& b, llvm::Value* worker, llvm::Value* parent, TypeId type) {
  llvm::BasicBlock *entry = b.GetInsertBlock(), *frame = block(b, "relay"), *done = block(b, "relayed");
  llvm::Value* is_frame = b.CreateAnd(b.CreateICmpNE(parent, llvm::ConstantInt::get(i64, 0)), b.CreateICmpEQ(b.CreateAnd(parent, 1), llvm::ConstantInt::get(i64, 0)));
  b.CreateCondBr(is_frame, frame, done, unlikely_);
  b.SetInsertPoint(frame);
  llvm::Value* join = alloc(b, worker, relay_bytes(type));
  store(b, parent, join, offsetof(BendJoin, parent), Region::Frame);
  store(b, number(1), join, offsetof(BendJoin, remaining), Region::Frame);
  store(b, number(options.gpu->plan->relay.at(type.index)), join, offsetof(BendJoin, segment), Region::Frame);
  llvm::Value* word = b.CreateOr(b.CreatePtrToInt(join, i64), uint64_t{1} | uint64_t{BEND_JOIN_HEADER} << BEND_PARENT_SLOT);
  llvm::BasicBlock* from = b.GetInsertBlock();
  b.CreateBr(done);
  b.SetInsertPoint(done);
  llvm::PHINode* out = b.CreatePHI(i64, 2);
  out->addIncoming(parent, entry);
  out->addIncoming(word, from);
  return out;
}

}  // namespace bendc::codegen
