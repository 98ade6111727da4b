// `bendc doctor`: what the CUDA driver and its devices are, how long their start takes, and whether a kernel computes what it should.
#pragma once
#include "runtime/gpu/options.h"

namespace bendc::rt::gpu {

// Prints to stdout; true when a device passed its test.
[[nodiscard]] bool doctor(const GpuConfig& config);

}  // namespace bendc::rt::gpu
