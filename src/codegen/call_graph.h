// Strongly connected components of the direct call graph (calls, tail calls, forks): functions on one cycle share a component number.
#pragma once
#include <vector>

#include "codegen/flow.h"

namespace bendc::flow {
[[nodiscard]] std::vector<uint32_t> call_components(const Module& module);
}  // namespace bendc::flow
