// Scans as one grid (codegen/gpu/scan_trees.h, device_abi.h: scans). A warp-task takes 32 leaves of the first tree, adds them up in the warp, finds out what
// all warp-tasks before it add up to, and goes on with the same leaves of the second tree, whose slots it has just read; where they are few, it keeps
// them in shared memory meanwhile (emit_scan_blocks.cpp).
//
// What lies before is looked up ("decoupled look-back", Merrill and Garland) in two steps. Each warp-task leaves its own sum. 64 neighbours are a family, and the family's sum is
// left by its last member: where sums are additions, by the last to add its own to the family's total, which counts them (scans of 2^26 words in 186 us, H200); with other
// operations by the youngest, which waits for the words of the others (203 us, when additions did so). The eldest of the next family looks at the families before, from the
// nearest on, 32 at once, and leaves the sum of them all, for which the others of its family wait. With one step all warp-tasks in flight, 2112 on an H200, were looked through by each of
// them, 128 at once: 20 looks at the same few lines, 2.4 times slower at 2^28 words. So a family's word has a line of its own, and errors are looked for now and then only.
// All of what one says is one word, so no store orders another. A warp asks for a number when it begins with it, not before: all later warp-tasks wait for those
// that have been given out. In a round of one scan alone the first warp-task of each warp is its own number, and a scan with one for each warp asks for none.
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <cstddef>

#include "codegen/gpu/machine_plan.h"
#include "codegen/llvm/emit_grid.h"
#include "codegen/llvm/names.h"
#include "runtime/gpu/device_abi.h"
#include "support/internal.h"

