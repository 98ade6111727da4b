// Forks as nested launches. A task that forks in parallel ends with its children's records in the pool, so that launching is no part of the
// machine: the kernel runs a thread's task, then all threads meet and start the children, each for itself or one for its warp or block.
//
// Convergence: every thread of a grid passes the meeting exactly once, after its first task; what follows (children whose launch was refused,
// run in their parent's thread) has no `.sync` instruction. Blocks of aggregated grids are whole warps, and so are those of trees, whose warps have work
// or none as a whole.
#include "codegen/llvm/emit_launch.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

#include <cstddef>

#include "codegen/gpu/machine_plan.h"
#include "codegen/llvm/device.h"
#include "codegen/llvm/emit_grid.h"
#include "runtime/gpu/device_abi.h"
#include "runtime/gpu/launch_abi.h"

namespace bendc::codegen {

using Region = ModuleEmitter::Region;

namespace {
constexpr unsigned kSum = 0, kFirst = 1, kCount = 2, kArrays = 3;   // of a BendLaunch
constexpr uint32_t kLanes = 32;
constexpr uint64_t kFireAndForget = 4;                              // a device-side stream: no order, no wait
}  // namespace

// ---- what segments need ----

ModuleEmitter::ChildQueue ModuleEmitter::round_queue(Builder& b, llvm::Value* control) {
  auto field = [&](llvm::Type* type, size_t offset) { return load(b, type, control, static_cast<uint32_t>(offset), Region::Frame); };
  return {b.CreateConstInBoundsGEP1_64(i8, control, offsetof(BendDeviceControl, out_count)), b.CreateIntToPtr(field(i64, offsetof(BendDeviceControl, out_queue)), ptr),
          field(i32, offsetof(BendDeviceControl, queue_capacity)), nullptr};
}

ModuleEmitter::ChildQueue ModuleEmitter::child_queue(Builder& b, llvm::Value* worker, llvm::Value* control) {
  auto at = [&](llvm::Value* base, size_t offset) { return b.CreateConstInBoundsGEP1_64(i8, base, offset); };
  auto field = [&](llvm::Type* type, size_t offset) { return load(b, type, control, static_cast<uint32_t>(offset), Region::Frame); };
  const ChildQueue out = round_queue(b, control);
  if (!options.launches) return out;
  // The pool's fields are read only where there is one.
  llvm::BasicBlock *entry = b.GetInsertBlock(), *nested = block(b, "nested"), *chosen = block(b, "chosen");
  llvm::Value* pool_word = field(i64, offsetof(BendDeviceControl, launches));
  llvm::Value* parallel = b.CreateICmpNE(load(b, i32, worker, kDeviceWorkerLevels, Region::Frame), number(0));
  llvm::Value* wanted = b.CreateAnd(parallel, b.CreateICmpNE(pool_word, llvm::ConstantInt::get(i64, 0)));
  b.CreateCondBr(wanted, nested, chosen);
  b.SetInsertPoint(nested);
  llvm::Value* pool = b.CreateIntToPtr(pool_word, ptr);
  llvm::Value* records = b.CreateIntToPtr(load(b, i64, pool, offsetof(BendLaunchPool, records), Region::Frame), ptr);
  llvm::Value* capacity = load(b, i32, pool, offsetof(BendLaunchPool, capacity), Region::Frame);
  llvm::Value* cursor = at(pool, offsetof(BendLaunchPool, cursor));
  b.CreateBr(chosen);
  b.SetInsertPoint(chosen);
  auto either = [&](llvm::Value* there, llvm::Value* here) {
    llvm::PHINode* phi = b.CreatePHI(here->getType(), 2);
    phi->addIncoming(there, nested);
    phi->addIncoming(here, entry);
    return phi;
  };
  llvm::Value *c = either(cursor, out.cursor), *r = either(records, out.records), *n = either(capacity, out.capacity);
  return {c, r, n, wanted};
}

void ModuleEmitter::count_refused(Builder& b, llvm::Value* control, llvm::Value* nested) {
  llvm::BasicBlock *count = block(b, "refused"), *done = block(b, "counted");
  b.CreateCondBr(nested, count, done);
  b.SetInsertPoint(count);
  llvm::Value* pool = b.CreateIntToPtr(load(b, i64, control, offsetof(BendDeviceControl, launches), Region::Frame), ptr);
  device_add(b, b.CreateConstInBoundsGEP1_64(i8, pool, offsetof(BendLaunchPool, refused)), number(1));
  b.CreateBr(done);
  b.SetInsertPoint(done);
}

ModuleEmitter::TreePlace ModuleEmitter::nested_tree(Builder& b, llvm::Value* worker, llvm::Value* control, llvm::Value* units) {
  const uint32_t stride = options.gpu->plan->task_stride, records = (options.gpu->plan->group_stride + stride - 1) / stride;
  llvm::BasicBlock *entry = b.GetInsertBlock(), *look = block(b, "look"), *take = block(b, "take"), *got = block(b, "got"), *full = block(b, "full"), *known = block(b, "known");
  llvm::Value* word = load(b, i64, control, offsetof(BendDeviceControl, launches), Region::Frame);
  llvm::Value* parallel = b.CreateICmpNE(load(b, i32, worker, kDeviceWorkerLevels, Region::Frame), number(0));
  b.CreateCondBr(b.CreateAnd(parallel, b.CreateICmpNE(word, b.getInt64(0))), look, known);
  b.SetInsertPoint(look);
  llvm::Value* pool = b.CreateIntToPtr(word, ptr);
  auto field = [&](llvm::Type* type, size_t offset) { return load(b, type, pool, static_cast<uint32_t>(offset), Region::Frame); };
  auto at = [&](size_t offset) { return b.CreateConstInBoundsGEP1_64(i8, pool, offset); };
  llvm::Value *capacity = b.CreateZExt(field(i32, offsetof(BendLaunchPool, capacity)), i64), *warps = b.CreateZExt(field(i32, offsetof(BendLaunchPool, warp_capacity)), i64);
  llvm::Value* wanted = b.CreateZExt(units, i64);
  // A look first: nobody adds to a list that he has seen full, so the counts cannot run over.
  llvm::LoadInst* seen = b.CreateAlignedLoad(i64, at(offsetof(BendLaunchPool, warps)), llvm::Align(8));
  seen->setAtomic(llvm::AtomicOrdering::Monotonic, device_scope());
  llvm::LoadInst* seen_record = b.CreateAlignedLoad(i32, at(offsetof(BendLaunchPool, cursor)), llvm::Align(4));
  seen_record->setAtomic(llvm::AtomicOrdering::Monotonic, device_scope());
  auto fits = [&](llvm::Value* record, llvm::Value* warp) {
    return b.CreateAnd(b.CreateICmpULE(b.CreateAdd(b.CreateZExt(record, i64), b.getInt64(records)), capacity), b.CreateICmpULE(b.CreateAdd(warp, wanted), warps));
  };
  b.CreateCondBr(fits(seen_record, seen), take, full);
  b.SetInsertPoint(take);
  llvm::Value* first = device_add(b, at(offsetof(BendLaunchPool, cursor)), number(records));
  llvm::Value* warp = device_add(b, at(offsetof(BendLaunchPool, warps)), wanted);
  b.CreateCondBr(fits(first, warp), got, full);
  b.SetInsertPoint(got);
  llvm::Value* record = b.CreateInBoundsGEP(i8, b.CreateIntToPtr(field(i64, offsetof(BendLaunchPool, records)), ptr), {b.CreateMul(b.CreateZExt(first, i64), b.getInt64(stride))});
  llvm::Value* base = b.CreateAdd(b.CreateTrunc(warp, i32), field(i32, offsetof(BendLaunchPool, first_warp)));
  device_add(b, at(offsetof(BendLaunchPool, trees)), b.getInt64(1));
  b.CreateBr(known);
  b.SetInsertPoint(full);
  device_add(b, at(offsetof(BendLaunchPool, refused)), number(1));
  b.CreateBr(known);
  b.SetInsertPoint(known);
  auto either = [&](llvm::Value* there) {
    llvm::PHINode* phi = b.CreatePHI(there->getType(), 3);
    phi->addIncoming(llvm::Constant::getNullValue(there->getType()), entry);
    phi->addIncoming(llvm::Constant::getNullValue(there->getType()), full);
    phi->addIncoming(there, got);
    return phi;
  };
  return {either(b.getTrue()), either(first), either(record), either(base)};
}

void ModuleEmitter::leave_pending(Builder& b, llvm::Value* state, llvm::Value* first, llvm::Value* count, bool tree) {
  set_state(b, state, kStatePendingFirst, first);
  set_state(b, state, kStatePendingCount, count);
  set_state(b, state, kStatePendingTree, number(tree ? 1 : 0));
}

// ---- a thread ----

bool LaunchEmitter::has_trees() const { return !m_.options.gpu->plan->trees.empty(); }

llvm::Value* LaunchEmitter::pool_field(Builder& b, llvm::Type* type, size_t offset) { return m_.load(b, type, pool_, static_cast<uint32_t>(offset), Region::Frame); }

llvm::Value* LaunchEmitter::record_at(Builder& b, llvm::Value* index) {
  llvm::Value* records = b.CreateIntToPtr(pool_field(b, m_.i64, offsetof(BendLaunchPool, records)), m_.ptr);
  return task_at(b, records, index);
}

llvm::Value* LaunchEmitter::task_at(Builder& b, llvm::Value* records, llvm::Value* index) {
  return b.CreateInBoundsGEP(m_.i8, records, {b.CreateMul(b.CreateZExt(index, m_.i64), b.getInt64(m_.options.gpu->plan->task_stride))});
}

llvm::Value* LaunchEmitter::special(Builder& b, unsigned id) { return b.CreateIntrinsic(m_.i32, id, {}); }

// Grids come and go, so a thread's heap lists are its own and end with it: what is left of its chunk is given up.
void LaunchEmitter::open(Builder& b, llvm::Value* control) {
  control_ = control;
  pool_ = b.CreateIntToPtr(m_.load(b, m_.i64, control, offsetof(BendDeviceControl, launches), Region::Frame), m_.ptr);
  llvm::AllocaInst* worker = b.CreateAlloca(m_.i8, b.getInt32(kDeviceWorkerBytes));
  worker->setAlignment(llvm::Align(8));
  llvm::AllocaInst* lists = b.CreateAlloca(m_.i8, b.getInt32(sizeof(BendDeviceThread)));
  lists->setAlignment(llvm::Align(8));
  state_ = b.CreateAlloca(m_.state_type());
  goes_on_ = b.CreateAlloca(m_.i64);
  m_.open_stack(b, state_);
  worker_ = worker;
  for (uint32_t at = 0; at < sizeof(BendDeviceThread); at += 8) m_.store(b, b.getInt64(0), lists, at, Region::Frame);
  m_.store(b, b.CreatePtrToInt(control, m_.i64), worker, kDeviceWorkerControl, Region::Frame);
  m_.store(b, b.CreatePtrToInt(lists, m_.i64), worker, kDeviceWorkerThread, Region::Frame);
  m_.store(b, b.getInt64(0), worker, kDeviceWorkerBump, Region::Frame);
  m_.store(b, b.getInt64(0), worker, kDeviceWorkerLimit, Region::Frame);
  m_.store(b, b.CreatePtrToInt(goes_on_, m_.i64), worker, kDeviceWorkerGoesOn, Region::Frame);
  m_.store(b, b.getInt64(0), goes_on_, 0, Region::Frame);
  llvm::Value* budget = m_.load(b, m_.i32, control, offsetof(BendDeviceControl, sequential_budget), Region::Frame);
  budget_ = b.CreateSelect(b.CreateICmpEQ(budget, b.getInt32(0)), b.getInt32(kNoBudget), budget);
}

// What goes on from a frame or join takes its parent from there: the word read here is not looked at.
void LaunchEmitter::take(Builder& b, const Start& start, llvm::Value* parallel) {
  m_.set_state(b, state_, kStateParent, m_.load(b, m_.i64, start.record, offsetof(BendTaskRecord, parent), Region::Frame));
  m_.set_state(b, state_, kStateRecord, b.CreatePtrToInt(start.record, m_.i64));
  m_.set_state(b, state_, kStateSegment, m_.load(b, m_.i32, b.CreateInBoundsGEP(m_.i8, start.record, {start.segment_at}), 0, Region::Frame));
  // Every fork of the first task is launched, none of those that follow in its thread.
  m_.store(b, b.CreateSelect(b.CreateICmpNE(parallel, b.getInt32(0)), b.getInt32(BEND_MODE_PARALLEL), b.getInt32(BEND_MODE_SEQUENTIAL)), worker_, kDeviceWorkerMode, Region::Frame);
  m_.store(b, budget_, worker_, kDeviceWorkerBudget, Region::Frame);
  m_.set_levels(b, worker_, state_, b.getInt32(0), true);   // of a join that goes on; a task's own are taken from its record
  m_.leave_pending(b, state_, b.getInt32(0), b.getInt32(0), false);
}

// To a BendPending.
void LaunchEmitter::hand_over(Builder& b, llvm::Value* pending) {
  m_.store(b, m_.get_state(b, state_, kStatePendingFirst), pending, offsetof(BendPending, first), Region::Frame);
  m_.store(b, m_.get_state(b, state_, kStatePendingCount), pending, offsetof(BendPending, count), Region::Frame);
  m_.store(b, m_.get_state(b, state_, kStatePendingTree), pending, offsetof(BendPending, tree), Region::Frame);
}

llvm::Function* LaunchEmitter::emulated(llvm::Function* machine) {
  llvm::FunctionType* type = llvm::FunctionType::get(m_.void_type, {m_.ptr, m_.ptr, m_.i32, m_.ptr}, false);
  llvm::Function* fn = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, "bend.emulated_task", m_.ir);
  m_.mark_function(fn);
  Builder b(llvm::BasicBlock::Create(m_.context, "entry", fn));
  open(b, fn->getArg(0));
  llvm::Value* mode = fn->getArg(2);
  llvm::Value* resumed = b.CreateICmpNE(b.CreateAnd(mode, b.getInt32(BEND_TASK_RESUME)), b.getInt32(0));
  take(b, {fn->getArg(1), b.CreateSelect(resumed, b.getInt64(offsetof(BendFrame, segment)), b.getInt64(offsetof(BendTaskRecord, segment)))}, b.CreateAnd(mode, b.getInt32(BEND_TASK_PARALLEL)));
  b.CreateCall(machine, {worker_, state_});
  hand_over(b, fn->getArg(3));
  b.CreateRetVoid();
  return fn;
}

