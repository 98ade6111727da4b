#include "runtime/cpu/idle.h"

#include <sched.h>

#include "runtime/cpu/clock.h"
#include "runtime/cpu/workers.h"

namespace bendc::rt {

namespace {

constexpr uint64_t kSpinNanoseconds = 200'000;  // without work until a worker parks
constexpr uint64_t kWaitNanoseconds = 1'000'000;   // the same, for one that waits for a task
constexpr uint64_t kHelpNanoseconds = 50'000;   // waiting for a task, until a worker looks for tasks that are no part of it
constexpr uint64_t kAskNanoseconds = 5'000;     // for gifts, between looks at the others
constexpr uint64_t kTakeNanoseconds = 20'000;   // asking in vain until a worker takes a task itself
constexpr uint64_t kGiveNanoseconds = 25'000;   // busy with a task, or since the last gift, before a worker gives
constexpr uint32_t kPausesARound = 32;
constexpr uint32_t kLongestChain = 8;   // of workers that wait for each other
constexpr uint64_t kShareNanoseconds = 1'000'000;   // between two times that a busy worker hands free memory over
constexpr long kAwakeNanoseconds = 1'000'000;    // between the first times that a parked worker wakes by itself
constexpr long kSeldomNanoseconds = 16'000'000;  // the same after some in vain

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

void end_idleness(WorkerTasks& own) {
  if (uint64_t since = own.idle_since.load(std::memory_order_relaxed)) own.counts.idle += now() - since;
  own.idle_since.store(0, std::memory_order_relaxed);
}

void run_task(BendWorker* worker, uint32_t victim, BendForkTask* task, uint32_t depth) {
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
  const uint32_t outer_depth = worker->fork_depth;
  worker->fork_depth = depth;
  ForkTime* const outer = own.outer;
  if (_setjmp(run.back) == 0) task->code(worker, task->data);
  own.running = run.outer;
  own.awaited.store(waits, std::memory_order_release);
  worker->fork_depth = outer_depth;
  own.outer = outer;
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

BendForkTask* task_at(Scheduler* s, uint32_t owner, uint32_t place) {
  char* base = s->tasks[owner].base;
  return reinterpret_cast<BendForkTask*>(base + (place - low(base)));
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
    // Somebody is about to give, to find that there is nothing to give, or to take a gift back.
    while (own.gift.load(std::memory_order_acquire) == 0 && !set.has(worker->index)) pause_cpu();
    if (uint64_t gift = own.gift.exchange(0, std::memory_order_seq_cst)) {
      const Gift got = Gift::of(gift);
      run_task(worker, got.owner, task_at(s, got.owner, got.place), got.depth);
      own.takes_pay = false;
      return true;
    }
  }
}

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
  BendForkTask* task = task_at(s, victim, place);
  run_task(worker, victim, task, note_of(task).exchange(worker->index, std::memory_order_relaxed));
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
    uint32_t thief = note_of(task).load(std::memory_order_relaxed);
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
  bool rested = s->stopping.load(std::memory_order_seq_cst) || (task && state_of(task).load(std::memory_order_seq_cst) != kTaskOpen) || anything_to_take(worker);
  // Without barriers a push may still sit in its worker's store buffer: then the wait is bounded. With them it is so for one worker, which looks around and
  // asks those at work again and again, ever more seldom: a fork that was expected to be short and is not woke nobody, and makes tasks, if it was
  // expected to be small, only when asked twice.
  const bool sentinel = s->barriers && s->sentinel.exchange(1, std::memory_order_seq_cst) == 0;
  timespec bound = {0, kAwakeNanoseconds};
  while (!rested && own.parked.load(std::memory_order_seq_cst) == kParked) {
    futex_wait(&own.parked, kParked, s->barriers && !sentinel ? nullptr : &bound);
    rested = !s->barriers || (sentinel && anything_to_take(worker));
    if (sentinel && !rested && own.parked.load(std::memory_order_relaxed) == kParked) poke(worker);
    if (bound.tv_nsec < kSeldomNanoseconds) bound.tv_nsec *= 2;
  }
  uint32_t expected = kParked;
  if (own.parked.compare_exchange_strong(expected, kRunning, std::memory_order_seq_cst)) s->parked.fetch_sub(1, std::memory_order_seq_cst);
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

}  // namespace

bool may_give(const WorkerTasks& tasks, uint64_t at) { return at >= tasks.busy_since.load(std::memory_order_relaxed) + kGiveNanoseconds; }

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
    const uint32_t depth = note_of(task_at(s, worker->index, place)).exchange(index, std::memory_order_relaxed);
    s->tasks[index].gift.store(Gift{worker->index, depth, place, set == &own.asking}.word(), std::memory_order_seq_cst);
    return true;
  }
  // Thieves were faster.
  set->add(index);
  return false;
}

bool take_gift_back(BendWorker* worker, BendForkTask* task) {
  Scheduler* s = scheduler(worker);
  WorkerTasks& own = tasks_of(worker);
  const uint32_t index = note_of(task).load(std::memory_order_relaxed);
  if (index >= s->started.load(std::memory_order_acquire)) return false;
  std::atomic<uint64_t>& gift = s->tasks[index].gift;
  uint64_t seen = gift.load(std::memory_order_seq_cst);
  if (seen == 0) return false;
  const Gift given = Gift::of(seen);
  if (given.owner != worker->index || given.place != low(task) || !gift.compare_exchange_strong(seen, 0, std::memory_order_seq_cst)) return false;
  ++own.counts.kept;
  // It has not seen the gift and still asks.
  (given.own_set ? own.asking : s->asking).add(index);
  return true;
}

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

}  // namespace bendc::rt
