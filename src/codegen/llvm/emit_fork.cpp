// Forks. All calls but the first become tasks in entries of the worker's task stack (runtime/abi.h, BendForkTask); the first runs at once,
// then each task is taken back and run as a plain call, unless another worker has taken it: then its result is in the entry.
//
//   the function's Nat below its bound (small_forks.h)                    -> the sequential clones, in order
//   not tasks_wanted: inside a fork that bend_fork took for small          -> in order
//   otherwise, out of line:
//     solo                                                                 -> the sequential clones, in order
//     bend_fork() takes it for small                                       -> in order; bend_fork_end()
//     entry = task_tail;  entry[i] := { task function, arguments };  task_tail = entry + bytes;  r0 = f0(..)
//     task_tail = entry[i];  if (entry[i] > *task_head || bend_join(entry[i])) r = f(..)  else r = entry[i].data;  bend_fork_end()
//
// The newest entry belongs to the first task, since the oldest is taken first and is the last that its owner needs.
#include <algorithm>
#include <cstddef>

#include "codegen/llvm/emitter.h"
#include "codegen/llvm/sanitize.h"
#include "codegen/llvm/unroll_recursion.h"

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
    llvm::Function* target = function(callee);
    llvm::CallInst* call = body.CreateCall(target, operands);
    call->setCallingConv(target->getCallingConv());
    if (!returns_indirect(func.result)) store_frame(body, func.result, split_result(body, call, func.result), area);
    body.CreateRetVoid();
  });
  task->setCallingConv(llvm::CallingConv::C);
  return task;
}

llvm::Value* FuncEmitter::wanted_address() { return b_.CreateConstInBoundsGEP1_64(m_.i8, worker_, offsetof(BendWorker, tasks_wanted)); }

void FuncEmitter::fork(const flow::Node& node) {
  const std::vector<VarId> results(m_.flow.list(node.vars).begin(), m_.flow.list(node.vars).end());
  const size_t count = node.calls.size();
  if (sequential_ || count < 2 || count > BEND_WIDEST_FORK || !m_.options.threads) {
    for (size_t i = 0; i < count; ++i) bind(results[i], call(node.calls[i].func, node.calls[i].args));
    return;
  }
  Ways ways;
  llvm::BasicBlock *in_order = nullptr, *large = m_.block(b_, "fork.large"), *wanted = m_.block(b_, "fork.wanted"), *enough = m_.block(b_, "fork.enough");
  if (const flow::SmallFork& small = m_.small_forks[id_.index]; small.limit > 0) {
    in_order = m_.block(b_, "fork.small");
    b_.CreateCondBr(b_.CreateICmpULT(scalar(func_.params[small.param]), b_.getInt64(small.limit)), in_order, large);
  } else {
    b_.CreateBr(large);
  }
  b_.SetInsertPoint(large);
  llvm::LoadInst* asked = b_.CreateAlignedLoad(m_.i32, wanted_address(), llvm::Align(4));
  asked->setAtomic(kMonotonic);
  asked->setMetadata(kPollMetadata, llvm::MDNode::get(m_.context, {}));
  b_.CreateCondBr(b_.CreateICmpNE(asked, b_.getInt32(0)), wanted, enough, m_.unlikely());

  b_.SetInsertPoint(wanted);
  std::vector<VarId> arguments;
  for (const flow::CallSite& site : node.calls)
    for (VarId var : m_.flow.list(site.args))
      if (std::find(arguments.begin(), arguments.end(), var) == arguments.end()) arguments.push_back(var);
  llvm::SmallVector<llvm::Value*, 8> operands{worker_};
  for (VarId var : arguments) operands.append(value(var).begin(), value(var).end());
  llvm::Function* outlined = fork_function(node, arguments, results);
  llvm::CallInst* forked = b_.CreateCall(outlined, operands);
  forked->setCallingConv(outlined->getCallingConv());
  ways.emplace_back(b_.GetInsertBlock(), std::vector<Leaves>());
  unsigned next = 0;
  for (VarId var : results) {
    Leaves& leaves = ways.back().second.emplace_back();
    for (size_t leaf = 0; leaf < m_.layouts.of(type(var)).leaves.size(); ++leaf) leaves.push_back(b_.CreateExtractValue(forked, next++));
  }
  b_.SetInsertPoint(enough);
  ways.push_back(calls_in_order(node, false));
  if (in_order) {
    b_.SetInsertPoint(in_order);
    ways.push_back(calls_in_order(node, true));
  }
  std::vector<Leaves> merged = meet(ways);
  for (size_t i = 0; i < count; ++i) bind(results[i], std::move(merged[i]));
}

// The results of the calls, made one after another.
FuncEmitter::Ways::value_type FuncEmitter::calls_in_order(const flow::Node& node, bool sequential) {
  std::vector<Leaves> out;
  for (const flow::CallSite& site : node.calls) out.push_back(call(site.func, site.args, sequential));
  return {b_.GetInsertBlock(), std::move(out)};
}

// What comes after ways that give the same values.
std::vector<Leaves> FuncEmitter::meet(const Ways& ways) {
  llvm::BasicBlock* joined = m_.block(b_, "fork.joined");
  for (const auto& [block, values] : ways) Builder(block).CreateBr(joined);
  b_.SetInsertPoint(joined);
  std::vector<Leaves> out;
  for (size_t i = 0; i < ways[0].second.size(); ++i) {
    Leaves& merged = out.emplace_back();
    for (size_t leaf = 0; leaf < ways[0].second[i].size(); ++leaf) {
      llvm::PHINode* phi = b_.CreatePHI(ways[0].second[i][leaf]->getType(), static_cast<unsigned>(ways.size()));
      for (const auto& [block, values] : ways) phi->addIncoming(values[i][leaf], block);
      merged.push_back(phi);
    }
  }
  return out;
}

