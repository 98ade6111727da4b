// Forks. All calls but the first become tasks in entries of the worker's task stack (runtime/abi.h, BendForkTask); the first runs at once,
// then each task is taken back and run as a plain call, unless another worker has taken it: then its result is in the entry.
//
//   the function's Nat below its bound (small_forks.h)                    -> the sequential clones, in order
//   entry  = task_tail;  if (entry + bytes > task_limit) -> solo or !bend_fork(): the sequential clones, in order
//   entry[i] := { task function, arguments };  task_tail = entry + bytes;  r0 = f0(..)
//   task_tail = entry[i];  if (entry[i] > *task_head || bend_join(entry[i])) r = f(..)  else r = entry[i].data
//
// The newest entry belongs to the first task, since the oldest is taken first and is the last that its owner needs.
#include <cstddef>

#include "codegen/llvm/emitter.h"
#include "codegen/llvm/sanitize.h"

namespace bendc::codegen {

using flow::TypeId;
using flow::VarId;

namespace {
constexpr uint32_t kDataOffset = offsetof(BendForkTask, data);
constexpr auto kMonotonic = llvm::AtomicOrdering::Monotonic;
constexpr auto kPop = kWatchThreads ? llvm::AtomicOrdering::SequentiallyConsistent : kMonotonic;

uint32_t round_up_8(uint32_t bytes) { return (bytes + 7) / 8 * 8; }
}  // namespace

// Field of the worker that other workers access too.
llvm::LoadInst* ModuleEmitter::load_shared(Builder& b, llvm::Type* type, llvm::Value* base, uint32_t offset, llvm::AtomicOrdering order) {
  llvm::Value* address = offset == 0 ? base : b.CreateConstInBoundsGEP1_64(i8, base, offset);
  llvm::LoadInst* out = b.CreateAlignedLoad(type, address, llvm::Align(type == i32 ? 4 : 8));
  out->setAtomic(order);
  return out;
}

void ModuleEmitter::store_tail(Builder& b, llvm::Value* worker, llvm::Value* tail, llvm::AtomicOrdering order) {
  b.CreateAlignedStore(tail, b.CreateConstInBoundsGEP1_64(i8, worker, offsetof(BendWorker, task_tail)), llvm::Align(8))->setAtomic(order);
}

uint32_t ModuleEmitter::task_bytes(flow::FuncId callee) {
  uint32_t arguments = 0;
  for (VarId param : flow.funcs[callee].params) arguments += round_up_8(layouts.of(flow.vars[param].type).size);
  return std::max(arguments, round_up_8(layouts.of(flow.funcs[callee].result).size));
}

// task(worker, data): what another worker runs.
llvm::Function* ModuleEmitter::task_function(flow::FuncId callee) {
  const std::string name = "bend.task." + std::to_string(callee.index);
  llvm::Function* task = helper(name, llvm::FunctionType::get(void_type, {ptr, ptr}, false), [&](llvm::Function* fn, Builder& body) {
    const flow::Func& func = flow.funcs[callee];
    llvm::Value *worker = fn->getArg(0), *area = fn->getArg(1);
    if (task_bytes(callee) > BEND_TASK_SPACE) area = load(body, ptr, area, 0, Region::Frame);
    llvm::SmallVector<llvm::Value*, 8> operands{worker};
    if (returns_indirect(func.result)) operands.push_back(area);
    uint32_t offset = 0;
    for (VarId param : func.params) {
      const TypeId type = flow.vars[param].type;
      const Leaves leaves = load_frame(body, type, body.CreateConstInBoundsGEP1_64(i8, area, offset));
      operands.append(leaves.begin(), leaves.end());
      offset += round_up_8(layouts.of(type).size);
    }
    llvm::Function* target = function(callee, false);
    llvm::CallInst* call = body.CreateCall(target, operands);
    call->setCallingConv(target->getCallingConv());
    if (!returns_indirect(func.result)) store_frame(body, func.result, split_result(body, call, func.result), area);
    body.CreateRetVoid();
  });
  task->setCallingConv(llvm::CallingConv::C);
  return task;
}

void FuncEmitter::fork(const flow::Node& node) {
  const std::vector<VarId> results(m_.flow.list(node.vars).begin(), m_.flow.list(node.vars).end());
  const size_t count = node.calls.size();
  if (sequential_ || count < 2 || !m_.options.threads) {
    for (size_t i = 0; i < count; ++i) bind(results[i], call(node.calls[i].func, node.calls[i].args));
    return;
  }
  const uint64_t bytes = BEND_TASK_BYTES * (count - 1);
  llvm::BasicBlock *full = m_.block(b_, "fork.full"), *ask = m_.block(b_, "fork.ask"), *push = m_.block(b_, "fork.push"), *in_order = m_.block(b_, "fork.in_order"),
                   *joined = m_.block(b_, "fork.joined");
  if (const flow::SmallFork& small = m_.small_forks[id_.index]; small.limit > 0) {
    llvm::BasicBlock* large = m_.block(b_, "fork.large");
    b_.CreateCondBr(b_.CreateICmpULT(scalar(func_.params[small.param]), b_.getInt64(small.limit)), in_order, large);
    b_.SetInsertPoint(large);
  }
  llvm::BasicBlock* start = b_.GetInsertBlock();
  llvm::Value* tail = m_.load_shared(b_, m_.ptr, worker_, offsetof(BendWorker, task_tail), kMonotonic);
  llvm::Value* limit = m_.load_shared(b_, m_.ptr, worker_, offsetof(BendWorker, task_limit), kMonotonic);
  b_.CreateCondBr(b_.CreateICmpULE(b_.CreateConstGEP1_64(m_.i8, tail, bytes), limit), push, full);

  b_.SetInsertPoint(full);
  llvm::Value* solo = m_.load(b_, m_.i32, worker_, offsetof(BendWorker, solo), ModuleEmitter::Region::Worker);
  b_.CreateCondBr(b_.CreateICmpNE(solo, b_.getInt32(0)), in_order, ask);
  b_.SetInsertPoint(ask);
  llvm::Value* may = m_.call_runtime(b_, Rt::bend_fork, {worker_, b_.getInt64(bytes)});
  // The program's first fork gets its stack there.
  llvm::Value* opened = m_.load_shared(b_, m_.ptr, worker_, offsetof(BendWorker, task_tail), kMonotonic);
  b_.CreateCondBr(b_.CreateICmpNE(may, b_.getInt32(0)), push, in_order);

  std::vector<std::pair<llvm::BasicBlock*, std::vector<Leaves>>> ways;
  b_.SetInsertPoint(in_order);
  std::vector<Leaves> sequential;
  for (const flow::CallSite& site : node.calls) sequential.push_back(call(site.func, site.args, true));
  ways.push_back({b_.GetInsertBlock(), std::move(sequential)});
  b_.CreateBr(joined);

  b_.SetInsertPoint(push);
  llvm::PHINode* first = b_.CreatePHI(m_.ptr, 2);
  first->addIncoming(tail, start);
  first->addIncoming(opened, ask);
  llvm::Value* end = b_.CreateConstGEP1_64(m_.i8, first, bytes);
  std::vector<llvm::Value*> entries(count), areas(count);
  bool outside = false;   // some task's data is in this frame
  for (size_t i = count - 1; i > 0; --i) {
    const flow::CallSite& site = node.calls[i];
    entries[i] = b_.CreateConstInBoundsGEP1_64(m_.i8, first, BEND_TASK_BYTES * (count - 1 - i));
    areas[i] = b_.CreateConstInBoundsGEP1_64(m_.i8, entries[i], kDataOffset);
    m_.store(b_, m_.task_function(site.func), entries[i], offsetof(BendForkTask, code), ModuleEmitter::Region::Frame);
    if (const uint32_t size = m_.task_bytes(site.func); size > BEND_TASK_SPACE) {
      outside = true;
      llvm::Value* area = task_area(static_cast<uint32_t>(i), size);
      m_.store(b_, area, areas[i], 0, ModuleEmitter::Region::Frame);
      areas[i] = area;
    }
    uint32_t offset = 0;
    for (VarId var : m_.flow.list(site.args)) {
      m_.store_frame(b_, type(var), value(var), b_.CreateConstInBoundsGEP1_64(m_.i8, areas[i], offset));
      offset += round_up_8(m_.layouts.of(type(var)).size);
    }
  }
  m_.store_tail(b_, worker_, end, llvm::AtomicOrdering::Release);
  std::vector<Leaves> parallel{call(node.calls[0].func, node.calls[0].args, false, outside)};
  for (size_t i = 1; i < count; ++i) {
    const flow::CallSite& site = node.calls[i];
    llvm::BasicBlock *ours = m_.block(b_, "task.ours"), *doubt = m_.block(b_, "task.doubt"), *taken = m_.block(b_, "task.taken"), *done = m_.block(b_, "task.done");
    m_.store_tail(b_, worker_, entries[i], kPop);
    // Whoever takes tasks puts the processor's barrier here; the compiler must not move the load up either.
    if (!kWatchThreads) b_.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent, llvm::SyncScope::SingleThread);
    llvm::Value* head_word = m_.load(b_, m_.ptr, worker_, offsetof(BendWorker, task_head), ModuleEmitter::Region::Worker);
    llvm::Value* head = m_.load_shared(b_, m_.i32, head_word, 0, kPop);
    llvm::Value* place = b_.CreateTrunc(b_.CreatePtrToInt(entries[i], m_.i64), m_.i32);
    b_.CreateCondBr(b_.CreateICmpULT(head, place), ours, doubt);
    b_.SetInsertPoint(doubt);
    llvm::Value* again = m_.call_runtime(b_, Rt::bend_join, {worker_, entries[i]});
    b_.CreateCondBr(b_.CreateICmpNE(again, b_.getInt32(0)), ours, taken);
    b_.SetInsertPoint(taken);
    const TypeId result = m_.flow.funcs[site.func].result;
    const Leaves delivered = m_.load_frame(b_, result, areas[i]);
    b_.CreateBr(done);
    b_.SetInsertPoint(ours);
    const Leaves own = call(site.func, site.args, false, outside);
    llvm::BasicBlock* own_end = b_.GetInsertBlock();
    b_.CreateBr(done);
    b_.SetInsertPoint(done);
    Leaves merged;
    for (size_t leaf = 0; leaf < own.size(); ++leaf) {
      llvm::PHINode* phi = b_.CreatePHI(own[leaf]->getType(), 2);
      phi->addIncoming(own[leaf], own_end);
      phi->addIncoming(delivered[leaf], taken);
      merged.push_back(phi);
    }
    parallel.push_back(std::move(merged));
  }
  ways.push_back({b_.GetInsertBlock(), std::move(parallel)});
  b_.CreateBr(joined);

  b_.SetInsertPoint(joined);
  for (size_t i = 0; i < count; ++i) {
    Leaves merged;
    for (size_t leaf = 0; leaf < ways[0].second[i].size(); ++leaf) {
      llvm::PHINode* phi = b_.CreatePHI(ways[0].second[i][leaf]->getType(), 2);
      for (const auto& [block, values] : ways) phi->addIncoming(values[i][leaf], block);
      merged.push_back(phi);
    }
    bind(results[i], std::move(merged));
  }
}

// Memory for the task of call `index` of whichever fork runs: a function has one fork open at a time.
llvm::Value* FuncEmitter::task_area(uint32_t index, uint32_t bytes) {
  llvm::AllocaInst*& area = task_areas_[index];
  if (!area) {
    Builder entry(&fn_->getEntryBlock(), fn_->getEntryBlock().begin());
    area = entry.CreateAlloca(m_.i8, entry.getInt32(bytes), "task");
    area->setAlignment(llvm::Align(8));
  } else if (llvm::cast<llvm::ConstantInt>(area->getArraySize())->getZExtValue() < bytes) {
    area->setOperand(0, b_.getInt32(bytes));
  }
  return area;
}

}  // namespace bendc::codegen
