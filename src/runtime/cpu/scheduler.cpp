#include "runtime/cpu/scheduler.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/cpu/clock.h"
#include "runtime/cpu/idle.h"
#include "runtime/cpu/tasks.h"
#include "runtime/cpu/workers.h"
#include "runtime/error.h"
#include "runtime/runtime.h"

namespace bendc::rt {

namespace {

constexpr uint64_t kSmallNanoseconds = 8'000;   // forks whose like took less make no tasks
constexpr uint32_t kMeasureEvery = 16;          // of these, one is measured
constexpr uint32_t kMeasureLarge = 4;           // the same of forks from twice that on
constexpr uint64_t kWakeNanoseconds = 100'000;  // of forks, for which a resting worker is sent for; it comes after 10 to 170 microseconds
constexpr uint32_t kTokenShift = 3;             // of a fork's token: the time it began, or 0
constexpr uint64_t kTokenSmall = 4;             // of a fork's token: the outermost small one

// Takes the entry at the tail back, or waits until it is done; its state then, kTaskOpen when the caller may run it.
uint32_t join(BendWorker* worker, BendForkTask* task) {
  WorkerTasks& own = tasks_of(worker);
  char* place = reinterpret_cast<char*>(task);
  tail_of(worker).exchange(place, std::memory_order_seq_cst);
  ++own.counts.joins;
  perturb(worker);
  if (pop_task(own.head, low(task)) == Popped::Ours) return kTaskOpen;
  if (take_gift_back(worker, task)) {
    give_back_task(own.head, low(task));
    return kTaskOpen;
  }
  // Tasks that this worker runs meanwhile push their own above the entry, where the result will be.
  tail_of(worker).store(place + BEND_TASK_BYTES, std::memory_order_seq_cst);
  ++own.counts.waits;
  work_until(worker, task);
  uint32_t state = state_of(task).exchange(kTaskOpen, std::memory_order_acquire);
  tail_of(worker).store(place, std::memory_order_seq_cst);
  give_back_task(own.head, low(task));
  return state;
}

// The worker's innermost task of another worker, or its program, has no fork open.
bool outermost(BendWorker* worker, const WorkerTasks& own) { return worker->task_tail == (own.running ? own.running->tail : own.base); }

// Waking a worker costs as much as it does in a short time. Is there work for one that comes later: does the outermost fork last, by its like or so far,
// or do such forks follow each other closely?
bool worth_waking(BendWorker* worker, WorkerTasks& own) {
  if (scheduler(worker)->seed != 0 || own.outer->forks == 0 || own.outer->nanoseconds >= kWakeNanoseconds) return true;
  const uint64_t at = now();
  if (outermost(worker, own) && at - own.heard >= kWakeNanoseconds) own.heard_since = at;
  own.heard = at;
  return at - own.heard_since >= kWakeNanoseconds;
}

// One who asks gets a task 25 us after the last; at once when this worker's program has just begun to fork, and nobody else has anything.
bool gives_at(Scheduler* s, const WorkerTasks& own, uint64_t at) {
  return may_give(own, at) || s->seed != 0 || (!own.running && head_place(own.head.load(std::memory_order_relaxed)) == low(own.base));
}

// Somebody has asked: one who waits gets a task when there are more than `kept`, or one who rests is sent for.
void hear(BendWorker* worker, uint32_t kept) {
  Scheduler* s = scheduler(worker);
  WorkerTasks& own = tasks_of(worker);
  ++own.counts.forks;
  limit_of(worker).store(own.end, std::memory_order_seq_cst);
  if (s->asking.any() || own.asking.any()) {
    if (waiting_tasks(s, worker->index) <= kept) return limit_of(worker).store(nullptr, std::memory_order_seq_cst);
    // Given once and asked again soon: those who ask do it again.
    if (uint64_t at = now(); gives_at(s, own, at)) {
      if (give(worker)) own.busy_since.store(at, std::memory_order_relaxed);
      else limit_of(worker).store(nullptr, std::memory_order_seq_cst);
    }
  } else if (somebody_rests(s)) {
    if (worth_waking(worker, own)) summon_first(s, own);
    else limit_of(worker).store(nullptr, std::memory_order_seq_cst);
  }
}

ForkTime& time_of(BendWorker* worker, uint32_t site) { return tasks_of(worker).times[(site * 61 + worker->fork_depth) % kForkTimes]; }

void note_time(ForkTime& time, uint64_t took) {
  const uint64_t faded = time.nanoseconds - time.nanoseconds / 8 + took / 8;
  took = took > faded || time.forks == 0 ? took : faded;
  time.nanoseconds = took < UINT32_MAX ? static_cast<uint32_t>(took) : UINT32_MAX;
  if (time.forks == 0) time.forks = 1;
}

// Two looks at the clock cost a fork of 8 microseconds half a percent. Near a bound that decides something every time counts.
bool measured_large(ForkTime& time) {
  return time.nanoseconds < 2 * kSmallNanoseconds || time.nanoseconds >= kWakeNanoseconds || time.forks++ % kMeasureLarge == 0;
}

// A fork that is expected to be small, and that somebody has asked in for long.
bool takes_long(WorkerTasks& own) {
  const uint64_t at = now();
  if (own.small_asked == 0) own.small_asked = at;
  return at - own.small_asked >= 8 * kSmallNanoseconds;
}

// Forks that stay open for ever, from the newest down to the one at `last`: those begun elsewhere end before their entries are used again, the others never run.
void end_forks(BendWorker* worker, const char* last) {
  for (char* at = worker->task_tail - BEND_TASK_BYTES; at >= last; at -= BEND_TASK_BYTES) {
    BendForkTask* task = reinterpret_cast<BendForkTask*>(at);
    if (join(worker, task) == kTaskFailed) free(reinterpret_cast<Failure*>(task->data[0]));
  }
}

}  // namespace

void fail_task(BendWorker* worker, const char* text, size_t size) {
  Scheduler* s = scheduler(worker);
  TaskRun* run = s ? tasks_of(worker).running : nullptr;
  Failure* failure = run ? static_cast<Failure*>(malloc(sizeof(Failure) + size)) : nullptr;
  if (!failure) return;
  failure->size = size;
  memcpy(failure->text, text, size);
  end_forks(worker, run->tail);
  run->failure = failure;
  _longjmp(run->back, 1);
}

void leave_tasks(BendWorker* worker) {
  if (scheduler(worker)) tasks_of(worker).running = nullptr;
  worker->runtime->error_exit = nullptr;
}

void leave_forks(BendWorker* worker) {
  if (scheduler(worker) && tasks_of(worker).base) end_forks(worker, tasks_of(worker).base);
}

}  // namespace bendc::rt

