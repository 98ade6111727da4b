// Steps: narrow rounds, of which the first block of bend_round does all, and what bend_flip does before as well (device_abi.h). The twin of the code here is step() in
// runtime/gpu/rounds.h; the emulator runs both after every round and compares.
//
// One thread of a step is all that happens between two grids, so it waits for memory as rarely as may be: once for the control block, once for its task's record
// beside its own. What the block's first thread has read and made of the control block all of them take from shared memory. And it does as little as may be, since each of its instructions
// waits for the one before: what nobody needs before the step's end another warp counts.
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <cstddef>

#include "codegen/gpu/machine_plan.h"
#include "codegen/llvm/device.h"
#include "codegen/llvm/emitter.h"
#include "runtime/gpu/device_abi.h"

namespace bendc::codegen {

namespace {
// Of the record in shared memory; kCount 0: nothing runs in this step; kBefore 0: it ends no round, else what count_round takes.
enum StepStart : unsigned { kCount, kMode, kBudget, kResumes, kInQueue, kThreads, kFirstResumes, kBefore, kNext, kGroups };
constexpr uint32_t kSector = 32, kRecordBytes = 128;   // what a load brings to the cache, and what most records have
}  // namespace

llvm::Value* ModuleEmitter::step_start(Builder& b, unsigned field) {
  constexpr unsigned kShared = 3;
  if (!step_start_) {
    llvm::Type* type = llvm::StructType::create(context, {i32, i32, i32, i32, i64, i64, llvm::ArrayType::get(i64, BEND_STEP_TASKS), i32, i32, i64}, "BendStepStart");
    step_start_ = new llvm::GlobalVariable(ir, type, false, llvm::GlobalValue::InternalLinkage, llvm::PoisonValue::get(type), "bend.step_start", nullptr, llvm::GlobalValue::NotThreadLocal, kShared);
    step_start_->setAlignment(llvm::Align(16));
  }
  return b.CreateStructGEP(step_start_->getValueType(), step_start_, field);
}

// bend.step(control, flips): `flips` when the round before is to be ended first.
llvm::Function* ModuleEmitter::step_function() {
  const bool gpu = options.target == TargetKind::Device, trees = !options.gpu->plan->trees.empty();
  llvm::Function* step = llvm::Function::Create(llvm::FunctionType::get(void_type, {ptr, i32}, false), llvm::GlobalValue::InternalLinkage, "bend.step", ir);
  mark_function(step);
  if (gpu) step->addFnAttr(llvm::Attribute::AlwaysInline);
  Builder b(llvm::BasicBlock::Create(context, "entry", step));
  llvm::Value *control = step->getArg(0), *zero = number(0);
  llvm::BasicBlock *start = block(b, "start"), *flip = block(b, "flip"), *ended = block(b, "ended"), *go = block(b, "go");
  b.CreateCondBr(b.CreateICmpEQ(step->getArg(1), zero), start, flip);
  auto set = [&](llvm::Value* value, size_t offset) { store(b, value, control, static_cast<uint32_t>(offset), Region::Frame); };
  auto leave = [&](unsigned field, llvm::Value* value) {
    if (gpu) b.CreateStore(value, step_start(b, field));
  };
  auto load_firsts = [&] {
    Leaves firsts;
    for (uint32_t i = 0; gpu && trees && i < BEND_STEP_TASKS; i += 2) firsts.append(load_early(b, i64, control, offsetof(BendDeviceControl, first_resumes) + sizeof(uint64_t) * i, 2));
    return firsts;
  };
  auto leave_all = [&](llvm::Value* count, llvm::Value* mode, llvm::Value* budget, llvm::Value* resumes, llvm::Value* queue, llvm::Value* threads, const Leaves& firsts) {
    llvm::Value* waits = b.CreateICmpUGT(count, number(BEND_STEP_TASKS));
    leave(kCount, b.CreateSelect(waits, zero, count));
    leave(kMode, mode);
    leave(kBudget, budget);
    leave(kResumes, resumes);
    leave(kInQueue, queue);
    leave(kThreads, threads);
    for (uint32_t i = 0; i < firsts.size(); ++i) b.CreateStore(firsts[i], b.CreateConstInBoundsGEP1_64(i64, step_start(b, kFirstResumes), i));
    // The first task's record and the thread's own are on their way while the control block is written. Where there is no task both places are memory, too.
    if (gpu) {
      if (!firsts.empty()) queue = b.CreateSelect(b.CreateICmpEQ(resumes, zero), queue, firsts[0]);
      for (uint32_t offset : {0u, uint32_t{offsetof(BendDeviceThread, limit)} << device_record_shift()}) prefetch(b, threads, offset);
      prefetch(b, queue, 0);
      prefetch_record(b, queue);
    }
    set(b.CreateZExt(waits, i32), offsetof(BendDeviceControl, waits));
  };
#define LOAD(type, name) llvm::Value* name = load_early(b, type, control, offsetof(BendDeviceControl, name))
#define LOAD_FROM(type, name, count) const Leaves from_##name = load_early(b, type, control, offsetof(BendDeviceControl, name), count)
  b.SetInsertPoint(start);
  {
    LOAD(i32, in_count);
    LOAD(i32, mode);
    LOAD(i32, budget);
    LOAD(i32, in_resume_count);
    LOAD(i64, in_queue);
    LOAD(i64, threads);
    leave(kBefore, zero);
    leave_all(in_count, mode, budget, in_resume_count, in_queue, threads, load_firsts());
  }
  b.CreateRetVoid();

  // All loads together: one wait for seven lines.
  b.SetInsertPoint(flip);
  LOAD_FROM(i32, in_count, 4);
  llvm::Value *in_count = from_in_count[0], *queue_capacity = from_in_count[1], *mode = from_in_count[3];
  LOAD_FROM(i32, spread, 4);
  llvm::Value *wide_trees = from_spread[1], *waits = from_spread[3];
  LOAD(i32, out_count);
  LOAD(i64, groups);
  LOAD(i32, out_resume_count);
  LOAD(i64, error);
  LOAD_FROM(i64, in_queue, 2);
  llvm::Value *in_queue = from_in_queue[0], *out_queue = from_in_queue[1];
  LOAD(i64, threads);
  const Leaves firsts = load_firsts();
  LOAD(i64, in_resumes);
  LOAD(i64, out_resumes);
  LOAD_FROM(i32, warp_capacity, 4);
  llvm::Value *middle = from_warp_capacity[2], *middle_budget = from_warp_capacity[3];
  LOAD(i32, again_budget);
  LOAD_FROM(i32, finished, 4);
  llvm::Value *rounds = from_finished[1], *target = from_finished[2], *sequential_budget = from_finished[3];
  LOAD(i32, resident_threads);
#undef LOAD
#undef LOAD_FROM
  auto least = [&](llvm::Value* x, llvm::Value* y) { return b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, x, y); };
  auto either = [&](llvm::Value* x, llvm::Value* y) { return b.CreateOr(x, y); };
  b.CreateCondBr(either(b.CreateICmpEQ(in_count, zero), b.CreateICmpNE(waits, zero)), ended, go);
  b.SetInsertPoint(ended);
  leave(kCount, zero);
  leave(kBefore, zero);
  b.CreateRetVoid();

