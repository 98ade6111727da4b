// What coalesce_loops knows of a loop before it changes anything: the streams of addresses that are walked together, and the values its guard needs.
#pragma once
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <vector>

namespace bendc::codegen {

// Accesses whose addresses advance by the same `period` each iteration and lie within one row of each other. Words are of four bytes; a place is a
// word's distance from the stream's lowest address in the first iteration.
struct Stream {
  struct Access {
    llvm::Instruction* inst;
    uint32_t place;
  };
  std::vector<Access> accesses;
  llvm::Value* block = nullptr;   // the array block that all of them lie in
  llvm::Value* start = nullptr;   // the lowest address, as an integer
  uint32_t period = 0;            // words
  uint32_t span = 0;              // words that one iteration touches, gaps included
  uint32_t first_written = 0;     // one iteration writes a period's words from there on
  bool read = false, written = false;
  bool wide = false;              // some access is of eight bytes
};

// Words past the row that a tile's last iteration touches.
inline uint32_t overhang(const Stream& stream) { return stream.span > stream.period ? stream.span - stream.period : 0; }

struct LoopPlan {
  llvm::BasicBlock *preheader, *header, *latch, *exit;
  std::vector<llvm::BasicBlock*> blocks;
  std::vector<Stream> streams;
  llvm::Value* backedges = nullptr;                                  // i64: iterations - 1
  std::vector<std::pair<llvm::Value*, llvm::Value*>> apart;          // array blocks that must not be one
  uint32_t row = 0;                                                  // words of a lane's stretch that a tile takes: 32 or 16
  uint32_t iterations = 0;                                           // of a tile
  bool prefetch = false;                                             // a tile's loads may pass the stores of the tile before
};

// The loops of `function` that can be changed. Adds the code that computes starts and iterations before each.
std::vector<LoopPlan> plan_loops(llvm::Function& function);

}  // namespace bendc::codegen
