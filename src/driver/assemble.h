// assemble_device: PTX and an architecture -> machine code for it, by the ptxas of a CUDA toolkit: the one that BEND_PTXAS names, the first on the path, or where
// toolkits lie. From sm_90 on the code is that of kernels that overlap (runtime/gpu/overlap.h), as the driver would compile it there.
#pragma once
#include <cstdint>
#include <string>

namespace bendc {

struct Assembled {
  std::string code;        // a cubin
  std::string message;     // why there is none
  std::string output;      // what ptxas said then
};

[[nodiscard]] Assembled assemble_device(const std::string& ptx, uint32_t arch);

// The number of `sm_90`, or 0 for what names no architecture that device code can be made for.
[[nodiscard]] uint32_t parse_arch(const std::string& word);

}  // namespace bendc
