#include "codegen/flow.h"

#include <algorithm>

namespace bendc::flow {

namespace {

constexpr std::string_view kPrimText[] = {
#define BENDC_PRIM(id, text, base) text,
#include "codegen/prims.def"
#undef BENDC_PRIM
};
constexpr std::string_view kPrimBase[] = {
#define BENDC_PRIM(id, text, base) base,
#include "codegen/prims.def"
#undef BENDC_PRIM
};

size_t hash_type(const Type& type) {
  size_t h = static_cast<size_t>(type.kind) * 0x9E3779B97F4A7C15ull + type.count;
  auto mix = [&h](uint32_t x) { h = (h ^ x) * 0x100000001B3ull; };
  mix(type.data.index);
  for (TypeId part : type.parts) mix(part.index);
  for (const auto& variant : type.variants) {
    mix(0xABCDu);
    for (TypeId part : variant) mix(part.index);
  }
  return h;
}

}  // namespace

TypeId Module::intern(Type type) {
  const size_t h = hash_type(type);
  auto [first, last] = type_index.equal_range(h);
  for (auto it = first; it != last; ++it)
    if (types[it->second] == type) return it->second;
  TypeId id = types.add(std::move(type));
  type_index.emplace(h, id);
  return id;
}

std::string_view prim_text(Prim prim) { return kPrimText[static_cast<size_t>(prim)]; }
std::string_view prim_base(Prim prim) { return kPrimBase[static_cast<size_t>(prim)]; }

uint32_t flat_words(const Module& module, TypeId id) {
  const Type& type = module.types[id];
  switch (type.kind) {
    case TypeKind::U32:
    case TypeKind::F32:
    case TypeKind::Nat:
    case TypeKind::Enum:
    case TypeKind::Ref:
    case TypeKind::Array:
    case TypeKind::Fn:
    case TypeKind::Any:
    case TypeKind::Token:
      return 1;
    case TypeKind::Struct: {
      uint32_t total = 0;
      for (TypeId part : type.parts) total += flat_words(module, part);
      return total;
    }
    case TypeKind::Sum: {
      uint32_t widest = 0;
      for (const auto& variant : type.variants) {
        uint32_t total = 0;
        for (TypeId part : variant) total += flat_words(module, part);
        widest = std::max(widest, total);
      }
      return 1 + widest;
    }
  }
  return 1;
}

NodeId seal_chain(Module& module, std::vector<Node>& chain, Node end) {
  NodeId id = module.nodes.add(std::move(end));
  for (; !chain.empty(); chain.pop_back()) {
    Node n = std::move(chain.back());
    n.next = id;
    id = module.nodes.add(std::move(n));
  }
  return id;
}

}  // namespace bendc::flow
