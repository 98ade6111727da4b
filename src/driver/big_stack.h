// Runs a function on a thread with a large stack: parser, checker and lowering recurse along the program's nesting, bounded by
// counters that assume this much room.
#pragma once
#include <cstddef>
#include <functional>

namespace bendc {

inline constexpr size_t kCompilerStack = size_t{512} << 20;

// Gives the size of the stack it ran on (smaller than kCompilerStack where the system refuses that much); 0: no thread could be started.
size_t run_on_big_stack(const std::function<void(size_t stack)>& work);

}  // namespace bendc
