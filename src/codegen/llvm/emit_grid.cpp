// Perfect trees as one grid (device_abi.h: groups). A task that reaches such a tree appends a group; the kernel bend_flat runs the groups of a
// round. One emitter makes both targets: a lane's values lie in allocas with one place on a device, where they become registers and go to
// other lanes by shuffles, and with 32 places in the emulator, which runs the lanes of a warp one after another.
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

using flow::FuncId;
using flow::TypeId;
using Region = ModuleEmitter::Region;

namespace {
constexpr uint32_t kHeavyBonus = 8;     // a leaf that loops is taken for 256 calls
constexpr uint64_t kFewestHeavy = 2;    // log2 of the loops that are worth a warp, most of its lanes idle
constexpr uint32_t kMostWarpsLog2 = 20; // of one group; deeper trees fork until they fit
// Blocks a multiprocessor that must fit, so at most 128 registers a thread. Without a number ptxas gives loads that lie apart fewer registers than they
// need together, to fit more blocks: matmul, whose 32 loads of four iterations then wait one by one, took 455 us in place of 265, life 2.3 ms in place of 1.8 (H200).
constexpr const char* kFewestBlocks = "4";
}  // namespace

bool GridEmitter::gpu() const { return m_.options.target == TargetKind::Device; }

llvm::Value* GridEmitter::field(Builder& b, llvm::Type* type, llvm::Value* control, size_t offset) {
  return m_.load(b, type, control, static_cast<uint32_t>(offset), Region::Frame);
}

// visit(builder, index, carried) for index in [0, count), count may be 0. Gives the carried values at the end.
Leaves GridEmitter::loop(Builder& b, llvm::Value* count, const Leaves& carried, const std::function<Leaves(Builder&, llvm::Value*, const Leaves&)>& visit) {
  llvm::BasicBlock *entry = b.GetInsertBlock(), *head = m_.block(b, "head"), *body = m_.block(b, "each"), *after = m_.block(b, "after");
  b.CreateBr(head);
  b.SetInsertPoint(head);
  llvm::PHINode* index = b.CreatePHI(m_.i32, 2);
  index->addIncoming(b.getInt32(0), entry);
  Leaves now;
  for (llvm::Value* value : carried) {
    llvm::PHINode* phi = b.CreatePHI(value->getType(), 2);
    phi->addIncoming(value, entry);
    now.push_back(phi);
  }
  b.CreateCondBr(b.CreateICmpULT(index, count), body, after);
  b.SetInsertPoint(body);
  const Leaves next = visit(b, index, now);
  for (size_t i = 0; i < next.size(); ++i) llvm::cast<llvm::PHINode>(now[i])->addIncoming(next[i], b.GetInsertBlock());
  index->addIncoming(b.CreateAdd(index, b.getInt32(1)), b.GetInsertBlock());
  b.CreateBr(head);
  b.SetInsertPoint(after);
  return now;
}

void GridEmitter::when(Builder& b, llvm::Value* condition, const std::function<void(Builder&)>& then) {
  llvm::BasicBlock *yes = m_.block(b, "yes"), *after = m_.block(b, "then");
  b.CreateCondBr(condition, yes, after);
  b.SetInsertPoint(yes);
  then(b);
  b.CreateBr(after);
  b.SetInsertPoint(after);
}

Leaves GridEmitter::call(Builder& b, llvm::Value* worker, FuncId func, LeafSpan args) { return call(b, worker, m_.function(func, false), func, args); }

Leaves GridEmitter::call(Builder& b, llvm::Value* worker, llvm::Function* function, FuncId func, LeafSpan args) {
  const TypeId result = m_.flow.funcs[func].result;
  llvm::SmallVector<llvm::Value*, 16> operands{worker};
  llvm::Value* area = nullptr;
  if (m_.returns_indirect(result)) {
    llvm::BasicBlock& entry = b.GetInsertBlock()->getParent()->getEntryBlock();
    Builder top(&entry, entry.begin());
    llvm::AllocaInst* place = top.CreateAlloca(m_.i8, top.getInt32(m_.layouts.of(result).size));
    place->setAlignment(llvm::Align(8));
    area = place;
    operands.push_back(area);
  }
  operands.append(args.begin(), args.end());
  llvm::CallInst* made = b.CreateCall(function, operands);
  made->setCallingConv(function->getCallingConv());
  return area ? m_.load_frame(b, result, area) : m_.split_result(b, made, result);
}

// ---- lanes ----

