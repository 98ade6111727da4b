// Inside the back end: Flow -> LLVM IR. A Flow value is a list of scalar LLVM values, its leaves (memory_layout.h), so that records and
// sums live in registers and join points get scalar phis. All memory of the heap is touched through ModuleEmitter's heap functions
// (heap.cpp, counts.cpp, arrays.cpp), which is where a device target differs from the host.
#pragma once
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "codegen/cpu/crossing.h"
#include "codegen/cpu/small_forks.h"
#include "codegen/flow.h"
#include "codegen/llvm/context.h"
#include "codegen/memory_layout.h"
#include "codegen/objects.h"
#include "runtime/abi.h"

namespace bendc {
struct Cut;
struct Segment;
}

namespace bendc::codegen {

using Leaves = llvm::SmallVector<llvm::Value*, 4>;
using LeafSpan = llvm::ArrayRef<llvm::Value*>;
using Builder = llvm::IRBuilder<>;

struct IrModule {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
  std::vector<flow::FuncId> too_large;   // that optimize_module left alone
};

enum class Rt : uint8_t {
#define BENDC_RT(name, result, args) name,
#include "runtime/abi.def"
#undef BENDC_RT
};

// Functions on a cycle of tail calls run in constant stack: they use the tail-call convention and `musttail` among themselves.
struct TailGroups {
  std::vector<uint32_t> group;     // by function; the last entry stands for "any closure"
  std::vector<bool> cyclic;        // by function, same indexing
};
[[nodiscard]] TailGroups find_tail_groups(const flow::Module& module);
// The closure application `let x = apply ..; ret x` in tail position.
[[nodiscard]] bool is_tail_apply(const flow::Module& module, const flow::Node& node);

// The mark that makes a call in tail position, from `caller` to a function of type `callee`, both of the tail-call convention, take no
// stack. `musttail` says so to every pass, but LLVM 22 loses stack arguments of such calls (`tail` moves them rightly); so it is used
// only where both sides' arguments fit registers.
[[nodiscard]] llvm::CallInst::TailCallKind guaranteed_tail(const llvm::Function& caller, const llvm::FunctionType& callee);

// Memory of an opened node that a constructor takes over, and what of it stays as it is: the node was the only reference's, so its count is 1.
struct Reuse {
  llvm::Value* token = nullptr;      // its address, or null
  bool certain = false;              // never null
  bool same_header = false;          // count and constructor index are there already
  std::vector<bool> kept;            // by field: the opened node's own value
};

class ModuleEmitter {
 public:
  ModuleEmitter(const flow::Module& module, llvm::Module& ir, const EmitOptions& options);
  void run();

  // --- types (types.cpp) ---
  [[nodiscard]] llvm::Type* leaf_type(flow::LeafKind kind) const;
  [[nodiscard]] bool returns_indirect(flow::TypeId type);   // through an out pointer: more leaves than return registers
  [[nodiscard]] llvm::Type* return_type(flow::TypeId type);
  // worker, out pointer if indirect, leaves of `params` (after `leading` fixed parameters)
  [[nodiscard]] llvm::FunctionType* function_type(llvm::ArrayRef<llvm::Type*> leading, llvm::ArrayRef<flow::TypeId> params, flow::TypeId result);
  [[nodiscard]] llvm::FunctionType* code_type(flow::TypeId fn);    // of a closure's code: worker, out?, object, argument leaves
  // Exclusive upper bound of each leaf's values, 0 when none is known.
  [[nodiscard]] std::vector<uint64_t> leaf_limits(flow::TypeId type);
  [[nodiscard]] Leaves split_result(Builder& b, llvm::Value* result, flow::TypeId type);
  [[nodiscard]] llvm::Value* join_result(Builder& b, LeafSpan leaves, flow::TypeId type);
  // A leaf as another machine kind: same bits, zero-extended or truncated.
  [[nodiscard]] llvm::Value* cast_leaf(Builder& b, llvm::Value* value, flow::LeafKind to);

  // --- memory (heap.cpp) ---
  enum class Region : uint8_t { Worker, Node, ArrayHeader, ArrayI32, ArrayF32, ArrayI64, Frame };
  llvm::Value* load(Builder& b, llvm::Type* type, llvm::Value* base, uint32_t offset, Region region, uint64_t limit = 0);
  void store(Builder& b, llvm::Value* value, llvm::Value* base, uint32_t offset, Region region);
  [[nodiscard]] Leaves load_value(Builder& b, flow::TypeId type, llvm::Value* base, uint32_t offset, bool array_slot);
  void store_value(Builder& b, flow::TypeId type, LeafSpan leaves, llvm::Value* base, uint32_t offset, bool array_slot);
  [[nodiscard]] Leaves load_frame(Builder& b, flow::TypeId type, llvm::Value* base);
  void store_frame(Builder& b, flow::TypeId type, LeafSpan leaves, llvm::Value* base);
  [[nodiscard]] llvm::Value* alloc(Builder& b, llvm::Value* worker, uint32_t bytes);
  void free(Builder& b, llvm::Value* worker, llvm::Value* node, uint32_t bytes);
  // Of a node whose fields have been taken out.
  void free_node(Builder& b, llvm::Value* worker, llvm::Value* node, uint32_t bytes) {
    if (!frees_off_) free(b, worker, node, bytes);
  }
  llvm::CallInst* call_runtime(Builder& b, Rt function, llvm::ArrayRef<llvm::Value*> args);
  void fail(Builder& b, llvm::Value* worker, uint32_t error, const std::string& site);   // ends the block

