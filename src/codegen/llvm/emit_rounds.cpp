// A round: the kernel's loop over the tasks of the queue, and what a thread keeps of the heap from one round to the next.
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <cstddef>

#include "codegen/gpu/machine_plan.h"
#include "codegen/llvm/device.h"
#include "codegen/llvm/emitter.h"
#include "runtime/gpu/device_abi.h"

namespace bendc::codegen {

// log2 of the distance of a thread record's words, in words.
uint32_t ModuleEmitter::device_record_shift() const { return options.target == TargetKind::Device && !options.launches ? BEND_LANE_BITS : 0; }

ModuleEmitter::ThreadRecord ModuleEmitter::load_thread_record(Builder& b, llvm::Value* records, llvm::Value* thread) {
  const uint32_t shift = device_record_shift();
  llvm::Value* warp = b.CreateMul(b.CreateZExt(b.CreateLShr(thread, shift), i64), llvm::ConstantInt::get(i64, sizeof(BendDeviceThread) << shift));
  llvm::Value* lane = b.CreateMul(b.CreateZExt(b.CreateAnd(thread, (1u << shift) - 1), i64), llvm::ConstantInt::get(i64, 8));
  llvm::Value* place = b.CreateIntToPtr(b.CreateAdd(b.CreateAdd(records, warp), lane), ptr);
  return {place, load_early(b, i64, place, offsetof(BendDeviceThread, bump) << shift), load_early(b, i64, place, offsetof(BendDeviceThread, limit) << shift)};
}

// Stores only: to ptxas each may be what a load behind it reads, so what the thread needs from memory at its start is loaded before.
llvm::Value* ModuleEmitter::open_device_thread(Builder& b, llvm::Value* control, const ThreadRecord& own) {
  llvm::BasicBlock& top = b.GetInsertBlock()->getParent()->getEntryBlock();
  Builder entry(&top, top.begin());
  llvm::AllocaInst* worker = entry.CreateAlloca(i8, number(kDeviceWorkerBytes));
  worker->setAlignment(llvm::Align(8));
  store(b, b.CreatePtrToInt(control, i64), worker, kDeviceWorkerControl, Region::Frame);
  store(b, b.CreatePtrToInt(own.place, i64), worker, kDeviceWorkerThread, Region::Frame);
  store(b, llvm::ConstantInt::get(i64, 0), worker, kDeviceWorkerGoesOn, Region::Frame);
  store(b, own.bump, worker, kDeviceWorkerBump, Region::Frame);
  store(b, own.limit, worker, kDeviceWorkerLimit, Region::Frame);
  return worker;
}

void ModuleEmitter::close_device_thread(Builder& b, llvm::Value* worker, llvm::Value* place) {
  const uint32_t shift = device_record_shift();
  store(b, load(b, i64, worker, kDeviceWorkerBump, Region::Frame), place, offsetof(BendDeviceThread, bump) << shift, Region::Frame);
  store(b, load(b, i64, worker, kDeviceWorkerLimit, Region::Frame), place, offsetof(BendDeviceThread, limit) << shift, Region::Frame);
}

llvm::Value* ModuleEmitter::control_field(Builder& b, llvm::Type* type, llvm::Value* control, size_t offset) {
  return load(b, type, control, static_cast<uint32_t>(offset), Region::Frame);
}

// A word that other threads write while this one runs.
llvm::Value* ModuleEmitter::load_relaxed(Builder& b, llvm::Type* type, llvm::Value* base, size_t offset) {
  llvm::LoadInst* word = b.CreateAlignedLoad(type, b.CreateConstGEP1_64(i8, base, offset), llvm::Align(type->getIntegerBitWidth() / 8));
  word->setAtomic(llvm::AtomicOrdering::Monotonic, device_scope());
  return word;
}

// Threads whose tasks have ended ask for the next one; where segments loop, or launch grids, tasks go to threads by stride.
bool ModuleEmitter::tasks_on_request() const { return !options.launches && !options.gpu->plan->loops; }

// What counts the tasks that were asked for: a word of the block on a device, of the round in the emulator.
llvm::Value* ModuleEmitter::taken_counter(Builder& b, llvm::Value* worker) {
  if (options.target != TargetKind::Device) return b.CreateConstGEP1_64(i8, device_control(b, worker), offsetof(BendDeviceControl, next_task));
  constexpr unsigned kShared = 3;
  if (!taken_) {
    taken_ = new llvm::GlobalVariable(ir, i32, false, llvm::GlobalValue::InternalLinkage, llvm::PoisonValue::get(i32), "bend.taken", nullptr, llvm::GlobalValue::NotThreadLocal, kShared);
    taken_->setAlignment(llvm::Align(4));
  }
  return taken_;
}

// Whether the tasks that the thread could ask for have all been taken.
llvm::Value* ModuleEmitter::are_tasks_taken(Builder& b, llvm::Value* worker) {
  llvm::LoadInst* taken = b.CreateAlignedLoad(i32, taken_counter(b, worker), llvm::Align(4));
  taken->setAtomic(llvm::AtomicOrdering::Monotonic, device_scope());
  return b.CreateICmpUGE(taken, load(b, i32, worker, kDeviceWorkerEnd, Region::Frame));
}

llvm::Value* ModuleEmitter::load_early(Builder& b, llvm::Type* type, llvm::Value* base, size_t offset) { return load_early(b, type, base, offset, 1)[0]; }

Leaves ModuleEmitter::load_early(Builder& b, llvm::Type* type, llvm::Value* base, size_t offset, uint32_t count) {
  Leaves out;
  if (options.target != TargetKind::Device) {
    for (uint32_t i = 0; i < count; ++i) out.push_back(control_field(b, type, base, offset + i * (type->getIntegerBitWidth() / 8)));
    return out;
  }
  const bool wide = type == i64;
  llvm::Value* address = b.CreatePtrToInt(b.CreateConstGEP1_64(i8, base, offset), i64);
  std::string to, constraints;
  for (uint32_t i = 0; i < count; ++i) {
    to += (i ? ", $" : "$") + std::to_string(i);
    constraints += wide ? "=l," : "=r,";
  }
  std::string text = "ld.global" + (count > 1 ? ".v" + std::to_string(count) : "") + (wide ? ".b64 " : ".b32 ") + (count > 1 ? "{" + to + "}" : to) + ", [$" + std::to_string(count) + "];";
  llvm::Type* result = count > 1 ? static_cast<llvm::Type*>(llvm::StructType::get(context, llvm::SmallVector<llvm::Type*, 4>(count, type))) : type;
  llvm::Value* loaded = b.CreateCall(llvm::InlineAsm::get(llvm::FunctionType::get(result, {i64}, false), text, constraints + "l", true), {address});
  for (uint32_t i = 0; i < count; ++i) out.push_back(count > 1 ? b.CreateExtractValue(loaded, i) : loaded);
  return out;
}

// The thread's next task of the round; to `none` when there is none, or some thread has failed.
void ModuleEmitter::take_next_task(Builder& b, llvm::Value* worker, llvm::Value* state, llvm::BasicBlock* none) {
  llvm::Value* control = device_control(b, worker);
  llvm::BasicBlock *look = block(b, "look"), *take = block(b, "take");
  llvm::Value *index = load(b, i32, worker, kDeviceWorkerIndex, Region::Frame), *stride = load(b, i32, worker, kDeviceWorkerStride, Region::Frame), *some = nullptr;
  if (tasks_on_request()) {
    llvm::Value* taken = device_add(b, taken_counter(b, worker), number(1));
    some = b.CreateICmpULT(taken, load(b, i32, worker, kDeviceWorkerEnd, Region::Frame));
    if (options.target == TargetKind::Device) {
      // A block has every `stride`th run of 32 tasks, from `index` on.
      llvm::Value* run = b.CreateAdd(b.CreateMul(b.CreateLShr(taken, BEND_LANE_BITS), stride), index);
      index = b.CreateOr(b.CreateShl(run, BEND_LANE_BITS), b.CreateAnd(taken, BEND_LANES - 1));
    } else {
      index = b.CreateAdd(taken, stride);
    }
  } else {
    index = b.CreateAdd(index, stride);
    store(b, index, worker, kDeviceWorkerIndex, Region::Frame);
    some = b.CreateICmpULT(index, load(b, i32, worker, kDeviceWorkerEnd, Region::Frame));
  }
  b.CreateCondBr(some, look, none);
  b.SetInsertPoint(look);
  // Both are under way together; the record of a task that does not begin is there, too.
  llvm::Value* error = load_relaxed(b, i64, control, offsetof(BendDeviceControl, error));
  begin_task(b, worker, state, index);
  b.CreateCondBr(b.CreateICmpEQ(error, llvm::ConstantInt::get(i64, 0)), take, none);
  b.SetInsertPoint(take);
}

// Task `index` of the round to the state.
void ModuleEmitter::begin_task(Builder& b, llvm::Value* worker, llvm::Value* state, llvm::Value* index) {
  llvm::Value* control = device_control(b, worker);
  llvm::BasicBlock* run = block(b, "run");
  llvm::Value* fresh = index;
  if (!options.gpu->plan->trees.empty()) {
    // Joins whose awaited tree has come: their own segment goes on.
    llvm::BasicBlock *resume = block(b, "resume"), *begin = block(b, "begin");
    llvm::Value* list = b.CreateIntToPtr(load_early(b, i64, control, offsetof(BendDeviceControl, in_resumes)), ptr);
    llvm::Value* resumes = control_field(b, i32, control, offsetof(BendDeviceControl, in_resume_count));
    fresh = b.CreateSub(index, resumes);
    b.CreateCondBr(b.CreateICmpULT(index, resumes), resume, begin);
    b.SetInsertPoint(resume);
    llvm::Value* waiting = load(b, i64, b.CreateInBoundsGEP(i64, list, {b.CreateZExt(index, i64)}), 0, Region::Frame);
    set_state(b, state, kStateRecord, waiting);
    set_state(b, state, kStateSegment, load(b, i32, b.CreateIntToPtr(waiting, ptr), offsetof(BendJoin, segment), Region::Frame));
    // As a task without levels; the join's own are taken when it goes on.
    set_levels(b, worker, state, number(0), true);
    b.CreateBr(run);
    b.SetInsertPoint(begin);
  }
  llvm::Value* queue = b.CreateIntToPtr(control_field(b, i64, control, offsetof(BendDeviceControl, in_queue)), ptr);
  llvm::Value* task = b.CreateInBoundsGEP(i8, queue, {b.CreateMul(b.CreateZExt(fresh, i64), llvm::ConstantInt::get(i64, options.gpu->plan->task_stride))});
  set_state(b, state, kStateParent, load(b, i64, task, offsetof(BendTaskRecord, parent), Region::Frame));
  set_state(b, state, kStateRecord, b.CreatePtrToInt(task, i64));
  set_state(b, state, kStateSegment, load(b, i32, task, offsetof(BendTaskRecord, segment), Region::Frame));
  b.CreateBr(run);
  b.SetInsertPoint(run);
}

void ModuleEmitter::begin_kernel(Builder& b, bool starts_next) {
  auto text = [&](const char* words) { b.CreateCall(llvm::InlineAsm::get(llvm::FunctionType::get(void_type, false), words, "~{memory}", true)); };
  if (starts_next) text(BEND_OVERLAP_START);
  text(BEND_OVERLAP_WAIT);
}

// A round of the whole grid, or of the emulator: which task is the thread's first, and which it can take later. Threads that have none go to `none`.
ModuleEmitter::RoundStart ModuleEmitter::begin_wide(Builder& b, llvm::Value* control, llvm::Value* thread, llvm::Value* threads, llvm::BasicBlock* none) {
  const bool gpu = options.target == TargetKind::Device;
  llvm::Value* in_count = control_field(b, i32, control, offsetof(BendDeviceControl, in_count));
  llvm::Value* records = load_early(b, i64, control, offsetof(BendDeviceControl, threads));
  // Joins whose awaited tree has come are a round's first work.
  const bool trees = !options.gpu->plan->trees.empty();
  llvm::Value* queue = load_early(b, i64, control, offsetof(BendDeviceControl, in_queue));
  llvm::Value* list = trees ? load_early(b, i64, control, offsetof(BendDeviceControl, in_resumes)) : nullptr;
  llvm::Value* resumes = trees ? load_early(b, i32, control, offsetof(BendDeviceControl, in_resume_count)) : nullptr;
  llvm::Value *index = thread, *stride = threads, *end = in_count, *has_task = nullptr;
  if (tasks_on_request() && gpu) {
    // Each warp of the grid begins with 2^narrow tasks, 32 at most: a narrow round has one in each warp, which goes its own way. The thread that begins
    // with task i has record i: no other has, and a round narrower than the grid uses the records below its width.
    llvm::Value *lane = b.CreateAnd(thread, BEND_LANES - 1), *block_index = b.CreateUDiv(thread, number(BEND_BLOCK_THREADS)), *blocks = b.CreateUDiv(threads, number(BEND_BLOCK_THREADS));
    llvm::Value* warp = b.CreateAdd(b.CreateMul(b.CreateLShr(b.CreateAnd(thread, BEND_BLOCK_THREADS - 1), BEND_LANE_BITS), blocks), block_index);
    llvm::Value* warps = b.CreateLShr(threads, BEND_LANE_BITS);
    llvm::Value* each = b.CreateUDiv(b.CreateSub(b.CreateAdd(in_count, warps), number(1)), warps);
    llvm::Value* log2 = b.CreateSub(number(32), b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, b.CreateSub(each, number(1)), llvm::ConstantInt::getFalse(context)));
    llvm::Value* narrow = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, log2, number(BEND_LANE_BITS));
    thread = b.CreateAdd(b.CreateShl(warp, narrow), lane);
    has_task = b.CreateAnd(b.CreateICmpULT(lane, b.CreateShl(number(1), narrow)), b.CreateICmpULT(thread, in_count));
    // Runs of 32 tasks that are the block's; the last one may be shorter.
    llvm::Value *runs = b.CreateLShr(in_count, BEND_LANE_BITS), *rest = b.CreateAnd(in_count, BEND_LANES - 1);
    llvm::Value* own = b.CreateUDiv(b.CreateAdd(b.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, runs, block_index), b.CreateSub(blocks, number(1))), blocks);
    end = b.CreateAdd(b.CreateShl(own, BEND_LANE_BITS), b.CreateSelect(b.CreateICmpEQ(b.CreateURem(runs, blocks), block_index), rest, number(0)));
    index = block_index;
    stride = blocks;
    llvm::BasicBlock *first = block(b, "first"), *begun = block(b, "begun");
    b.CreateCondBr(b.CreateICmpEQ(b.CreateIntrinsic(i32, llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {}), number(0)), first, begun);
    b.SetInsertPoint(first);
    b.CreateStore(number(BEND_BLOCK_THREADS), taken_counter(b, nullptr));
    b.CreateBr(begun);
    b.SetInsertPoint(begun);
    b.CreateIntrinsic(void_type, llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all, {number(0)});
  } else {
    llvm::Value* spread = control_field(b, i32, control, offsetof(BendDeviceControl, spread));
    index = b.CreateLShr(thread, spread);
    stride = b.CreateLShr(threads, spread);
    if (tasks_on_request()) end = b.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, in_count, stride);
    has_task = b.CreateAnd(b.CreateICmpEQ(b.CreateShl(index, spread), thread), b.CreateICmpULT(index, in_count));
  }
  // Most threads of a narrow round have nothing to do and touch nothing. Those that have something lie apart: one lane of a warp for each task
  // goes through its segments alone, where 32 lanes in 10 segments would take 10 turns each.
  llvm::BasicBlock* some = block(b, "some");
  b.CreateCondBr(has_task, some, none);
  b.SetInsertPoint(some);
  RoundStart out;
  out.index = index;
  out.stride = stride;
  out.end = end;
  out.mode = control_field(b, i32, control, offsetof(BendDeviceControl, mode));
  out.budget = control_field(b, i32, control, offsetof(BendDeviceControl, budget));
  out.own = load_thread_record(b, records, thread);
  llvm::Value* first = gpu && tasks_on_request() ? thread : index;
  auto of_queue = [&](llvm::Value* number) { return b.CreateAdd(queue, b.CreateMul(b.CreateZExt(number, i64), llvm::ConstantInt::get(i64, options.gpu->plan->task_stride))); };
  if (trees) {
    llvm::BasicBlock *resume = block(b, "resume"), *fresh = block(b, "fresh"), *head = block(b, "head");
    out.resumes = b.CreateICmpULT(first, resumes);
    b.CreateCondBr(out.resumes, resume, fresh);
    b.SetInsertPoint(resume);
    llvm::Value* waiting = load(b, i64, b.CreateInBoundsGEP(i64, b.CreateIntToPtr(list, ptr), {b.CreateZExt(first, i64)}), 0, Region::Frame);
    b.CreateBr(head);
    b.SetInsertPoint(fresh);
    llvm::Value* task = of_queue(b.CreateSub(first, resumes));
    b.CreateBr(head);
    b.SetInsertPoint(head);
    llvm::PHINode* record = b.CreatePHI(i64, 2);
    record->addIncoming(waiting, resume);
    record->addIncoming(task, fresh);
    out.task = record;
  } else {
    out.resumes = b.getFalse();
    out.task = of_queue(first);
  }
  for (uint32_t i = 0; i < 2; ++i) out.head[i] = load_early(b, i64, b.CreateIntToPtr(out.task, ptr), sizeof(uint64_t) * i);
  return out;
}

