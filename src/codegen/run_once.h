// Functions that run at most once: the entry, and what has one reference in the program, outside loops, in a function that runs at most once. The
// steps of a `do` block are such functions, one for each, and what main is made of. Their time is that of compiling them. A closure is applied at
// most once; where @unsafe code shares one, its function may run again, and only takes longer.
#pragma once
#include <vector>

#include "codegen/flow.h"

namespace bendc::flow {
[[nodiscard]] std::vector<bool> find_run_once(const Module& module);
}  // namespace bendc::flow
