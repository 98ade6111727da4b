// Functions that compute with vectors of more than 16 bytes start their frame at a multiple of 32 bytes. A caller gives 16, LLVM spills such vectors
// with unaligned moves, and where the frame lies badly every other one crosses a cache line: k-means ran 1.0 or 1.4 times as long, by the caller.
#pragma once
#include <llvm/IR/Module.h>

namespace bendc::codegen {

void align_wide_frames(llvm::Module& module);   // of a host

}  // namespace bendc::codegen
