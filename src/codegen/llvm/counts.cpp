// Reference counts: retain (one or more references more) and release (one less) of any value. Counts at or above BEND_IMMORTAL are
// never touched: static nodes, and values whose count has saturated. Counts of what crosses forks change by atomic operations while workers run.
#include <cstddef>

#include "codegen/llvm/emitter.h"

namespace bendc::codegen {

using flow::DataId;
using flow::TypeId;
using flow::TypeKind;

llvm::Value* ModuleEmitter::is_unique(Builder& b, llvm::Value* node, bool crosses) {
  llvm::Value* count = load(b, i32, node, 0, Region::Node);
  // Acquire: whoever gave up the other reference has finished reading the node before we change or free it.
  if (crosses) llvm::cast<llvm::LoadInst>(count)->setAtomic(llvm::AtomicOrdering::Acquire);
  return b.CreateICmpEQ(count, number(1));
}

void ModuleEmitter::by_workers(Builder& b, llvm::Value* worker, bool crosses, const std::function<void()>& locked, const std::function<void()>& plain) {
  if (!crosses) {
    plain();
    return;
  }
  llvm::BasicBlock *several = block(b, "several"), *alone = block(b, "alone"), *next = block(b, "next");
  llvm::Value* atomic = load(b, i32, worker, offsetof(BendWorker, atomic), Region::Worker);
  b.CreateCondBr(b.CreateICmpNE(atomic, number(0)), several, alone);
  b.SetInsertPoint(several);
  locked();
  b.CreateBr(next);
  b.SetInsertPoint(alone);
  plain();
  b.CreateBr(next);
  b.SetInsertPoint(next);
}

void ModuleEmitter::retain_node(Builder& b, llvm::Value* worker, llvm::Value* node, llvm::Value* amount, bool crosses) {
  if (on_device()) return device_retain(b, node, amount);
  llvm::BasicBlock *counted = block(b, "counted"), *done = block(b, "kept");
  llvm::Value* count = load(b, i32, node, 0, Region::Node);
  if (crosses) llvm::cast<llvm::LoadInst>(count)->setAtomic(llvm::AtomicOrdering::Monotonic);
  b.CreateCondBr(b.CreateICmpSGE(count, number(0)), counted, done);
  b.SetInsertPoint(counted);
  by_workers(
      b, worker, crosses, [&] { b.CreateAtomicRMW(llvm::AtomicRMWInst::Add, node, amount, llvm::Align(4), llvm::AtomicOrdering::Monotonic); },
      [&] { store(b, b.CreateAdd(count, amount), node, 0, Region::Node); });
  b.CreateBr(done);
  b.SetInsertPoint(done);
}

void ModuleEmitter::retain(Builder& b, llvm::Value* worker, TypeId id, LeafSpan leaves, llvm::Value* amount) {
  if (!flow.owned || counts_off_ || !layouts.of(id).counted) return;
  if (!amount) amount = number(1);
  const flow::Type& type = flow.types[id];
  switch (type.kind) {
    case TypeKind::U32:
    case TypeKind::F32:
    case TypeKind::Nat:
    case TypeKind::Enum:
    case TypeKind::Token:
      return;
    case TypeKind::Struct: {
      size_t leaf = 0;
      for (TypeId part : type.parts) {
        const size_t count = layouts.of(part).leaves.size();
        retain(b, worker, part, leaves.slice(leaf, count), amount);
        leaf += count;
      }
      return;
    }
    case TypeKind::Array: {
      if (on_device()) return device_retain_array(b, type.parts[0], leaves[0], amount);
      llvm::Value* block_word = b.CreateAnd(leaves[0], BEND_ARRAY_ADDRESS);
      llvm::Value* header = b.CreateIntToPtr(block_word, ptr);
      by_workers(
          b, worker, crosses(id), [&] { b.CreateAtomicRMW(llvm::AtomicRMWInst::Add, header, amount, llvm::Align(4), llvm::AtomicOrdering::Monotonic); },
          [&] { store(b, b.CreateAdd(load(b, i32, header, 0, Region::ArrayHeader), amount), header, 0, Region::ArrayHeader); });
      return;
    }
    case TypeKind::Ref:
      if (!counts_matter(type.data)) return;
      [[fallthrough]];
    case TypeKind::Fn:
    case TypeKind::Any:
    case TypeKind::Sum: {
      llvm::SmallVector<llvm::Value*, 8> args{worker};
      args.append(leaves.begin(), leaves.end());
      args.push_back(amount);
      llvm::Function* function = retain_helper(id);
      b.CreateCall(function, args)->setCallingConv(function->getCallingConv());
      return;
    }
  }
}

// visit(type, leaves) for each counted field of the sum's variant, in a block of that variant's; then goes on where all variants meet.
void ModuleEmitter::each_counted_field(Builder& b, TypeId sum, LeafSpan leaves, llvm::function_ref<void(TypeId, LeafSpan)> visit) {
  const flow::Type& type = flow.types[sum];
  llvm::BasicBlock* done = block(b, "done");
  llvm::SwitchInst* cases = b.CreateSwitch(leaves[0], done);
  for (uint32_t v = 0; v < type.variants.size(); ++v) {
    llvm::BasicBlock* arm = nullptr;
    for (uint32_t f = 0; f < type.variants[v].size(); ++f) {
      const TypeId field = type.variants[v][f];
      if (!layouts.of(field).counted) continue;
      if (!arm) {
        arm = block(b, "variant");
        cases->addCase(llvm::cast<llvm::ConstantInt>(number(v)), arm);
        b.SetInsertPoint(arm);
      }
      Leaves part;
      const uint32_t first = layouts.variant_leaf(sum, v, f);
      const auto& kinds = layouts.of(field).leaves;
      for (size_t i = 0; i < kinds.size(); ++i) part.push_back(cast_leaf(b, leaves[first + i], kinds[i].kind));
      visit(field, part);
    }
    if (arm) b.CreateBr(done);
  }
  b.SetInsertPoint(done);
}

llvm::Function* ModuleEmitter::retain_helper(TypeId id) {
  const flow::Type& type = flow.types[id];
  llvm::SmallVector<llvm::Type*, 8> params{ptr};
  for (flow::Leaf leaf : layouts.of(id).leaves) params.push_back(leaf_type(leaf.kind));
  params.push_back(i32);
  const bool is_ref = type.kind == TypeKind::Ref;
  const std::string name = is_ref ? "bend.retain.D" + std::to_string(type.data.index) : "bend.retain.T" + std::to_string(id.index);
  return helper(name, llvm::FunctionType::get(void_type, params, false), [&](llvm::Function* fn, Builder& body) {
    Leaves leaves;
    llvm::Value* worker = fn->getArg(0);
    for (uint32_t i = 1; i < fn->arg_size(); ++i) leaves.push_back(fn->getArg(i));
    llvm::Value* amount = leaves.pop_back_val();
    if (type.kind == TypeKind::Sum) {
      each_counted_field(body, id, leaves, [&](TypeId field, LeafSpan part) { retain(body, worker, field, part, amount); });
      body.CreateRetVoid();
      return;
    }
    fn->addFnAttr(llvm::Attribute::InlineHint);
    llvm::Value* address;
    llvm::Value* is_node = nullptr;
    if (is_ref) {
      is_node = ref_is_node(body, leaves[0], type.data);
    } else if (type.kind == TypeKind::Any) {
      // 0 and odd words are immediates.
      is_node = body.CreateAnd(body.CreateIsNotNull(leaves[0]), body.CreateICmpEQ(body.CreateAnd(leaves[0], 1), llvm::ConstantInt::get(i64, 0)));
    }
    if (is_node) {
      llvm::BasicBlock *node = block(body, "node"), *none = block(body, "none");
      body.CreateCondBr(is_node, node, none);
      body.SetInsertPoint(none);
      body.CreateRetVoid();
      body.SetInsertPoint(node);
    }
    address = is_ref ? ref_address(body, leaves[0], type.data) : body.CreateIntToPtr(leaves[0], ptr);
    retain_node(body, worker, address, amount, is_ref ? crosses(type.data) : objects_cross());
    body.CreateRetVoid();
  });
}

void ModuleEmitter::release(Builder& b, llvm::Value* worker, TypeId id, LeafSpan leaves) {
  if (!flow.owned || counts_off_ || !layouts.of(id).counted) return;
  const flow::Type& type = flow.types[id];
  switch (type.kind) {
    case TypeKind::U32:
    case TypeKind::F32:
    case TypeKind::Nat:
    case TypeKind::Enum:
    case TypeKind::Token:
      return;
    case TypeKind::Struct: {
      size_t leaf = 0;
      for (TypeId part : type.parts) {
        const size_t count = layouts.of(part).leaves.size();
        release(b, worker, part, leaves.slice(leaf, count));
        leaf += count;
      }
      return;
    }
    case TypeKind::Array:
      if (on_device()) return device_release_array(b, worker, type.parts[0], leaves[0]);
      release_array(b, worker, id, leaves[0]);
      return;
    case TypeKind::Fn:
    case TypeKind::Any:
      if (on_device()) return;   // goes with the heap
      call_runtime(b, Rt::bend_drop_object, {worker, leaves[0]});
      return;
    case TypeKind::Ref:
      if (!counts_matter(type.data)) return;
      [[fallthrough]];
    case TypeKind::Sum: {
      llvm::SmallVector<llvm::Value*, 8> args{worker};
      args.append(leaves.begin(), leaves.end());
      llvm::Function* function = on_device() && type.kind == TypeKind::Ref ? device_release_ref(id) : release_helper(id);
      b.CreateCall(function, args)->setCallingConv(function->getCallingConv());
      return;
    }
  }
}

llvm::Function* ModuleEmitter::release_helper(TypeId id) {
  const flow::Type& type = flow.types[id];
  llvm::SmallVector<llvm::Type*, 8> params{ptr};
  for (flow::Leaf leaf : layouts.of(id).leaves) params.push_back(leaf_type(leaf.kind));
  const bool is_ref = type.kind == TypeKind::Ref;
  const std::string name = is_ref ? "bend.release.D" + std::to_string(type.data.index) : "bend.release.T" + std::to_string(id.index);
  return helper(name, llvm::FunctionType::get(void_type, params, false), [&](llvm::Function* fn, Builder& body) {
    llvm::Value* worker = fn->getArg(0);
    Leaves leaves;
    for (uint32_t i = 1; i < fn->arg_size(); ++i) leaves.push_back(fn->getArg(i));
    if (!is_ref) {
      each_counted_field(body, id, leaves, [&](TypeId field, LeafSpan part) { release(body, worker, field, part); });
      body.CreateRetVoid();
      return;
    }
    fn->addFnAttr(llvm::Attribute::InlineHint);
    const DataId data = type.data;
    llvm::BasicBlock* done = block(body, "done");
    if (llvm::Value* is_node = ref_is_node(body, leaves[0], data)) {
      llvm::BasicBlock* node = block(body, "node");
      body.CreateCondBr(is_node, node, done);
      body.SetInsertPoint(node);
    }
    llvm::Value* address = ref_address(body, leaves[0], data);
    llvm::BasicBlock* last = block(body, "last");
    count_down(body, worker, address, crosses(data), last, done);

    // The last reference: nodes that hold nothing counted are freed here.
    body.SetInsertPoint(last);
    uint32_t bytes = 0;
    bool plain = true;
    for (uint32_t c = 0; c < flow.datas[data].ctors.size(); ++c) {
      if (flow.datas[data].ctors[c].repr != flow::CtorRepr::Node) continue;
      const flow::FieldsLayout& node = layouts.node(data, c);
      plain &= !node.counted && (bytes == 0 || bytes == node.bytes);
      bytes = node.bytes;
    }
    if (plain) free(body, worker, address, bytes);
    else drop_last(body, worker, id, leaves[0]);
    body.CreateBr(done);

    body.SetInsertPoint(done);
    body.CreateRetVoid();
  });
}

// Out of line: every match on a boxed value has this path, and inlined it is most of the function's code.
void ModuleEmitter::keep_fields(Builder& b, llvm::Value* worker, TypeId id, llvm::Value* word, uint32_t ctor) {
  const DataId data = flow.types[id].data;
  const std::string name = "bend.keep.D" + std::to_string(data.index) + "." + std::to_string(ctor);
  llvm::Function* function = helper(name, llvm::FunctionType::get(void_type, {ptr, i64}, false), [&](llvm::Function* fn, Builder& body) {
    fn->addFnAttr(llvm::Attribute::NoInline);
    const std::vector<TypeId>& fields = flow.datas[data].ctors[ctor].fields;
    for (uint32_t i = 0; i < fields.size(); ++i)
      if (layouts.of(fields[i]).counted) retain(body, fn->getArg(0), fields[i], ref_field(body, fn->getArg(1), data, ctor, i), nullptr);
    release(body, fn->getArg(0), id, {fn->getArg(1)});
    body.CreateRetVoid();
  });
  b.CreateCall(function, {worker, word})->setCallingConv(function->getCallingConv());
}

}  // namespace bendc::codegen