GridEmitter::Lanes GridEmitter::lanes_of(Builder& b, TypeId type) {
  Lanes out;
  llvm::BasicBlock& entry = b.GetInsertBlock()->getParent()->getEntryBlock();
  Builder top(&entry, entry.begin());
  for (flow::Leaf leaf : m_.layouts.of(type).leaves) {
    llvm::Type* place = m_.leaf_type(leaf.kind);
    out.types.push_back(place);
    out.places.push_back(top.CreateAlloca(llvm::ArrayType::get(place, gpu() ? 1 : BEND_LANES)));
  }
  // Lanes that have no part in a combine still take part in its shuffles.
  for (size_t i = 0; i < out.places.size(); ++i) b.CreateStore(llvm::Constant::getNullValue(llvm::cast<llvm::AllocaInst>(out.places[i])->getAllocatedType()), out.places[i]);
  return out;
}

llvm::Value* GridEmitter::place(Builder& b, const Lanes& lanes, size_t leaf, llvm::Value* lane) {
  return b.CreateInBoundsGEP(lanes.types[leaf], lanes.places[leaf], {gpu() ? b.getInt32(0) : lane});
}

Leaves GridEmitter::get(Builder& b, const Lanes& lanes, llvm::Value* lane) {
  Leaves out;
  for (size_t i = 0; i < lanes.places.size(); ++i) out.push_back(b.CreateLoad(lanes.types[i], place(b, lanes, i, lane)));
  return out;
}

void GridEmitter::set(Builder& b, const Lanes& lanes, llvm::Value* lane, LeafSpan leaves) {
  for (size_t i = 0; i < lanes.places.size(); ++i) b.CreateStore(leaves[i], place(b, lanes, i, lane));
}

// body(builder, lane) in every lane, or in those below `count`.
void GridEmitter::each_lane(Builder& b, llvm::Value* count, const std::function<void(Builder&, llvm::Value*)>& body) {
  if (gpu()) {
    if (count) when(b, b.CreateICmpULT(lane_, count), [&](Builder& inner) { body(inner, lane_); });
    else body(b, lane_);
    return;
  }
  loop(b, count ? count : b.getInt32(BEND_LANES), {}, [&](Builder& inner, llvm::Value* lane, const Leaves&) {
    body(inner, lane);
    return Leaves();
  });
}

void GridEmitter::sync(Builder& b) {
  if (gpu()) b.CreateIntrinsic(m_.void_type, llvm::Intrinsic::nvvm_bar_warp_sync, {b.getInt32(~0u)});
}

// What `from` holds in lane `source` (of the warp, in every lane), or in lane `lane ^ source` when `other`.
Leaves GridEmitter::shuffle(Builder& b, const Lanes& from, llvm::Value* source, bool other) {
  Leaves out;
  auto word = [&](llvm::Value* value) {
    return b.CreateIntrinsic(m_.i32, other ? llvm::Intrinsic::nvvm_shfl_sync_bfly_i32 : llvm::Intrinsic::nvvm_shfl_sync_idx_i32, {b.getInt32(~0u), value, source, b.getInt32(31)});
  };
  for (llvm::Value* value : get(b, from, lane_)) {
    if (value->getType() == m_.i64) {
      llvm::Value* low = word(b.CreateTrunc(value, m_.i32));
      llvm::Value* high = word(b.CreateTrunc(b.CreateLShr(value, 32), m_.i32));
      out.push_back(b.CreateOr(b.CreateZExt(low, m_.i64), b.CreateShl(b.CreateZExt(high, m_.i64), 32)));
    } else if (value->getType() == m_.f32) {
      out.push_back(b.CreateBitCast(word(b.CreateBitCast(value, m_.i32)), m_.f32));
    } else {
      out.push_back(word(value));
    }
  }
  return out;
}

// Ends the warp's work when one of its lanes has failed.
void GridEmitter::look_for_failed(Builder& b) {
  if (!gpu()) return;
  llvm::BasicBlock* all = m_.block(b, "all_here");
  llvm::Value* here = b.CreateIntrinsic(m_.i32, llvm::Intrinsic::nvvm_vote_ballot_sync, {b.getInt32(~0u), b.getTrue()});
  b.CreateCondBr(b.CreateICmpEQ(here, b.getInt32(~0u)), all, gone_);
  b.SetInsertPoint(all);
}

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

