// Nodes that the leaves of a perfect tree make, where each leaf makes as many bytes of them (made_nodes.h). Lanes that build alike would store to 32 places
// that lie apart at each step, and a device takes such stores at 54 sectors a nanosecond: 1.4 ms for 2^24 nodes on an H200. So a warp takes memory for all
// of its lanes at once, one lane's nodes behind the other's; the lanes make their nodes in shared memory, at the same offsets, and the warp then copies the
// whole, 16 bytes a lane at a time: 0.1 ms.
//
// A function has a version of its own for that. It does not ask the free lists, so it runs only where all of them are empty.
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <cstddef>

#include "codegen/gpu/machine_plan.h"
#include "codegen/llvm/device.h"
#include "codegen/llvm/emit_grid.h"
#include "codegen/llvm/emitter.h"
#include "runtime/gpu/device_abi.h"

namespace bendc::codegen {

using flow::FuncId;
using Region = ModuleEmitter::Region;

llvm::Function* ModuleEmitter::staged_function(FuncId id) {
  const auto [it, fresh] = staged_.try_emplace({id.index, staging_}, nullptr);
  if (!fresh) return it->second;
  llvm::Function* function = it->second = declare_function(id, ".staged");
  FuncEmitter(*this, id, function).run();
  return function;
}

// The version for leaves that make `bytes` of nodes.
llvm::Function* ModuleEmitter::staged_leaf(FuncId id, uint32_t bytes) {
  staging_ = bytes;
  llvm::Function* function = staged_function(id);
  staging_ = 0;
  return function;
}

// Where a node of `bytes` is made now, and in `lasting` the address that it will have.
llvm::Value* ModuleEmitter::stage_node(Builder& b, llvm::Value* worker, uint32_t bytes, llvm::Value*& lasting) {
  llvm::Value* offset = load(b, i64, worker, kDeviceWorkerStageOffset, Region::Frame);
  store(b, b.CreateAdd(offset, llvm::ConstantInt::get(i64, bytes)), worker, kDeviceWorkerStageOffset, Region::Frame);
  lasting = b.CreateIntToPtr(b.CreateAdd(load(b, i64, worker, kDeviceWorkerStage, Region::Frame), offset), ptr);
  llvm::Value* lane = options.target == TargetKind::Device ? stage_of(b, b.CreateIntrinsic(i32, llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {}), staging_)
                                                           : b.CreateIntToPtr(load(b, i64, worker, kDeviceWorkerStageAt, Region::Frame), ptr);
  return b.CreateInBoundsGEP(i8, lane, {offset});
}

// A thread's part of the block's shared memory for this, `bytes` for each thread.
llvm::Value* ModuleEmitter::stage_of(Builder& b, llvm::Value* thread, uint32_t bytes) {
  constexpr unsigned kShared = 3;
  if (!stage_) {
    llvm::Type* type = llvm::ArrayType::get(i64, uint64_t{options.gpu->plan->stage_bytes} / 8 * BEND_BLOCK_THREADS);
    stage_ = new llvm::GlobalVariable(ir, type, false, llvm::GlobalValue::InternalLinkage, llvm::PoisonValue::get(type), "bend.stage", nullptr, llvm::GlobalValue::NotThreadLocal, kShared);
    stage_->setAlignment(llvm::Align(16));
  }
  return b.CreateInBoundsGEP(i8, stage_, {b.CreateMul(thread, number(bytes))});
}

// The leaves of a whole warp with their nodes in shared memory, and from there in memory that the warp takes for all of them. To `made`; to `otherwise` when
// some lane has no part, has memory to use again, or there is no room. Ends the block.
void GridEmitter::staged_leaves(Builder& b, const Work& work, const MadeNodes& nodes, llvm::Value* bits, const LeafCall& leaf, llvm::BasicBlock* otherwise, llvm::BasicBlock* made) {
  constexpr uint64_t kUnit = 16;
  const uint64_t bytes = uint64_t{nodes.bytes} * BEND_LANES;
  llvm::BasicBlock *take = m_.block(b, "take"), *stage = m_.block(b, "stage");
  llvm::Value* lists = b.getInt64(0);
  for (const uint32_t size : nodes.sizes) lists = b.CreateOr(lists, m_.load(b, m_.i64, m_.device_list(b, work.worker, b.getInt64(size)), 0, Region::Frame));
  llvm::Value* whole = b.CreateAnd(b.CreateICmpEQ(lists, b.getInt64(0)), b.CreateICmpEQ(bits, b.getInt32(BEND_LANE_BITS)));
  sync(b);
  if (gpu()) whole = b.CreateIntrinsic(m_.i1, llvm::Intrinsic::nvvm_vote_all_sync, {b.getInt32(~0u), whole});
  b.CreateCondBr(whole, take, otherwise);

  b.SetInsertPoint(take);
  auto from_heap = [&](Builder& inner) { return m_.device_add(inner, inner.CreateConstGEP1_64(m_.i8, work.control, offsetof(BendDeviceControl, heap_cursor)), inner.getInt64(bytes)); };
  llvm::Value* memory = nullptr;
  if (gpu()) {
    const Lanes first{{m_.i64}, {Builder(&b.GetInsertBlock()->getParent()->getEntryBlock(), b.GetInsertBlock()->getParent()->getEntryBlock().begin()).CreateAlloca(llvm::ArrayType::get(m_.i64, 1))}};
    set(b, first, lane_, {b.getInt64(0)});
    when(b, b.CreateICmpEQ(lane_, b.getInt32(0)), [&](Builder& inner) { set(inner, first, lane_, {from_heap(inner)}); });
    memory = shuffle(b, first, b.getInt32(0), false)[0];
  } else {
    memory = from_heap(b);
  }
  // Past the limit: what asks for memory next says so.
  b.CreateCondBr(b.CreateICmpUGT(b.CreateAdd(memory, b.getInt64(bytes)), field(b, m_.i64, work.control, offsetof(BendDeviceControl, heap_limit))), otherwise, stage);

  b.SetInsertPoint(stage);
  llvm::Value* staged = nullptr;
  if (gpu()) {
    llvm::Value* thread = b.CreateIntrinsic(m_.i32, llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {});
    staged = m_.stage_of(b, b.CreateAnd(thread, ~(BEND_LANES - 1)), nodes.bytes);
  } else {
    llvm::BasicBlock& entry = b.GetInsertBlock()->getParent()->getEntryBlock();
    llvm::AllocaInst* area = Builder(&entry, entry.begin()).CreateAlloca(llvm::ArrayType::get(m_.i8, bytes));
    area->setAlignment(llvm::Align(kUnit));
    staged = area;
  }
  each_lane(b, nullptr, [&](Builder& inner, llvm::Value* lane) {
    llvm::Value* offset = inner.CreateMul(inner.CreateZExt(lane, m_.i64), inner.getInt64(nodes.bytes));
    m_.store(inner, inner.CreateAdd(memory, offset), work.worker, kDeviceWorkerStage, Region::Frame);
    m_.store(inner, inner.getInt64(0), work.worker, kDeviceWorkerStageOffset, Region::Frame);
    if (!gpu()) m_.store(inner, inner.CreatePtrToInt(inner.CreateInBoundsGEP(m_.i8, staged, {offset}), m_.i64), work.worker, kDeviceWorkerStageAt, Region::Frame);
    leaf(inner, lane, m_.staged_leaf(work.tree->leaf, nodes.bytes));
  });
  sync(b);
  // Unit i goes by lane i modulo 32.
  llvm::Value* target = b.CreateIntToPtr(memory, m_.ptr);
  auto* unit = llvm::FixedVectorType::get(m_.i64, 2);
  const uint32_t units = static_cast<uint32_t>(bytes / kUnit);
  each_lane(b, nullptr, [&](Builder& inner, llvm::Value* lane) {
    llvm::Value* share = inner.CreateLShr(inner.CreateSub(inner.getInt32(units + BEND_LANES - 1), lane), BEND_LANE_BITS);
    loop(inner, share, {}, [&](Builder& copy, llvm::Value* index, const Leaves&) {
      llvm::Value* at = copy.CreateZExt(copy.CreateShl(copy.CreateOr(copy.CreateShl(index, BEND_LANE_BITS), lane), 4), m_.i64);
      llvm::Value* words = copy.CreateAlignedLoad(unit, copy.CreateInBoundsGEP(m_.i8, staged, {at}), llvm::Align(kUnit));
      copy.CreateAlignedStore(words, copy.CreateInBoundsGEP(m_.i8, target, {at}), llvm::Align(kUnit));
      return Leaves();
    });
  });
  sync(b);
  b.CreateBr(made);
}

}  // namespace bendc::codegen