  // --- F32 functions (math.cpp) ---
  [[nodiscard]] llvm::Value* f32_function(Builder& b, flow::Prim prim, llvm::ArrayRef<llvm::Value*> args);

  // --- references, objects (refs.cpp) ---
  [[nodiscard]] llvm::Value* ref_address(Builder& b, llvm::Value* word, flow::DataId data, uint32_t ctor);
  [[nodiscard]] llvm::Value* ref_address(Builder& b, llvm::Value* word, flow::DataId data);
  [[nodiscard]] llvm::Value* ref_ctor(Builder& b, llvm::Value* word, flow::DataId data);            // i32 index
  [[nodiscard]] llvm::Value* ref_is_node(Builder& b, llvm::Value* word, flow::DataId data);         // i1, or null: always
  [[nodiscard]] Leaves ref_field(Builder& b, llvm::Value* word, flow::DataId data, uint32_t ctor, uint32_t field);
  [[nodiscard]] llvm::Value* construct(Builder& b, llvm::Value* worker, flow::DataId data, uint32_t ctor, llvm::ArrayRef<Leaves> fields, const Reuse* reuse);
  [[nodiscard]] llvm::Value* new_object(Builder& b, llvm::Value* worker, uint32_t id, llvm::ArrayRef<flow::TypeId> types, llvm::ArrayRef<Leaves> fields);
  [[nodiscard]] Leaves apply(Builder& b, llvm::Value* worker, llvm::Value* closure, LeafSpan argument, flow::TypeId fn, llvm::Value* frame, bool must_tail);

  // --- counts (counts.cpp) ---
  void retain(Builder& b, llvm::Value* worker, flow::TypeId type, LeafSpan leaves, llvm::Value* amount);
  void release(Builder& b, llvm::Value* worker, flow::TypeId type, LeafSpan leaves);
  // Opening a shared node: one more reference to each field, one less to the node.
  void keep_fields(Builder& b, llvm::Value* worker, flow::TypeId type, llvm::Value* word, uint32_t ctor);
  [[nodiscard]] llvm::Value* is_unique(Builder& b, llvm::Value* node, bool crosses);
  [[nodiscard]] bool counts_matter(flow::DataId data);        // some constructor is a node
  [[nodiscard]] bool crosses(flow::DataId data) const { return options.threads && crossing.datas[data.index]; }
  [[nodiscard]] bool objects_cross() const { return options.threads && crossing.objects; }
  [[nodiscard]] bool crosses(flow::TypeId type) const { return options.threads && crossing.types[type.index]; }

  // --- forks (emit_fork.cpp) ---
  [[nodiscard]] llvm::LoadInst* load_shared(Builder& b, llvm::Type* type, llvm::Value* base, uint32_t offset, llvm::AtomicOrdering order);
  void store_tail(Builder& b, llvm::Value* worker, llvm::Value* tail, llvm::AtomicOrdering order);
  [[nodiscard]] uint32_t task_bytes(flow::FuncId callee);      // arguments or result
  [[nodiscard]] llvm::Function* task_function(flow::FuncId callee);

  // --- tables (tables.cpp) ---
  [[nodiscard]] llvm::Constant* layout_info(flow::TypeId type);
  [[nodiscard]] llvm::Constant* data_info(flow::DataId data);
  [[nodiscard]] uint32_t closure_id(flow::FuncId func, uint32_t captures);
  [[nodiscard]] llvm::Constant* closure_instance(flow::FuncId func);          // of a closure without captures
  [[nodiscard]] uint32_t box_id(flow::TypeId type);
  [[nodiscard]] uint32_t request_id(flow::EffectId effect, flow::TypeId continuation);
  [[nodiscard]] llvm::Constant* text(const std::string& bytes);               // zero-terminated
  [[nodiscard]] llvm::Constant* objects_table() { return objects_; }

  // --- string constants (static_strings.cpp) ---
  [[nodiscard]] llvm::Constant* string_word(uint32_t index);                  // a static String as an i64 constant
  void fill_strings(Builder& b, llvm::Value* worker);                         // at the start of the program

  // `sequential`: the clone that runs forks in order; the same function when it reaches none.
  [[nodiscard]] llvm::Function* function(flow::FuncId id, bool sequential = false) {
    if (staging_ > 0) return staged_function(id);
    if (keeping_) return kept_function(id);
    return sequential && sequential_[id.index] ? sequential_[id.index] : functions_[id.index];
  }
  [[nodiscard]] std::string site(flow::FuncId func, Span span) const;
  [[nodiscard]] llvm::BasicBlock* block(Builder& b, const char* name);
  [[nodiscard]] llvm::MDNode* unlikely() { return unlikely_; }
  // An internal helper function, built on first use.
  llvm::Function* helper(const std::string& name, llvm::FunctionType* type, const std::function<void(llvm::Function*, Builder&)>& build);
  void mark_function(llvm::Function* function);
  void mark_worker(llvm::Function* function);
  void mark_limits(llvm::Function* function, uint32_t first, flow::TypeId type);

