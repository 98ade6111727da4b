// Long literals. A list of constants is a chain of constructors in Flow, an allocation each; as IR that costs LLVM half a millisecond an
// element. From kShortest links on it becomes a table of the fields and a loop that builds the chain from its end.
//
//   let a = con 1(5, nil)  let b = con 1(4, a)  let c = con 1(3, b)       becomes       for i in 0..3: chain = con 1(table[i], chain)
#include "codegen/llvm/emitter.h"

namespace bendc::codegen {

using flow::ExprKind;
using flow::NodeId;
using flow::NodeKind;
using flow::VarId;

namespace {
constexpr size_t kShortest = 16, kLongest = 4096;

bool is_plain(ExprKind kind) {
  switch (kind) {
    case ExprKind::Const: case ExprKind::Str: case ExprKind::Struct: case ExprKind::Variant: return true;
    case ExprKind::Prim: case ExprKind::Get: case ExprKind::VariantGet: case ExprKind::Con: case ExprKind::ConGet: case ExprKind::Call: case ExprKind::Apply:
    case ExprKind::Closure: case ExprKind::Request: case ExprKind::Box: case ExprKind::Unbox: return false;
  }
  return false;
}

bool is_constant(llvm::Value* value) { return llvm::isa<llvm::Constant>(value); }
}  // namespace

// `id` makes a node: the chain that it starts, if that is long enough, is emitted; the result is the last of its lets.
std::optional<NodeId> FuncEmitter::literal_chain(NodeId id) {
  const flow::Node& first = m_.flow.nodes[id];
  const flow::Expr& shape = first.expr;
  if (not_literals_.count(id.index)) return std::nullopt;
  if (first.kind != NodeKind::Let || shape.kind != ExprKind::Con || shape.reuse.valid()) return std::nullopt;
  const flow::DataId data = kind(first.var).data;
  const flow::CtorLayout& layout = m_.flow.datas[data].ctors[shape.imm];
  if (layout.repr != flow::CtorRepr::Node) return std::nullopt;

  // The next link is a let of the same constructor that holds the last one once; constants between links are bound on the way.
  auto link_field = [&](const flow::Node& node, VarId last) -> std::optional<uint32_t> {
    if (node.expr.kind != ExprKind::Con || node.expr.reuse.valid() || node.expr.imm != shape.imm || type(node.var) != type(first.var)) return std::nullopt;
    std::optional<uint32_t> found;
    const std::span<const VarId> args = m_.flow.list(node.expr.args);
    for (uint32_t i = 0; i < args.size(); ++i) {
      if (args[i] != last) continue;
      if (found) return std::nullopt;
      found = i;
    }
    return found;
  };
  // Operands that are not bound yet are looked at when they are.
  auto may_be_constant = [&](const flow::Node& node, uint32_t chained) {
    const std::span<const VarId> args = m_.flow.list(node.expr.args);
    for (uint32_t i = 0; i < args.size(); ++i)
      if (i != chained && !llvm::all_of(value(args[i]), is_constant)) return false;
    return true;
  };
  std::vector<NodeId> links{id};
  std::optional<uint32_t> tail;
  // One walk to see how far the chain goes: what is in between must be plain, and only constants.
  for (NodeId at = first.next; m_.flow.nodes[at].kind == NodeKind::Let; at = m_.flow.nodes[at].next) {
    const flow::Node& node = m_.flow.nodes[at];
    if (is_plain(node.expr.kind)) continue;
    const std::optional<uint32_t> field = link_field(node, m_.flow.nodes[links.back()].var);
    if (!field || (tail && *field != *tail)) break;
    if ((hole_ && hole_of(node)) || !may_be_constant(node, *field)) break;
    tail = field;
    links.push_back(at);
    if (links.size() == kLongest) break;
  }
  if (links.size() < kShortest) {
    // What ends this chain ends those that start inside it.
    for (NodeId link : links) not_literals_.insert(link.index);
    return std::nullopt;
  }

  const auto fields = static_cast<uint32_t>(layout.fields.size());
  std::vector<std::vector<llvm::Constant*>> rows;
  auto constants_of = [&](const flow::Node& node) {
    std::vector<llvm::Constant*> row;
    const std::span<const VarId> args = m_.flow.list(node.expr.args);
    for (uint32_t i = 0; i < fields; ++i) {
      if (i == *tail) continue;
      for (llvm::Value* leaf : value(args[i])) {
        if (!is_constant(leaf)) return std::optional<std::vector<llvm::Constant*>>();
        row.push_back(llvm::cast<llvm::Constant>(leaf));
      }
    }
    return std::optional(std::move(row));
  };
  NodeId last = id, at = id;
  for (NodeId link : links) {
    for (; at != link; at = m_.flow.nodes[at].next) bind(m_.flow.nodes[at].var, expr(m_.flow.nodes[at]));
    auto row = constants_of(m_.flow.nodes[link]);
    if (!row) break;
    rows.push_back(std::move(*row));
    last = link;
    at = m_.flow.nodes[link].next;
  }
  if (rows.size() < kShortest) return std::nullopt;

  const Leaves start = value(m_.flow.list(shape.args)[*tail]);
  std::vector<llvm::Type*> types;
  for (llvm::Constant* leaf : rows[0]) types.push_back(leaf->getType());
  llvm::StructType* row_type = llvm::StructType::get(m_.context, types);
  std::vector<llvm::Constant*> table;
  for (const auto& row : rows) table.push_back(llvm::ConstantStruct::get(row_type, row));
  llvm::ArrayType* table_type = llvm::ArrayType::get(row_type, table.size());
  const unsigned space = m_.options.target == TargetKind::Device ? 1 : 0;
  auto* global = new llvm::GlobalVariable(m_.ir, table_type, true, llvm::GlobalValue::InternalLinkage, llvm::ConstantArray::get(table_type, table), "bend.literal", nullptr,
                                          llvm::GlobalValue::NotThreadLocal, space);
  global->setAlignment(llvm::Align(8));

  llvm::BasicBlock *entry = b_.GetInsertBlock(), *loop = m_.block(b_, "literal"), *done = m_.block(b_, "literal_done");
  b_.CreateBr(loop);
  b_.SetInsertPoint(loop);
  llvm::PHINode *index = b_.CreatePHI(m_.i64, 2), *chain = b_.CreatePHI(start[0]->getType(), 2);
  index->addIncoming(b_.getInt64(0), entry);
  chain->addIncoming(start[0], entry);
  llvm::Value* row = b_.CreateInBoundsGEP(row_type, global, {index});
  std::vector<Leaves> parts(fields);
  unsigned leaf = 0;
  for (uint32_t i = 0; i < fields; ++i) {
    if (i == *tail) {
      parts[i] = {chain};
      continue;
    }
    for (size_t k = 0; k < m_.layouts.of(layout.fields[i]).leaves.size(); ++k, ++leaf)
      parts[i].push_back(b_.CreateLoad(types[leaf], b_.CreateStructGEP(row_type, row, leaf)));
  }
  llvm::Value* made = m_.construct(b_, worker_, data, static_cast<uint32_t>(shape.imm), parts, nullptr);
  llvm::Value* next = b_.CreateAdd(index, b_.getInt64(1));
  index->addIncoming(next, b_.GetInsertBlock());
  chain->addIncoming(made, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpULT(next, b_.getInt64(table.size())), loop, done);
  b_.SetInsertPoint(done);
  bind(m_.flow.nodes[last].var, {made});
  return last;
}

}  // namespace bendc::codegen