using namespace bendc::rt;

uint64_t bend_fork(BendWorker* worker, uint32_t site) {
  Scheduler* s = scheduler(worker);
  WorkerTasks& own = tasks_of(worker);
  if (!own.base) {
    // The program's first fork.
    if (!open_first_worker(worker)) {
      worker->solo = 1;
      return BEND_FORK_SEQUENTIAL;
    }
  }
  perturb(worker);
  if (own.small) {
    if (!takes_long(own)) {
      // Who asks now and is not heard finds tasks to take, or asks again.
      if (has_tasks(s, worker->index)) hear(worker, 0);
      wanted_of(worker).store(0, std::memory_order_relaxed);
      return BEND_FORK_SMALL;
    }
    note_time(*own.small, UINT32_MAX);
    own.small = nullptr;
  }
  ForkTime& time = time_of(worker, site);
  if (outermost(worker, own)) own.outer = &time;
  if (!limit_of(worker).load(std::memory_order_relaxed)) hear(worker, 0);
  if (worker->task_tail >= own.end) return BEND_FORK_SMALL;
  const bool small = s->seed != 0 ? random_next(own) >> 40 & 1 : time.forks != 0 && time.nanoseconds < kSmallNanoseconds;
  if (!small) {
    ++worker->fork_depth;
    return (measured_large(time) ? now() : 0) << kTokenShift | BEND_FORK_PUSH;
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
    // Who has descended a spine and works on its end forks no more, and has tasks for all. But the last one it runs itself next: given away, it would
    // be waited for.
    if (!limit_of(worker).load(std::memory_order_relaxed)) hear(worker, 1);
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
