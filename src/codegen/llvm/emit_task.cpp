// Tasks as a thread sees them: when the one that runs gives its forks away, places in the queue for others, their records.
#include <cstddef>

#include "codegen/gpu/machine_plan.h"
#include "codegen/llvm/device.h"
#include "codegen/llvm/emitter.h"
#include "runtime/gpu/device_abi.h"

namespace bendc::codegen {

using flow::FuncId;

namespace {
constexpr uint32_t kPollTurns = 16;                // between two looks at whether there are tasks to take
}  // namespace

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

}  // namespace bendc::codegen