  b.SetInsertPoint(go);
  llvm::Value* next = b.CreateAdd(least(out_count, queue_capacity), out_resume_count);
  next = b.CreateSelect(b.CreateICmpEQ(error, llvm::ConstantInt::get(i64, 0)), next, zero);
  // As choose_mode.
  llvm::Value* again = b.CreateICmpEQ(mode, number(BEND_MODE_SEQUENTIAL));
  llvm::Value* wide = b.CreateICmpUGE(next, target);
  llvm::Value* grew = b.CreateICmpUGT(next, b.CreateAdd(in_count, b.CreateLShr(in_count, 2)));
  llvm::Value* warps = b.CreateAnd(groups, (uint64_t{1} << BEND_GROUP_SHIFT) - 1);
  llvm::Value* few = b.CreateAnd(b.CreateAnd(b.CreateICmpULE(next, middle), b.CreateICmpULE(in_count, middle)), b.CreateICmpEQ(warps, llvm::ConstantInt::get(i64, 0)));
  llvm::Value* parallel = either(grew, b.CreateNot(few));
  llvm::Value* next_mode = b.CreateSelect(wide, number(BEND_MODE_SEQUENTIAL), b.CreateSelect(parallel, number(BEND_MODE_PARALLEL), number(BEND_MODE_MIDDLE)));
  llvm::Value* next_budget = b.CreateSelect(wide, b.CreateSelect(again, again_budget, sequential_budget), b.CreateSelect(parallel, zero, middle_budget));
  leave(kBefore, in_count);
  leave(kNext, next);
  leave(kGroups, groups);
  leave_all(next, next_mode, next_budget, out_resume_count, out_queue, threads, firsts);
  set(next_mode, offsetof(BendDeviceControl, mode));
  set(next_budget, offsetof(BendDeviceControl, budget));
  set(next, offsetof(BendDeviceControl, in_count));
  set(out_resume_count, offsetof(BendDeviceControl, in_resume_count));
  set(out_resumes, offsetof(BendDeviceControl, in_resumes));
  set(in_resumes, offsetof(BendDeviceControl, out_resumes));
  set(out_queue, offsetof(BendDeviceControl, in_queue));
  set(in_queue, offsetof(BendDeviceControl, out_queue));
  set(zero, offsetof(BendDeviceControl, out_resume_count));
  set(zero, offsetof(BendDeviceControl, out_count));
  set(zero, offsetof(BendDeviceControl, next_task));
  set(llvm::ConstantInt::get(i64, 0), offsetof(BendDeviceControl, groups));