llvm::Function* LaunchEmitter::emulated_tree(llvm::Function* machine) {
  if (!has_trees()) return nullptr;
  llvm::FunctionType* type = llvm::FunctionType::get(m_.void_type, {m_.ptr, m_.ptr, m_.i32, m_.i32, m_.ptr}, false);
  llvm::Function* fn = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, "bend.emulated_tree", m_.ir);
  m_.mark_function(fn);
  Builder b(llvm::BasicBlock::Create(m_.context, "entry", fn));
  llvm::BasicBlock *go_on = llvm::BasicBlock::Create(m_.context, "go_on", fn), *done = llvm::BasicBlock::Create(m_.context, "done", fn);
  open(b, fn->getArg(0));
  (void)GridEmitter(m_).share_of(b, worker_, control_, fn->getArg(1), fn->getArg(2), fn->getArg(3));
  llvm::Value* waiting = m_.load(b, m_.i64, goes_on_, 0, Region::Frame);
  b.CreateCondBr(b.CreateICmpNE(waiting, b.getInt64(0)), go_on, done);
  b.SetInsertPoint(go_on);
  take(b, {b.CreateIntToPtr(waiting, m_.ptr), b.getInt64(offsetof(BendFrame, segment))}, b.getInt32(1));
  b.CreateCall(machine, {worker_, state_});
  hand_over(b, fn->getArg(4));
  b.CreateBr(done);
  b.SetInsertPoint(done);
  b.CreateRetVoid();
  return fn;
}

