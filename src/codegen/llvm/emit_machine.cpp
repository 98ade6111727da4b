// The machine: the kernel's loop over tasks and over the segments of each task, and the small segments between functions.
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <cstddef>

#include "codegen/gpu/machine_plan.h"
#include "codegen/llvm/device.h"
#include "codegen/llvm/emit_grid.h"
#include "codegen/llvm/emit_launch.h"
#include "codegen/llvm/emitter.h"
#include "codegen/llvm/names.h"
#include "runtime/gpu/device_abi.h"

namespace bendc::codegen {

using flow::FuncId;
using flow::TypeId;

bool ModuleEmitter::is_async(FuncId id) const { return options.gpu->device->async[id.index]; }

llvm::FunctionType* ModuleEmitter::segment_type() { return llvm::FunctionType::get(void_type, {ptr, ptr}, false); }

llvm::Function* ModuleEmitter::declare_segment(FuncId id) {
  llvm::Function* segment = llvm::Function::Create(segment_type(), llvm::GlobalValue::InternalLinkage, "bend.segment." + mangle(flow.funcs[id].name), ir);
  mark_function(segment);
  mark_worker(segment);
  if (options.target == TargetKind::Device) segment->addFnAttr(llvm::Attribute::AlwaysInline);
  return segment;
}

// An ordinary function as a task: arguments from the state, the result to whatever waits.
void ModuleEmitter::emit_call_segment(Builder& b, llvm::Value* worker, llvm::Value* state, FuncId func) {
  const std::vector<TypeId> types = param_types(flow, func);
  const Leaves words = get_words(b, state, types);
  const TypeId result = flow.funcs[func].result;
  llvm::SmallVector<llvm::Value*, 8> args{worker};
  llvm::Value* area = nullptr;
  if (returns_indirect(result)) {
    area = b.CreateAlloca(i8, number(layouts.of(result).size));
    llvm::cast<llvm::AllocaInst>(area)->setAlignment(llvm::Align(8));
    args.push_back(area);
  }
  args.append(words.begin(), words.end());
  llvm::CallInst* call = b.CreateCall(function(func, false), args);
  call->setCallingConv(function(func, false)->getCallingConv());
  machine_return(b, worker, state, result, area ? load_frame(b, result, area) : split_result(b, call, result));
}

// The code of a segment that is no function of the program: goes on with another segment.
void ModuleEmitter::emit_small_segment(Builder& b, llvm::Value* worker, llvm::Value* state, const Segment& segment) {
  const MachinePlan& plan = *options.gpu->plan;
  llvm::Value* record = b.CreateIntToPtr(get_state(b, state, kStateRecord), ptr);
  switch (segment.kind) {
    case Segment::Kind::Run:
    case Segment::Kind::Call:
      return;
    case Segment::Kind::Load:
      set_words(b, state, load_record(b, param_types(flow, segment.func), plan.task_payload.at(segment.func.index), record));
      next_segment(b, state, plan.run[segment.func.index]);
      return;
    case Segment::Kind::NextChild: {
      const Cut& cut = plan.cuts[segment.cut];
      const uint32_t child = segment.child;
      store(b, number(cut.payload.offsets[child]), record, offsetof(BendFrame, slot), Region::Frame);
      store(b, number(child + 1 < cut.children.size() ? cut.next_child + child : cut.resume_frame), record, offsetof(BendFrame, segment), Region::Frame);
      set_words(b, state, load_record(b, param_types(flow, cut.children[child]), cut.late[child - 1], record));
      set_state(b, state, kStateParent, get_state(b, state, kStateRecord));
      next_segment(b, state, plan.run[cut.children[child].index]);
      return;
    }
    case Segment::Kind::ResumeFrame:
    case Segment::Kind::ResumeJoin: {
      const Cut& cut = plan.cuts[segment.cut];
      const Leaves words = load_record(b, param_types(flow, cut.continuation), cut.payload, record);
      set_state(b, state, kStateParent, load(b, i64, record, offsetof(BendFrame, parent), Region::Frame));
      device_free(b, worker, record, segment.kind == Segment::Kind::ResumeFrame ? cut.frame_bytes : cut.join_bytes);
      set_words(b, state, words);
      next_segment(b, state, plan.run[cut.continuation.index]);
      return;
    }
  }
}

// Runs the task in the state to its end.
llvm::Function* ModuleEmitter::emit_machine() {
  const MachinePlan& plan = *options.gpu->plan;
  llvm::Function* machine = llvm::Function::Create(segment_type(), llvm::GlobalValue::InternalLinkage, "bend.machine", ir);
  mark_function(machine);
  if (options.target == TargetKind::Device) machine->addFnAttr(llvm::Attribute::AlwaysInline);
  llvm::Value *worker = machine->getArg(0), *state = machine->getArg(1);
  Builder b(llvm::BasicBlock::Create(context, "entry", machine));
  llvm::BasicBlock *loop = block(b, "loop"), *over = block(b, "over");
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  set_state(b, state, kStateSteps, b.CreateAdd(get_state(b, state, kStateSteps), number(1)));
  llvm::SwitchInst* cases = b.CreateSwitch(get_state(b, state, kStateSegment), over, static_cast<unsigned>(plan.segments.size()));
  for (uint32_t i = 0; i < plan.segments.size(); ++i) {
    const Segment& segment = plan.segments[i];
    llvm::BasicBlock* arm = block(b, "segment");
    cases->addCase(llvm::cast<llvm::ConstantInt>(number(i)), arm);
    b.SetInsertPoint(arm);
    llvm::Function* body = nullptr;
    if (segment.kind == Segment::Kind::Run) body = function(segment.func, false);
    if (segment.kind == Segment::Kind::Call) {
      body = helper("bend.task." + mangle(flow.funcs[segment.func].name), segment_type(), [&](llvm::Function* fn, Builder& inner) {
        if (options.target == TargetKind::Device) fn->addFnAttr(llvm::Attribute::AlwaysInline);
        emit_call_segment(inner, fn->getArg(0), fn->getArg(1), segment.func);
      });
    }
    if (body) b.CreateCall(body, {worker, state})->setCallingConv(body->getCallingConv());
    else emit_small_segment(b, worker, state, segment);
    b.CreateBr(loop);
  }
  b.SetInsertPoint(over);
  b.CreateRetVoid();
  return machine;
}

// One atomic for all lanes that append to one list together: up to 32 forks of a frontier. `activemask` says which lanes came here at once; whichever
// those are, each gets places of its own, so nothing depends on its choice. In a function of its own: LLVM may not move the lanes apart.
llvm::Value* ModuleEmitter::device_append(Builder& b, llvm::Value* cursor, uint32_t count) {
  // With nested launches lanes that append together may append to different lists.
  if (options.target != TargetKind::Device || options.launches) return device_add(b, cursor, number(count));
  llvm::Function* function = helper("bend.append." + std::to_string(count), llvm::FunctionType::get(i32, {ptr}, false), [&](llvm::Function* fn, Builder& body) {
    fn->addFnAttr(llvm::Attribute::NoInline);
    fn->addFnAttr(llvm::Attribute::Convergent);
    llvm::Value* mask = body.CreateIntrinsic(i32, llvm::Intrinsic::nvvm_activemask, {});
    llvm::Value* below = body.CreateAnd(mask, body.CreateIntrinsic(i32, llvm::Intrinsic::nvvm_read_ptx_sreg_lanemask_lt, {}));
    llvm::Value* rank = body.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, below);
    llvm::BasicBlock *entry = body.GetInsertBlock(), *lead = block(body, "lead"), *share = block(body, "share");
    body.CreateCondBr(body.CreateICmpEQ(rank, number(0)), lead, share);
    body.SetInsertPoint(lead);
    llvm::Value* all = body.CreateMul(body.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, mask), number(count));
    llvm::Value* taken = device_add(body, fn->getArg(0), all);
    body.CreateBr(share);
    body.SetInsertPoint(share);
    llvm::PHINode* mine = body.CreatePHI(i32, 2);
    mine->addIncoming(number(0), entry);
    mine->addIncoming(taken, lead);
    llvm::Value* leader = body.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, mask, llvm::ConstantInt::getFalse(context));
    llvm::Value* base = body.CreateIntrinsic(i32, llvm::Intrinsic::nvvm_shfl_sync_idx_i32, {mask, mine, leader, number(31)});
    body.CreateRet(body.CreateAdd(base, body.CreateMul(rank, number(count))));
  });
  llvm::CallInst* call = b.CreateCall(function, {cursor});
  call->setCallingConv(function->getCallingConv());
  call->setConvergent();
  return call;
}

