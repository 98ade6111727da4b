#include "runtime/gpu/executor.h"

#include <string.h>

#include "runtime/gpu/launches.h"
#include "runtime/gpu/rounds.h"

namespace bendc::rt::gpu {

namespace {

// Measured on an H200 (docs/performance.md, "What auto weighs"): tasks for half of the threads are enough to go on in them.
constexpr uint32_t kThreadsPerTask = 2;
constexpr uint32_t kSequentialBudget = 512;
// Tasks that are left after a sequential round are uneven: they are dealt out again sooner.
constexpr uint32_t kAgainBudget = 128;
// Up to so many tasks that do not grow, twice, are a chain: its rounds are as long as 64 turns of the machine, some 20 microseconds, in place of one fork's 10.
constexpr uint32_t kMiddle = 64;
constexpr uint32_t kMiddleBudget = 64;
// Warp-tasks of a tree for each resident warp: enough for warps that end early to take more.
constexpr uint32_t kWarpTasksPerWarp = 4;
constexpr uint32_t kFirstRounds = 1;   // a perfect tree is one; a look costs 10 us, an empty round about 8
constexpr uint32_t kMostRounds = 64;
constexpr uint64_t kLargestChunk = 4096;
constexpr uint64_t kSmallestChunk = 256;

bool check(const Space* space, const char* call, int code, Message* why) {
  if (code == kSuccess) return true;
  describe(&space->device->driver, call, code, why);
  return false;
}

uint64_t align_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

// Bytes from the result's start to the control block.
uint64_t result_span(const Run* run) { return align_up(run->program->entries[run->entry].result.size, 256); }

void fill_control(const Run* run, BendDeviceControl* c) {
  const Space* space = run->space;
  memset(c, 0, sizeof *c);
  c->in_queue = space->queues[0];
  c->out_queue = space->queues[1];
  c->heap_cursor = align_up(space->heap + run->used, 256);
  c->heap_limit = space->heap + run->top;
  c->zero_from = space->heap + space->zeros.from;
  c->zero_to = space->heap + space->zeros.to;
  c->threads = space->threads;
  c->result = space->control - result_span(run);
  c->threshold = run->config->threshold;
  c->in_count = 1;
  c->queue_capacity = space->queue_capacity;
  c->task_stride = space->task_stride;
  c->resident_threads = space->resident_threads;
  c->entry = run->entry;
  uint64_t share = space->heap_bytes / 16 / space->resident_threads;
  c->chunk_bytes = static_cast<uint32_t>(kSmallestChunk);
  const uint64_t most = *run->chunk_hint ? *run->chunk_hint : kLargestChunk;
  while (c->chunk_bytes < most && c->chunk_bytes * 2 <= share) c->chunk_bytes *= 2;
  c->target = space->resident_threads / kThreadsPerTask;
  if (c->target > space->queue_capacity / 2) c->target = space->queue_capacity / 2;
  c->sequential_budget = kSequentialBudget;
  c->again_budget = kAgainBudget;
  c->group_queue = space->groups;
  c->results = space->results;
  c->counters = space->counters;
  c->scans = space->scans;
  c->scan_number = space->scan_number;
  c->in_resumes = space->resumes[0];
  c->out_resumes = space->resumes[1];
  c->group_capacity = space->group_capacity;
  c->warp_capacity = space->warp_capacity;
  if (space->device)
    while (c->warps_log2 < 20 && 1u << c->warps_log2 < space->device->flat_blocks * (BEND_BLOCK_THREADS / BEND_LANES) * kWarpTasksPerWarp / 2) ++c->warps_log2;
  c->middle = kMiddle;
  c->middle_budget = kMiddleBudget;
  c->most_spread = BEND_LANE_BITS;
  if (!space->device) emulate_limits(run, c);
  switch (run->config->fork) {
    case Fork::Auto: break;
    case Fork::Flat: c->wide_trees = 1; break;
    case Fork::Thread:
    case Fork::Warp:
    case Fork::Block:
      c->target = UINT32_MAX;
      c->middle = c->most_spread = 0;
      c->warp_capacity /= 2;   // trees that are launched have the other half of the results
      c->launches = run->launches->base;
      // A thread that lives for one task should not keep much of the heap.
      c->chunk_bytes = kSmallestChunk;
      // Emulated, some seeds let tasks that run in order soon fork again.
      if (!space->device && run->config->seed % 3 == 1) c->sequential_budget = c->again_budget = 16;
      break;
    case Fork::Host:
      c->target = UINT32_MAX;
      c->middle = 0;
      c->group_capacity = 0;
      break;
    case Fork::Sequential:
      c->group_capacity = 0;
      c->target = 0;
      c->sequential_budget = c->again_budget = 0;
      break;
  }
  choose_mode(c, 0, false);
}

// Whether a device's steps would find the joins to go on with.
bool resumes_agree(const BendDeviceControl* c) {
  const uint64_t* list = reinterpret_cast<const uint64_t*>(c->out_resumes);
  for (uint32_t i = 0; i < c->out_resume_count && i < BEND_STEP_TASKS; ++i)
    if (c->first_resumes[i] != list[i]) return false;
  return true;
}

bool emulate(Run* run, Message* why) {
  BendDeviceControl* c = reinterpret_cast<BendDeviceControl*>(run->space->control);
  for (uint64_t round = 0; c->in_count > 0; ++round) {
    emulate_round(run, c, round);
    if (c->groups) emulate_groups(run, c, round);
    if (!resumes_agree(c)) {
      why->text("internal error: the joins that a step finds are others than those of the list");
      return false;
    }
    BendDeviceControl twin = *c;
    step(c, true);
    if (run->program->emulated_step) {
      run->program->emulated_step(&twin, 1);
      if (memcmp(c, &twin, sizeof twin) != 0) {
        why->text("internal error: the device's step and the runtime's differ");
        return false;
      }
    }
    if (c->waits) flip(c);
  }
  return true;
}

bool launch(Run* run, Message* why) {
  Space* space = run->space;
  const Device* device = space->device;
  const Driver& d = device->driver;
  const BendDeviceControl* seen = reinterpret_cast<const BendDeviceControl*>(space->pinned + kResultBytes);
  const uint64_t result = result_span(run);
  const char* call = nullptr;
  // Calls of one def tend to take as many rounds as the last one did.
  uint32_t rounds = *run->rounds_hint ? *run->rounds_hint : kFirstRounds;
  if (rounds > kMostRounds) rounds = kMostRounds;
  // Steps, while no round of the call has been too wide for one; and as the last call of the def.
  bool narrow = *run->widest_hint != 0 && *run->widest_hint <= BEND_STEP_TASKS;
  do {
    void* graph = narrow ? space->steps_graph : space->rounds_graph;
    uint32_t graphs = graph ? rounds / kGraphRounds : 0, rest = rounds - graphs * kGraphRounds;
    for (uint32_t i = 0; i < graphs; ++i)
      if (!check(space, "cuGraphLaunch", d.graph_launch(graph, device->stream), why)) return false;
    if (narrow && rest > 1) {
      if (int code = space_enqueue_steps(space, rest, &call); !check(space, call, code, why)) return false;
      rest = 0;
    }
    for (uint32_t i = 0; i < rest; ++i)
      if (int code = space_enqueue_round(space, &call); !check(space, call, code, why)) return false;
    run->counters->launches += round_launches(space) * rounds;
    run->counters->looks += 1;
    if (!space_look(space, result, why) || !space_wait(space, why)) return false;
    rounds = rounds < kGraphRounds ? kGraphRounds : rounds * 2 < kMostRounds ? rounds * 2 : kMostRounds;
    narrow = seen->widest <= BEND_STEP_TASKS && seen->in_count <= BEND_STEP_TASKS;
  } while (seen->in_count > 0);
  *run->rounds_hint = seen->rounds;
  *run->widest_hint = seen->widest < UINT32_MAX ? static_cast<uint32_t>(seen->widest) : UINT32_MAX;
  return true;
}

// The chunk for the next call of the def. Threads that use a small part of one scatter their nodes over pages that the host must fetch; threads that
// use many meet at the cursor too often.
void adapt_chunk(Run* run) {
  const BendDeviceControl* c = run->control;
  const uint64_t threads = c->widest < run->space->resident_threads ? c->widest : run->space->resident_threads;
  const uint64_t chunks = (c->heap_cursor - run->space->heap - run->used) / c->chunk_bytes;
  uint64_t next = c->chunk_bytes;
  if (chunks < 2 * threads) next /= 4;
  else if (chunks > 16 * threads) next *= 2;
  *run->chunk_hint = static_cast<uint32_t>(next < kSmallestChunk ? kSmallestChunk : next > kLargestChunk ? kLargestChunk : next);
}

// Thread records that rounds of at most `widest` tasks have reached.
uint32_t reached(const Space* space, const BendDeviceControl* c) {
  const uint64_t most = c->widest << c->most_spread;
  return most < space->resident_threads ? static_cast<uint32_t>(most) : space->resident_threads;
}

}  // namespace

bool run_rounds(Run* run, Message* why) {
  Space* space = run->space;
  char* control = space->pinned + kResultBytes;
  if (!space_restore_zeros(space, align_up(space->heap + run->used, 256) - space->heap, run->top, why)) return false;
  if (space->scan_number > kMostScans) {
    if (space->warp_capacity > 0 && !space_zero(space, space->scans, space->warp_capacity * kScanBytes, why)) return false;
    space->scan_number = 0;
  }
  fill_control(run, run->control);
  space->scan_number = kScansUnclear;   // until the call has ended well
  memcpy(control, run->control, sizeof *run->control);
  memcpy(control + kControlBytes, run->record, space->task_stride);
  if (!space_start(space, kControlBytes + space->task_stride, why)) return false;
  const uint64_t cursor = run->control->heap_cursor;
  space->dirty_threads = space->thread_records;
  if (!(run->launches ? run_launches(run, why) : space->device ? launch(run, why) : emulate(run, why))) return false;
  const char* image = space->device ? control : reinterpret_cast<const char*>(space->control);
  memcpy(run->control, image, sizeof *run->control);
  space->scan_number = run->control->scan_number + run->control->rounds;
  space->zeros.touched(run->control->heap_cursor - space->heap, run->top);
  memcpy(run->result, image - result_span(run), run->program->entries[run->entry].result.size);
  // Nothing taken, and nothing small that could be given back: the threads' words are zero still.
  if (run->used == 0 && run->control->heap_cursor == cursor) space->dirty_threads = 0;
  else if (run->control->tree_warps == 0) space->dirty_threads = reached(space, run->control);
  adapt_chunk(run);
  Counters* k = run->counters;
  k->rounds += run->control->rounds;
  k->tasks += run->control->tasks;
  k->groups += run->control->tree_groups;
  k->warps += run->control->tree_warps;
  if (run->control->widest > k->widest) k->widest = run->control->widest;
  return true;
}

}  // namespace bendc::rt::gpu
