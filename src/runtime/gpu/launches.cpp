#include "runtime/gpu/launches.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/gpu/rounds.h"

namespace bendc::rt::gpu {

namespace {

// CUjitInputType, CUjit_option, CUlimit and CUfunction_attribute, by their numbers in cuda.h.
constexpr int kInputPtx = 1, kInputLibrary = 4;
constexpr int kJitErrorLog = 5, kJitErrorLogBytes = 6;
constexpr int kLimitStack = 0, kLimitPendingLaunches = 4;
constexpr int kFunctionLocalBytes = 3, kFunctionRegisters = 4;

// Grids in the driver's list: those that have not begun, and those whose descendants have not ended. The driver reserves memory for all of them. It refuses what is beyond, but once
// its list has run full often a program may never end, in the device runtime's own code (H200, driver 580: a tree of 2^19 leaves, a grid a fork; breadth-first
// search, one run of ten with three quarters of a list of 32768 waiting). So the kernel lets no more than these sixteenths of the list wait.
constexpr size_t kPending = 131072, kFewestPending = 2048;
constexpr uint32_t kWaitingSixteenths = 3;
constexpr uint64_t kRecords = 1u << 22;
constexpr uint64_t kEmulatedRecords = 1u << 16;
constexpr uint64_t kPoolHeader = 128;  // the cursor has a line of its own

bool check(const Launches* launches, const char* call, int code, Message* why) {
  if (code == kSuccess) return true;
  describe(&launches->device->driver, call, code, why);
  return false;
}

const BendGpuCode* launch_code(const BendGpuProgram* program) {
  for (uint32_t i = 0; i < program->code_count; ++i)
    if (program->codes[i].kind == BEND_GPU_LAUNCH_PTX) return &program->codes[i];
  return nullptr;
}

// Where toolkits put libcudadevrt.a; `path` has room for 512 bytes.
bool find_device_runtime(const GpuConfig& config, char* path, Message* why) {
  auto there = [&](const char* folder, const char* rest) {
    if (!folder || strlen(folder) + strlen(rest) >= 512) return false;
    strcpy(path, folder);
    strcat(path, rest);
    return access(path, R_OK) == 0;
  };
  if (config.device_runtime) {
    if (there(config.device_runtime, "")) return true;
    why->text("BEND_CUDADEVRT names `").text(config.device_runtime).text("`, which cannot be read");
    return false;
  }
  const char* toolkits[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda"};
  const char* places[] = {"/lib64/libcudadevrt.a", "/lib/libcudadevrt.a", "/targets/x86_64-linux/lib/libcudadevrt.a"};
  for (const char* toolkit : toolkits)
    for (const char* rest : places)
      if (there(toolkit, rest)) return true;
  if (there("/usr/lib/x86_64-linux-gnu", "/libcudadevrt.a")) return true;
  why->text("no CUDA toolkit with libcudadevrt.a was found (CUDA_HOME, /usr/local/cuda; BEND_CUDADEVRT names the file)");
  return false;
}

bool link_module(Launches* launches, const GpuConfig& config, Message* why) {
  const Driver& d = launches->device->driver;
  if (!d.link_create || !d.link_data || !d.link_file || !d.link_complete || !d.link_destroy) {
    why->text("the CUDA driver cannot link device code");
    return false;
  }
  char path[512];
  if (!find_device_runtime(config, path, why)) return false;
  const BendGpuCode* code = launch_code(launches->program);
  char errors[1024];
  errors[0] = 0;
  int options[] = {kJitErrorLog, kJitErrorLogBytes};
  void* values[] = {errors, reinterpret_cast<void*>(sizeof errors)};
  void *state = nullptr, *cubin = nullptr;
  size_t bytes = 0;
  if (!check(launches, "cuLinkCreate", d.link_create(2, options, values, &state), why)) return false;
  bool linked = check(launches, "cuLinkAddData", d.link_data(state, kInputPtx, const_cast<void*>(code->bytes), code->size, "the program's launch module", 0, nullptr, nullptr), why) &&
                check(launches, "cuLinkAddFile libcudadevrt.a", d.link_file(state, kInputLibrary, path, 0, nullptr, nullptr), why) &&
                check(launches, "cuLinkComplete", d.link_complete(state, &cubin, &bytes), why) &&
                check(launches, "cuModuleLoadDataEx", d.module_load(&launches->module, cubin, 0, options, nullptr), why);
  d.link_destroy(state);
  size_t n = strnlen(errors, sizeof errors);
  while (n > 0 && (errors[n - 1] == '\n' || errors[n - 1] == ' ')) --n;
  if (!linked && n > 0) why->text(": ").bytes(errors, n);
  return linked;
}

bool open_kernel(Launches* launches, Message* why) {
  const Driver& d = launches->device->driver;
  int local = 0, registers = 0;
  size_t stack = 0;
  if (!check(launches, "cuModuleGetFunction " BEND_CHILDREN_KERNEL_NAME, d.module_function(&launches->children, launches->module, BEND_CHILDREN_KERNEL_NAME), why) ||
      !check(launches, "cuFuncGetAttribute", d.function_attribute(&local, kFunctionLocalBytes, launches->children), why) ||
      !check(launches, "cuFuncGetAttribute", d.function_attribute(&registers, kFunctionRegisters, launches->children), why) ||
      !check(launches, "cuCtxGetLimit", d.context_get_limit(&stack, kLimitStack), why))
    return false;
  launches->local_bytes = static_cast<uint32_t>(local);
  launches->registers = static_cast<uint32_t>(registers);
  // The device runtime's own calls need some stack beside the kernel's.
  const size_t wanted = static_cast<size_t>(local) + 1024;
  if (wanted > stack && !check(launches, "cuCtxSetLimit", d.context_limit(kLimitStack, wanted), why)) return false;
  for (size_t pending = kPending;; pending /= 2) {
    launches->most_waiting = static_cast<uint32_t>(pending / 16 * kWaitingSixteenths);
    const int code = d.context_limit(kLimitPendingLaunches, pending);
    if (code != kOutOfMemory || pending == kFewestPending) return check(launches, "cuCtxSetLimit", code, why);
  }
}

// A small pool for some seeds, so that it runs full.
uint32_t emulated_capacity(uint64_t seed) { return seed == 0 ? static_cast<uint32_t>(kEmulatedRecords) : 8u << seed % 11; }

}  // namespace

bool launches_open(Launches* launches, const GpuConfig& config, const BendGpuProgram* program, Device* device, Message* why) {
  launches->program = program;
  launches->device = device;
  launches->seed = config.seed;
  launches->way = config.fork == Fork::Thread ? BEND_LAUNCH_THREAD : config.fork == Fork::Warp ? BEND_LAUNCH_WARP : BEND_LAUNCH_BLOCK;
  if (!device) {
    launches->capacity = emulated_capacity(config.seed);
    launches->most_waiting = kPending / 16 * kWaitingSixteenths;
    launches->base = reinterpret_cast<uint64_t>(calloc(1, kPoolHeader + uint64_t{launches->capacity} * program->task_stride));
    if (launches->base) return true;
    why->text("the system refuses memory");
    return false;
  }
  uint64_t records = kRecords;
  if (!link_module(launches, config, why) || !open_kernel(launches, why)) return false;
  for (;; records /= 2) {
    int code = device->driver.memory_alloc(&launches->base, kPoolHeader + records * program->task_stride);
    if (code == kSuccess) break;
    if (code == kOutOfMemory && records > 4096) continue;
    return check(launches, "cuMemAlloc", code, why);
  }
  launches->capacity = static_cast<uint32_t>(records);
  return true;
}

void launches_close(Launches* launches) {
  if (launches->device) {
    const Driver& d = launches->device->driver;
    d.context_use(launches->device->context);
    if (launches->base) d.memory_free(launches->base);
    if (launches->module) d.module_unload(launches->module);
  } else {
    free(reinterpret_cast<void*>(launches->base));
  }
  *launches = {};
}

bool run_launches(Run* run, Message* why) {
  Space* space = run->space;
  const Launches* launches = run->launches;
  BendLaunchPool pool = {};
  pool.records = launches->base + kPoolHeader;
  pool.capacity = launches->capacity;
  pool.way = launches->way;
  pool.first_warp = run->control->warp_capacity;
  pool.warp_capacity = space->warp_capacity - run->control->warp_capacity;
  pool.most_waiting = launches->most_waiting;
  if (!launches->device) {
    BendLaunchPool* there = reinterpret_cast<BendLaunchPool*>(launches->base);
    BendDeviceControl* c = reinterpret_cast<BendDeviceControl*>(space->control);
    *there = pool;
    for (uint64_t round = 0; c->in_count > 0; ++round) {
      there->cursor = 0;
      there->warps = 0;
      if (!emulate_launches(launches, c, round, why)) return false;
      if (c->groups) emulate_groups(run, c, round);
      flip(c);
    }
    pool = *there;
  } else {
    const Device* device = space->device;
    const Driver& d = device->driver;
    const BendDeviceControl* seen = reinterpret_cast<const BendDeviceControl*>(space->pinned + kResultBytes);
    const uint64_t result = (run->program->entries[run->entry].result.size + 255) / 256 * 256;
    if (!space_put(space, launches->base, &pool, sizeof pool, why) || !space_wait(space, why)) return false;
    uint32_t count = 1;
    uint64_t queue = space->queues[0];
    do {
      uint64_t launch = 0, tasks = count;
      void* arguments[] = {&space->control, &launch, &queue, &tasks};
      void* control_alone[] = {&space->control};
      const uint32_t blocks = (count + BEND_BLOCK_THREADS - 1) / BEND_BLOCK_THREADS;
      static_assert(offsetof(BendLaunchPool, cursor) == offsetof(BendLaunchPool, warps) + 8);
      if (!space_zero(space, launches->base + offsetof(BendLaunchPool, warps), 12, why)) return false;
      if (!check(launches, "cuLaunchKernel " BEND_CHILDREN_KERNEL_NAME, d.launch(launches->children, blocks, 1, 1, BEND_BLOCK_THREADS, 1, 1, 0, device->stream, arguments, nullptr), why)) return false;
      // Trees that found no grid.
      if (device->flat && !check(launches, "cuLaunchKernel bend_flat", d.launch(device->flat, device->flat_blocks, 1, 1, BEND_BLOCK_THREADS, 1, 1, 0, device->stream, control_alone, nullptr), why)) return false;
      if (!check(launches, "cuLaunchKernel bend_flip", d.launch(device->flip, 1, 1, 1, 1, 1, 1, 0, device->stream, control_alone, nullptr), why)) return false;
      run->counters->launches += round_launches(space);
      run->counters->looks += 1;
      if (!space_look(space, result, why) || !space_wait(space, why)) return false;
      count = seen->in_count;
      queue = seen->in_queue;
    } while (count > 0);
    if (!space_get(space, &pool, launches->base, sizeof pool, why) || !space_wait(space, why)) return false;
  }
  run->counters->grids += pool.grids;
  run->counters->launched_trees += pool.trees;
  run->counters->refused_forks += pool.refused;
  return true;
}

}  // namespace bendc::rt::gpu
