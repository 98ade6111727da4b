// Workers that run each other's tasks. Worker 0 is the program's own thread; the others start one by one when a fork has work for them.
// An idle worker
//   asks     for some microseconds: it lowers the task_limit of workers, so that the next push of each comes to bend_fork, which gives
//            the oldest task to one who asks, unless the worker has just given one or been given its own: near the leaves of a fork tree
//            handing on would cost more than the tasks. Neither side stops for that;
//   takes    a task itself, from a worker that does not push because it is in a long call; this costs a barrier in every running thread;
//   parks    after kSpin in vain, with the limits lowered: the next push wakes one of the parked or starts one more worker.
// So a push tests nothing for the idle's sake.
#pragma once
#include <pthread.h>
#include <stdint.h>

#include <atomic>

#include "runtime/abi.h"
#include "runtime/stack.h"

namespace bendc::rt {

struct TaskRun;

// What others touch of a worker, away from the lines its generated code writes.
struct alignas(128) WorkerTasks {
  std::atomic<uint64_t> head;            // low half: place of the oldest entry; high half: epoch (tasks.h)
  alignas(128) std::atomic<uint64_t> gift;     // 0, or a task given to this worker: (1 + owner) << 32 | place
  alignas(128) std::atomic<uint32_t> parked;   // futex: kRunning, kParked, kSummoned
  std::atomic<uint32_t> visited;               // a thief is at work here
  char* base;
  char* end;
  uint64_t random;
  uint32_t perturbed;                    // chances to disturb the schedule that were taken (BEND_SCHED_SEED)
  uint64_t shared;                       // when it last handed free memory over
  uint64_t busy_since;                   // when it last got or gave a task
  bool summoned;                         // woken or started to look for work; nobody else is, meanwhile
  bool started;
  TaskRun* running;                      // the innermost task of another worker that this one runs
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
  alignas(128) std::atomic<uint64_t> asking[2]; // a bit a worker
  alignas(128) std::atomic<uint32_t> parked;
  std::atomic<uint32_t> summoning;       // 1 while a summoned worker has not found work yet
  std::atomic<uint32_t> stopping;
};

// A run-time error. In a task of another worker it ends the task alone and does not return: the owner comes to the join after everything that
// precedes the task in order, and only then is it the program's error. So the error reported is the one that running in order meets.
void fail_task(BendWorker* worker, const char* text, size_t size);
// From here on an error of this worker is the program's at once (a signal handler cannot leave a task).
void leave_tasks(BendWorker* worker);

// Before the program starts; false when memory is refused. Starts no thread.
[[nodiscard]] bool scheduler_open(BendRuntime* runtime);
// After the program's end: no task is open.
void scheduler_close(BendRuntime* runtime);

}  // namespace bendc::rt