// ---- the child's side: which task is mine ----

llvm::Value* LaunchEmitter::element(Builder& b, llvm::Value* launch, llvm::Value* parents, unsigned array, llvm::Value* index) {
  llvm::Value* arrays = b.CreateConstInBoundsGEP1_64(m_.i8, launch, BEND_LAUNCH_HEADER);
  llvm::Value* at = b.CreateAdd(b.CreateMul(parents, b.getInt32(array)), index);
  return b.CreateInBoundsGEP(m_.i32, arrays, {b.CreateZExt(at, m_.i64)});
}

LaunchEmitter::Place LaunchEmitter::own_place(Builder& b, llvm::Value* launch_word, llvm::Value* records, llvm::Value* count) {
  llvm::Value* null = llvm::ConstantPointerNull::get(llvm::PointerType::get(m_.context, 0));
  llvm::Value *thread = special(b, llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x), *number = special(b, llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x);
  llvm::Value* size = special(b, llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x);
  llvm::BasicBlock *own = m_.block(b, "own"), *aggregated = m_.block(b, "aggregated"), *search = m_.block(b, "search"), *halve = m_.block(b, "halve"), *half = m_.block(b, "half"),
                   *found = m_.block(b, "found"), *mine = m_.block(b, "mine"), *known = m_.block(b, "known");
  b.CreateCondBr(b.CreateICmpEQ(launch_word, b.getInt64(0)), own, aggregated);

  b.SetInsertPoint(own);
  llvm::Value* index = b.CreateAdd(b.CreateMul(number, size), thread);
  llvm::Value *direct = b.CreateIntToPtr(records, m_.ptr), *inside_count = b.CreateICmpULT(index, count);
  b.CreateBr(known);

  b.SetInsertPoint(aggregated);
  llvm::Value* launch = b.CreateIntToPtr(launch_word, m_.ptr);
  auto header = [&](size_t offset) { return m_.load(b, m_.i32, launch, static_cast<uint32_t>(offset), Region::Frame); };
  llvm::Value *parents = header(offsetof(BendLaunch, parents)), *blocks = header(offsetof(BendLaunch, blocks)), *share = header(offsetof(BendLaunch, share)),
              *threads = header(offsetof(BendLaunch, threads));
  llvm::Value *part = b.CreateUDiv(thread, threads), *inside = b.CreateURem(thread, threads);
  llvm::Value* block_number = b.CreateAdd(b.CreateMul(number, share), part);
  llvm::BasicBlock* no_part = b.GetInsertBlock();
  b.CreateCondBr(b.CreateAnd(b.CreateICmpULT(part, share), b.CreateICmpULT(block_number, blocks)), search, known);

  // The parent: how many sums are at most this block's number.
  b.SetInsertPoint(search);
  b.CreateBr(halve);
  b.SetInsertPoint(halve);
  llvm::PHINode *low = b.CreatePHI(m_.i32, 2), *high = b.CreatePHI(m_.i32, 2);
  low->addIncoming(b.getInt32(0), search);
  high->addIncoming(parents, search);
  b.CreateCondBr(b.CreateICmpULT(low, high), half, found);
  b.SetInsertPoint(half);
  llvm::Value* middle = b.CreateLShr(b.CreateAdd(low, high), 1);
  llvm::Value* below = b.CreateICmpULE(b.CreateAlignedLoad(m_.i32, element(b, launch, parents, kSum, middle), llvm::Align(4)), block_number);
  low->addIncoming(b.CreateSelect(below, b.CreateAdd(middle, b.getInt32(1)), low), half);
  high->addIncoming(b.CreateSelect(below, high, middle), half);
  b.CreateBr(halve);

  b.SetInsertPoint(found);
  llvm::BasicBlock *previous = m_.block(b, "previous"), *within = m_.block(b, "within");
  b.CreateCondBr(b.CreateICmpEQ(low, b.getInt32(0)), within, previous);
  b.SetInsertPoint(previous);
  llvm::Value* before = b.CreateAlignedLoad(m_.i32, element(b, launch, parents, kSum, b.CreateSub(low, b.getInt32(1))), llvm::Align(4));
  b.CreateBr(within);
  b.SetInsertPoint(within);
  llvm::PHINode* base = b.CreatePHI(m_.i32, 2);
  base->addIncoming(b.getInt32(0), found);
  base->addIncoming(before, previous);
  llvm::Value* tasks = b.CreateAlignedLoad(m_.i32, element(b, launch, parents, kCount, low), llvm::Align(4));
  llvm::Value* dimension = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, tasks, b.getInt32(BEND_BLOCK_THREADS));
  llvm::Value* task = b.CreateAdd(b.CreateMul(b.CreateSub(block_number, base), dimension), inside);
  llvm::Value* masked = b.CreateAnd(b.CreateICmpULT(inside, dimension), b.CreateICmpULT(task, tasks));
  b.CreateCondBr(masked, mine, known);
  b.SetInsertPoint(mine);
  llvm::Value* first = b.CreateAlignedLoad(m_.i32, element(b, launch, parents, kFirst, low), llvm::Align(4));
  llvm::Value* theirs = record_at(b, first);
  b.CreateBr(known);

  b.SetInsertPoint(known);
  auto either = [&](llvm::Value* alone, llvm::Value* together, llvm::Value* none) {
    llvm::PHINode* phi = b.CreatePHI(alone->getType(), 4);
    phi->addIncoming(alone, own);
    phi->addIncoming(none, no_part);
    phi->addIncoming(none, within);
    phi->addIncoming(together, mine);
    return phi;
  };
  llvm::Value* zero = b.getInt32(0);
  llvm::Value *valid = either(inside_count, b.getTrue(), b.getFalse()), *number_of = either(index, task, zero), *of = either(count, tasks, zero);
  return {valid, number_of, of, either(direct, theirs, null)};
}

