// The runtime's own kernels as PTX for every device from compute capability 7.0 on.
#pragma once

namespace bendc::rt::gpu {

extern const char kRuntimePtx[];

}  // namespace bendc::rt::gpu
