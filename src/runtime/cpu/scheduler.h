// Workers that run each other's tasks. Worker 0 is the program's own thread; the others start one by one when a fork has work for them.
// An idle worker
//   helps    first, when it waits for a task: it asks the worker at work on that task, and takes from that one alone. Any other task might be a
//            big one, and what comes after the join would wait for its end, on a stack nobody else can continue;
//   asks     for some microseconds: it lowers the task_limit of workers, so that the next push of each comes to bend_fork, which gives
//            the oldest task to one who asks, unless the worker has just given one or been given its own: near the leaves of a fork tree
//            handing on would cost more than the tasks. Neither side stops for that;
//   takes    a task itself, from a worker that does not push because it is in a long call; this costs a barrier in every running thread;
//   parks    after kSpin in vain, with the limits lowered: the next push that is worth it wakes one of the parked or starts one more worker, which
//            sends for two more when it finds work.
// So a push tests nothing for the idle's sake.
#pragma once
#include <pthread.h>
#include <stdint.h>

#include <atomic>

#include "runtime/abi.h"
#include "runtime/cpu/askers.h"
#include "runtime/cpu/watchdog.h"
#include "runtime/stack.h"

namespace bendc::rt {

struct TaskRun;

// What a worker did, for BEND_STATS; only it writes them.
struct WorkerCounts {
  uint64_t forks;      // pushes that came to bend_fork
  uint64_t given;      // own tasks given to one who asked
  uint64_t kept;       // of them, run by itself since who asked had not looked
  uint64_t run;        // others' tasks run
  uint64_t taken;      // of them, taken and not given
  uint64_t tries;      // barriers for taking
  uint64_t joins;      // that came to bend_join
  uint64_t waits;      // of them, those whose task was with another worker
  uint64_t parks;
  uint64_t idle;       // nanoseconds without a task to run
};

// How long a worker's last forks at one place of the program, at one depth, took: near their longest.
struct ForkTime {
  uint32_t nanoseconds;
  uint32_t forks;
};
inline constexpr uint32_t kForkTimes = 1024;   // by a hash of place and depth

// What others touch of a worker, away from the lines its generated code writes.
struct alignas(128) WorkerTasks {
  std::atomic<uint64_t> head;            // low half: place of the oldest entry; high half: epoch (tasks.h)
  alignas(128) std::atomic<uint64_t> gift;     // 0, or a task given to this worker (Gift, workers.h)
  Askers asking;                         // who would like a task of this worker before others'
  std::atomic<BendForkTask*> awaited;    // the taken entry that this worker waits for
  alignas(128) std::atomic<uint32_t> parked;   // futex: kRunning, kParked, kSummoned
  std::atomic<uint32_t> visited;               // a thief is at work here
  char* base;
  char* end;
  ForkTime* small;                       // the fork that runs in order because it is expected to be small, or null
  uint64_t small_asked;                  // 0, or when somebody first asked meanwhile
  ForkTime times[kForkTimes];
  ForkTime* outer;                       // of the outermost fork that is open, or was last
  uint64_t heard;                        // when somebody rested and a fork came to bend_fork last,
  uint64_t heard_since;                  // and first, without a long time between
  uint64_t random;
  uint32_t perturbed;                    // chances to disturb the schedule that were taken (BEND_SCHED_SEED)
  uint64_t shared;                       // when it last handed free memory over
  bool summoned;                         // woken or started to look for work, and counted in `summoning`
  bool started;
  bool takes_pay;                        // the last task of another worker was taken, not given, and lasted longer than asking before does
  WorkerCounts counts;
  alignas(128) std::atomic<uint64_t> idle_since;   // 0, or when the worker ran out of tasks
  std::atomic<uint64_t> busy_since;      // when it last got or gave a task
  TaskRun* running;                      // the innermost task of another worker that this one runs
  Stack stack;
  pthread_t thread;
};

struct Scheduler {
  BendRuntime* runtime;
  WorkerTasks* tasks;                    // one a worker
  uint64_t bytes;                        // of the mapping that holds this and the tasks
  uint32_t count;
  uint64_t seed;                         // BEND_SCHED_SEED: perturbs the schedule
  bool counting;                         // BEND_STATS
  bool barriers;                         // the system puts barriers into other threads
  alignas(128) std::atomic<uint32_t> started;   // workers that take part or are about to, from 0 on
  std::atomic<uint32_t> limit;           // of started: `count`, or 0 once the system has refused a thread
  alignas(128) Askers asking;            // who would like anybody's
  alignas(128) std::atomic<uint32_t> parked;
  std::atomic<uint32_t> sentinel;        // 1 while a parked worker wakes now and then
  std::atomic<uint32_t> summoning;       // workers sent for that have not found work yet
  std::atomic<uint32_t> starting;        // workers that start another one
  std::atomic<uint32_t> stopping;
  std::atomic<uint64_t> stopping_since;
  Watchdog watchdog;
};

// A run-time error. In a task of another worker it ends the task alone and does not return: the owner comes to the join after everything that
// precedes the task in order, and only then is it the program's error. So the error reported is the one that running in order meets.
void fail_task(BendWorker* worker, const char* text, size_t size);
// From here on an error of this worker is the program's at once, and ends the process (a signal handler cannot leave a task).
void leave_tasks(BendWorker* worker);
// The program has failed outside of others' tasks: returns when nobody runs a call that its open forks have left.
void leave_forks(BendWorker* worker);

// Before the program starts; false when memory is refused. Starts no thread.
[[nodiscard]] bool scheduler_open(BendRuntime* runtime);
// After the program's end: no task is open.
void scheduler_close(BendRuntime* runtime);
void scheduler_free(BendRuntime* runtime);

}  // namespace bendc::rt
