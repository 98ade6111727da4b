// The machine: the loop over the segments of a task, and the small segments between functions.
#include <llvm/IR/InlineAsm.h>
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
  machine_return(b, state, area ? load_frame(b, result, area) : split_result(b, call, result));
}

// The code of a segment that is no function of the program: goes on with another segment.
void ModuleEmitter::emit_small_segment(Builder& b, llvm::Value* worker, llvm::Value* state, const Segment& segment) {
  const MachinePlan& plan = *options.gpu->plan;
  auto record = [&] { return b.CreateIntToPtr(get_state(b, state, kStateRecord), ptr); };
  switch (segment.kind) {
    case Segment::Kind::Run: case Segment::Kind::Call: return;
    case Segment::Kind::Load:
      set_words(b, state, load_record(b, param_types(flow, segment.func), plan.task_payload.at(segment.func.index), record()));
      set_levels(b, worker, state, load(b, i32, record(), offsetof(BendTaskRecord, levels), Region::Frame), true);
      empty_stack(b, state, flow.funcs[segment.func].result);
      next_segment(b, state, plan.run[segment.func.index]);
      return;
    case Segment::Kind::NextChild: return emit_next_child(b, state, plan.cuts[segment.cut], segment.child);
    case Segment::Kind::ResumeFrame: return emit_resume_frame(b, state, plan.cuts[segment.cut]);
    case Segment::Kind::ResumeJoin: return emit_resume_join(b, worker, state, plan.cuts[segment.cut], record());
    case Segment::Kind::Out: return emit_out(b, worker, state, flow.funcs[segment.func].result);
    case Segment::Kind::Relay: return emit_relay(b, worker, state, flow.funcs[segment.func].result, record());
    case Segment::Kind::Kept: return emit_kept(b, worker, state, flow.funcs[segment.func].result, record());
  }
}

// Runs the task in the state to its end; `all`: all tasks of the thread. A turn of the loop has two switches: small segments first, each of which
// leads to a function's segment, then those. Lanes that come from different small segments so go through one function together.
llvm::Function* ModuleEmitter::emit_machine(bool all) {
  const MachinePlan& plan = *options.gpu->plan;
  llvm::Function* machine = llvm::Function::Create(segment_type(), llvm::GlobalValue::InternalLinkage, all ? "bend.machine" : "bend.task", ir);
  mark_function(machine);
  if (options.target == TargetKind::Device) machine->addFnAttr(llvm::Attribute::AlwaysInline);
  llvm::Value *worker = machine->getArg(0), *state = machine->getArg(1);
  Builder b(llvm::BasicBlock::Create(context, "entry", machine));
  llvm::BasicBlock *loop = block(b, "loop"), *turn = block(b, "turn"), *middle = block(b, "middle"), *over = block(b, "over");
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  set_state(b, state, kStateLeft, b.CreateSub(get_state(b, state, kStateLeft), number(1)));
  llvm::BasicBlock* ended = all ? block(b, "ended") : over;
  b.CreateCondBr(b.CreateICmpEQ(get_state(b, state, kStateSegment), number(BEND_SEGMENT_NONE)), ended, turn);
  if (all) {
    b.SetInsertPoint(ended);
    take_next_task(b, worker, state, over);
    b.CreateBr(turn);
  }
  b.SetInsertPoint(turn);
  llvm::SwitchInst* small = b.CreateSwitch(get_state(b, state, kStateSegment), middle);
  b.SetInsertPoint(middle);
  // LLVM copies no block with a convergent call: else it would lead each small segment to its function past the switch, and lanes apart. No
  // `activemask` for that: ptxas takes it for the one in bend.append, whose lanes are fewer.
  if (options.target == TargetKind::Device) {
    llvm::CallInst* call = b.CreateCall(llvm::InlineAsm::get(llvm::FunctionType::get(void_type, false), "", "", true));
    call->setConvergent();
  }
  llvm::SwitchInst* functions = b.CreateSwitch(get_state(b, state, kStateSegment), loop);
  for (uint32_t i = 0; i < plan.segments.size(); ++i) {
    const Segment& segment = plan.segments[i];
    const bool runs = segment.kind == Segment::Kind::Run || segment.kind == Segment::Kind::Call;
    llvm::BasicBlock* arm = block(b, "segment");
    (runs ? functions : small)->addCase(llvm::cast<llvm::ConstantInt>(number(i)), arm);
    b.SetInsertPoint(arm);
    if (!runs) {
      emit_small_segment(b, worker, state, segment);
      // What goes on behind a kept stack's topmost frame is a small segment as well.
      b.CreateBr(segment.kind == Segment::Kind::Kept ? turn : middle);
      continue;
    }
    llvm::Function* body = segment.kind == Segment::Kind::Run
        ? function(segment.func, false)
        : helper("bend.task." + mangle(flow.funcs[segment.func].name), segment_type(), [&](llvm::Function* fn, Builder& inner) {
            if (options.target == TargetKind::Device) fn->addFnAttr(llvm::Attribute::AlwaysInline);
            emit_call_segment(inner, fn->getArg(0), fn->getArg(1), segment.func);
          });
    b.CreateCall(body, {worker, state})->setCallingConv(body->getCallingConv());
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

ModuleEmitter::DeviceFunctions ModuleEmitter::run_device() {
  declare_functions();
  std::vector<bool> steps(flow.funcs.size(), false);
  for (const PerfectTree& tree : options.gpu->device->trees)
    if (tree.why.empty()) steps[tree.step.index] = true;
  for (uint32_t i = 0; i < flow.funcs.size(); ++i) {
    if (!options.gpu->device->reachable[i]) continue;
    counts_off_ = steps[i];
    frees_off_ = options.gpu->plan->last_frees[i];
    FuncEmitter(*this, FuncId(i), false).run();
  }
  counts_off_ = frees_off_ = false;
  DeviceFunctions out;
  if (options.launches && options.target == TargetKind::Device) {
    (void)LaunchEmitter(*this).kernel(emit_machine(false));
  } else {
    out.step = step_ = step_function();
    out.round = emit_round();
    out.flat = GridEmitter(*this).kernel();
    if (options.launches) {
      llvm::Function* machine = emit_machine(false);
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
