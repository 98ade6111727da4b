#include "codegen/gpu/machine_plan.h"

#include <algorithm>
#include <set>

#include "codegen/gpu/last_frees.h"
#include "codegen/walk.h"
#include "runtime/gpu/device_abi.h"
#include "support/internal.h"

namespace bendc {

using namespace flow;

namespace {

constexpr uint32_t kMaxRecord = 1u << 16;   // a result's place in a join record is named by 16 bits, and so is a frame's size
constexpr uint32_t kStackBytes = 1024;      // 15 to 40 frames of most programs

constexpr uint32_t kMostStagedBytes = 376;  // 128 threads' are 47 KiB, of 48 that a block can have

class Planner {
 public:
  explicit Planner(DeviceModule& device) : device_(device), m_(device.module), layouts_(device.module) {}

  MachinePlan run() {
    plan_.run.assign(m_.funcs.size(), MachinePlan::kNone);
    plan_.load.assign(m_.funcs.size(), MachinePlan::kNone);
    plan_.stack_bytes = kStackBytes;
    plan_.last_frees = find_last_frees(device_);
    find_loops();
    for (uint32_t i = 0; i < m_.funcs.size(); ++i)
      if (device_.reachable[i]) returns(FuncId(i));
    for (uint32_t i = 0; i < m_.funcs.size(); ++i) {
      if (!device_.reachable[i] || !device_.async[i]) continue;
      plan_.run[i] = add({Segment::Kind::Run, FuncId(i), 0, 0});
      plan_.loops |= loops_.count(i) > 0;
      count_words(param_types(m_, FuncId(i)));
    }
    for (uint32_t i = 0; i < m_.funcs.size(); ++i)
      if (device_.reachable[i] && device_.async[i]) cuts(FuncId(i));
    for (const DeviceEntry& entry : device_.entries)
      if (entry.device.valid()) task(entry.device);
    for (const PerfectTree& row : device_.trees)
      if (row.why.empty()) task(row.func);   // a tree that finds no place in a pool of launches
    plan_.task_stride = std::max<uint32_t>(BEND_TASK_HEADER, (plan_.task_stride + 15) / 16 * 16);   // not 0 when every target is refused: queues are divided into records
    for (uint32_t i = 0; i < device_.trees.size(); ++i)
      if (device_.trees[i].why.empty()) tree(i, device_.trees[i].func, false);
    for (uint32_t i = 0; i < device_.scans.size(); ++i)
      if (device_.scans[i].why.empty()) tree(i, device_.scans[i].func, true);
    return std::move(plan_);
  }

 private:
  uint32_t add(Segment segment) {
    plan_.segments.push_back(segment);
    return static_cast<uint32_t>(plan_.segments.size() - 1);
  }

  // Functions that reach a loop or an operation on a whole array.
  void find_loops() {
    std::vector<FuncId> found;
    std::map<uint32_t, std::vector<FuncId>> callers;
    for (uint32_t i = 0; i < m_.funcs.size(); ++i) {
      if (!device_.reachable[i]) continue;
      bool loop = false;
      each_node(m_, m_.funcs[FuncId(i)].body, [&](NodeId at) {
        const Node& n = m_.nodes[at];
        loop |= n.kind == NodeKind::Join && n.loop;
        if (n.kind == NodeKind::Let && n.expr.kind == ExprKind::Prim) {
          const Prim p = n.expr.prim;
          plan_.makes_arrays |= p == Prim::ArrayNew;
          loop |= p == Prim::ArrayNew || p == Prim::ArrayClone || p == Prim::ArraySplit || p == Prim::ArrayNode;
        }
        if (n.kind == NodeKind::Let && n.expr.kind == ExprKind::Call) callers[n.expr.func.index].push_back(FuncId(i));
        if (n.kind == NodeKind::Tail) callers[n.func.index].push_back(FuncId(i));
        for (const CallSite& call : n.calls) callers[call.func.index].push_back(FuncId(i));
      });
      if (loop && loops_.insert(i).second) found.push_back(FuncId(i));
    }
    while (!found.empty()) {
      const FuncId func = found.back();
      found.pop_back();
      for (FuncId caller : callers[func.index])
        if (loops_.insert(caller.index).second) found.push_back(caller);
    }
  }