// (worker, arguments) -> the results' leaves: the fork of a worker that wants tasks. Out of line, for it is rare and large.
llvm::Function* FuncEmitter::fork_function(const flow::Node& node, const std::vector<VarId>& arguments, const std::vector<VarId>& results) {
  auto leaf_types = [&](const std::vector<VarId>& vars, std::vector<llvm::Type*> out) {
    for (VarId var : vars)
      for (flow::Leaf leaf : m_.layouts.of(type(var)).leaves) out.push_back(m_.leaf_type(leaf.kind));
    return out;
  };
  llvm::Type* result = llvm::StructType::get(m_.context, leaf_types(results, {}));
  llvm::FunctionType* fn_type = llvm::FunctionType::get(result, leaf_types(arguments, {m_.ptr}), false);
  llvm::Function* out = llvm::Function::Create(fn_type, llvm::GlobalValue::InternalLinkage, fn_->getName() + ".fork", m_.ir);
  m_.mark_function(out);
  m_.mark_worker(out);
  out->addFnAttr(llvm::Attribute::NoInline);
  out->addFnAttr(llvm::Attribute::Cold);
  out->setCallingConv(llvm::CallingConv::Fast);
  std::vector<Leaves> outer;
  for (VarId var : arguments) outer.push_back(value(var));
  FuncEmitter(m_, id_, out).run_fork(node, arguments);
  for (size_t i = 0; i < arguments.size(); ++i) bind(arguments[i], std::move(outer[i]));
  return out;
}

void FuncEmitter::run_fork(const flow::Node& node, const std::vector<VarId>& arguments) {
  llvm::BasicBlock* entry = llvm::BasicBlock::Create(m_.context, "entry", fn_);
  llvm::BasicBlock* start = llvm::BasicBlock::Create(m_.context, "start", fn_);
  b_.SetInsertPoint(entry);
  b_.CreateBr(start);   // the entry block holds the frame only
  b_.SetInsertPoint(start);
  worker_ = fn_->getArg(0);
  unsigned next = 1;
  for (VarId var : arguments) {
    Leaves leaves;
    for (size_t i = 0; i < m_.layouts.of(type(var)).leaves.size(); ++i) leaves.push_back(fn_->getArg(next++));
    bind(var, std::move(leaves));
  }
  llvm::BasicBlock *ask = m_.block(b_, "fork.ask"), *push = m_.block(b_, "fork.push"), *small = m_.block(b_, "fork.small"), *in_order = m_.block(b_, "fork.in_order");
  llvm::Value* solo = m_.load(b_, m_.i32, worker_, offsetof(BendWorker, solo), ModuleEmitter::Region::Worker);
  b_.CreateCondBr(b_.CreateICmpNE(solo, b_.getInt32(0)), in_order, ask);
  b_.SetInsertPoint(ask);
  llvm::Value* site = b_.getInt32(m_.fork_sites++);
  llvm::Value* token = m_.call_runtime(b_, Rt::bend_fork, {worker_, site});
  llvm::SwitchInst* answer = b_.CreateSwitch(b_.CreateAnd(token, b_.getInt64(BEND_FORK_HOW)), in_order, 2);
  answer->addCase(b_.getInt64(BEND_FORK_PUSH), push);
  answer->addCase(b_.getInt64(BEND_FORK_SMALL), small);

  Ways ways;
  b_.SetInsertPoint(push);
  ways.push_back(calls_as_tasks(node));
  (void)m_.call_runtime(b_, Rt::bend_fork_end, {worker_, site, token});
  b_.SetInsertPoint(small);
  ways.push_back(calls_in_order(node, false));
  (void)m_.call_runtime(b_, Rt::bend_fork_end, {worker_, site, token});
  b_.SetInsertPoint(in_order);
  ways.push_back(calls_in_order(node, true));
  llvm::Value* result = llvm::PoisonValue::get(fn_->getReturnType());
  next = 0;
  for (const Leaves& leaves : meet(ways))
    for (llvm::Value* leaf : leaves) result = b_.CreateInsertValue(result, leaf, next++);
  b_.CreateRet(result);
}

// All calls but the first are pushed, and joined.
FuncEmitter::Ways::value_type FuncEmitter::calls_as_tasks(const flow::Node& node) {
  const size_t count = node.calls.size();
  llvm::Value* tail = m_.load_shared(b_, m_.ptr, worker_, offsetof(BendWorker, task_tail), kMonotonic);
  llvm::Value* depth = m_.load(b_, m_.i32, worker_, offsetof(BendWorker, fork_depth), ModuleEmitter::Region::Worker);
  llvm::Value* end = b_.CreateConstGEP1_64(m_.i8, tail, BEND_TASK_BYTES * (count - 1));
  std::vector<llvm::Value*> entries(count), areas(count);
  bool outside = false;   // some task's data is in this frame
  for (size_t i = count - 1; i > 0; --i) {
    const flow::CallSite& site = node.calls[i];
    entries[i] = b_.CreateConstInBoundsGEP1_64(m_.i8, tail, BEND_TASK_BYTES * (count - 1 - i));
    areas[i] = b_.CreateConstInBoundsGEP1_64(m_.i8, entries[i], kDataOffset);
    m_.store(b_, m_.task_function(site.func), entries[i], offsetof(BendForkTask, code), ModuleEmitter::Region::Frame);
    b_.CreateAlignedStore(depth, b_.CreateConstInBoundsGEP1_64(m_.i8, entries[i], offsetof(BendForkTask, note)), llvm::Align(4))->setAtomic(kMonotonic);
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
  return {b_.GetInsertBlock(), std::move(parallel)};
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