// log2 of the distance of a thread record's words, in words.
uint32_t ModuleEmitter::device_record_shift() const { return options.target == TargetKind::Device && !options.launches ? BEND_LANE_BITS : 0; }

llvm::Value* ModuleEmitter::open_device_thread(Builder& b, llvm::Value* control, llvm::Value* thread, llvm::Value*& own_record) {
  llvm::BasicBlock& top = b.GetInsertBlock()->getParent()->getEntryBlock();
  Builder entry(&top, top.begin());
  llvm::AllocaInst* worker = entry.CreateAlloca(i8, number(kDeviceWorkerBytes));
  worker->setAlignment(llvm::Align(8));
  const uint32_t shift = device_record_shift();
  llvm::Value* records = load(b, i64, control, offsetof(BendDeviceControl, threads), Region::Frame);
  llvm::Value* warp = b.CreateMul(b.CreateZExt(b.CreateLShr(thread, shift), i64), llvm::ConstantInt::get(i64, sizeof(BendDeviceThread) << shift));
  llvm::Value* lane = b.CreateMul(b.CreateZExt(b.CreateAnd(thread, (1u << shift) - 1), i64), llvm::ConstantInt::get(i64, 8));
  llvm::Value* own = b.CreateAdd(b.CreateAdd(records, warp), lane);
  own_record = b.CreateIntToPtr(own, ptr);
  store(b, b.CreatePtrToInt(control, i64), worker, kDeviceWorkerControl, Region::Frame);
  store(b, own, worker, kDeviceWorkerThread, Region::Frame);
  store(b, llvm::ConstantInt::get(i64, 0), worker, kDeviceWorkerGoesOn, Region::Frame);
  store(b, load(b, i64, own_record, offsetof(BendDeviceThread, bump) << shift, Region::Frame), worker, kDeviceWorkerBump, Region::Frame);
  store(b, load(b, i64, own_record, offsetof(BendDeviceThread, limit) << shift, Region::Frame), worker, kDeviceWorkerLimit, Region::Frame);
  return worker;
}