  struct DeviceFunctions {
    llvm::Function* round = nullptr;             // kernel or emulated; null in a launch module
    llvm::Function* task = nullptr;              // emulated, for nested launches
    llvm::Function* flat = nullptr;              // null without perfect trees
    llvm::Function* step = nullptr;
    llvm::Function* tree = nullptr;              // emulated, for trees that are nested launches
  };
  // --- `!` on the host (gpu_tables.cpp) ---
  [[nodiscard]] llvm::Constant* gpu_entry(flow::FuncId func);
  [[nodiscard]] llvm::Constant* gpu_program(DeviceFunctions emulated);

  // --- devices: memory and errors (device_heap.cpp). `worker` points to the record of device.h there ---
  [[nodiscard]] bool on_device() const { return options.target != TargetKind::Host; }
  [[nodiscard]] llvm::Value* device_control(Builder& b, llvm::Value* worker);
  [[nodiscard]] llvm::Value* device_alloc(Builder& b, llvm::Value* worker, uint32_t bytes);
  void device_free(Builder& b, llvm::Value* worker, llvm::Value* node, uint32_t bytes);
  void device_fail(Builder& b, llvm::Value* worker, llvm::Value* error, llvm::Value* site);   // ends the block
  [[nodiscard]] llvm::Value* device_list(Builder& b, llvm::Value* worker, llvm::Value* bytes);
  [[nodiscard]] llvm::Value* site_number(const std::string& site);
  llvm::Value* device_add(Builder& b, llvm::Value* address, llvm::Value* amount);             // relaxed; the value before
  void device_fence(Builder& b);
  llvm::Value* device_add_f32(Builder& b, llvm::Value* address, llvm::Value* amount);
  void device_retain(Builder& b, llvm::Value* node, llvm::Value* amount);
  [[nodiscard]] llvm::Function* device_release_ref(flow::TypeId type);
  [[nodiscard]] llvm::Value* device_string(Builder& b, llvm::Value* worker, uint32_t index);
  // --- devices: arrays (device_array.cpp) ---
  void device_retain_array(Builder& b, flow::TypeId element, llvm::Value* word, llvm::Value* amount);
  void device_release_array(Builder& b, llvm::Value* worker, flow::TypeId element, llvm::Value* word);
  void device_skip_zeros(Builder& b, llvm::Value* worker, llvm::Value* word, flow::TypeId element, LeafSpan value, llvm::BasicBlock* done);
  [[nodiscard]] llvm::Value* device_array_alloc(Builder& b, llvm::Value* worker, llvm::Value* depth, flow::TypeId element, const std::string& site);
  [[nodiscard]] llvm::Value* device_array_clone(Builder& b, llvm::Value* worker, llvm::Value* word, flow::TypeId element);
  void device_array_consumed(Builder& b, llvm::Value* worker, llvm::Value* word, flow::TypeId element);
  [[nodiscard]] Leaves device_array_split(Builder& b, llvm::Value* worker, llvm::Value* word, flow::TypeId element, const std::string& site);
  [[nodiscard]] llvm::Value* device_array_node(Builder& b, llvm::Value* worker, llvm::Value* low, llvm::Value* high, flow::TypeId element, const std::string& site);
  // --- devices: nodes made in shared memory (emit_stage.cpp) ---
  [[nodiscard]] llvm::Function* staged_leaf(flow::FuncId id, uint32_t bytes);
  [[nodiscard]] llvm::Value* stage_node(Builder& b, llvm::Value* worker, uint32_t bytes, llvm::Value*& lasting);
  [[nodiscard]] llvm::Value* stage_of(Builder& b, llvm::Value* thread, uint32_t bytes);
  // --- devices: blocks of arrays in shared memory (emit_scan_blocks.cpp) ---
  [[nodiscard]] llvm::Function* kept_leaf(flow::FuncId id);
  [[nodiscard]] llvm::Value* kept_handle(Builder& b, llvm::Value* handle, llvm::Value* block, llvm::Value* first);
  [[nodiscard]] llvm::Value* kept_slot(Builder& b, llvm::Value* handle, llvm::Value* index);
  // --- devices: the machine (emit_machine.cpp, emit_segment.cpp) ---
  DeviceFunctions run_device();
  // Where kernels overlap, waits for the one ahead; `starts_next`: the one behind may take its places before this one ends. Blocks that come while others
  // still hold their places crowd on few multiprocessors, so bend_flat is not started so, nor bend_round before bend_flip runs.
  void begin_kernel(Builder& b, bool starts_next);
  // The thread's BendDeviceThread, from memory, into a worker record of its own, and back. `records`: the control block's word `threads`.
  struct ThreadRecord {
    llvm::Value *place, *bump, *limit;
  };
  [[nodiscard]] ThreadRecord load_thread_record(Builder& b, llvm::Value* records, llvm::Value* thread);
  [[nodiscard]] llvm::Value* open_device_thread(Builder& b, llvm::Value* control, const ThreadRecord& own);
  [[nodiscard]] uint32_t device_record_shift() const;
  void close_device_thread(Builder& b, llvm::Value* worker, llvm::Value* place);
  [[nodiscard]] bool is_async(flow::FuncId id) const;
  [[nodiscard]] llvm::FunctionType* segment_type();
  [[nodiscard]] llvm::Function* declare_segment(flow::FuncId id);
  [[nodiscard]] llvm::StructType* state_type();
  [[nodiscard]] llvm::Value* get_state(Builder& b, llvm::Value* state, unsigned field);
  void set_state(Builder& b, llvm::Value* state, unsigned field, llvm::Value* value);
  void set_words(Builder& b, llvm::Value* state, LeafSpan leaves);
  [[nodiscard]] Leaves get_words(Builder& b, llvm::Value* state, llvm::ArrayRef<flow::TypeId> types);
  // Records of the stack of frames, where words may lie apart, and others.
  enum class Place : uint8_t { Memory, Stack };
  [[nodiscard]] Leaves load_record(Builder& b, llvm::ArrayRef<flow::TypeId> types, const flow::FieldsLayout& layout, llvm::Value* record, Place place = Place::Memory);
  void store_field(Builder& b, flow::TypeId type, LeafSpan leaves, llvm::Value* record, uint32_t offset, Place place = Place::Memory);
  [[nodiscard]] llvm::Value* device_append(Builder& b, llvm::Value* cursor, uint32_t count);   // position of `count` places behind the atomic `cursor`
  // Where the children of a parallel fork go: to OUT, or to the pool of nested launches.
  struct ChildQueue {
    llvm::Value *cursor, *records, *capacity;
    llvm::Value* nested;                         // i1; null: the code has no nested launches
  };
  [[nodiscard]] ChildQueue round_queue(Builder& b, llvm::Value* control);
  [[nodiscard]] ChildQueue child_queue(Builder& b, llvm::Value* worker, llvm::Value* control);
  void count_refused(Builder& b, llvm::Value* control, llvm::Value* nested);
  // A place in the pool of nested launches for a tree of `units` warp-tasks.
  struct TreePlace {
    llvm::Value* found;                          // i1
    llvm::Value *first, *record, *base;          // its number in the pool, the group, the number of its first result
  };
  [[nodiscard]] TreePlace nested_tree(Builder& b, llvm::Value* worker, llvm::Value* control, llvm::Value* units);
  void leave_pending(Builder& b, llvm::Value* state, llvm::Value* first, llvm::Value* count, bool tree);
  void store_record(Builder& b, llvm::ArrayRef<flow::TypeId> types, const flow::FieldsLayout& layout, LeafSpan leaves, llvm::Value* record, Place place = Place::Memory);
  void next_segment(Builder& b, llvm::Value* state, uint32_t segment);
  void machine_return(Builder& b, llvm::Value* state, LeafSpan leaves);
  // --- devices: a thread's stack of frames, and tasks (emit_stack.cpp, emit_deal.cpp, emit_task.cpp, emit_join.cpp) ---
  void open_stack(Builder& b, llvm::Value* state);
  void empty_stack(Builder& b, llvm::Value* state, flow::TypeId returns);
  [[nodiscard]] llvm::Value* stack_place(Builder& b, llvm::Value* state, llvm::Value* offset);
  [[nodiscard]] llvm::Value* push_frame(Builder& b, llvm::Value* worker, llvm::Value* state, uint32_t bytes, flow::TypeId returns);
  [[nodiscard]] llvm::Value* deal_stack(Builder& b, llvm::Value* worker, llvm::Value* state);
  void thin_stack(Builder& b, llvm::Value* worker, llvm::Value* state, llvm::BasicBlock* few);
  void ask_for_tasks(Builder& b, llvm::Value* worker, llvm::Value* state, llvm::Value* heavy, llvm::BasicBlock* parallel, llvm::BasicBlock* sequential);
  struct Places {                                // of tasks
    ChildQueue queue;
    llvm::Value* first;
  };
  [[nodiscard]] Places reserve_tasks(Builder& b, llvm::Value* worker, llvm::Value* control, uint32_t count, llvm::BasicBlock* append, llvm::BasicBlock* overflow);
  void mark_empty(Builder& b, const Places& places, uint32_t count);
  [[nodiscard]] std::vector<flow::TypeId> late_types(const Cut& cut, uint32_t child) const;
  [[nodiscard]] llvm::Value* task_place(Builder& b, const Places& places, uint32_t index);
  [[nodiscard]] llvm::Value* parent_word(Builder& b, llvm::Value* address, const Cut& cut, uint32_t child);
  void store_task(Builder& b, llvm::Value* task, flow::FuncId func, llvm::Value* parent, llvm::Value* levels, LeafSpan args);
  [[nodiscard]] llvm::Value* is_spent(Builder& b, llvm::Value* state);
  [[nodiscard]] bool tasks_on_request() const;
  [[nodiscard]] llvm::Value* are_tasks_taken(Builder& b, llvm::Value* worker);
  void set_levels(Builder& b, llvm::Value* worker, llvm::Value* state, llvm::Value* levels, bool begins);
  [[nodiscard]] llvm::Value* join_count(Builder& b, uint32_t children, llvm::Value* levels);
  [[nodiscard]] llvm::Value* is_last(Builder& b, llvm::Value* remaining);
  [[nodiscard]] llvm::Value* relayed(Builder& b, llvm::Value* worker, llvm::Value* parent, flow::TypeId type);
  [[nodiscard]] llvm::Value* keep_stack(Builder& b, llvm::Value* worker, llvm::Value* state, flow::TypeId type);

