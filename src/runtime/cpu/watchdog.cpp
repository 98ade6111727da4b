#include "runtime/cpu/watchdog.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "runtime/cpu/clock.h"
#include "runtime/cpu/scheduler.h"
#include "runtime/cpu/tasks.h"
#include "runtime/message.h"
#include "runtime/output.h"
#include "runtime/runtime.h"

namespace bendc::rt {

namespace {

constexpr uint32_t kLooks = 8;         // within the time that counts as standing still
constexpr uint32_t kLooksInARow = 4;   // a machine that was asleep has workers that seem idle for long; they go on between two looks
constexpr int kExitInternal = 70;

void report(Scheduler* s, uint32_t seconds) {
  const uint64_t at = now();
  Message head;
  head.text("bend: internal error: the workers have stood still for ").number(seconds).text(" seconds (BEND_WATCHDOG)\n");
  write_stderr(head.data(), head.size());
  const uint32_t started = s->started.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < started; ++i) {
    WorkerTasks& own = s->tasks[i];
    const uint64_t since = own.idle_since.load(std::memory_order_relaxed);
    const BendForkTask* awaited = own.awaited.load(std::memory_order_relaxed);
    Message m;
    m.text("bend: worker ").number(i);
    if (since == 0) m.text(" runs");
    else m.text(" is idle for ").number((at - since) / 1'000'000).text(" ms");
    if (awaited) m.text(", waits for the task at ").hex(reinterpret_cast<uint64_t>(awaited)).text(" of worker ").number(awaited->note).text(" in state ").number(awaited->state);
    if (own.parked.load(std::memory_order_relaxed)) m.text(", parked");
    if (own.gift.load(std::memory_order_relaxed)) m.text(", has a gift");
    m.text(", head ").hex(own.head.load(std::memory_order_relaxed)).text(", tail ").hex(reinterpret_cast<uint64_t>(s->runtime->workers[i].task_tail));
    m.text(", tasks run ").number(own.counts.run).text("\n");
    write_stderr(m.data(), m.size());
  }
}

void* watch(void* raw) {
  Scheduler* s = static_cast<Scheduler*>(raw);
  Watchdog& own = s->watchdog;
  const uint32_t seconds = s->runtime->config.watchdog_seconds;
  const uint64_t limit = seconds * 1'000'000'000ull;
  uint32_t still = 0;
  pthread_mutex_lock(&own.lock);
  while (!own.stopping) {
    timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    const uint64_t next = static_cast<uint64_t>(until.tv_nsec) + limit / kLooks;
    until.tv_sec += static_cast<time_t>(next / 1'000'000'000u);
    until.tv_nsec = static_cast<long>(next % 1'000'000'000u);
    pthread_cond_timedwait(&own.stopped, &own.lock, &until);
    still = stands_still(s, now(), limit) ? still + 1 : 0;
    if (own.stopping || still < kLooksInARow) continue;
    // Worker 0, which writes the output, waits.
    output_flush(&s->runtime->out);
    report(s, seconds);
    _exit(kExitInternal);
  }
  pthread_mutex_unlock(&own.lock);
  return nullptr;
}

}  // namespace

bool stands_still(const Scheduler* s, uint64_t at, uint64_t nanoseconds) {
  auto long_ago = [&](uint64_t since) { return since != 0 && at > since && at - since >= nanoseconds; };
  if (s->stopping.load(std::memory_order_acquire) != 0) return long_ago(s->stopping_since.load(std::memory_order_relaxed));
  const uint32_t started = s->started.load(std::memory_order_acquire);
  if (started == 0 || !s->tasks[0].awaited.load(std::memory_order_acquire)) return false;
  for (uint32_t i = 0; i < started; ++i)
    if (!long_ago(s->tasks[i].idle_since.load(std::memory_order_relaxed))) return false;
  return true;
}

void watchdog_start(Scheduler* s, uint32_t seconds) {
  Watchdog& own = s->watchdog;
  if (seconds == 0 || own.running) return;
  pthread_mutex_init(&own.lock, nullptr);
  pthread_cond_init(&own.stopped, nullptr);
  // The program's signals are for its own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  own.running = pthread_create(&own.thread, nullptr, watch, s) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void watchdog_stop(Scheduler* s) {
  Watchdog& own = s->watchdog;
  if (!own.running) return;
  pthread_mutex_lock(&own.lock);
  own.stopping = true;
  pthread_cond_signal(&own.stopped);
  pthread_mutex_unlock(&own.lock);
  pthread_join(own.thread, nullptr);
  own.running = false;
}

}  // namespace bendc::rt
