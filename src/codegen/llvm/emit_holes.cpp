// Calls of a function to itself whose result goes into a constructor that is returned (tail calls modulo a constructor, Minamide 1998):
//   let t = f(args); let c = Con(h, t); ret c
// The constructor is made with a hole for t, put where the last hole is, and the function starts over with the hole as the place of its
// result. So f(h) <> List.map(f, t) is a loop that fills in the tail, in constant stack.
#include "codegen/llvm/emitter.h"

namespace bendc::codegen {

using flow::ExprKind;
using flow::NodeId;
using flow::NodeKind;
using flow::TypeKind;
using flow::VarId;

// The field of the constructor that takes the call's result.
std::optional<uint32_t> FuncEmitter::hole_of(const flow::Node& node) const {
  if (node.kind != NodeKind::Let || node.expr.kind != ExprKind::Call || node.expr.bang || node.expr.func != id_) return std::nullopt;
  const flow::Node& made = m_.flow.nodes[node.next];
  if (made.kind != NodeKind::Let || made.expr.kind != ExprKind::Con) return std::nullopt;
  const flow::Node& end = m_.flow.nodes[made.next];
  if (end.kind != NodeKind::Ret || end.subject != made.var) return std::nullopt;
  if (m_.flow.datas[kind(made.var).data].ctors[made.expr.imm].repr != flow::CtorRepr::Node) return std::nullopt;
  std::optional<uint32_t> field;
  const std::span<const VarId> args = m_.flow.list(made.expr.args);
  for (uint32_t i = 0; i < args.size(); ++i) {
    if (args[i] != node.var) continue;
    if (field) return std::nullopt;
    field = i;
  }
  return field;
}

// Only where reference counts are explicit: before, a call's operands may still be needed after it. Functions in a cycle of tail calls
// stay as they are: their other tail calls must not become calls.
bool FuncEmitter::has_holes() const {
  if (m_.on_device() || !m_.flow.owned || m_.tails.cyclic[id_.index] || m_.flow.types[func_.result].kind != TypeKind::Ref) return false;
  std::vector<NodeId> work{func_.body};
  while (!work.empty()) {
    const NodeId id = work.back();
    work.pop_back();
    if (!id.valid()) continue;
    const flow::Node& node = m_.flow.nodes[id];
    if (hole_of(node)) return true;
    work.push_back(node.next);
    work.push_back(node.body);
    work.push_back(node.other);
    for (const flow::Arm& arm : node.arms) work.push_back(arm.body);
  }
  return false;
}

// Between the frame and the body: the parameters of this round, and the hole its result goes to; the first is a slot of the frame.
void FuncEmitter::begin_holes() {
  llvm::BasicBlock* entry = b_.GetInsertBlock();
  result_ = b_.CreateAlloca(m_.i64, nullptr, "result");
  holes_.block = llvm::BasicBlock::Create(m_.context, "again", fn_);
  b_.CreateBr(holes_.block);
  b_.SetInsertPoint(holes_.block);
  for (VarId param : func_.params) {
    for (llvm::Value*& leaf : value(param)) {
      llvm::PHINode* phi = b_.CreatePHI(leaf->getType(), 2);
      phi->addIncoming(leaf, entry);
      holes_.phis.push_back(leaf = phi);
    }
  }
  hole_ = b_.CreatePHI(m_.ptr, 2, "hole");
  hole_->addIncoming(result_, entry);
}

void FuncEmitter::fill_hole(const flow::Node& node, uint32_t field) {
  const flow::Node& made = m_.flow.nodes[node.next];
  const flow::DataId data = kind(made.var).data;
  const auto ctor = static_cast<uint32_t>(made.expr.imm);
  std::vector<Leaves> fields;
  for (VarId var : m_.flow.list(made.expr.args)) fields.push_back(var == node.var ? Leaves{} : value(var));
  const Reuse reuse = reuse_of(made);
  llvm::Value* word = m_.construct(b_, worker_, data, ctor, fields, reuse.token ? &reuse : nullptr);
  b_.CreateAlignedStore(word, hole_, llvm::Align(8));
  llvm::Value* next = b_.CreateConstInBoundsGEP1_64(m_.i8, m_.ref_address(b_, word, data, ctor), m_.layouts.node(data, ctor).offsets[field]);
  size_t phi = 0;
  for (VarId var : m_.flow.list(node.expr.args))
    for (llvm::Value* leaf : value(var)) llvm::cast<llvm::PHINode>(holes_.phis[phi++])->addIncoming(leaf, b_.GetInsertBlock());
  hole_->addIncoming(next, b_.GetInsertBlock());
  b_.CreateBr(holes_.block);
}

void FuncEmitter::end_holes(llvm::Value* word) {
  b_.CreateAlignedStore(word, hole_, llvm::Align(8));
  b_.CreateRet(b_.CreateAlignedLoad(m_.i64, result_, llvm::Align(8)));
}

}  // namespace bendc::codegen
