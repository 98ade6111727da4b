// Representations: type value -> how its values look at run time, and the Flow type that says so. A representation (Rep) is finer than a
// Flow type: it remembers the datatype, so that a value can be converted to and from `any`.
// Known types are laid out flat and unboxed; a type that evaluation cannot decide (it depends on a run-time value, or specialisation
// gave up) is `any`: a box holding the value in its type's *uniform* representation, the one with every parameter unknown. Both sides of a
// box agree on it whatever each of them knows about the type.
// Example: `Maybe<&2, Nat>` -> Adt Maybe{ | nat} -> sum{ | nat}; its uniform representation is Maybe{ | any} -> sum{ | any}.
#pragma once
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "checker/machine.h"
#include "codegen/flow.h"
#include "support/interner.h"

namespace bendc {

struct RepTag; using RepId = Id<RepTag>;

enum class RepKind : uint8_t { U32, F32, Nat, Quantity, Type, Proof, Any, Fn, Array, Adt };

// How a datatype's values are laid out.
enum class Shape : uint8_t {
  Undecided,
  Unit,     // one constructor (or none) without live fields: struct{}
  Enum,     // only constructors without live fields
  Newtype,  // one constructor with one live field: that field
  Struct,   // one constructor, by value
  Sum,      // several constructors, by value
  Ref,      // recursive or wide: boxed
};

struct Rep {
  RepKind kind = RepKind::Any;
  Shape shape = Shape::Undecided;
  bool recursive = false, shareable = true;
  core::DataId data;                           // Adt
  std::vector<std::vector<RepId>> fields;      // Adt: live fields of each constructor, as stored
  RepId a, b;                                  // Fn: parameter, result; Array: element, and the element as it is stored
  flow::TypeId flow;                           // once asked for
  RepId uniform;                               // once asked for
};

// What specialisation keeps of an erased argument: a type by its representation, a quantity if it is known, a type-valued function by the
// representation of its result at unknown arguments; nothing of anything else (run-time code cannot depend on it).
struct StaticArg {
  enum class Kind : uint8_t { Type, Quantity, TypeFunction, Opaque } kind = Kind::Opaque;
  RepId rep;                                   // Type, TypeFunction
  uint8_t quantity = 3;                        // Quantity: 0..2, 3 = unknown
  uint8_t arity = 0;                           // TypeFunction
  const Value* value = nullptr;                // a value that stands for all arguments with this key
};

// Element types of arrays, coarsely: what they are, and of which datatype.
using ElementKinds = std::set<std::pair<RepKind, uint32_t>>;

class RepTable {
 public:
  // Arrays with these elements store them as `any`.
  RepTable(core::Book& book, Interner& names, Machine& machine, flow::Module& module, ElementKinds boxed_elements);

  [[nodiscard]] RepId of(const Value* type);
  [[nodiscard]] const Rep& operator[](RepId id) const { return reps_[id]; }
  [[nodiscard]] flow::TypeId flow(RepId id);
  [[nodiscard]] RepId uniform(RepId id);
  [[nodiscard]] RepId basic(RepKind kind) const { return basics_[static_cast<size_t>(kind)]; }
  [[nodiscard]] RepId any() const { return basic(RepKind::Any); }
  [[nodiscard]] RepId fn(RepId param, RepId result);
  [[nodiscard]] bool undecided(RepId id) const;           // `any` somewhere inside
  [[nodiscard]] std::pair<RepKind, uint32_t> element_kind(RepId array) const { const Rep& e = reps_[reps_[array].a]; return {e.kind, e.data.index}; }
  [[nodiscard]] RepId adt(core::DataId data);             // a datatype without parameters, or its uniform representation
  [[nodiscard]] bool same(RepId a, RepId b) { return a == b || flow(a) == flow(b); }

  [[nodiscard]] StaticArg canonical(const Value* domain, const Value* arg);
  [[nodiscard]] StaticArg unknown(const Value* domain);   // an erased argument that is not given
  [[nodiscard]] static std::string key(const StaticArg& arg);
  [[nodiscard]] const Value* opaque(const Value* type);   // a fresh variable
  [[nodiscard]] const Value* any_type() const { return any_type_; }

  // Base's own datatypes that have a native representation.
  core::DataId u32_data, f32_data, nat_data, string_data, char_data, array_data, op_data, list_data, sigma_data;
  core::DataId bool_data, cmp_data, unit_data;

 private:
  struct Found { RepId rep; uint32_t low = kClosed; };
  static constexpr uint32_t kClosed = 0xFFFFFFFFu;
  Found visit(const Value* type, uint32_t depth);
  Found visit_head(const Value* type, uint32_t depth);
  Found visit_adt(core::DataId data, std::vector<StaticArg> args, uint32_t depth);
  StaticArg canonical(const Value* domain, const Value* arg, uint32_t depth);
  const Value* constant_function(uint32_t arity, const Value* result);
  bool shareable(core::DataId data, const Env* env);
  core::DataId base_data(std::string_view name);
  flow::DataId make_data(RepId id);

  core::Book& book_;
  Interner& names_;
  Machine& m_;
  flow::Module& module_;
  Table<RepId, Rep> reps_;
  RepId basics_[static_cast<size_t>(RepKind::Adt) + 1];
  std::unordered_map<std::string, RepId> adts_;           // by datatype and static arguments
  std::unordered_map<uint64_t, RepId> fns_;
  std::unordered_map<RepId, RepId> arrays_;
  ElementKinds boxed_elements_;
  std::unordered_map<const Value*, RepId> cache_;
  // Strongly connected components in progress (Tarjan): datatypes that contain themselves are boxed.
  std::vector<RepId> stack_;
  std::unordered_map<RepId, uint32_t> index_;             // open datatypes: visit number
  std::unordered_map<core::DataId, uint32_t> nesting_;    // open instances of a datatype
  uint32_t next_index_ = 0;
  std::unordered_map<core::DataId, uint32_t> data_counts_;
  std::vector<core::TermId> constant_terms_;
  uint32_t next_level_ = 1u << 24;
  Name blank_;
  const Value* any_type_ = nullptr;
};

}  // namespace bendc
