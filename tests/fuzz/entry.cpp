// libFuzzer's entry; FUZZ_TARGET names the function of targets.h.
#include "fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  bendc::fuzz::FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
