#include "runtime/io/timers.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/runtime.h"

namespace bendc::rt {

namespace {

bool before(const Timer& a, const Timer& b) { return a.deadline != b.deadline ? a.deadline < b.deadline : a.order < b.order; }

void place(Timers* timers, uint64_t at, const Timer& timer) {
  timers->items[at] = timer;
  timer.task->timer = at + 1;
}

void sift_up(Timers* timers, uint64_t at, const Timer& timer) {
  while (at > 0 && before(timer, timers->items[(at - 1) / 2])) {
    place(timers, at, timers->items[(at - 1) / 2]);
    at = (at - 1) / 2;
  }
  place(timers, at, timer);
}

void sift_down(Timers* timers, uint64_t at, const Timer& timer) {
  for (;;) {
    uint64_t child = 2 * at + 1;
    if (child >= timers->count) break;
    if (child + 1 < timers->count && before(timers->items[child + 1], timers->items[child])) ++child;
    if (!before(timers->items[child], timer)) break;
    place(timers, at, timers->items[child]);
    at = child;
  }
  place(timers, at, timer);
}

}  // namespace

void timers_add(BendWorker* worker, Timers* timers, uint64_t deadline, BendTask* task) {
  if (timers->count == timers->capacity) {
    uint64_t capacity = timers->capacity ? timers->capacity * 2 : 16;
    Timer* items = static_cast<Timer*>(system_alloc(worker, capacity * sizeof(Timer)));
    if (timers->count) memcpy(items, timers->items, timers->count * sizeof(Timer));
    free(timers->items);
    timers->items = items;
    timers->capacity = capacity;
  }
  sift_up(timers, timers->count++, {deadline, timers->next_order++, task});
}

void timers_remove(Timers* timers, BendTask* task) {
  if (task->timer == 0) return;
  uint64_t at = task->timer - 1;
  task->timer = 0;
  Timer last = timers->items[--timers->count];
  if (at == timers->count) return;
  if (at > 0 && before(last, timers->items[(at - 1) / 2])) sift_up(timers, at, last);
  else sift_down(timers, at, last);
}

void timers_close(Timers* timers) {
  free(timers->items);
  *timers = {};
}

uint64_t monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace bendc::rt