// What a thread's machine begins with. In a grid of trees the warp has its share first, and goes on with what waited when it has completed the tree.
LaunchEmitter::Start LaunchEmitter::start_of(Builder& b, const Place& place, llvm::Value* error, llvm::Value* count) {
  llvm::Value *null = llvm::ConstantPointerNull::get(llvm::PointerType::get(m_.context, 0)), *at_task = b.getInt64(offsetof(BendTaskRecord, segment));
  llvm::Value *failed = b.CreateICmpNE(error, b.getInt64(0)), *wanted = b.CreateAnd(place.valid, b.CreateNot(failed));
  if (!has_trees()) return {b.CreateSelect(wanted, task_at(b, place.records, place.index), null), at_task};
  llvm::BasicBlock *tree = m_.block(b, "tree"), *share = m_.block(b, "share"), *shared = m_.block(b, "shared"), *task = m_.block(b, "task"), *asked = m_.block(b, "asked"),
                   *resume = m_.block(b, "resume"), *begin = m_.block(b, "begin"), *start = m_.block(b, "start");
  b.CreateCondBr(b.CreateICmpNE(b.CreateAnd(count, b.getInt64(BEND_COUNT_TREES)), b.getInt64(0)), tree, task);
  b.SetInsertPoint(tree);
  llvm::Value* any = b.CreateIntrinsic(m_.i1, llvm::Intrinsic::nvvm_vote_any_sync, {b.getInt32(~0u), failed});
  b.CreateCondBr(b.CreateAnd(place.valid, b.CreateNot(any)), share, shared);
  b.SetInsertPoint(share);
  (void)GridEmitter(m_).share_of(b, worker_, control_, place.records, b.CreateLShr(place.index, BEND_LANE_BITS), b.CreateLShr(place.count, BEND_LANE_BITS));
  b.CreateBr(shared);
  b.SetInsertPoint(shared);
  llvm::Value* goes_on = b.CreateIntToPtr(m_.load(b, m_.i64, goes_on_, 0, Region::Frame), m_.ptr);
  b.CreateBr(start);

  b.SetInsertPoint(task);
  b.CreateCondBr(wanted, asked, start);
  b.SetInsertPoint(asked);
  llvm::Value* host = b.CreateICmpEQ(b.CreateAnd(count, b.getInt64(BEND_COUNT_FROM_DEVICE)), b.getInt64(0));
  llvm::Value* resumes = b.CreateSelect(host, m_.load(b, m_.i32, control_, offsetof(BendDeviceControl, in_resume_count), Region::Frame), b.getInt32(0));
  b.CreateCondBr(b.CreateICmpULT(place.index, resumes), resume, begin);
  b.SetInsertPoint(resume);
  llvm::Value* list = b.CreateIntToPtr(m_.load(b, m_.i64, control_, offsetof(BendDeviceControl, in_resumes), Region::Frame), m_.ptr);
  llvm::Value* waiting = b.CreateIntToPtr(m_.load(b, m_.i64, b.CreateInBoundsGEP(m_.i64, list, {b.CreateZExt(place.index, m_.i64)}), 0, Region::Frame), m_.ptr);
  b.CreateBr(start);
  b.SetInsertPoint(begin);
  llvm::Value* record = task_at(b, place.records, b.CreateSub(place.index, resumes));
  b.CreateBr(start);

  b.SetInsertPoint(start);
  static_assert(offsetof(BendFrame, segment) == offsetof(BendJoin, segment));
  llvm::PHINode *what = b.CreatePHI(m_.ptr, 4), *where = b.CreatePHI(m_.i64, 4);
  auto from = [&](llvm::BasicBlock* block, llvm::Value* value, llvm::Value* at) {
    what->addIncoming(value, block);
    where->addIncoming(at, block);
  };
  llvm::Value* at_waiting = b.getInt64(offsetof(BendFrame, segment));
  from(shared, goes_on, at_waiting);
  from(task, null, at_task);
  from(resume, waiting, at_waiting);
  from(begin, record, at_task);
  return {what, where};
}

