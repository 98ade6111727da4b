#include "fake_cuda/fake_cuda.h"

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "runtime/gpu/driver.h"
#include "runtime/gpu/rounds.h"

namespace {

struct State {
  FakeCuda config;
  std::map<std::string, int> calls;
  std::vector<std::function<void()>> queue;
  std::vector<std::vector<std::function<void()>>> graphs;   // a handle is an index + 1
  bool capturing = false;
  std::map<std::string, int> held;
  std::map<uint64_t, size_t> registered;
};

State& state() {
  static State s;
  return s;
}

// Counts the call; the code it fails with, or 0.
int enter(const char* name) {
  State& s = state();
  int n = ++s.calls[name];
  return s.config.fail && std::strcmp(name, s.config.fail) == 0 && n == s.config.fail_at ? s.config.code : 0;
}

char round_kernel, flat_kernel, flip_kernel, diff_kernel, move_kernel, selftest_kernel, context, own_module, program_module;

// A copy to the host. Page-locked memory is written as a device does it, whatever the pages' protection.
void write_host(void* to, const void* from, size_t bytes) {
  uint64_t at = reinterpret_cast<uint64_t>(to);
  const auto& registered = state().registered;
  auto next = registered.upper_bound(at);
  bool locked = next != registered.begin() && at - std::prev(next)->first + bytes <= std::prev(next)->second;
  if (!locked) {
    std::memcpy(to, from, bytes);
    return;
  }
  int fd = open("/proc/self/mem", O_RDWR);
  if (pwrite(fd, from, bytes, static_cast<off_t>(at)) != static_cast<ssize_t>(bytes)) std::abort();
  close(fd);
}

void run_selftest(uint64_t out, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) reinterpret_cast<uint32_t*>(out)[i] = (i * 2654435761u) ^ i;
}

// Puts the kernel's work into the queue, or the graph that is being captured.
void enqueue(void* function, unsigned gx, unsigned bx, void** arguments) {
  auto& target = state().capturing ? state().graphs.back() : state().queue;
  uint64_t first = *static_cast<uint64_t*>(arguments[0]);
  if (function == &flip_kernel) {
    target.push_back([=] { bendc::rt::gpu::flip(reinterpret_cast<BendDeviceControl*>(first)); });
  } else if (function == &move_kernel) {
    auto word = [&](int i) { return *static_cast<uint64_t*>(arguments[i]); };
    auto bytes = [&](int i) { return size_t{16} * *static_cast<uint32_t*>(arguments[i]); };
    target.push_back([=, to = word(3), from = word(4), zero = word(6), n1 = bytes(2), n2 = bytes(5), nz = bytes(7), from1 = word(1)] {
      std::memcpy(reinterpret_cast<void*>(first), reinterpret_cast<void*>(from1), n1);
      if (n2) std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), n2);
      if (nz) std::memset(reinterpret_cast<void*>(zero), 0, nz);
    });
  } else if (function == &diff_kernel) {
    uint64_t shadow = *static_cast<uint64_t*>(arguments[1]), flags = *static_cast<uint64_t*>(arguments[2]);
    target.push_back([=] {
      for (uint64_t page = 0; page < gx; ++page) {
        auto* now = reinterpret_cast<char*>(first + page * 65536);
        auto* before = reinterpret_cast<char*>(shadow + page * 65536);
        if (std::memcmp(now, before, 65536) == 0) continue;
        std::memcpy(before, now, 65536);
        reinterpret_cast<char*>(flags)[page] = 1;
      }
    });
  } else if (function == &selftest_kernel) {
    uint32_t count = *static_cast<uint32_t*>(arguments[1]);
    target.push_back([=] { run_selftest(first, count); });
  } else if (function == &flat_kernel) {
    uint32_t warps = gx * bx / BEND_LANES;
    target.push_back([=] { for (uint32_t i = 0; i < warps; ++i) state().config.flat(reinterpret_cast<void*>(first), i, warps); });
  } else {
    uint32_t threads = gx * bx, steps = *static_cast<uint32_t*>(arguments[1]);
    target.push_back([=] {
      auto* control = reinterpret_cast<BendDeviceControl*>(first);
      if (steps != BEND_STEP_NONE) bendc::rt::gpu::step(control, steps == BEND_STEP_NEXT);
      if (steps != BEND_STEP_NONE && control->waits) return;
      for (uint32_t i = 0; i < threads; ++i) state().config.round(reinterpret_cast<void*>(first), i, threads);
    });
  }
}

// Memory goes while work that may use it waits. A driver would wait; who relies on that is found out, unless a wait has been made to fail.
void leave_work() {
  if (!state().config.fail) state().held["unfinished work"] += static_cast<int>(state().queue.size());
  state().queue.clear();
}

}  // namespace

