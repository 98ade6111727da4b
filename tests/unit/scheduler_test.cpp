// The scheduler with real workers, driven as generated code does: tasks pushed through the worker's fields.
#include <doctest/doctest.h>
#include <sched.h>

#include <atomic>
#include <chrono>

#include "runtime/cpu/scheduler.h"
#include "runtime/cpu/tasks.h"
#include "runtime_fixture.h"

using namespace bendc;
using bendc::test::RuntimeFixture;

namespace {

std::atomic<uint32_t> overlaps;

void take_all_memory(BendWorker* worker, void*) {
  for (;;) (void)rt::heap_alloc(worker, 400);
}

// Free nodes that the worker would also cut from its chunk.
void look_at_free_nodes(BendWorker* worker, void*) {
  for (void* list : worker->free_lists)
    for (void* node = list; node; node = rt::free_link(node, 0))
      if (node >= worker->bump && node < worker->limit) ++overlaps;
}

constexpr uint32_t kTeam = 6;
std::atomic<uint32_t> present;

// Ends when kTeam workers are in tasks at once.
void wait_for_team(BendWorker*, void*) {
  ++present;
  while (present < kTeam) sched_yield();
}

void compute(BendWorker*, void*) {
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < std::chrono::microseconds(100)) continue;
}

}  // namespace

TEST_CASE("scheduler: who has descended a spine and forks no more gives tasks at the ends of its forks") {
  RuntimeFixture f(false, 1 << 20);
  BendWorker workers[2] = {};
  f.runtime->config.threads = 2;
  f.runtime->config.stack_bytes = 1 << 20;
  f.runtime->workers = workers;
  workers[0].runtime = f.runtime;
  REQUIRE(rt::worker_heap_open(&workers[0]));
  REQUIRE(rt::scheduler_open(f.runtime));
  BendWorker* worker = &workers[0];
  const uint64_t token = bend_fork(worker, 0);
  REQUIRE((token & BEND_FORK_HOW) == BEND_FORK_PUSH);
  constexpr uint32_t kTasks = 5000;
  BendForkTask* tasks = reinterpret_cast<BendForkTask*>(worker->task_tail);
  for (uint32_t i = 0; i < kTasks; ++i) tasks[i].code = compute;
  std::atomic_ref<char*>(worker->task_tail).store(reinterpret_cast<char*>(tasks + kTasks), std::memory_order_seq_cst);
  const rt::WorkerCounts& counts = f.runtime->scheduler->tasks[0].counts;
  while (counts.given == 0 && std::atomic_ref<uint32_t>(tasks[kTasks - 1].state).load(std::memory_order_acquire) == rt::kTaskOpen) {
    ++worker->fork_depth;
    bend_fork_end(worker, 0, token);
  }
  CHECK(counts.given > 0);
  for (uint32_t i = kTasks; i-- > 0;) {
    std::atomic_ref<char*>(worker->task_tail).store(reinterpret_cast<char*>(tasks + i), std::memory_order_seq_cst);
    (void)bend_join(worker, &tasks[i]);
  }
  rt::scheduler_close(f.runtime);
  rt::scheduler_free(f.runtime);
  for (uint32_t i = 0; i < f.runtime->worker_count; ++i) rt::worker_heap_close(&workers[i]);
}

TEST_CASE("scheduler: one fork with tasks for many brings all workers, however long each task lasts") {
  RuntimeFixture f(false, 1 << 20);
  BendWorker workers[kTeam + 1] = {};
  f.runtime->config.threads = kTeam + 1;
  f.runtime->config.stack_bytes = 1 << 20;
  f.runtime->config.watchdog_seconds = 20;
  f.runtime->workers = workers;
  workers[0].runtime = f.runtime;
  REQUIRE(rt::worker_heap_open(&workers[0]));
  REQUIRE(rt::scheduler_open(f.runtime));
  present = 0;
  REQUIRE((bend_fork(&workers[0], 0) & BEND_FORK_HOW) == BEND_FORK_PUSH);
  BendForkTask* tasks = reinterpret_cast<BendForkTask*>(workers[0].task_tail);
  for (uint32_t i = 0; i < kTeam; ++i) tasks[i].code = wait_for_team;
  std::atomic_ref<char*>(workers[0].task_tail).store(reinterpret_cast<char*>(tasks + kTeam), std::memory_order_seq_cst);
  (void)bend_fork(&workers[0], 0);   // sends for the first worker; nobody forks after this
  for (uint32_t i = kTeam; i-- > 0;) {
    while (std::atomic_ref<uint32_t>(tasks[i].state).load(std::memory_order_acquire) == rt::kTaskOpen) sched_yield();
    CHECK(bend_join(&workers[0], &tasks[i]) == 0);
  }
  CHECK(present == kTeam);
  CHECK(workers[0].task_tail == reinterpret_cast<char*>(tasks));
  rt::scheduler_close(f.runtime);
  rt::scheduler_free(f.runtime);
  CHECK(f.runtime->worker_count == kTeam + 1);
  for (uint32_t i = 0; i < f.runtime->worker_count; ++i) rt::worker_heap_close(&workers[i]);
}