// ---- the parent's side ----

// One grid of this kernel, in the stream whose grids wait for nothing. i1: it has been taken.
llvm::Value* LaunchEmitter::start_grid(Builder& b, llvm::Value* blocks, llvm::Value* threads, llvm::Value* launch, llvm::Value* records, llvm::Value* count) {
  llvm::Type* dimension = llvm::ArrayType::get(m_.i32, 3);
  llvm::FunctionCallee buffer = m_.ir.getOrInsertFunction("__cudaCDP2GetParameterBufferV2", llvm::FunctionType::get(m_.ptr, {m_.ptr, dimension, dimension, m_.i32}, false));
  llvm::FunctionCallee go = m_.ir.getOrInsertFunction("__cudaCDP2LaunchDeviceV2", llvm::FunctionType::get(m_.i32, {m_.ptr, m_.ptr}, false));
  auto vector = [&](llvm::Value* x) {
    llvm::Value* out = llvm::ConstantArray::get(llvm::ArrayType::get(m_.i32, 3), {b.getInt32(1), b.getInt32(1), b.getInt32(1)});
    return b.CreateInsertValue(out, x, 0);
  };
  llvm::Value* counter = b.CreateConstInBoundsGEP1_64(m_.i8, pool_, offsetof(BendLaunchPool, grids));
  llvm::Value* number = m_.device_add(b, counter, b.getInt64(1));
  llvm::LoadInst* begun = b.CreateAlignedLoad(m_.i64, b.CreateConstInBoundsGEP1_64(m_.i8, pool_, offsetof(BendLaunchPool, begun)), llvm::Align(8));
  begun->setAtomic(llvm::AtomicOrdering::Monotonic, m_.device_scope());
  llvm::Value* most = b.CreateZExt(pool_field(b, m_.i32, offsetof(BendLaunchPool, most_waiting)), m_.i64);
  llvm::BasicBlock *room = m_.block(b, "room"), *tried = m_.block(b, "tried");
  llvm::BasicBlock* asked = b.GetInsertBlock();
  b.CreateCondBr(b.CreateICmpSLT(b.CreateSub(number, begun), most), room, tried);
  b.SetInsertPoint(room);
  // The children's records are there before they run.
  m_.device_fence(b);
  llvm::Value* arguments = b.CreateCall(buffer, {kernel_, vector(blocks), vector(threads), b.getInt32(0)});
  llvm::BasicBlock *entry = b.GetInsertBlock(), *fill = m_.block(b, "arguments");
  b.CreateCondBr(b.CreateICmpNE(b.CreatePtrToInt(arguments, m_.i64), b.getInt64(0)), fill, tried);
  b.SetInsertPoint(fill);
  // Laid out as the kernel's parameters.
  b.CreateAlignedStore(b.CreatePtrToInt(control_, m_.i64), arguments, llvm::Align(8));
  b.CreateAlignedStore(launch, b.CreateConstInBoundsGEP1_64(m_.i8, arguments, 8), llvm::Align(8));
  b.CreateAlignedStore(records, b.CreateConstInBoundsGEP1_64(m_.i8, arguments, 16), llvm::Align(8));
  b.CreateAlignedStore(count, b.CreateConstInBoundsGEP1_64(m_.i8, arguments, 24), llvm::Align(8));
  llvm::Value* code = b.CreateCall(go, {arguments, b.CreateIntToPtr(b.getInt64(kFireAndForget), m_.ptr)});
  llvm::Value* taken = b.CreateICmpEQ(code, b.getInt32(0));
  b.CreateBr(tried);
  b.SetInsertPoint(tried);
  llvm::PHINode* out = b.CreatePHI(m_.i1, 3);
  out->addIncoming(b.getFalse(), asked);
  out->addIncoming(b.getFalse(), entry);
  out->addIncoming(taken, fill);
  llvm::BasicBlock *undo = m_.block(b, "undo"), *known = m_.block(b, "known");
  b.CreateCondBr(out, known, undo);
  b.SetInsertPoint(undo);
  m_.device_add(b, counter, b.getInt64(~uint64_t{0}));
  b.CreateBr(known);
  b.SetInsertPoint(known);
  return out;
}

// Each forking thread its own grid. i1: this thread's children run.
llvm::Value* LaunchEmitter::launch_own(Builder& b, const Children& children) {
  llvm::BasicBlock *entry = b.GetInsertBlock(), *fork = m_.block(b, "fork"), *over = m_.block(b, "over");
  b.CreateCondBr(b.CreateICmpNE(children.count, b.getInt32(0)), fork, over);
  b.SetInsertPoint(fork);
  llvm::Value* threads = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, children.count, b.getInt32(BEND_BLOCK_THREADS));
  llvm::Value* blocks = b.CreateUDiv(b.CreateAdd(children.count, b.getInt32(BEND_BLOCK_THREADS - 1)), b.getInt32(BEND_BLOCK_THREADS));
  llvm::Value* kind = b.CreateSelect(children.tree, b.getInt64(BEND_COUNT_FROM_DEVICE | BEND_COUNT_TREES), b.getInt64(BEND_COUNT_FROM_DEVICE));
  llvm::Value* started = start_grid(b, blocks, threads, b.getInt64(0), b.CreatePtrToInt(record_at(b, children.first), m_.i64), b.CreateOr(b.CreateZExt(children.count, m_.i64), kind));
  llvm::BasicBlock* end = b.GetInsertBlock();
  b.CreateBr(over);
  b.SetInsertPoint(over);
  llvm::PHINode* out = b.CreatePHI(m_.i1, 2);
  out->addIncoming(b.getTrue(), entry);
  out->addIncoming(started, end);
  return out;
}