extern "C" {

void fake_cuda_configure(const FakeCuda* config) {
  state() = State();
  state().config = *config;
}
void fake_cuda_program(const FakeCuda* config) { state().config = *config; }
int fake_cuda_calls(const char* name) { return state().calls[name]; }
int fake_cuda_held(const char* what) {
  int count = 0;
  for (const auto& [kind, number] : state().held)
    if (!what || kind == what) count += number;
  return count;
}

#define ENTER(name) if (int code = enter(name)) return code

int cuInit(unsigned) { ENTER("cuInit"); return 0; }
int cuDriverGetVersion(int* version) { ENTER("cuDriverGetVersion"); *version = 13000; return 0; }
int cuGetErrorName(int code, const char** text) { *text = code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_UNKNOWN"; return 0; }
int cuGetErrorString(int code, const char** text) { *text = code == 2 ? "out of memory" : code == 700 ? "an illegal memory access was encountered" : "unknown error"; return 0; }
int cuDeviceGetCount(int* count) { ENTER("cuDeviceGetCount"); *count = state().config.devices; return 0; }
int cuDeviceGet(int* device, int ordinal) { ENTER("cuDeviceGet"); *device = ordinal; return 0; }
int cuDeviceGetName(char* text, int capacity, int) { ENTER("cuDeviceGetName"); std::strncpy(text, "Stand-in", static_cast<size_t>(capacity)); return 0; }
int cuDeviceGetUuid(unsigned char* bytes, int device) { ENTER("cuDeviceGetUuid"); std::memset(bytes, 0x10 + device, 16); return 0; }
int cuDeviceGetAttribute(int* value, int attribute, int) {
  ENTER("cuDeviceGetAttribute");
  const FakeCuda& c = state().config;
  *value = attribute == 16 ? c.processors : attribute == 75 ? c.major : attribute == 76 ? c.minor : 0;
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) { ENTER("cuDeviceTotalMem"); *bytes = state().config.memory; return 0; }
int cuDevicePrimaryCtxRetain(void** out, int) { ENTER("cuDevicePrimaryCtxRetain"); *out = &context; ++state().held["contexts"]; return 0; }
int cuDevicePrimaryCtxRelease_v2(int) { ENTER("cuDevicePrimaryCtxRelease"); --state().held["contexts"]; return 0; }
int cuCtxSetCurrent(void*) { ENTER("cuCtxSetCurrent"); return 0; }
int cuCtxSetLimit(int, size_t) { ENTER("cuCtxSetLimit"); return 0; }
int cuCtxGetLimit(size_t* value, int) { ENTER("cuCtxGetLimit"); *value = 1024; return 0; }
int cuMemGetInfo_v2(size_t* free_bytes, size_t* total) { ENTER("cuMemGetInfo"); *free_bytes = *total = state().config.memory; return 0; }
int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  ENTER("cuMemAlloc");
  if (bytes > state().config.memory) return 2;
  void* p = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (!p) return 2;
  *address = reinterpret_cast<uint64_t>(p);
  ++state().held["memory"];
  return 0;
}
int cuMemFree_v2(uint64_t address) { ENTER("cuMemFree"); leave_work(); std::free(reinterpret_cast<void*>(address)); --state().held["memory"]; return 0; }
int cuMemHostAlloc(void** address, size_t bytes, unsigned) { ENTER("cuMemHostAlloc"); *address = std::malloc(bytes); ++state().held["host memory"]; return 0; }
int cuMemFreeHost(void* address) { ENTER("cuMemFreeHost"); std::free(address); --state().held["host memory"]; return 0; }
int cuMemHostRegister_v2(void* address, size_t bytes, unsigned) {
  ENTER("cuMemHostRegister");
  state().registered[reinterpret_cast<uint64_t>(address)] = bytes;
  ++state().held["registered memory"];
  return 0;
}
int cuMemHostUnregister(void* address) {
  ENTER("cuMemHostUnregister");
  if (state().registered.erase(reinterpret_cast<uint64_t>(address)) == 0) return 713;
  --state().held["registered memory"];
  return 0;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void*) {
  ENTER("cuMemcpyDtoDAsync");
  state().queue.push_back([=] { std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes); });
  return 0;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void*) {
  ENTER("cuMemcpyHtoDAsync");
  state().queue.push_back([=] { std::memcpy(reinterpret_cast<void*>(to), from, bytes); });
  return 0;
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void*) {
  ENTER("cuMemcpyDtoHAsync");
  state().queue.push_back([=] { write_host(to, reinterpret_cast<const void*>(from), bytes); });
  return 0;
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void*) {
  ENTER("cuMemsetD8Async");
  state().queue.push_back([=] { std::memset(reinterpret_cast<void*>(to), value, bytes); });
  return 0;
}
int cuModuleLoadDataEx(void** module, const void* image, unsigned count, int* options, void** values) {
  if (int code = enter("cuModuleLoadDataEx")) {
    for (unsigned i = 0; i < count; ++i)
      if (options[i] == 5) std::strcpy(static_cast<char*>(values[i]), state().config.log);
    return code;
  }
  *module = std::strstr(static_cast<const char*>(image), "bend_flip") ? &own_module : &program_module;
  ++state().held["modules"];
  return 0;
}
int cuLinkCreate_v2(unsigned, int*, void**, void** out) { ENTER("cuLinkCreate"); *out = &context; ++state().held["links"]; return 0; }
int cuLinkAddData_v2(void*, int, void*, size_t, const char*, unsigned, int*, void**) { ENTER("cuLinkAddData"); return 0; }
int cuLinkAddFile_v2(void*, int, const char*, unsigned, int*, void**) { ENTER("cuLinkAddFile"); return 0; }
int cuLinkComplete(void*, void** image, size_t* bytes) {
  ENTER("cuLinkComplete");
  static char linked[] = "linked";
  *image = linked;
  *bytes = sizeof linked;
  return 0;
}
int cuLinkDestroy(void*) { ENTER("cuLinkDestroy"); --state().held["links"]; return 0; }
int cuModuleUnload(void*) { ENTER("cuModuleUnload"); --state().held["modules"]; return 0; }
int cuModuleGetFunction(void** function, void*, const char* name) {
  ENTER("cuModuleGetFunction");
  *function = std::strcmp(name, "bend_flip") == 0 ? &flip_kernel : std::strcmp(name, "bend_diff") == 0 ? &diff_kernel : std::strcmp(name, "bend_move") == 0 ? &move_kernel : std::strcmp(name, "bend_selftest") == 0 ? &selftest_kernel : std::strcmp(name, "bend_round") == 0 ? &round_kernel : std::strcmp(name, "bend_flat") == 0 && state().config.flat ? &flat_kernel : nullptr;
  return *function ? 0 : 500;
}
int cuModuleGetGlobal_v2(uint64_t* address, size_t* bytes, void*, const char*) {
  ENTER("cuModuleGetGlobal");
  *address = reinterpret_cast<uint64_t>(state().config.statics);
  *bytes = state().config.statics_bytes;
  return 0;
}
int cuFuncGetAttribute(int* value, int attribute, void*) { ENTER("cuFuncGetAttribute"); *value = attribute == 3 ? state().config.local_bytes : 32; return 0; }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int, size_t) { ENTER("cuOccupancyMaxActiveBlocksPerMultiprocessor"); *blocks = state().config.blocks_each; return 0; }
int cuLaunchKernel(void* function, unsigned gx, unsigned, unsigned, unsigned bx, unsigned, unsigned, unsigned, void*, void** arguments, void**) {
  ENTER("cuLaunchKernel");
  enqueue(function, gx, bx, arguments);
  return 0;
}
int cuLaunchKernelEx(const bendc::rt::gpu::CudaLaunchConfig* config, void* function, void** arguments, void**) {
  ENTER("cuLaunchKernelEx");
  enqueue(function, config->gx, config->bx, arguments);
  return 0;
}
int cuStreamBeginCapture_v2(void*, int) { ENTER("cuStreamBeginCapture"); state().capturing = true; state().graphs.emplace_back(); return 0; }
int cuStreamEndCapture(void*, void** graph) { state().capturing = false; ENTER("cuStreamEndCapture"); *graph = reinterpret_cast<void*>(state().graphs.size()); ++state().held["graphs"]; return 0; }
int cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long) { ENTER("cuGraphInstantiateWithFlags"); *exec = graph; ++state().held["executable graphs"]; return 0; }
int cuGraphLaunch(void* exec, void*) {
  ENTER("cuGraphLaunch");
  for (auto& work : state().graphs[reinterpret_cast<size_t>(exec) - 1]) state().queue.push_back(work);
  return 0;
}
int cuGraphDestroy(void*) { ENTER("cuGraphDestroy"); --state().held["graphs"]; return 0; }
int cuGraphExecDestroy(void*) { ENTER("cuGraphExecDestroy"); --state().held["executable graphs"]; return 0; }
int cuStreamCreate(void** stream, unsigned) { ENTER("cuStreamCreate"); *stream = &context; ++state().held["streams"]; return 0; }
int cuStreamDestroy_v2(void*) { ENTER("cuStreamDestroy"); --state().held["streams"]; return 0; }
int cuStreamSynchronize(void*) {
  ENTER("cuStreamSynchronize");
  for (auto& work : state().queue) work();
  state().queue.clear();
  return 0;
}
int cuEventCreate(void** event, unsigned) { ENTER("cuEventCreate"); *event = &context; ++state().held["events"]; return 0; }
int cuEventDestroy_v2(void*) { ENTER("cuEventDestroy"); --state().held["events"]; return 0; }
int cuEventRecord(void*, void*) { ENTER("cuEventRecord"); return 0; }
int cuEventElapsedTime(float* milliseconds, void*, void*) { ENTER("cuEventElapsedTime"); *milliseconds = 1; return 0; }
}
