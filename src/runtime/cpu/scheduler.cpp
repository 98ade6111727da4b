#include "runtime/cpu/scheduler.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/cpu/clock.h"
#include "runtime/cpu/tasks.h"
#include "runtime/error.h"
#include "runtime/runtime.h"

namespace bendc::rt {

struct TaskRun {
  TaskRun* outer;
  char* tail;          // the worker's when the task began
  jmp_buf back;
  struct Failure* failure;
};

// What a failed task says.
struct Failure {
  size_t size;
  char text[];
};

namespace {

// 2^20 entries: as deep as forks nest before the newest run in order. Backed by memory only where used.
constexpr uint64_t kStackBytes = (1ull << 20) * BEND_TASK_BYTES;
constexpr uint64_t kSpinNanoseconds = 200'000;  // without work until a worker parks
constexpr uint64_t kWaitNanoseconds = 1'000'000;   // the same, for one that waits for a task
constexpr uint64_t kHelpNanoseconds = 50'000;   // waiting for a task, until a worker looks for tasks that are no part of it
constexpr uint64_t kAskNanoseconds = 5'000;     // for gifts, between looks at the others
constexpr uint64_t kTakeNanoseconds = 20'000;   // asking in vain until a worker takes a task itself
constexpr uint64_t kGiveNanoseconds = 25'000;   // busy with a task, or since the last gift, before a worker gives
constexpr uint64_t kSmallNanoseconds = 8'000;   // forks whose like took less make no tasks
constexpr uint32_t kMeasureEvery = 16;          // of these, one is measured
constexpr uint32_t kTokenShift = 3;             // of a fork's token: the time it began, or 0
constexpr uint64_t kTokenSmall = 4;             // of a fork's token: the outermost small one
constexpr uint32_t kPausesARound = 32;
constexpr uint32_t kLongestChain = 8;   // of workers that wait for each other
constexpr uint32_t kMostSummoned = 2;   // by one worker that has found work
constexpr uint64_t kShareNanoseconds = 1'000'000;   // between two times that a busy worker hands free memory over
constexpr uint64_t kWakeNanoseconds = 1'000'000;
enum : uint32_t { kRunning = 0, kParked = 1, kSummoned = 2 };

// Task stacks whose owner may not pop by itself: no tail is above this.
constexpr uint32_t kEverywhere = 0xFFFFFFFFu;

#if defined(__SANITIZE_THREAD__)
constexpr bool kMayUseBarriers = false;   // the sanitizer does not know of barriers put into other threads
#else
constexpr bool kMayUseBarriers = true;
#endif

Scheduler* scheduler(BendWorker* worker) { return worker->runtime->scheduler; }
WorkerTasks& tasks_of(BendWorker* worker) { return scheduler(worker)->tasks[worker->index]; }
uint32_t low(const void* address) { return static_cast<uint32_t>(reinterpret_cast<uint64_t>(address)); }
std::atomic_ref<char*> tail_of(BendWorker* worker) { return std::atomic_ref<char*>(worker->task_tail); }
std::atomic_ref<char*> limit_of(BendWorker* worker) { return std::atomic_ref<char*>(worker->task_limit); }
std::atomic_ref<uint32_t> wanted_of(BendWorker* worker) { return std::atomic_ref<uint32_t>(worker->tasks_wanted); }
std::atomic_ref<uint32_t> state_of(BendForkTask* task) { return std::atomic_ref<uint32_t>(task->state); }

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

long futex(std::atomic<uint32_t>* word, int operation, uint32_t value, const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), operation | FUTEX_PRIVATE_FLAG, value, timeout, nullptr, 0);
}