llvm::Value* LaunchEmitter::shuffle(Builder& b, llvm::Value* word, llvm::Value* lane) {
  return b.CreateIntrinsic(m_.i32, llvm::Intrinsic::nvvm_shfl_sync_idx_i32, {b.getInt32(~0u), word, lane, b.getInt32(31)});
}

void LaunchEmitter::meet(Builder& b, bool block) {
  if (block) b.CreateIntrinsic(m_.void_type, llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all, {b.getInt32(0)});
  else b.CreateIntrinsic(m_.void_type, llvm::Intrinsic::nvvm_bar_warp_sync, {b.getInt32(~0u)});
}

// One grid for all children of the warp or block, and one for its trees: the widest bD of a grid is the share of a real block that each virtual one
// has, and a tree has whole warps. All threads come here. i1: what this thread's task has left runs.
llvm::Value* LaunchEmitter::launch_both(Builder& b, const Children& children, bool block) {
  if (!has_trees()) return launch_aggregated(b, children, block, false);
  auto part = [&](bool trees) {
    llvm::Value* own = trees ? children.tree : b.CreateNot(children.tree);
    return launch_aggregated(b, {children.first, b.CreateSelect(own, children.count, b.getInt32(0)), children.tree}, block, trees);
  };
  llvm::Value* tasks = part(false);
  llvm::Value* trees = part(true);
  return b.CreateSelect(children.tree, trees, tasks);
}

