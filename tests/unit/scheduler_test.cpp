// The scheduler with real workers, driven as generated code does: tasks pushed through the worker's fields.
#include <doctest/doctest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <vector>

#include "runtime/cpu/idle.h"
#include "runtime/cpu/workers.h"
#include "runtime_fixture.h"

using namespace bendc;

namespace {

// A runtime with `size` workers, of which the first runs the test.
class Team {
 public:
  explicit Team(uint32_t size) : workers_(size) {
    runtime_.runtime->config.threads = size;
    runtime_.runtime->config.stack_bytes = 1 << 20;
    runtime_.runtime->config.watchdog_seconds = 20;
    runtime_.runtime->workers = workers_.data();
    first().runtime = runtime_.runtime;
    REQUIRE(rt::worker_heap_open(&first()));
    REQUIRE(rt::scheduler_open(runtime_.runtime));
  }
  ~Team() {
    if (runtime_.runtime->scheduler) close();
    for (uint32_t i = 0; i < runtime_.runtime->worker_count; ++i) rt::worker_heap_close(&workers_[i]);
  }
  Team(const Team&) = delete;

  // How many have taken part.
  uint32_t close() {
    rt::scheduler_close(runtime_.runtime);
    rt::scheduler_free(runtime_.runtime);
    return runtime_.runtime->worker_count;
  }
  BendWorker& first() { return workers_[0]; }
  rt::WorkerTasks& tasks_of_first() { return runtime_.runtime->scheduler->tasks[0]; }

  void set_tail(void* tail) { std::atomic_ref<char*>(first().task_tail).store(static_cast<char*>(tail), std::memory_order_seq_cst); }
  // `count` tasks after the newest, as a fork pushes them.
  BendForkTask* push(uint32_t count, void (*code)(BendWorker*, void*)) {
    BendForkTask* tasks = reinterpret_cast<BendForkTask*>(first().task_tail);
    for (uint32_t i = 0; i < count; ++i) tasks[i].code = code;
    set_tail(tasks + count);
    return tasks;
  }

 private:
  test::RuntimeFixture runtime_{false, 1 << 20};
  std::vector<BendWorker> workers_;
};

uint64_t how(uint64_t token) { return token & BEND_FORK_HOW; }
bool open(BendForkTask& task) { return std::atomic_ref<uint32_t>(task.state).load(std::memory_order_acquire) == rt::kTaskOpen; }

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

void pass(std::chrono::microseconds time) {
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < time) continue;
}

void compute(BendWorker*, void*) { pass(std::chrono::microseconds(100)); }
void compute_little(BendWorker*, void*) { pass(std::chrono::microseconds(10)); }

}  // namespace

TEST_CASE("scheduler: who has descended a spine and forks no more gives tasks at the ends of its forks") {
  Team team(2);
  BendWorker* worker = &team.first();
  const uint64_t token = bend_fork(worker, 0);
  REQUIRE(how(token) == BEND_FORK_PUSH);
  constexpr uint32_t kTasks = 5000;
  BendForkTask* tasks = team.push(kTasks, compute);
  const rt::WorkerCounts& counts = team.tasks_of_first().counts;
  while (counts.given == 0 && open(tasks[kTasks - 1])) {
    ++worker->fork_depth;
    bend_fork_end(worker, 0, token);
  }
  CHECK(counts.given > 0);
  for (uint32_t i = kTasks; i-- > 0;) {
    team.set_tail(tasks + i);
    (void)bend_join(worker, &tasks[i]);
  }
}

TEST_CASE("scheduler: a worker at the end of a fork keeps its last task, which it runs next") {
  Team team(2);
  BendWorker* worker = &team.first();
  const uint64_t token = bend_fork(worker, 0);
  REQUIRE(how(token) == BEND_FORK_PUSH);
  for (int i = 0; i < 20; ++i) {
    BendForkTask* task = team.push(1, compute);
    // The second worker asks, and in the end takes the task itself.
    while (open(*task)) {
      ++worker->fork_depth;
      bend_fork_end(worker, 0, token);
    }
    team.set_tail(task);
    CHECK(bend_join(worker, task) == 0);
  }
  CHECK(team.tasks_of_first().counts.given == 0);
}

