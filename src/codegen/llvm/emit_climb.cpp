// How the values of a perfect tree's leaves become its value: combined in a warp, left for the warps beside it, taken up by the last to arrive, and given to what waits for the tree.
#include "codegen/llvm/emit_grid.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

#include <cstddef>

#include "codegen/gpu/machine_plan.h"
#include "codegen/llvm/device.h"
#include "runtime/gpu/device_abi.h"

namespace bendc::codegen {

using flow::TypeId;
using Region = ModuleEmitter::Region;

// The values of 2^steps neighbouring nodes of height `height`, one a lane from 0 on, become that of their common root in lane 0. `first`: number of
// lane 0's node among those of its height.
void GridEmitter::combine(Builder& b, const Work& work, const Lanes& values, llvm::Value* first, llvm::Value* height, llvm::Value* steps) {
  const PerfectTree& tree = *work.tree;
  if (tree.gives_left) {
    sync(b);
    steps = b.CreateSelect(all_large(b, m_.flow.funcs[tree.func].result, values, b.CreateShl(b.getInt32(1), steps)), b.getInt32(0), steps);
  }
  loop(b, steps, {}, [&](Builder& body, llvm::Value* step, const Leaves&) {
    auto join = [&](Builder& inner, llvm::Value* lane, const Leaves& mine, const Leaves& other) {
      Leaves operands;
      if (tree.post_args) {
        llvm::Value* below = inner.CreateAdd(step, inner.getInt32(1));
        llvm::Value* node = inner.CreateLShr(inner.CreateAdd(first, lane), below);
        operands = walk(inner, work.worker, tree, work.params, node, inner.CreateSub(work.depth, inner.CreateAdd(height, below)));
        retain_args(inner, work.worker, tree, operands);
      }
      operands.append(mine.begin(), mine.end());
      operands.append(other.begin(), other.end());
      set(inner, values, lane, call(inner, work.worker, tree.post, operands));
    };
    llvm::Value* distance = body.CreateShl(body.getInt32(1), step);
    if (gpu()) {
      sync(body);   // what the other lane has written is there
      const Leaves other = shuffle(body, values, distance, true);
      llvm::Value* left = body.CreateICmpEQ(body.CreateAnd(lane_, body.CreateSub(body.CreateShl(body.getInt32(2), step), body.getInt32(1))), body.getInt32(0));
      llvm::Value* part = body.CreateICmpULT(lane_, body.CreateShl(body.getInt32(1), steps));
      when(body, body.CreateAnd(left, part), [&](Builder& inner) { join(inner, lane_, get(inner, values, lane_), other); });
      look_for_failed(body);
    } else {
      llvm::Value* pairs = body.CreateShl(body.getInt32(1), body.CreateSub(body.CreateSub(steps, step), body.getInt32(1)));
      loop(body, pairs, {}, [&](Builder& inner, llvm::Value* pair, const Leaves&) {
        llvm::Value* lane = inner.CreateShl(pair, inner.CreateAdd(step, inner.getInt32(1)));
        join(inner, lane, get(inner, values, lane), get(inner, values, inner.CreateAdd(lane, distance)));
        return Leaves();
      });
    }
    return Leaves();
  });
}

// The place of a warp-task's result.
llvm::Value* GridEmitter::result_place(Builder& b, const Work& work, llvm::Value* slot) {
  llvm::Value* results = b.CreateIntToPtr(field(b, m_.i64, work.control, offsetof(BendDeviceControl, results)), m_.ptr);
  llvm::Value* offset = b.CreateMul(b.CreateZExt(b.CreateAdd(work.base, slot), m_.i64), b.getInt64(m_.options.gpu->plan->result_stride));
  return b.CreateInBoundsGEP(m_.i8, results, {offset});
}

// What waited for a tree goes on: in this thread where it was launched from the device, else in the next round. Ends the block.
void GridEmitter::go_on(Builder& b, const Work& work, llvm::Value* waiting) {
  if (m_.options.launches) {
    llvm::BasicBlock *here = m_.block(b, "here"), *round = m_.block(b, "next_round");
    llvm::Value* place = m_.load(b, m_.i64, work.worker, kDeviceWorkerGoesOn, Region::Frame);
    b.CreateCondBr(b.CreateICmpNE(place, b.getInt64(0)), here, round);
    b.SetInsertPoint(here);
    m_.store(b, waiting, b.CreateIntToPtr(place, m_.ptr), 0, Region::Frame);
    b.CreateBr(gone_);
    b.SetInsertPoint(round);
  }
  // Where the round has one group nobody else asks for a place in the list: no atomic to wait for.
  llvm::BasicBlock *only = m_.block(b, "only"), *ask = m_.block(b, "ask_place"), *place = m_.block(b, "place");
  llvm::Value* list = b.CreateIntToPtr(field(b, m_.i64, work.control, offsetof(BendDeviceControl, out_resumes)), m_.ptr);
  llvm::Value* groups = b.CreateLShr(field(b, m_.i64, work.control, offsetof(BendDeviceControl, groups)), BEND_GROUP_SHIFT);
  llvm::Value* count = b.CreateConstGEP1_64(m_.i8, work.control, offsetof(BendDeviceControl, out_resume_count));
  llvm::Value* launches = field(b, m_.i64, work.control, offsetof(BendDeviceControl, launches));
  b.CreateCondBr(b.CreateAnd(b.CreateICmpEQ(groups, b.getInt64(1)), b.CreateICmpEQ(launches, b.getInt64(0))), only, ask);
  b.SetInsertPoint(only);
  m_.store(b, b.getInt32(1), count, 0, Region::Frame);
  b.CreateBr(place);
  b.SetInsertPoint(ask);
  llvm::Value* asked = m_.device_add(b, count, b.getInt32(1));
  b.CreateBr(place);
  b.SetInsertPoint(place);
  llvm::PHINode* index = b.CreatePHI(m_.i32, 2);
  index->addIncoming(b.getInt32(0), only);
  index->addIncoming(asked, ask);
  m_.store(b, waiting, b.CreateInBoundsGEP(m_.i64, list, {b.CreateZExt(index, m_.i64)}), 0, Region::Frame);
  when(b, b.CreateICmpULT(index, b.getInt32(BEND_STEP_TASKS)), [&](Builder& inner) {
    llvm::Value* firsts = inner.CreateConstGEP1_64(m_.i8, work.control, offsetof(BendDeviceControl, first_resumes));
    m_.store(inner, waiting, inner.CreateInBoundsGEP(m_.i64, firsts, {inner.CreateZExt(index, m_.i64)}), 0, Region::Frame);
  });
  b.CreateBr(gone_);
}

// The value of a whole tree, to what waits for it. Ends the block.
void GridEmitter::give(Builder& b, const Work& work, llvm::Value* parent, TypeId type, LeafSpan leaves) {
  llvm::BasicBlock *root = m_.block(b, "root"), *join = m_.block(b, "join"), *last = m_.block(b, "last");
  b.CreateCondBr(b.CreateICmpEQ(parent, b.getInt64(0)), root, join, m_.unlikely());
  b.SetInsertPoint(root);
  m_.store_field(b, type, leaves, b.CreateIntToPtr(field(b, m_.i64, work.control, offsetof(BendDeviceControl, result)), m_.ptr), 0);
  m_.store(b, b.getInt32(1), work.control, offsetof(BendDeviceControl, finished), Region::Frame);
  b.CreateBr(gone_);

  b.SetInsertPoint(join);
  llvm::Value* address = b.CreateAnd(parent, BEND_PARENT_ADDRESS);
  llvm::Value* record = b.CreateIntToPtr(address, m_.ptr);
  m_.store_field(b, type, leaves, b.CreateInBoundsGEP(m_.i8, record, {b.CreateLShr(parent, BEND_PARENT_SLOT)}), 0);
  // What goes on in the next round sees all of this one; only a launched tree's join goes on in the same grid. A fence is 430 cycles at each grid's end.
  if (m_.options.launches) m_.device_fence(b);
  llvm::BasicBlock *count = m_.block(b, "count"), *next = m_.block(b, "next");
  b.CreateCondBr(b.CreateICmpNE(b.CreateAnd(parent, BEND_PARENT_ALONE), b.getInt64(0)), next, count);
  b.SetInsertPoint(count);
  llvm::Value* before = m_.device_add(b, b.CreateConstGEP1_64(m_.i8, record, offsetof(BendJoin, remaining)), llvm::ConstantInt::getSigned(m_.i32, -1));
  b.CreateCondBr(m_.is_last(b, before), last, gone_);
  b.SetInsertPoint(last);
  if (m_.options.launches) m_.device_fence(b);
  b.CreateBr(next);
  b.SetInsertPoint(next);
  go_on(b, work, address);
}

// A group's value and the end of its arguments. Ends the block.
void GridEmitter::give_whole(Builder& b, const Work& work, LeafSpan value) {
  each_owned(*work.tree, [&](TypeId param, size_t first, size_t count) { m_.release(b, work.worker, param, LeafSpan(work.params).slice(first, count)); });
  give(b, work, field(b, m_.i64, work.record, offsetof(BendGroup, parent)), m_.flow.funcs[work.tree->func].result, value);
}

// From the results of warps up to the root. `values`: those of 2^steps neighbouring nodes of `height`, from number `first` on.
void GridEmitter::climb(Builder& b, const Work& work, const Lanes& values, llvm::Value* first_node, llvm::Value* height, llvm::Value* steps) {
  const TypeId type = m_.flow.funcs[work.tree->func].result;
  llvm::BasicBlock *entry = b.GetInsertBlock(), *level = m_.block(b, "level"), *whole = m_.block(b, "whole"), *leave = m_.block(b, "leave"), *go_on = m_.block(b, "go_on");
  b.CreateBr(level);
  b.SetInsertPoint(level);
  llvm::PHINode *first = b.CreatePHI(m_.i32, 2), *at = b.CreatePHI(m_.i32, 2), *count = b.CreatePHI(m_.i32, 2), *shift = b.CreatePHI(m_.i32, 2), *above = b.CreatePHI(m_.i32, 2);
  first->addIncoming(first_node, entry);
  at->addIncoming(height, entry);
  count->addIncoming(steps, entry);
  shift->addIncoming(b.getInt32(0), entry);   // log2 of the warp-tasks below one of these nodes once they are combined
  above->addIncoming(b.getInt32(0), entry);   // levels of memory climbed
  combine(b, work, values, first, at, count);
  llvm::Value* reached = b.CreateAdd(at, count);
  llvm::Value* node = b.CreateLShr(first, count);
  b.CreateCondBr(b.CreateICmpEQ(reached, work.depth), whole, leave);

  // This warp's value goes to memory; the last of up to 32 siblings reads them all.
  b.SetInsertPoint(leave);
  llvm::Value* left = b.CreateSub(work.depth, reached);
  llvm::Value* next = b.CreateSelect(b.CreateICmpULT(left, b.getInt32(BEND_LANE_BITS)), left, b.getInt32(BEND_LANE_BITS));
  llvm::Value* family = b.CreateLShr(node, next);
  llvm::Value* arrived = nullptr;
  auto announce = [&](Builder& body) {
    m_.store_field(body, type, get(body, values, body.getInt32(0)), result_place(body, work, body.CreateShl(node, shift)), 0);
    m_.device_fence(body);
    llvm::Value* counter = body.CreateAdd(body.CreateAdd(work.base, body.CreateShl(family, body.CreateAdd(shift, next))), above);
    llvm::Value* counters = body.CreateIntToPtr(field(body, m_.i64, work.control, offsetof(BendDeviceControl, counters)), m_.ptr);
    llvm::Value* place = body.CreateInBoundsGEP(m_.i32, counters, {body.CreateZExt(counter, m_.i64)});
    llvm::Value* before = m_.device_add(body, place, body.getInt32(1));
    llvm::Value* last = body.CreateICmpEQ(body.CreateAdd(before, body.getInt32(1)), body.CreateShl(body.getInt32(1), next));
    when(body, last, [&](Builder& inner) { m_.store(inner, inner.getInt32(0), place, 0, Region::Frame); });
    return last;
  };
  if (gpu()) {
    sync(b);
    llvm::BasicBlock *from = b.GetInsertBlock(), *lead = m_.block(b, "lead"), *told = m_.block(b, "told");
    b.CreateCondBr(b.CreateICmpEQ(lane_, b.getInt32(0)), lead, told);
    b.SetInsertPoint(lead);
    llvm::Value* last = b.CreateZExt(announce(b), m_.i32);
    llvm::BasicBlock* lead_end = b.GetInsertBlock();
    b.CreateBr(told);
    b.SetInsertPoint(told);
    llvm::PHINode* mine = b.CreatePHI(m_.i32, 2);
    mine->addIncoming(b.getInt32(0), from);
    mine->addIncoming(last, lead_end);
    arrived = b.CreateICmpNE(b.CreateIntrinsic(m_.i32, llvm::Intrinsic::nvvm_shfl_sync_idx_i32, {b.getInt32(~0u), mine, b.getInt32(0), b.getInt32(31)}), b.getInt32(0));
  } else {
    arrived = announce(b);
  }
  b.CreateCondBr(arrived, go_on, gone_);
  b.SetInsertPoint(go_on);
  sync(b);
  m_.device_fence(b);
  llvm::Value* oldest = b.CreateShl(family, next);
  each_lane(b, b.CreateShl(b.getInt32(1), next), [&](Builder& body, llvm::Value* lane) {
    llvm::Value* from = result_place(body, work, body.CreateShl(body.CreateAdd(oldest, lane), shift));
    Leaves read;
    for (flow::Leaf leaf : m_.layouts.of(type).leaves) read.push_back(m_.load(body, m_.leaf_type(leaf.kind), from, leaf.offset, Region::Frame));
    set(body, values, lane, read);
  });
  first->addIncoming(oldest, b.GetInsertBlock());
  at->addIncoming(reached, b.GetInsertBlock());
  count->addIncoming(next, b.GetInsertBlock());
  above->addIncoming(b.CreateAdd(above, b.getInt32(1)), b.GetInsertBlock());
  shift->addIncoming(b.CreateAdd(shift, next), b.GetInsertBlock());
  b.CreateBr(level);

  b.SetInsertPoint(whole);
  if (gpu()) {
    llvm::BasicBlock* lead = m_.block(b, "lead");
    b.CreateCondBr(b.CreateICmpEQ(lane_, b.getInt32(0)), lead, gone_);
    b.SetInsertPoint(lead);
  }
  give_whole(b, work, get(b, values, b.getInt32(0)));
}

// The values of a tree's nodes are those of their first leaves: the first warp-task's is kept, what the others have is given up, and each warp counts its own.
void GridEmitter::keep_first(Builder& b, const Work& work, const Lanes& values, llvm::Value* number) {
  const TypeId type = m_.flow.funcs[work.tree->func].result;
  auto keep = [&](Builder& body) {
    const Leaves value = get(body, values, body.getInt32(0));
    llvm::BasicBlock *first = m_.block(body, "first"), *other = m_.block(body, "other"), *kept = m_.block(body, "kept");
    body.CreateCondBr(body.CreateICmpEQ(number, body.getInt32(0)), first, other);
    body.SetInsertPoint(first);
    m_.store_field(body, type, value, result_place(body, work, body.getInt32(0)), 0);
    body.CreateBr(kept);
    body.SetInsertPoint(other);
    m_.release(body, work.worker, type, value);
    body.CreateBr(kept);
    body.SetInsertPoint(kept);
  };
  if (gpu()) when(b, b.CreateICmpEQ(lane_, b.getInt32(0)), keep);
  else keep(b);
}

// A warp has made `done` warp-tasks, and `has_value` when the group's value is one of them. Gives the group's value: what waits for it goes on in the next round, which sees all of this
// one, so the warp that has the value gives it at its own end, whether the others have ended or not. Where memory is freed, or what waits goes on in the same grid, the
// last warp does it, and all count their warp-tasks: two fences and an atomic on one word for each warp. Ends the block.
void GridEmitter::end_group(Builder& b, const Work& work, llvm::Value* done, llvm::Value* units, llvm::Value* has_value) {
  const TypeId type = m_.flow.funcs[work.tree->func].result;
  bool counts = m_.options.launches;
  each_owned(*work.tree, [&](TypeId param, size_t, size_t) { counts = counts || m_.layouts.of(param).counted; });
  llvm::BasicBlock *lead = m_.block(b, "lead"), *last = m_.block(b, "last");
  sync(b);
  llvm::Value* leads = gpu() ? b.CreateICmpEQ(lane_, b.getInt32(0)) : b.getTrue();
  if (!counts) leads = b.CreateAnd(leads, has_value);
  b.CreateCondBr(leads, lead, gone_);
  b.SetInsertPoint(lead);
  if (counts) {
    m_.device_fence(b);
    llvm::Value* counters = b.CreateIntToPtr(field(b, m_.i64, work.control, offsetof(BendDeviceControl, counters)), m_.ptr);
    llvm::Value* counter = b.CreateInBoundsGEP(m_.i32, counters, {b.CreateZExt(work.base, m_.i64)});
    llvm::Value* before = m_.device_add(b, counter, done);
    b.CreateCondBr(b.CreateICmpEQ(b.CreateAdd(before, done), units), last, gone_);
    b.SetInsertPoint(last);
    m_.device_fence(b);
    m_.store(b, b.getInt32(0), counter, 0, Region::Frame);
  } else {
    b.CreateBr(last);
    b.SetInsertPoint(last);
  }
  llvm::Value* from = result_place(b, work, b.getInt32(0));
  Leaves value;
  for (flow::Leaf leaf : m_.layouts.of(type).leaves) value.push_back(m_.load(b, m_.leaf_type(leaf.kind), from, leaf.offset, Region::Frame));
  give_whole(b, work, value);
}

}  // namespace bendc::codegen
