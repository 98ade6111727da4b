// The device module: PTX for the baseline architecture. LLVM ends the process on what NVPTX cannot select, and a device has no stack for
// recursion: both are looked for before code is made.
#include <fmt/format.h>
#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <functional>

#include "codegen/gpu/segments.h"
#include "codegen/llvm/emitter.h"
#include "codegen/llvm/machine.h"

namespace bendc::codegen {

MachinePtr device_machine(uint32_t arch, std::string& error) {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  MachinePtr out(new Machine);
  out->triple = "nvptx64-nvidia-cuda";
  out->cpu = fmt::format("sm_{}", arch);
  // Without a PTX version LLVM takes the lowest that has the processor: 6.0 for sm_70, but `activemask` came with 6.2 (CUDA 9.2).
  if (arch == 70) out->features = "+ptx62";
  out->optimize = 3;
  LLVMTargetRef target = nullptr;
  char* message = nullptr;
  if (LLVMGetTargetFromTriple(out->triple.c_str(), &target, &message)) {
    error = message;
    LLVMDisposeMessage(message);
    return nullptr;
  }
  out->target = LLVMCreateTargetMachine(target, out->triple.c_str(), out->cpu.c_str(), out->features.c_str(), LLVMCodeGenLevelAggressive, LLVMRelocDefault, LLVMCodeModelDefault);
  if (!out->target) error = "no code generator for " + out->triple;
  return out->target ? std::move(out) : nullptr;
}

IrModulePtr emit_device_module(const Machine& machine, const EmitOptions& options) {
  IrModulePtr out(new IrModule);
  out->module = std::make_unique<llvm::Module>("bend.device", out->context);
  set_target(*out->module, machine);
  EmitOptions device = options;
  device.target = TargetKind::Device;
  device.threads = false;
  (void)ModuleEmitter(options.gpu->device->module, *out->module, device).run_device();
  return out;
}

namespace {

bool selectable(llvm::Intrinsic::ID id) {
  switch (id) {
    case llvm::Intrinsic::sin: case llvm::Intrinsic::cos: case llvm::Intrinsic::exp: case llvm::Intrinsic::exp2: case llvm::Intrinsic::exp10: case llvm::Intrinsic::log:
    case llvm::Intrinsic::log2: case llvm::Intrinsic::log10: case llvm::Intrinsic::pow: case llvm::Intrinsic::powi: case llvm::Intrinsic::tan: case llvm::Intrinsic::tanh:
      return false;
    default: return true;   // an open list: LLVM's own
  }
}

}  // namespace

std::string check_device_ir(const IrModule& ir) {
  std::string complaint;
  std::map<const llvm::Function*, int> color;   // 1: open, 2: done
  // Depth first with an explicit stack of (function, its remaining callees).
  auto callees = [&](const llvm::Function& function) {
    std::vector<const llvm::Function*> out;
    for (const llvm::Instruction& inst : llvm::instructions(function)) {
      if (inst.getOpcode() == llvm::Instruction::FRem) complaint = fmt::format("frem in {}", function.getName().str());
      const auto* call = llvm::dyn_cast<llvm::CallBase>(&inst);
      if (!call || call->isInlineAsm()) continue;
      const llvm::Function* callee = call->getCalledFunction();
      if (!callee) {
        complaint = fmt::format("an indirect call in {}", function.getName().str());
        continue;
      }
      if (callee->isIntrinsic()) {
        if (!selectable(callee->getIntrinsicID())) complaint = fmt::format("{} in {}", callee->getName().str(), function.getName().str());
        continue;
      }
      // The device runtime's, found when the launch module is linked.
      if (callee->isDeclaration() && callee->getName().starts_with("__cudaCDP2")) continue;
      if (callee->isDeclaration()) complaint = fmt::format("{} called in {}", callee->getName().str(), function.getName().str());
      else out.push_back(callee);
    }
    return out;
  };
  for (const llvm::Function& root : *ir.module) {
    if (root.isDeclaration() || color[&root] != 0) continue;
    std::vector<std::pair<const llvm::Function*, std::vector<const llvm::Function*>>> stack;
    auto enter = [&](const llvm::Function* function) {
      color[function] = 1;
      stack.emplace_back(function, callees(*function));
    };
    enter(&root);
    while (!stack.empty()) {
      if (stack.back().second.empty()) {
        color[stack.back().first] = 2;
        stack.pop_back();
        continue;
      }
      const llvm::Function* next = stack.back().second.back();
      stack.back().second.pop_back();
      if (color[next] == 1) complaint = fmt::format("{} is recursive", next->getName().str());
      if (color[next] == 0) enter(next);
    }
  }
  return complaint;
}

}  // namespace bendc::codegen