  const flow::Module& flow;
  flow::Layouts layouts;
  llvm::Module& ir;
  llvm::LLVMContext& context;
  const EmitOptions& options;
  TailGroups tails;
  flow::Crossing crossing;
  std::vector<flow::SmallFork> small_forks;
  uint32_t fork_sites = 0;                     // forks that may make tasks
  std::vector<Leaves> values;                  // by VarId: variables are bound once in the whole module
  llvm::Type *i1, *i8, *i32, *i64, *f32, *ptr, *void_type;

 private:
  friend class GridEmitter;
  struct Object {
    uint32_t kind = 0;
    llvm::Constant* layout = nullptr;
    llvm::Constant *code = nullptr, *handler = nullptr, *resume = nullptr;
    uint32_t answer_size = 0, answer_align = 0;
    std::string name;
    llvm::Constant* instance = nullptr;
  };
  struct PlacedSlot {
    uint32_t offset, kind;
    llvm::Constant* info;
  };
  void declare_functions();
  void emit_entry();
  [[nodiscard]] llvm::Constant* constant(llvm::StructType* type, llvm::ArrayRef<llvm::Constant*> fields);
  [[nodiscard]] llvm::Constant* global(llvm::Constant* value, const llvm::Twine& name);
  void collect_slots(flow::TypeId type, llvm::ArrayRef<uint32_t> leaf_offsets, uint32_t base, std::vector<PlacedSlot>& out);
  [[nodiscard]] llvm::Constant* sum_info(flow::TypeId type, llvm::ArrayRef<uint32_t> leaf_offsets);
  [[nodiscard]] llvm::Constant* layout_constant(uint32_t size, uint32_t words_log2, const std::vector<PlacedSlot>& slots);
  [[nodiscard]] llvm::Constant* fields_layout(const flow::FieldsLayout& layout, llvm::ArrayRef<flow::TypeId> types);
  [[nodiscard]] llvm::Constant* object_layout(llvm::ArrayRef<flow::TypeId> types);
  llvm::Function* emit_code(flow::FuncId func, uint32_t captures);
  llvm::Function* emit_resume(flow::EffectId effect, flow::TypeId continuation);
  [[nodiscard]] llvm::Constant* number(uint64_t value) const { return llvm::ConstantInt::get(i32, value); }
  llvm::Function* retain_helper(flow::TypeId type);
  llvm::Function* release_helper(flow::TypeId type);
  void each_counted_field(Builder& b, flow::TypeId sum, LeafSpan leaves, llvm::function_ref<void(flow::TypeId, LeafSpan)> visit);
  // --- drops by type (drop.cpp) ---
  [[nodiscard]] bool reaches(flow::TypeId from, flow::DataId target);
  [[nodiscard]] bool drops_directly(flow::DataId data);
  void drop_last(Builder& b, llvm::Value* worker, flow::TypeId type, llvm::Value* word);
  void count_down(Builder& b, llvm::Value* worker, llvm::Value* node, bool crosses, llvm::BasicBlock* last, llvm::BasicBlock* done);   // ends the block
  [[nodiscard]] llvm::Function* drop_helper(flow::TypeId type);
  void release_array(Builder& b, llvm::Value* worker, flow::TypeId array, llvm::Value* word);
  void retain_node(Builder& b, llvm::Value* worker, llvm::Value* node, llvm::Value* amount, bool crosses);
  // Two ways to change a count, chosen by BendWorker.atomic when the value may cross to other workers; `plain` and `locked` end in `next`.
  void by_workers(Builder& b, llvm::Value* worker, bool crosses, const std::function<void()>& locked, const std::function<void()>& plain);
  llvm::Function* declare_function(flow::FuncId id, const char* suffix);

