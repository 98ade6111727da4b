// Constant tables of the program for the runtime (abi.h): layouts, data infos, the object table, the descriptor; and the
// small functions they point at: closure code and resume functions.
#include <cstddef>

#include "codegen/gpu/segments.h"
#include "codegen/llvm/emitter.h"
#include "codegen/llvm/names.h"

namespace bendc::codegen {

using flow::CtorRepr;
using flow::DataId;
using flow::FuncId;
using flow::TypeId;
using flow::TypeKind;

// The LLVM struct types of these are built field by field in ModuleEmitter's constructor.
static_assert(sizeof(BendSlot) == 16 && sizeof(BendLayout) == 24 && sizeof(BendSumInfo) == 16 && sizeof(BendCtorInfo) == 40);
static_assert(sizeof(BendDataInfo) == 24 && sizeof(BendObjectInfo) == 80 && offsetof(BendObjectInfo, code) == 32);
static_assert(sizeof(BendProgram) == 72);

llvm::Constant* ModuleEmitter::constant(llvm::StructType* type, llvm::ArrayRef<llvm::Constant*> fields) {
  return llvm::ConstantStruct::get(type, fields);
}

llvm::Constant* ModuleEmitter::global(llvm::Constant* value, const llvm::Twine& name) {
  auto* variable = new llvm::GlobalVariable(ir, value->getType(), true, llvm::GlobalValue::InternalLinkage, value, name);
  variable->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  variable->setAlignment(llvm::Align(8));
  return variable;
}

llvm::Constant* ModuleEmitter::text(const std::string& bytes) {
  llvm::Constant*& entry = texts_[bytes];
  if (!entry) {
    auto* variable = llvm::cast<llvm::GlobalVariable>(global(llvm::ConstantDataArray::getString(context, bytes, true), "bend.text"));
    variable->setAlignment(llvm::Align(1));
    entry = variable;
  }
  return entry;
}

void ModuleEmitter::collect_slots(TypeId id, llvm::ArrayRef<uint32_t> offsets, uint32_t base, std::vector<PlacedSlot>& out) {
  if (!layouts.of(id).counted) return;
  const flow::Type& type = flow.types[id];
  llvm::Constant* null = llvm::ConstantPointerNull::get(llvm::PointerType::get(context, 0));
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
        collect_slots(part, offsets.slice(leaf, count), base, out);
        leaf += count;
      }
      return;
    }
    case TypeKind::Ref:
      if (counts_matter(type.data)) out.push_back({base + offsets[0], BEND_SLOT_DATA, data_info(type.data)});
      return;
    case TypeKind::Array:
      out.push_back({base + offsets[0], BEND_SLOT_ARRAY, layout_info(type.parts[0])});
      return;
    case TypeKind::Fn:
    case TypeKind::Any:
      out.push_back({base + offsets[0], BEND_SLOT_OBJECT, null});
      return;
    case TypeKind::Sum:
      out.push_back({base + offsets[0], BEND_SLOT_SUM, sum_info(id, offsets)});
      return;
  }
}

// A sum inside another sum lies in that one's slots, so the offsets come with the place.
llvm::Constant* ModuleEmitter::sum_info(TypeId id, llvm::ArrayRef<uint32_t> offsets) {
  const flow::Type& type = flow.types[id];
  std::vector<llvm::Constant*> variants;
  for (uint32_t v = 0; v < type.variants.size(); ++v) {
    std::vector<PlacedSlot> slots;
    for (uint32_t f = 0; f < type.variants[v].size(); ++f) {
      const TypeId field = type.variants[v][f];
      const size_t count = layouts.of(field).leaves.size();
      std::vector<uint32_t> relative;
      for (size_t i = 0; i < count; ++i) relative.push_back(offsets[layouts.variant_leaf(id, v, f) + i] - offsets[0]);
      collect_slots(field, relative, 0, slots);
    }
    variants.push_back(layout_constant(layouts.of(id).size, 0, slots));
  }
  llvm::Constant* list = global(llvm::ConstantArray::get(llvm::ArrayType::get(layout_type_, variants.size()), variants), "bend.variants");
  return global(constant(sum_type_, {number(variants.size()), number(0), list}), "bend.sum");
}

llvm::Constant* ModuleEmitter::layout_constant(uint32_t size, uint32_t words_log2, const std::vector<PlacedSlot>& slots) {
  llvm::Constant* list = llvm::ConstantPointerNull::get(llvm::PointerType::get(context, 0));
  if (!slots.empty()) {
    std::vector<llvm::Constant*> rows;
    for (const PlacedSlot& slot : slots) rows.push_back(constant(slot_type_, {number(slot.offset), number(slot.kind), slot.info}));
    list = global(llvm::ConstantArray::get(llvm::ArrayType::get(slot_type_, rows.size()), rows), "bend.slots");
  }
  return constant(layout_type_, {number(size), number(words_log2), number(slots.size()), number(0), list});
}

