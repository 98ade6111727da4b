// Joins: records that wait for the values of tasks. A value goes to its slot, or is put together with the others by an atomic; the child that arrives last goes
// on with what waits. A relay is a join that does nothing but hand one value on.
#include <llvm/IR/InlineAsm.h>

#include <cstddef>

#include "codegen/gpu/machine_plan.h"
#include "codegen/llvm/device.h"
#include "codegen/llvm/emitter.h"
#include "runtime/gpu/device_abi.h"

namespace bendc::codegen {

using flow::TypeId;

// The first value of a join's `remaining`.
llvm::Value* ModuleEmitter::join_count(Builder& b, uint32_t children, llvm::Value* levels) {
  llvm::Value* most = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, levels, number(0xFF));
  return b.CreateOr(b.CreateShl(most, BEND_JOIN_LEVELS), number(children));
}

llvm::Value* ModuleEmitter::is_last(Builder& b, llvm::Value* remaining) { return b.CreateICmpEQ(b.CreateAnd(remaining, (1u << BEND_JOIN_LEVELS) - 1), number(1)); }

// The parent word of a child: its place in the join record at `address`.
llvm::Value* ModuleEmitter::parent_word(Builder& b, llvm::Value* address, const Cut& cut, uint32_t child) {
  return b.CreateOr(address, uint64_t{1} | uint64_t{BEND_JOIN_HEADER + cut.payload.offsets[child]} << BEND_PARENT_SLOT);
}

// A join record whose children's values are put together by one operation, but for its parent.
llvm::Value* ModuleEmitter::make_sum(Builder& b, llvm::Value* worker, const Cut& cut, uint32_t children, llvm::Value* levels) {
  const TypeId type = flow.funcs[cut.func].result;
  llvm::Value* record = alloc(b, worker, relay_bytes(type));
  if (cut.sum == BEND_SUM_ADD) {
    // The sum and the count of its children are one word, for one atomic.
    store(b, llvm::ConstantInt::get(i64, uint64_t{cut.identity} << 32 | children), record, BEND_JOIN_HEADER, Region::Frame);
  } else {
    store(b, number(cut.identity), record, BEND_JOIN_HEADER, Region::Frame);
    store(b, join_count(b, children, levels), record, offsetof(BendJoin, remaining), Region::Frame);
  }
  store(b, number(options.gpu->plan->relay.at(type.index)), record, offsetof(BendJoin, segment), Region::Frame);
  return record;
}

// The parent word of a child of such a record.
llvm::Value* ModuleEmitter::sum_word(Builder& b, llvm::Value* address, const Cut& cut) { return b.CreateOr(address, uint64_t{1} | uint64_t{cut.sum} << BEND_PARENT_SLOT); }

// Adds to the counter of a join, when a child arrives; what the thread has written is seen by who counts after it. Not a fence: that one also drops what the
// processor has in its first cache, which only the last child to arrive must.
llvm::Value* ModuleEmitter::device_arrive(Builder& b, llvm::Value* counter, llvm::Value* change) {
  if (options.target != TargetKind::Device) {
    device_fence(b);
    return device_add(b, counter, change);
  }
  const bool wide = change->getType() == i64;
  llvm::FunctionType* type = llvm::FunctionType::get(change->getType(), {ptr, change->getType()}, false);
  const char* text = wide ? "atom.release.gpu.add.u64 $0, [$1], $2;" : "atom.release.gpu.add.u32 $0, [$1], $2;";
  return b.CreateCall(llvm::InlineAsm::get(type, text, wide ? "=l,l,l,~{memory}" : "=r,l,r,~{memory}", true), {counter, change});
}

// One child less to wait for. In `last` all that the others have written is seen.
void ModuleEmitter::arrive(Builder& b, llvm::Value* record, llvm::BasicBlock* last, llvm::BasicBlock* over) {
  llvm::BasicBlock* fence = block(b, "fence");
  llvm::Value* before = device_arrive(b, b.CreateConstGEP1_64(i8, record, offsetof(BendJoin, remaining)), llvm::ConstantInt::getSigned(i32, -1));
  b.CreateCondBr(is_last(b, before), fence, over);
  b.SetInsertPoint(fence);
  device_fence(b);
  b.CreateBr(last);
}

