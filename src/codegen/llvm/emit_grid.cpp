// Perfect trees as one grid (device_abi.h: groups): what a warp does with its warp-tasks of a group (grid_function), and the kernel bend_flat, which runs the groups of a
// round. How trees become groups is in emit_offer.cpp, how values go up in emit_climb.cpp, what a value in all lanes is in emit_lanes.cpp.
//
// Convergence: every `.sync` instruction here has all lanes of its warp. The number of a warp-task, the shape of its group and who climbs on
// are the same in all of them; leaves and combines may diverge and meet again at `bar.warp.sync`. A lane that has failed has left its warp for
// good: the others see it missing in a vote and end, since its part of the answer will never be there.
#include "codegen/llvm/emit_grid.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

#include <cstddef>

#include "codegen/gpu/machine_plan.h"
#include "codegen/llvm/device.h"
#include "codegen/llvm/names.h"
#include "runtime/gpu/device_abi.h"

namespace bendc::codegen {

using flow::TypeId;
using Region = ModuleEmitter::Region;

namespace {
// Blocks a multiprocessor that must fit, so at most 128 registers a thread. Without a number ptxas gives loads that lie apart fewer registers than they
// need together, to fit more blocks: matmul, whose 32 loads of four iterations then wait one by one, took 455 us in place of 265, life 2.3 ms in place of 1.8 (H200).
constexpr const char* kFewestBlocks = "4";
}  // namespace

// ---- a tree ----

// The arguments `steps` levels below `args`, along the lowest `steps` bits of `path`, the highest of them first.
Leaves GridEmitter::walk(Builder& b, llvm::Value* worker, const PerfectTree& tree, const Leaves& args, llvm::Value* path, llvm::Value* steps) {
  if (!tree.paths.empty()) return walk_at_once(b, tree, args, path, steps);
  return loop(b, steps, args, [&](Builder& body, llvm::Value* index, const Leaves& now) {
    llvm::Value* level = body.CreateSub(body.CreateSub(steps, index), body.getInt32(1));
    Leaves operands = now;
    operands.push_back(body.CreateAnd(body.CreateLShr(path, level), 1));
    return call(body, worker, tree.step, operands);
  });
}

// As walk, by the closed forms of the tree's steps. There are fewer than 32 steps.
Leaves GridEmitter::walk_at_once(Builder& b, const PerfectTree& tree, const Leaves& args, llvm::Value* path, llvm::Value* steps) {
  const Leaves before = args;
  llvm::Value* one = b.getInt32(1);
  llvm::Value* below = b.CreateAnd(path, b.CreateSub(b.CreateShl(one, steps), one));
  llvm::Value* some = b.CreateICmpNE(steps, b.getInt32(0));
  llvm::Value* to_right = b.CreateICmpNE(b.CreateLShr(b.CreateShl(below, 1), steps), b.getInt32(0));
  Leaves out;
  for (size_t k = 0; k < before.size(); ++k) {
    const PathForm& form = tree.paths[k];
    switch (form.kind) {
      case PathForm::Kind::Copy:
        if (form.left == k && form.right == k) out.push_back(before[k]);
        else out.push_back(b.CreateSelect(some, b.CreateSelect(to_right, before[form.right], before[form.left]), before[k]));
        break;
      case PathForm::Kind::Depth: out.push_back(b.CreateSub(before[k], b.CreateZExt(steps, m_.i64))); break;
      case PathForm::Kind::Number: out.push_back(b.CreateAdd(b.CreateShl(before[k], steps), below)); break;
      case PathForm::Kind::Spread: {
        llvm::Value* left = b.CreateSub(before[measure_leaf(tree)], b.CreateZExt(steps, m_.i64));
        llvm::Value* added = b.CreateShl(b.CreateZExt(b.CreateMul(below, b.getInt32(form.factor)), m_.i64), left);
        out.push_back(b.CreateAdd(before[k], b.CreateTrunc(added, m_.i32)));
        break;
      }
    }
  }
  return out;
}

// Whether nobody counts the array handles among the values of the first `count` lanes.
llvm::Value* GridEmitter::all_large(Builder& b, TypeId type, const Lanes& values, llvm::Value* count) {
  auto large = [&](Builder& inner, llvm::Value* lane) {
    const Leaves words = get(inner, values, lane);
    llvm::Value* all = inner.getTrue();
    size_t next = 0;
    const std::function<void(TypeId)> visit = [&](TypeId id) {
      const flow::Type& part = m_.flow.types[id];
      if (part.kind == flow::TypeKind::Struct) {
        for (TypeId field : part.parts) visit(field);
        return;
      }
      if (part.kind == flow::TypeKind::Array) {
        llvm::Value* uncounted = m_.device_is_uncounted(inner, part.parts[0], words[next]);
        all = uncounted ? inner.CreateAnd(all, uncounted) : inner.getFalse();
      }
      next += m_.layouts.of(id).leaves.size();
    };
    visit(type);
    return all;
  };
  if (gpu()) {
    llvm::Value* fine = b.CreateOr(large(b, lane_), b.CreateICmpUGE(lane_, count));
    return b.CreateIntrinsic(m_.i1, llvm::Intrinsic::nvvm_vote_all_sync, {b.getInt32(~0u), fine});
  }
  return loop(b, count, {b.getTrue()}, [&](Builder& inner, llvm::Value* lane, const Leaves& before) { return Leaves{inner.CreateAnd(before[0], large(inner, lane))}; })[0];
}

void GridEmitter::retain_args(Builder& b, llvm::Value* worker, const PerfectTree& tree, const Leaves& args) {
  each_owned(tree, [&](TypeId type, size_t first, size_t count) { m_.retain(b, worker, type, LeafSpan(args).slice(first, count), nullptr); });
}

// visit(type, first leaf, leaves) for the arguments of which a call takes a reference; the others are lent for the whole tree.
void GridEmitter::each_owned(const PerfectTree& tree, const std::function<void(TypeId, size_t, size_t)>& visit) {
  const std::vector<TypeId> types = param_types(m_.flow, tree.func);
  const std::vector<bool>& lent = m_.flow.funcs[tree.func].borrowed;
  size_t next = 0;
  for (size_t i = 0; i < types.size(); ++i) {
    const size_t count = m_.layouts.of(types[i]).leaves.size();
    if (!(i < lent.size() && lent[i])) visit(types[i], next, count);
    next += count;
  }
}

size_t GridEmitter::measure_leaf(const PerfectTree& tree) {
  size_t leaf = 0;
  const std::vector<TypeId> types = param_types(m_.flow, tree.func);
  for (uint32_t i = 0; i < tree.measure; ++i) leaf += m_.layouts.of(types[i]).leaves.size();
  return leaf;
}

// Warp-tasks of a tree: bend.grid.f(worker, control, group, number, warps) runs those of the group with the numbers `number`, `number` + warps, .. and returns the
// first number beyond.
llvm::Function* GridEmitter::grid_function(const TreePlan& plan) {
  if (plan.scan) return scan_function(plan);
  const PerfectTree& tree = m_.options.gpu->device->trees[plan.tree];
  llvm::FunctionType* type = llvm::FunctionType::get(m_.i32, {m_.ptr, m_.ptr, m_.ptr, m_.i32, m_.i32}, false);
  return m_.helper("bend.grid." + mangle(m_.flow.funcs[tree.func].name), type, [&](llvm::Function* fn, Builder& b) {
    if (gpu()) {
      fn->addFnAttr(llvm::Attribute::AlwaysInline);
      fn->addFnAttr(llvm::Attribute::Convergent);
    }
    llvm::BasicBlock *over = llvm::BasicBlock::Create(m_.context, "over", fn), *step = llvm::BasicBlock::Create(m_.context, "step", fn);
    lane_ = gpu() ? b.CreateIntrinsic(m_.i32, llvm::Intrinsic::nvvm_read_ptx_sreg_laneid, {}) : nullptr;
    Work work{&tree, fn->getArg(0), fn->getArg(1), fn->getArg(2), nullptr, nullptr, {}};
    const std::vector<TypeId> types = param_types(m_.flow, tree.func);
    const TypeId result = m_.flow.funcs[tree.func].result;
    work.depth = field(b, m_.i32, work.record, offsetof(BendGroup, height));
    work.base = field(b, m_.i32, work.record, offsetof(BendGroup, base));
    llvm::Value* wide = field(b, m_.i32, work.record, offsetof(BendGroup, wide));
    work.params = m_.load_record(b, types, plan.payload, work.record);
    // A small tree takes part of a warp.
    llvm::Value* height = b.CreateSub(work.depth, b.getInt32(tree.grain));
    llvm::Value* bits = b.CreateSelect(b.CreateICmpULT(height, b.getInt32(BEND_LANE_BITS)), height, b.getInt32(BEND_LANE_BITS));
    llvm::Value* span = b.CreateAdd(wide, bits);   // levels below a warp-task
    const Lanes chunk = lanes_of(b, result), kept = lanes_of(b, result);
    llvm::Value* top = b.CreateSub(height, span);
    llvm::Value* units = b.CreateShl(b.getInt32(1), top);
    llvm::Value *first_unit = fn->getArg(3), *stride = fn->getArg(4);
    llvm::Value* turns = b.CreateUDiv(b.CreateAdd(b.CreateSub(units, first_unit), b.CreateSub(stride, b.getInt32(1))), stride);
    llvm::Value* beyond = b.CreateAdd(first_unit, b.CreateMul(turns, stride));

    // An error that another thread has posted ends the work at the next turn: nobody waits for the load.
    llvm::BasicBlock *entry = b.GetInsertBlock(), *look = m_.block(b, "look"), *go = m_.block(b, "go"), *finish = m_.block(b, "finish");
    b.CreateBr(look);
    b.SetInsertPoint(look);
    llvm::PHINode *unit = b.CreatePHI(m_.i32, 2), *posted = b.CreatePHI(m_.i64, 2);
    unit->addIncoming(first_unit, entry);
    posted->addIncoming(b.getInt64(0), entry);
    gone_ = over;
    sync(b);
    look_for_failed(b);
    llvm::Value* failed = b.CreateICmpNE(posted, b.getInt64(0));
    if (gpu()) failed = b.CreateIntrinsic(m_.i1, llvm::Intrinsic::nvvm_vote_any_sync, {b.getInt32(~0u), failed});
    llvm::BasicBlock* more = m_.block(b, "more");
    b.CreateCondBr(failed, over, more);
    b.SetInsertPoint(more);
    b.CreateCondBr(b.CreateICmpULT(unit, units), go, finish);
    b.SetInsertPoint(go);
    llvm::LoadInst* error = b.CreateAlignedLoad(m_.i64, b.CreateConstGEP1_64(m_.i8, work.control, offsetof(BendDeviceControl, error)), llvm::Align(8));
    error->setAtomic(llvm::AtomicOrdering::Monotonic, m_.device_scope());

    // Above the warp-task once, below it for every leaf.
    gone_ = step;
    const Leaves base = walk(b, work.worker, tree, work.params, unit, top);
    loop(b, b.CreateShl(b.getInt32(1), wide), {}, [&](Builder& body, llvm::Value* number, const Leaves&) {
      llvm::Value* local = body.CreateShl(number, BEND_LANE_BITS);
      auto leaf = [&](Builder& inner, llvm::Value* lane, llvm::Function* function) {
        Leaves args = walk(inner, work.worker, tree, base, inner.CreateOr(local, lane), span);
        args[measure_leaf(tree)] = inner.getInt64(tree.grain);
        retain_args(inner, work.worker, tree, args);
        set(inner, chunk, lane, call(inner, work.worker, function, tree.leaf, args));
      };
      llvm::BasicBlock *each = m_.block(body, "each_alone"), *made = m_.block(body, "made");
      if (plan.staged.bytes > 0 && !m_.options.launches) staged_leaves(body, work, plan.staged, bits, leaf, each, made);
      else body.CreateBr(each);
      body.SetInsertPoint(each);
      each_lane(body, body.CreateShl(body.getInt32(1), bits), [&](Builder& inner, llvm::Value* lane) { leaf(inner, lane, m_.function(tree.leaf, false)); });
      body.CreateBr(made);
      body.SetInsertPoint(made);
      look_for_failed(body);
      llvm::Value* first = body.CreateOr(body.CreateShl(unit, span), local);
      combine(body, work, chunk, first, body.getInt32(tree.grain), bits);
      if (gpu()) {
        // Lane `number` keeps the chunk's value.
        const Leaves value = shuffle(body, chunk, body.getInt32(0), false);
        llvm::Value* mine = body.CreateICmpEQ(lane_, number);
        const Leaves before = get(body, kept, lane_);
        Leaves after;
        for (size_t i = 0; i < value.size(); ++i) after.push_back(body.CreateSelect(mine, value[i], before[i]));
        set(body, kept, lane_, after);
      } else {
        set(body, kept, number, get(body, chunk, body.getInt32(0)));
      }
      return Leaves();
    });
    llvm::Value* chunk_height = b.CreateAdd(b.getInt32(tree.grain), bits);
    if (tree.gives_left) {
      combine(b, work, kept, b.CreateShl(unit, wide), chunk_height, wide);
      keep_first(b, work, kept, unit);
      b.CreateBr(step);
    } else {
      climb(b, work, kept, b.CreateShl(unit, wide), chunk_height, wide);
    }
    step->moveAfter(b.GetInsertBlock());
    b.SetInsertPoint(step);
    unit->addIncoming(b.CreateAdd(unit, stride), step);
    posted->addIncoming(error, step);
    b.CreateBr(look);

    b.SetInsertPoint(finish);
    gone_ = over;
    if (tree.gives_left) end_group(b, work, turns, units, b.CreateICmpEQ(first_unit, b.getInt32(0)));   // keep_first
    else b.CreateBr(over);
    over->moveAfter(&fn->back());
    b.SetInsertPoint(over);
    b.CreateRet(beyond);
  });
}

llvm::Value* GridEmitter::share_of(Builder& b, llvm::Value* worker, llvm::Value* control, llvm::Value* group, llvm::Value* number, llvm::Value* warps) {
  const std::vector<TreePlan>& rows = m_.options.gpu->plan->trees;
  llvm::BasicBlock *skip = m_.block(b, "skip"), *after = m_.block(b, "after_tree");
  llvm::SwitchInst* trees = b.CreateSwitch(field(b, m_.i32, group, offsetof(BendGroup, tree)), skip, static_cast<unsigned>(rows.size()));
  Builder at_end(after);
  llvm::PHINode* beyond = at_end.CreatePHI(m_.i32, static_cast<unsigned>(rows.size()) + 1);
  for (uint32_t i = 0; i < rows.size(); ++i) {
    llvm::BasicBlock* arm = m_.block(b, "tree");
    trees->addCase(b.getInt32(i), arm);
    b.SetInsertPoint(arm);
    llvm::Function* grid = grid_function(rows[i]);
    llvm::CallInst* call = b.CreateCall(grid, {worker, control, group, number, warps});
    call->setCallingConv(grid->getCallingConv());
    if (gpu()) call->setConvergent();
    beyond->addIncoming(call, b.GetInsertBlock());
    b.CreateBr(after);
  }
  // A group that found no place.
  b.SetInsertPoint(skip);
  beyond->addIncoming(b.CreateAdd(number, warps), skip);
  b.CreateBr(after);
  b.SetInsertPoint(after);
  return beyond;
}

// ---- the kernel ----

llvm::Function* GridEmitter::kernel() {
  const MachinePlan& plan = *m_.options.gpu->plan;
  if (plan.trees.empty()) return nullptr;

  llvm::SmallVector<llvm::Type*, 3> params{m_.ptr};
  if (!gpu()) params.append({m_.i32, m_.i32});
  llvm::Function* kernel = llvm::Function::Create(llvm::FunctionType::get(m_.void_type, params, false), gpu() ? llvm::GlobalValue::ExternalLinkage : llvm::GlobalValue::InternalLinkage,
                                                  gpu() ? BEND_FLAT_KERNEL_NAME : "bend.emulated_flat", m_.ir);
  m_.mark_function(kernel);
  Builder b(llvm::BasicBlock::Create(m_.context, "entry", kernel));
  llvm::Value *control = kernel->getArg(0), *thread = nullptr, *warp = nullptr, *warps = nullptr;
  if (gpu()) {
    kernel->setCallingConv(llvm::CallingConv::PTX_Kernel);
    kernel->addFnAttr("nvvm.maxntid", std::to_string(BEND_BLOCK_THREADS));
    kernel->addFnAttr("nvvm.minctasm", kFewestBlocks);
    kernel->addFnAttr(llvm::Attribute::Convergent);
    m_.begin_kernel(b, true);   // one block follows: bend_flip
    auto special = [&](llvm::Intrinsic::ID id) { return b.CreateIntrinsic(m_.i32, id, {}); };
    llvm::Value* size = b.getInt32(BEND_BLOCK_THREADS);
    thread = b.CreateAdd(b.CreateMul(special(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x), size), special(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x));
    warp = b.CreateLShr(thread, BEND_LANE_BITS);
    warps = b.CreateMul(special(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x), b.getInt32(BEND_BLOCK_THREADS / BEND_LANES));
  } else {
    warp = kernel->getArg(1);
    warps = kernel->getArg(2);
    thread = b.CreateShl(warp, BEND_LANE_BITS);
  }
  llvm::BasicBlock *some = m_.block(b, "some"), *next = m_.block(b, "next"), *look = m_.block(b, "look"), *find = m_.block(b, "find"), *done = m_.block(b, "done"), *none = m_.block(b, "none");
  llvm::Value* word = field(b, m_.i64, control, offsetof(BendDeviceControl, groups));
  auto at_most = [&](llvm::Value* value, llvm::Value* most) { return b.CreateSelect(b.CreateICmpULT(value, b.CreateZExt(most, m_.i64)), b.CreateTrunc(value, m_.i32), most); };
  llvm::Value* total = at_most(b.CreateAnd(word, (uint64_t{1} << BEND_GROUP_SHIFT) - 1), field(b, m_.i32, control, offsetof(BendDeviceControl, warp_capacity)));
  llvm::Value* groups = at_most(b.CreateLShr(word, BEND_GROUP_SHIFT), m_.load_early(b, m_.i32, control, offsetof(BendDeviceControl, group_capacity)));
  llvm::Value* records = m_.load_early(b, m_.i64, control, offsetof(BendDeviceControl, threads));
  llvm::Value* queue = b.CreateIntToPtr(m_.load_early(b, m_.i64, control, offsetof(BendDeviceControl, group_queue)), m_.ptr);
  b.CreateCondBr(b.CreateICmpULT(warp, total), some, none);
  b.SetInsertPoint(none);
  b.CreateRetVoid();
  b.SetInsertPoint(some);
  const ModuleEmitter::ThreadRecord own = m_.load_thread_record(b, records, thread);
  llvm::Value* worker = m_.open_device_thread(b, control, own);
  llvm::BasicBlock* entry = b.GetInsertBlock();
  b.CreateBr(next);

  b.SetInsertPoint(next);
  llvm::PHINode* unit = b.CreatePHI(m_.i32, 2);
  unit->addIncoming(warp, entry);
  b.CreateCondBr(b.CreateICmpULT(unit, total), look, done);
  b.SetInsertPoint(look);
  sync(b);
  gone_ = done;
  look_for_failed(b);
  llvm::LoadInst* error = b.CreateAlignedLoad(m_.i64, b.CreateConstGEP1_64(m_.i8, control, offsetof(BendDeviceControl, error)), llvm::Align(8));
  error->setAtomic(llvm::AtomicOrdering::Monotonic, m_.device_scope());
  // The last group whose base is not beyond this warp-task.
  auto record = [&](llvm::Value* index) { return b.CreateInBoundsGEP(m_.i8, queue, {b.CreateMul(b.CreateZExt(index, m_.i64), b.getInt64(plan.group_stride))}); };
  // A group has a warp-task at least, so its number is not above this one's; with one each, or in the last group, that settles it.
  llvm::Value* above_unit = b.CreateAdd(unit, b.getInt32(1));
  llvm::Value* most = b.CreateSelect(b.CreateICmpULT(above_unit, groups), above_unit, groups);
  llvm::Value* last = b.CreateSub(most, b.getInt32(1));
  llvm::Value* base_of_last = m_.load(b, m_.i32, record(last), offsetof(BendGroup, base), Region::Frame);
  llvm::Value* failed = b.CreateICmpNE(error, b.getInt64(0));
  if (gpu()) failed = b.CreateIntrinsic(m_.i1, llvm::Intrinsic::nvvm_vote_any_sync, {b.getInt32(~0u), failed});
  b.CreateCondBr(failed, done, find);
  b.SetInsertPoint(find);
  llvm::Value* settled = b.CreateICmpULE(base_of_last, unit);
  llvm::Value* least = b.CreateSelect(settled, last, b.getInt32(0));
  llvm::BasicBlock *found_from = b.GetInsertBlock(), *halve = m_.block(b, "halve"), *half = m_.block(b, "half"), *found = m_.block(b, "found");
  b.CreateBr(halve);
  b.SetInsertPoint(halve);
  llvm::PHINode *low = b.CreatePHI(m_.i32, 2), *high = b.CreatePHI(m_.i32, 2);
  low->addIncoming(least, found_from);
  high->addIncoming(most, found_from);
  b.CreateCondBr(b.CreateICmpUGT(b.CreateSub(high, low), b.getInt32(1)), half, found);
  b.SetInsertPoint(half);
  llvm::Value* middle = b.CreateAdd(low, b.CreateLShr(b.CreateSub(high, low), 1));
  llvm::Value* beyond = b.CreateICmpUGT(m_.load(b, m_.i32, record(middle), offsetof(BendGroup, base), Region::Frame), unit);
  low->addIncoming(b.CreateSelect(beyond, low, middle), half);
  high->addIncoming(b.CreateSelect(beyond, middle, high), half);
  b.CreateBr(halve);
  b.SetInsertPoint(found);
  llvm::Value* group = record(low);
  llvm::Value* group_base = m_.load(b, m_.i32, group, offsetof(BendGroup, base), Region::Frame);
  llvm::Value* number = b.CreateSub(unit, group_base);
  llvm::Value* next_unit = b.CreateAdd(group_base, share_of(b, worker, control, group, number, warps));
  unit->addIncoming(next_unit, b.GetInsertBlock());
  b.CreateBr(next);
  b.SetInsertPoint(done);
  m_.close_device_thread(b, worker, own.place);
  b.CreateRetVoid();
  return kernel;
}

}  // namespace bendc::codegen
