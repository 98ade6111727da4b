#include "codegen/memory_layout.h"

#include <algorithm>
#include <bit>

namespace bendc::flow {
namespace {

uint32_t align_up(uint32_t offset, uint32_t align) { return (offset + align - 1) / align * align; }

uint32_t leaf_bytes(LeafKind kind) { return kind == LeafKind::I64 ? 8 : 4; }

TypeLayout scalar(LeafKind kind, bool counted) {
  return TypeLayout{leaf_bytes(kind), leaf_bytes(kind), {Leaf{kind, 0}}, counted};
}

}  // namespace

const TypeLayout& Layouts::of(TypeId type) {
  if (type.index >= types_.size()) types_.resize(module_.types.size());
  if (!types_[type.index]) {
    auto layout = std::make_unique<TypeLayout>(compute(type));
    if (type.index >= types_.size()) types_.resize(module_.types.size());
    types_[type.index] = std::move(layout);
  }
  return *types_[type.index];
}

TypeLayout Layouts::compute(TypeId id) {
  const Type& type = module_.types[id];
  switch (type.kind) {
    case TypeKind::U32:
    case TypeKind::Enum:
      return scalar(LeafKind::I32, false);
    case TypeKind::F32:
      return scalar(LeafKind::F32, false);
    case TypeKind::Nat:
    case TypeKind::Token:
      return scalar(LeafKind::I64, false);
    case TypeKind::Ref:
    case TypeKind::Array:
    case TypeKind::Fn:
    case TypeKind::Any:
      return scalar(LeafKind::I64, true);
    case TypeKind::Struct: {
      TypeLayout out;
      uint32_t offset = 0;
      for (TypeId part : type.parts) {
        const TypeLayout& field = of(part);
        offset = align_up(offset, field.align);
        for (Leaf leaf : field.leaves) out.leaves.push_back({leaf.kind, offset + leaf.offset});
        offset += field.size;
        out.align = std::max(out.align, field.align);
        out.counted |= field.counted;
      }
      out.size = align_up(offset, out.align);
      return out;
    }
    case TypeKind::Sum: {
      // A slot takes the widest leaf any variant puts there; f32 leaves travel as their bits.
      TypeLayout out;
      std::vector<LeafKind> slots;
      for (const auto& variant : type.variants) {
        size_t slot = 0;
        for (TypeId field_type : variant) {
          const TypeLayout& field = of(field_type);
          out.counted |= field.counted;
          for (Leaf leaf : field.leaves) {
            if (slot == slots.size()) slots.push_back(LeafKind::I32);
            if (leaf.kind == LeafKind::I64) slots[slot] = LeafKind::I64;
            ++slot;
          }
        }
      }
      out.leaves.push_back({LeafKind::I32, 0});
      out.align = 4;
      uint32_t offset = 4;
      for (LeafKind kind : slots) {
        offset = align_up(offset, leaf_bytes(kind));
        out.leaves.push_back({kind, offset});
        offset += leaf_bytes(kind);
        out.align = std::max(out.align, leaf_bytes(kind));
      }
      out.size = align_up(offset, out.align);
      return out;
    }
  }
  return {};
}

const FieldsLayout& Layouts::node(DataId data, uint32_t ctor) {
  auto& entry = nodes_[(static_cast<uint64_t>(data.index) << 32) | ctor];
  if (entry) return *entry;
  auto out = std::make_unique<FieldsLayout>();
  const std::vector<TypeId>& fields = module_.datas[data].ctors[ctor].fields;
  out->offsets.resize(fields.size());
  bool second_word_free = tagged(data);   // else the u32 at offset 4 is the constructor index
  uint32_t offset = kNodeHeader;
  for (size_t i = 0; i < fields.size(); ++i) {
    const TypeLayout& field = of(fields[i]);
    out->counted |= field.counted;
    if (second_word_free && field.size == 4) {
      second_word_free = false;
      out->offsets[i] = 4;
      continue;
    }
    offset = align_up(offset, field.align);
    out->offsets[i] = offset;
    offset += field.size;
  }
  // A free node holds a link, so no node is smaller than a size class of 16 bytes.
  out->bytes = std::max(16u, align_up(offset, 8));
  nodes_[(static_cast<uint64_t>(data.index) << 32) | ctor] = std::move(out);
  return *nodes_[(static_cast<uint64_t>(data.index) << 32) | ctor];
}

FieldsLayout Layouts::object(std::span<const TypeId> fields) {
  FieldsLayout out;
  uint32_t offset = kNodeHeader;   // 8-aligned, so the payload is laid out as a C struct of its own
  for (TypeId type : fields) {
    const TypeLayout& field = of(type);
    offset = align_up(offset, field.align);
    out.offsets.push_back(offset);
    offset += field.size;
    out.counted |= field.counted;
  }
  out.bytes = std::max(16u, align_up(offset, 8));
  return out;
}

FieldsLayout Layouts::record(std::span<const TypeId> fields) {
  FieldsLayout out;
  uint32_t offset = 0;
  for (TypeId type : fields) {
    const TypeLayout& field = of(type);
    offset = align_up(offset, field.align);
    out.offsets.push_back(offset);
    offset += field.size;
    out.counted |= field.counted;
  }
  out.bytes = align_up(offset, 8);
  return out;
}

uint32_t Layouts::struct_leaf(TypeId type, uint32_t field) {
  uint32_t leaf = 0;
  for (uint32_t i = 0; i < field; ++i) leaf += static_cast<uint32_t>(of(module_.types[type].parts[i]).leaves.size());
  return leaf;
}

uint32_t Layouts::variant_leaf(TypeId type, uint32_t variant, uint32_t field) {
  uint32_t leaf = 1;
  for (uint32_t i = 0; i < field; ++i) {
    leaf += static_cast<uint32_t>(of(module_.types[type].variants[variant][i]).leaves.size());
  }
  return leaf;
}

uint32_t Layouts::words_log2(TypeId type) {
  const auto words = std::max<size_t>(1, of(type).leaves.size());
  return static_cast<uint32_t>(std::bit_width(words - 1));
}

}  // namespace bendc::flow
