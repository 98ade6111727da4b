// BEND_WATCHDOG=seconds: a thread that looks whether the scheduler stands still and, if so, says what each worker does and ends the process
// with status 70. Off by default; tests set it, so that a lost wake-up is a report and not a hang.
//
// Standing still: worker 0 waits for a task that another worker has, and no worker has had a task to run for that long; or the program has
// ended that long ago and the workers have not. A worker that computes is never taken for one that hangs, however long it takes.
#pragma once
#include <pthread.h>
#include <stdint.h>

namespace bendc::rt {

struct Scheduler;

struct Watchdog {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t stopped;
  bool stopping;
  bool running;
};

[[nodiscard]] bool stands_still(const Scheduler* scheduler, uint64_t at, uint64_t nanoseconds);

// By the first worker, once it takes part. Without a thread to be had there is no watchdog.
void watchdog_start(Scheduler* scheduler, uint32_t seconds);
void watchdog_stop(Scheduler* scheduler);

}  // namespace bendc::rt
