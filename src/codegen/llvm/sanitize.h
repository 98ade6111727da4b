// Instrumentation of generated code in a compiler that is itself built with a sanitizer: it makes programs that are watched too. In: an
// optimised module for the host. Out: the module with the sanitizer's checks, or a message. Every other compiler leaves modules as they are.
#pragma once
#include <string>

#include "codegen/llvm/emitter.h"
#include "codegen/llvm/machine.h"

namespace bendc::codegen {

#if defined(__SANITIZE_ADDRESS__)
// The allocator must see every node's birth and death, so generated code calls it instead of popping free lists.
inline constexpr bool kWatchAddresses = true;
#else
inline constexpr bool kWatchAddresses = false;
#endif
#if defined(__SANITIZE_THREAD__)
// Orders are stated where they otherwise follow from barriers that a thief has the kernel put into the owner's thread.
inline constexpr bool kWatchThreads = true;
#else
inline constexpr bool kWatchThreads = false;
#endif

[[nodiscard]] std::string sanitize_module(IrModule& module, const Machine& machine);

}  // namespace bendc::codegen