bool register_barriers() {
  if (!kMayUseBarriers) return false;
  long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  return commands > 0 && (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED) && syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

// While the process has one thread this takes a microsecond, later up to 30 milliseconds, and once is enough.
__attribute__((constructor)) void register_barriers_early() { (void)register_barriers(); }

// Every running thread of the process passes a full barrier before this returns.
void barrier_everywhere(Scheduler* s) {
  if (s->barriers) syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

uint64_t random_next(WorkerTasks& own) {
  own.random ^= own.random << 13;
  own.random ^= own.random >> 7;
  own.random ^= own.random << 17;
  return own.random;
}

// With a seed: now and then the thread gives way or sleeps for up to 63 us, so that other interleavings come up. After 2,048 chances a
// worker takes one in 64: a program of a million forks would otherwise sleep for a minute (scan_sizes: 32 s on two cores).
void perturb(BendWorker* worker) {
  if (scheduler(worker)->seed == 0) return;
  WorkerTasks& own = tasks_of(worker);
  uint64_t r = random_next(own) >> 20;
  if (own.perturbed >= 2048 && (r >> 20) % 64 != 0) return;
  ++own.perturbed;
  if (r % 16 == 0) {
    timespec t = {0, static_cast<long>((r >> 8) % 64) * 1000};
    nanosleep(&t, nullptr);
  } else if (r % 4 == 0) {
    sched_yield();
  }
}

bool open_stack(WorkerTasks& own) {
  void* got = mmap(nullptr, 2 * kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED) return false;
  char* begin = static_cast<char*>(got);
  char* aligned = reinterpret_cast<char*>((reinterpret_cast<uint64_t>(begin) + kStackBytes - 1) / kStackBytes * kStackBytes);
  if (aligned > begin) munmap(begin, static_cast<size_t>(aligned - begin));
  char* end = begin + 2 * kStackBytes;
  if (aligned + kStackBytes < end) munmap(aligned + kStackBytes, static_cast<size_t>(end - (aligned + kStackBytes)));
  // A fork that starts below the end fits. The last entry stays unused: its end could be the start of the next 4 GiB, whose low half is 0.
  own.base = aligned;
  own.end = aligned + kStackBytes - (BEND_WIDEST_FORK + 1) * BEND_TASK_BYTES;
  return true;
}

void close_stack(WorkerTasks& own) {
  if (own.base) munmap(own.base, kStackBytes);
  own.base = nullptr;
}

// The worker's next fork comes to bend_fork.
void want_tasks(BendWorker* worker) {
  limit_of(worker).store(nullptr, std::memory_order_seq_cst);
  wanted_of(worker).store(1, std::memory_order_seq_cst);
}

// The worker can take part from now on.
void open_worker(BendWorker* worker) {
  Scheduler* s = scheduler(worker);
  WorkerTasks& own = tasks_of(worker);
  own.random = (s->seed + 1) * 0x9E3779B97F4A7C15ull + worker->index * 0xBF58476D1CE4E5B9ull + 1;
  own.head.store(low(own.base), std::memory_order_seq_cst);
  worker->task_head = s->barriers && s->seed == 0 ? reinterpret_cast<const uint32_t*>(&own.head) : &kEverywhere;
  worker->atomic = 1;
  worker->solo = 0;
  tail_of(worker).store(own.base, std::memory_order_seq_cst);
  limit_of(worker).store(nullptr, std::memory_order_seq_cst);
  wanted_of(worker).store(1, std::memory_order_seq_cst);
}

void lower_limits(Scheduler* s) {
  uint32_t started = s->started.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < started; ++i) want_tasks(&s->runtime->workers[i]);
}

bool somebody_rests(Scheduler* s) {
  return s->parked.load(std::memory_order_seq_cst) > 0 || s->started.load(std::memory_order_seq_cst) < s->limit.load(std::memory_order_relaxed);
}

bool wake(Scheduler* s, WorkerTasks& sleeper, uint32_t how) {
  uint32_t expected = kParked;
  if (!sleeper.parked.compare_exchange_strong(expected, how, std::memory_order_seq_cst)) return false;
  s->parked.fetch_sub(1, std::memory_order_seq_cst);
  futex(&sleeper.parked, FUTEX_WAKE, 1, nullptr);
  return true;
}

void run_helper(void* raw);

// Fills in and starts the worker that `started` has come to count, for the others at rest until then. When the system refuses, it stays at rest.
bool start_helper(Scheduler* s, uint32_t index) {
  BendWorker* worker = &s->runtime->workers[index];
  WorkerTasks& own = s->tasks[index];
  worker->runtime = s->runtime;
  worker->index = index;
  own.idle_since.store(now(), std::memory_order_relaxed);
  if (!worker_heap_open(worker) || !open_stack(own)) return false;
  open_worker(worker);
  own.summoned = true;
  if (stack_map(&own.stack, s->runtime->config.stack_bytes)) {
    if (stack_start(&own.stack, worker, run_helper, worker, &own.thread) == 0) return own.started = true;
    stack_unmap(&own.stack);
  }
  return false;
}

// A worker more takes part, unless there are as many as there may be, the system refuses, or the program has ended.
bool start_one(Scheduler* s) {
  s->starting.fetch_add(1, std::memory_order_seq_cst);
  bool done = false;
  uint32_t index = s->started.load(std::memory_order_seq_cst);
  while (s->stopping.load(std::memory_order_seq_cst) == 0 && index < s->limit.load(std::memory_order_relaxed)) {
    if (!s->started.compare_exchange_weak(index, index + 1, std::memory_order_seq_cst)) continue;
    done = start_helper(s, index);
    if (!done) s->limit.store(0, std::memory_order_relaxed);
    break;
  }
  s->starting.fetch_sub(1, std::memory_order_seq_cst);
  return done;
}

// One resting worker is sent looking for work; `summoning` counts it already.
void summon(Scheduler* s, WorkerTasks& own) {
  const uint32_t started = s->started.load(std::memory_order_acquire);
  const uint32_t from = static_cast<uint32_t>(random_next(own) % started);
  for (uint32_t i = 0; i < started && s->parked.load(std::memory_order_seq_cst) > 0; ++i)
    if (wake(s, s->tasks[(from + i) % started], kSummoned)) return;
  if (!start_one(s)) s->summoning.fetch_sub(1, std::memory_order_seq_cst);
}

// False when a worker that was sent for has not found work yet.
bool summon_first(Scheduler* s, WorkerTasks& own) {
  uint32_t none = 0;
  if (!s->summoning.compare_exchange_strong(none, 1, std::memory_order_seq_cst)) return false;
  summon(s, own);
  return true;
}

// The summoned worker has found work, or stops looking: the next push may summon another.
void answer_summons(Scheduler* s, WorkerTasks& own) {
  own.summoned = false;
  s->summoning.fetch_sub(1, std::memory_order_seq_cst);
  if (somebody_rests(s)) lower_limits(s);
}

uint32_t waiting_tasks(Scheduler* s, uint32_t index) {
  const uint32_t tail = low(tail_of(&s->runtime->workers[index]).load(std::memory_order_seq_cst));
  const uint32_t head = head_place(s->tasks[index].head.load(std::memory_order_seq_cst));
  return tail > head ? (tail - head) / BEND_TASK_BYTES : 0;
}

// A worker has got a task of `victim`: when there is more where it came from, others are sent for before it begins. Each sends for two, so that
// sixteen are at work after four turns.
void summon_more(Scheduler* s, WorkerTasks& own, uint32_t victim) {
  uint32_t more = somebody_rests(s) ? waiting_tasks(s, victim) : 0;
  if (!own.summoned) {
    if (more > 0) (void)summon_first(s, own);
    return;
  }
  if (more == 0) return answer_summons(s, own);
  own.summoned = false;   // the first of the others is counted in its place
  summon(s, own);
  for (uint32_t i = 1; i < more && i < kMostSummoned && somebody_rests(s); ++i) {
    s->summoning.fetch_add(1, std::memory_order_seq_cst);
    summon(s, own);
  }
}

bool has_tasks(Scheduler* s, uint32_t index) {
  return low(tail_of(&s->runtime->workers[index]).load(std::memory_order_seq_cst)) > head_place(s->tasks[index].head.load(std::memory_order_seq_cst));
}

void end_idleness(WorkerTasks& own) {
  if (uint64_t since = own.idle_since.load(std::memory_order_relaxed)) own.counts.idle += now() - since;
  own.idle_since.store(0, std::memory_order_relaxed);
}

void run_task(BendWorker* worker, uint32_t victim, BendForkTask* task) {
  Scheduler* s = scheduler(worker);
  WorkerTasks& own = tasks_of(worker);
  summon_more(s, own, victim);
  if (somebody_rests(s)) limit_of(worker).store(nullptr, std::memory_order_seq_cst);
  own.busy_since.store(now(), std::memory_order_relaxed);
  end_idleness(own);
  ++own.counts.run;
  TaskRun run;
  run.outer = own.running;
  run.tail = worker->task_tail;
  run.failure = nullptr;
  own.running = &run;
  BendForkTask* waits = own.awaited.exchange(nullptr, std::memory_order_release);
  const uint32_t depth = worker->fork_depth;
  worker->fork_depth = std::atomic_ref<uint32_t>(task->note).exchange(worker->index, std::memory_order_relaxed);
  if (_setjmp(run.back) == 0) task->code(worker, task->data);
  own.running = run.outer;
  own.awaited.store(waits, std::memory_order_release);
  worker->fork_depth = depth;
  own.small = nullptr;   // nobody waits inside a small fork; an error may have ended one
  wanted_of(worker).store(1, std::memory_order_relaxed);
  if (run.failure) task->data[0] = reinterpret_cast<uint64_t>(run.failure);
  uint64_t at = now();
  own.idle_since.store(at, std::memory_order_relaxed);
  if (at - own.shared >= kShareNanoseconds) {
    own.shared = at;
    heap_share(worker);
  }
  // The owner may go on, and the entry be reused, as soon as the state is set; the owner itself stays.
  state_of(task).store(run.failure ? kTaskFailed : kTaskDone, std::memory_order_seq_cst);
  WorkerTasks& owner = s->tasks[victim];
  if (owner.parked.load(std::memory_order_seq_cst) == kParked) wake(s, owner, kRunning);
}

void run_at(BendWorker* worker, uint32_t owner, uint32_t place) {
  WorkerTasks& from = scheduler(worker)->tasks[owner];
  run_task(worker, owner, reinterpret_cast<BendForkTask*>(from.base + (place - low(from.base))));
}

// The worker's oldest task to one who asks. False when it has none to give.
bool give(BendWorker* worker) {
  Scheduler* s = scheduler(worker);
  WorkerTasks& own = tasks_of(worker);
  const uint32_t tail = low(worker->task_tail);
  uint64_t seen = own.head.load(std::memory_order_seq_cst);
  uint32_t index;
  if (tail <= head_place(seen)) return false;
  Askers* set = &own.asking;
  if (!set->pick(random_next(own), &index)) {
    set = &s->asking;
    if (!set->pick(random_next(own), &index)) return true;
  }
  while (tail > head_place(seen)) {
    uint32_t place = head_place(seen);
    if (!own.head.compare_exchange_strong(seen, with_place(seen, place + BEND_TASK_BYTES), std::memory_order_seq_cst)) continue;
    ++own.counts.given;
    s->tasks[index].gift.store((1ull + worker->index) << 32 | place, std::memory_order_seq_cst);
    return true;
  }
  // Thieves were faster.
  set->add(index);
  return false;
}

// Asks until `task` is done, a gift has come and been run (true), or for kAskNanoseconds.
bool ask_and_run(BendWorker* worker, BendForkTask* task, Askers& set) {
  Scheduler* s = scheduler(worker);
  WorkerTasks& own = tasks_of(worker);
  set.add(worker->index);
  for (uint64_t from = now();;) {
    for (uint32_t i = 0; i < kPausesARound && own.gift.load(std::memory_order_relaxed) == 0; ++i) pause_cpu();
    bool finished = task ? state_of(task).load(std::memory_order_acquire) != kTaskOpen : s->stopping.load(std::memory_order_acquire) != 0;
    if (own.gift.load(std::memory_order_relaxed) == 0 && !finished && now() - from < kAskNanoseconds) continue;
    perturb(worker);
    if (set.remove(worker->index)) return false;
    // Somebody is about to give, or to find that there is nothing to give.
    while (own.gift.load(std::memory_order_acquire) == 0 && !set.has(worker->index)) pause_cpu();
    if (uint64_t gift = own.gift.exchange(0, std::memory_order_seq_cst)) {
      run_at(worker, static_cast<uint32_t>(gift >> 32) - 1, static_cast<uint32_t>(gift));
      own.takes_pay = false;
      return true;
    }
  }
}

// May a worker give a task? Who asks before gets none, and costs it a call and a cache line.
bool may_give(const WorkerTasks& tasks, uint64_t at) { return at >= tasks.busy_since.load(std::memory_order_relaxed) + kGiveNanoseconds; }

// The next fork of every worker at work asks.
void poke(BendWorker* worker) {
  Scheduler* s = scheduler(worker);
  const uint32_t started = s->started.load(std::memory_order_acquire);
  const uint64_t at = now();
  for (uint32_t i = 0; i < started; ++i) {
    const WorkerTasks& tasks = s->tasks[i];
    if (i != worker->index && tasks.idle_since.load(std::memory_order_relaxed) == 0 && may_give(tasks, at)) want_tasks(&s->runtime->workers[i]);
  }
}

enum class Take : uint8_t { Ran, Occupied, Nothing };

Take take_from(BendWorker* worker, uint32_t victim) {
  Scheduler* s = scheduler(worker);
  WorkerTasks& own = tasks_of(worker);
  BendWorker* other = &s->runtime->workers[victim];
  WorkerTasks& others = s->tasks[victim];
  if (!has_tasks(s, victim)) return Take::Nothing;
  // One thief a victim: each costs a barrier in every running thread.
  if (others.visited.exchange(1, std::memory_order_acquire) != 0) return Take::Occupied;
  uint32_t place;
  bool taken = take_task(
      others.head, [&] { return low(tail_of(other).load(std::memory_order_seq_cst)); },
      [&] {
        perturb(worker);
        ++own.counts.tries;
        barrier_everywhere(s);
      },
      &place);
  others.visited.store(0, std::memory_order_release);
  if (!taken) return Take::Nothing;
  perturb(worker);
  ++own.counts.taken;
  const uint64_t at = now();
  run_at(worker, victim, place);
  own.takes_pay = now() - at >= kTakeNanoseconds;
  return Take::Ran;
}

Take take_from_any(BendWorker* worker) {
  Scheduler* s = scheduler(worker);
  uint32_t started = s->started.load(std::memory_order_acquire);
  uint32_t from = static_cast<uint32_t>(random_next(tasks_of(worker)) % started);
  Take out = Take::Nothing;
  for (uint32_t i = 0; i < started && out != Take::Ran; ++i) {
    uint32_t victim = (from + i) % started;
    if (Take got = victim == worker->index ? Take::Nothing : take_from(worker, victim); got != Take::Nothing) out = got;
  }
  return out;
}

// The worker at work on what this one waits for: who took the task, or, when that worker waits itself, who took what it waits for. A guess,
// since all of them go on meanwhile; this worker itself when there is none.
uint32_t at_work_on(BendWorker* worker, BendForkTask* task) {
  Scheduler* s = scheduler(worker);
  uint32_t started = s->started.load(std::memory_order_acquire);
  uint32_t at = worker->index;
  for (uint32_t steps = 0; task && steps < kLongestChain; ++steps) {
    uint32_t thief = std::atomic_ref<uint32_t>(task->note).load(std::memory_order_relaxed);
    if (thief >= started || thief == worker->index) break;
    at = thief;
    if (has_tasks(s, at)) break;
    task = s->tasks[at].awaited.load(std::memory_order_acquire);
  }
  return at;
}

bool anything_to_take(BendWorker* worker) {
  Scheduler* s = scheduler(worker);
  uint32_t started = s->started.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < started; ++i)
    if (i != worker->index && has_tasks(s, i)) return true;
  return false;
}