llvm::Constant* ModuleEmitter::layout_info(TypeId type) {
  llvm::GlobalVariable*& entry = layout_infos_[type.index];
  if (entry) return entry;
  // Declared before it is filled: element types may contain arrays of themselves through boxed data.
  auto* variable = new llvm::GlobalVariable(ir, layout_type_, true, llvm::GlobalValue::InternalLinkage, nullptr, "bend.layout.T" + std::to_string(type.index));
  entry = variable;
  std::vector<uint32_t> offsets;
  for (flow::Leaf leaf : layouts.of(type).leaves) offsets.push_back(leaf.offset);
  std::vector<PlacedSlot> slots;
  collect_slots(type, offsets, 0, slots);
  variable->setInitializer(layout_constant(layouts.of(type).size, layouts.words_log2(type), slots));
  return variable;
}

llvm::Constant* ModuleEmitter::fields_layout(const flow::FieldsLayout& layout, llvm::ArrayRef<TypeId> types) {
  std::vector<PlacedSlot> slots;
  for (size_t i = 0; i < types.size(); ++i) {
    std::vector<uint32_t> offsets;
    for (flow::Leaf leaf : layouts.of(types[i]).leaves) offsets.push_back(leaf.offset);
    collect_slots(types[i], offsets, layout.offsets[i], slots);
  }
  return layout_constant(layout.bytes, 0, slots);
}

llvm::Constant* ModuleEmitter::object_layout(llvm::ArrayRef<TypeId> types) {
  return fields_layout(layouts.object({types.data(), types.size()}), types);
}

llvm::Constant* ModuleEmitter::data_info(DataId id) {
  llvm::GlobalVariable*& entry = data_infos_[id.index];
  if (entry) return entry;
  auto* variable = new llvm::GlobalVariable(ir, data_type_, true, llvm::GlobalValue::InternalLinkage, nullptr, "bend.data.D" + std::to_string(id.index));
  entry = variable;   // before the fields: datatypes are recursive
  const flow::Data& data = flow.datas[id];
  std::vector<llvm::Constant*> ctors;
  for (uint32_t c = 0; c < data.ctors.size(); ++c) {
    const flow::CtorLayout& ctor = data.ctors[c];
    const uint32_t repr = ctor.repr == CtorRepr::Nullary ? BEND_CTOR_NULLARY : ctor.repr == CtorRepr::Packed ? BEND_CTOR_PACKED : BEND_CTOR_NODE;
    llvm::Constant* layout = ctor.repr == CtorRepr::Node ? fields_layout(layouts.node(id, c), ctor.fields) : layout_constant(0, 0, {});
    ctors.push_back(constant(ctor_type_, {number(repr), number(0), layout, text(ctor.name)}));
  }
  llvm::Constant* list = global(llvm::ConstantArray::get(llvm::ArrayType::get(ctor_type_, ctors.size()), ctors), "bend.ctors");
  variable->setInitializer(constant(data_type_, {number(data.ctors.size()), number(layouts.tagged(id) ? 1 : 0), list, text(data.name)}));
  return variable;
}

