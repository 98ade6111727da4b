// What a worker does without a task of its own to run: help, ask, take, park (scheduler.h).
#pragma once
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include "runtime/abi.h"
#include "runtime/cpu/scheduler.h"

namespace bendc::rt {

// What a failed task says.
struct Failure {
  size_t size;
  char text[];
};

// A task of another worker that this one runs.
struct TaskRun {
  TaskRun* outer;
  char* tail;          // the worker's when the task began
  jmp_buf back;
  Failure* failure;
};

// Runs other workers' tasks until `task` is done, or, without one, until the program ends.
void work_until(BendWorker* worker, BendForkTask* task);
// The worker's oldest task to one who asks. False when it has none to give.
bool give(BendWorker* worker);
// The owner of a task that it gave: it has come to the join before the one who asked has looked, and runs the task itself. A thread without a processor
// would keep it waiting for milliseconds.
[[nodiscard]] bool take_gift_back(BendWorker* worker, BendForkTask* task);
// May a worker give a task? Who asks before gets none, and costs it a call and a cache line.
[[nodiscard]] bool may_give(const WorkerTasks& tasks, uint64_t at);

}  // namespace bendc::rt