TEST_CASE("scheduler: a worker whose task ran out of memory goes on with a sound heap") {
  RuntimeFixture f(false, 1 << 20);
  BendWorker workers[2] = {};
  f.runtime->config.threads = 2;
  f.runtime->config.stack_bytes = 1 << 20;
  f.runtime->workers = workers;
  workers[0].runtime = workers[1].runtime = f.runtime;
  REQUIRE(rt::worker_heap_open(&workers[0]));
  REQUIRE(rt::scheduler_open(f.runtime));
  overlaps = 0;
  REQUIRE((bend_fork(&workers[0], 0) & BEND_FORK_HOW) == BEND_FORK_PUSH);
  BendForkTask* tasks = reinterpret_cast<BendForkTask*>(workers[0].task_tail);
  tasks[0].code = take_all_memory;
  tasks[1].code = look_at_free_nodes;
  std::atomic_ref<char*>(workers[0].task_tail).store(reinterpret_cast<char*>(tasks + 2), std::memory_order_seq_cst);
  (void)bend_fork(&workers[0], 0);   // wakes or starts the second worker
  for (int i = 0; i < 2; ++i)
    while (std::atomic_ref<uint32_t>(tasks[i].state).load(std::memory_order_acquire) == rt::kTaskOpen) sched_yield();
  CHECK(tasks[0].state == rt::kTaskFailed);
  CHECK(tasks[1].state == rt::kTaskDone);
  CHECK(overlaps == 0);
  std::free(reinterpret_cast<void*>(tasks[0].data[0]));
  std::atomic_ref<char*>(workers[0].task_tail).store(reinterpret_cast<char*>(tasks), std::memory_order_seq_cst);
  rt::scheduler_close(f.runtime);
  rt::scheduler_free(f.runtime);
  for (uint32_t i = 0; i < f.runtime->worker_count; ++i) rt::worker_heap_close(&workers[i]);
}

TEST_CASE("scheduler: forks whose like was small make no tasks, until somebody asks twice") {
  RuntimeFixture f(false, 1 << 20);
  BendWorker workers[2] = {};
  f.runtime->config.threads = 2;
  f.runtime->config.stack_bytes = 1 << 20;
  f.runtime->workers = workers;
  workers[0].runtime = workers[1].runtime = f.runtime;
  REQUIRE(rt::worker_heap_open(&workers[0]));
  REQUIRE(rt::scheduler_open(f.runtime));
  BendWorker* worker = &workers[0];
  auto how = [](uint64_t token) { return token & BEND_FORK_HOW; };
  auto wanted = [&] { return std::atomic_ref<uint32_t>(worker->tasks_wanted).load(std::memory_order_relaxed); };
  CHECK(wanted() == 1);
  // Not met before: tasks. Its calls take no time at all.
  uint64_t token = bend_fork(worker, 7);
  CHECK(how(token) == BEND_FORK_PUSH);
  CHECK(worker->fork_depth == 1);
  bend_fork_end(worker, 7, token);
  CHECK(worker->fork_depth == 0);
  // The measured time fades by an eighth: the first one held the start of a thread, or waited for a core.
  for (int i = 0; i < 400 && how(token = bend_fork(worker, 7)) == BEND_FORK_PUSH; ++i) bend_fork_end(worker, 7, token);
  REQUIRE(how(token) == BEND_FORK_SMALL);
  // Inside it forks run in order wherever they are. They come here when somebody asks, as the second worker may do at any time; now, and again later:
  CHECK(how(bend_fork(worker, 8)) == BEND_FORK_SMALL);
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(1)) sched_yield();
  const uint64_t inner = bend_fork(worker, 8);
  CHECK(how(inner) == BEND_FORK_PUSH);
  bend_fork_end(worker, 8, inner);
  bend_fork_end(worker, 7, token);
  CHECK(wanted() == 1);
  // That one was not small, so the next makes tasks.
  token = bend_fork(worker, 7);
  CHECK(how(token) == BEND_FORK_PUSH);
  bend_fork_end(worker, 7, token);
  rt::scheduler_close(f.runtime);
  rt::scheduler_free(f.runtime);
  for (uint32_t i = 0; i < f.runtime->worker_count; ++i) rt::worker_heap_close(&workers[i]);
}