void ModuleEmitter::close_device_thread(Builder& b, llvm::Value* worker, llvm::Value* own_record) {
  const uint32_t shift = device_record_shift();
  store(b, load(b, i64, worker, kDeviceWorkerBump, Region::Frame), own_record, offsetof(BendDeviceThread, bump) << shift, Region::Frame);
  store(b, load(b, i64, worker, kDeviceWorkerLimit, Region::Frame), own_record, offsetof(BendDeviceThread, limit) << shift, Region::Frame);
}

// Takes the tasks of one thread, by stride.
llvm::Function* ModuleEmitter::emit_round(llvm::Function* machine) {
  const bool gpu = options.target == TargetKind::Device;
  llvm::SmallVector<llvm::Type*, 3> params{ptr};
  if (!gpu) params.append({i32, i32});
  llvm::Function* round = llvm::Function::Create(llvm::FunctionType::get(void_type, params, false), gpu ? llvm::GlobalValue::ExternalLinkage : llvm::GlobalValue::InternalLinkage,
                                                 gpu ? BEND_KERNEL_NAME : "bend.emulated_round", ir);
  mark_function(round);
  Builder b(llvm::BasicBlock::Create(context, "entry", round));
  llvm::Value *control = round->getArg(0), *thread = nullptr, *threads = nullptr;
  if (gpu) {
    round->setCallingConv(llvm::CallingConv::PTX_Kernel);
    round->addFnAttr("nvvm.maxntid", std::to_string(BEND_BLOCK_THREADS));
    auto special = [&](llvm::Intrinsic::ID id) { return b.CreateIntrinsic(i32, id, {}); };
    llvm::Value* size = number(BEND_BLOCK_THREADS);
    thread = b.CreateAdd(b.CreateMul(special(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x), size), special(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x));
    threads = b.CreateMul(special(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x), size);
  } else {
    thread = round->getArg(1);
    threads = round->getArg(2);
  }
  auto field = [&](llvm::Type* type, size_t offset) { return load(b, type, control, static_cast<uint32_t>(offset), Region::Frame); };
  // Most threads of a narrow round have nothing to do and touch nothing.
  llvm::Value* count = field(i32, offsetof(BendDeviceControl, in_count));
  llvm::BasicBlock *some = block(b, "some"), *none = block(b, "none");
  b.CreateCondBr(b.CreateICmpULT(thread, count), some, none);
  b.SetInsertPoint(none);
  b.CreateRetVoid();
  b.SetInsertPoint(some);
  llvm::Value* own_record = nullptr;
  llvm::Value* worker = open_device_thread(b, control, thread, own_record);
  Builder top(&round->getEntryBlock(), round->getEntryBlock().begin());
  llvm::AllocaInst* state = top.CreateAlloca(state_type());
  set_state(b, state, kStateParallel, b.CreateZExt(b.CreateICmpEQ(field(i32, offsetof(BendDeviceControl, mode)), number(BEND_MODE_PARALLEL)), i32));
  llvm::Value* budget = field(i32, offsetof(BendDeviceControl, budget));
  set_state(b, state, kStateBudget, b.CreateSelect(b.CreateICmpEQ(budget, number(0)), number(~0u), budget));
  llvm::Value* queue = b.CreateIntToPtr(field(i64, offsetof(BendDeviceControl, in_queue)), ptr);
  llvm::Value* resumes = field(i32, offsetof(BendDeviceControl, in_resume_count));

  llvm::BasicBlock *entry = b.GetInsertBlock(), *next = block(b, "next"), *look = block(b, "look"), *take = block(b, "take"), *step = block(b, "step"), *done = block(b, "done");
  b.CreateBr(next);
  b.SetInsertPoint(next);
  llvm::PHINode* index = b.CreatePHI(i32, 2);
  index->addIncoming(thread, entry);
  b.CreateCondBr(b.CreateICmpULT(index, count), look, done);
  b.SetInsertPoint(look);
  llvm::LoadInst* error = b.CreateAlignedLoad(i64, b.CreateConstGEP1_64(i8, control, offsetof(BendDeviceControl, error)), llvm::Align(8));
  error->setAtomic(llvm::AtomicOrdering::Monotonic, device_scope());
  b.CreateCondBr(b.CreateICmpEQ(error, llvm::ConstantInt::get(i64, 0)), take, done);
  b.SetInsertPoint(take);
  llvm::Value* task = nullptr;
  llvm::BasicBlock* run = block(b, "run");
  if (!options.gpu->plan->trees.empty()) {
    // Frames and joins whose awaited tree has come: their own segment goes on.
    static_assert(offsetof(BendFrame, segment) == offsetof(BendJoin, segment) && offsetof(BendFrame, parent) == offsetof(BendJoin, parent));
    llvm::BasicBlock *resume = block(b, "resume"), *begin = block(b, "begin");
    b.CreateCondBr(b.CreateICmpULT(index, resumes), resume, begin);
    b.SetInsertPoint(resume);
    llvm::Value* list = b.CreateIntToPtr(field(i64, offsetof(BendDeviceControl, in_resumes)), ptr);
    llvm::Value* waiting = load(b, i64, b.CreateInBoundsGEP(i64, list, {b.CreateZExt(index, i64)}), 0, Region::Frame);
    set_state(b, state, kStateRecord, waiting);
    set_state(b, state, kStateSegment, load(b, i32, b.CreateIntToPtr(waiting, ptr), offsetof(BendFrame, segment), Region::Frame));
    b.CreateBr(run);
    b.SetInsertPoint(begin);
  }
  task = b.CreateInBoundsGEP(i8, queue, {b.CreateMul(b.CreateZExt(b.CreateSub(index, resumes), i64), llvm::ConstantInt::get(i64, options.gpu->plan->task_stride))});
  set_state(b, state, kStateParent, load(b, i64, task, offsetof(BendTaskRecord, parent), Region::Frame));
  set_state(b, state, kStateRecord, b.CreatePtrToInt(task, i64));
  set_state(b, state, kStateSegment, load(b, i32, task, offsetof(BendTaskRecord, segment), Region::Frame));
  b.CreateBr(run);
  b.SetInsertPoint(run);
  set_state(b, state, kStateSteps, number(0));
  b.CreateCall(machine, {worker, state});
  b.CreateBr(step);
  b.SetInsertPoint(step);
  index->addIncoming(b.CreateAdd(index, threads), step);
  b.CreateBr(next);
  b.SetInsertPoint(done);
  close_device_thread(b, worker, own_record);
  b.CreateRetVoid();
  return round;
}

ModuleEmitter::DeviceFunctions ModuleEmitter::run_device() {
  declare_functions();
  std::vector<bool> steps(flow.funcs.size(), false);
  for (const PerfectTree& tree : options.gpu->device->trees)
    if (tree.why.empty()) steps[tree.step.index] = true;
  for (uint32_t i = 0; i < flow.funcs.size(); ++i) {
    if (!options.gpu->device->reachable[i]) continue;
    counts_off_ = steps[i];
    FuncEmitter(*this, FuncId(i), false).run();
  }
  counts_off_ = false;
  llvm::Function* machine = emit_machine();
  DeviceFunctions out;
  if (options.launches && options.target == TargetKind::Device) {
    (void)LaunchEmitter(*this).kernel(machine);
  } else {
    out.round = emit_round(machine);
    out.flat = GridEmitter(*this).kernel();
    if (options.launches) {
      out.task = LaunchEmitter(*this).emulated(machine);
      out.tree = LaunchEmitter(*this).emulated_tree(machine);
    }
  }
  finish_device_heap();
  objects_->eraseFromParent();
  objects_ = nullptr;
  return out;
}

}  // namespace bendc::codegen
