// The event loop: runs the computations of an IO main in turn on one thread, in the order of a first-in-first-out queue, until all have
// ended, one halts the process, or all wait on channels. See docs/abi.md for how effects take part.
#pragma once
#include "runtime/io/channels.h"
#include "runtime/io/helpers.h"
#include "runtime/io/timers.h"

namespace bendc::rt {

struct Loop {
  TaskQueue ready;
  BendTask* live;          // all that have not ended, newest first
  uint64_t live_count;
  uint64_t next_id;
  Timers timers;
  Channels channels;
  Helpers* helpers;        // opened at the first job
  uint64_t jobs;           // under way
  int epoll_fd;            // -1 until the first wait on a descriptor
  uint64_t fd_waits;
  uint64_t last_look;      // when descriptors were last looked at
};

// The exit status of the program.
[[nodiscard]] int loop_run(BendWorker* worker, BendWord (*entry)(BendWorker*));

// What an IO main that halted or failed has left, null otherwise: all but the program's memory is given back, unless helpers are inside jobs.
void loop_abandon(Loop* loop);

void loop_spawn(BendWorker* worker, BendWord closure);
// The parked task's answer is written: it goes on at the end of the queue.
void loop_wake(Loop* loop, BendTask* task);
// Ways to park; each returns BEND_PARKED.
int loop_sleep(BendWorker* worker, BendTask* task, uint64_t deadline);
int loop_submit(BendWorker* worker, BendTask* task, Job* job);
// Waits for `events` (EPOLLIN, EPOLLOUT) on fd, until the deadline when it is not 0; then calls retry.
int loop_wait_fd(BendWorker* worker, BendTask* task, int fd, uint32_t events, uint64_t deadline, Retry retry);
// The answer is written, but others go first: for effects that could keep one computation busy for ever.
int loop_yield(BendWorker* worker, BendTask* task);

}  // namespace bendc::rt
