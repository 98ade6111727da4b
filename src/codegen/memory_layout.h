// Memory layout of Flow values: how a type splits into scalar leaves, where each leaf lies in memory, and how nodes of boxed
// datatypes and objects are laid out (the rules of runtime/abi.h). No LLVM here: passes use it for sizes, code generation for addresses.
// Example: struct{u32, nat} has leaves {i32 @0, i64 @8}, size 16; the node List.Con{u32, ref} is {count @0, u32 @4, ref @8}, 16 bytes.
#pragma once
#include <memory>
#include <unordered_map>
#include <vector>

#include "codegen/flow.h"

namespace bendc::flow {

enum class LeafKind : uint8_t { I32, F32, I64 };

struct Leaf {
  LeafKind kind = LeafKind::I32;
  uint32_t offset = 0;              // in memory, from the value's start
};

struct TypeLayout {
  uint32_t size = 0, align = 1;     // size is the alloc size (a multiple of align); 0 for types without leaves
  std::vector<Leaf> leaves;
  bool counted = false;             // holds a reference, array, closure or box somewhere
};

struct FieldsLayout {               // a node or an object: header, then fields
  std::vector<uint32_t> offsets;    // of each field
  uint32_t bytes = 8;               // multiple of 8, header included
  bool counted = false;             // some field is counted
};

inline constexpr uint32_t kMaxTaggedCtors = 8;  // more constructors: the index is in the node, not in the word
inline constexpr uint32_t kNodeHeader = 8;      // count and a u32

class Layouts {
 public:
  explicit Layouts(const Module& module) : module_(module) {}
  [[nodiscard]] const TypeLayout& of(TypeId type);
  [[nodiscard]] const FieldsLayout& node(DataId data, uint32_t ctor);
  // { u32 count; u32 object id; C struct of fields }
  [[nodiscard]] FieldsLayout object(std::span<const TypeId> fields);
  // The C struct of fields: offsets from 0, `bytes` a multiple of 8, 0 without fields.
  [[nodiscard]] FieldsLayout record(std::span<const TypeId> fields);
  // First leaf of struct field `field`, or of field `field` of sum variant `variant` (the tag is leaf 0).
  [[nodiscard]] uint32_t struct_leaf(TypeId type, uint32_t field);
  [[nodiscard]] uint32_t variant_leaf(TypeId type, uint32_t variant, uint32_t field);
  // ceil(log2(max(1, words))) of an array element, for the array class limit.
  [[nodiscard]] uint32_t words_log2(TypeId type);
  [[nodiscard]] bool tagged(DataId data) const { return module_.datas[data].ctors.size() <= kMaxTaggedCtors; }

 private:
  [[nodiscard]] TypeLayout compute(TypeId type);

  const Module& module_;
  // unique_ptr: references handed out stay valid while the tables grow.
  std::vector<std::unique_ptr<TypeLayout>> types_;
  std::unordered_map<uint64_t, std::unique_ptr<FieldsLayout>> nodes_;
};

}  // namespace bendc::flow