// A warp has made `done` warp-tasks; the one that completes the group gives its value. Ends the block.
void GridEmitter::arrive(Builder& b, const Work& work, llvm::Value* done, llvm::Value* units) {
  const TypeId type = m_.flow.funcs[work.tree->func].result;
  // Whether the last warp needs what the others have written: a first leaf's value, or memory that it frees. Without either nobody looks before the next round.
  bool reads = m_.options.launches || !m_.layouts.of(type).leaves.empty();
  each_owned(*work.tree, [&](TypeId param, size_t, size_t) { reads = reads || m_.layouts.of(param).counted; });
  llvm::BasicBlock *lead = m_.block(b, "lead"), *last = m_.block(b, "last");
  sync(b);
  if (gpu()) b.CreateCondBr(b.CreateICmpEQ(lane_, b.getInt32(0)), lead, gone_);
  else b.CreateBr(lead);
  b.SetInsertPoint(lead);
  if (reads) m_.device_fence(b);
  llvm::Value* counters = b.CreateIntToPtr(field(b, m_.i64, work.control, offsetof(BendDeviceControl, counters)), m_.ptr);
  llvm::Value* counter = b.CreateInBoundsGEP(m_.i32, counters, {b.CreateZExt(work.base, m_.i64)});
  llvm::Value* before = m_.device_add(b, counter, done);
  b.CreateCondBr(b.CreateICmpEQ(b.CreateAdd(before, done), units), last, gone_);
  b.SetInsertPoint(last);
  if (reads) m_.device_fence(b);
  m_.store(b, b.getInt32(0), counter, 0, Region::Frame);
  llvm::Value* from = result_place(b, work, b.getInt32(0));
  Leaves value;
  for (flow::Leaf leaf : m_.layouts.of(type).leaves) value.push_back(m_.load(b, m_.leaf_type(leaf.kind), from, leaf.offset, Region::Frame));
  give_whole(b, work, value);
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
    if (tree.gives_left) arrive(b, work, turns, units);
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
  llvm::Value* own_record = nullptr;
  llvm::Value* worker = m_.open_device_thread(b, control, records, thread, own_record);
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
  m_.close_device_thread(b, worker, own_record);
  b.CreateRetVoid();
  return kernel;
}

// ---- the offer ----

// (control, warps, `groups` as it was a moment ago): places in the round's groups: index << 32 | base, or all ones.
llvm::Function* GridEmitter::reserve_function() {
  return m_.helper("bend.reserve", llvm::FunctionType::get(m_.i64, {m_.ptr, m_.i32, m_.i64}, false), [&](llvm::Function* fn, Builder& b) {
    fn->addFnAttr(llvm::Attribute::NoInline);
    llvm::Value *control = fn->getArg(0), *warps = b.CreateZExt(fn->getArg(1), m_.i64), *seen = fn->getArg(2), *none = b.getInt64(~uint64_t{0});
    const uint64_t low_bits = (uint64_t{1} << BEND_GROUP_SHIFT) - 1;
    llvm::Value* place = b.CreateConstGEP1_64(m_.i8, control, offsetof(BendDeviceControl, groups));
    llvm::Value* group_capacity = b.CreateZExt(field(b, m_.i32, control, offsetof(BendDeviceControl, group_capacity)), m_.i64);
    llvm::Value* warp_capacity = b.CreateZExt(field(b, m_.i32, control, offsetof(BendDeviceControl, warp_capacity)), m_.i64);
    auto fits = [&](llvm::Value* word) {
      llvm::Value* index = b.CreateICmpULT(b.CreateLShr(word, BEND_GROUP_SHIFT), group_capacity);
      return b.CreateAnd(index, b.CreateICmpULE(b.CreateAdd(b.CreateAnd(word, low_bits), warps), warp_capacity));
    };
    llvm::BasicBlock *take = m_.block(b, "take"), *got = m_.block(b, "got"), *missed = m_.block(b, "missed"), *mark = m_.block(b, "mark"), *full = m_.block(b, "full");
    // No thread adds to a list that it has seen full, so the counts cannot run over.
    b.CreateCondBr(fits(seen), take, full);
    b.SetInsertPoint(take);
    // The only task of a round has seen the word as it is: no atomic to wait for.
    llvm::BasicBlock *only = m_.block(b, "only"), *ask = m_.block(b, "ask"), *asked = m_.block(b, "asked");
    llvm::Value* change = b.CreateAdd(warps, b.getInt64(uint64_t{1} << BEND_GROUP_SHIFT));
    llvm::Value* alone = b.CreateICmpEQ(field(b, m_.i32, control, offsetof(BendDeviceControl, in_count)), b.getInt32(1));
    // Children that have been launched run beside their task.
    alone = b.CreateAnd(alone, b.CreateICmpEQ(field(b, m_.i64, control, offsetof(BendDeviceControl, launches)), b.getInt64(0)));
    b.CreateCondBr(alone, only, ask);
    b.SetInsertPoint(only);
    m_.store(b, b.CreateAdd(seen, change), place, 0, Region::Frame);
    b.CreateBr(asked);
    b.SetInsertPoint(ask);
    llvm::Value* added = m_.device_add(b, place, change);
    b.CreateBr(asked);
    b.SetInsertPoint(asked);
    llvm::PHINode* word = b.CreatePHI(m_.i64, 2);
    word->addIncoming(seen, only);
    word->addIncoming(added, ask);
    llvm::Value *index = b.CreateLShr(word, BEND_GROUP_SHIFT), *base = b.CreateAnd(word, low_bits);
    b.CreateCondBr(fits(word), got, missed);
    b.SetInsertPoint(got);
    b.CreateRet(b.CreateOr(b.CreateShl(index, 32), base));
    b.SetInsertPoint(missed);
    b.CreateCondBr(b.CreateICmpULT(index, group_capacity), mark, full);
    b.SetInsertPoint(mark);
    llvm::Value* queue = b.CreateIntToPtr(field(b, m_.i64, control, offsetof(BendDeviceControl, group_queue)), m_.ptr);
    llvm::Value* record = b.CreateInBoundsGEP(m_.i8, queue, {b.CreateMul(index, b.getInt64(m_.options.gpu->plan->group_stride))});
    m_.store(b, b.getInt32(BEND_TREE_NONE), record, offsetof(BendGroup, tree), Region::Frame);
    m_.store(b, b.CreateTrunc(base, m_.i32), record, offsetof(BendGroup, base), Region::Frame);
    b.CreateBr(full);
    b.SetInsertPoint(full);
    b.CreateRet(none);
  });
}

