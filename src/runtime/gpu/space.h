// The device memory of a run: one block, cut into control block, result, thread records, two queues and the heap. With the emulator the
// block is host memory, and device addresses are host addresses.
//
//   base: results | control | queue 0 | queue 1 | threads | groups, resumes, warps' results, counters and scans | heap ............ |
//                                                                        ^ grows up: nodes   ^ places: big blocks, for a call or longer
// A call's result ends where the control block starts and its first task follows it, so that one copy starts a call and one copy looks at it.
#pragma once
#include "runtime/gpu/device.h"
#include "runtime/gpu/device_abi.h"
#include "runtime/gpu/image.h"
#include "runtime/gpu/page_audit.h"
#include "runtime/gpu/places.h"
#include "runtime/gpu/zeros.h"

namespace bendc::rt::gpu {

struct Space {
  Device* device;            // null: emulated
  uint64_t base, bytes;
  uint64_t control, threads, queues[2], heap, heap_bytes;
  Places places;             // of the heap's upper end
  uint64_t reached;          // heap bytes that the last call's nodes may have used
  Zeros zeros;
  bool makes_arrays;         // the program's device code
  uint32_t queue_capacity;
  uint32_t resident_threads;
  uint32_t task_stride;
  Image image;
  PageAudit audit;
  uint32_t thread_records;   // resident threads of the widest kernel
  uint64_t groups, resumes[2], results, counters, scans;  // of perfect trees; capacities 0: the program has none
  uint32_t scan_number;      // of the last scan; kScansUnclear: the words at `scans` are to be zeroed first
  uint32_t group_capacity, warp_capacity;
  const char* statics;       // host copy of the device's immortal nodes
  char* pinned;              // host copy of results, control block and first task
  char* bounce;              // kBounceBytes of page-locked memory; null: emulated
  uint64_t moved_in, moved_out;
  uint32_t dirty_threads;    // thread records that the last call may have written
  void* rounds_graph;        // kGraphRounds times bend_round and bend_flip; null: launched one by one
  void* steps_graph;         // as many rounds by steps
};

inline constexpr uint64_t kScanBytes = 20;            // of a warp-task at `scans`
inline constexpr uint32_t kScansUnclear = ~0u;
inline constexpr uint32_t kMostScans = 1u << 30;     // a call begins with fewer; numbers have 31 bits
inline constexpr uint64_t kBounceBytes = 1u << 20;
inline constexpr uint64_t kZeroBytes = 256u << 20;    // 60 us on an H200
inline constexpr uint64_t kControlBytes = 1024;      // the control block up to queue 0
inline constexpr uint64_t kResultBytes = 1u << 16;   // room for a result by value; entries with more are refused

// `wanted`: 0 takes a share of the free memory. `capacity`: records a queue, 0 for the default.
[[nodiscard]] bool space_open(Space* space, Device* device, const BendGpuProgram* program, uint64_t wanted, uint32_t capacity, Message* why);
void space_close(Space* space);

inline constexpr uint32_t kGraphRounds = 8;
// The kernels of one round on the device's stream: the driver's code, and in `call` what was called.
[[nodiscard]] int space_enqueue_round(Space* space, const char** call);
// Of `rounds` rounds of few tasks (device_abi.h: steps).
[[nodiscard]] int space_enqueue_steps(Space* space, uint32_t rounds, const char** call);
inline uint32_t round_launches(const Space* space) { return space->device->flat ? 3 : 2; }

// Copies are in order on the device's stream; a `get` is there after space_wait. False: `why` has the driver's text.
[[nodiscard]] bool space_put(Space* space, uint64_t to, const void* from, uint64_t bytes, Message* why);
[[nodiscard]] bool space_get(Space* space, void* to, uint64_t from, uint64_t bytes, Message* why);
// Device bytes to another place on the device.
[[nodiscard]] bool space_copy(Space* space, uint64_t to, uint64_t from, uint64_t bytes, Message* why);
[[nodiscard]] bool space_zero(Space* space, uint64_t to, uint64_t bytes, Message* why);
// Before a call with nodes from `low` on and places from `high` on: where calls make arrays, the first kZeroBytes of its heap (at most a quarter) are zero again.
[[nodiscard]] bool space_restore_zeros(Space* space, uint64_t low, uint64_t high, Message* why);
// The start of a call: `bytes` of the pinned control block and first task, a small image that waits (image.h), and clean thread records.
[[nodiscard]] bool space_start(Space* space, uint64_t bytes, Message* why);
// The look at the end of rounds: `result` bytes before the control block, the block, and the heap's start when the image is small; to the pinned copies.
[[nodiscard]] bool space_look(Space* space, uint64_t result, Message* why);
[[nodiscard]] bool space_wait(Space* space, Message* why);

}  // namespace bendc::rt::gpu