// Sleeps until work may have come up or `task` is done.
void park(BendWorker* worker, BendForkTask* task) {
  Scheduler* s = scheduler(worker);
  WorkerTasks& own = tasks_of(worker);
  ++own.counts.parks;
  own.parked.store(kParked, std::memory_order_seq_cst);
  s->parked.fetch_add(1, std::memory_order_seq_cst);
  if (own.summoned) {
    own.summoned = false;
    s->summoning.fetch_sub(1, std::memory_order_seq_cst);
  }
  lower_limits(s);
  // From here on every push comes to bend_fork; those before it are seen by this look.
  barrier_everywhere(s);
  if (s->stopping.load(std::memory_order_seq_cst) || (task && state_of(task).load(std::memory_order_seq_cst) != kTaskOpen) || anything_to_take(worker)) {
    uint32_t expected = kParked;
    if (own.parked.compare_exchange_strong(expected, kRunning, std::memory_order_seq_cst)) s->parked.fetch_sub(1, std::memory_order_seq_cst);
  }
  // Without barriers a push may still sit in its worker's store buffer: then the wait is bounded. With them it is so for one worker, which asks those at
  // work again and again: a fork that was expected to be small and is not makes tasks only when asked twice.
  const bool sentinel = s->barriers && s->sentinel.exchange(1, std::memory_order_seq_cst) == 0;
  timespec bound = {0, kWakeNanoseconds};
  while (own.parked.load(std::memory_order_seq_cst) == kParked) {
    futex(&own.parked, FUTEX_WAIT, kParked, s->barriers && !sentinel ? nullptr : &bound);
    if (sentinel && own.parked.load(std::memory_order_relaxed) == kParked) poke(worker);
    if (s->barriers) continue;
    uint32_t expected = kParked;
    if (own.parked.compare_exchange_strong(expected, kRunning, std::memory_order_seq_cst)) s->parked.fetch_sub(1, std::memory_order_seq_cst);
  }
  if (sentinel) s->sentinel.store(0, std::memory_order_seq_cst);
  if (own.parked.exchange(kRunning, std::memory_order_seq_cst) == kSummoned) own.summoned = true;
}

