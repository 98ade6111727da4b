// The state of one run of a program: everything the runtime knows hangs off BendWorker.runtime, nothing is global.
#pragma once
#include "runtime/abi.h"
#include "runtime/config.h"
#include "runtime/memory/heap.h"
#include "runtime/output.h"
#include "runtime/symbols.h"

namespace bendc::rt {
struct Loop;
struct Scheduler;
namespace gpu {
struct Gpu;
}
}

struct BendRuntime {
  const BendProgram* program;
  bendc::rt::Config config;
  bendc::rt::Output out;
  bendc::rt::Heap heap;
  bendc::rt::Loop* loop;        // set while an IO main runs
  bendc::rt::gpu::Gpu* gpu;     // null: no `!`, or the GPU is off
  bendc::rt::Scheduler* scheduler;
  BendWorker* workers;          // config.threads of them
  uint32_t worker_count;        // those whose heaps are open
  uint32_t failing;             // set by the first worker that ends the program with an error
  void* error_exit;             // jmp_buf of the program's thread; null: an error ends the process
};