  [[nodiscard]] llvm::Constant* params_layout(flow::FuncId func, bool owned_only);
  [[nodiscard]] llvm::Constant* gpu_entries();
  [[nodiscard]] llvm::SyncScope::ID device_scope();
  [[nodiscard]] llvm::Function* device_refill();
  [[nodiscard]] llvm::Function* device_alloc_bytes();
  [[nodiscard]] llvm::Function* device_drop_fields();
  void build_device_alloc(llvm::Function* fn, Builder& body, llvm::Value* bytes, bool small_only);
  void device_push(Builder& b, llvm::Value* worker, llvm::Value* node, llvm::Value* bytes, uint32_t kind);
  void device_count_down(Builder& b, llvm::Value* header, llvm::BasicBlock* last, llvm::BasicBlock* done);
  [[nodiscard]] uint32_t device_kind(flow::DataId data, uint32_t ctor);
  void finish_device_heap();
  [[nodiscard]] llvm::Value* device_block(Builder& b, llvm::Value* word);
  [[nodiscard]] llvm::Value* device_is_uncounted(Builder& b, flow::TypeId element, llvm::Value* word);
  [[nodiscard]] llvm::Value* device_block_bytes(Builder& b, flow::TypeId element, llvm::Value* log2);
  void device_loop(Builder& b, llvm::Value* count, const std::function<void(Builder&, llvm::Value*)>& visit);
  [[nodiscard]] llvm::Value* device_slot(Builder& b, flow::TypeId element, llvm::Value* block_address, llvm::Value* index);
  [[nodiscard]] llvm::Value* device_slots(Builder& b, llvm::Value* word);
  void device_copy_slots(Builder& b, flow::TypeId element, llvm::Value* from, llvm::Value* first, llvm::Value* to, llvm::Value* to_first, llvm::Value* count);
  void device_retain_slots(Builder& b, llvm::Value* worker, flow::TypeId element, llvm::Value* block_address, llvm::Value* count);
  [[nodiscard]] llvm::Function* device_new_block(flow::TypeId element);
  void device_free_block(Builder& b, llvm::Value* worker, flow::TypeId element, llvm::Value* word);
  [[nodiscard]] llvm::Value* state_field(Builder& b, llvm::Value* state, unsigned field);
  void emit_call_segment(Builder& b, llvm::Value* worker, llvm::Value* state, flow::FuncId func);
  void emit_small_segment(Builder& b, llvm::Value* worker, llvm::Value* state, const Segment& segment);
  [[nodiscard]] llvm::Value* move_stack(Builder& b, llvm::Function* function, llvm::Value* worker, llvm::Value* state);
  [[nodiscard]] llvm::Function* spill_stack_function();
  [[nodiscard]] llvm::Function* deal_stack_function();
  [[nodiscard]] ChildQueue reserve_for_stack(Builder& b, llvm::Value* worker, llvm::Value* stack, llvm::Value* top, llvm::Value* next, llvm::BasicBlock* room, llvm::BasicBlock* full);
  void each_frame(Builder& b, llvm::Value* stack, llvm::Value* from, const std::function<void(llvm::Value*, llvm::Value*)>& visit);
  void switch_waiting(Builder& b, llvm::Value* header, llvm::BasicBlock* none, const std::function<void(const Cut&, uint32_t)>& visit);
  [[nodiscard]] llvm::Value* spill_frame(Builder& b, llvm::Value* worker, llvm::Value* header, llvm::Value* frame, llvm::Value* place);
  [[nodiscard]] llvm::Value* deal_frame(Builder& b, llvm::Value* worker, const Cut& cut, uint32_t child, llvm::Value* frame, llvm::Value* place, const Places& tasks, llvm::Value* levels);
  struct OpenSum {                               // the join that sums up what is dealt out, and its place in parent words
    llvm::Value *join, *place;
  };
  void deal_into_sum(Builder& b, llvm::Value* worker, const Cut& cut, uint32_t child, llvm::Value* frame, llvm::Value* place, const Places& tasks, llvm::Value* levels, OpenSum open);
  [[nodiscard]] llvm::Value* make_sum(Builder& b, llvm::Value* worker, const Cut& cut, uint32_t children, llvm::Value* levels);
  [[nodiscard]] llvm::Value* sum_word(Builder& b, llvm::Value* address, const Cut& cut);
  void add_to_sum(Builder& b, llvm::Value* record, llvm::Value* place, llvm::Value* value, llvm::BasicBlock* last, llvm::BasicBlock* over);
  void arrive(Builder& b, llvm::Value* record, llvm::BasicBlock* last, llvm::BasicBlock* over);   // ends the block
  void copy_words(Builder& b, llvm::Value* to, Place to_place, llvm::Value* from, Place from_place, llvm::Value* words);
  [[nodiscard]] uint32_t shared_stack_bytes() const;
  [[nodiscard]] uint32_t stack_bytes() const;
  [[nodiscard]] uint32_t stack_shift() const;
  [[nodiscard]] uint32_t place_of(uint32_t offset, Place place) const;
  [[nodiscard]] llvm::Value* stack_at(Builder& b, llvm::Value* stack, llvm::Value* offset);
  [[nodiscard]] llvm::Function* thin_stack_function();
  [[nodiscard]] llvm::Value* device_arrive(Builder& b, llvm::Value* counter, llvm::Value* change);
  void emit_next_child(Builder& b, llvm::Value* state, const Cut& cut, uint32_t child);
  void emit_resume_frame(Builder& b, llvm::Value* state, const Cut& cut);
  void emit_resume_join(Builder& b, llvm::Value* worker, llvm::Value* state, const Cut& cut, llvm::Value* join);
  void emit_out(Builder& b, llvm::Value* worker, llvm::Value* state, flow::TypeId type);
  void emit_relay(Builder& b, llvm::Value* worker, llvm::Value* state, flow::TypeId type, llvm::Value* join);
  [[nodiscard]] uint32_t relay_bytes(flow::TypeId type);
  void emit_kept(Builder& b, llvm::Value* worker, llvm::Value* state, flow::TypeId type, llvm::Value* join);
  [[nodiscard]] llvm::Function* keep_stack_function(flow::TypeId type);
  [[nodiscard]] bool has_spare() const;
  [[nodiscard]] llvm::Value* alloc_kept(Builder& b, llvm::Value* worker, llvm::Value* bytes);
  void give_up_spare(Builder& b, llvm::Value* worker);
  [[nodiscard]] uint32_t most_kept_words(flow::TypeId type);
  void copy_at_once(Builder& b, llvm::Value* to, Place to_place, llvm::Value* from, Place from_place, llvm::Value* all, uint32_t most);
  [[nodiscard]] llvm::Value* kept_bytes(Builder& b, flow::TypeId type, llvm::Value* words);
  [[nodiscard]] llvm::Function* staged_function(flow::FuncId id);
  [[nodiscard]] llvm::Function* kept_function(flow::FuncId id);
  friend class LaunchEmitter;
  friend class FuncEmitter;
  llvm::Function* emit_machine(bool all);
  void take_next_task(Builder& b, llvm::Value* worker, llvm::Value* state, llvm::BasicBlock* none);
  void begin_task(Builder& b, llvm::Value* worker, llvm::Value* state, llvm::Value* index);
  // A word of the control block that is loaded where it stands: LLVM moves loads to where they are used, behind others that are waited for.
  [[nodiscard]] llvm::Value* load_early(Builder& b, llvm::Type* type, llvm::Value* base, size_t offset);
  // `count` neighbouring words of such a block, by one load: two of 64 bits or two or four of 32, at a multiple of their size.
  [[nodiscard]] Leaves load_early(Builder& b, llvm::Type* type, llvm::Value* base, size_t offset, uint32_t count);
  [[nodiscard]] llvm::Value* taken_counter(Builder& b, llvm::Value* worker);
  [[nodiscard]] llvm::Value* control_field(Builder& b, llvm::Type* type, llvm::Value* control, size_t offset);
  [[nodiscard]] llvm::Value* load_relaxed(Builder& b, llvm::Type* type, llvm::Value* base, size_t offset);
  llvm::Function* emit_round();
  // What a thread with a task begins a round with.
  struct RoundStart {
    llvm::Value *index, *stride, *end;            // of the tasks that it can take (emit_rounds.cpp)
    llvm::Value *mode, *budget;
    ThreadRecord own;
    llvm::Value *task, *head[2], *resumes;        // the first task's record, or a join to go on with, where `resumes`, and its head
  };
  [[nodiscard]] RoundStart begin_wide(Builder& b, llvm::Value* control, llvm::Value* thread, llvm::Value* threads, llvm::BasicBlock* none);
  [[nodiscard]] llvm::Function* step_function();
  [[nodiscard]] llvm::Value* step_start(Builder& b, unsigned field);
  [[nodiscard]] RoundStart begin_step(Builder& b, llvm::Value* control, llvm::Value* way, llvm::BasicBlock* none);
  void begin_first_task(Builder& b, llvm::Value* worker, llvm::Value* state, const RoundStart& start);
  void count_round(Builder& b, llvm::Value* control, llvm::Value* in_count, llvm::Value* next, llvm::Value* groups);
  void prefetch(Builder& b, llvm::Value* address, uint32_t offset);
  void prefetch_record(Builder& b, llvm::Value* record);