TEST_CASE("scheduler: a gift that has not been looked at when its giver comes to the join is the giver's again") {
  Team team(2);
  BendWorker* worker = &team.first();
  rt::Scheduler* s = rt::scheduler(worker);
  s->summoning = 1;   // no second worker comes; the first one asks itself
  REQUIRE(how(bend_fork(worker, 0)) == BEND_FORK_PUSH);
  CHECK(s->started == 1);
  for (bool own_set : {false, true}) {
    rt::Askers& set = own_set ? team.tasks_of_first().asking : s->asking;
    set.add(0);
    BendForkTask* tasks = team.push(2, compute);
    tasks[0].note = 77;
    REQUIRE(rt::give(worker));
    CHECK_FALSE(set.has(0));
    const rt::Gift gift = rt::Gift::of(team.tasks_of_first().gift);
    CHECK(gift.owner == 0);
    CHECK(gift.depth == 77);
    CHECK(gift.place == rt::low(tasks));
    CHECK(gift.own_set == own_set);
    team.set_tail(tasks + 1);
    CHECK(bend_join(worker, &tasks[1]) == 1);
    team.set_tail(tasks);
    CHECK(bend_join(worker, &tasks[0]) == 1);
    CHECK(team.tasks_of_first().gift == 0);
    CHECK(set.has(0));
    REQUIRE(set.remove(0));
  }
  CHECK(team.tasks_of_first().counts.kept == 2);
}

TEST_CASE("scheduler: short forks far from each other wake nobody") {
  Team team(2);
  BendWorker* worker = &team.first();
  constexpr uint32_t kRegions = 200;
  for (uint32_t i = 0; i < kRegions; ++i) {
    const uint64_t token = bend_fork(worker, 0);
    REQUIRE(how(token) == BEND_FORK_PUSH);
    BendForkTask* task = team.push(1, compute_little);
    compute_little(worker, nullptr);
    team.set_tail(task);
    if (bend_join(worker, task) != 0) compute_little(worker, nullptr);
    bend_fork_end(worker, 0, token);
    pass(std::chrono::microseconds(500));
  }
  // A region that waited for a processor seems long, and the next ones wake.
  CHECK(rt::scheduler(worker)->tasks[1].counts.parks < kRegions / 2);
}

TEST_CASE("scheduler: one fork with tasks for many brings all workers, however long each task lasts") {
  Team team(kTeam + 1);
  BendWorker* worker = &team.first();
  present = 0;
  REQUIRE(how(bend_fork(worker, 0)) == BEND_FORK_PUSH);
  BendForkTask* tasks = team.push(kTeam, wait_for_team);
  (void)bend_fork(worker, 0);   // sends for the first worker; nobody forks after this
  for (uint32_t i = kTeam; i-- > 0;) {
    while (open(tasks[i])) sched_yield();
    CHECK(bend_join(worker, &tasks[i]) == 0);
  }
  CHECK(present == kTeam);
  CHECK(worker->task_tail == reinterpret_cast<char*>(tasks));
  CHECK(team.close() == kTeam + 1);
}

TEST_CASE("scheduler: a worker whose task ran out of memory goes on with a sound heap") {
  Team team(2);
  BendWorker* worker = &team.first();
  overlaps = 0;
  REQUIRE(how(bend_fork(worker, 0)) == BEND_FORK_PUSH);
  BendForkTask* tasks = reinterpret_cast<BendForkTask*>(worker->task_tail);
  tasks[0].code = take_all_memory;
  tasks[1].code = look_at_free_nodes;
  team.set_tail(tasks + 2);
  (void)bend_fork(worker, 0);   // wakes or starts the second worker
  for (int i = 0; i < 2; ++i)
    while (open(tasks[i])) sched_yield();
  CHECK(tasks[0].state == rt::kTaskFailed);
  CHECK(tasks[1].state == rt::kTaskDone);
  CHECK(overlaps == 0);
  std::free(reinterpret_cast<void*>(tasks[0].data[0]));
  team.set_tail(tasks);
}

TEST_CASE("scheduler: forks whose like was small make no tasks, until somebody asks twice") {
  Team team(2);
  BendWorker* worker = &team.first();
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
  pass(std::chrono::milliseconds(1));
  const uint64_t inner = bend_fork(worker, 8);
  CHECK(how(inner) == BEND_FORK_PUSH);
  bend_fork_end(worker, 8, inner);
  bend_fork_end(worker, 7, token);
  CHECK(wanted() == 1);
  // That one was not small, so the next makes tasks.
  token = bend_fork(worker, 7);
  CHECK(how(token) == BEND_FORK_PUSH);
  bend_fork_end(worker, 7, token);
}
