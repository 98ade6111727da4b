// unroll_recursion: a small function that calls itself gets some levels of its own recursion inlined, as gcc does: a call then stands for
// several levels of a tree, which saves most calls and frames. In: a module whose functions are simplified; out: the same functions, larger.
#pragma once

namespace llvm {
class Module;
}

namespace bendc::codegen {

void unroll_recursion(llvm::Module& module);

}  // namespace bendc::codegen