  std::map<std::pair<uint32_t, uint32_t>, uint32_t> device_kinds_;   // by data and constructor
  std::vector<std::pair<flow::DataId, uint32_t>> device_kind_list_;
  llvm::Function* device_drop_fields_ = nullptr;
  llvm::StructType* state_type_ = nullptr;
  llvm::Function* step_ = nullptr;
  bool frees_off_ = false;                     // while functions are emitted whose dead nodes' memory nobody takes again
  bool counts_off_ = false;                    // while functions are emitted whose callers keep the counts of what they pass through
  llvm::GlobalVariable *gpu_entries_ = nullptr, *taken_ = nullptr, *stage_ = nullptr, *step_start_ = nullptr;
  uint32_t staging_ = 0;                       // while versions of functions are emitted whose nodes are staged: the bytes of a leaf's nodes
  std::map<std::pair<uint32_t, uint32_t>, llvm::Function*> staged_;   // by function and those bytes
  bool keeping_ = false;                       // while versions of functions are emitted whose array accesses go to shared memory
  std::map<uint32_t, llvm::Function*> kept_;   // by function
  std::vector<llvm::Function*> functions_, sequential_;
  std::map<std::string, llvm::Function*> helpers_;
  std::map<uint32_t, bool> direct_drops_;      // by datatype
  std::vector<llvm::Function*> runtime_;
  std::map<uint32_t, llvm::GlobalVariable*> layout_infos_, data_infos_;
  flow::ObjectTable numbers_;                  // of closures and boxes; requests follow
  std::map<uint32_t, uint32_t> request_ids_;
  std::map<std::string, llvm::Constant*> texts_;
  std::map<uint32_t, llvm::Constant*> strings_;
  // static_strings.cpp
  void place_strings();
  llvm::Constant* constant_string(const std::u32string& chars);
  llvm::Constant* node_word(llvm::GlobalVariable* nodes, uint64_t index);
  bool runs_once_ = false;                     // while a function that runs at most once is emitted (run_once.h)
  llvm::GlobalVariable* string_room_ = nullptr;   // nodes of all strings, when they are many
  std::vector<uint64_t> string_starts_;        // nodes before those of a string there
  std::vector<Object> object_list_;
  llvm::GlobalVariable* objects_ = nullptr;    // placeholder until the table is complete
  llvm::StructType *slot_type_, *layout_type_, *sum_type_, *ctor_type_, *data_type_, *object_type_, *program_type_;
  llvm::MDNode* regions_[7] = {};
  llvm::MDNode* unlikely_ = nullptr;
};

// One function's body. Bodies are walked with a work list, so that nesting of matches costs no stack.
class FuncEmitter {
 public:
  FuncEmitter(ModuleEmitter& module, flow::FuncId id, bool sequential);
  // For a part of the function that is a function `fn` of its own.
  FuncEmitter(ModuleEmitter& module, flow::FuncId id, llvm::Function* fn);
  void run();

