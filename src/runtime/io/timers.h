// Deadlines of parked computations: a binary heap, earliest first, ties in the order of parking. A task knows its place in it, so that
// one whose descriptor became ready first leaves the heap.
#pragma once
#include "runtime/io/task.h"

namespace bendc::rt {

struct Timer {
  uint64_t deadline;    // nanoseconds of CLOCK_MONOTONIC
  uint64_t order;
  BendTask* task;
};

struct Timers {
  Timer* items;
  uint64_t count, capacity, next_order;
};

void timers_add(BendWorker* worker, Timers* timers, uint64_t deadline, BendTask* task);
void timers_remove(Timers* timers, BendTask* task);   // nothing when it has none
void timers_close(Timers* timers);
[[nodiscard]] uint64_t monotonic_ns();

}  // namespace bendc::rt
