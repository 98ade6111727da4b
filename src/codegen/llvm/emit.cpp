// emit_module: declares every function, emits the bodies, then the tables that point at them.
#include "codegen/llvm/emitter.h"

#include <fmt/format.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <utility>

#include "codegen/gpu/machine_plan.h"
#include "codegen/llvm/device.h"
#include "codegen/llvm/machine.h"
#include "codegen/llvm/names.h"
#include "codegen/llvm/unroll_recursion.h"
#include "codegen/run_once.h"

namespace bendc::codegen {

using flow::FuncId;
using flow::TypeId;

ModuleEmitter::ModuleEmitter(const flow::Module& module, llvm::Module& llvm_module, const EmitOptions& emit_options)
    : flow(module), layouts(module), ir(llvm_module), context(llvm_module.getContext()), options(emit_options), tails(find_tail_groups(module)) {
  if (options.threads) {
    crossing = flow::find_crossing(module);
    small_forks = flow::find_small_forks(module);
  }
  i1 = llvm::Type::getInt1Ty(context);
  i8 = llvm::Type::getInt8Ty(context);
  i32 = llvm::Type::getInt32Ty(context);
  i64 = llvm::Type::getInt64Ty(context);
  f32 = llvm::Type::getFloatTy(context);
  ptr = llvm::PointerType::get(context, 0);
  void_type = llvm::Type::getVoidTy(context);
  values.resize(flow.vars.size());

  slot_type_ = llvm::StructType::create(context, {i32, i32, ptr}, "BendSlot");
  layout_type_ = llvm::StructType::create(context, {i32, i32, i32, i32, ptr}, "BendLayout");
  sum_type_ = llvm::StructType::create(context, {i32, i32, ptr}, "BendSumInfo");
  ctor_type_ = llvm::StructType::create(context, {i32, i32, layout_type_, ptr}, "BendCtorInfo");
  data_type_ = llvm::StructType::create(context, {i32, i32, ptr, ptr}, "BendDataInfo");
  object_type_ = llvm::StructType::create(context, {i32, i32, layout_type_, ptr, ptr, ptr, i32, i32, ptr, ptr}, "BendObjectInfo");
  program_type_ = llvm::StructType::create(context, {i32, i32, ptr, ptr, ptr, i32, i32, ptr, ptr, ptr, ptr}, "BendProgram");

  llvm::MDBuilder md(context);
  unlikely_ = md.createUnlikelyBranchWeights();
  llvm::MDNode* root = md.createTBAARoot("bend");
  const char* names[] = {"worker", "node", "array header", "array u32", "array f32", "array word", "frame"};
  for (size_t i = 0; i < std::size(names); ++i) {
    llvm::MDNode* type = md.createTBAAScalarTypeNode(names[i], root);
    regions_[i] = md.createTBAAStructTagNode(type, type, 0);
  }
  // Frames (result areas on the stack, answers) hold anything and are reused: no tag, LLVM knows allocas anyway.
  regions_[static_cast<size_t>(Region::Frame)] = nullptr;
  // A device thread's free lists hand array blocks out as nodes and back.
  if (on_device()) std::fill(std::begin(regions_), std::end(regions_), nullptr);
  if (!on_device()) numbers_ = flow::number_objects(flow);
  object_list_.resize(numbers_.shapes.size());
  objects_ = new llvm::GlobalVariable(ir, object_type_, true, llvm::GlobalValue::ExternalLinkage, nullptr, "bend.objects.pending");
}

llvm::BasicBlock* ModuleEmitter::block(Builder& b, const char* name) {
  return llvm::BasicBlock::Create(context, name, b.GetInsertBlock()->getParent());
}

void ModuleEmitter::mark_function(llvm::Function* function) {
  function->setDoesNotThrow();
  if (options.target == TargetKind::Device) return;
  // Frames above a page touch each page, so that deep recursion meets the guard page of the stack.
  function->addFnAttr("probe-stack", "inline-asm");
}

void ModuleEmitter::mark_worker(llvm::Function* function) {
  function->addParamAttr(0, llvm::Attribute::NonNull);
  function->addParamAttr(0, llvm::Attribute::NoUndef);
  function->addParamAttrs(0, llvm::AttrBuilder(context).addDereferenceableAttr(on_device() ? kDeviceWorkerBytes : sizeof(BendWorker)).addAlignmentAttr(llvm::Align(8)));
}

void ModuleEmitter::mark_limits(llvm::Function* function, uint32_t first, TypeId type) {
  const std::vector<uint64_t> limits = leaf_limits(type);
  for (size_t i = 0; i < limits.size(); ++i) {
    if (limits[i] == 0) continue;
    const unsigned bits = function->getArg(first + static_cast<uint32_t>(i))->getType()->getIntegerBitWidth();
    llvm::AttrBuilder attributes(context);
    attributes.addRangeAttr(llvm::ConstantRange(llvm::APInt(bits, 0), llvm::APInt(bits, limits[i])));
    function->addParamAttrs(first + static_cast<uint32_t>(i), attributes);
  }
}

llvm::Function* ModuleEmitter::helper(const std::string& name, llvm::FunctionType* type, const std::function<void(llvm::Function*, Builder&)>& build) {
  llvm::Function*& entry = helpers_[name];
  if (entry) return entry;
  llvm::Function* function = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, ir);
  entry = function;
  mark_function(function);
  function->setCallingConv(on_device() ? llvm::CallingConv::C : llvm::CallingConv::Fast);
  Builder b(llvm::BasicBlock::Create(context, "entry", function));
  const bool once = std::exchange(runs_once_, false);
  build(function, b);
  runs_once_ = once;
  return function;
}

