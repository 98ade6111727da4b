#include "runtime/cpu/workers.h"

#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/cpu/clock.h"
#include "runtime/cpu/idle.h"
#include "runtime/error.h"

namespace bendc::rt {

namespace {

// 2^20 entries: as deep as forks nest before the newest run in order. Backed by memory only where used.
constexpr uint64_t kStackBytes = (1ull << 20) * BEND_TASK_BYTES;
constexpr uint32_t kMostSummoned = 2;   // by one worker that has found work

// Task stacks whose owner may not pop by itself: no tail is above this.
constexpr uint32_t kEverywhere = 0xFFFFFFFFu;

#if defined(__SANITIZE_THREAD__)
constexpr bool kMayUseBarriers = false;   // the sanitizer does not know of barriers put into other threads
#else
constexpr bool kMayUseBarriers = true;
#endif

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

void run_helper(void* raw) { work_until(static_cast<BendWorker*>(raw), nullptr); }

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

void print_counts(Scheduler* s, uint32_t started) {
  for (uint32_t i = 0; i < started; ++i) {
    const WorkerCounts& c = s->tasks[i].counts;
    Message m;
    m.text("bend: worker ").number(i).text(": forks asked ").number(c.forks).text(", given ").number(c.given).text(" and kept ").number(c.kept).text(", run ").number(c.run);
    m.text(", taken ").number(c.taken).text(" in ").number(c.tries).text(" tries, joins asked ").number(c.joins).text(", waited ").number(c.waits);
    m.text(", parked ").number(c.parks).text(", idle ").number(c.idle / 1000).text(" us\n");
    write_stderr(m.data(), m.size());
  }
}

}  // namespace

void barrier_everywhere(Scheduler* s) {
  if (s->barriers) syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

void futex_wait(std::atomic<uint32_t>* word, uint32_t value, const timespec* bound) { futex(word, FUTEX_WAIT, value, bound); }

// A sleep lasts up to 63 us. After 2,048 chances a worker takes one in 64: a program of a million forks would otherwise sleep for a minute
// (scan_sizes: 32 s on two cores).
void disturb(BendWorker* worker) {
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

void want_tasks(BendWorker* worker) {
  limit_of(worker).store(nullptr, std::memory_order_seq_cst);
  wanted_of(worker).store(1, std::memory_order_seq_cst);
}

void lower_limits(Scheduler* s) {
  uint32_t started = s->started.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < started; ++i) want_tasks(&s->runtime->workers[i]);
}

bool wake(Scheduler* s, WorkerTasks& sleeper, uint32_t how) {
  uint32_t expected = kParked;
  if (!sleeper.parked.compare_exchange_strong(expected, how, std::memory_order_seq_cst)) return false;
  s->parked.fetch_sub(1, std::memory_order_seq_cst);
  futex(&sleeper.parked, FUTEX_WAKE, 1, nullptr);
  return true;
}

void summon_first(Scheduler* s, WorkerTasks& own) {
  uint32_t none = 0;
  if (!s->summoning.compare_exchange_strong(none, 1, std::memory_order_seq_cst)) return;
  summon(s, own);
}

void answer_summons(Scheduler* s, WorkerTasks& own) {
  own.summoned = false;
  s->summoning.fetch_sub(1, std::memory_order_seq_cst);
  if (somebody_rests(s)) lower_limits(s);
}

// Each sends for two, so that sixteen are at work after four turns.
void summon_more(Scheduler* s, WorkerTasks& own, uint32_t victim) {
  uint32_t more = somebody_rests(s) ? waiting_tasks(s, victim) : 0;
  if (!own.summoned) {
    if (more > 0) summon_first(s, own);
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

bool open_first_worker(BendWorker* worker) {
  Scheduler* s = scheduler(worker);
  if (s->limit.load(std::memory_order_relaxed) < 2 || !open_stack(tasks_of(worker))) return false;
  s->barriers = register_barriers();
  open_worker(worker);
  s->started.store(1, std::memory_order_seq_cst);
  watchdog_start(s, s->runtime->config.watchdog_seconds);
  return true;
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