// One attempt to run a task that what this worker waits for consists of, and true, or a pause. `taken`: the last time there was nothing to take.
bool help(BendWorker* worker, BendForkTask* task, uint32_t helped, uint64_t* taken) {
  Scheduler* s = scheduler(worker);
  if (may_give(s->tasks[helped], now())) want_tasks(&s->runtime->workers[helped]);
  if (ask_and_run(worker, task, s->tasks[helped].asking)) return true;
  if (uint64_t at = now(); s->seed != 0 || at - *taken >= kTakeNanoseconds) {
    Take got = take_from(worker, helped);
    if (got == Take::Ran) return true;
    if (got == Take::Nothing) *taken = at;
  }
  sched_yield();
  return false;
}

// One attempt to run any task.
bool look_around(BendWorker* worker, BendForkTask* task, uint64_t* taken) {
  Scheduler* s = scheduler(worker);
  if (ask_and_run(worker, task, s->asking)) return true;
  if (uint64_t at = now(); s->seed != 0 || at - *taken >= kTakeNanoseconds) {
    Take got = take_from_any(worker);
    if (got == Take::Ran) return true;
    if (got == Take::Nothing) *taken = at;
    heap_give_all(worker);
  }
  poke(worker);
  // With fewer free cores than workers, whoever has work may be waiting for this one.
  sched_yield();
  return false;
}

