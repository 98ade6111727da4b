// Steps: narrow rounds, of which the first block of bend_round does all, and what bend_flip does before as well (device_abi.h). The twin of the code here is step() in
// runtime/gpu/rounds.h; the emulator runs both after every round and compares.
#include <cstddef>

#include "codegen/llvm/emitter.h"
#include "runtime/gpu/device_abi.h"

namespace bendc::codegen {

// bend.step(control, flips): `flips` when the round before is to be ended first.
llvm::Function* ModuleEmitter::step_function() {
  const bool gpu = options.target == TargetKind::Device;
  llvm::Function* step = llvm::Function::Create(llvm::FunctionType::get(void_type, {ptr, i32}, false), llvm::GlobalValue::InternalLinkage, "bend.step", ir);
  mark_function(step);
  if (gpu) step->addFnAttr(llvm::Attribute::AlwaysInline);
  Builder b(llvm::BasicBlock::Create(context, "entry", step));
  llvm::Value *control = step->getArg(0), *zero = number(0);
  llvm::BasicBlock *start = block(b, "start"), *flip = block(b, "flip"), *ended = block(b, "ended");
  b.CreateCondBr(b.CreateICmpEQ(step->getArg(1), zero), start, flip);
  auto set = [&](llvm::Value* value, size_t offset) { store(b, value, control, static_cast<uint32_t>(offset), Region::Frame); };
  auto wait_if_wide = [&](llvm::Value* in_count) { set(b.CreateZExt(b.CreateICmpUGT(in_count, number(BEND_STEP_TASKS)), i32), offsetof(BendDeviceControl, waits)); };
#define LOAD(type, name) llvm::Value* name = load_early(b, type, control, offsetof(BendDeviceControl, name))
  b.SetInsertPoint(start);
  wait_if_wide(control_field(b, i32, control, offsetof(BendDeviceControl, in_count)));
  b.CreateRetVoid();

  // All loads together: one wait for six lines.
  b.SetInsertPoint(flip);
  LOAD(i32, in_count);
  LOAD(i32, waits);
  LOAD(i32, out_count);
  LOAD(i64, groups);
  LOAD(i32, out_resume_count);
  LOAD(i64, error);
  LOAD(i64, in_resumes);
  LOAD(i64, out_resumes);
  LOAD(i64, in_queue);
  LOAD(i64, out_queue);
  LOAD(i32, queue_capacity);
  LOAD(i32, group_capacity);
  LOAD(i32, warp_capacity);
  LOAD(i32, mode);
  LOAD(i32, middle);
  LOAD(i32, middle_budget);
  LOAD(i32, target);
  LOAD(i32, sequential_budget);
  LOAD(i32, again_budget);
  LOAD(i32, resident_threads);
  LOAD(i32, wide_trees);
  LOAD(i32, most_spread);
  LOAD(i32, rounds);
  LOAD(i64, tasks);
  LOAD(i64, widest);
  LOAD(i64, tree_groups);
  LOAD(i64, tree_warps);
#undef LOAD
  auto least = [&](llvm::Value* x, llvm::Value* y) { return b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, x, y); };
  auto wide_word = [&](llvm::Value* x) { return b.CreateZExt(x, i64); };
  auto either = [&](llvm::Value* x, llvm::Value* y) { return b.CreateOr(x, y); };
  llvm::BasicBlock* go = block(b, "go");
  b.CreateCondBr(either(b.CreateICmpEQ(in_count, zero), b.CreateICmpNE(waits, zero)), ended, go);
  b.SetInsertPoint(ended);
  b.CreateRetVoid();

  b.SetInsertPoint(go);
  llvm::Value* next = b.CreateAdd(least(out_count, queue_capacity), out_resume_count);
  next = b.CreateSelect(b.CreateICmpEQ(error, llvm::ConstantInt::get(i64, 0)), next, zero);
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

  // As choose_mode.
  llvm::Value* again = b.CreateICmpEQ(mode, number(BEND_MODE_SEQUENTIAL));
  llvm::Value* wide = b.CreateICmpUGE(next, target);
  llvm::Value* grew = b.CreateICmpUGT(next, b.CreateAdd(in_count, b.CreateLShr(in_count, 2)));
  llvm::Value* warps = b.CreateAnd(groups, (uint64_t{1} << BEND_GROUP_SHIFT) - 1);
  llvm::Value* few = b.CreateAnd(b.CreateAnd(b.CreateICmpULE(next, middle), b.CreateICmpULE(in_count, middle)), b.CreateICmpEQ(warps, llvm::ConstantInt::get(i64, 0)));
  llvm::Value* parallel = either(grew, b.CreateNot(few));
  set(b.CreateSelect(wide, number(BEND_MODE_SEQUENTIAL), b.CreateSelect(parallel, number(BEND_MODE_PARALLEL), number(BEND_MODE_MIDDLE))), offsetof(BendDeviceControl, mode));
  set(b.CreateSelect(wide, b.CreateSelect(again, again_budget, sequential_budget), b.CreateSelect(parallel, zero, middle_budget)), offsetof(BendDeviceControl, budget));
  llvm::Value* wanted = either(either(b.CreateNot(wide), b.CreateICmpULT(next, resident_threads)), b.CreateICmpNE(wide_trees, zero));
  set(b.CreateZExt(wanted, i32), offsetof(BendDeviceControl, groups_wanted));
  // The largest shift by which `next` stays within the threads.
  auto zeros = [&](llvm::Value* x) { return b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, x, llvm::ConstantInt::getFalse(context)); };
  llvm::Value* shift = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, b.CreateSub(zeros(next), zeros(resident_threads)), zero);
  llvm::Value* fits = b.CreateICmpULE(b.CreateShl(wide_word(next), wide_word(shift)), wide_word(resident_threads));
  shift = b.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, shift, b.CreateZExt(b.CreateNot(fits), i32));
  set(least(shift, most_spread), offsetof(BendDeviceControl, spread));
  wait_if_wide(next);

  set(b.CreateAdd(rounds, number(1)), offsetof(BendDeviceControl, rounds));
  set(b.CreateAdd(tasks, wide_word(in_count)), offsetof(BendDeviceControl, tasks));
  set(b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, widest, wide_word(in_count)), offsetof(BendDeviceControl, widest));
  set(b.CreateAdd(tree_groups, least(b.CreateLShr(groups, BEND_GROUP_SHIFT), wide_word(group_capacity))), offsetof(BendDeviceControl, tree_groups));
  set(b.CreateAdd(tree_warps, least(warps, wide_word(warp_capacity))), offsetof(BendDeviceControl, tree_warps));
  b.CreateRetVoid();
  return step;
}

}  // namespace bendc::codegen
