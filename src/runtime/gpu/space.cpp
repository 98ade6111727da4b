#include "runtime/gpu/space.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/gpu/overlap.h"

namespace bendc::rt::gpu {

static_assert(sizeof(BendDeviceControl) <= kControlBytes && kControlBytes % 256 == 0 && kResultBytes % 256 == 0);

namespace {

constexpr uint64_t kMiB = 1ull << 20;
constexpr uint64_t kGiB = 1ull << 30;
constexpr uint64_t kSmallest = 64 * kMiB;
constexpr uint64_t kLargestDefault = 32 * kGiB;
constexpr uint64_t kEmulated = kGiB;
constexpr uint32_t kEmulatedThreads = 2 * 4 * BEND_BLOCK_THREADS;   // 2 processors, 4 blocks each
constexpr uint64_t kMaxQueue = 1u << 22;
constexpr uint64_t kMinQueue = 256;
constexpr uint64_t kMoveUnit = 16;                                  // bend_move
constexpr uint32_t kMoveThreads = 256;
constexpr uint32_t kMoveBlocks = 32;
constexpr uint64_t kMostMovedZeros = kMiB;
static_assert(sizeof(BendDeviceThread) % kMoveUnit == 0 && sizeof(BendDeviceControl) % kMoveUnit == 0);
constexpr uint64_t kGroups = 1u << 16;                              // of perfect trees, a round
constexpr uint64_t kWarps = 1u << 20;
constexpr uint64_t kEmulatedWarps = 1u << 12;

uint64_t align_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

bool check(const Space* space, const char* call, int code, Message* why) {
  if (code == kSuccess) return true;
  describe(&space->device->driver, call, code, why);
  return false;
}

char* reserve(uint64_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : static_cast<char*>(p);
}

// An explicit size is taken or refused; the default is half of what is free, and less while the driver has no block of that size.
bool take_device_memory(Space* space, uint64_t wanted, Message* why) {
  const Driver& d = space->device->driver;
  size_t free_bytes = 0, total = 0;
  if (!check(space, "cuMemGetInfo", d.memory_info(&free_bytes, &total), why)) return false;
  uint64_t bytes = wanted ? wanted : free_bytes / 2 < kLargestDefault ? free_bytes / 2 : kLargestDefault;
  for (;; bytes /= 2) {
    bytes = align_up(bytes, kPage);
    int code = d.memory_alloc(&space->base, bytes);
    if (code == kSuccess) break;
    if (wanted || code != kOutOfMemory || bytes / 2 < kSmallest) {
      describe(&d, "cuMemAlloc", code, why);
      why->text(" (").number(bytes).text(" bytes of ").number(free_bytes).text(" free)");
      return false;
    }
  }
  space->bytes = bytes;
  return true;
}

// What `enqueue` launches, as a graph; null when the driver refuses.
template <typename Enqueue>
void* record_graph(Space* space, Enqueue enqueue) {
  constexpr int kThisThread = 1;
  const Device* device = space->device;
  const Driver& d = device->driver;
  if (d.capture_begin(device->stream, kThisThread) != kSuccess) return nullptr;
  bool ok = enqueue();
  void *graph = nullptr, *out = nullptr;
  ok = d.capture_end(device->stream, &graph) == kSuccess && ok;
  if (ok && d.graph_instantiate(&out, graph, 0) != kSuccess) out = nullptr;
  if (graph) d.graph_destroy(graph);
  return out;
}

bool record_both(Space* space) {
  const char* call = nullptr;
  space->rounds_graph = record_graph(space, [&] {
    bool ok = true;
    for (uint32_t i = 0; i < kGraphRounds; ++i) ok = ok && space_enqueue_round(space, &call) == kSuccess;
    return ok;
  });
  if (space->rounds_graph) space->steps_graph = record_graph(space, [&] { return space_enqueue_steps(space, kGraphRounds, &call) == kSuccess; });
  return space->rounds_graph != nullptr;
}

// A graph node costs a fifth of a launch (0.7 against 4 us on an H200). Without graphs, or when the driver refuses, rounds are launched one by one.
// Drivers before CUDA 12.3 record no kernels that overlap; a graph is worth more than that.
void record_rounds(Space* space) {
  Device* device = space->device;
  const Driver& d = device->driver;
  if (!d.capture_begin || !d.capture_end || !d.graph_instantiate || !d.graph_launch || !d.graph_destroy || !d.graph_exec_destroy) return;
  if (record_both(space) || !device->overlaps) return;
  device->overlaps = false;
  record_both(space);
}

struct Move {
  uint64_t to, from, bytes;
};

bool launch_move(Space* space, Move a, Move b, uint64_t zero_at, uint64_t zeros, Message* why) {
  const Device* device = space->device;
  uint32_t na = static_cast<uint32_t>(a.bytes / kMoveUnit), nb = static_cast<uint32_t>(b.bytes / kMoveUnit), nz = static_cast<uint32_t>(zeros / kMoveUnit);
  void* arguments[] = {&a.to, &a.from, &na, &b.to, &b.from, &nb, &zero_at, &nz};
  const uint32_t most = na > nb ? (na > nz ? na : nz) : (nb > nz ? nb : nz);
  uint32_t blocks = (most + kMoveThreads - 1) / kMoveThreads;
  if (blocks > kMoveBlocks) blocks = kMoveBlocks;
  return check(space, "cuLaunchKernel bend_move", launch_grid(&device->driver, device->stream, {device->move, blocks ? blocks : 1, kMoveThreads}, device->overlaps, arguments), why);
}

}  // namespace

namespace {

int enqueue(Space* space, Grid grid, const char* name, uint32_t steps, const char** call) {
  void* arguments[] = {&space->control, &steps};
  *call = name;
  return launch_grid(&space->device->driver, space->device->stream, grid, space->device->overlaps, arguments);
}

// A round of `blocks` but for its end.
int enqueue_tasks(Space* space, uint32_t blocks, uint32_t steps, const char** call) {
  const Device* device = space->device;
  int code = enqueue(space, {device->round, blocks, BEND_BLOCK_THREADS}, "cuLaunchKernel bend_round", steps, call);
  // Beside the grid of a step there is a place for the block of the next one, which so waits there instead of beginning when the grid has ended.
  const uint32_t grid = device->flat_blocks - (steps != BEND_STEP_NONE && device->flat_blocks > 1 ? 1 : 0);
  if (code == kSuccess && device->flat) code = enqueue(space, {device->flat, grid, BEND_BLOCK_THREADS}, "cuLaunchKernel bend_flat", 0, call);
  return code;
}

int enqueue_flip(Space* space, const char** call) { return enqueue(space, {space->device->flip, 1, 1}, "cuLaunchKernel bend_flip", 0, call); }

}  // namespace

int space_enqueue_round(Space* space, const char** call) {
  const int code = enqueue_tasks(space, space->device->blocks, BEND_STEP_NONE, call);
  return code == kSuccess ? enqueue_flip(space, call) : code;
}

int space_enqueue_steps(Space* space, uint32_t rounds, const char** call) {
  int code = kSuccess;
  for (uint32_t i = 0; i < rounds && code == kSuccess; ++i) code = enqueue_tasks(space, 1, i == 0 ? BEND_STEP_FIRST : BEND_STEP_NEXT, call);
  return code == kSuccess ? enqueue_flip(space, call) : code;
}

bool space_open(Space* space, Device* device, const BendGpuProgram* program, uint64_t wanted, uint32_t capacity, Message* why) {
  *space = {};
  space->device = device;
  if (device) {
    if (!take_device_memory(space, wanted, why)) return false;
    space->resident_threads = device->blocks * BEND_BLOCK_THREADS;
    space->thread_records = (device->flat_blocks > device->blocks ? device->flat_blocks : device->blocks) * BEND_BLOCK_THREADS;
  } else {
    space->bytes = align_up(wanted ? wanted : kEmulated, kPage);
    char* memory = reserve(space->bytes);
    if (!memory) {
      why->text("the system refuses ").number(space->bytes).text(" bytes for the emulated device's memory");
      return false;
    }
    space->base = reinterpret_cast<uint64_t>(memory);
    space->resident_threads = space->thread_records = kEmulatedThreads;
  }
  space->task_stride = program->task_stride;
  space->makes_arrays = program->makes_arrays != 0;
  uint64_t records = space->bytes / 16 / program->task_stride;
  if (records > kMaxQueue) records = kMaxQueue;
  if (capacity && records > capacity) records = capacity;
  space->queue_capacity = static_cast<uint32_t>(records);
  uint64_t at = space->base;
  auto part = [&](uint64_t bytes) {
    uint64_t here = at;
    at += align_up(bytes, 256);
    return here;
  };
  space->control = part(kResultBytes) + kResultBytes;
  part(kControlBytes);
  for (uint64_t& queue : space->queues) queue = part(records * program->task_stride);
  space->threads = part(static_cast<uint64_t>(space->thread_records) * sizeof(BendDeviceThread));
  if (program->group_stride > 0) {
    uint64_t groups = capacity && capacity / 4 < kGroups ? capacity / 4 : kGroups;
    uint64_t warps = device ? kWarps : capacity / 4 < kEmulatedWarps ? capacity / 4 : kEmulatedWarps;
    while (warps * (program->result_stride + 24) > space->bytes / 16) warps /= 2;
    space->group_capacity = static_cast<uint32_t>(groups);
    space->warp_capacity = static_cast<uint32_t>(warps);
    space->groups = part(groups * program->group_stride);
    for (uint64_t& list : space->resumes) list = part(groups * 8);
    space->results = part(warps * program->result_stride);
    space->counters = part(warps * 4);
    space->scans = part(warps * kScanBytes);
    if (device) space->scan_number = kScansUnclear;
  }
  at = align_up(at, kPage);
  space->heap = at;
  uint64_t end = space->base + space->bytes;
  if (at + kPage > end || records < (capacity ? 1 : kMinQueue)) {
    why->text("a device memory of ").number(space->bytes).text(" bytes is too small for ").number(space->resident_threads).text(" threads");
    return false;
  }
  space->heap_bytes = end - at;
  space->places.open(space->heap_bytes);
  if (!device) space->zeros = {0, space->heap_bytes};
  space->dirty_threads = space->thread_records;
  const uint64_t pinned_bytes = align_up(kResultBytes + kControlBytes + program->task_stride, 4096);
  if (!device) {
    space->pinned = static_cast<char*>(malloc(pinned_bytes));
    if (space->pinned) return image_open(space, nullptr, why);
    why->text("the system refuses memory");
    return false;
  }
  void* pinned = nullptr;
  if (!check(space, "cuMemHostAlloc", device->driver.host_alloc(&pinned, pinned_bytes + kBounceBytes + kMostCompared / kPage, 0), why)) return false;
  space->pinned = static_cast<char*>(pinned);
  space->bounce = space->pinned + pinned_bytes;
  if (!image_open(space, reinterpret_cast<uint8_t*>(space->bounce + kBounceBytes), why)) return false;
  if (!space_zero(space, space->threads, static_cast<uint64_t>(space->thread_records) * sizeof(BendDeviceThread), why)) return false;
  space->dirty_threads = 0;
  if (space->warp_capacity > 0 && !space_zero(space, space->counters, uint64_t{space->warp_capacity} * 4, why)) return false;
  if (!space_restore_zeros(space, 0, space->heap_bytes, why)) return false;
  record_rounds(space);
  if (device->statics_bytes == 0) return true;
  char* statics = static_cast<char*>(malloc(device->statics_bytes));
  space->statics = statics;
  if (!statics) {
    why->text("the system refuses memory");
    return false;
  }
  return space_get(space, statics, device->statics, device->statics_bytes, why) && space_wait(space, why);
}

void space_close(Space* space) {
  if (!space->device) {
    if (space->base) munmap(reinterpret_cast<void*>(space->base), space->bytes);
    free(space->pinned);
  } else {
    const Driver& d = space->device->driver;
    d.context_use(space->device->context);
    if (space->rounds_graph) d.graph_exec_destroy(space->rounds_graph);
    if (space->steps_graph) d.graph_exec_destroy(space->steps_graph);
    if (space->base) d.memory_free(space->base);
    if (space->pinned) d.host_free(space->pinned);
    free(const_cast<char*>(space->statics));
  }
  image_close(space);
  audit_close(&space->audit);
  space->places.close();
  *space = {};
}

bool space_put(Space* space, uint64_t to, const void* from, uint64_t bytes, Message* why) {
  if (bytes == 0) return true;
  space->moved_in += bytes;
  if (space->device) return check(space, "cuMemcpyHtoDAsync", space->device->driver.copy_in(to, from, bytes, space->device->stream), why);
  if (reinterpret_cast<void*>(to) != from) memcpy(reinterpret_cast<void*>(to), from, bytes);
  return true;
}

bool space_get(Space* space, void* to, uint64_t from, uint64_t bytes, Message* why) {
  if (bytes == 0) return true;
  space->moved_out += bytes;
  if (space->device) return check(space, "cuMemcpyDtoHAsync", space->device->driver.copy_out(to, from, bytes, space->device->stream), why);
  memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return true;
}

bool space_copy(Space* space, uint64_t to, uint64_t from, uint64_t bytes, Message* why) {
  if (space->device) return check(space, "cuMemcpyDtoDAsync", space->device->driver.copy_within(to, from, bytes, space->device->stream), why);
  memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return true;
}

bool space_zero(Space* space, uint64_t to, uint64_t bytes, Message* why) {
  if (space->device) return check(space, "cuMemsetD8Async", space->device->driver.fill(to, 0, bytes, space->device->stream), why);
  memset(reinterpret_cast<void*>(to), 0, bytes);
  return true;
}

bool space_restore_zeros(Space* space, uint64_t low, uint64_t high, Message* why) {
  const uint64_t floor = space->places.lowest_floor();
  if (high > floor) high = floor;
  space->zeros.touched(low, high);
  if (!space->makes_arrays) return true;
  const uint64_t most = space->heap_bytes / 4 < kZeroBytes ? space->heap_bytes / 4 : kZeroBytes;
  if (high > low + most) high = low + most;
  return space->zeros.extend(low, high, [&](uint64_t at, uint64_t bytes) { return space_zero(space, space->heap + at, bytes, why); });
}

bool space_start(Space* space, uint64_t bytes, Message* why) {
  Image* m = &space->image;
  const char* control = space->pinned + kResultBytes;
  const uint64_t zeros = align_up(space->dirty_threads, BEND_LANES) * sizeof(BendDeviceThread);   // a warp's records are interleaved
  if (!space->device) return space_put(space, space->control, control, bytes, why) && space_zero(space, space->threads, zeros, why);
  const bool few = zeros <= kMostMovedZeros;
  Move image = {space->heap, reinterpret_cast<uint64_t>(space->bounce + kPage), align_up(m->waiting, kMoveUnit)};
  space->moved_in += bytes + m->waiting;
  m->waiting = 0;
  return launch_move(space, {space->control, reinterpret_cast<uint64_t>(control), bytes}, image, space->threads, few ? zeros : 0, why) &&
         (few || space_zero(space, space->threads, zeros, why));
}

bool space_look(Space* space, uint64_t result, Message* why) {
  const uint64_t bytes = result + sizeof(BendDeviceControl);
  const uint64_t prefix = image_look(space);
  space->moved_out += bytes + prefix;
  return launch_move(space, {reinterpret_cast<uint64_t>(space->pinned + kResultBytes - result), space->control - result, bytes},
                     {reinterpret_cast<uint64_t>(space->bounce), space->heap, prefix}, 0, 0, why);
}

bool space_wait(Space* space, Message* why) {
  if (!space->device) return true;
  return check(space, "cuStreamSynchronize", space->device->driver.stream_wait(space->device->stream), why);
}

}  // namespace bendc::rt::gpu
