// What the parts of the scheduler know of workers: their fields that others touch, and how they are told, woken, sent for and started.
#pragma once
#include <stdint.h>
#include <time.h>

#include <atomic>

#include "runtime/abi.h"
#include "runtime/cpu/scheduler.h"
#include "runtime/cpu/tasks.h"
#include "runtime/runtime.h"

namespace bendc::rt {

enum : uint32_t { kRunning = 0, kParked = 1, kSummoned = 2 };   // WorkerTasks.parked

inline Scheduler* scheduler(BendWorker* worker) { return worker->runtime->scheduler; }
inline WorkerTasks& tasks_of(BendWorker* worker) { return scheduler(worker)->tasks[worker->index]; }
inline uint32_t low(const void* address) { return static_cast<uint32_t>(reinterpret_cast<uint64_t>(address)); }
inline std::atomic_ref<char*> tail_of(BendWorker* worker) { return std::atomic_ref<char*>(worker->task_tail); }
inline std::atomic_ref<char*> limit_of(BendWorker* worker) { return std::atomic_ref<char*>(worker->task_limit); }
inline std::atomic_ref<uint32_t> wanted_of(BendWorker* worker) { return std::atomic_ref<uint32_t>(worker->tasks_wanted); }
inline std::atomic_ref<uint32_t> state_of(BendForkTask* task) { return std::atomic_ref<uint32_t>(task->state); }

inline std::atomic_ref<uint32_t> note_of(BendForkTask* task) { return std::atomic_ref<uint32_t>(task->note); }

// What a worker is given: a task of `owner`, in one word.
struct Gift {
  uint32_t owner;      // below 128
  uint32_t depth;      // of the fork; modulo 2^24, for it only tells forks apart
  uint32_t place;      // of the entry, a multiple of BEND_TASK_BYTES
  bool own_set;        // who got it asked this owner before others

  uint64_t word() const { return (1ull + owner) << 56 | static_cast<uint64_t>(depth & 0xFFFFFF) << 32 | place | own_set; }
  static Gift of(uint64_t word) {
    return {static_cast<uint32_t>(word >> 56) - 1, static_cast<uint32_t>(word >> 32) & 0xFFFFFF, static_cast<uint32_t>(word) & ~1u, (word & 1) != 0};
  }
};

inline uint32_t waiting_tasks(Scheduler* s, uint32_t index) {
  const uint32_t tail = low(tail_of(&s->runtime->workers[index]).load(std::memory_order_seq_cst));
  const uint32_t head = head_place(s->tasks[index].head.load(std::memory_order_seq_cst));
  return tail > head ? (tail - head) / BEND_TASK_BYTES : 0;
}
inline bool has_tasks(Scheduler* s, uint32_t index) { return waiting_tasks(s, index) > 0; }

inline uint64_t random_next(WorkerTasks& own) {
  own.random ^= own.random << 13;
  own.random ^= own.random >> 7;
  own.random ^= own.random << 17;
  return own.random;
}

void disturb(BendWorker* worker);
// With a seed: now and then the thread gives way or sleeps, so that other interleavings come up.
inline void perturb(BendWorker* worker) {
  if (scheduler(worker)->seed != 0) disturb(worker);
}

// Every running thread of the process passes a full barrier before this returns.
void barrier_everywhere(Scheduler* s);
// Sleeps on the word while it has the value; null: without bound.
void futex_wait(std::atomic<uint32_t>* word, uint32_t value, const timespec* bound);

// The program's first fork: worker 0 takes part. False when the system refuses.
[[nodiscard]] bool open_first_worker(BendWorker* worker);
// The worker's next fork comes to bend_fork.
void want_tasks(BendWorker* worker);
// The same for all.
void lower_limits(Scheduler* s);
// Some worker is parked or not started.
inline bool somebody_rests(Scheduler* s) {
  return s->parked.load(std::memory_order_seq_cst) > 0 || s->started.load(std::memory_order_seq_cst) < s->limit.load(std::memory_order_relaxed);
}
// False when it was not parked.
bool wake(Scheduler* s, WorkerTasks& sleeper, uint32_t how);
// A resting worker is sent looking for work, unless one sent for before has not found any yet.
void summon_first(Scheduler* s, WorkerTasks& own);
// A worker has got a task of `victim`: when there is more where it came from, others are sent for before it begins.
void summon_more(Scheduler* s, WorkerTasks& own, uint32_t victim);
// The summoned worker has found work, or stops looking: the next push may summon another.
void answer_summons(Scheduler* s, WorkerTasks& own);

}  // namespace bendc::rt