// The first task of a thread, to the state: a task's record, or a join whose awaited tree has come.
void ModuleEmitter::begin_first_task(Builder& b, llvm::Value* worker, llvm::Value* state, const RoundStart& start) {
  static_assert(offsetof(BendTaskRecord, segment) == 0 && offsetof(BendTaskRecord, parent) == 8 && offsetof(BendJoin, segment) == 12);
  llvm::Value *of_task = b.CreateTrunc(start.head[0], i32), *of_join = b.CreateTrunc(b.CreateLShr(start.head[1], 32), i32);
  set_state(b, state, kStateRecord, start.task);
  set_state(b, state, kStateParent, start.head[1]);   // a join has its own
  set_state(b, state, kStateSegment, b.CreateSelect(start.resumes, of_join, of_task));
  // A task begins with its own levels, a join without.
  set_levels(b, worker, state, number(0), true);
}

// What one thread does in a round. A lane whose task has ended takes the next one inside the machine's loop; in a loop around that it would wait
// until the tasks of all lanes have ended. Where segments loop, it does wait: lanes that begin their tasks together walk their arrays together
// (coalesce_loops).
llvm::Function* ModuleEmitter::emit_round() {
  const bool gpu = options.target == TargetKind::Device;
  const bool together = options.gpu->plan->loops;
  llvm::Function* machine = emit_machine(!together);
  llvm::SmallVector<llvm::Type*, 3> params{ptr, i32};
  if (!gpu) params.push_back(i32);
  llvm::Function* round = llvm::Function::Create(llvm::FunctionType::get(void_type, params, false), gpu ? llvm::GlobalValue::ExternalLinkage : llvm::GlobalValue::InternalLinkage,
                                                 gpu ? BEND_KERNEL_NAME : "bend.emulated_round", ir);
  mark_function(round);
  Builder b(llvm::BasicBlock::Create(context, "entry", round));
  llvm::BasicBlock* none = llvm::BasicBlock::Create(context, "none", round);
  Builder(none).CreateRetVoid();
  llvm::Value* control = round->getArg(0);
  RoundStart start, step;
  llvm::BasicBlock *some = nullptr, *wide_from = nullptr, *step_from = nullptr;
  if (gpu) {
    round->setCallingConv(llvm::CallingConv::PTX_Kernel);
    round->addFnAttr("nvvm.maxntid", std::to_string(BEND_BLOCK_THREADS));
    begin_kernel(b, false);
    some = block(b, "begin");
    llvm::BasicBlock *narrow = block(b, "step"), *wide = block(b, "wide");
    b.CreateCondBr(b.CreateICmpNE(round->getArg(1), number(BEND_STEP_NONE)), narrow, wide);
    b.SetInsertPoint(narrow);
    step = begin_step(b, control, round->getArg(1), none);
    step_from = b.GetInsertBlock();
    b.CreateBr(some);
    b.SetInsertPoint(wide);
    auto special = [&](llvm::Intrinsic::ID id) { return b.CreateIntrinsic(i32, id, {}); };
    llvm::Value* size = number(BEND_BLOCK_THREADS);
    llvm::Value* thread = b.CreateAdd(b.CreateMul(special(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x), size), special(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x));
    start = begin_wide(b, control, thread, b.CreateMul(special(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x), size), none);
    wide_from = b.GetInsertBlock();
    b.CreateBr(some);
    b.SetInsertPoint(some);
    auto either = [&](llvm::Value* of_wide, llvm::Value* of_step) {
      llvm::PHINode* phi = b.CreatePHI(of_wide->getType(), 2);
      phi->addIncoming(of_wide, wide_from);
      phi->addIncoming(of_step, step_from);
      return phi;
    };
    start.index = either(start.index, step.index);
    start.stride = either(start.stride, step.stride);
    start.end = either(start.end, step.end);
    start.mode = either(start.mode, step.mode);
    start.budget = either(start.budget, step.budget);
    start.own = {either(start.own.place, step.own.place), either(start.own.bump, step.own.bump), either(start.own.limit, step.own.limit)};
    start.task = either(start.task, step.task);
    for (uint32_t i = 0; i < 2; ++i) start.head[i] = either(start.head[i], step.head[i]);
    start.resumes = either(start.resumes, step.resumes);
  } else {
    start = begin_wide(b, control, round->getArg(1), round->getArg(2), none);
  }
  llvm::Value* worker = open_device_thread(b, control, start.own);
  Builder top(&round->getEntryBlock(), round->getEntryBlock().begin());
  llvm::AllocaInst* state = top.CreateAlloca(state_type());
  open_stack(b, state);
  llvm::Value* most = b.CreateSelect(b.CreateICmpEQ(start.mode, number(BEND_MODE_PARALLEL)), number(0), number(kNoBudget));
  store(b, start.mode, worker, kDeviceWorkerMode, Region::Frame);
  store(b, b.CreateSelect(b.CreateICmpEQ(start.budget, number(0)), most, start.budget), worker, kDeviceWorkerBudget, Region::Frame);
  store(b, number(0), worker, kDeviceWorkerLevels, Region::Frame);
  store(b, start.index, worker, kDeviceWorkerIndex, Region::Frame);
  store(b, start.stride, worker, kDeviceWorkerStride, Region::Frame);
  store(b, start.end, worker, kDeviceWorkerEnd, Region::Frame);
  if (has_spare()) store(b, llvm::ConstantInt::get(i64, 0), worker, kDeviceWorkerSpare, Region::Frame);
  set_state(b, state, kStateSegment, number(BEND_SEGMENT_NONE));
  set_state(b, state, kStateLeft, number(0));
  llvm::BasicBlock *run = block(b, "machine"), *next = block(b, "next"), *done = block(b, "done");
  begin_first_task(b, worker, state, start);
  b.CreateBr(run);
  b.SetInsertPoint(run);
  b.CreateCall(machine, {worker, state});
  b.CreateBr(next);
  b.SetInsertPoint(next);
  if (together) {
    take_next_task(b, worker, state, done);
    b.CreateBr(run);
  } else {
    b.CreateBr(done);
  }
  b.SetInsertPoint(done);
  give_up_spare(b, worker);
  close_device_thread(b, worker, start.own.place);
  b.CreateRetVoid();
  return round;
}

}  // namespace bendc::codegen