// Runs other workers' tasks until `task` is done, or, without one, until the program ends.
void work_until(BendWorker* worker, BendForkTask* task) {
  Scheduler* s = scheduler(worker);
  WorkerTasks& own = tasks_of(worker);
  uint64_t since = 0, taken = 0;   // without work; the last attempt to take some in vain
  bool lowered = false;            // the limits of all, since then
  BendForkTask* outer = own.awaited.exchange(task, std::memory_order_acq_rel);
  while (task ? state_of(task).load(std::memory_order_acquire) == kTaskOpen : s->stopping.load(std::memory_order_acquire) == 0) {
    uint64_t at = now();
    if (since == 0) {
      since = at;
      // Whose tasks are taken is in a long call and does not give; the next one there is as long.
      taken = own.takes_pay ? at - kTakeNanoseconds : at;
      lowered = false;
      if (own.idle_since.load(std::memory_order_relaxed) == 0) own.idle_since.store(at, std::memory_order_relaxed);
    }
    bool ran;
    if (uint32_t helped = at - since < kHelpNanoseconds ? at_work_on(worker, task) : worker->index; helped != worker->index) {
      ran = help(worker, task, helped, &taken);
    } else {
      if (!lowered) lower_limits(s);
      lowered = true;
      ran = look_around(worker, task, &taken);
    }
    if (ran) {
      since = 0;
    } else if (lowered && now() - since >= (task ? kWaitNanoseconds : kSpinNanoseconds)) {
      if (!anything_to_take(worker)) park(worker, task);
      since = 0;
    }
  }
  end_idleness(own);
  own.awaited.store(outer, std::memory_order_release);
  if (own.summoned) answer_summons(s, own);
}

