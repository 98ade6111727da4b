// Inside the back end: the target machine behind codegen::Machine.
#pragma once
#include <llvm-c/TargetMachine.h>

#include <string>

#include "codegen/llvm/context.h"

namespace llvm {
class Module;
}

namespace bendc::codegen {

struct Machine {
  LLVMTargetMachineRef target = nullptr;
  std::string triple, cpu, features;
  int optimize = 2;
};

[[nodiscard]] CpuFeatures cpu_features(const Machine& machine);    // of a host's machine
void set_target(llvm::Module& module, const Machine& machine);   // triple, data layout, cpu attributes come from the machine

}  // namespace bendc::codegen
