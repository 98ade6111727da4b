// Inside the back end: forks as nested launches (runtime/gpu/launch_abi.h). In: the machine. Out: the kernel bend_children, or for the emulator
// the functions that run one task, or a warp's share of one tree, and say which grid it leaves.
#pragma once
#include "codegen/llvm/emitter.h"

namespace bendc::codegen {

class LaunchEmitter {
 public:
  explicit LaunchEmitter(ModuleEmitter& module) : m_(module) {}
  llvm::Function* kernel(llvm::Function* machine);
  // (control, record, BendTaskMode, BendPending*)
  llvm::Function* emulated(llvm::Function* machine);
  // (control, group, number, warps, BendPending*); null: the program has no perfect tree
  llvm::Function* emulated_tree(llvm::Function* machine);

 private:
  // The grid that a thread's task has left: BendPending.
  struct Children {
    llvm::Value *first, *count, *tree;   // tree: i1
  };
  // A thread's place in the grid of its parent: thread `index` of `count`; `records`: of that grid.
  struct Place {
    llvm::Value *valid, *index, *count, *records;
  };
  // What the machine begins with: a task's record, or a frame or join that goes on; `segment_at`: where its segment is named. Null: nothing.
  struct Start {
    llvm::Value *record, *segment_at;
  };
  [[nodiscard]] bool has_trees() const;
  void open(Builder& b, llvm::Value* control);
  void take(Builder& b, const Start& start, llvm::Value* parallel);
  void hand_over(Builder& b, llvm::Value* pending);
  [[nodiscard]] llvm::Value* task_at(Builder& b, llvm::Value* records, llvm::Value* index);
  [[nodiscard]] Start start_of(Builder& b, const Place& place, llvm::Value* error, llvm::Value* count);
  [[nodiscard]] llvm::Value* pool_field(Builder& b, llvm::Type* type, size_t offset);
  [[nodiscard]] llvm::Value* record_at(Builder& b, llvm::Value* index);
  [[nodiscard]] llvm::Value* special(Builder& b, unsigned id);
  [[nodiscard]] llvm::Value* element(Builder& b, llvm::Value* launch, llvm::Value* parents, unsigned array, llvm::Value* index);
  [[nodiscard]] Place own_place(Builder& b, llvm::Value* launch, llvm::Value* records, llvm::Value* count);
  [[nodiscard]] llvm::Value* start_grid(Builder& b, llvm::Value* blocks, llvm::Value* threads, llvm::Value* launch, llvm::Value* records, llvm::Value* count);
  [[nodiscard]] llvm::Value* launch_own(Builder& b, const Children& children);
  [[nodiscard]] llvm::Value* launch_aggregated(Builder& b, const Children& children, bool block, bool trees);
  [[nodiscard]] llvm::Value* launch_both(Builder& b, const Children& children, bool block);
  [[nodiscard]] llvm::Value* shuffle(Builder& b, llvm::Value* word, llvm::Value* lane);
  void meet(Builder& b, bool block);

  ModuleEmitter& m_;
  llvm::Function* kernel_ = nullptr;
  llvm::Value *control_ = nullptr, *pool_ = nullptr, *worker_ = nullptr, *state_ = nullptr, *goes_on_ = nullptr, *budget_ = nullptr;
};

}  // namespace bendc::codegen
