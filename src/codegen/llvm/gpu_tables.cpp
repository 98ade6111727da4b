// The host's side of `!`: what a call hands to the runtime, and the description of the device program (abi.h: BendGpuProgram).
#include <fmt/format.h>

#include <cstddef>

#include "codegen/gpu/machine_plan.h"
#include "codegen/llvm/emitter.h"

namespace bendc::codegen {

using flow::FuncId;
using flow::TypeId;
using flow::VarId;

static_assert(sizeof(BendGpuEntry) == 104 && offsetof(BendGpuEntry, args) == 32 && sizeof(BendGpuCode) == 24 && sizeof(BendGpuProgram) == 104);

// The struct of a function's parameters; `owned_only`: with the slots of the parameters that a call consumes.
llvm::Constant* ModuleEmitter::params_layout(FuncId id, bool owned_only) {
  const flow::Func& func = flow.funcs[id];
  const std::vector<TypeId> types = param_types(flow, id);
  const flow::FieldsLayout layout = layouts.record(types);
  std::vector<PlacedSlot> slots;
  for (size_t i = 0; i < types.size(); ++i) {
    if (owned_only && i < func.borrowed.size() && func.borrowed[i]) continue;
    std::vector<uint32_t> offsets;
    for (flow::Leaf leaf : layouts.of(types[i]).leaves) offsets.push_back(leaf.offset);
    collect_slots(types[i], offsets, layout.offsets[i], slots);
  }
  return layout_constant(layout.bytes, 0, slots);
}

llvm::Constant* ModuleEmitter::gpu_entries() {
  if (gpu_entries_) return gpu_entries_;
  llvm::StructType* type = llvm::StructType::create(context, {ptr, ptr, ptr, i32, i32, layout_type_, layout_type_, layout_type_}, "BendGpuEntry");
  llvm::Constant* null = llvm::ConstantPointerNull::get(llvm::PointerType::get(context, 0));
  std::vector<llvm::Constant*> rows;
  for (const DeviceEntry& entry : options.gpu->device->entries) {
    const flow::Func& func = flow.funcs[entry.host];
    llvm::Constant* place = null;
    if (options.sources && func.span.valid())
      place = text(fmt::format("{}:{}", (*options.sources)[func.span.file].path, options.sources->locate(func.span.file, func.span.offset).line));
    std::vector<PlacedSlot> slots;
    std::vector<uint32_t> offsets;
    for (flow::Leaf leaf : layouts.of(func.result).leaves) offsets.push_back(leaf.offset);
    collect_slots(func.result, offsets, 0, slots);
    rows.push_back(constant(type, {text(func.name.substr(0, func.name.find('~'))), place, entry.device.valid() ? null : text(entry.refusal),
                                   number(entry.device.valid() ? options.gpu->plan->load[entry.device.index] : 0), number(entry.reads_only ? BEND_GPU_READS_ONLY : 0), params_layout(entry.host, false),
                                   params_layout(entry.host, true), layout_constant(layouts.of(func.result).size, 0, slots)}));
  }
  gpu_entries_ = llvm::cast<llvm::GlobalVariable>(global(llvm::ConstantArray::get(llvm::ArrayType::get(type, rows.size()), rows), "bend.gpu.entries"));
  return gpu_entries_;
}

llvm::Constant* ModuleEmitter::gpu_entry(FuncId func) {
  const std::vector<DeviceEntry>& entries = options.gpu->device->entries;
  size_t index = 0;
  while (index < entries.size() && entries[index].host != func) ++index;
  return llvm::ConstantExpr::getInBoundsGetElementPtr(i8, gpu_entries(), llvm::ConstantInt::get(i64, index * sizeof(BendGpuEntry)));
}

// `emulated`: the machine compiled for this host, or null. Called when all device code has been emitted: its error sites are known then.
llvm::Constant* ModuleEmitter::gpu_program(DeviceFunctions emulated) {
  llvm::Constant* null = llvm::ConstantPointerNull::get(llvm::PointerType::get(context, 0));
  auto table = [&](llvm::Type* type, const std::vector<llvm::Constant*>& rows, const char* name) -> llvm::Constant* {
    return rows.empty() ? null : global(llvm::ConstantArray::get(llvm::ArrayType::get(type, rows.size()), rows), name);
  };
  std::vector<llvm::Constant*> sites, codes;
  for (const std::string& site : options.gpu->sites) sites.push_back(text(site));
  llvm::StructType* code_type = llvm::StructType::create(context, {i32, i32, ptr, i64}, "BendGpuCode");
  for (const DeviceText& code : options.gpu->codes) {
    llvm::Constant* bytes = global(llvm::ConstantDataArray::getString(context, code.bytes, true), code.assembled ? "bend.cubin" : "bend.ptx");
    if (code.assembled) llvm::cast<llvm::GlobalVariable>(bytes)->setAlignment(llvm::Align(16));   // an ELF file
    const uint32_t kind = code.assembled ? BEND_GPU_CUBIN : code.launches ? BEND_GPU_LAUNCH_PTX : BEND_GPU_PTX;
    codes.push_back(constant(code_type, {number(kind), number(code.arch), bytes, llvm::ConstantInt::get(i64, code.bytes.size() + 1)}));
  }
  llvm::StructType* type = llvm::StructType::create(context, {i32, i32, i32, i32, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, i32, i32, i32, i32}, "BendGpuProgram");
  const MachinePlan& plan = *options.gpu->plan;
  llvm::Constant* entries = gpu_entries();
  auto code = [&](llvm::Function* function) { return function ? static_cast<llvm::Constant*>(function) : null; };
  return global(constant(type, {number(options.gpu->plan->task_stride), number(options.gpu->device->entries.size()), number(sites.size()), number(codes.size()), entries,
                                table(ptr, sites, "bend.gpu.sites"), table(code_type, codes, "bend.gpu.codes"), null, code(emulated.round), code(emulated.task), code(emulated.flat),
                                code(emulated.tree), code(emulated.step), number(plan.group_stride), number(plan.result_stride), number(plan.makes_arrays), number(0)}),
                "bend.gpu");
}

// The runtime computes the call, or says that it does not: then it is an ordinary call.
Leaves FuncEmitter::bang_call(FuncId callee, Slice args) {
  const flow::FieldsLayout layout = m_.layouts.record(param_types(m_.flow, callee));
  const TypeId result = m_.flow.funcs[callee].result;
  llvm::Value* area = frame(layout.bytes + m_.layouts.of(result).size);
  llvm::Value* answer = b_.CreateConstInBoundsGEP1_64(m_.i8, area, layout.bytes);
  const std::span<const VarId> vars = m_.flow.list(args);
  for (size_t i = 0; i < vars.size(); ++i) m_.store_frame(b_, type(vars[i]), value(vars[i]), b_.CreateConstInBoundsGEP1_64(m_.i8, area, layout.offsets[i]));
  llvm::Value* done = m_.call_runtime(b_, Rt::bend_gpu_call, {worker_, m_.gpu_entry(callee), area, answer});
  llvm::BasicBlock *there = m_.block(b_, "on_gpu"), *here = m_.block(b_, "on_cpu"), *called = m_.block(b_, "called");
  b_.CreateCondBr(b_.CreateICmpNE(done, b_.getInt32(0)), there, here);
  b_.SetInsertPoint(there);
  const Leaves remote = m_.load_frame(b_, result, answer);
  llvm::BasicBlock* there_end = b_.GetInsertBlock();
  b_.CreateBr(called);
  b_.SetInsertPoint(here);
  const Leaves local = call(callee, args);
  llvm::BasicBlock* here_end = b_.GetInsertBlock();
  b_.CreateBr(called);
  b_.SetInsertPoint(called);
  Leaves out;
  for (size_t i = 0; i < local.size(); ++i) {
    llvm::PHINode* phi = b_.CreatePHI(local[i]->getType(), 2);
    phi->addIncoming(remote[i], there_end);
    phi->addIncoming(local[i], here_end);
    out.push_back(phi);
  }
  return out;
}

}  // namespace bendc::codegen
