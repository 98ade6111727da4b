// Nested launches on the CPU: the meeting of a warp or block and the search of a child for its task are those of the kernel
// (codegen/llvm/emit_launch.cpp), written again over arrays; the tasks themselves are the program's own code.
#include <stdlib.h>
#include <string.h>

#include "runtime/gpu/emulated_exit.h"
#include "runtime/gpu/launches.h"

namespace bendc::rt::gpu {

namespace {

constexpr uint32_t kWarp = 32;
constexpr uint32_t kNested = 16;       // grids that run inside others: the C stack is the emulator's only limit

struct Grid {
  uint64_t launch;                     // as the kernel's parameters
  uint64_t records;
  uint32_t count, blocks, threads;
  bool trees = false;
  bool of_host = false;                // a round's IN
};

struct Emulation {
  const Launches* launches;
  BendDeviceControl* control;
  BendLaunchPool* pool;
  uint64_t random;                     // 0 for seed 0: every grid when its parent has ended, in the order of launches
  Grid* waiting;
  size_t count, room;
  uint32_t depth;
  bool failed;                         // no memory
};

uint64_t draw(Emulation* e) {
  if (e->random == 0) return 0;
  e->random ^= e->random << 13;
  e->random ^= e->random >> 7;
  e->random ^= e->random << 17;
  return e->random * 0x9E3779B97F4A7C15ull >> 32;
}

char* record_at(const Emulation* e, uint64_t index) { return reinterpret_cast<char*>(e->pool->records + index * e->control->task_stride); }
bool stopped(const Emulation* e) { return e->control->error != 0 || e->failed; }

void run_grid(Emulation* e, const Grid& grid);

void run_task(Emulation* e, const void* record, uint32_t mode, BendPending* pending) {
  *pending = {0, 0, 0};
  bend_emulated_task(e->launches->program->emulated_task, e->control, record, mode, pending);
}

void run_waiting(Emulation* e, size_t at) {
  Grid grid = e->waiting[at];
  e->waiting[at] = e->waiting[--e->count];
  run_grid(e, grid);
}

// False: the launch is refused, as by a full list of pending launches.
bool start_grid(Emulation* e, const Grid& grid) {
  const uint64_t chance = draw(e);
  if (e->random != 0 && chance % 16 == 0) return false;
  e->pool->grids += 1;
  if (e->random != 0 && chance % 4 == 1 && e->depth < kNested) {
    run_grid(e, grid);
    return true;
  }
  if (e->count == e->room) {
    size_t room = e->room ? e->room * 2 : 64;
    Grid* more = static_cast<Grid*>(realloc(e->waiting, room * sizeof *more));
    if (!more) {
      e->failed = true;
      return true;
    }
    e->waiting = more;
    e->room = room;
  }
  e->waiting[e->count++] = grid;
  return true;
}

// The children in their parent's thread; of a tree the task that it is without groups.
void run_here(Emulation* e, const BendPending& children) {
  BendPending none;
  e->pool->refused += 1;
  if (children.tree) {
    run_task(e, record_at(e, children.first) + BEND_GROUP_TASK, 0, &none);
    return;
  }
  for (uint32_t i = 0; i < children.count && !stopped(e); ++i) {
    run_task(e, record_at(e, children.first + i), 0, &none);
  }
}

uint32_t grid_of(uint32_t count) { return (count + BEND_BLOCK_THREADS - 1) / BEND_BLOCK_THREADS; }
uint32_t block_of(uint32_t count) { return count < BEND_BLOCK_THREADS ? count : BEND_BLOCK_THREADS; }

// What one warp or block launches for the children, or the trees, of all its threads.
void aggregate(Emulation* e, const BendPending* pending, uint32_t parents, bool trees) {
  auto threads_of = [&](uint32_t p) { return (pending[p].tree != 0) == trees ? pending[p].count : 0; };
  uint32_t total = 0, most = 0;
  for (uint32_t p = 0; p < parents; ++p) {
    total += grid_of(threads_of(p));
    if (block_of(threads_of(p)) > most) most = block_of(threads_of(p));
  }
  if (total == 0) return;
  const uint32_t stride = e->control->task_stride;
  const uint32_t places = (BEND_LAUNCH_HEADER + parents * 12 + stride - 1) / stride;
  const uint64_t place = e->pool->cursor;
  e->pool->cursor += places;
  bool started = false;
  if (place + places <= e->pool->capacity) {
    BendLaunch* launch = reinterpret_cast<BendLaunch*>(record_at(e, place));
    *launch = {parents, total, BEND_BLOCK_THREADS / most, most};
    uint32_t *sum = reinterpret_cast<uint32_t*>(launch + 1), *first = sum + parents, *count = first + parents;
    uint32_t running = 0;
    for (uint32_t p = 0; p < parents; ++p) {
      running += grid_of(threads_of(p));
      sum[p] = running;
      first[p] = pending[p].first;
      count[p] = threads_of(p);
    }
    const uint32_t used = launch->share < total ? launch->share : total;
    started = start_grid(e, {reinterpret_cast<uint64_t>(launch), 0, 0, (total + launch->share - 1) / launch->share, (used * most + kWarp - 1) / kWarp * kWarp, trees});
  }
  if (started) return;
  for (uint32_t p = 0; p < parents; ++p)
    if (threads_of(p) > 0) run_here(e, pending[p]);
}

// A thread's place in the grid of its parent; count 0: none.
struct Place {
  const char* records;
  uint32_t index, count;
};

Place own_place(const Emulation* e, const Grid& grid, uint32_t block, uint32_t thread) {
  if (grid.launch == 0) {
    const uint32_t index = block * grid.threads + thread;
    return {reinterpret_cast<const char*>(grid.records), index, index < grid.count ? grid.count : 0};
  }
  const BendLaunch* launch = reinterpret_cast<const BendLaunch*>(grid.launch);
  const uint32_t *sum = reinterpret_cast<const uint32_t*>(launch + 1), *first = sum + launch->parents, *count = first + launch->parents;
  const uint32_t part = thread / launch->threads, inside = thread % launch->threads;
  const uint32_t number = block * launch->share + part;
  if (part >= launch->share || number >= launch->blocks) return {};
  uint32_t p = 0;
  while (sum[p] <= number) ++p;
  const uint32_t task = (number - (p ? sum[p - 1] : 0)) * block_of(count[p]) + inside;
  return {record_at(e, first[p]), task, inside < block_of(count[p]) && task < count[p] ? count[p] : 0};
}

// What one thread, or in a grid of trees one warp from its first thread on, does before the meeting.
void run_place(Emulation* e, const Grid& grid, uint32_t block, uint32_t thread, BendPending* pending) {
  const Place place = own_place(e, grid, block, thread);
  if (place.count == 0) return;
  if (grid.trees) {
    if (thread % kWarp == 0) bend_emulated_tree(e->launches->program->emulated_tree, e->control, place.records, place.index / kWarp, place.count / kWarp, pending);
    return;
  }
  const uint32_t resumes = grid.of_host ? e->control->in_resume_count : 0;
  if (place.index < resumes) {
    run_task(e, reinterpret_cast<const void*>(reinterpret_cast<const uint64_t*>(e->control->in_resumes)[place.index]), BEND_TASK_PARALLEL | BEND_TASK_RESUME, pending);
    return;
  }
  run_task(e, place.records + uint64_t{place.index - resumes} * e->control->task_stride, BEND_TASK_PARALLEL, pending);
}

void meet(Emulation* e, const BendPending* pending, uint32_t parents) {
  aggregate(e, pending, parents, false);
  if (!stopped(e)) aggregate(e, pending, parents, true);
}

void run_grid(Emulation* e, const Grid& grid) {
  ++e->depth;
  const uint32_t way = e->pool->way;
  for (uint32_t i = 0; i < grid.blocks && !stopped(e); ++i) {
    const uint32_t block = e->random == 0 || grid.blocks == 1 ? i : grid.blocks - 1 - i;
    BendPending pending[BEND_BLOCK_THREADS] = {};
    for (uint32_t t = 0; t < grid.threads && !stopped(e); ++t) {
      run_place(e, grid, block, t, &pending[t]);
      if (stopped(e)) break;
      if (way == BEND_LAUNCH_THREAD && pending[t].count > 0) {
        const BendPending& own = pending[t];
        if (!start_grid(e, {0, e->pool->records + uint64_t{own.first} * e->control->task_stride, own.count, grid_of(own.count), block_of(own.count), own.tree != 0})) run_here(e, own);
      }
      if (way == BEND_LAUNCH_WARP && t % kWarp == kWarp - 1) meet(e, pending + (t - (kWarp - 1)), kWarp);
      if (e->random != 0 && e->count > 0 && e->depth < kNested && draw(e) % 8 == 0) run_waiting(e, draw(e) % e->count);
    }
    if (way == BEND_LAUNCH_BLOCK && !stopped(e)) meet(e, pending, grid.threads);
  }
  --e->depth;
}

}  // namespace

bool emulate_launches(const Launches* launches, BendDeviceControl* control, uint64_t round, Message* why) {
  const uint64_t seed = launches->seed;
  Emulation e = {launches, control, reinterpret_cast<BendLaunchPool*>(launches->base), seed == 0 ? 0 : (seed * 0xBF58476D1CE4E5B9ull + round) | 1, nullptr, 0, 0, 0, false};
  run_grid(&e, {0, control->in_queue, control->in_count, grid_of(control->in_count), BEND_BLOCK_THREADS, false, true});
  if (seed == 0) {
    for (size_t i = 0; i < e.count && !stopped(&e); ++i) {
      const Grid grid = e.waiting[i];   // the list may move
      run_grid(&e, grid);
    }
  }
  while (seed != 0 && e.count > 0 && !stopped(&e)) run_waiting(&e, draw(&e) % e.count);
  free(e.waiting);
  if (e.failed) why->text("the system refuses memory");
  return !e.failed;
}

}  // namespace bendc::rt::gpu
