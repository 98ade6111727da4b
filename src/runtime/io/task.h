// A computation of the event loop: what it does next or what it waits for. It steps until an effect parks it or it ends.
#pragma once
#include "runtime/abi.h"

namespace bendc::rt {

enum class TaskState : uint8_t {
  Start,       // word: the closure of IO.spawn, not applied yet
  Step,        // word: the next IO.OP
  Answered,    // word: the request object; its answer is ready
  Sending,     // word: the request object; waits in a channel with `value`
  Receiving,
  Sleeping,
  WaitingFd,
  WaitingJob,
};

// Goes on with an effect once its descriptor is ready or its deadline has passed (then `timed_out` is set).
using Retry = int (*)(BendWorker*, BendTask*, void* answer);

}  // namespace bendc::rt

struct BendTask {
  BendTask* next;                    // in the run queue or a channel's queue
  BendTask* previous_live;           // among all that have not ended
  BendTask* next_live;
  uint64_t id;                       // main is 1
  bendc::rt::TaskState state;
  bool timed_out;
  BendWord word;
  BendWord value;
  uint64_t channel;                  // Sending, Receiving: the handle, for the deadlock report
  uint64_t timer;                    // 1 + its place in the timers' heap, 0: none
  bendc::rt::Retry retry;
  void* pending;                     // what the effect keeps while it waits
  uint64_t deadline;                 // of an effect with a time limit
  void* answer;
  uint64_t answer_capacity;
};
