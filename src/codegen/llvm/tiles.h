// Device only: the shared memory of a block of threads for words of arrays, the same amount for each warp. Scans keep blocks there (emit_scan_blocks.cpp), loops their tiles
// (coalesce_loops): never both at once in one warp.
#pragma once
#include <llvm/IR/Module.h>

#include <cstdint>

namespace bendc::codegen {

// Null: none yet.
[[nodiscard]] llvm::GlobalVariable* find_tiles(llvm::Module& module);
// The memory, made with `words` for each of `warps` when there is none yet.
[[nodiscard]] llvm::GlobalVariable* tiles(llvm::Module& module, uint32_t words, uint32_t warps);
// Words of a warp in what has been made.
[[nodiscard]] uint32_t tile_words(const llvm::GlobalVariable& tiles, uint32_t warps);

}  // namespace bendc::codegen