// Takes the entry at the tail back, or waits until it is done; its state then, kTaskOpen when the caller may run it.
uint32_t join(BendWorker* worker, BendForkTask* task) {
  WorkerTasks& own = tasks_of(worker);
  char* place = reinterpret_cast<char*>(task);
  tail_of(worker).exchange(place, std::memory_order_seq_cst);
  ++own.counts.joins;
  perturb(worker);
  if (pop_task(own.head, low(task)) == Popped::Ours) return kTaskOpen;
  // Tasks that this worker runs meanwhile push their own above the entry, where the result will be.
  tail_of(worker).store(place + BEND_TASK_BYTES, std::memory_order_seq_cst);
  ++own.counts.waits;
  work_until(worker, task);
  uint32_t state = state_of(task).exchange(kTaskOpen, std::memory_order_acquire);
  tail_of(worker).store(place, std::memory_order_seq_cst);
  give_back_task(own.head, low(task));
  return state;
}

// Somebody has asked: one who waits gets a task, or one who rests is sent for.
void hear(BendWorker* worker) {
  Scheduler* s = scheduler(worker);
  WorkerTasks& own = tasks_of(worker);
  ++own.counts.forks;
  limit_of(worker).store(own.end, std::memory_order_seq_cst);
  if (s->asking.any() || own.asking.any()) {
    // Given once and asked again soon: those who ask do it again.
    if (uint64_t at = now(); may_give(own, at) || s->seed != 0) {
      if (give(worker)) own.busy_since.store(at, std::memory_order_relaxed);
      else limit_of(worker).store(nullptr, std::memory_order_seq_cst);
    }
  } else if (somebody_rests(s)) {
    (void)summon_first(s, own);
  }
}

