// Nodes that the leaves of a perfect tree make, where each leaf makes as many bytes of them (made_nodes.h). Lanes that build alike would store to 32 places
// that lie apart at each step, and a device takes such stores at 54 sectors a nanosecond: 1.4 ms for 2^24 nodes on an H200. So a warp takes memory for all
// of its lanes at once, one lane's nodes behind the other's; the lanes make their nodes in shared memory, at the same offsets, and the warp then copies the
// whole, 16 bytes a lane at a time: 0.1 ms.
//
// A function has a version of its own for that. It does not ask the free lists, so it runs only where all of them are empty.
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "codegen/gpu/machine_plan.h"
#include "codegen/llvm/device.h"
#include "codegen/llvm/emitter.h"
#include "runtime/gpu/device_abi.h"

namespace bendc::codegen {

using flow::FuncId;

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

}  // namespace bendc::codegen
