// Inside the back end: perfect trees as one grid (emit_grid.cpp, emit_offer.cpp, emit_climb.cpp), scans too (emit_scan_grid.cpp); values in all lanes (emit_lanes.cpp). In: the trees of the machine's plan. Out: what a tree's segment starts with,
// and the kernel bend_flat or its emulated twin.
#pragma once
#include "codegen/llvm/emitter.h"

namespace bendc {
struct PerfectTree;
struct ScanTree;
struct TreePlan;
struct MadeNodes;
}

namespace bendc::codegen {

class GridEmitter {
 public:
  explicit GridEmitter(ModuleEmitter& module) : m_(module) {}
  void offer(Builder& b, llvm::Value* worker, llvm::Value* state, flow::FuncId func);
  llvm::Function* kernel();      // null: the program has no perfect tree
  // The warp-tasks `number`, `number` + warps, .. of a group, by all lanes of a warp. Gives the first number beyond.
  [[nodiscard]] llvm::Value* share_of(Builder& b, llvm::Value* worker, llvm::Value* control, llvm::Value* group, llvm::Value* number, llvm::Value* warps);

 private:
  // A value in every lane of a warp.
  struct Lanes {
    llvm::SmallVector<llvm::Type*, 4> types;
    llvm::SmallVector<llvm::Value*, 4> places;
  };
  // A warp-task's surroundings.
  struct Work {
    const PerfectTree* tree;
    llvm::Value *worker, *control, *record;   // record: the group's
    llvm::Value *depth, *base;                // of the group
    Leaves params;                            // of the group
  };

  [[nodiscard]] bool gpu() const;
  [[nodiscard]] llvm::Value* field(Builder& b, llvm::Type* type, llvm::Value* control, size_t offset);
  Leaves loop(Builder& b, llvm::Value* count, const Leaves& carried, const std::function<Leaves(Builder&, llvm::Value*, const Leaves&)>& visit);
  void when(Builder& b, llvm::Value* condition, const std::function<void(Builder&)>& then);
  [[nodiscard]] Leaves call(Builder& b, llvm::Value* worker, flow::FuncId func, LeafSpan args);
  [[nodiscard]] Leaves call(Builder& b, llvm::Value* worker, llvm::Function* function, flow::FuncId func, LeafSpan args);   // a version of `func`
  [[nodiscard]] Lanes lanes_of(Builder& b, flow::TypeId type);
  [[nodiscard]] llvm::Value* place(Builder& b, const Lanes& lanes, size_t leaf, llvm::Value* lane);
  [[nodiscard]] Leaves get(Builder& b, const Lanes& lanes, llvm::Value* lane);
  void set(Builder& b, const Lanes& lanes, llvm::Value* lane, LeafSpan leaves);
  void each_lane(Builder& b, llvm::Value* count, const std::function<void(Builder&, llvm::Value*)>& body);
  void sync(Builder& b);
  [[nodiscard]] Leaves shuffle(Builder& b, const Lanes& from, llvm::Value* source, bool other);
  void look_for_failed(Builder& b);
  [[nodiscard]] Leaves walk(Builder& b, llvm::Value* worker, const PerfectTree& tree, const Leaves& args, llvm::Value* path, llvm::Value* steps);
  [[nodiscard]] Leaves walk_at_once(Builder& b, const PerfectTree& tree, const Leaves& args, llvm::Value* path, llvm::Value* steps);
  [[nodiscard]] llvm::Value* all_large(Builder& b, flow::TypeId type, const Lanes& values, llvm::Value* count);
  void retain_args(Builder& b, llvm::Value* worker, const PerfectTree& tree, const Leaves& args);
  void each_owned(const PerfectTree& tree, const std::function<void(flow::TypeId, size_t, size_t)>& visit);
  [[nodiscard]] size_t measure_leaf(const PerfectTree& tree);
  void combine(Builder& b, const Work& work, const Lanes& values, llvm::Value* first, llvm::Value* height, llvm::Value* steps);
  [[nodiscard]] llvm::Value* result_place(Builder& b, const Work& work, llvm::Value* slot);
  void go_on(Builder& b, const Work& work, llvm::Value* waiting);
  void give(Builder& b, const Work& work, llvm::Value* parent, flow::TypeId type, LeafSpan leaves);
  void give_whole(Builder& b, const Work& work, LeafSpan value);
  void keep_first(Builder& b, const Work& work, const Lanes& values, llvm::Value* number);
  void end_group(Builder& b, const Work& work, llvm::Value* done, llvm::Value* units, llvm::Value* has_value);
  void climb(Builder& b, const Work& work, const Lanes& values, llvm::Value* first, llvm::Value* height, llvm::Value* steps);
  using LeafCall = std::function<void(Builder&, llvm::Value* lane, llvm::Function*)>;
  void staged_leaves(Builder& b, const Work& work, const MadeNodes& nodes, llvm::Value* bits, const LeafCall& leaf, llvm::BasicBlock* otherwise, llvm::BasicBlock* made);
  llvm::Function* grid_function(const TreePlan& plan);
  llvm::Function* reserve_function();
  // Scans.
  struct Scan;
  llvm::Function* scan_function(const TreePlan& plan);
  [[nodiscard]] llvm::Value* blocks_fit(Builder& b, const ScanTree& scan, const Leaves& params, llvm::Value* depth);
  [[nodiscard]] llvm::Value* take_number(Builder& b, const Scan& scan);
  [[nodiscard]] llvm::Value* next_unit(Builder& b, const Scan& scan, llvm::Value* first, llvm::Value* done);
  [[nodiscard]] llvm::Value* before_lanes(Builder& b, const Work& work, const Scan& scan, llvm::Value* unit, const Lanes& values, const Lanes& before);
  struct Found {
    llvm::SmallVector<llvm::Value*, 4> words, there;
  };
  void publish(Builder& b, const Scan& scan, llvm::Value* place, llvm::Value* value, llvm::Value* whole);
  [[nodiscard]] Found wait_for(Builder& b, const Work& work, const Scan& scan, llvm::ArrayRef<llvm::Value*> places, llvm::ArrayRef<llvm::Value*> wanted, size_t wholes, llvm::Value* own,
                               const std::function<llvm::Value*(Builder&, const Found&)>& enough);
  // Blocks in shared memory (emit_scan_blocks.cpp): those of one warp-task.
  struct Kept {
    llvm::Value *fit, *log2;         // whether the blocks can be kept, the same for all warp-tasks; log2 of their slots, i32
    llvm::Value *area, *handle;      // of the warp; the array's
    llvm::Value* number;             // of the warp-task's first block
  };
  [[nodiscard]] Kept plan_kept(Builder& b, const ScanTree& scan, const Leaves& params, llvm::Value* bits);
  void each_size(Builder& b, const Kept& kept, const std::function<void(Builder&, uint32_t)>& visit);
  [[nodiscard]] llvm::Value* kept_handle(Builder& b, const Kept& kept, llvm::Value* lane, uint32_t log2);
  void fetch(Builder& b, const Kept& kept, uint32_t log2);
  void put_back(Builder& b, const Kept& kept, uint32_t log2);
  [[nodiscard]] llvm::Value* before_unit(Builder& b, const Work& work, const Scan& scan, llvm::Value* unit, llvm::Value* own);

  ModuleEmitter& m_;
  llvm::Value* lane_ = nullptr;            // on a device
  llvm::BasicBlock* gone_ = nullptr;       // where a warp goes that has nothing more to do
};

}  // namespace bendc::codegen