ForkTime& time_of(BendWorker* worker, uint32_t site) { return tasks_of(worker).times[(site * 61 + worker->fork_depth) % kForkTimes]; }

void note_time(ForkTime& time, uint64_t took) {
  const uint64_t faded = time.nanoseconds - time.nanoseconds / 8 + took / 8;
  took = took > faded || time.forks == 0 ? took : faded;
  time.nanoseconds = took < UINT32_MAX ? static_cast<uint32_t>(took) : UINT32_MAX;
  if (time.forks == 0) time.forks = 1;
}

// A fork that is expected to be small, and that somebody has asked in for long.
bool takes_long(WorkerTasks& own) {
  const uint64_t at = now();
  if (own.small_asked == 0) own.small_asked = at;
  return at - own.small_asked >= 8 * kSmallNanoseconds;
}

void print_counts(Scheduler* s, uint32_t started) {
  for (uint32_t i = 0; i < started; ++i) {
    const WorkerCounts& c = s->tasks[i].counts;
    Message m;
    m.text("bend: worker ").number(i).text(": forks asked ").number(c.forks).text(", given ").number(c.given).text(", run ").number(c.run);
    m.text(", taken ").number(c.taken).text(" in ").number(c.tries).text(" tries, joins asked ").number(c.joins).text(", waited ").number(c.waits);
    m.text(", parked ").number(c.parks).text(", idle ").number(c.idle / 1000).text(" us\n");
    write_stderr(m.data(), m.size());
  }
}

void run_helper(void* raw) { work_until(static_cast<BendWorker*>(raw), nullptr); }

}  // namespace

void fail_task(BendWorker* worker, const char* text, size_t size) {
  Scheduler* s = scheduler(worker);
  TaskRun* run = s ? tasks_of(worker).running : nullptr;
  Failure* failure = run ? static_cast<Failure*>(malloc(sizeof(Failure) + size)) : nullptr;
  if (!failure) return;
  failure->size = size;
  memcpy(failure->text, text, size);
  // The task's own forks: those begun elsewhere end before their entries are used again, the others never run.
  for (char* at = worker->task_tail - BEND_TASK_BYTES; at >= run->tail; at -= BEND_TASK_BYTES) (void)join(worker, reinterpret_cast<BendForkTask*>(at));
  run->failure = failure;
  _longjmp(run->back, 1);
}

void leave_tasks(BendWorker* worker) {
  if (scheduler(worker)) tasks_of(worker).running = nullptr;
}

bool scheduler_open(BendRuntime* runtime) {
  uint32_t count = runtime->config.threads;
  // Fresh pages are zero and cost nothing before a worker uses them, so that a program without forks does not pay for the threads it may have.
  const uint64_t tasks = (sizeof(Scheduler) + alignof(WorkerTasks) - 1) / alignof(WorkerTasks) * alignof(WorkerTasks);
  const uint64_t bytes = tasks + count * sizeof(WorkerTasks);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  Scheduler* s = static_cast<Scheduler*>(memory);
  s->runtime = runtime;
  s->bytes = bytes;
  s->tasks = reinterpret_cast<WorkerTasks*>(static_cast<char*>(memory) + tasks);
  s->count = count;
  s->seed = runtime->config.sched_seed;
  s->counting = runtime->config.gpu.stats;
  s->limit.store(count, std::memory_order_relaxed);
  runtime->scheduler = s;
  runtime->workers[0].solo = count == 1;
  runtime->workers[0].tasks_wanted = 1;
  runtime->workers[0].task_head = &kEverywhere;
  return true;
}

