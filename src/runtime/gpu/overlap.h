// Kernels that begin before the one ahead of them in the stream has ended (programmatic dependent launch, compute capability 9.0): their blocks take their places
// while the last blocks ahead still run, then wait at their first instruction until all memory of those can be seen. Between two kernels of a graph that
// is worth 1 to 2 us a round (docs/gpu.md).
// In: PTX for sm_70 whose kernels begin with BEND_OVERLAP (device_abi.h), which is two comments there. Out: the same text for sm_90 with the comments made
// instructions, from malloc; null when the system refuses memory or the text has none.
#pragma once
#include <stdint.h>

#include "runtime/gpu/driver.h"

namespace bendc::rt::gpu {

[[nodiscard]] char* overlapping_ptx(const char* text);

struct Grid {
  void* kernel;
  uint32_t blocks, threads;
};

// `overlap`: the kernel waits by itself for what is ahead in the stream. The driver's code.
[[nodiscard]] int launch_grid(const Driver* driver, void* stream, Grid grid, bool overlap, void** arguments);

}  // namespace bendc::rt::gpu
