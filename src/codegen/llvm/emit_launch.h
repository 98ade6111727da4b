// Inside the back end: forks as nested launches (runtime/gpu/launch_abi.h). In: the machine. Out: the kernel bend_children, or for the emulator
// the function that runs one task and says which children it leaves.
#pragma once
#include "codegen/llvm/emitter.h"

namespace bendc::codegen {

class LaunchEmitter {
 public:
  explicit LaunchEmitter(ModuleEmitter& module) : m_(module) {}
  llvm::Function* kernel(llvm::Function* machine);
  // (control, record, parallel, BendPending*)
  llvm::Function* emulated(llvm::Function* machine);

 private:
  // A thread's children, or count 0; where a refused launch leaves them.
  struct Children {
    llvm::Value *first, *count;
  };
  void open(Builder& b, llvm::Value* control);
  void take(Builder& b, llvm::Value* record, llvm::Value* parallel);
  [[nodiscard]] llvm::Value* pool_field(Builder& b, llvm::Type* type, size_t offset);
  [[nodiscard]] llvm::Value* record_at(Builder& b, llvm::Value* index);
  [[nodiscard]] llvm::Value* special(Builder& b, unsigned id);
  [[nodiscard]] llvm::Value* element(Builder& b, llvm::Value* launch, llvm::Value* parents, unsigned array, llvm::Value* index);
  [[nodiscard]] llvm::Value* own_record(Builder& b, llvm::Value* launch, llvm::Value* records, llvm::Value* count);
  [[nodiscard]] llvm::Value* start_grid(Builder& b, llvm::Value* blocks, llvm::Value* threads, llvm::Value* launch, llvm::Value* records, llvm::Value* count);
  [[nodiscard]] llvm::Value* launch_own(Builder& b, const Children& children);
  [[nodiscard]] llvm::Value* launch_aggregated(Builder& b, const Children& children, bool block);
  [[nodiscard]] llvm::Value* shuffle(Builder& b, llvm::Value* word, llvm::Value* lane);
  void meet(Builder& b, bool block);

  ModuleEmitter& m_;
  llvm::Function* kernel_ = nullptr;
  llvm::Value *control_ = nullptr, *pool_ = nullptr, *worker_ = nullptr, *state_ = nullptr;
};

}  // namespace bendc::codegen
