// A device thread's stack of frames. What waits for a value inside the task that runs lies there: results of children, live values, arguments of
// children that have not begun, and on top a header (machine_plan.h). The stack is memory of the thread alone, which a device interleaves by lanes,
// so lanes that go through equal trees touch one line together; frames of the heap are 32 lines.
//
//   stack: bottom header | payload, header | payload, header        top: behind the last header
//
// How frames leave the stack otherwise than by the value that they wait for: emit_deal.cpp.
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <cstddef>

#include "codegen/gpu/machine_plan.h"
#include "codegen/llvm/device.h"
#include "codegen/llvm/emitter.h"
#include "runtime/gpu/device_abi.h"

namespace bendc::codegen {

using flow::TypeId;

namespace {
constexpr uint32_t kBlockBits = 7;                 // log2 of BEND_BLOCK_THREADS
constexpr uint32_t kSharedFrames = 11, kMostSharedStackBytes = 368;   // 128 stacks of the latter are 46 KiB, of 48 that a block can have
}  // namespace

// A device whose threads share blocks of fast memory has the stacks there, the words of a block's threads side by side: lanes that are at different
// depths still use banks of their own. 0: the stack is in the thread's own memory.
uint32_t ModuleEmitter::shared_stack_bytes() const {
  if (options.target != TargetKind::Device || !tasks_on_request()) return 0;
  const uint32_t bytes = std::max(kStackWord + kSharedFrames * options.gpu->plan->largest_frame, options.gpu->plan->fewest_stack_bytes);
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

uint32_t ModuleEmitter::place_of(uint32_t offset, Place place) const { return place == Place::Stack ? (offset / kStackWord * kStackWord << stack_shift()) + offset % kStackWord : offset; }

llvm::Value* ModuleEmitter::stack_at(Builder& b, llvm::Value* stack, llvm::Value* offset) {
  return b.CreateInBoundsGEP(i8, stack, {b.CreateZExt(b.CreateShl(offset, stack_shift()), i64)});
}

llvm::Value* ModuleEmitter::stack_place(Builder& b, llvm::Value* state, llvm::Value* offset) { return stack_at(b, get_state(b, state, kStateStack), offset); }

// The thread's stack, for the state.
void ModuleEmitter::open_stack(Builder& b, llvm::Value* state) {
  if (const uint32_t shared = shared_stack_bytes()) {
    constexpr unsigned kShared = 3;
    llvm::Type* type = llvm::ArrayType::get(i64, uint64_t{shared} / kStackWord * BEND_BLOCK_THREADS);
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
  set_state(b, state, kStateTop, number(kStackWord));
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
  set_state(b, state, kStateParent, move_stack(b, spill_stack_function(), worker, state));
  b.CreateBr(moved);
  b.SetInsertPoint(moved);
  empty_stack(b, state, returns);
  b.CreateBr(room);
  b.SetInsertPoint(room);
  llvm::Value* start = get_state(b, state, kStateTop);
  set_state(b, state, kStateTop, b.CreateAdd(start, number(bytes)));
  return stack_place(b, state, start);
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
  b.CreateCondBr(b.CreateICmpUGT(top, number(kStackWord)), frame, done);
  b.SetInsertPoint(frame);
  llvm::Value* header = load(b, i64, stack_at(b, stack, b.CreateSub(top, number(kStackWord))), 0, Region::Frame);
  llvm::Value* below = b.CreateSub(top, b.CreateShl(b.CreateTrunc(b.CreateAnd(header, kFrameWords), i32), 3));
  visit(header, stack_at(b, stack, below));
  top->addIncoming(below, b.GetInsertBlock());
  b.CreateBr(loop);
  b.SetInsertPoint(done);
}

// Types of what a frame holds of a child that has not begun.
std::vector<TypeId> ModuleEmitter::late_types(const Cut& cut, uint32_t child) const {
  std::vector<TypeId> types = param_types(flow, cut.children[child]);
  if (cut.accumulates) types.pop_back();
  return types;
}

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
    store(b, llvm::ConstantInt::get(i64, plan.frame_header(cut, segment, flow.funcs[cut.func].result)), frame, place_of(cut.frame_bytes - kStackWord, Place::Stack), Region::Frame);
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

}  // namespace bendc::codegen
