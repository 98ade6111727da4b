#include "runtime/gpu/overlap.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/gpu/device_abi.h"

namespace bendc::rt::gpu {

namespace {

constexpr int kProgrammaticSerialization = 6;   // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION

bool replace(char* text, const char* what, const char* with) {
  char* at = strstr(text, what);
  if (at) memcpy(at, with, strlen(with));
  return at != nullptr;
}

}  // namespace

char* overlapping_ptx(const char* text) {
  constexpr char kMark[] = "// griddepcontrol.";
  if (!strstr(text, kMark)) return nullptr;
  const size_t bytes = strlen(text) + 1;
  char* out = static_cast<char*>(malloc(bytes));
  if (!out) return nullptr;
  memcpy(out, text, bytes);
  // `griddepcontrol` came with PTX 7.8.
  if (!replace(out, ".version 6.", ".version 7.8") || !replace(out, ".target sm_70", ".target sm_90")) {
    free(out);
    return nullptr;
  }
  for (char* at = out; (at = strstr(at, kMark)) != nullptr;) memcpy(at, "  ", 2);
  return out;
}

int launch_grid(const Driver* driver, void* stream, Grid grid, bool overlap, void** arguments) {
  if (!overlap) return driver->launch(grid.kernel, grid.blocks, 1, 1, grid.threads, 1, 1, 0, stream, arguments, nullptr);
  CudaLaunchAttribute attribute = {};
  attribute.id = kProgrammaticSerialization;
  attribute.value[0] = 1;
  const CudaLaunchConfig config = {grid.blocks, 1, 1, grid.threads, 1, 1, 0, stream, &attribute, 1};
  return driver->launch_with(&config, grid.kernel, arguments, nullptr);
}

}  // namespace bendc::rt::gpu
