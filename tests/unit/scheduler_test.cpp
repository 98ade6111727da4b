// The scheduler with real workers, driven as generated code does: tasks pushed through the worker's fields.
#include <doctest/doctest.h>
#include <sched.h>

#include <atomic>

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

}  // namespace

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