// The code of a closure: takes the captures out of the object, frees it, calls the function. Closures are applied at most once, but for @unsafe code
// with a `+` function: there the object stays while it has other owners, and the captures get counts of their own.
llvm::Function* ModuleEmitter::emit_code(FuncId id, uint32_t captures) {
  const flow::Func& func = flow.funcs[id];
  std::vector<TypeId> types;
  for (uint32_t i = 0; i < captures; ++i) types.push_back(flow.vars[func.params[i]].type);
  const TypeId argument = flow.vars[func.params[captures]].type;
  llvm::FunctionType* type = function_type({i64}, {argument}, func.result);
  llvm::Function* code = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, "bend.code." + mangle(func.name), ir);
  mark_function(code);
  mark_worker(code);
  code->setCallingConv(llvm::CallingConv::Tail);
  Builder b(llvm::BasicBlock::Create(context, "entry", code));
  llvm::Value* worker = code->getArg(0);
  const bool indirect = returns_indirect(func.result);
  const unsigned object_index = indirect ? 2 : 1;
  llvm::Function* target = function(id);
  llvm::SmallVector<llvm::Value*, 8> args{worker};
  if (indirect) args.push_back(code->getArg(1));
  const flow::FieldsLayout layout = layouts.object(types);
  if (captures > 0) {
    llvm::Value* object = b.CreateIntToPtr(code->getArg(object_index), ptr);
    for (uint32_t i = 0; i < captures; ++i) {
      const Leaves leaves = load_value(b, types[i], object, layout.offsets[i], false);
      args.append(leaves.begin(), leaves.end());
    }
    if (flow.shared_closure.valid()) {
      llvm::BasicBlock *unique = block(b, "unique"), *shared = block(b, "shared"), *opened = block(b, "opened");
      b.CreateCondBr(is_unique(b, object, true), unique, shared);
      b.SetInsertPoint(shared);
      for (uint32_t i = 0; i < captures; ++i)
        if (layouts.of(types[i]).counted) retain(b, worker, types[i], load_value(b, types[i], object, layout.offsets[i], false), nullptr);
      release(b, worker, flow.shared_closure, {code->getArg(object_index)});
      b.CreateBr(opened);
      b.SetInsertPoint(unique);
      free(b, worker, object, layout.bytes);
      b.CreateBr(opened);
      b.SetInsertPoint(opened);
    } else {
      free(b, worker, object, layout.bytes);
    }
  }
  for (unsigned i = object_index + 1; i < code->arg_size(); ++i) args.push_back(code->getArg(i));
  llvm::CallInst* call = b.CreateCall(target, args);
  call->setCallingConv(target->getCallingConv());
  call->setTailCallKind(target->getCallingConv() == llvm::CallingConv::Tail ? guaranteed_tail(*code, *target->getFunctionType()) : llvm::CallInst::TCK_Tail);
  if (call->getType()->isVoidTy()) b.CreateRetVoid();
  else b.CreateRet(call);
  return code;
}

uint32_t ModuleEmitter::closure_id(FuncId func, uint32_t captures) {
  const uint32_t id = numbers_.closures.at({func.index, captures});
  if (object_list_[id].layout) return id;
  std::vector<TypeId> types;
  for (uint32_t i = 0; i < captures; ++i) types.push_back(flow.vars[flow.funcs[func].params[i]].type);
  Object object;
  object.kind = BEND_OBJECT_CLOSURE;
  object.layout = object_layout(types);
  object.code = emit_code(func, captures);
  object.name = flow.funcs[func].name;
  if (captures == 0) {
    llvm::StructType* row = llvm::StructType::get(context, {i32, i32, i64});
    auto* variable = new llvm::GlobalVariable(ir, row, true, llvm::GlobalValue::InternalLinkage,
                                              llvm::ConstantStruct::get(row, {number(BEND_IMMORTAL), number(id), llvm::ConstantInt::get(i64, 0)}), "bend.closure");
    variable->setAlignment(llvm::Align(16));
    object.instance = variable;
  }
  object_list_[id] = std::move(object);
  return id;
}

llvm::Constant* ModuleEmitter::closure_instance(FuncId func) { return object_list_[closure_id(func, 0)].instance; }

uint32_t ModuleEmitter::box_id(TypeId type) {
  const uint32_t id = numbers_.boxes.at(type.index);
  if (object_list_[id].layout) return id;
  Object object;
  object.kind = BEND_OBJECT_BOX;
  object.layout = object_layout({type});
  object.name = "box";
  object_list_[id] = std::move(object);
  return id;
}

// resume(worker, request, answer): the continuation applied to the answer; the request object ends here (its arguments were taken by the handler).
llvm::Function* ModuleEmitter::emit_resume(flow::EffectId effect_id, TypeId continuation) {
  const flow::Effect& effect = flow.effects[effect_id];
  llvm::FunctionType* type = llvm::FunctionType::get(i64, {ptr, i64, ptr}, false);
  llvm::Function* resume = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, "bend.resume." + mangle(effect.name), ir);
  mark_function(resume);
  Builder b(llvm::BasicBlock::Create(context, "entry", resume));
  llvm::Value* object = b.CreateIntToPtr(resume->getArg(1), ptr);
  std::vector<TypeId> types{continuation};
  types.insert(types.end(), effect.args.begin(), effect.args.end());
  llvm::Value* closure = load(b, i64, object, flow::kNodeHeader, Region::Node);
  Leaves answer;
  const auto& leaves = layouts.of(effect.answer).leaves;
  for (flow::Leaf leaf : leaves) answer.push_back(load(b, leaf_type(leaf.kind), resume->getArg(2), leaf.offset, Region::Frame));
  free(b, resume->getArg(0), object, layouts.object(types).bytes);
  const Leaves result = apply(b, resume->getArg(0), closure, answer, continuation, nullptr, false);
  b.CreateRet(result[0]);
  return resume;
}

