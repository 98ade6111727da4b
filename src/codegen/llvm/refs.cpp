// Words of boxed values: constructor index, node address, fields, construction; objects and closure application.
#include "codegen/llvm/emitter.h"

namespace bendc::codegen {

using flow::CtorRepr;
using flow::DataId;
using flow::TypeId;

namespace {
// The low word of a constructor that is no node, and whether bits 0..2 hold the index (abi.h).
uint64_t immediate(bool tagged, uint32_t ctor) { return tagged ? ctor : (static_cast<uint64_t>(ctor) << 3) | 7; }
}  // namespace

bool ModuleEmitter::counts_matter(DataId data) {
  for (const flow::CtorLayout& ctor : flow.datas[data].ctors)
    if (ctor.repr == CtorRepr::Node) return true;
  return false;
}

llvm::Value* ModuleEmitter::ref_address(Builder& b, llvm::Value* word, DataId data, uint32_t ctor) {
  llvm::Value* address = b.CreateIntToPtr(word, ptr);
  // Known tag: subtracting it folds into the displacement of each access.
  return layouts.tagged(data) && ctor != 0 ? b.CreateConstInBoundsGEP1_64(i8, address, static_cast<uint64_t>(-static_cast<int64_t>(ctor))) : address;
}

llvm::Value* ModuleEmitter::ref_address(Builder& b, llvm::Value* word, DataId data) {
  if (layouts.tagged(data) && flow.datas[data].ctors.size() > 1) word = b.CreateAnd(word, ~uint64_t{7});
  return b.CreateIntToPtr(word, ptr);
}

llvm::Value* ModuleEmitter::ref_ctor(Builder& b, llvm::Value* word, DataId data) {
  const std::vector<flow::CtorLayout>& ctors = flow.datas[data].ctors;
  if (ctors.size() == 1) return number(0);
  if (layouts.tagged(data)) return b.CreateAnd(b.CreateTrunc(word, i32), 7);
  llvm::Value* low = b.CreateTrunc(word, i32);
  llvm::Value* immediate_index = b.CreateLShr(low, 3);
  if (!counts_matter(data)) return immediate_index;
  llvm::Value* is_node = ref_is_node(b, word, data);
  if (!is_node) return load(b, i32, ref_address(b, word, data), 4, Region::Node, ctors.size());
  llvm::BasicBlock *entry = b.GetInsertBlock(), *node = block(b, "tag"), *done = block(b, "tagged");
  b.CreateCondBr(is_node, node, done);
  b.SetInsertPoint(node);
  llvm::Value* stored = load(b, i32, ref_address(b, word, data), 4, Region::Node, ctors.size());
  b.CreateBr(done);
  b.SetInsertPoint(done);
  llvm::PHINode* index = b.CreatePHI(i32, 2);
  index->addIncoming(immediate_index, entry);
  index->addIncoming(stored, node);
  return index;
}

llvm::Value* ModuleEmitter::ref_is_node(Builder& b, llvm::Value* word, DataId data) {
  const std::vector<flow::CtorLayout>& ctors = flow.datas[data].ctors;
  uint32_t nodes = 0;
  bool all = true, packed = false;
  for (size_t i = 0; i < ctors.size(); ++i) {
    const bool node = ctors[i].repr == CtorRepr::Node;
    if (node && i < 32) nodes |= 1u << i;
    all &= node;
    packed |= ctors[i].repr == CtorRepr::Packed;
  }
  if (all) return nullptr;
  llvm::Value* low = b.CreateTrunc(word, i32);
  if (!layouts.tagged(data)) return b.CreateICmpEQ(b.CreateAnd(low, 7), number(0));
  if (!packed) return b.CreateICmpUGT(word, llvm::ConstantInt::get(i64, 7));
  llvm::Value* bit = b.CreateAnd(b.CreateLShr(number(nodes), b.CreateAnd(low, 7)), 1);
  return b.CreateICmpNE(bit, number(0));
}

Leaves ModuleEmitter::ref_field(Builder& b, llvm::Value* word, DataId data, uint32_t ctor, uint32_t field) {
  const flow::CtorLayout& layout = flow.datas[data].ctors[ctor];
  const TypeId type = layout.fields[field];
  if (layouts.of(type).leaves.empty()) return {};
  if (layout.repr == CtorRepr::Packed) {
    // The bits below are those of the constructor's index alone: where that is 0, making the same word again is no work.
    llvm::Value* bits = b.CreateTrunc(b.CreateLShr(word, 32, "", immediate(layouts.tagged(data), ctor) == 0), i32);
    return {cast_leaf(b, bits, layouts.of(type).leaves[0].kind)};
  }
  return load_value(b, type, ref_address(b, word, data, ctor), layouts.node(data, ctor).offsets[field], false);
}

llvm::Value* ModuleEmitter::construct(Builder& b, llvm::Value* worker, DataId data, uint32_t ctor, llvm::ArrayRef<Leaves> fields, const Reuse* reuse) {
  const flow::CtorLayout& layout = flow.datas[data].ctors[ctor];
  const bool tagged = layouts.tagged(data);
  if (layout.repr == CtorRepr::Nullary) return llvm::ConstantInt::get(i64, immediate(tagged, ctor));
  if (layout.repr == CtorRepr::Packed) {
    llvm::Value* bits = nullptr;
    for (const Leaves& field : fields)
      if (!field.empty()) bits = cast_leaf(b, field[0], flow::LeafKind::I64);
    return b.CreateOr(b.CreateShl(bits, 32), immediate(tagged, ctor));
  }
  const flow::FieldsLayout& node = layouts.node(data, ctor);
  // No leaves: nothing to store, or a hole that is filled later.
  auto put = [&](llvm::Value* address, bool kept) {
    for (size_t i = 0; i < fields.size(); ++i)
      if (!fields[i].empty() && (reuse && i < reuse->kept.size() && reuse->kept[i]) == kept) store_value(b, layout.fields[i], fields[i], address, node.offsets[i], false);
  };
  auto put_header = [&](llvm::Value* address) {
    // A device neither reads the count of a node that has one owner for life, nor stores it: lanes that make nodes are as fast as their stores are few.
    if (!on_device() || flow.datas[data].shareable) store(b, number(1), address, 0, Region::Node);
    if (!tagged) store(b, number(ctor), address, 4, Region::Node);
  };
  llvm::Value *address, *staged = nullptr;
  if (staging_ > 0) {
    staged = stage_node(b, worker, node.bytes, address);
    put_header(staged);
  } else if (reuse && reuse->certain) {
    address = b.CreateIntToPtr(reuse->token, ptr);
    if (!tagged && !reuse->same_header) store(b, number(ctor), address, 4, Region::Node);
  } else if (reuse) {
    llvm::BasicBlock *entry = b.GetInsertBlock(), *fresh = block(b, "fresh"), *have = block(b, "have");
    llvm::Value* reused = b.CreateIntToPtr(reuse->token, ptr);
    b.CreateCondBr(b.CreateIsNull(reused), fresh, have);
    b.SetInsertPoint(fresh);
    llvm::Value* made = alloc(b, worker, node.bytes);
    if (reuse->same_header) put_header(made);
    put(made, true);
    llvm::BasicBlock* fresh_end = b.GetInsertBlock();
    b.CreateBr(have);
    b.SetInsertPoint(have);
    llvm::PHINode* phi = b.CreatePHI(ptr, 2);
    phi->addIncoming(reused, entry);
    phi->addIncoming(made, fresh_end);
    address = phi;
    if (!reuse->same_header) put_header(address);
  } else {
    address = alloc(b, worker, node.bytes);
    put_header(address);
  }
  put(staged ? staged : address, false);
  if (tagged && ctor != 0) address = b.CreateConstInBoundsGEP1_64(i8, address, ctor);
  return b.CreatePtrToInt(address, i64);
}

llvm::Value* ModuleEmitter::new_object(Builder& b, llvm::Value* worker, uint32_t id, llvm::ArrayRef<TypeId> types, llvm::ArrayRef<Leaves> fields) {
  const flow::FieldsLayout layout = layouts.object({types.data(), types.size()});
  llvm::Value* address = alloc(b, worker, layout.bytes);
  store(b, number(1), address, 0, Region::Node);
  store(b, number(id), address, 4, Region::Node);
  for (size_t i = 0; i < types.size(); ++i) store_value(b, types[i], fields[i], address, layout.offsets[i], false);
  return b.CreatePtrToInt(address, i64);
}

Leaves ModuleEmitter::apply(Builder& b, llvm::Value* worker, llvm::Value* closure, LeafSpan argument, TypeId fn, llvm::Value* frame, bool must_tail) {
  llvm::Value* id = load(b, i32, b.CreateIntToPtr(closure, ptr), 4, Region::Node);
  llvm::Value* row = b.CreateInBoundsGEP(object_type_, objects_, {b.CreateZExt(id, i64)});
  llvm::LoadInst* code = b.CreateAlignedLoad(ptr, b.CreateConstInBoundsGEP1_64(i8, row, offsetof(BendObjectInfo, code)), llvm::Align(8));
  code->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context, {}));
  const TypeId result = flow.types[fn].parts[1];
  llvm::SmallVector<llvm::Value*, 8> args{worker};
  if (returns_indirect(result)) args.push_back(frame);
  args.push_back(closure);
  args.append(argument.begin(), argument.end());
  llvm::CallInst* call = b.CreateCall(code_type(fn), code, args);
  call->setCallingConv(llvm::CallingConv::Tail);
  if (must_tail) {
    call->setTailCallKind(guaranteed_tail(*b.GetInsertBlock()->getParent(), *call->getFunctionType()));
    if (call->getType()->isVoidTy()) b.CreateRetVoid();
    else b.CreateRet(call);
    return {};
  }
  return returns_indirect(result) ? load_frame(b, result, frame) : split_result(b, call, result);
}

}  // namespace bendc::codegen
