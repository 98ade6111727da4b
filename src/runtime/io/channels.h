// Channels: bounded first-in-first-out queues of boxed values between computations. A handle is an immediate word (slot, generation), so a
// handle kept past the end of its channel is recognised and acts closed.
#pragma once
#include "runtime/io/task.h"

namespace bendc::rt {

struct TaskQueue {
  BendTask* first;
  BendTask* last;
};
void queue_add(TaskQueue* queue, BendTask* task);
[[nodiscard]] BendTask* queue_take(TaskQueue* queue);   // null when empty

struct Channel {
  uint64_t generation;
  uint32_t room;
  bool open, closed;       // open: the slot is in use; closed: no more sends, what is buffered drains
  BendWord* values;        // ring
  uint64_t first, count, capacity;
  TaskQueue senders, receivers;
  uint32_t next_free;
};

struct Channels {
  static constexpr uint32_t kMost = 1u << 24;
  Channel* items;
  uint32_t count, capacity;
  uint32_t first_free;     // 1 + slot, 0: none
};

[[nodiscard]] Channel* channel_of(Channels* channels, BendWord handle);   // null: ended
void channels_close(BendWorker* worker, Channels* channels);
// The same, but the values in them stay.
void channels_abandon(Channels* channels);
[[nodiscard]] uint64_t channel_number(BendWord handle);                   // as reports name it

}  // namespace bendc::rt