namespace bendc::codegen {

using flow::Prim;
using flow::TypeId;
using Region = ModuleEmitter::Region;

namespace {

constexpr uint32_t kNumberShift = 33, kWholeShift = 32;
constexpr uint32_t kFamilyLog2 = 6, kFamily = 1u << kFamilyLog2;
constexpr uint32_t kFamilyStrideLog2 = 4;   // words from one family's to the next: a line, since a whole family looks at it
constexpr uint32_t kMembersShift = 40;      // of a family's total: members below it, 64 values of 32 bits in it
constexpr uint32_t kTries = 8;              // looks for words from one look for errors to the next: all warps look at the same word for those

llvm::Value* combined(Builder& b, Prim op, llvm::Value* x, llvm::Value* y) {
  switch (op) {
    case Prim::U32Add: return b.CreateAdd(x, y);
    case Prim::U32Mul: return b.CreateMul(x, y);
    case Prim::U32And: return b.CreateAnd(x, y);
    case Prim::U32Or: return b.CreateOr(x, y);
    case Prim::U32Xor: return b.CreateXor(x, y);
    default: internal_error("emit_scan_grid", "an operation without an identity");
  }
}

}  // namespace

// What all of a scan's warp-tasks share.
struct GridEmitter::Scan {
  const ScanTree* tree;
  llvm::Value *units, *workers;      // warp-tasks; warps that take them
  llvm::Value* given;                // so many are not asked for: each warp has its own first one
  llvm::Value *number, *words, *families, *next;   // of this scan; addresses of its warp-tasks' words, of those of families, and of its counter
};

// Whether 2^depth blocks lie apart in every array.
llvm::Value* GridEmitter::blocks_fit(Builder& b, const ScanTree& scan, const Leaves& params, llvm::Value* depth) {
  llvm::Value *fit = b.getTrue(), *log2 = scan.log2_word == ScanTree::kTable ? b.getInt64(scan.log2) : params[scan.log2_word];
  for (uint32_t word : scan.arrays) {
    llvm::Value* size = b.CreateLShr(params[word], BEND_ARRAY_SHIFT);
    fit = b.CreateAnd(fit, b.CreateAnd(b.CreateICmpULE(log2, size), b.CreateICmpULE(depth, b.CreateSub(size, log2))));
  }
  return fit;
}

// The next warp-task's number; on a device in lane 0 alone, 0 in the others. Who asks last of all leaves the counter as it was: each warp asks once too often.
llvm::Value* GridEmitter::take_number(Builder& b, const Scan& scan) {
  llvm::BasicBlock *entry = b.GetInsertBlock(), *ask = m_.block(b, "ask"), *last = m_.block(b, "last_to_ask"), *told = m_.block(b, "told");
  if (gpu()) b.CreateCondBr(b.CreateICmpEQ(lane_, b.getInt32(0)), ask, told);
  else b.CreateBr(ask);
  b.SetInsertPoint(ask);
  llvm::Value* taken = m_.device_add(b, scan.next, b.getInt32(1));
  b.CreateCondBr(b.CreateICmpEQ(taken, b.CreateSub(b.CreateAdd(scan.units, b.CreateSub(scan.workers, scan.given)), b.getInt32(1))), last, told);
  b.SetInsertPoint(last);
  m_.store(b, b.getInt32(0), scan.next, 0, Region::Frame);
  b.CreateBr(told);
  b.SetInsertPoint(told);
  llvm::PHINode* mine = b.CreatePHI(m_.i32, 3);
  if (gpu()) mine->addIncoming(b.getInt32(0), entry);
  mine->addIncoming(taken, ask);
  mine->addIncoming(taken, last);
  return mine;
}

// The warp-task that a warp does after `done` others, in all lanes; one beyond all when there is none.
llvm::Value* GridEmitter::next_unit(Builder& b, const Scan& scan, llvm::Value* first, llvm::Value* done) {
  if (!gpu()) return take_number(b, scan);
  llvm::BasicBlock *own = m_.block(b, "own"), *later = m_.block(b, "later"), *ask = m_.block(b, "ask_for"), *taken = m_.block(b, "taken"), *before = nullptr, *asked = nullptr;
  b.CreateCondBr(b.CreateAnd(b.CreateICmpNE(scan.given, b.getInt32(0)), b.CreateICmpEQ(done, b.getInt32(0))), own, later);
  b.SetInsertPoint(own);
  b.CreateBr(taken);
  b.SetInsertPoint(later);
  before = b.GetInsertBlock();
  b.CreateCondBr(b.CreateICmpULT(scan.given, scan.units), ask, taken);
  b.SetInsertPoint(ask);
  llvm::Value* number = take_number(b, scan);
  sync(b);
  number = b.CreateIntrinsic(m_.i32, llvm::Intrinsic::nvvm_shfl_sync_idx_i32, {b.getInt32(~0u), number, b.getInt32(0), b.getInt32(31)});
  number = b.CreateAdd(number, scan.given);
  asked = b.GetInsertBlock();
  b.CreateBr(taken);
  b.SetInsertPoint(taken);
  llvm::PHINode* unit = b.CreatePHI(m_.i32, 3);
  unit->addIncoming(first, own);
  unit->addIncoming(scan.units, before);
  unit->addIncoming(number, asked);
  return unit;
}

// A word of a warp-task or a family, of which `value` is the first to say.
void GridEmitter::publish(Builder& b, const Scan& scan, llvm::Value* place, llvm::Value* value, llvm::Value* whole) {
  llvm::Value* head = b.CreateOr(b.CreateShl(b.CreateZExt(scan.number, m_.i64), kNumberShift), b.CreateShl(b.CreateZExt(whole, m_.i64), kWholeShift));
  llvm::StoreInst* store = b.CreateAlignedStore(b.CreateOr(head, b.CreateZExt(value, m_.i64)), place, llvm::Align(8));
  store->setAtomic(llvm::AtomicOrdering::Monotonic, m_.device_scope());
}

// Waits in each lane for the words at `places`, where `wanted`, up to `enough(words, there)`, of all lanes; goes to `gone_` when an error has ended what they wait for.
// A lane does not ask again for what it has: it looks at `own`, which is there. The last `wholes` words are there when they tell the whole. Gives the words and which
// are there.
GridEmitter::Found GridEmitter::wait_for(Builder& b, const Work& work, const Scan& scan, llvm::ArrayRef<llvm::Value*> places, llvm::ArrayRef<llvm::Value*> wanted, size_t wholes, llvm::Value* own,
                                         const std::function<llvm::Value*(Builder&, const Found&)>& enough) {
  llvm::BasicBlock *entry = b.GetInsertBlock(), *poll = m_.block(b, "poll"), *missing = m_.block(b, "missing"), *patient = m_.block(b, "patient"), *there = m_.block(b, "there");
  llvm::SmallVector<llvm::Value*, 4> unwanted;
  for (llvm::Value* bit : wanted) unwanted.push_back(b.CreateNot(bit));
  b.CreateBr(poll);
  b.SetInsertPoint(poll);
  llvm::PHINode* tries = b.CreatePHI(m_.i32, 3);
  tries->addIncoming(b.getInt32(0), entry);
  llvm::SmallVector<llvm::PHINode*, 4> before, known;
  for (size_t i = 0; i < places.size(); ++i) {
    before.push_back(b.CreatePHI(m_.i64, 3));
    before.back()->addIncoming(b.getInt64(0), entry);
  }
  for (size_t i = 0; i < places.size(); ++i) {
    known.push_back(b.CreatePHI(m_.i1, 3));
    known.back()->addIncoming(unwanted[i], entry);
  }
  llvm::SmallVector<llvm::LoadInst*, 4> loads;
  for (size_t i = 0; i < places.size(); ++i) {
    loads.push_back(b.CreateAlignedLoad(m_.i64, b.CreateSelect(known[i], own, places[i]), llvm::Align(8)));
    loads.back()->setAtomic(llvm::AtomicOrdering::Monotonic, m_.device_scope());
  }
  Found found;
  for (size_t i = 0; i < places.size(); ++i) {
    found.words.push_back(b.CreateSelect(known[i], before[i], loads[i]));
    const bool whole = i + wholes >= places.size();
    llvm::Value* head = b.CreateTrunc(b.CreateLShr(loads[i], whole ? kWholeShift : kNumberShift), m_.i32);
    found.there.push_back(b.CreateOr(known[i], b.CreateICmpEQ(head, whole ? b.CreateOr(b.CreateShl(scan.number, 1), 1) : scan.number)));
  }
  b.CreateCondBr(enough(b, found), there, missing);
  auto again = [&](llvm::Value* number) {
    tries->addIncoming(number, b.GetInsertBlock());
    for (size_t i = 0; i < places.size(); ++i) {
      before[i]->addIncoming(found.words[i], b.GetInsertBlock());
      known[i]->addIncoming(found.there[i], b.GetInsertBlock());
    }
  };
  b.SetInsertPoint(missing);
  llvm::Value* next = b.CreateAdd(tries, b.getInt32(1));
  again(next);
  b.CreateCondBr(b.CreateICmpEQ(b.CreateAnd(next, kTries - 1), b.getInt32(0)), patient, poll);
  b.SetInsertPoint(patient);
  llvm::LoadInst* error = b.CreateAlignedLoad(m_.i64, b.CreateConstGEP1_64(m_.i8, work.control, offsetof(BendDeviceControl, error)), llvm::Align(8));
  error->setAtomic(llvm::AtomicOrdering::Monotonic, m_.device_scope());
  llvm::Value* failed = b.CreateIntrinsic(m_.i1, llvm::Intrinsic::nvvm_vote_any_sync, {b.getInt32(~0u), b.CreateICmpNE(error, b.getInt64(0))});
  again(next);
  b.CreateCondBr(failed, gone_, poll);
  b.SetInsertPoint(there);
  return found;
}

// The value of all warp-tasks before `unit`, in every lane; `own` is that of this one, which has been published.
llvm::Value* GridEmitter::before_unit(Builder& b, const Work& work, const Scan& scan, llvm::Value* unit, llvm::Value* own) {
  const Prim op = scan.tree->op;
  llvm::Value *all = b.getInt32(~0u), *identity = b.getInt32(scan.tree->identity);
  auto vote = [&](Builder& body, llvm::Value* bit) { return body.CreateIntrinsic(m_.i32, llvm::Intrinsic::nvvm_vote_ballot_sync, {all, bit}); };
  auto in_all_lanes = [&](llvm::Value* value) {
    for (uint32_t distance = 1; distance < BEND_LANES; distance *= 2)
      value = combined(b, op, value, b.CreateIntrinsic(m_.i32, llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, {all, value, b.getInt32(distance), b.getInt32(31)}));
    return value;
  };
  auto at = [&](llvm::Value* words, llvm::Value* index) { return b.CreateInBoundsGEP(m_.i64, words, {b.CreateZExt(index, m_.i64)}); };
  llvm::Value* lead = b.CreateICmpEQ(lane_, b.getInt32(0));

  llvm::Value *position = b.CreateAnd(unit, kFamily - 1), *family = b.CreateLShr(unit, kFamilyLog2), *eldest = b.CreateSub(unit, position);
  llvm::Value *first_family = b.CreateICmpEQ(family, b.getInt32(0)), *here = at(scan.words, unit);
  auto family_at = [&](llvm::Value* index) { return at(scan.families, b.CreateShl(index, kFamilyStrideLog2)); };
  auto is_whole = [&](Builder& body, llvm::Value* word) { return body.CreateTrunc(body.CreateLShr(word, kWholeShift), m_.i1); };
  // Sums by addition: who counts itself last in its family tells the family's sum.
  const bool adds_up = op == Prim::U32Add;
  if (adds_up) {
    when(b, b.CreateAnd(lead, b.CreateICmpUGT(scan.units, b.getInt32(kFamily))), [&](Builder& body) {
      llvm::Value* place = family_at(family);
      llvm::Value* total = body.CreateConstInBoundsGEP1_64(m_.i64, place, 1);
      llvm::Value* before = m_.device_add(body, total, body.CreateOr(body.CreateZExt(own, m_.i64), uint64_t{1} << kMembersShift));
      when(body, body.CreateICmpEQ(body.CreateLShr(before, kMembersShift), body.getInt64(kFamily - 1)), [&](Builder& inner) {
        publish(inner, scan, place, inner.CreateAdd(inner.CreateTrunc(before, m_.i32), own), first_family);
        m_.store(inner, inner.getInt64(0), total, 0, Region::Frame);
      });
    });
  }
  llvm::BasicBlock *look_near = m_.block(b, "near"), *look_far = m_.block(b, "far"), *window = m_.block(b, "window"), *told = m_.block(b, "told"), *known = m_.block(b, "known");
  b.CreateCondBr(b.CreateAnd(b.CreateICmpEQ(position, b.getInt32(0)), b.CreateNot(first_family)), look_far, look_near);

  // Those of the family before this one, and the sum of all families before, which the eldest finds out.
  b.SetInsertPoint(look_near);
  llvm::SmallVector<llvm::Value*, 4> places, wanted;
  for (uint32_t i = 0; i < kFamily / BEND_LANES; ++i) {
    llvm::Value* index = b.CreateAdd(lane_, b.getInt32(i * BEND_LANES));
    wanted.push_back(b.CreateICmpULT(index, position));
    places.push_back(at(scan.words, b.CreateAdd(eldest, index)));
  }
  auto all_there = [&](Builder& body, const Found& found) -> llvm::Value* {
    llvm::Value* there = found.there[0];
    for (size_t i = 1; i < found.there.size(); ++i) there = body.CreateAnd(there, found.there[i]);
    return body.CreateIntrinsic(m_.i1, llvm::Intrinsic::nvvm_vote_all_sync, {all, there});
  };
  auto sum_up = [&](const Found& found) {
    llvm::Value* sum = identity;
    for (size_t i = 0; i < places.size(); ++i) sum = combined(b, op, sum, b.CreateSelect(wanted[i], b.CreateTrunc(found.words[i], m_.i32), identity));
    return in_all_lanes(sum);
  };
  llvm::BasicBlock* summed = m_.block(b, "summed");
  llvm::SmallVector<std::pair<llvm::Value*, llvm::BasicBlock*>, 3> sums;   // and where they come from
  auto known_here = [&](llvm::Value* sum) {
    sums.emplace_back(sum, b.GetInsertBlock());
    b.CreateBr(summed);
  };
  llvm::Value* families_before = family_at(b.CreateSelect(first_family, b.getInt32(0), b.CreateSub(family, b.getInt32(1))));
  if (!adds_up) {
    llvm::BasicBlock *is_youngest = m_.block(b, "youngest"), *is_other = m_.block(b, "other"), *alone = m_.block(b, "alone"), *whole_known = m_.block(b, "whole_known");
    b.CreateCondBr(b.CreateICmpEQ(position, b.getInt32(kFamily - 1)), is_youngest, is_other);
    // The youngest tells its family's sum before it waits for the families before.
    b.SetInsertPoint(is_youngest);
    const Found family_found = wait_for(b, work, scan, places, wanted, 0, here, all_there);
    llvm::Value* in_family = sum_up(family_found);
    llvm::Value* with_own = combined(b, op, in_family, own);
    when(b, lead, [&](Builder& body) { publish(body, scan, family_at(family), with_own, first_family); });
    b.CreateCondBr(first_family, whole_known, alone);
    b.SetInsertPoint(whole_known);
    known_here(in_family);
    b.SetInsertPoint(alone);
    const Found before_family = wait_for(b, work, scan, {families_before}, {b.getTrue()}, 1, here, all_there);
    llvm::Value* before_own = combined(b, op, b.CreateTrunc(before_family.words[0], m_.i32), in_family);
    when(b, lead, [&](Builder& body) { publish(body, scan, family_at(family), combined(body, op, before_own, own), body.getTrue()); });
    known_here(before_own);
    b.SetInsertPoint(is_other);
  }
  llvm::SmallVector<llvm::Value*, 5> other_places(places.begin(), places.end()), other_wanted(wanted.begin(), wanted.end());
  other_places.push_back(families_before);
  other_wanted.push_back(b.CreateNot(first_family));
  const Found found = wait_for(b, work, scan, other_places, other_wanted, 1, here, all_there);
  known_here(combined(b, op, b.CreateSelect(first_family, identity, b.CreateTrunc(found.words.back(), m_.i32)), sum_up(found)));

  b.SetInsertPoint(summed);
  llvm::PHINode* near_sum = b.CreatePHI(m_.i32, 3);
  for (const auto& [sum, from] : sums) near_sum->addIncoming(sum, from);
  b.CreateBr(known);

  // The eldest looks at the families before, from the nearest on, 32 at once.
  b.SetInsertPoint(look_far);
  llvm::BasicBlock* far_entry = b.GetInsertBlock();
  b.CreateBr(window);
  b.SetInsertPoint(window);
  llvm::PHINode *from = b.CreatePHI(m_.i32, 2), *so_far = b.CreatePHI(m_.i32, 2);
  from->addIncoming(family, far_entry);
  so_far->addIncoming(identity, far_entry);
  llvm::Value* index = b.CreateSub(b.CreateSub(from, b.getInt32(1)), lane_);
  llvm::Value* inside = b.CreateICmpSGE(index, b.getInt32(0));   // the first family knows the whole
  llvm::Value *wholes = nullptr, *needed = nullptr;
  const Found far = wait_for(b, work, scan, {family_at(b.CreateSelect(inside, index, b.getInt32(0)))}, {inside}, 0, here, [&](Builder& body, const Found& seen) {
    wholes = vote(body, body.CreateAnd(seen.there[0], body.CreateOr(body.CreateNot(inside), is_whole(body, seen.words[0]))));
    needed = body.CreateXor(wholes, body.CreateSub(wholes, body.getInt32(1)));   // up to the nearest that knows the whole, or all
    return body.CreateICmpEQ(body.CreateAnd(vote(body, seen.there[0]), needed), needed);
  });
  llvm::Value* mine = b.CreateTrunc(b.CreateLShr(needed, lane_), m_.i1);
  llvm::Value* more = combined(b, op, in_all_lanes(b.CreateSelect(mine, b.CreateTrunc(far.words[0], m_.i32), identity)), so_far);
  from->addIncoming(b.CreateSub(from, b.getInt32(BEND_LANES)), b.GetInsertBlock());
  so_far->addIncoming(more, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpEQ(wholes, b.getInt32(0)), window, told);
  b.SetInsertPoint(told);
  when(b, lead, [&](Builder& body) { publish(body, scan, family_at(body.CreateSub(family, body.getInt32(1))), more, body.getTrue()); });
  llvm::BasicBlock* far_end = b.GetInsertBlock();
  b.CreateBr(known);

  b.SetInsertPoint(known);
  llvm::PHINode* out = b.CreatePHI(m_.i32, 2);
  out->addIncoming(near_sum, summed);
  out->addIncoming(more, far_end);
  return out;
}

// `values`: those of the leaves of warp-task `unit`, of which there are as many as lanes but in a lone one. Sets `before` to the values of all leaves before each, and
// gives the value of all leaves so far.
llvm::Value* GridEmitter::before_lanes(Builder& b, const Work& work, const Scan& scan, llvm::Value* unit, const Lanes& values, const Lanes& before) {
  const Prim op = scan.tree->op;
  llvm::Value* identity = b.getInt32(scan.tree->identity);
  llvm::Value* place = b.CreateInBoundsGEP(m_.i64, scan.words, {b.CreateZExt(unit, m_.i64)});
  llvm::Value* count = b.CreateSelect(b.CreateICmpULT(work.depth, b.getInt32(BEND_LANE_BITS)), b.CreateShl(b.getInt32(1), work.depth), b.getInt32(BEND_LANES));
  if (!gpu()) {
    // The warps before have run to their ends.
    llvm::Value* first = b.CreateICmpEQ(unit, b.getInt32(0));
    llvm::Value* nearest = b.CreateInBoundsGEP(m_.i64, scan.words, {b.CreateZExt(b.CreateSelect(first, unit, b.CreateSub(unit, b.getInt32(1))), m_.i64)});
    llvm::Value* sum = b.CreateSelect(first, identity, b.CreateTrunc(b.CreateAlignedLoad(m_.i64, nearest, llvm::Align(8)), m_.i32));
    llvm::Value* whole = loop(b, count, {sum}, [&](Builder& body, llvm::Value* lane, const Leaves& now) {
      set(body, before, lane, {now[0]});
      return Leaves{combined(body, op, now[0], get(body, values, lane)[0])};
    })[0];
    publish(b, scan, place, whole, b.getTrue());
    return whole;
  }
  auto shuffled = [&](llvm::Intrinsic::ID way, llvm::Value* value, llvm::Value* by, uint32_t clamp) { return b.CreateIntrinsic(m_.i32, way, {b.getInt32(~0u), value, by, b.getInt32(clamp)}); };
  llvm::Value* up_to = get(b, values, lane_)[0];
  for (uint32_t distance = 1; distance < BEND_LANES; distance *= 2) {
    llvm::Value* other = shuffled(llvm::Intrinsic::nvvm_shfl_sync_up_i32, up_to, b.getInt32(distance), 0);
    up_to = combined(b, op, up_to, b.CreateSelect(b.CreateICmpUGE(lane_, b.getInt32(distance)), other, identity));
  }
  llvm::Value* own = b.CreateSelect(b.CreateICmpEQ(lane_, b.getInt32(0)), identity, shuffled(llvm::Intrinsic::nvvm_shfl_sync_up_i32, up_to, b.getInt32(1), 0));
  llvm::Value* all = shuffled(llvm::Intrinsic::nvvm_shfl_sync_idx_i32, up_to, b.CreateSub(count, b.getInt32(1)), 31);
  llvm::Value* lead = b.CreateICmpEQ(lane_, b.getInt32(0));
  when(b, lead, [&](Builder& body) { publish(body, scan, place, all, body.getFalse()); });
  llvm::Value* sum = before_unit(b, work, scan, unit, all);
  llvm::Value* whole = combined(b, op, sum, all);
  set(b, before, lane_, {combined(b, op, sum, own)});
  return whole;
}

// bend.scan.f(worker, control, group, number, warps): as bend.grid.f (emit_grid.cpp), but that the warps that come with any number of the group take its
// warp-tasks in order.
llvm::Function* GridEmitter::scan_function(const TreePlan& plan) {
  const ScanTree& tree = m_.options.gpu->device->scans[plan.tree];
  const PerfectTree& first = m_.options.gpu->device->trees[tree.first];
  PerfectTree second = m_.options.gpu->device->trees[tree.second];
  second.paths = tree.second_paths;
  llvm::FunctionType* type = llvm::FunctionType::get(m_.i32, {m_.ptr, m_.ptr, m_.ptr, m_.i32, m_.i32}, false);
  return m_.helper("bend.scan." + mangle(m_.flow.funcs[tree.func].name), type, [&](llvm::Function* fn, Builder& b) {
    if (gpu()) {
      fn->addFnAttr(llvm::Attribute::AlwaysInline);
      fn->addFnAttr(llvm::Attribute::Convergent);
    }
    llvm::BasicBlock* over = llvm::BasicBlock::Create(m_.context, "over", fn);
    lane_ = gpu() ? b.CreateIntrinsic(m_.i32, llvm::Intrinsic::nvvm_read_ptx_sreg_laneid, {}) : nullptr;
    Work work{&first, fn->getArg(0), fn->getArg(1), fn->getArg(2), nullptr, nullptr, {}};
    const TypeId result = m_.flow.funcs[first.func].result;
    work.depth = field(b, m_.i32, work.record, offsetof(BendGroup, height));
    work.base = field(b, m_.i32, work.record, offsetof(BendGroup, base));
    const Leaves params = m_.load_record(b, param_types(m_.flow, tree.func), plan.payload, work.record);
    auto roots = [&](const std::vector<uint32_t>& words) {
      Leaves out;
      for (uint32_t word : words) out.push_back(word == ScanTree::kTable ? b.getInt64(0) : params[word]);   // the table is never looked at
      return out;
    };
    work.params = roots(tree.first_words);
    const Leaves second_root = roots(tree.second_words);
    llvm::Value *first_unit = fn->getArg(3), *stride = fn->getArg(4);
    llvm::Value* bits = b.CreateSelect(b.CreateICmpULT(work.depth, b.getInt32(BEND_LANE_BITS)), work.depth, b.getInt32(BEND_LANE_BITS));
    Scan scan{&tree, b.CreateShl(b.getInt32(1), b.CreateSub(work.depth, bits)), nullptr, b.getInt32(0), field(b, m_.i32, work.record, offsetof(BendGroup, wide)), nullptr, nullptr, nullptr};
    scan.workers = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, scan.units, stride);
    if (gpu()) {
      // The only group of its round: no warp comes late from another one, so the first warp-tasks need no asking.
      llvm::Value* groups = b.CreateLShr(field(b, m_.i64, work.control, offsetof(BendDeviceControl, groups)), BEND_GROUP_SHIFT);
      scan.given = b.CreateSelect(b.CreateICmpEQ(groups, b.getInt64(1)), scan.workers, b.getInt32(0));
    }
    llvm::Value* turns = b.CreateUDiv(b.CreateAdd(b.CreateSub(scan.units, first_unit), b.CreateSub(stride, b.getInt32(1))), stride);
    llvm::Value* beyond = b.CreateAdd(first_unit, b.CreateMul(turns, stride));
    llvm::Value* words = b.CreateIntToPtr(field(b, m_.i64, work.control, offsetof(BendDeviceControl, scans)), m_.ptr);
    llvm::Value *capacity = b.CreateZExt(field(b, m_.i32, work.control, offsetof(BendDeviceControl, warp_capacity)), m_.i64), *base = b.CreateZExt(work.base, m_.i64);
    scan.words = b.CreateInBoundsGEP(m_.i64, words, {base});
    // Families' lines are the same ones in all scans: the first word is what the family tells, the second its total so far, 0 between scans. A scan has lines if it has 64 warp-tasks.
    llvm::Value* line = b.getInt64(1u << kFamilyStrideLog2);
    llvm::Value* lines = b.CreateAnd(b.CreateAdd(base, b.CreateSub(line, b.getInt64(1))), b.CreateNeg(line));
    scan.families = b.CreateInBoundsGEP(m_.i64, words, {b.CreateAdd(capacity, lines)});
    scan.next = b.CreateInBoundsGEP(m_.i32, b.CreateInBoundsGEP(m_.i64, words, {b.CreateShl(capacity, 1)}), {base});
    const Lanes values = lanes_of(b, result), before = lanes_of(b, result);
    Kept kept = plan_kept(b, tree, params, bits);

    llvm::BasicBlock *entry = b.GetInsertBlock(), *look = m_.block(b, "look"), *more = m_.block(b, "more"), *go = m_.block(b, "go"), *finish = m_.block(b, "finish"), *some = m_.block(b, "some");
    b.CreateBr(look);
    b.SetInsertPoint(look);
    llvm::PHINode *done = b.CreatePHI(m_.i32, 2), *had_last = b.CreatePHI(m_.i1, 2), *posted = b.CreatePHI(m_.i64, 2);
    done->addIncoming(b.getInt32(0), entry);
    had_last->addIncoming(b.getFalse(), entry);
    posted->addIncoming(b.getInt64(0), entry);
    gone_ = over;
    sync(b);
    look_for_failed(b);
    llvm::Value* failed = b.CreateICmpNE(posted, b.getInt64(0));
    if (gpu()) failed = b.CreateIntrinsic(m_.i1, llvm::Intrinsic::nvvm_vote_any_sync, {b.getInt32(~0u), failed});
    b.CreateCondBr(failed, over, more);
    b.SetInsertPoint(more);
    llvm::Value* unit = next_unit(b, scan, first_unit, done);
    b.CreateCondBr(b.CreateICmpULT(unit, scan.units), go, finish);
    b.SetInsertPoint(go);
    llvm::LoadInst* error = b.CreateAlignedLoad(m_.i64, b.CreateConstGEP1_64(m_.i8, work.control, offsetof(BendDeviceControl, error)), llvm::Align(8));
    error->setAtomic(llvm::AtomicOrdering::Monotonic, m_.device_scope());

    llvm::Value *count = b.CreateShl(b.getInt32(1), bits), *from = b.CreateShl(unit, bits);
    auto leaf = [&](Builder& inner, const PerfectTree& of, const Leaves& root, llvm::Value* lane) {
      Leaves args = walk_at_once(inner, of, root, inner.CreateOr(from, lane), work.depth);
      args[measure_leaf(of)] = inner.getInt64(0);
      return args;
    };
    // The arguments of a leaf whose block of 2^log2 slots is kept. The size is a constant, so that loops over it are straight-line code.
    auto kept_args = [&](Builder& inner, Leaves args, const std::vector<uint32_t>& words, llvm::Value* lane, uint32_t log2) {
      llvm::Value* handle = kept_handle(inner, kept, lane, log2);
      for (size_t k = 0; k < words.size(); ++k) {
        if (words[k] == tree.kept) args[k] = handle;
        if (words[k] == tree.log2_word) args[k] = inner.getInt64(log2);
      }
      return args;
    };
    // Either way: with the blocks kept, or as they lie in memory.
    auto two_ways = [&](const std::function<void(Builder&, uint32_t)>& with, const std::function<void(Builder&)>& without) {
      llvm::BasicBlock *plain = m_.block(b, "in_memory"), *met = m_.block(b, "met");
      if (kept.fit) {
        llvm::BasicBlock* keep = m_.block(b, "keep");
        b.CreateCondBr(kept.fit, keep, plain);
        b.SetInsertPoint(keep);
        kept.number = walk_at_once(b, first, work.params, from, work.depth)[tree.number_word];
        each_size(b, kept, with);
        b.CreateBr(met);
      } else {
        b.CreateBr(plain);
      }
      b.SetInsertPoint(plain);
      without(b);
      b.CreateBr(met);
      b.SetInsertPoint(met);
    };
    two_ways(
        [&](Builder& part, uint32_t log2) {
          fetch(part, kept, log2);
          sync(part);
          each_lane(part, nullptr, [&](Builder& inner, llvm::Value* lane) {
            const Leaves args = kept_args(inner, leaf(inner, first, work.params, lane), tree.first_words, lane, log2);
            set(inner, values, lane, call(inner, work.worker, m_.kept_leaf(first.leaf), first.leaf, args));
          });
        },
        [&](Builder& part) {
          each_lane(part, count, [&](Builder& inner, llvm::Value* lane) { set(inner, values, lane, call(inner, work.worker, first.leaf, leaf(inner, first, work.params, lane))); });
        });
    sync(b);
    look_for_failed(b);
    llvm::Value* whole = before_lanes(b, work, scan, unit, values, before);
    llvm::Value* is_last = b.CreateICmpEQ(b.CreateAdd(unit, b.getInt32(1)), scan.units);
    when(b, gpu() ? b.CreateAnd(is_last, b.CreateICmpEQ(lane_, b.getInt32(0))) : is_last, [&](Builder& inner) { m_.store_field(inner, result, {whole}, result_place(inner, work, inner.getInt32(0)), 0); });
    auto second_args = [&](Builder& inner, llvm::Value* lane) {
      Leaves args = leaf(inner, second, second_root, lane);
      args[tree.base] = combined(inner, tree.op, second_root[tree.base], get(inner, before, lane)[0]);
      return args;
    };
    two_ways(
        [&](Builder& part, uint32_t log2) {
          each_lane(part, nullptr, [&](Builder& inner, llvm::Value* lane) {
            (void)call(inner, work.worker, m_.kept_leaf(second.leaf), second.leaf, kept_args(inner, second_args(inner, lane), tree.second_words, lane, log2));
          });
          sync(part);
          look_for_failed(part);
          put_back(part, kept, log2);
        },
        [&](Builder& part) { each_lane(part, count, [&](Builder& inner, llvm::Value* lane) { (void)call(inner, work.worker, second.leaf, second_args(inner, lane)); }); });
    done->addIncoming(b.CreateAdd(done, b.getInt32(1)), b.GetInsertBlock());
    had_last->addIncoming(is_last, b.GetInsertBlock());
    posted->addIncoming(error, b.GetInsertBlock());
    b.CreateBr(look);

    b.SetInsertPoint(finish);
    b.CreateCondBr(b.CreateICmpEQ(done, b.getInt32(0)), over, some);
    b.SetInsertPoint(some);
    gone_ = over;
    end_group(b, work, done, scan.units, had_last);
    over->moveAfter(&fn->back());
    b.SetInsertPoint(over);
    b.CreateRet(beyond);
  });
}

}  // namespace bendc::codegen