void scheduler_close(BendRuntime* runtime) {
  Scheduler* s = runtime->scheduler;
  if (!s) return;
  s->stopping_since.store(now(), std::memory_order_relaxed);
  s->stopping.store(1, std::memory_order_seq_cst);
  // After this nobody starts another one.
  while (s->starting.load(std::memory_order_seq_cst) > 0) sched_yield();
  uint32_t started = s->started.load(std::memory_order_seq_cst);
  if (s->counting) print_counts(s, started);
  for (uint32_t i = 1; i < started; ++i) wake(s, s->tasks[i], kRunning);
  for (uint32_t i = 1; i < started; ++i) {
    WorkerTasks& own = s->tasks[i];
    if (own.started) {
      pthread_join(own.thread, nullptr);
      stack_unmap(&own.stack);
    }
    close_stack(own);
  }
  if (started > 0) close_stack(s->tasks[0]);
  watchdog_stop(s);
  runtime->worker_count = started > 1 ? started : 1;
}

void scheduler_free(BendRuntime* runtime) {
  if (runtime->scheduler) munmap(runtime->scheduler, runtime->scheduler->bytes);
  runtime->scheduler = nullptr;
}

}  // namespace bendc::rt

using namespace bendc::rt;

uint64_t bend_fork(BendWorker* worker, uint32_t site) {
  Scheduler* s = scheduler(worker);
  WorkerTasks& own = tasks_of(worker);
  if (!own.base) {
    // The program's first fork.
    if (s->limit.load(std::memory_order_relaxed) < 2 || !open_stack(own)) {
      worker->solo = 1;
      return BEND_FORK_SEQUENTIAL;
    }
    s->barriers = register_barriers();
    open_worker(worker);
    s->started.store(1, std::memory_order_seq_cst);
    watchdog_start(s, s->runtime->config.watchdog_seconds);
  }
  perturb(worker);
  if (own.small) {
    if (!takes_long(own)) {
      // Who asks now and is not heard finds tasks to take, or asks again.
      if (has_tasks(s, worker->index)) hear(worker);
      wanted_of(worker).store(0, std::memory_order_relaxed);
      return BEND_FORK_SMALL;
    }
    note_time(*own.small, UINT32_MAX);
    own.small = nullptr;
  }
  if (!limit_of(worker).load(std::memory_order_relaxed)) hear(worker);
  if (worker->task_tail >= own.end) return BEND_FORK_SMALL;
  ForkTime& time = time_of(worker, site);
  const bool small = s->seed != 0 ? random_next(own) >> 40 & 1 : time.forks != 0 && time.nanoseconds < kSmallNanoseconds;
  if (!small) {
    ++worker->fork_depth;
    return now() << kTokenShift | BEND_FORK_PUSH;
  }
  own.small = &time;
  own.small_asked = 0;
  const uint64_t start = time.forks++ % kMeasureEvery == 0 ? now() : 0;
  wanted_of(worker).store(0, std::memory_order_relaxed);
  return start << kTokenShift | kTokenSmall | BEND_FORK_SMALL;
}

void bend_fork_end(BendWorker* worker, uint32_t site, uint64_t token) {
  WorkerTasks& own = tasks_of(worker);
  const uint64_t start = token >> kTokenShift;
  if ((token & BEND_FORK_HOW) == BEND_FORK_PUSH) {
    --worker->fork_depth;
  } else if (token & kTokenSmall) {
    own.small = nullptr;
    wanted_of(worker).store(1, std::memory_order_relaxed);
  }
  if (start != 0) note_time(time_of(worker, site), now() - start);
}

uint32_t bend_join(BendWorker* worker, void* raw) {
  BendForkTask* task = static_cast<BendForkTask*>(raw);
  uint32_t state = join(worker, task);
  if (state != kTaskFailed) return state == kTaskOpen;
  const Failure* failure = reinterpret_cast<const Failure*>(task->data[0]);
  Message text;
  text.bytes(failure->text, failure->size);
  fail_plain(worker, text);
}