  llvm::Value* wanted = either(either(b.CreateNot(wide), b.CreateICmpULT(next, resident_threads)), b.CreateICmpNE(wide_trees, zero));
  set(b.CreateZExt(wanted, i32), offsetof(BendDeviceControl, groups_wanted));
  set(b.CreateAdd(rounds, number(1)), offsetof(BendDeviceControl, rounds));
  if (!gpu) count_round(b, control, in_count, next, groups);
  b.CreateRetVoid();
  return step;
}

// What ending a round of in_count tasks and `groups` leaves in the control block for later rounds and the host, not for the tasks of this one, `next` many.
void ModuleEmitter::count_round(Builder& b, llvm::Value* control, llvm::Value* in_count, llvm::Value* next, llvm::Value* groups) {
  auto set = [&](llvm::Value* value, size_t offset) { store(b, value, control, static_cast<uint32_t>(offset), Region::Frame); };
  auto least = [&](llvm::Value* x, llvm::Value* y) { return b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, x, y); };
  auto wide_word = [&](llvm::Value* x) { return b.CreateZExt(x, i64); };
  auto word = [&](llvm::Type* type, size_t offset) { return load_early(b, type, control, offset); };
  llvm::Value *resident_threads = word(i32, offsetof(BendDeviceControl, resident_threads)), *most_spread = word(i32, offsetof(BendDeviceControl, most_spread));
  llvm::Value *group_capacity = word(i32, offsetof(BendDeviceControl, group_capacity)), *warp_capacity = word(i32, offsetof(BendDeviceControl, warp_capacity));
  const Leaves tasks = load_early(b, i64, control, offsetof(BendDeviceControl, tasks), 2), trees = load_early(b, i64, control, offsetof(BendDeviceControl, tree_groups), 2);
  // The largest shift by which `next` stays within the threads.
  auto zeros = [&](llvm::Value* x) { return b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, x, llvm::ConstantInt::getFalse(context)); };
  llvm::Value* shift = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, b.CreateSub(zeros(next), zeros(resident_threads)), number(0));
  llvm::Value* fits = b.CreateICmpULE(b.CreateShl(wide_word(next), wide_word(shift)), wide_word(resident_threads));
  shift = b.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, shift, b.CreateZExt(b.CreateNot(fits), i32));
  set(least(shift, most_spread), offsetof(BendDeviceControl, spread));
  set(b.CreateAdd(tasks[0], wide_word(in_count)), offsetof(BendDeviceControl, tasks));
  set(b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, tasks[1], wide_word(in_count)), offsetof(BendDeviceControl, widest));
  llvm::Value* warps = b.CreateAnd(groups, (uint64_t{1} << BEND_GROUP_SHIFT) - 1);
  set(b.CreateAdd(trees[0], least(b.CreateLShr(groups, BEND_GROUP_SHIFT), wide_word(group_capacity))), offsetof(BendDeviceControl, tree_groups));
  set(b.CreateAdd(trees[1], least(warps, wide_word(warp_capacity))), offsetof(BendDeviceControl, tree_warps));
}

void ModuleEmitter::prefetch(Builder& b, llvm::Value* address, uint32_t offset) {
  b.CreateCall(llvm::InlineAsm::get(llvm::FunctionType::get(void_type, {i64}, false), "prefetch.global.L1 [$0+" + std::to_string(offset) + "];", "l", true), {address});
}

// Words behind a record's head to the cache nearest to the thread, as far as most records go: whoever goes on from there finds them.
void ModuleEmitter::prefetch_record(Builder& b, llvm::Value* record) {
  for (uint32_t offset = kSector; offset < kRecordBytes; offset += kSector) prefetch(b, record, offset);
  prefetch(b, record, kRecordBytes - sizeof(uint64_t));
}