llvm::Value* LaunchEmitter::launch_aggregated(Builder& b, const Children& children, bool block, bool trees) {
  const uint32_t stride = m_.options.gpu->plan->task_stride;
  auto shared = [&](const char* name, uint32_t words) {
    llvm::Type* type = llvm::ArrayType::get(m_.i32, words);
    return new llvm::GlobalVariable(m_.ir, type, false, llvm::GlobalValue::InternalLinkage, llvm::PoisonValue::get(type), name, nullptr, llvm::GlobalValue::NotThreadLocal, 3);
  };
  auto slot = [&](llvm::GlobalVariable* array, llvm::Value* index) { return b.CreateInBoundsGEP(m_.i32, array, {index}); };
  auto read = [&](llvm::Value* place) { return b.CreateAlignedLoad(m_.i32, place, llvm::Align(4)); };
  meet(b, false);
  llvm::Value* lane = special(b, llvm::Intrinsic::nvvm_read_ptx_sreg_laneid);
  llvm::Value* grid = b.CreateUDiv(b.CreateAdd(children.count, b.getInt32(BEND_BLOCK_THREADS - 1)), b.getInt32(BEND_BLOCK_THREADS));   // gD
  llvm::Value* most = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, children.count, b.getInt32(BEND_BLOCK_THREADS));                 // bD, then its maximum
  llvm::Value* sum = grid;
  for (uint32_t distance = 1; distance < kLanes; distance *= 2) {
    llvm::Value* pair = b.CreateIntrinsic(llvm::StructType::get(m_.i32, m_.i1), llvm::Intrinsic::nvvm_shfl_sync_up_i32p, {b.getInt32(~0u), sum, b.getInt32(distance), b.getInt32(0)});
    sum = b.CreateAdd(sum, b.CreateSelect(b.CreateExtractValue(pair, 1), b.CreateExtractValue(pair, 0), b.getInt32(0)));
    llvm::Value* other = b.CreateIntrinsic(m_.i32, llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, {b.getInt32(~0u), most, b.getInt32(distance), b.getInt32(31)});
    most = b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, most, other);
  }
  llvm::Value *total = shuffle(b, sum, b.getInt32(kLanes - 1)), *index = lane, *parents = b.getInt32(kLanes), *leads = b.CreateICmpEQ(lane, b.getInt32(0));
  llvm::GlobalVariable* told = nullptr;
  if (block) {
    constexpr uint32_t kWarps = BEND_BLOCK_THREADS / kLanes;
    llvm::GlobalVariable *sums = shared("bend.sums", kWarps), *maxima = shared("bend.maxima", kWarps);
    told = shared("bend.told", 2);
    index = special(b, llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x);
    parents = special(b, llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x);
    leads = b.CreateICmpEQ(index, b.getInt32(0));
    llvm::Value *warp = b.CreateLShr(index, 5), *warps = b.CreateLShr(parents, 5);
    llvm::BasicBlock *write = m_.block(b, "write"), *written = m_.block(b, "written");
    b.CreateCondBr(b.CreateICmpEQ(lane, b.getInt32(0)), write, written);
    b.SetInsertPoint(write);
    b.CreateAlignedStore(total, slot(sums, warp), llvm::Align(4));
    b.CreateAlignedStore(most, slot(maxima, warp), llvm::Align(4));
    b.CreateBr(written);
    b.SetInsertPoint(written);
    meet(b, true);
    total = b.getInt32(0);
    most = b.getInt32(0);
    llvm::Value* before = b.getInt32(0);
    for (uint32_t w = 0; w < kWarps; ++w) {
      // Words of warps that the block does not have hold anything.
      llvm::Value* there = b.CreateICmpULT(b.getInt32(w), warps);
      llvm::Value* part = b.CreateSelect(there, read(slot(sums, b.getInt32(w))), b.getInt32(0));
      before = b.CreateAdd(before, b.CreateSelect(b.CreateICmpULT(b.getInt32(w), warp), part, b.getInt32(0)));
      total = b.CreateAdd(total, part);
      most = b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, most, b.CreateSelect(there, read(slot(maxima, b.getInt32(w))), b.getInt32(0)));
    }
    sum = b.CreateAdd(sum, before);
  }
  auto tell = [&](llvm::Value* word, uint32_t place) {   // the leader's word, in all threads
    if (!block) return shuffle(b, word, b.getInt32(0));
    llvm::BasicBlock *write = m_.block(b, "tell"), *all = m_.block(b, "told");
    b.CreateCondBr(leads, write, all);
    b.SetInsertPoint(write);
    b.CreateAlignedStore(word, slot(told, b.getInt32(place)), llvm::Align(4));
    b.CreateBr(all);
    b.SetInsertPoint(all);
    meet(b, true);
    return static_cast<llvm::Value*>(read(slot(told, b.getInt32(place))));
  };

  llvm::BasicBlock *some = m_.block(b, "some"), *reserve = m_.block(b, "reserve"), *reserved = m_.block(b, "reserved"), *fill = m_.block(b, "fill"), *launch = m_.block(b, "launch"),
                   *launched = m_.block(b, "launched"), *over = m_.block(b, "over");
  llvm::BasicBlock* entry = b.GetInsertBlock();
  b.CreateCondBr(b.CreateICmpEQ(total, b.getInt32(0)), over, some);   // the same in all threads
  b.SetInsertPoint(some);
  llvm::Value* bytes = b.CreateAdd(b.CreateMul(parents, b.getInt32(4 * kArrays)), b.getInt32(BEND_LAUNCH_HEADER));
  llvm::Value* places = b.CreateUDiv(b.CreateAdd(bytes, b.getInt32(stride - 1)), b.getInt32(stride));
  b.CreateCondBr(leads, reserve, reserved);
  b.SetInsertPoint(reserve);
  llvm::Value* taken = m_.device_add(b, b.CreateConstInBoundsGEP1_64(m_.i8, pool_, offsetof(BendLaunchPool, cursor)), places);
  b.CreateBr(reserved);
  b.SetInsertPoint(reserved);
  llvm::PHINode* mine = b.CreatePHI(m_.i32, 2);
  mine->addIncoming(b.getInt32(0), some);
  mine->addIncoming(taken, reserve);
  llvm::Value* place = tell(mine, 0);
  llvm::Value* capacity = pool_field(b, m_.i32, offsetof(BendLaunchPool, capacity));
  llvm::Value* fits = b.CreateICmpULE(b.CreateAdd(b.CreateZExt(place, m_.i64), b.CreateZExt(places, m_.i64)), b.CreateZExt(capacity, m_.i64));
  llvm::BasicBlock* full = b.GetInsertBlock();
  b.CreateCondBr(fits, fill, over);

  b.SetInsertPoint(fill);
  llvm::Value* header = record_at(b, place);
  b.CreateAlignedStore(sum, element(b, header, parents, kSum, index), llvm::Align(4));
  b.CreateAlignedStore(children.first, element(b, header, parents, kFirst, index), llvm::Align(4));
  b.CreateAlignedStore(children.count, element(b, header, parents, kCount, index), llvm::Align(4));
  m_.device_fence(b);
  meet(b, block);
  llvm::BasicBlock* filled = b.GetInsertBlock();
  b.CreateCondBr(leads, launch, launched);
  b.SetInsertPoint(launch);
  llvm::Value* share = b.CreateUDiv(b.getInt32(BEND_BLOCK_THREADS), most);
  auto set = [&](llvm::Value* value, size_t offset) { m_.store(b, value, header, static_cast<uint32_t>(offset), Region::Frame); };
  set(parents, offsetof(BendLaunch, parents));
  set(total, offsetof(BendLaunch, blocks));
  set(share, offsetof(BendLaunch, share));
  set(most, offsetof(BendLaunch, threads));
  llvm::Value* blocks = b.CreateUDiv(b.CreateAdd(total, b.CreateSub(share, b.getInt32(1))), share);
  // No more threads than there are virtual blocks for, in whole warps.
  llvm::Value* used = b.CreateMul(b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, share, total), most);
  llvm::Value* threads = b.CreateAnd(b.CreateAdd(used, b.getInt32(kLanes - 1)), b.getInt32(~(kLanes - 1)));
  llvm::Value* started = b.CreateZExt(start_grid(b, blocks, threads, b.CreatePtrToInt(header, m_.i64), b.getInt64(0),
                                                   b.getInt64(BEND_COUNT_FROM_DEVICE | (trees ? BEND_COUNT_TREES : 0))), m_.i32);
  llvm::BasicBlock* launch_end = b.GetInsertBlock();
  b.CreateBr(launched);
  b.SetInsertPoint(launched);
  llvm::PHINode* status = b.CreatePHI(m_.i32, 2);
  status->addIncoming(b.getInt32(0), filled);
  status->addIncoming(started, launch_end);
  llvm::Value* ok = b.CreateICmpNE(tell(status, 1), b.getInt32(0));
  llvm::BasicBlock* end = b.GetInsertBlock();
  b.CreateBr(over);

  b.SetInsertPoint(over);
  llvm::PHINode* out = b.CreatePHI(m_.i1, 3);
  out->addIncoming(b.getTrue(), entry);
  out->addIncoming(b.getFalse(), full);
  out->addIncoming(ok, end);
  return out;
}

// ---- the kernel ----