// At the start of a tree's segment: appends a group and ends the task, or goes on in a new block.
void GridEmitter::offer(Builder& b, llvm::Value* worker, llvm::Value* state, FuncId func) {
  const MachinePlan& plan = *m_.options.gpu->plan;
  const auto it = plan.tree_of.find(func.index);
  if (it == plan.tree_of.end()) return;
  const TreePlan& row = plan.trees[it->second];
  const DeviceModule& device = *m_.options.gpu->device;
  const ScanTree* scan = row.scan ? &device.scans[row.tree] : nullptr;
  const PerfectTree& tree = device.trees[scan ? scan->first : row.tree];
  const bool heavy = tree.heavy || (scan && device.trees[scan->second].heavy);
  const std::vector<TypeId> types = param_types(m_.flow, func);
  const Leaves params = m_.get_words(b, state, types);
  llvm::Value* depth = params[scan ? scan->first_words[measure_leaf(tree)] : measure_leaf(tree)];
  const uint32_t warp_height = tree.grain + BEND_LANE_BITS;
  llvm::BasicBlock *ask = m_.block(b, "ask"), *reserve = m_.block(b, "reserve"), *append = m_.block(b, "append_group"), *body = m_.block(b, "no_group");

  llvm::Value* spent = m_.is_spent(b, state);
  llvm::Value* deep = b.CreateICmpUGE(depth, b.getInt64(heavy ? tree.grain + kFewestHeavy : warp_height));
  b.CreateCondBr(deep, ask, body);
  b.SetInsertPoint(ask);
  llvm::Value* control = m_.device_control(b, worker);
  // What is read of the control block comes together.
  llvm::Value* seen = m_.load_relaxed(b, m_.i64, control, offsetof(BendDeviceControl, groups));
  llvm::Value* scans_before = scan ? m_.load_early(b, m_.i32, control, offsetof(BendDeviceControl, scan_number)) : nullptr;
  llvm::Value* rounds_before = scan ? m_.load_early(b, m_.i32, control, offsetof(BendDeviceControl, rounds)) : nullptr;
  llvm::Value* wanted_now = b.CreateICmpNE(field(b, m_.i32, control, offsetof(BendDeviceControl, groups_wanted)), b.getInt32(0));
  llvm::Value* allowed = b.CreateICmpNE(field(b, m_.i32, control, offsetof(BendDeviceControl, group_capacity)), b.getInt32(0));
  if (scan) allowed = b.CreateAnd(allowed, blocks_fit(b, *scan, params, depth));
  else for (auto [read, written] : tree.apart) allowed = b.CreateAnd(allowed, b.CreateICmpNE(b.CreateAnd(b.CreateXor(params[read], params[written]), BEND_ARRAY_ADDRESS), b.getInt64(0)));
  llvm::Value* large = b.CreateICmpUGE(b.CreateAdd(depth, b.getInt64(heavy ? kHeavyBonus : 0)), field(b, m_.i64, control, offsetof(BendDeviceControl, threshold)));
  llvm::Value* fits = b.CreateICmpULE(depth, b.getInt64(warp_height + (scan ? 0 : BEND_WIDE_MOST) + kMostWarpsLog2));
  b.CreateCondBr(b.CreateAnd(b.CreateAnd(b.CreateOr(wanted_now, spent), allowed), b.CreateAnd(large, fits)), reserve, body);
  b.SetInsertPoint(reserve);
  llvm::Value* whole = b.CreateICmpUGE(depth, b.getInt64(warp_height));
  llvm::Value* above = b.CreateSelect(whole, b.CreateTrunc(b.CreateSub(depth, b.getInt64(warp_height)), m_.i32), b.getInt32(0));
  llvm::Value* wanted = field(b, m_.i32, control, offsetof(BendDeviceControl, warps_log2));
  llvm::Value* more = b.CreateSub(above, wanted);
  llvm::Value* wide = b.CreateSelect(b.CreateICmpULE(above, wanted), b.getInt32(0), b.CreateSelect(b.CreateICmpULT(more, b.getInt32(BEND_WIDE_MOST)), more, b.getInt32(BEND_WIDE_MOST)));
  llvm::Value* units = b.CreateShl(b.getInt32(1), scan ? above : b.CreateSub(above, wide));
  if (scan) {
    // Scans of one round have words of their own, so the round's number is enough. 31 bits of it are left with each word.
    wide = b.CreateAdd(b.CreateAdd(scans_before, rounds_before), b.getInt32(1));
    llvm::BasicBlock* numbered = m_.block(b, "numbered");
    b.CreateCondBr(b.CreateICmpULT(wide, b.getInt32(1u << 31)), numbered, body);
    b.SetInsertPoint(numbered);
  }
  auto write = [&](llvm::Value* record, llvm::Value* base) {
    m_.store(b, b.getInt32(it->second), record, offsetof(BendGroup, tree), Region::Frame);
    m_.store(b, b.CreateTrunc(depth, m_.i32), record, offsetof(BendGroup, height), Region::Frame);
    m_.store(b, base, record, offsetof(BendGroup, base), Region::Frame);
    m_.store(b, wide, record, offsetof(BendGroup, wide), Region::Frame);
    m_.store(b, m_.keep_stack(b, worker, state, m_.flow.funcs[func].result), record, offsetof(BendGroup, parent), Region::Frame);
    m_.store_record(b, types, row.payload, params, record);
    m_.next_segment(b, state, BEND_SEGMENT_NONE);
  };
  if (m_.options.launches && !scan) {
    // A grid of the tree's own, launched when the warp or block has ended its tasks.
    llvm::BasicBlock *nested = m_.block(b, "nested_tree"), *in_round = m_.block(b, "in_round");
    const ModuleEmitter::TreePlace place = m_.nested_tree(b, worker, control, units);
    b.CreateCondBr(place.found, nested, in_round);
    b.SetInsertPoint(nested);
    write(place.record, place.base);
    m_.store(b, b.getInt32(plan.load[func.index]), place.record, offsetof(BendGroup, segment), Region::Frame);
    m_.store(b, b.getInt32(0), place.record, offsetof(BendGroup, flags), Region::Frame);
    m_.leave_pending(b, state, place.first, b.CreateShl(units, BEND_LANE_BITS), true);
    b.CreateRetVoid();
    b.SetInsertPoint(in_round);
  }
  llvm::Function* function = reserve_function();
  llvm::CallInst* places = b.CreateCall(function, {control, units, seen});
  places->setCallingConv(function->getCallingConv());
  b.CreateCondBr(b.CreateICmpEQ(places, b.getInt64(~uint64_t{0})), body, append);

  b.SetInsertPoint(append);
  llvm::Value* queue = b.CreateIntToPtr(field(b, m_.i64, control, offsetof(BendDeviceControl, group_queue)), m_.ptr);
  llvm::Value* record = b.CreateInBoundsGEP(m_.i8, queue, {b.CreateMul(b.CreateLShr(places, 32), b.getInt64(plan.group_stride))});
  write(record, b.CreateTrunc(places, m_.i32));
  b.CreateRetVoid();
  b.SetInsertPoint(body);
}

}  // namespace bendc::codegen
