// The bodies of async functions on a device: one segment each. A segment takes its arguments from the machine's state and ends by putting
// the next segment there, with its arguments: a tail call, the child of a cut, or whatever waits for the returned value.
#include <cstddef>

#include "codegen/gpu/machine_plan.h"
#include "codegen/llvm/device.h"
#include "codegen/llvm/emitter.h"
#include "runtime/gpu/device_abi.h"

namespace bendc::codegen {

using flow::FuncId;
using flow::TypeId;
using flow::VarId;
using Region = ModuleEmitter::Region;

// ---- the machine's state ----

llvm::StructType* ModuleEmitter::state_type() {
  if (!state_type_) {
    const MachinePlan& plan = *options.gpu->plan;
    state_type_ = llvm::StructType::create(context, {i64, i64, i32, i32, i32, i32, i32, i32, i32, llvm::ArrayType::get(i32, plan.words32), llvm::ArrayType::get(i64, plan.words64)}, "BendMachine");
  }
  return state_type_;
}

llvm::Value* ModuleEmitter::state_field(Builder& b, llvm::Value* state, unsigned field) { return b.CreateStructGEP(state_type(), state, field); }

llvm::Value* ModuleEmitter::get_state(Builder& b, llvm::Value* state, unsigned field) {
  return b.CreateLoad(state_type()->getElementType(field), state_field(b, state, field));
}

void ModuleEmitter::set_state(Builder& b, llvm::Value* state, unsigned field, llvm::Value* value) { b.CreateStore(value, state_field(b, state, field)); }

// Arguments: 64-bit leaves and the others each count through an array of their own, so that each word keeps one type.
void ModuleEmitter::set_words(Builder& b, llvm::Value* state, LeafSpan leaves) {
  unsigned next32 = 0, next64 = 0;
  for (llvm::Value* leaf : leaves) {
    const bool wide = leaf->getType() == i64;
    llvm::Value* place = b.CreateInBoundsGEP(state_type(), state, {number(0), number(wide ? kStateWords64 : kStateWords32), number(wide ? next64++ : next32++)});
    b.CreateStore(wide ? leaf : cast_leaf(b, leaf, flow::LeafKind::I32), place);
  }
}

Leaves ModuleEmitter::get_words(Builder& b, llvm::Value* state, llvm::ArrayRef<TypeId> types) {
  unsigned next32 = 0, next64 = 0;
  Leaves out;
  for (TypeId type : types) {
    for (flow::Leaf leaf : layouts.of(type).leaves) {
      const bool wide = leaf.kind == flow::LeafKind::I64;
      llvm::Value* place = b.CreateInBoundsGEP(state_type(), state, {number(0), number(wide ? kStateWords64 : kStateWords32), number(wide ? next64++ : next32++)});
      llvm::Value* word = b.CreateLoad(wide ? i64 : i32, place);
      out.push_back(wide ? word : cast_leaf(b, word, leaf.kind));
    }
  }
  return out;
}

Leaves ModuleEmitter::load_record(Builder& b, llvm::ArrayRef<TypeId> types, const flow::FieldsLayout& layout, llvm::Value* record) {
  Leaves out;
  for (size_t i = 0; i < types.size(); ++i) {
    for (flow::Leaf leaf : layouts.of(types[i]).leaves) out.push_back(load(b, leaf_type(leaf.kind), record, layout.offsets[i] + leaf.offset, Region::Frame));
  }
  return out;
}

void ModuleEmitter::store_field(Builder& b, TypeId type, LeafSpan leaves, llvm::Value* record, uint32_t offset) {
  const auto& layout = layouts.of(type).leaves;
  for (size_t i = 0; i < layout.size(); ++i) store(b, leaves[i], record, offset + layout[i].offset, Region::Frame);
}

void ModuleEmitter::next_segment(Builder& b, llvm::Value* state, uint32_t segment) { set_state(b, state, kStateSegment, number(segment)); }

// `leaves` is the value of the task whose parent is in the state. Ends the block with `ret void`.
void ModuleEmitter::machine_return(Builder& b, llvm::Value* worker, llvm::Value* state, TypeId type, LeafSpan leaves) {
  llvm::Value* parent = get_state(b, state, kStateParent);
  llvm::BasicBlock *root = block(b, "root"), *inner = block(b, "inner"), *join = block(b, "join"), *frame = block(b, "frame"), *last = block(b, "last"), *over = block(b, "over");
  b.CreateCondBr(b.CreateICmpEQ(parent, llvm::ConstantInt::get(i64, 0)), root, inner, unlikely_);

  b.SetInsertPoint(root);
  llvm::Value* control = device_control(b, worker);
  store_field(b, type, leaves, b.CreateIntToPtr(load(b, i64, control, offsetof(BendDeviceControl, result), Region::Frame), ptr), 0);
  store(b, number(1), control, offsetof(BendDeviceControl, finished), Region::Frame);
  b.CreateBr(over);

  b.SetInsertPoint(inner);
  b.CreateCondBr(b.CreateTrunc(parent, i1), join, frame);

  b.SetInsertPoint(frame);
  llvm::Value* waiting = b.CreateIntToPtr(parent, ptr);
  llvm::Value* offset = load(b, i32, waiting, offsetof(BendFrame, slot), Region::Frame);
  store_field(b, type, leaves, b.CreateInBoundsGEP(i8, waiting, {b.CreateZExt(offset, i64)}), 0);
  set_state(b, state, kStateRecord, parent);
  set_state(b, state, kStateSegment, load(b, i32, waiting, offsetof(BendFrame, segment), Region::Frame));
  b.CreateRetVoid();

  // The last child to arrive goes on with the continuation; it sees what the others have written.
  b.SetInsertPoint(join);
  llvm::Value* address = b.CreateAnd(parent, BEND_PARENT_ADDRESS);
  llvm::Value* record = b.CreateIntToPtr(address, ptr);
  store_field(b, type, leaves, b.CreateInBoundsGEP(i8, record, {b.CreateLShr(parent, BEND_PARENT_SLOT)}), 0);
  device_fence(b);
  llvm::Value* before = device_add(b, b.CreateConstGEP1_64(i8, record, offsetof(BendJoin, remaining)), llvm::ConstantInt::getSigned(i32, -1));
  b.CreateCondBr(b.CreateICmpEQ(before, number(1)), last, over);
  b.SetInsertPoint(last);
  device_fence(b);
  set_state(b, state, kStateRecord, address);
  set_state(b, state, kStateSegment, load(b, i32, record, offsetof(BendJoin, segment), Region::Frame));
  b.CreateRetVoid();

  b.SetInsertPoint(over);
  next_segment(b, state, BEND_SEGMENT_NONE);
  b.CreateRetVoid();
}

// ---- segments ----

namespace {
llvm::SmallVector<TypeId, 8> types_of(const flow::Module& module, FuncId func) {
  const std::vector<TypeId> types = param_types(module, func);
  return {types.begin(), types.end()};
}
}  // namespace

bool FuncEmitter::is_cut(const flow::Node& node) const {
  if (!state_) return false;
  if (node.kind == flow::NodeKind::Fork) return true;
  return node.kind == flow::NodeKind::Let && node.expr.kind == flow::ExprKind::Call && m_.is_async(node.expr.func);
}

Leaves FuncEmitter::leaves_of(Slice vars) {
  Leaves out;
  for (VarId var : m_.flow.list(vars)) out.append(value(var).begin(), value(var).end());
  return out;
}

void FuncEmitter::take_segment_params() {
  const Leaves words = m_.get_words(b_, state_, types_of(m_.flow, id_));
  size_t next = 0;
  for (VarId param : func_.params) {
    const size_t count = m_.layouts.of(type(param)).leaves.size();
    bind(param, Leaves(words.begin() + static_cast<long>(next), words.begin() + static_cast<long>(next + count)));
    next += count;
  }
}

// All returns meet in one block: what comes after is long.
void FuncEmitter::segment_return(LeafSpan leaves) {
  if (!return_block_) {
    return_block_ = llvm::BasicBlock::Create(m_.context, "return", fn_);
    Builder phis(return_block_);
    for (flow::Leaf leaf : m_.layouts.of(func_.result).leaves) returned_.push_back(phis.CreatePHI(m_.leaf_type(leaf.kind), 2));
  }
  for (size_t i = 0; i < leaves.size(); ++i) llvm::cast<llvm::PHINode>(returned_[i])->addIncoming(leaves[i], b_.GetInsertBlock());
  b_.CreateBr(return_block_);
}

void FuncEmitter::finish_segment() {
  if (!return_block_) return;
  b_.SetInsertPoint(return_block_);
  m_.machine_return(b_, worker_, state_, func_.result, returned_);
}

void FuncEmitter::segment_tail(const flow::Node& node) {
  if (!m_.is_async(node.func)) {
    segment_return(call(node.func, node.args));
    return;
  }
  m_.set_words(b_, state_, leaves_of(node.args));
  m_.next_segment(b_, state_, m_.options.gpu->plan->run[node.func.index]);
  b_.CreateRetVoid();
}

// The live values behind the results, in a frame or a join record.
void FuncEmitter::store_live(const Cut& cut, const flow::Node& tail, llvm::Value* record) {
  const std::span<const VarId> args = m_.flow.list(tail.args);
  for (size_t i = cut.children.size(); i < args.size(); ++i) m_.store_field(b_, type(args[i]), value(args[i]), record, cut.payload.offsets[i]);
}

// A frame whose first child runs next in this thread.
void FuncEmitter::enter_frame(const Cut& cut, const flow::Node& node) {
  llvm::Value* frame = m_.alloc(b_, worker_, cut.frame_bytes);
  m_.store(b_, m_.get_state(b_, state_, kStateParent), frame, offsetof(BendFrame, parent), Region::Frame);
  m_.store(b_, b_.getInt32(cut.payload.offsets[0]), frame, offsetof(BendFrame, slot), Region::Frame);
  m_.store(b_, b_.getInt32(cut.children.size() > 1 ? cut.next_child : cut.resume_frame), frame, offsetof(BendFrame, segment), Region::Frame);
  store_live(cut, m_.flow.nodes[node.next], frame);
  for (size_t child = 1; child < cut.children.size(); ++child) {
    const std::span<const VarId> args = m_.flow.list(node.calls[child].args);
    for (size_t i = 0; i < args.size(); ++i) m_.store_field(b_, type(args[i]), value(args[i]), frame, cut.late[child - 1].offsets[i]);
  }
  m_.set_state(b_, state_, kStateParent, b_.CreatePtrToInt(frame, m_.i64));
  m_.set_words(b_, state_, leaves_of(cut.fork ? node.calls[0].args : node.expr.args));
  m_.next_segment(b_, state_, m_.options.gpu->plan->run[cut.children[0].index]);
  b_.CreateRetVoid();
}

void FuncEmitter::segment_cut(flow::NodeId id) {
  const flow::Node& node = m_.flow.nodes[id];
  const MachinePlan& plan = *m_.options.gpu->plan;
  const Cut& cut = plan.cuts[plan.cut_of.at(id.index)];
  if (!cut.fork) return enter_frame(cut, node);

  llvm::BasicBlock *parallel = m_.block(b_, "parallel"), *append = m_.block(b_, "append"), *overflow = m_.block(b_, "overflow"), *sequential = m_.block(b_, "sequential");
  llvm::Value* spent = b_.CreateICmpUGT(m_.get_state(b_, state_, kStateSteps), m_.get_state(b_, state_, kStateBudget));
  b_.CreateCondBr(b_.CreateOr(spent, b_.CreateTrunc(m_.get_state(b_, state_, kStateParallel), m_.i1)), parallel, sequential);

  b_.SetInsertPoint(parallel);
  llvm::Value* control = m_.device_control(b_, worker_);
  llvm::Value* children = b_.getInt32(static_cast<uint32_t>(cut.children.size()));
  if (cut.measure.valid()) {
    llvm::BasicBlock* large = m_.block(b_, "large");
    llvm::Value* threshold = m_.load(b_, m_.i64, control, offsetof(BendDeviceControl, threshold), Region::Frame);
    b_.CreateCondBr(b_.CreateICmpULT(scalar(cut.measure), threshold), sequential, large);
    b_.SetInsertPoint(large);
  }
  const ModuleEmitter::ChildQueue to = m_.child_queue(b_, control, state_);
  llvm::Value* first = m_.device_append(b_, to.cursor, static_cast<uint32_t>(cut.children.size()));
  llvm::Value *capacity = to.capacity, *queue = to.records;
  auto record = [&](llvm::Value* index) { return b_.CreateInBoundsGEP(m_.i8, queue, {b_.CreateMul(b_.CreateZExt(index, m_.i64), b_.getInt64(plan.task_stride))}); };
  b_.CreateCondBr(b_.CreateICmpUGT(b_.CreateAdd(b_.CreateZExt(first, m_.i64), b_.CreateZExt(children, m_.i64)), b_.CreateZExt(capacity, m_.i64)), overflow, append, m_.unlikely());

  // The queue is full: what was reserved below its end is marked empty.
  b_.SetInsertPoint(overflow);
  for (uint32_t i = 0; i < cut.children.size(); ++i) {
    llvm::BasicBlock *mark = m_.block(b_, "mark"), *marked = m_.block(b_, "marked");
    llvm::Value* index = b_.CreateAdd(first, b_.getInt32(i));
    // A counter past 2^32 would take more than 2^32 failed appends in one round.
    b_.CreateCondBr(b_.CreateICmpULT(index, capacity), mark, marked);
    b_.SetInsertPoint(mark);
    m_.store(b_, b_.getInt32(BEND_SEGMENT_NONE), record(index), offsetof(BendTaskRecord, segment), Region::Frame);
    b_.CreateBr(marked);
    b_.SetInsertPoint(marked);
  }
  if (to.nested) {
    // A full pool: this task's forks stay in its thread.
    m_.set_state(b_, state_, kStateParallel, b_.CreateSelect(to.nested, b_.getInt32(0), m_.get_state(b_, state_, kStateParallel)));
    m_.count_refused(b_, control, to.nested);
  }
  b_.CreateBr(sequential);

  b_.SetInsertPoint(append);
  llvm::Value* join = m_.alloc(b_, worker_, cut.join_bytes);
  m_.store(b_, m_.get_state(b_, state_, kStateParent), join, offsetof(BendJoin, parent), Region::Frame);
  m_.store(b_, children, join, offsetof(BendJoin, remaining), Region::Frame);
  m_.store(b_, b_.getInt32(cut.resume_join), join, offsetof(BendJoin, segment), Region::Frame);
  store_live(cut, m_.flow.nodes[node.next], join);
  llvm::Value* address = b_.CreatePtrToInt(join, m_.i64);
  for (uint32_t i = 0; i < cut.children.size(); ++i) {
    llvm::Value* task = record(b_.CreateAdd(first, b_.getInt32(i)));
    m_.store(b_, b_.getInt32(plan.load[cut.children[i].index]), task, offsetof(BendTaskRecord, segment), Region::Frame);
    m_.store(b_, b_.getInt32(0), task, offsetof(BendTaskRecord, flags), Region::Frame);
    m_.store(b_, b_.CreateOr(address, uint64_t{1} | uint64_t{cut.payload.offsets[i]} << BEND_PARENT_SLOT), task, offsetof(BendTaskRecord, parent), Region::Frame);
    const std::span<const VarId> args = m_.flow.list(node.calls[i].args);
    const flow::FieldsLayout& layout = plan.task_payload.at(cut.children[i].index);
    for (size_t a = 0; a < args.size(); ++a) m_.store_field(b_, type(args[a]), value(args[a]), task, layout.offsets[a]);
  }
  if (to.nested) {
    m_.leave_pending(b_, state_, first, b_.CreateSelect(to.nested, children, b_.getInt32(0)), false);
  }
  m_.next_segment(b_, state_, BEND_SEGMENT_NONE);
  b_.CreateRetVoid();

  b_.SetInsertPoint(sequential);
  enter_frame(cut, node);
}

}  // namespace bendc::codegen
