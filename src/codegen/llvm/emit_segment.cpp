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
    state_type_ = llvm::StructType::create(context, {i64, i64, ptr, i32, i32, i32, i32, i32, i32, llvm::ArrayType::get(i32, plan.words32), llvm::ArrayType::get(i64, plan.words64)}, "BendMachine");
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

Leaves ModuleEmitter::load_record(Builder& b, llvm::ArrayRef<TypeId> types, const flow::FieldsLayout& layout, llvm::Value* record, Place place) {
  Leaves out;
  for (size_t i = 0; i < types.size(); ++i) {
    for (flow::Leaf leaf : layouts.of(types[i]).leaves) out.push_back(load(b, leaf_type(leaf.kind), record, place_of(layout.offsets[i] + leaf.offset, place), Region::Frame));
  }
  return out;
}

void ModuleEmitter::store_field(Builder& b, TypeId type, LeafSpan leaves, llvm::Value* record, uint32_t offset, Place place) {
  const auto& layout = layouts.of(type).leaves;
  for (size_t i = 0; i < layout.size(); ++i) store(b, leaves[i], record, place_of(offset + layout[i].offset, place), Region::Frame);
}

void ModuleEmitter::store_record(Builder& b, llvm::ArrayRef<TypeId> types, const flow::FieldsLayout& layout, LeafSpan leaves, llvm::Value* record, Place place) {
  size_t next = 0;
  for (size_t i = 0; i < types.size(); ++i) {
    const size_t count = layouts.of(types[i]).leaves.size();
    store_field(b, types[i], leaves.slice(next, count), record, layout.offsets[i], place);
    next += count;
  }
}

void ModuleEmitter::next_segment(Builder& b, llvm::Value* state, uint32_t segment) { set_state(b, state, kStateSegment, number(segment)); }

// `leaves` is the value of the function that runs; what waits for it takes it from the state. Ends the block with `ret void`.
void ModuleEmitter::machine_return(Builder& b, llvm::Value* state, LeafSpan leaves) {
  set_words(b, state, leaves);
  llvm::Value* header = stack_place(b, state, b.CreateSub(get_state(b, state, kStateTop), number(8)));
  set_state(b, state, kStateSegment, load(b, i32, header, 4, Region::Frame));
  b.CreateRetVoid();
}

// ---- segments ----

namespace {
// Turns of the machine that a bounded copy is counted for: it makes up to 256 calls (bounded_recursion.cpp), and the other lanes of its warp wait.
constexpr uint32_t kCopySteps = 31;

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
  m_.machine_return(b_, state_, returned_);
}

// A call of a bounded copy takes the time of many segments.
void FuncEmitter::count_copy(FuncId func) {
  if (!state_ || !m_.options.gpu->device->copy[func.index]) return;
  m_.set_state(b_, state_, kStateLeft, b_.CreateSub(m_.get_state(b_, state_, kStateLeft), b_.getInt32(kCopySteps)));
}

void FuncEmitter::segment_tail(const flow::Node& node) {
  if (!m_.is_async(node.func)) {
    count_copy(node.func);
    segment_return(call(node.func, node.args));
    return;
  }
  m_.set_words(b_, state_, leaves_of(node.args));
  m_.next_segment(b_, state_, m_.options.gpu->plan->run[node.func.index]);
  b_.CreateRetVoid();
}

// A frame whose first child runs next in this thread.
void FuncEmitter::enter_frame(const Cut& cut, const flow::Node& node) {
  const MachinePlan& plan = *m_.options.gpu->plan;
  llvm::Value* frame = m_.push_frame(b_, worker_, state_, cut.frame_bytes, func_.result);
  const uint32_t segment = cut.children.size() > 1 ? cut.next_child : cut.resume_frame;
  using Place = ModuleEmitter::Place;
  m_.store(b_, b_.getInt64(plan.frame_header(cut, segment, func_.result)), frame, m_.place_of(cut.frame_bytes - 8, Place::Stack), Region::Frame);
  if (!cut.accumulates) store_live(cut, m_.flow.nodes[node.next], frame, true);
  for (size_t child = 1; child < cut.children.size(); ++child) {
    Leaves args = leaves_of(node.calls[child].args);
    args.resize(args.size() - (cut.accumulates ? 1 : 0));
    m_.store_record(b_, m_.late_types(cut, static_cast<uint32_t>(child)), cut.late[child - 1], args, frame, Place::Stack);
  }
  m_.set_words(b_, state_, leaves_of(cut.fork ? node.calls[0].args : node.expr.args));
  m_.next_segment(b_, state_, plan.run[cut.children[0].index]);
  b_.CreateRetVoid();
}

