// Device only: loops in which every thread walks a stretch of memory of its own, word after word, so that the 32 lanes of a warp read and write
// addresses far apart, each in a transaction of its own. Such a loop gets a second version, in which the warp works together: it copies a
// tile of every lane's stretch to shared memory, a row of neighbouring addresses at a time, each lane runs its iterations on its row, and what they
// wrote goes back the same way.
//
// In: an optimised device module whose loops are not unrolled yet. Out: the same module with guarded second versions and one array in shared memory;
// the number of loops that got one. The guards are tests at run time, made at each entry of a loop; nothing about how lanes come to be
// together is assumed:
//   all 32 lanes are at the loop's entry at once (`activemask`); each has at least a few iterations; what a lane writes cannot be what it reads or
//   writes elsewhere in the loop (addresses are compared); and neighbouring lanes are far apart, for otherwise the memory system combines their
//   accesses by itself.
// Else the loop runs as it was.
#pragma once

namespace llvm {
class Module;
}

namespace bendc::codegen {

// block_threads: threads of a block, a multiple of 32 and one-dimensional.
unsigned coalesce_loops(llvm::Module& module, unsigned block_threads);

}  // namespace bendc::codegen
