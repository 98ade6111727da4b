// The CUDA driver as a table of typed functions, opened at run time: a program with `!` links against nothing of NVIDIA's, and one without
// never opens it. In: a library name. Out: the table, or a text that says what is missing.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "runtime/message.h"

namespace bendc::rt::gpu {

// CUlaunchConfig and CUlaunchAttribute as cuda.h has them.
struct CudaLaunchAttribute {
  int id;
  int pad;
  int value[16];
};
struct CudaLaunchConfig {
  unsigned gx, gy, gz, bx, by, bz, shared;
  void* stream;
  CudaLaunchAttribute* attributes;
  unsigned count;
};

struct Driver {
  void* library;
  int version;              // 13000 is CUDA 13.0
#define BENDC_CUDA(name, symbol, required, parameters) int(*name) parameters;
#include "runtime/gpu/driver.def"
#undef BENDC_CUDA
};

// `library`: null for libcuda.so.1, then libcuda.so.
[[nodiscard]] bool driver_open(Driver* driver, const char* library, Message* why);
void driver_close(Driver* driver);

// Fills the table through `find`; false names the first required function that is missing.
[[nodiscard]] bool driver_fill(Driver* driver, void* (*find)(void* context, const char* symbol), void* context, Message* why);

// `cuMemAlloc: 2 CUDA_ERROR_OUT_OF_MEMORY: out of memory`
void describe(const Driver* driver, const char* call, int code, Message* out);

inline constexpr int kSuccess = 0;
inline constexpr int kOutOfMemory = 2;

}  // namespace bendc::rt::gpu