std::string ModuleEmitter::site(FuncId id, Span span) const {
  const std::string_view name = flow::user_name(flow.funcs[id]);
  if (!options.sources || !span.valid()) return std::string(name);
  return fmt::format("{} at {}:{}", name, (*options.sources)[span.file].path, options.sources->locate(span.file, span.offset).line);
}

void ModuleEmitter::declare_functions() {
  const std::vector<bool> forking = options.threads ? flow::find_forking(flow) : std::vector<bool>(flow.funcs.size());
  for (uint32_t i = 0; i < flow.funcs.size(); ++i) {
    if (on_device() && !options.gpu->device->reachable[i]) {
      functions_.push_back(nullptr);
      sequential_.push_back(nullptr);
      continue;
    }
    functions_.push_back(on_device() && is_async(FuncId(i)) ? declare_segment(FuncId(i)) : declare_function(FuncId(i), ""));
    sequential_.push_back(forking[i] ? declare_function(FuncId(i), ".seq") : nullptr);
  }
}

llvm::Function* ModuleEmitter::declare_function(FuncId id, const char* suffix) {
  const flow::Func& func = flow.funcs[id];
  std::vector<TypeId> params;
  for (flow::VarId var : func.params) params.push_back(flow.vars[var].type);
  llvm::FunctionType* type = function_type({}, params, func.result);
  llvm::Function* function = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, "bend." + mangle(func.name) + suffix, ir);
  mark_function(function);
  mark_worker(function);
  function->addFnAttr(kOfProgram, std::to_string(id.index));
  if (on_device() && options.gpu->device->copy[id.index]) function->addFnAttr(llvm::Attribute::NoInline);
  if (options.target == TargetKind::Device && options.gpu->device->inlined[id.index]) function->addFnAttr(llvm::Attribute::AlwaysInline);
  function->setCallingConv(on_device() ? llvm::CallingConv::C : tails.cyclic[id.index] ? llvm::CallingConv::Tail : llvm::CallingConv::Fast);
  // Where a short recursive function lies in its cache lines is worth up to a third (fib: 0.26 s at the start of one, 0.35 s elsewhere).
  if (*suffix) function->setAlignment(llvm::Align(64));
  uint32_t leaf = 1;
  if (returns_indirect(func.result)) {
    function->addParamAttr(leaf, llvm::Attribute::NoAlias);
    function->addParamAttr(leaf, llvm::Attribute::NonNull);
    ++leaf;
  }
  for (TypeId param : params) {
    mark_limits(function, leaf, param);
    leaf += static_cast<uint32_t>(layouts.of(param).leaves.size());
  }
  return function;
}

void ModuleEmitter::run() {
  declare_functions();
  const std::vector<bool> once = flow::find_run_once(flow);
  for (uint32_t i = 0; i < flow.funcs.size(); ++i) {
    runs_once_ = once[i];
    FuncEmitter(*this, FuncId(i), false).run();
    if (sequential_[i]) FuncEmitter(*this, FuncId(i), true).run();
  }
  runs_once_ = false;
  emit_entry();
  if (objects_) {   // no entry: nothing reads the table
    objects_->replaceAllUsesWith(llvm::PoisonValue::get(objects_->getType()));
    objects_->eraseFromParent();
  }
}

void IrModuleDeleter::operator()(IrModule* module) const { delete module; }

IrModulePtr emit_module(const flow::Module& module, const Machine& machine, const EmitOptions& options) {
  IrModulePtr out(new IrModule);
  out->module = std::make_unique<llvm::Module>(options.program_name.empty() ? "bend" : options.program_name, out->context);
  set_target(*out->module, machine);
  EmitOptions host = options;
  host.cpu = cpu_features(machine);
  ModuleEmitter(module, *out->module, host).run();
  return out;
}

std::string verify_ir(const IrModule& module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  return llvm::verifyModule(*module.module, &stream) ? text : std::string();
}

std::string print_ir(const IrModule& module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.module->print(stream, nullptr);
  return text;
}

}  // namespace bendc::codegen