  // Whether a value of the type may hold an array; values of unknown type may.
  bool reaches_array(TypeId id) {
    std::set<uint32_t> seen;
    std::vector<TypeId> open{id};
    while (!open.empty()) {
      const TypeId at = open.back();
      open.pop_back();
      if (!seen.insert(at.index).second) continue;
      const Type& type = m_.types[at];
      switch (type.kind) {
        case TypeKind::U32: case TypeKind::F32: case TypeKind::Nat: case TypeKind::Enum: case TypeKind::Token: break;
        case TypeKind::Array: case TypeKind::Fn: case TypeKind::Any: return true;
        case TypeKind::Struct: open.insert(open.end(), type.parts.begin(), type.parts.end()); break;
        case TypeKind::Sum:
          for (const std::vector<TypeId>& fields : type.variants) open.insert(open.end(), fields.begin(), fields.end());
          break;
        case TypeKind::Ref:
          for (const CtorLayout& ctor : m_.datas[type.data].ctors) open.insert(open.end(), ctor.fields.begin(), ctor.fields.end());
          break;
      }
    }
    return false;
  }

  void returns(FuncId func) {
    const TypeId type = m_.funcs[func].result;
    if (plan_.out.count(type.index)) return;
    plan_.out[type.index] = add({Segment::Kind::Out, func, 0, 0});
    if (plan_.segments.size() > 0xFFFF) internal_error("plan_machine", "more than 65535 types of results");
    count_words({type});
  }

  void count_words(const std::vector<TypeId>& types) {
    uint32_t words32 = 0, words64 = 0;
    for (TypeId type : types)
      for (Leaf leaf : layouts_.of(type).leaves) (leaf.kind == LeafKind::I64 ? words64 : words32) += 1;
    plan_.words32 = std::max(plan_.words32, words32);
    plan_.words64 = std::max(plan_.words64, words64);
  }

  FieldsLayout record(FuncId func, uint32_t start) { return record(param_types(m_, func), start); }

  FieldsLayout record(const std::vector<TypeId>& types, uint32_t start) {
    FieldsLayout out = layouts_.record(types);
    for (uint32_t& offset : out.offsets) offset += start;
    return out;
  }

  void task(FuncId func) {
    if (plan_.load[func.index] != MachinePlan::kNone) return;
    if (plan_.run[func.index] == MachinePlan::kNone) {
      plan_.run[func.index] = add({Segment::Kind::Call, func, 0, 0});
      count_words(param_types(m_, func));
    }
    plan_.load[func.index] = add({Segment::Kind::Load, func, 0, 0});
    FieldsLayout payload = record(func, BEND_TASK_HEADER);
    plan_.task_stride = std::max(plan_.task_stride, BEND_TASK_HEADER + payload.bytes);
    plan_.task_payload[func.index] = std::move(payload);
  }

  void tree(uint32_t index, FuncId func, bool scan) {
    plan_.tree_of[func.index] = static_cast<uint32_t>(plan_.trees.size());
    TreePlan row{index, record(func, BEND_GROUP_HEADER), scan, {}};
    // Grids whose leaves loop have their shared memory for the tiles of arrays.
    if (!plan_.loops && !scan) row.staged = made_nodes(m_, layouts_, device_.trees[index].leaf);
    if (row.staged.bytes > kMostStagedBytes || (row.staged.bytes > 0 && *row.staged.sizes.rbegin() > BEND_DEVICE_SMALL)) row.staged = {};
    plan_.stage_bytes = std::max(plan_.stage_bytes, row.staged.bytes);
    plan_.group_stride = std::max(plan_.group_stride, (BEND_GROUP_HEADER + row.payload.bytes + 15) / 16 * 16);
    plan_.result_stride = std::max({plan_.result_stride, 8u, (layouts_.of(m_.funcs[func].result).size + 7) / 8 * 8});
    plan_.trees.push_back(std::move(row));
    relay(func);
    const TypeId type = m_.funcs[func].result;
    if (!plan_.kept.count(type.index)) plan_.kept[type.index] = add({Segment::Kind::Kept, func, 0, 0});
  }

  void relay(FuncId func) {
    const TypeId type = m_.funcs[func].result;
    if (!plan_.relay.count(type.index)) plan_.relay[type.index] = add({Segment::Kind::Relay, func, 0, 0});
  }