// The value of a child of a join whose place says how values are put together. To `last` with the whole sum behind the record's header when it is the
// last one, else to `over`.
void ModuleEmitter::add_to_sum(Builder& b, llvm::Value* record, llvm::Value* place, llvm::Value* value, llvm::BasicBlock* last, llvm::BasicBlock* over) {
  const MachinePlan& plan = *options.gpu->plan;
  llvm::Value* sum = b.CreateConstInBoundsGEP1_64(i8, record, BEND_JOIN_HEADER);
  llvm::BasicBlock *counted = block(b, "counted"), *unknown = block(b, "unknown");
  llvm::SwitchInst* cases = b.CreateSwitch(place, unknown);
  bool others = false;
  for (const uint32_t kind : plan.sums) {
    if (kind == 0) continue;
    llvm::BasicBlock* arm = block(b, "add");
    cases->addCase(llvm::cast<llvm::ConstantInt>(llvm::ConstantInt::get(i64, kind)), arm);
    b.SetInsertPoint(arm);
    if (kind == BEND_SUM_ADD) {
      // The count lies in the lower half and is not 0, so taking one from it does not reach the sum. Who reads the sum reads nothing else that the
      // child has written, unless that may be an array.
      llvm::Value* change = b.CreateSub(b.CreateShl(b.CreateZExt(value, i64), 32), llvm::ConstantInt::get(i64, 1));
      llvm::Value* before = plan.sums_publish ? device_arrive(b, sum, change) : device_add(b, sum, change);
      llvm::BasicBlock* whole = block(b, "whole");
      b.CreateCondBr(b.CreateICmpEQ(b.CreateTrunc(before, i32), number(1)), whole, over);
      b.SetInsertPoint(whole);
      if (plan.sums_publish) device_fence(b);
      store(b, b.CreateAdd(b.CreateTrunc(b.CreateLShr(before, 32), i32), value), sum, 0, Region::Frame);
      b.CreateBr(last);
      continue;
    }
    others = true;
    const auto operation = kind == BEND_SUM_OR ? llvm::AtomicRMWInst::Or : kind == BEND_SUM_XOR ? llvm::AtomicRMWInst::Xor : llvm::AtomicRMWInst::And;
    b.CreateAtomicRMW(operation, sum, value, llvm::Align(4), llvm::AtomicOrdering::Monotonic, device_scope());
    b.CreateBr(counted);
  }
  b.SetInsertPoint(unknown);
  b.CreateUnreachable();
  b.SetInsertPoint(counted);
  if (others) arrive(b, record, last, over);
  else b.CreateUnreachable();
}

void ModuleEmitter::emit_resume_join(Builder& b, llvm::Value* worker, llvm::Value* state, const Cut& cut, llvm::Value* join) {
  const Leaves words = load_record(b, param_types(flow, cut.continuation), cut.payload, b.CreateConstInBoundsGEP1_64(i8, join, BEND_JOIN_HEADER));
  set_state(b, state, kStateParent, load(b, i64, join, offsetof(BendJoin, parent), Region::Frame));
  // What follows a fork is about as large as the fork was.
  llvm::Value* levels = b.CreateLShr(load(b, i32, join, offsetof(BendJoin, remaining), Region::Frame), BEND_JOIN_LEVELS);
  // The list's head comes with the record's words, before the thread waits for one of them.
  device_free(b, worker, join, cut.join_bytes);
  set_levels(b, worker, state, levels, false);
  empty_stack(b, state, flow.funcs[cut.func].result);
  set_words(b, state, words);
  next_segment(b, state, options.gpu->plan->run[cut.continuation.index]);
}