uint32_t ModuleEmitter::request_id(flow::EffectId effect_id, TypeId continuation) {
  auto [it, fresh] = request_ids_.try_emplace(effect_id.index, static_cast<uint32_t>(object_list_.size()));
  if (!fresh) return it->second;
  const uint32_t id = it->second;
  object_list_.emplace_back();
  const flow::Effect& effect = flow.effects[effect_id];
  std::vector<TypeId> types{continuation};
  types.insert(types.end(), effect.args.begin(), effect.args.end());
  Object object;
  object.kind = BEND_OBJECT_REQUEST;
  object.layout = object_layout(types);
  llvm::FunctionType* handler = llvm::FunctionType::get(i32, {ptr, ptr, ptr, ptr}, false);
  object.handler = llvm::cast<llvm::Constant>(ir.getOrInsertFunction(handler_symbol(effect.name), handler).getCallee());
  object.resume = emit_resume(effect_id, continuation);
  object.answer_size = layouts.of(effect.answer).size;
  object.answer_align = layouts.of(effect.answer).align;
  object.name = effect.name;
  object_list_[id] = std::move(object);
  return id;
}

void ModuleEmitter::emit_entry() {
  if (flow.main_kind == flow::MainKind::None) return;
  const bool io = flow.main_kind == flow::MainKind::Io;
  llvm::Function* entry = llvm::Function::Create(llvm::FunctionType::get(io ? i64 : void_type, {ptr}, false), llvm::GlobalValue::InternalLinkage, "bend.entry", ir);
  mark_function(entry);
  {
    Builder b(llvm::BasicBlock::Create(context, "entry", entry));
    fill_strings(b, entry->getArg(0));
    llvm::Function* target = function(flow.entry);
    llvm::CallInst* call = b.CreateCall(target, {entry->getArg(0)});
    call->setCallingConv(target->getCallingConv());
    if (io) b.CreateRet(call);
    else b.CreateRetVoid();
  }
  llvm::Constant* null = llvm::ConstantPointerNull::get(llvm::PointerType::get(context, 0));
  llvm::Constant* apply_unit = null;
  llvm::Constant *string_info = null, *op_info = null;
  if (flow.string_data.valid()) string_info = data_info(flow.string_data);
  if (flow.io_op_data.valid()) op_info = data_info(flow.io_op_data);
  // apply_unit exists when the program has closures of type fn(struct{}) -> ref IO.OP.
  for (uint32_t i = 0; i < flow.types.size(); ++i) {
    const flow::Type& type = flow.types[TypeId(i)];
    if (type.kind != TypeKind::Fn || !flow.io_op_data.valid()) continue;
    const flow::Type &param = flow.types[type.parts[0]], &result = flow.types[type.parts[1]];
    if (param.kind != TypeKind::Struct || !param.parts.empty() || result.kind != TypeKind::Ref || result.data != flow.io_op_data) continue;
    llvm::Function* fn = llvm::Function::Create(llvm::FunctionType::get(i64, {ptr, i64}, false), llvm::GlobalValue::InternalLinkage, "bend.apply_unit", ir);
    mark_function(fn);
    Builder b(llvm::BasicBlock::Create(context, "entry", fn));
    b.CreateRet(apply(b, fn->getArg(0), fn->getArg(1), {}, TypeId(i), nullptr, false)[0]);
    apply_unit = fn;
    break;
  }
  // The object table is complete: every function that makes objects has been emitted.
  std::vector<llvm::Constant*> rows;
  for (const Object& object : object_list_) {
    rows.push_back(constant(object_type_, {number(object.kind), number(0), object.layout, object.code ? object.code : null, object.handler ? object.handler : null,
                                           object.resume ? object.resume : null, number(object.answer_size), number(object.answer_align), text(object.name),
                                           object.instance ? object.instance : null}));
  }
  llvm::Constant* table = global(llvm::ConstantArray::get(llvm::ArrayType::get(object_type_, rows.size()), rows), "bend.objects");
  objects_->replaceAllUsesWith(table);
  objects_->eraseFromParent();
  objects_ = nullptr;

  llvm::Constant* gpu = null;
  if (options.gpu) {
    DeviceFunctions emulated;
    if (options.gpu->emulated) {
      EmitOptions device = options;
      device.target = TargetKind::Emulated;
      device.threads = false;
      device.launches = true;
      emulated = ModuleEmitter(options.gpu->device->module, ir, device).run_device();
    }
    gpu = gpu_program(emulated);
  }
  llvm::Constant* row = constant(program_type_, {number(BEND_ABI_VERSION), number(io ? BEND_MAIN_IO : BEND_MAIN_VALUE), entry, apply_unit, table,
                                                 number(rows.size()), number(0), string_info, op_info, text(options.program_name), gpu});
  auto* program = new llvm::GlobalVariable(ir, program_type_, true, llvm::GlobalValue::ExternalLinkage, row, "bend_program");
  program->setAlignment(llvm::Align(8));
}

}  // namespace bendc::codegen