// In a step the block that is alone ends the round before, by its first thread. Each warp has a task at most, by its first lane; threads without one end. Leaves the
// builder where a thread has one.
ModuleEmitter::RoundStart ModuleEmitter::begin_step(Builder& b, llvm::Value* control, llvm::Value* way, llvm::BasicBlock* none) {
  static_assert(BEND_BLOCK_THREADS >> BEND_LANE_BITS == BEND_STEP_TASKS);
  llvm::BasicBlock *lead = block(b, "lead"), *meet = block(b, "meet"), *runs = block(b, "step_runs");
  // The blocks of what follows take their places: this one leaves them all but its own.
  b.CreateCall(llvm::InlineAsm::get(llvm::FunctionType::get(void_type, false), BEND_OVERLAP_START, "~{memory}", true));
  llvm::Value* thread = b.CreateIntrinsic(i32, llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {});
  b.CreateCondBr(b.CreateICmpEQ(thread, number(0)), lead, meet);
  b.SetInsertPoint(lead);
  if (tasks_on_request()) b.CreateStore(number(BEND_BLOCK_THREADS), taken_counter(b, nullptr));
  b.CreateCall(step_, {control, b.CreateZExt(b.CreateICmpEQ(way, number(BEND_STEP_NEXT)), i32)})->setCallingConv(step_->getCallingConv());
  b.CreateBr(meet);
  b.SetInsertPoint(meet);
  b.CreateIntrinsic(void_type, llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all, {number(0)});
  auto take = [&](unsigned field, llvm::Type* type) { return b.CreateLoad(type, step_start(b, field)); };
  // The rest of the round before is counted by the warp that is the last to have a task.
  llvm::BasicBlock *counter = block(b, "counter"), *count_it = block(b, "count"), *counted = block(b, "counted");
  b.CreateCondBr(b.CreateICmpEQ(thread, number(BEND_BLOCK_THREADS - BEND_LANES)), counter, counted);
  b.SetInsertPoint(counter);
  llvm::Value* before = take(kBefore, i32);
  b.CreateCondBr(b.CreateICmpNE(before, number(0)), count_it, counted);
  b.SetInsertPoint(count_it);
  count_round(b, control, before, take(kNext, i32), take(kGroups, i64));
  b.CreateBr(counted);
  b.SetInsertPoint(counted);
  llvm::Value *count = take(kCount, i32), *mode = take(kMode, i32), *budget = take(kBudget, i32), *resumes = take(kResumes, i32), *queue = take(kInQueue, i64), *threads = take(kThreads, i64);
  llvm::Value *index = b.CreateLShr(thread, BEND_LANE_BITS), *lane = b.CreateAnd(thread, BEND_LANES - 1);
  b.CreateCondBr(b.CreateAnd(b.CreateICmpEQ(lane, number(0)), b.CreateICmpULT(index, count)), runs, none);
  b.SetInsertPoint(runs);
  RoundStart out;
  // Nobody has a second task.
  out.index = tasks_on_request() ? number(0) : index;
  out.stride = tasks_on_request() ? number(1) : number(BEND_STEP_TASKS);
  out.end = tasks_on_request() ? number(0) : count;
  out.mode = mode;
  out.budget = budget;
  llvm::Value* fresh = index;
  out.resumes = b.getFalse();
  llvm::Value* waiting = nullptr;
  if (!options.gpu->plan->trees.empty()) {
    waiting = b.CreateLoad(i64, b.CreateInBoundsGEP(i64, step_start(b, kFirstResumes), {b.CreateZExt(index, i64)}));
    out.resumes = b.CreateICmpULT(index, resumes);
    fresh = b.CreateSub(index, resumes);
  }
  out.task = b.CreateAdd(queue, b.CreateMul(b.CreateZExt(fresh, i64), llvm::ConstantInt::get(i64, options.gpu->plan->task_stride)));
  if (waiting) out.task = b.CreateSelect(out.resumes, waiting, out.task);
  llvm::Value* record = b.CreateIntToPtr(out.task, ptr);
  for (uint32_t i = 0; i < 2; ++i) out.head[i] = load_early(b, i64, record, sizeof(uint64_t) * i);
  // Where tasks are dealt to threads by number, task i has record i, else that of the thread that it would have in a round of all warps.
  out.own = load_thread_record(b, threads, tasks_on_request() ? index : thread);
  // The first task's is on its way.
  llvm::BasicBlock *others = block(b, "others"), *fetched = block(b, "fetched");
  b.CreateCondBr(b.CreateICmpEQ(index, number(0)), fetched, others);
  b.SetInsertPoint(others);
  prefetch_record(b, out.task);
  b.CreateBr(fetched);
  b.SetInsertPoint(fetched);
  return out;
}

}  // namespace bendc::codegen
