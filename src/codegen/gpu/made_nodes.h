// What a function that only makes nodes takes of the heap: where all ways through it and what it calls make nodes of the same number of bytes in all, and
// nothing looks into a node, gives one up, or takes memory otherwise. So whoever calls it can have that memory ready, and the nodes' places are told by
// the order in which they are made.
// In: an owned module, and a function. Out: the bytes and the sizes of the nodes; no bytes when it is no such function.
#pragma once
#include <cstdint>
#include <set>

#include "codegen/flow.h"
#include "codegen/memory_layout.h"

namespace bendc {

struct MadeNodes {
  uint32_t bytes = 0;
  std::set<uint32_t> sizes;
};

[[nodiscard]] MadeNodes made_nodes(const flow::Module& module, flow::Layouts& layouts, flow::FuncId func);

}  // namespace bendc
