#include "runtime/io/helpers.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/error.h"
#include "runtime/runtime.h"

namespace bendc::rt {

namespace {

constexpr size_t kHelperStack = 256u << 10;

void* helper_main(void* raw) {
  Helpers* helpers = static_cast<Helpers*>(raw);
  pthread_mutex_lock(&helpers->lock);
  for (;;) {
    while (!helpers->waiting && !helpers->stop) {
      ++helpers->idle;
      pthread_cond_wait(&helpers->wake, &helpers->lock);
      --helpers->idle;
    }
    Job* job = helpers->waiting;
    if (!job) break;
    helpers->waiting = job->next;
    if (!helpers->waiting) helpers->waiting_end = &helpers->waiting;
    --helpers->queued;
    pthread_mutex_unlock(&helpers->lock);
    job->run(job);
    pthread_mutex_lock(&helpers->lock);
    job->next = nullptr;
    *helpers->done_end = job;
    helpers->done_end = &job->next;
    uint64_t one = 1;
    while (write(helpers->event_fd, &one, sizeof one) < 0) {}   // only an interruption: the counter cannot be full
  }
  pthread_mutex_unlock(&helpers->lock);
  return nullptr;
}

// Signals are the program thread's business; a helper inherits a full mask.
int start_helper(Helpers* helpers) {
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kHelperStack);
  int error = pthread_create(&helpers->ids[helpers->threads], &attributes, helper_main, helpers);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  if (error == 0) ++helpers->threads;
  return error;
}

}  // namespace

Helpers* helpers_open(BendWorker* worker) {
  Helpers* helpers = static_cast<Helpers*>(system_alloc(worker, sizeof(Helpers)));
  helpers->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (helpers->event_fd < 0) {
    free(helpers);
    return nullptr;
  }
  pthread_mutex_init(&helpers->lock, nullptr);
  pthread_cond_init(&helpers->wake, nullptr);
  helpers->waiting_end = &helpers->waiting;
  helpers->done_end = &helpers->done;
  return helpers;
}

void helpers_close(Helpers* helpers) {
  pthread_mutex_lock(&helpers->lock);
  helpers->stop = true;
  pthread_cond_broadcast(&helpers->wake);
  pthread_mutex_unlock(&helpers->lock);
  for (uint32_t i = 0; i < helpers->threads; ++i) pthread_join(helpers->ids[i], nullptr);
  close(helpers->event_fd);
  pthread_cond_destroy(&helpers->wake);
  pthread_mutex_destroy(&helpers->lock);
  free(helpers);
}

void helpers_submit(BendWorker* worker, Helpers* helpers, Job* job) {
  pthread_mutex_lock(&helpers->lock);
  job->next = nullptr;
  *helpers->waiting_end = job;
  helpers->waiting_end = &job->next;
  ++helpers->queued;
  if (helpers->queued > helpers->idle && helpers->threads < Helpers::kMost) {
    int error = start_helper(helpers);
    if (error && helpers->threads == 0) {
      pthread_mutex_unlock(&helpers->lock);
      Message m;
      m.text("cannot start a helper thread: ").text(strerror(error));
      fail_plain(worker, m);
    }
  }
  pthread_cond_signal(&helpers->wake);
  pthread_mutex_unlock(&helpers->lock);
}

Job* helpers_collect(Helpers* helpers) {
  uint64_t count;
  if (read(helpers->event_fd, &count, sizeof count) < 0) return nullptr;
  pthread_mutex_lock(&helpers->lock);
  Job* done = helpers->done;
  helpers->done = nullptr;
  helpers->done_end = &helpers->done;
  pthread_mutex_unlock(&helpers->lock);
  return done;
}

}  // namespace bendc::rt
