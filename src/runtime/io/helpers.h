// Helper threads for host calls that may block (files, processes): grown on demand to 64. A job runs away from the loop and touches nothing
// of the program's heap; the loop then calls its `finish`, which writes the answer and frees the job.
#pragma once
#include <pthread.h>

#include "runtime/io/task.h"

namespace bendc::rt {

struct Job {
  Job* next;
  BendTask* task;
  void (*run)(Job*);
  void (*finish)(BendWorker*, Job*, void* answer);
};

struct Helpers {
  static constexpr uint32_t kMost = 64;
  pthread_mutex_t lock;
  pthread_cond_t wake;
  Job* waiting;            // first in, first out
  Job** waiting_end;
  Job* done;
  Job** done_end;
  uint32_t threads, idle, queued;
  bool stop;
  int event_fd;            // readable when `done` is not empty
  pthread_t ids[kMost];
};

// Null after the system refused an event descriptor (errno says why).
[[nodiscard]] Helpers* helpers_open(BendWorker* worker);
// No job may be under way.
void helpers_close(Helpers* helpers);
void helpers_submit(BendWorker* worker, Helpers* helpers, Job* job);
// All jobs that have ended, in that order.
[[nodiscard]] Job* helpers_collect(Helpers* helpers);

}  // namespace bendc::rt
