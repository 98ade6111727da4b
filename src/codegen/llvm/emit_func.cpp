// Statements and control flow of one function. Arms and join bodies go to a work list, so that deep matches cost no stack.
#include "codegen/llvm/emit_grid.h"
#include "codegen/llvm/emitter.h"
#include "support/internal.h"

namespace bendc::codegen {

using flow::CtorRepr;
using flow::NodeId;
using flow::NodeKind;
using flow::TypeId;
using flow::TypeKind;
using flow::VarId;

FuncEmitter::FuncEmitter(ModuleEmitter& module, flow::FuncId id, bool sequential)
    : m_(module), id_(id), sequential_(sequential), func_(module.flow.funcs[id]), fn_(module.function(id, sequential)), b_(module.context), span_(func_.span) {}

FuncEmitter::FuncEmitter(ModuleEmitter& module, flow::FuncId id, llvm::Function* fn)
    : m_(module), id_(id), sequential_(false), func_(module.flow.funcs[id]), fn_(fn), b_(module.context), span_(func_.span) {}

void FuncEmitter::run() {
  llvm::BasicBlock* entry = llvm::BasicBlock::Create(m_.context, "entry", fn_);
  b_.SetInsertPoint(entry);
  worker_ = fn_->getArg(0);
  if (m_.on_device() && m_.is_async(id_)) state_ = fn_->getArg(1);
  unsigned next = 1;
  if (state_) {
    GridEmitter(m_).offer(b_, worker_, state_, id_);
    take_segment_params();
  }
  if (!state_ && m_.returns_indirect(func_.result)) out_ = fn_->getArg(next++);
  for (VarId param : func_.params) {
    if (state_) break;
    Leaves leaves;
    for (size_t i = 0; i < m_.layouts.of(type(param)).leaves.size(); ++i) leaves.push_back(fn_->getArg(next++));
    bind(param, std::move(leaves));
  }
  if (has_holes()) begin_holes();
  // The entry block holds the frame only; a loop may not jump to it.
  llvm::BasicBlock* start = llvm::BasicBlock::Create(m_.context, "start", fn_);
  b_.CreateBr(start);
  work_.push_back({start, func_.body});
  while (!work_.empty()) {
    const Work item = work_.back();
    work_.pop_back();
    b_.SetInsertPoint(item.block);
    body(item.node);
  }
  finish_segment();
  // A join point nobody jumps to has phis without operands, which LLVM refuses.
  for (auto& [id, join] : joins_) {
    if (!llvm::pred_empty(join.block)) continue;
    for (llvm::Value* phi : join.phis) {
      phi->replaceAllUsesWith(llvm::PoisonValue::get(phi->getType()));
      llvm::cast<llvm::PHINode>(phi)->eraseFromParent();
    }
  }
}

void FuncEmitter::bind(VarId var, Leaves leaves) { m_.values[var.index] = std::move(leaves); }

llvm::Value* FuncEmitter::scalar(VarId var) { return value(var)[0]; }

llvm::Value* FuncEmitter::frame(uint32_t bytes) {
  if (!frame_) {
    Builder entry(&fn_->getEntryBlock(), fn_->getEntryBlock().begin());
    frame_ = entry.CreateAlloca(m_.i8, entry.getInt32(bytes), "frame");
    frame_->setAlignment(llvm::Align(8));
  }
  if (bytes > frame_bytes_) {
    frame_bytes_ = bytes;
    frame_->setOperand(0, b_.getInt32(bytes));
  }
  return frame_;
}

void FuncEmitter::check(llvm::Value* bad, uint32_t error) {
  llvm::BasicBlock *failed = m_.block(b_, "failed"), *fine = m_.block(b_, "fine");
  b_.CreateCondBr(bad, failed, fine, m_.unlikely());
  b_.SetInsertPoint(failed);
  m_.fail(b_, worker_, error, site());
  b_.SetInsertPoint(fine);
}

void FuncEmitter::body(NodeId id) {
  while (true) {
    const flow::Node& node = m_.flow.nodes[id];
    if (node.span.valid()) span_ = node.span;
    if (is_cut(node)) {
      segment_cut(id);
      return;
    }
    switch (node.kind) {
      case NodeKind::Let: {
        if (is_tail_apply(m_.flow, node)) {
          const uint32_t closures = m_.flow.funcs.size();
          const bool cycle = m_.tails.cyclic[id_.index] && m_.tails.group[id_.index] == m_.tails.group[closures];
          const VarId closure = m_.flow.list(node.expr.args)[0], argument = m_.flow.list(node.expr.args)[1];
          if (cycle) {
            (void)m_.apply(b_, worker_, scalar(closure), value(argument), type(closure), out_, true);
            return;
          }
        }
        if (const std::optional<uint32_t> field = hole_ ? hole_of(node) : std::nullopt) {
          fill_hole(node, *field);
          return;
        }
        if (const std::optional<NodeId> last = literal_chain(id)) {
          id = *last;
          break;
        }
        bind(node.var, expr(node));
        break;
      }
      case NodeKind::Open:
        open(node);
        break;
      case NodeKind::Dup:
        // An array has more than one handle where @unsafe code uses it twice, as Array.fork does.
        m_.retain(b_, worker_, type(node.subject), value(node.subject), nullptr);
        break;
      case NodeKind::Drop:
        drop(node.subject);
        break;
      case NodeKind::Join:
        join(node);
        break;
      case NodeKind::Fork:
        fork(node);
        break;
      case NodeKind::Case: {
        const flow::Type& subject = kind(node.subject);
        llvm::Value* word = scalar(node.subject);
        branch(node, subject.kind == TypeKind::Ref ? m_.ref_ctor(b_, word, subject.data) : word);
        return;
      }
      case NodeKind::Switch:
        branch(node, scalar(node.subject));
        return;
      case NodeKind::Ret:
        ret(value(node.subject));
        return;
      case NodeKind::Tail:
        tail(node);
        return;
      case NodeKind::Jump:
        jump(node);
        return;
      case NodeKind::Abort:
        m_.fail(b_, worker_, static_cast<uint32_t>(node.imm), site());
        return;
    }
    id = m_.flow.nodes[id].next;
  }
}

// The subject's reference is given up, its fields become owned. The only reference: the fields move out and the node is free for reuse.
// Shared: the fields get one more reference each, and there is no memory to reuse.
void FuncEmitter::open(const flow::Node& node) {
  const flow::Type& subject = kind(node.subject);
  if (subject.kind != TypeKind::Ref) {
    // By value: the parts are the value.
    const std::span<const VarId> vars = m_.flow.list(node.vars);
    for (uint32_t i = 0; i < vars.size(); ++i) {
      if (!vars[i].valid()) continue;
      if (subject.kind == TypeKind::Sum) {
        bind(vars[i], variant_get(node.subject, node.imm, i));
      } else {
        const LeafSpan part = LeafSpan(value(node.subject)).slice(m_.layouts.struct_leaf(type(node.subject), i), m_.layouts.of(type(vars[i])).leaves.size());
        bind(vars[i], Leaves(part.begin(), part.end()));
      }
    }
    return;
  }
  const auto ctor = static_cast<uint32_t>(node.imm);
  const flow::CtorLayout& layout = m_.flow.datas[subject.data].ctors[ctor];
  llvm::Value* word = scalar(node.subject);
  const std::span<const VarId> vars = m_.flow.list(node.vars);
  std::vector<Leaves> fields;
  for (uint32_t i = 0; i < layout.fields.size(); ++i) fields.push_back(m_.ref_field(b_, word, subject.data, ctor, i));

  llvm::Value* token = b_.getInt64(0);
  if (layout.repr == CtorRepr::Node) {
    const uint32_t bytes = m_.layouts.node(subject.data, ctor).bytes;
    llvm::Value* address = m_.ref_address(b_, word, subject.data, ctor);
    if (node.var.valid()) tokens_[node.var.index] = {bytes, ctor, !m_.flow.datas[subject.data].shareable, node.vars};
    llvm::Value* memory = b_.CreatePtrToInt(address, m_.i64);
    if (!m_.flow.datas[subject.data].shareable) {
      if (node.var.valid()) token = memory;
      else m_.free_node(b_, worker_, address, bytes);
    } else {
      llvm::BasicBlock *unique = m_.block(b_, "unique"), *shared = m_.block(b_, "shared"), *opened = m_.block(b_, "opened");
      b_.CreateCondBr(m_.is_unique(b_, address, m_.crosses(subject.data)), unique, shared);
      b_.SetInsertPoint(unique);
      if (!node.var.valid()) m_.free_node(b_, worker_, address, bytes);
      b_.CreateBr(opened);
      b_.SetInsertPoint(shared);
      m_.keep_fields(b_, worker_, type(node.subject), word, ctor);
      b_.CreateBr(opened);
      b_.SetInsertPoint(opened);
      if (node.var.valid()) {
        llvm::PHINode* phi = b_.CreatePHI(m_.i64, 2);
        phi->addIncoming(memory, unique);
        phi->addIncoming(b_.getInt64(0), shared);
        token = phi;
      }
    }
  }
  if (node.var.valid()) bind(node.var, {token});
  for (size_t i = 0; i < vars.size(); ++i)
    if (vars[i].valid()) bind(vars[i], fields[i]);
}

void FuncEmitter::drop(VarId var) {
  if (kind(var).kind != TypeKind::Token) {
    m_.release(b_, worker_, type(var), value(var));
    return;
  }
  // Unused memory of an opened node.
  auto token = tokens_.find(var.index);
  if (token == tokens_.end()) return;   // the token of a constructor without a node: always null
  llvm::BasicBlock *have = m_.block(b_, "have"), *done = m_.block(b_, "done");
  llvm::Value* memory = b_.CreateIntToPtr(scalar(var), m_.ptr);
  b_.CreateCondBr(b_.CreateIsNotNull(memory), have, done);
  b_.SetInsertPoint(have);
  m_.free(b_, worker_, memory, token->second.bytes);
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
}

void FuncEmitter::join(const flow::Node& node) {
  JoinPoint point;
  point.block = m_.block(b_, node.loop ? "loop" : "join");
  Builder phis(point.block);
  for (VarId var : m_.flow.list(node.vars)) {
    Leaves leaves;
    for (flow::Leaf leaf : m_.layouts.of(type(var)).leaves) {
      leaves.push_back(phis.CreatePHI(m_.leaf_type(leaf.kind), 2));
      point.phis.push_back(leaves.back());
    }
    bind(var, std::move(leaves));
  }
  work_.push_back({point.block, node.body});
  joins_[node.join.index] = std::move(point);
}

void FuncEmitter::jump(const flow::Node& node) {
  JoinPoint& point = joins_.at(node.join.index);
  size_t next = 0;
  for (VarId var : m_.flow.list(node.args))
    for (llvm::Value* leaf : value(var)) llvm::cast<llvm::PHINode>(point.phis[next++])->addIncoming(leaf, b_.GetInsertBlock());
  b_.CreateBr(point.block);
}

namespace {
// A match on 0n, 1n, .. tests n, then n - 1, and so on. Tests of one value become one switch, those of differences stay a chain.
uint64_t undo_difference(llvm::Value*& subject) {
  uint64_t taken = 0;
  for (;;) {
    const auto* difference = llvm::dyn_cast<llvm::BinaryOperator>(subject);
    const auto* constant = difference && difference->getOpcode() == llvm::Instruction::Sub ? llvm::dyn_cast<llvm::ConstantInt>(difference->getOperand(1)) : nullptr;
    if (!constant) return taken;
    taken += constant->getZExtValue();
    subject = difference->getOperand(0);
  }
}
}  // namespace

void FuncEmitter::branch(const flow::Node& node, llvm::Value* subject) {
  llvm::BasicBlock* otherwise = m_.block(b_, "else");
  const uint64_t taken = undo_difference(subject);
  llvm::SwitchInst* cases = b_.CreateSwitch(subject, otherwise, static_cast<unsigned>(node.arms.size()));
  for (const flow::Arm& arm : node.arms) {
    llvm::BasicBlock* target = m_.block(b_, "arm");
    cases->addCase(llvm::cast<llvm::ConstantInt>(llvm::ConstantInt::get(subject->getType(), arm.value + taken)), target);
    work_.push_back({target, arm.body});
  }
  if (node.other.valid()) {
    work_.push_back({otherwise, node.other});
  } else {
    b_.SetInsertPoint(otherwise);
    b_.CreateUnreachable();
  }
}

void FuncEmitter::ret(LeafSpan leaves) {
  if (state_) {
    segment_return(leaves);
  } else if (hole_) {
    end_holes(leaves[0]);
  } else if (out_) {
    m_.store_frame(b_, func_.result, leaves, out_);
    b_.CreateRetVoid();
  } else if (leaves.empty()) {
    b_.CreateRetVoid();
  } else {
    b_.CreateRet(m_.join_result(b_, leaves, func_.result));
  }
}

void FuncEmitter::tail(const flow::Node& node) {
  if (state_) return segment_tail(node);
  llvm::Function* target = m_.function(node.func, sequential_);
  llvm::SmallVector<llvm::Value*, 8> args{worker_};
  if (out_) args.push_back(out_);
  for (VarId var : m_.flow.list(node.args)) args.append(value(var).begin(), value(var).end());
  llvm::CallInst* call = b_.CreateCall(target, args);
  call->setCallingConv(target->getCallingConv());
  const bool cycle = m_.tails.cyclic[id_.index] && m_.tails.group[id_.index] == m_.tails.group[node.func.index];
  call->setTailCallKind(cycle ? guaranteed_tail(*b_.GetInsertBlock()->getParent(), *target->getFunctionType()) : llvm::CallInst::TCK_Tail);
  if (hole_) end_holes(call);
  else if (call->getType()->isVoidTy()) b_.CreateRetVoid();
  else b_.CreateRet(call);
}

}  // namespace bendc::codegen