void FuncEmitter::segment_cut(flow::NodeId id) {
  const flow::Node& node = m_.flow.nodes[id];
  const MachinePlan& plan = *m_.options.gpu->plan;
  const Cut& cut = plan.cuts[plan.cut_of.at(id.index)];
  if (!cut.fork) return enter_frame(cut, node);

  llvm::BasicBlock *parallel = m_.block(b_, "parallel"), *append = m_.block(b_, "append"), *overflow = m_.block(b_, "overflow"), *sequential = m_.block(b_, "sequential");
  llvm::Value* wanted = m_.is_spent(b_, state_);
  // What loops says nothing by its number of segments.
  llvm::Value* heavy = b_.getFalse();
  if (cut.heavy) {
    heavy = b_.CreateICmpNE(m_.load(b_, m_.i32, worker_, kDeviceWorkerMode, Region::Frame), b_.getInt32(BEND_MODE_SEQUENTIAL));
    wanted = b_.CreateOr(wanted, heavy);
  }
  if (m_.tasks_on_request()) {
    llvm::BasicBlock* ask = m_.block(b_, "ask");
    b_.CreateCondBr(wanted, ask, sequential);
    b_.SetInsertPoint(ask);
    m_.ask_for_tasks(b_, worker_, state_, heavy, parallel, sequential);
  } else {
    b_.CreateCondBr(wanted, parallel, sequential);
  }

  b_.SetInsertPoint(parallel);
  llvm::Value* control = m_.device_control(b_, worker_);
  const auto count = static_cast<uint32_t>(cut.children.size());
  if (cut.measure.valid()) {
    llvm::BasicBlock* large = m_.block(b_, "large");
    llvm::Value* threshold = m_.load(b_, m_.i64, control, offsetof(BendDeviceControl, threshold), Region::Frame);
    b_.CreateCondBr(b_.CreateICmpULT(scalar(cut.measure), threshold), sequential, large);
    b_.SetInsertPoint(large);
  }
  const ModuleEmitter::Places places = m_.reserve_tasks(b_, worker_, control, count, append, overflow);
  llvm::Value* nested = places.queue.nested;

  b_.SetInsertPoint(overflow);
  m_.mark_empty(b_, places, count);
  if (nested) {
    // A full pool: forks stay in this thread. In mode parallel each of them would ask the pool again.
    llvm::BasicBlock *stay = m_.block(b_, "stay"), *kept = m_.block(b_, "kept");
    b_.CreateCondBr(nested, stay, kept);
    b_.SetInsertPoint(stay);
    m_.store(b_, b_.getInt32(BEND_MODE_SEQUENTIAL), worker_, kDeviceWorkerMode, Region::Frame);
    m_.set_levels(b_, worker_, state_, b_.getInt32(0), false);
    b_.CreateBr(kept);
    b_.SetInsertPoint(kept);
    m_.count_refused(b_, control, nested);
  }
  b_.CreateBr(sequential);

  b_.SetInsertPoint(append);
  llvm::Value* levels = m_.load(b_, m_.i32, worker_, kDeviceWorkerLevels, Region::Frame);
  // What follows a fork that accumulates is its operation alone: a join does that as its children arrive.
  llvm::Value* join = cut.sum ? m_.make_sum(b_, worker_, cut, count, levels) : m_.alloc(b_, worker_, cut.join_bytes);
  m_.store(b_, m_.deal_stack(b_, worker_, state_), join, offsetof(BendJoin, parent), Region::Frame);
  if (!cut.sum) {
    m_.store(b_, m_.join_count(b_, count, levels), join, offsetof(BendJoin, remaining), Region::Frame);
    m_.store(b_, b_.getInt32(cut.resume_join), join, offsetof(BendJoin, segment), Region::Frame);
    store_live(cut, m_.flow.nodes[node.next], b_.CreateConstInBoundsGEP1_64(m_.i8, join, BEND_JOIN_HEADER), false);
  }
  llvm::Value* address = b_.CreatePtrToInt(join, m_.i64);
  llvm::Value* below = b_.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, levels, b_.getInt32(1));
  for (uint32_t i = 0; i < count; ++i) {
    llvm::Value* parent = cut.sum ? m_.sum_word(b_, address, cut) : m_.parent_word(b_, address, cut, i);
    m_.store_task(b_, m_.task_place(b_, places, i), cut.children[i], parent, below, leaves_of(node.calls[i].args));
  }
  if (nested) {
    m_.leave_pending(b_, state_, places.first, b_.CreateSelect(nested, b_.getInt32(count), b_.getInt32(0)), false);
  }
  m_.next_segment(b_, state_, BEND_SEGMENT_NONE);
  b_.CreateRetVoid();

  b_.SetInsertPoint(sequential);
  enter_frame(cut, node);
}

// The live values behind the results, in a frame or behind the header of a join record.
void FuncEmitter::store_live(const Cut& cut, const flow::Node& tail, llvm::Value* record, bool on_stack) {
  const std::span<const VarId> args = m_.flow.list(tail.args);
  for (size_t i = cut.children.size(); i < args.size(); ++i) m_.store_field(b_, type(args[i]), value(args[i]), record, cut.payload.offsets[i], on_stack ? ModuleEmitter::Place::Stack : ModuleEmitter::Place::Memory);
}

}  // namespace bendc::codegen