llvm::Function* LaunchEmitter::kernel(llvm::Function* machine) {
  kernel_ = llvm::Function::Create(llvm::FunctionType::get(m_.void_type, {m_.i64, m_.i64, m_.i64, m_.i64}, false), llvm::GlobalValue::ExternalLinkage, BEND_CHILDREN_KERNEL_NAME, m_.ir);
  m_.mark_function(kernel_);
  kernel_->setCallingConv(llvm::CallingConv::PTX_Kernel);
  kernel_->addFnAttr("nvvm.maxntid", std::to_string(BEND_BLOCK_THREADS));
  kernel_->addFnAttr(llvm::Attribute::Convergent);
  Builder b(llvm::BasicBlock::Create(m_.context, "entry", kernel_));
  open(b, b.CreateIntToPtr(kernel_->getArg(0), m_.ptr));
  llvm::BasicBlock *count = m_.block(b, "count"), *counted = m_.block(b, "counted");
  llvm::Value* leads = b.CreateICmpEQ(b.CreateOr(special(b, llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x), special(b, llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x)), b.getInt32(0));
  b.CreateCondBr(b.CreateAnd(leads, b.CreateICmpNE(b.CreateAnd(kernel_->getArg(3), b.getInt64(BEND_COUNT_FROM_DEVICE)), b.getInt64(0))), count, counted);
  b.SetInsertPoint(count);
  m_.device_add(b, b.CreateConstInBoundsGEP1_64(m_.i8, pool_, offsetof(BendLaunchPool, begun)), b.getInt64(1));
  b.CreateBr(counted);
  b.SetInsertPoint(counted);
  const Place place = own_place(b, kernel_->getArg(1), kernel_->getArg(2), b.CreateTrunc(kernel_->getArg(3), m_.i32));
  llvm::LoadInst* error = b.CreateAlignedLoad(m_.i64, b.CreateConstInBoundsGEP1_64(m_.i8, control_, offsetof(BendDeviceControl, error)), llvm::Align(8));
  error->setAtomic(llvm::AtomicOrdering::Monotonic, m_.device_scope());
  llvm::Value* null = llvm::ConstantPointerNull::get(llvm::PointerType::get(m_.context, 0));
  const Start begin = start_of(b, place, error, kernel_->getArg(3));

  llvm::BasicBlock *entry = b.GetInsertBlock(), *next = m_.block(b, "next"), *run = m_.block(b, "run"), *ran = m_.block(b, "ran"), *gather = m_.block(b, "gather"), *step = m_.block(b, "step"),
                   *again = m_.block(b, "again"), *done = m_.block(b, "done");
  b.CreateBr(next);
  b.SetInsertPoint(next);
  llvm::PHINode *task = b.CreatePHI(m_.ptr, 2), *segment_at = b.CreatePHI(m_.i64, 2), *first_time = b.CreatePHI(m_.i1, 2), *at = b.CreatePHI(m_.i32, 2), *left = b.CreatePHI(m_.i32, 2), *skipped = b.CreatePHI(m_.i64, 2);
  skipped->addIncoming(b.getInt64(0), entry);
  task->addIncoming(begin.record, entry);
  segment_at->addIncoming(begin.segment_at, entry);
  first_time->addIncoming(b.getTrue(), entry);
  at->addIncoming(b.getInt32(0), entry);
  left->addIncoming(b.getInt32(0), entry);
  m_.leave_pending(b, state_, b.getInt32(0), b.getInt32(0), false);   // of threads that have no task
  b.CreateCondBr(b.CreateICmpNE(task, null), run, ran);
  b.SetInsertPoint(run);
  take(b, {task, segment_at}, b.CreateZExt(first_time, m_.i32));
  b.CreateCall(machine, {worker_, state_});
  b.CreateBr(ran);
  b.SetInsertPoint(ran);
  b.CreateCondBr(first_time, gather, step);

  b.SetInsertPoint(gather);
  const Children children{m_.get_state(b, state_, kStatePendingFirst), m_.get_state(b, state_, kStatePendingCount), b.CreateICmpNE(m_.get_state(b, state_, kStatePendingTree), b.getInt32(0))};
  llvm::BasicBlock *thread = m_.block(b, "by_thread"), *warp = m_.block(b, "by_warp"), *whole = m_.block(b, "by_block"), *gathered = m_.block(b, "gathered");
  llvm::SwitchInst* ways = b.CreateSwitch(pool_field(b, m_.i32, offsetof(BendLaunchPool, way)), thread, 2);
  ways->addCase(b.getInt32(BEND_LAUNCH_WARP), warp);
  ways->addCase(b.getInt32(BEND_LAUNCH_BLOCK), whole);
  std::vector<std::pair<llvm::Value*, llvm::BasicBlock*>> results;
  auto way = [&](llvm::BasicBlock* start, const std::function<llvm::Value*()>& launch) {
    b.SetInsertPoint(start);
    llvm::Value* ok = launch();
    results.emplace_back(ok, b.GetInsertBlock());
    b.CreateBr(gathered);
  };
  way(thread, [&] { return launch_own(b, children); });
  way(warp, [&] { return launch_both(b, children, false); });
  way(whole, [&] { return launch_both(b, children, true); });
  b.SetInsertPoint(gathered);
  llvm::PHINode* launched = b.CreatePHI(m_.i1, 3);
  for (const auto& [ok, from] : results) launched->addIncoming(ok, from);
  llvm::Value* keep = b.CreateAnd(b.CreateNot(launched), b.CreateICmpNE(children.count, b.getInt32(0)));
  m_.count_refused(b, control_, keep);
  llvm::BasicBlock* gathered_end = b.GetInsertBlock();
  llvm::Value* kept = b.CreateSelect(keep, b.CreateSelect(children.tree, b.getInt32(1), children.count), b.getInt32(0));
  // The task that a tree is without groups.
  llvm::Value* inside = b.CreateSelect(children.tree, b.getInt64(BEND_GROUP_TASK), b.getInt64(0));
  b.CreateBr(step);

  // Children whose launch was refused, one after another.
  b.SetInsertPoint(step);
  llvm::PHINode *now = b.CreatePHI(m_.i32, 2), *remaining = b.CreatePHI(m_.i32, 2), *offset = b.CreatePHI(m_.i64, 2);
  offset->addIncoming(skipped, ran);
  offset->addIncoming(inside, gathered_end);
  now->addIncoming(at, ran);
  now->addIncoming(children.first, gathered_end);
  remaining->addIncoming(left, ran);
  remaining->addIncoming(kept, gathered_end);
  b.CreateCondBr(b.CreateICmpNE(remaining, b.getInt32(0)), again, done);
  b.SetInsertPoint(again);
  task->addIncoming(b.CreateInBoundsGEP(m_.i8, record_at(b, now), {offset}), again);
  segment_at->addIncoming(b.getInt64(offsetof(BendTaskRecord, segment)), again);
  skipped->addIncoming(offset, again);
  first_time->addIncoming(b.getFalse(), again);
  at->addIncoming(b.CreateAdd(now, b.getInt32(1)), again);
  left->addIncoming(b.CreateSub(remaining, b.getInt32(1)), again);
  b.CreateBr(next);
  b.SetInsertPoint(done);
  b.CreateRetVoid();
  return kernel_;
}

}  // namespace bendc::codegen