 private:
  struct Work {
    llvm::BasicBlock* block;
    flow::NodeId node;
  };
  struct JoinPoint {
    llvm::BasicBlock* block = nullptr;
    Leaves phis;
  };

  // emit_func.cpp
  void body(flow::NodeId id);
  void open(const flow::Node& node);
  void drop(flow::VarId var);
  void join(const flow::Node& node);
  void branch(const flow::Node& node, llvm::Value* subject);
  void ret(LeafSpan leaves);
  void tail(const flow::Node& node);
  void jump(const flow::Node& node);
  // emit_holes.cpp
  [[nodiscard]] std::optional<uint32_t> hole_of(const flow::Node& node) const;
  [[nodiscard]] bool has_holes() const;
  void begin_holes();
  void fill_hole(const flow::Node& node, uint32_t field);
  void end_holes(llvm::Value* word);
  // emit_fork.cpp
  void fork(const flow::Node& node);
  using Ways = std::vector<std::pair<llvm::BasicBlock*, std::vector<Leaves>>>;   // blocks that end with the values of the same variables
  [[nodiscard]] Ways::value_type calls_in_order(const flow::Node& node, bool sequential);
  [[nodiscard]] Ways::value_type calls_as_tasks(const flow::Node& node);
  [[nodiscard]] std::vector<Leaves> meet(const Ways& ways);
  [[nodiscard]] llvm::Function* fork_function(const flow::Node& node, const std::vector<flow::VarId>& arguments, const std::vector<flow::VarId>& results);
  void run_fork(const flow::Node& node, const std::vector<flow::VarId>& arguments);
  [[nodiscard]] llvm::Value* wanted_address();
  llvm::Value* task_area(uint32_t index, uint32_t bytes);
  // emit_segment.cpp: device functions that run as segments
  [[nodiscard]] bool is_cut(const flow::Node& node) const;
  [[nodiscard]] Leaves leaves_of(Slice vars);
  void take_segment_params();
  void segment_return(LeafSpan leaves);
  void finish_segment();
  void count_copy(flow::FuncId func);
  void segment_tail(const flow::Node& node);
  void store_live(const Cut& cut, const flow::Node& tail, llvm::Value* record, bool on_stack);
  void enter_frame(const Cut& cut, const flow::Node& node);
  void segment_cut(flow::NodeId id);
  // gpu_tables.cpp
  Leaves bang_call(flow::FuncId callee, Slice args);
  // emit_literal.cpp
  [[nodiscard]] std::optional<flow::NodeId> literal_chain(flow::NodeId id);
  // emit_expr.cpp
  Leaves expr(const flow::Node& node);
  Leaves call(flow::FuncId callee, Slice args) { return call(callee, args, sequential_); }
  // `escapes`: others may hold pointers into this frame.
  Leaves call(flow::FuncId callee, Slice args, bool sequential, bool escapes = false);
  Leaves variant(const flow::Node& node);
  Leaves variant_get(flow::VarId subject, uint64_t variant, uint64_t field);
  Leaves request(const flow::Node& node);
  [[nodiscard]] Reuse reuse_of(const flow::Node& con);   // of a constructor with a token
  Leaves box(const flow::Node& node);
  Leaves unbox(const flow::Node& node);
  // emit_prim.cpp
  Leaves prim(const flow::Node& node);
  Leaves nat_checked(llvm::Value* value);
  Leaves show_text(const flow::Node& node);
  llvm::Value* boolean(llvm::Value* bit);
  llvm::Value* cmp(llvm::Value* less, llvm::Value* equal);
  // emit_array.cpp
  Leaves array_prim(const flow::Node& node);
  Leaves atomic_prim(const flow::Node& node);
  llvm::Value* slot_address(llvm::Value* handle, llvm::Value* index, flow::TypeId element, bool in_range);
  llvm::Value* block_address(llvm::Value* handle);
  llvm::Value* index_mask(llvm::Value* handle);             // slots - 1
  void fill(llvm::Value* handle, flow::TypeId element, LeafSpan value);

