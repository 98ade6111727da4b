// What a perfect tree's segment starts with: where the tree is large enough and the round has places, it is appended as a group, and what waits for it goes on later.
#include "codegen/llvm/emit_grid.h"

#include <cstddef>

#include "codegen/gpu/machine_plan.h"
#include "codegen/llvm/device.h"
#include "runtime/gpu/device_abi.h"

namespace bendc::codegen {

using flow::FuncId;
using flow::TypeId;
using Region = ModuleEmitter::Region;

namespace {
constexpr uint32_t kHeavyBonus = 8;     // a leaf that loops is taken for 256 calls
constexpr uint64_t kFewestHeavy = 2;    // log2 of the loops that are worth a warp, most of its lanes idle
constexpr uint32_t kMostWarpsLog2 = 20; // of one group; deeper trees fork until they fit
}  // namespace

// (control, warps, `groups` as it was a moment ago, whether nobody else has a task, group_capacity, warp_capacity): places in the round's groups: index << 32 | base, or all ones.
llvm::Function* GridEmitter::reserve_function() {
  return m_.helper("bend.reserve", llvm::FunctionType::get(m_.i64, {m_.ptr, m_.i32, m_.i64, m_.i1, m_.i32, m_.i32}, false), [&](llvm::Function* fn, Builder& b) {
    fn->addFnAttr(llvm::Attribute::NoInline);
    llvm::Value *control = fn->getArg(0), *warps = b.CreateZExt(fn->getArg(1), m_.i64), *seen = fn->getArg(2), *alone = fn->getArg(3), *none = b.getInt64(~uint64_t{0});
    const uint64_t low_bits = (uint64_t{1} << BEND_GROUP_SHIFT) - 1;
    llvm::Value* place = b.CreateConstGEP1_64(m_.i8, control, offsetof(BendDeviceControl, groups));
    llvm::Value *group_capacity = b.CreateZExt(fn->getArg(4), m_.i64), *warp_capacity = b.CreateZExt(fn->getArg(5), m_.i64);
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
  auto early = [&](llvm::Type* type, size_t offset) { return m_.load_early(b, type, control, offset); };
  llvm::Value* in_count = early(m_.i32, offsetof(BendDeviceControl, in_count));
  llvm::Value* launches = m_.options.launches ? early(m_.i64, offsetof(BendDeviceControl, launches)) : nullptr;
  llvm::Value* threshold = early(m_.i64, offsetof(BendDeviceControl, threshold));
  llvm::Value* groups_wanted = early(m_.i32, offsetof(BendDeviceControl, groups_wanted));
  llvm::Value* group_capacity = early(m_.i32, offsetof(BendDeviceControl, group_capacity));
  llvm::Value* warp_capacity = early(m_.i32, offsetof(BendDeviceControl, warp_capacity));
  llvm::Value* wanted = early(m_.i32, offsetof(BendDeviceControl, warps_log2));
  llvm::Value* group_queue = early(m_.i64, offsetof(BendDeviceControl, group_queue));
  llvm::Value* scans_before = scan ? early(m_.i32, offsetof(BendDeviceControl, scan_number)) : nullptr;
  llvm::Value* rounds_before = scan ? early(m_.i32, offsetof(BendDeviceControl, rounds)) : nullptr;
  // The only task of a round sees what it has done itself, and what the round began with: its processor has that at hand, where others look at memory.
  // Children that have been launched run beside their task.
  llvm::Value* alone = b.CreateICmpEQ(in_count, b.getInt32(1));
  if (launches) alone = b.CreateAnd(alone, b.CreateICmpEQ(launches, b.getInt64(0)));
  llvm::BasicBlock *mine = m_.block(b, "groups_of_one"), *others = m_.block(b, "groups_of_all"), *known = m_.block(b, "groups_known");
  b.CreateCondBr(alone, mine, others);
  b.SetInsertPoint(mine);
  llvm::Value* own_groups = early(m_.i64, offsetof(BendDeviceControl, groups));
  b.CreateBr(known);
  b.SetInsertPoint(others);
  llvm::Value* all_groups = m_.load_relaxed(b, m_.i64, control, offsetof(BendDeviceControl, groups));
  b.CreateBr(known);
  b.SetInsertPoint(known);
  llvm::PHINode* seen = b.CreatePHI(m_.i64, 2);
  seen->addIncoming(own_groups, mine);
  seen->addIncoming(all_groups, others);
  llvm::Value* wanted_now = b.CreateICmpNE(groups_wanted, b.getInt32(0));
  llvm::Value* allowed = b.CreateICmpNE(group_capacity, b.getInt32(0));
  if (scan) allowed = b.CreateAnd(allowed, blocks_fit(b, *scan, params, depth));
  else for (auto [read, written] : tree.apart) allowed = b.CreateAnd(allowed, b.CreateICmpNE(b.CreateAnd(b.CreateXor(params[read], params[written]), BEND_ARRAY_ADDRESS), b.getInt64(0)));
  llvm::Value* large = b.CreateICmpUGE(b.CreateAdd(depth, b.getInt64(heavy ? kHeavyBonus : 0)), threshold);
  llvm::Value* fits = b.CreateICmpULE(depth, b.getInt64(warp_height + (scan ? 0 : BEND_WIDE_MOST) + kMostWarpsLog2));
  b.CreateCondBr(b.CreateAnd(b.CreateAnd(b.CreateOr(wanted_now, spent), allowed), b.CreateAnd(large, fits)), reserve, body);
  b.SetInsertPoint(reserve);
  llvm::Value* whole = b.CreateICmpUGE(depth, b.getInt64(warp_height));
  llvm::Value* above = b.CreateSelect(whole, b.CreateTrunc(b.CreateSub(depth, b.getInt64(warp_height)), m_.i32), b.getInt32(0));
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
  llvm::CallInst* places = b.CreateCall(function, {control, units, seen, alone, group_capacity, warp_capacity});
  places->setCallingConv(function->getCallingConv());
  b.CreateCondBr(b.CreateICmpEQ(places, b.getInt64(~uint64_t{0})), body, append);

  b.SetInsertPoint(append);
  llvm::Value* record = b.CreateInBoundsGEP(m_.i8, b.CreateIntToPtr(group_queue, m_.ptr), {b.CreateMul(b.CreateLShr(places, 32), b.getInt64(plan.group_stride))});
  write(record, b.CreateTrunc(places, m_.i32));
  b.CreateRetVoid();
  b.SetInsertPoint(body);
}

}  // namespace bendc::codegen
