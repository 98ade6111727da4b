// Values of all lanes of a warp, and code that each lane runs. One emitter makes both targets: a lane's values lie in allocas with one place on a device, where they become
// registers and go to other lanes by shuffles, and with 32 places in the emulator, which runs the lanes of a warp one after another.
#include "codegen/llvm/emit_grid.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

#include "codegen/gpu/machine_plan.h"
#include "codegen/llvm/device.h"
#include "runtime/gpu/device_abi.h"

namespace bendc::codegen {

using flow::FuncId;
using flow::TypeId;
using Region = ModuleEmitter::Region;

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

}  // namespace bendc::codegen
