// The three sweeps of insert_ownership (ownership.h) over one body after the other, and what they know in common. Each is made once for a module: its tables
// are by join, node or variable, which all bodies share.
//   1. ExposeSweep (forward): fields of counted values become variables, by markers `open` where a value's constructor is known.
//   2. PlaceSweep (backward): dups and drops by liveness, and what an open marker comes to.
//   3. ReuseSweep (forward): a freed node becomes the next one of its shape.
// After Perceus (Reinking, Xie, de Moura, Leijen 2021) and counting immutable beans (Ullrich, de Moura 2019).
#pragma once
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "codegen/ownership.h"

namespace bendc::flow {

// What the sweeps tell each other, beside the bodies.
struct OwnershipFacts {
  Module& module;
  std::vector<bool> counted_types;    // by type; filled on demand
  std::vector<bool> borrowed;         // by variable: reads of borrowed values, beside parameters and fields that are marked themselves
  std::vector<Slice> join_params;     // by join
};

class OwnershipSweep {
 protected:
  explicit OwnershipSweep(OwnershipFacts& facts) : m_(facts.module), facts_(facts) {}

  bool counted_type(TypeId t);
  bool counted(VarId v) { return counted_type(m_.vars[v].type); }
  const Type& type(VarId v) const { return m_.types[m_.vars[v].type]; }
  bool borrowed(VarId v) const { return m_.vars[v].borrowed || (v.index < facts_.borrowed.size() && facts_.borrowed[v.index]); }
  void mark_borrowed(VarId v);
  VarId fresh(TypeId t, const std::string& name) { return m_.vars.add(Var{t, name}); }
  static Node let(VarId v, Expr e, Span span);
  static Node mark(NodeKind kind, VarId subject, Span span);
  NodeId prepend(const std::vector<Node>& head, NodeId body);

  Module& m_;
  OwnershipFacts& facts_;
};

class ExposeSweep : OwnershipSweep {
 public:
  explicit ExposeSweep(OwnershipFacts& facts) : OwnershipSweep(facts), join_bodies_(facts.module.join_count) {}
  // The function's body with its fields exposed; marks the borrowed among its parameters.
  [[nodiscard]] NodeId run(FuncId id);

 private:
  struct Opened {
    uint64_t ctor = 0;
    std::vector<VarId> fields;
    bool rebuild = true;      // struct and sum: a whole use is built again; ref: the variable itself stays
  };

  void emit(Node n) { chain_.push_back(std::move(n)); }
  VarId resolve(VarId v) const;
  void set_alias(VarId v, VarId target);
  void set_opened(VarId v, Opened o);
  std::vector<TypeId> fields_of(VarId x, uint64_t ctor) const;
  void define(VarId v, Span span);
  void open_now(VarId x, uint64_t ctor, bool rebuild, Span span);
  VarId whole(VarId v, Span span);
  Slice wholes(Slice s, Span span);
  NodeId seal(Node end);
  template <class F> NodeId scoped(NodeId body, F head);
  NodeId expose(NodeId id);
  void expose_let(Node& n);
  std::vector<Node> sink_opens(const Node& branch);
  void open_again(const std::vector<Node>& sunk);
  bool used_whole(const Node& branch, VarId x);

  std::vector<Node> chain_;                          // the nodes of the body being built
  std::unordered_map<uint32_t, VarId> alias_;
  std::unordered_map<uint32_t, Opened> opened_;
  std::vector<uint32_t> alias_trail_, opened_trail_;
  std::vector<uint32_t> rebuilt_trail_;              // of opened_trail_, what a whole use builds again: the one thing used_whole looks through
  std::vector<NodeId> join_bodies_;
};

class PlaceSweep : OwnershipSweep {
 public:
  explicit PlaceSweep(OwnershipFacts& facts) : OwnershipSweep(facts), join_free_(facts.module.join_count) {}
  // The exposed body of a function with every dup and drop.
  [[nodiscard]] NodeId run(FuncId id, NodeId body);

 private:
  using Live = std::unordered_set<uint32_t>;
  struct Operand {
    VarId var;
    bool consumed;
  };

  bool tracked(VarId v) { return counted(v) && !borrowed(v); }
  void operands_of(const Expr& e, std::vector<Operand>& out);
  // Adds the dups needed before a node with these operands and the drops needed after it; updates live to before the node.
  void consume(const std::vector<Operand>& operands, Live& live, std::vector<VarId>& dups, std::vector<VarId>& drops);
  static bool removable(const Expr& e);
  // Rewrites the body; `live` comes back as the tracked variables live at its start.
  NodeId place(NodeId id, Live& live);
  void place_join(NodeId id);
  NodeId place_end(NodeId id, Live& live);
  NodeId place_step(NodeId id, NodeId after, Live& live);

  std::vector<Live> join_free_;                      // tracked variables a join body uses from outside
  std::unordered_set<uint32_t> used_;                // variables with any use in the part already placed (all kinds)
};

class ReuseSweep : OwnershipSweep {
 public:
  explicit ReuseSweep(OwnershipFacts& facts) : OwnershipSweep(facts) {}
  // Gives the tokens of a placed body away, in place.
  void run(NodeId body);

 private:
  struct Shape {
    DataId data;
    std::vector<TypeId> fields;
  };

  bool fits(const Node& n, const Shape& shape) const;
  uint64_t note_built(NodeId id);
  bool may_build(NodeId id, const Shape& shape) const;
  bool give(NodeId id, const Shape& shape, VarId token, std::vector<NodeId*>& misses, NodeId* link);
  void reuse_body(NodeId id);
  void try_reuse(NodeId id);

  std::vector<uint64_t> built_;                      // by node; see note_built
};

}  // namespace bendc::flow
