// unroll_recursion: a small function that calls itself gets some levels of its own recursion inlined, as gcc does: a call then stands for
// several levels of a tree, which saves most calls and frames. Of a function
// that calls only itself the levels share the first one's look at whether tasks are wanted: together they take a microsecond at most. In: a module whose functions are simplified; out: the same functions, larger.
#pragma once

namespace llvm {
class Module;
}

namespace bendc::codegen {

inline constexpr const char* kOfProgram = "bend-of-program";   // attribute of the program's functions: their index
inline constexpr const char* kPollMetadata = "bend.poll";      // of the load before a fork that asks whether tasks are wanted

void unroll_recursion(llvm::Module& module);

}  // namespace bendc::codegen
