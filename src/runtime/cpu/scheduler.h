// Workers that take each other's tasks. Worker 0 is the program's own thread; the others start one by one when a fork has work for them,
// look for tasks for kSpin, then park until a push wakes them. A push needs no test for that: whoever parks lowers every worker's
// task_limit, so that the next push of each comes to bend_fork, which wakes one of the parked or starts one more.
#pragma once
#include <pthread.h>
#include <stdint.h>

#include <atomic>

#include "runtime/abi.h"
#include "runtime/stack.h"

namespace bendc::rt {

// What others touch of a worker, away from the lines its generated code writes.
struct alignas(128) WorkerTasks {
  std::atomic<uint64_t> head;            // low half: place of the oldest entry; high half: epoch (tasks.h)
  alignas(128) std::atomic<uint32_t> parked;   // futex: kRunning, kParked, kSummoned
  char* base;
  char* end;
  uint64_t random;
  bool summoned;                         // woken or started to look for work; nobody else is, meanwhile
  bool started;
  Stack stack;
  pthread_t thread;
};

struct Scheduler {
  BendRuntime* runtime;
  WorkerTasks* tasks;                    // one a worker
  uint32_t count;
  uint64_t seed;                         // BEND_SCHED_SEED: perturbs the schedule
  bool barriers;                         // the system puts barriers into other threads
  alignas(128) std::atomic<uint32_t> started;   // workers with a stack of tasks, from 0 on
  std::atomic<uint32_t> limit;           // of started: lower than `count` when the system refuses a thread
  std::atomic<uint32_t> parked;
  std::atomic<uint32_t> summoning;       // 1 while a summoned worker has not found work yet
  std::atomic<uint32_t> stopping;
};

// Before the program starts; false when memory is refused. Starts no thread.
[[nodiscard]] bool scheduler_open(BendRuntime* runtime);
// After the program's end: no task is open.
void scheduler_close(BendRuntime* runtime);

}  // namespace bendc::rt
