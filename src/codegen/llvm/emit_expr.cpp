// Right-hand sides: constructors, projections, calls, closures, requests, boxes.
#include <bit>

#include "codegen/llvm/emitter.h"

namespace bendc::codegen {

using flow::ExprKind;
using flow::TypeId;
using flow::TypeKind;
using flow::VarId;

Leaves FuncEmitter::expr(const flow::Node& node) {
  const flow::Expr& e = node.expr;
  const std::span<const VarId> args = m_.flow.list(e.args);
  switch (e.kind) {
    case ExprKind::Const:
      switch (kind(node.var).kind) {
        case TypeKind::F32: return {llvm::ConstantFP::get(m_.context, llvm::APFloat(std::bit_cast<float>(static_cast<uint32_t>(e.imm))))};
        case TypeKind::Nat: return {b_.getInt64(e.imm)};
        case TypeKind::U32:
        case TypeKind::Enum: return {b_.getInt32(static_cast<uint32_t>(e.imm))};
        case TypeKind::Struct:
        case TypeKind::Sum:
        case TypeKind::Ref:
        case TypeKind::Array:
        case TypeKind::Fn:
        case TypeKind::Any:
        case TypeKind::Token: return {b_.getInt64(e.imm)};
      }
      return {};
    case ExprKind::Str:
      string_of_[node.var.index] = static_cast<uint32_t>(e.imm);
      return {m_.on_device() ? m_.device_string(b_, worker_, static_cast<uint32_t>(e.imm)) : m_.string_word(static_cast<uint32_t>(e.imm))};
    case ExprKind::Prim:
      return prim(node);
    case ExprKind::Struct: {
      Leaves out;
      for (VarId var : args) out.append(value(var).begin(), value(var).end());
      return out;
    }
    case ExprKind::Get: {
      const uint32_t first = m_.layouts.struct_leaf(type(args[0]), static_cast<uint32_t>(e.imm));
      const LeafSpan part = LeafSpan(value(args[0])).slice(first, m_.layouts.of(type(node.var)).leaves.size());
      return Leaves(part.begin(), part.end());
    }
    case ExprKind::Variant:
      return variant(node);
    case ExprKind::VariantGet:
      return variant_get(args[0], e.imm, e.imm2);
    case ExprKind::Con: {
      std::vector<Leaves> fields;
      for (VarId var : args) fields.push_back(value(var));
      const Reuse reuse = reuse_of(node);
      return {m_.construct(b_, worker_, kind(node.var).data, static_cast<uint32_t>(e.imm), fields, reuse.token ? &reuse : nullptr)};
    }
    case ExprKind::ConGet:
      return m_.ref_field(b_, scalar(args[0]), kind(args[0]).data, static_cast<uint32_t>(e.imm), static_cast<uint32_t>(e.imm2));
    case ExprKind::Call:
      count_copy(e.func);
      return e.bang && m_.options.gpu && !m_.on_device() && !sequential_ ? bang_call(e.func, e.args) : call(e.func, e.args);
    case ExprKind::Apply: {
      const TypeId fn = type(args[0]), result = m_.flow.types[fn].parts[1];
      llvm::Value* area = m_.returns_indirect(result) ? frame(m_.layouts.of(result).size) : nullptr;
      return m_.apply(b_, worker_, scalar(args[0]), value(args[1]), fn, area, false);
    }
    case ExprKind::Closure: {
      if (args.empty()) return {llvm::ConstantExpr::getPtrToInt(m_.closure_instance(e.func), m_.i64)};
      const uint32_t object = m_.closure_id(e.func, static_cast<uint32_t>(args.size()));
      std::vector<TypeId> types;
      std::vector<Leaves> fields;
      for (VarId var : args) {
        types.push_back(type(var));
        fields.push_back(value(var));
      }
      return {m_.new_object(b_, worker_, object, types, fields)};
    }
    case ExprKind::Request:
      return request(node);
    case ExprKind::Box:
      return box(node);
    case ExprKind::Unbox:
      return unbox(node);
  }
  return {};
}

Leaves FuncEmitter::call(flow::FuncId callee, Slice args, bool sequential, bool escapes) {
  llvm::Function* target = m_.function(callee, sequential);
  const TypeId result = m_.flow.funcs[callee].result;
  llvm::SmallVector<llvm::Value*, 8> operands{worker_};
  llvm::Value* area = nullptr;
  if (m_.returns_indirect(result)) operands.push_back(area = frame(m_.layouts.of(result).size));
  for (VarId var : m_.flow.list(args)) operands.append(value(var).begin(), value(var).end());
  llvm::CallInst* inst = b_.CreateCall(target, operands);
  inst->setCallingConv(target->getCallingConv());
  if (area) return m_.load_frame(b_, result, area);
  if (!escapes) inst->setTailCallKind(llvm::CallInst::TCK_Tail);   // the callee gets no pointer into this frame
  return m_.split_result(b_, inst, result);
}

Leaves FuncEmitter::variant(const flow::Node& node) {
  const TypeId sum = type(node.var);
  const auto& layout = m_.layouts.of(sum).leaves;
  Leaves out;
  out.push_back(b_.getInt32(static_cast<uint32_t>(node.expr.imm)));
  for (VarId var : m_.flow.list(node.expr.args))
    for (llvm::Value* leaf : value(var)) out.push_back(m_.cast_leaf(b_, leaf, layout[out.size()].kind));
  while (out.size() < layout.size()) out.push_back(llvm::PoisonValue::get(m_.leaf_type(layout[out.size()].kind)));
  return out;
}

Leaves FuncEmitter::variant_get(VarId subject, uint64_t variant, uint64_t field) {
  const TypeId sum = type(subject);
  const TypeId field_type = m_.flow.types[sum].variants[variant][field];
  const uint32_t first = m_.layouts.variant_leaf(sum, static_cast<uint32_t>(variant), static_cast<uint32_t>(field));
  Leaves out;
  const auto& layout = m_.layouts.of(field_type).leaves;
  for (size_t i = 0; i < layout.size(); ++i) out.push_back(m_.cast_leaf(b_, value(subject)[first + i], layout[i].kind));
  return out;
}

// { count, id, continuation, arguments } inside IO.OP's constructor Request (index 2).
Leaves FuncEmitter::request(const flow::Node& node) {
  const std::span<const VarId> args = m_.flow.list(node.expr.args);
  const VarId continuation = args.back();
  std::vector<TypeId> types{type(continuation)};
  std::vector<Leaves> fields{value(continuation)};
  for (VarId var : args.first(args.size() - 1)) {
    types.push_back(type(var));
    fields.push_back(value(var));
  }
  const flow::EffectId effect(static_cast<uint32_t>(node.expr.imm));
  llvm::Value* object = m_.new_object(b_, worker_, m_.request_id(effect, type(continuation)), types, fields);
  constexpr uint32_t kRequestCtor = 2;
  const Leaves field{object};
  return {m_.construct(b_, worker_, kind(node.var).data, kRequestCtor, {field}, nullptr)};
}

// What a constructor built in an opened node's memory need not store again: the count, which is 1, the index when it is the same constructor, and each
// field that is what the opening took out of the same place.
Reuse FuncEmitter::reuse_of(const flow::Node& con) {
  Reuse reuse;
  if (!con.expr.reuse.valid()) return reuse;
  reuse.token = scalar(con.expr.reuse);
  auto found = tokens_.find(con.expr.reuse.index);
  if (found == tokens_.end() || m_.on_device()) return reuse;
  const Token& token = found->second;
  reuse.certain = token.certain;
  reuse.same_header = token.ctor == con.expr.imm || m_.layouts.tagged(kind(con.var).data);
  const std::span<const VarId> now = m_.flow.list(con.expr.args), before = m_.flow.list(token.fields);
  for (size_t i = 0; i < now.size(); ++i) reuse.kept.push_back(token.ctor == con.expr.imm && before[i].valid() && now[i] == before[i]);
  return reuse;
}

Leaves FuncEmitter::box(const flow::Node& node) {
  const VarId subject = m_.flow.list(node.expr.args)[0];
  return {m_.new_object(b_, worker_, m_.box_id(type(subject)), {type(subject)}, {value(subject)})};
}

Leaves FuncEmitter::unbox(const flow::Node& node) {
  const TypeId content = type(node.var);
  llvm::Value* word = scalar(m_.flow.list(node.expr.args)[0]);
  llvm::Value* address = b_.CreateIntToPtr(word, m_.ptr);
  Leaves out = m_.load_value(b_, content, address, flow::kNodeHeader, false);
  if (!m_.flow.owned) return out;
  llvm::BasicBlock *unique = m_.block(b_, "unique"), *shared = m_.block(b_, "shared"), *done = m_.block(b_, "done");
  b_.CreateCondBr(m_.is_unique(b_, address, m_.objects_cross()), unique, shared);
  b_.SetInsertPoint(unique);
  const std::vector<TypeId> types{content};
  m_.free(b_, worker_, address, m_.layouts.object(types).bytes);
  b_.CreateBr(done);
  b_.SetInsertPoint(shared);
  m_.retain(b_, worker_, content, out, nullptr);
  m_.call_runtime(b_, Rt::bend_drop_object, {worker_, word});
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
  return out;
}

}  // namespace bendc::codegen