  Leaves& value(flow::VarId var) { return m_.values[var.index]; }
  llvm::Value* scalar(flow::VarId var);
  void bind(flow::VarId var, Leaves leaves);
  [[nodiscard]] flow::TypeId type(flow::VarId var) const { return m_.flow.vars[var].type; }
  [[nodiscard]] const flow::Type& kind(flow::VarId var) const { return m_.flow.types[type(var)]; }
  void check(llvm::Value* bad, uint32_t error);          // run-time error `error` when `bad`
  llvm::Value* frame(uint32_t bytes);                    // scratch memory of this call, shared by all its uses
  [[nodiscard]] std::string site() const { return m_.site(id_, span_); }

  ModuleEmitter& m_;
  flow::FuncId id_;
  JoinPoint holes_;                                      // the start of a round, when calls fill holes
  llvm::PHINode* hole_ = nullptr;
  llvm::Value* result_ = nullptr;
  const bool sequential_;
  const flow::Func& func_;
  llvm::Function* fn_;
  Builder b_;
  llvm::Value* worker_ = nullptr;
  llvm::Value* out_ = nullptr;
  llvm::Value* state_ = nullptr;               // of the machine: this function is a segment
  llvm::BasicBlock* return_block_ = nullptr;
  Leaves returned_;
  llvm::AllocaInst* frame_ = nullptr;
  uint32_t frame_bytes_ = 0;
  std::map<uint32_t, llvm::AllocaInst*> task_areas_;
  Span span_;
  std::vector<Work> work_;
  std::map<uint32_t, JoinPoint> joins_;
  std::set<uint32_t> not_literals_;                      // nodes inside chains that have been looked at
  std::map<uint32_t, uint32_t> string_of_;               // variables bound to string constants
  struct Token {
    uint32_t bytes, ctor;                                // of the node it was
    bool certain;                                        // there is memory in any case
    Slice fields;                                        // the variables bound by the opening
  };
  std::map<uint32_t, Token> tokens_;                     // by token variable
};

}  // namespace bendc::codegen