// The value in the state goes out of the thread, to the parent.
void ModuleEmitter::emit_out(Builder& b, llvm::Value* worker, llvm::Value* state, TypeId type) {
  const Leaves leaves = get_words(b, state, {type});
  llvm::Value* parent = get_state(b, state, kStateParent);
  llvm::BasicBlock *root = block(b, "root"), *inner = block(b, "inner"), *join = block(b, "join"), *frame = block(b, "frame"), *last = block(b, "last"), *over = block(b, "over"), *done = block(b, "done");
  b.CreateCondBr(b.CreateICmpEQ(parent, llvm::ConstantInt::get(i64, 0)), root, inner, unlikely_);

  b.SetInsertPoint(root);
  llvm::Value* control = device_control(b, worker);
  store_field(b, type, leaves, b.CreateIntToPtr(load(b, i64, control, offsetof(BendDeviceControl, result), Region::Frame), ptr), 0);
  store(b, number(1), control, offsetof(BendDeviceControl, finished), Region::Frame);
  b.CreateBr(over);

  b.SetInsertPoint(inner);
  b.CreateCondBr(b.CreateTrunc(parent, i1), join, frame);

  // A spilled frame comes back to the stack; the value stays in the state for it.
  b.SetInsertPoint(frame);
  llvm::Value* waiting = b.CreateIntToPtr(parent, ptr);
  llvm::Value* header = load(b, i64, waiting, offsetof(BendFrame, shape), Region::Frame);
  llvm::Value* words = b.CreateAnd(header, kFrameWords);
  llvm::Value* bytes = b.CreateShl(words, 3);
  llvm::Value* stack = get_state(b, state, kStateStack);
  llvm::Value* out = b.CreateAnd(b.CreateLShr(header, 16), kFrameWords);
  store(b, b.CreateOr(b.CreateShl(out, 16), b.CreateShl(out, 32)), stack, 0, Region::Frame);
  copy_words(b, stack_at(b, stack, number(kStackWord)), Place::Stack, b.CreateConstInBoundsGEP1_64(i8, waiting, sizeof(BendFrame)), Place::Memory, b.CreateSub(words, llvm::ConstantInt::get(i64, 1)));
  store(b, header, stack_at(b, stack, b.CreateTrunc(bytes, i32)), 0, Region::Frame);
  set_state(b, state, kStateTop, b.CreateAdd(b.CreateTrunc(bytes, i32), number(kStackWord)));
  set_state(b, state, kStateParent, load(b, i64, waiting, offsetof(BendFrame, parent), Region::Frame));
  set_state(b, state, kStateSegment, b.CreateTrunc(b.CreateLShr(header, 32), i32));
  llvm::Value* whole = b.CreateAdd(bytes, llvm::ConstantInt::get(i64, sizeof(BendFrame) - kStackWord));
  llvm::BasicBlock* reuse = block(b, "reuse");
  b.CreateCondBr(b.CreateICmpULE(whole, llvm::ConstantInt::get(i64, BEND_DEVICE_SMALL)), reuse, done);
  b.SetInsertPoint(reuse);
  device_push(b, worker, waiting, whole, 0);
  b.CreateBr(done);

  // The last child to arrive goes on with the continuation; it sees what the others have written.
  b.SetInsertPoint(join);
  llvm::Value* address = b.CreateAnd(parent, BEND_PARENT_ADDRESS);
  llvm::Value* record = b.CreateIntToPtr(address, ptr);
  llvm::Value* place = b.CreateLShr(parent, BEND_PARENT_SLOT);
  if (!options.gpu->plan->sums.empty() && flow.types[type].kind == flow::TypeKind::U32) {
    llvm::BasicBlock *sum = block(b, "sum"), *slot = block(b, "slot");
    b.CreateCondBr(b.CreateICmpNE(b.CreateAnd(place, 3), llvm::ConstantInt::get(i64, 0)), sum, slot);
    b.SetInsertPoint(sum);
    add_to_sum(b, record, place, leaves[0], last, over);
    b.SetInsertPoint(slot);
  }
  store_field(b, type, leaves, b.CreateInBoundsGEP(i8, record, {place}), 0);
  arrive(b, record, last, over);
  b.SetInsertPoint(last);
  set_state(b, state, kStateRecord, address);
  set_state(b, state, kStateSegment, load(b, i32, record, offsetof(BendJoin, segment), Region::Frame));
  b.CreateBr(done);

  b.SetInsertPoint(over);
  next_segment(b, state, BEND_SEGMENT_NONE);
  b.CreateBr(done);
  b.SetInsertPoint(done);
}

uint32_t ModuleEmitter::relay_bytes(TypeId type) { return BEND_JOIN_HEADER + (layouts.of(type).size + 7) / 8 * 8; }

// The value of a perfect tree whose task's parent was a spilled frame.
void ModuleEmitter::emit_relay(Builder& b, llvm::Value* worker, llvm::Value* state, TypeId type, llvm::Value* join) {
  Leaves words;
  for (flow::Leaf leaf : layouts.of(type).leaves) words.push_back(load(b, leaf_type(leaf.kind), join, BEND_JOIN_HEADER + leaf.offset, Region::Frame));
  set_state(b, state, kStateParent, load(b, i64, join, offsetof(BendJoin, parent), Region::Frame));
  device_free(b, worker, join, relay_bytes(type));
  set_levels(b, worker, state, number(0), false);
  empty_stack(b, state, type);
  set_words(b, state, words);
  next_segment(b, state, options.gpu->plan->out.at(type.index));
}

// A parent word that names a join record or the root. The value of a perfect tree comes from other threads, which have no stack for a frame.
llvm::Value* ModuleEmitter::relayed(Builder& b, llvm::Value* worker, llvm::Value* parent, TypeId type) {
  llvm::BasicBlock *entry = b.GetInsertBlock(), *frame = block(b, "relay"), *done = block(b, "relayed");
  llvm::Value* is_frame = b.CreateAnd(b.CreateICmpNE(parent, llvm::ConstantInt::get(i64, 0)), b.CreateICmpEQ(b.CreateAnd(parent, 1), llvm::ConstantInt::get(i64, 0)));
  b.CreateCondBr(is_frame, frame, done, unlikely_);
  b.SetInsertPoint(frame);
  llvm::Value* join = alloc(b, worker, relay_bytes(type));
  store(b, parent, join, offsetof(BendJoin, parent), Region::Frame);
  store(b, number(1), join, offsetof(BendJoin, remaining), Region::Frame);
  store(b, number(options.gpu->plan->relay.at(type.index)), join, offsetof(BendJoin, segment), Region::Frame);
  llvm::Value* word = b.CreateOr(b.CreatePtrToInt(join, i64), uint64_t{1 | BEND_PARENT_ALONE} | uint64_t{BEND_JOIN_HEADER} << BEND_PARENT_SLOT);
  llvm::BasicBlock* from = b.GetInsertBlock();
  b.CreateBr(done);
  b.SetInsertPoint(done);
  llvm::PHINode* out = b.CreatePHI(i64, 2);
  out->addIncoming(parent, entry);
  out->addIncoming(word, from);
  return out;
}

}  // namespace bendc::codegen