  void cuts(FuncId func) {
    each_node(m_, m_.funcs[func].body, [&](NodeId at) {
      const Node& n = m_.nodes[at];
      const bool call = n.kind == NodeKind::Let && n.expr.kind == ExprKind::Call && device_.async[n.expr.func.index];
      if (!call && n.kind != NodeKind::Fork) return;
      Cut cut;
      cut.func = func;
      cut.node = at;
      cut.fork = !call;
      FuncId def = func;
      for (const Accumulator& row : device_.accumulators)
        if (row.func == func) def = row.original;
      for (const BoundedRecursion& row : device_.bounded)
        if (row.func == def && row.depth > 0) cut.measure = m_.funcs[func].params[row.measure];
      if (call) cut.children = {n.expr.func};
      for (const CallSite& site : n.calls) cut.children.push_back(site.func);
      for (FuncId child : cut.children) cut.heavy |= loops_.count(child.index) > 0;
      cut.heavy |= cut.measure.valid();
      cut.continuation = m_.nodes[n.next].func;
      for (const Accumulator& row : device_.accumulators) {
        // Only forks that accumulate call an accumulator more than once.
        cut.accumulates |= cut.fork && row.func == cut.children[0];
        if (row.func != cut.children[0] || !cut.fork) continue;
        cut.identity = row.identity;
        cut.sum = row.prim == Prim::U32Add ? BEND_SUM_ADD : row.prim == Prim::U32Or ? BEND_SUM_OR : row.prim == Prim::U32Xor ? BEND_SUM_XOR : row.prim == Prim::U32And ? BEND_SUM_AND : 0;
        plan_.sums.insert(cut.sum);
        for (FuncId child : cut.children)
          for (TypeId type : param_types(m_, child)) plan_.sums_publish |= reaches_array(type);
        relay(func);
      }
      cut.payload = record(cut.continuation, 0);
      cut.join_bytes = BEND_JOIN_HEADER + (cut.sum ? 8 : cut.payload.bytes);
      cut.frame_bytes = cut.accumulates ? 0 : cut.payload.bytes;
      for (size_t i = 1; i < cut.children.size(); ++i) {
        std::vector<TypeId> types = param_types(m_, cut.children[i]);
        if (cut.accumulates) types.pop_back();
        cut.late.push_back(record(types, cut.frame_bytes));
        cut.frame_bytes += cut.late.back().bytes;
      }
      cut.frame_bytes = (cut.frame_bytes + 7) / 8 * 8 + 8;
      // Wider values are boxed (kMaxFlatWords), and a def has a bounded number of parameters.
      if (cut.join_bytes >= kMaxRecord || cut.frame_bytes >= kMaxRecord) internal_error("plan_machine", "a frame or join record past 64 KiB");
      plan_.stack_bytes = std::max(plan_.stack_bytes, cut.frame_bytes + 8);
      // The forks of a perfect tree mostly run in its grid.
      const bool tree = std::any_of(device_.trees.begin(), device_.trees.end(), [&](const PerfectTree& row) { return row.func == func && row.why.empty(); });
      if (!tree) plan_.largest_frame = std::max(plan_.largest_frame, cut.frame_bytes);
      plan_.fewest_stack_bytes = std::max(plan_.fewest_stack_bytes, cut.frame_bytes + 8);
      const auto index = static_cast<uint32_t>(plan_.cuts.size());
      for (uint32_t i = 1; i < cut.children.size(); ++i) {
        const uint32_t segment = add({Segment::Kind::NextChild, FuncId(), index, i});
        if (i == 1) cut.next_child = segment;
      }
      if (!cut.accumulates) cut.resume_frame = add({Segment::Kind::ResumeFrame, FuncId(), index, 0});
      if (cut.fork && cut.sum == 0) cut.resume_join = add({Segment::Kind::ResumeJoin, FuncId(), index, 0});
      plan_.cut_of[at.index] = index;
      if (cut.fork)
        for (FuncId child : cut.children) task(child);
      plan_.cuts.push_back(std::move(cut));
    });
  }

  DeviceModule& device_;
  Module& m_;
  Layouts layouts_;
  MachinePlan plan_;
  std::set<uint32_t> loops_;    // by function
};

}  // namespace

std::vector<TypeId> param_types(const Module& module, FuncId func) {
  std::vector<TypeId> out;
  for (VarId param : module.funcs[func].params) out.push_back(module.vars[param].type);
  return out;
}

MachinePlan plan_machine(DeviceModule& device) { return Planner(device).run(); }

}  // namespace bendc
