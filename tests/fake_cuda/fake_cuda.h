// A stand-in for libcuda.so.1, for tests of the driver paths: device memory is host memory, work is queued and runs at the next synchronisation, kernels are
// C++ functions of the test. Any function can be told to fail at its n-th call. One configuration a process, set before the library is used.
#pragma once
#include <cstddef>
#include <cstdint>

struct FakeCuda {
  int devices = 1;
  int major = 9, minor = 0, processors = 2, blocks_each = 4;
  size_t memory = size_t{512} << 20;
  int local_bytes = 64;
  void (*round)(void* control, uint32_t thread, uint32_t threads) = nullptr;
  void (*flat)(void* control, uint32_t warp, uint32_t warps) = nullptr;   // null: the module has no kernel bend_flat
  const char* fail = nullptr;      // a function's plain name, such as cuMemAlloc
  int fail_at = 1;                 // 1: its first call
  int code = 999;
  const char* log = "";            // what a failing module load writes into its error log
  const void* statics = nullptr;   // the module's global `bend_statics`
  size_t statics_bytes = 0;
};

using FakeCudaConfigure = void (*)(const FakeCuda*);   // symbol: fake_cuda_configure
using FakeCudaProgram = void (*)(const FakeCuda*);     // symbol: fake_cuda_program; the same for another program of the process: what is held stays
using FakeCudaCalls = int (*)(const char*);            // symbol: fake_cuda_calls
using FakeCudaHeld = int (*)(const char*);             // symbol: fake_cuda_held: how many `modules`, `streams`, `events`, .. have not been given back, and how much work waited when its memory was freed; null: of all kinds
