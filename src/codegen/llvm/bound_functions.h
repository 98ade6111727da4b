// Bounds on what LLVM is given to optimise at once. Many of its passes take time that grows faster than a function, so a program whose functions
// are large (a pattern of thousands of elements, a record of a thousand fields), or get large by inlining, would compile for minutes.
// In: a module as emitted; out: the same with calls that are not to be inlined and functions that are not to be optimised, and which of the program's
// these are.
#pragma once
#include <vector>

#include "codegen/flow.h"

namespace llvm {
class Module;
}

namespace bendc::codegen {

[[nodiscard]] std::vector<flow::FuncId> bound_functions(llvm::Module& module);

// A function is so large that even instruction selection and register allocation are to take their fastest way.
bool has_huge_function(const llvm::Module& module);

}  // namespace bendc::codegen
