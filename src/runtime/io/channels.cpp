#include "runtime/io/channels.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"
#include "runtime/io/loop.h"
#include "runtime/runtime.h"

namespace bendc::rt {

namespace {

// handle = generation << 25 | slot << 1 | 1
constexpr uint32_t kSlotBits = 24;

BendWord handle_of(uint32_t slot, uint64_t generation) { return generation << (kSlotBits + 1) | static_cast<BendWord>(slot) << 1 | 1; }
uint32_t slot_of(BendWord handle) { return static_cast<uint32_t>(handle >> 1) & (Channels::kMost - 1); }

void grow(BendWorker* worker, Channels* channels) {
  if (channels->count == Channels::kMost) {
    Message m;
    m.text("more than ").number(Channels::kMost).text(" channels at once");
    fail_plain(worker, m);
  }
  if (channels->count < channels->capacity) return;
  uint32_t capacity = channels->capacity ? channels->capacity * 2 : 16;
  Channel* items = static_cast<Channel*>(system_alloc(worker, capacity * sizeof(Channel)));
  if (channels->count) memcpy(items, channels->items, channels->count * sizeof(Channel));
  free(channels->items);
  channels->items = items;
  channels->capacity = capacity;
}

uint32_t new_slot(BendWorker* worker, Channels* channels) {
  if (channels->first_free) {
    uint32_t slot = channels->first_free - 1;
    channels->first_free = channels->items[slot].next_free;
    return slot;
  }
  grow(worker, channels);
  return channels->count++;
}

// Closed and drained: the slot serves another channel, and handles of this generation find nothing.
void end_channel(Channels* channels, Channel* channel) {
  free(channel->values);
  uint64_t generation = channel->generation + 1;
  *channel = {};
  channel->generation = generation;
  channel->next_free = channels->first_free;
  channels->first_free = static_cast<uint32_t>(channel - channels->items) + 1;
}

void put(BendWorker* worker, Channel* channel, BendWord value) {
  if (channel->count == channel->capacity) {
    uint64_t capacity = channel->capacity ? channel->capacity * 2 : 4;
    BendWord* values = static_cast<BendWord*>(system_alloc(worker, capacity * sizeof(BendWord)));
    for (uint64_t i = 0; i < channel->count; ++i) values[i] = channel->values[(channel->first + i) & (channel->capacity - 1)];
    free(channel->values);
    channel->values = values;
    channel->capacity = capacity;
    channel->first = 0;
  }
  channel->values[(channel->first + channel->count++) & (channel->capacity - 1)] = value;
}

BendWord take(Channel* channel) {
  BendWord value = channel->values[channel->first];
  channel->first = (channel->first + 1) & (channel->capacity - 1);
  --channel->count;
  return value;
}

struct MaybeAnswer {
  uint32_t tag;
  BendWord value;
};

void answer_some(void* answer, BendWord value) { *static_cast<MaybeAnswer*>(answer) = {1, value}; }
void answer_none(void* answer) { *static_cast<MaybeAnswer*>(answer) = {0, 0}; }
void answer_bool(void* answer, bool value) { *static_cast<uint32_t*>(answer) = value ? 1 : 0; }

Channels* channels_of(BendWorker* worker) { return &worker->runtime->loop->channels; }

}  // namespace

void queue_add(TaskQueue* queue, BendTask* task) {
  task->next = nullptr;
  if (queue->last) queue->last->next = task;
  else queue->first = task;
  queue->last = task;
}

BendTask* queue_take(TaskQueue* queue) {
  BendTask* task = queue->first;
  if (!task) return nullptr;
  queue->first = task->next;
  if (!queue->first) queue->last = nullptr;
  return task;
}

Channel* channel_of(Channels* channels, BendWord handle) {
  uint32_t slot = slot_of(handle);
  if (slot >= channels->count) return nullptr;
  Channel* channel = &channels->items[slot];
  return channel->open && handle_of(slot, channel->generation) == handle ? channel : nullptr;
}

uint64_t channel_number(BendWord handle) { return slot_of(handle) + 1u; }

void channels_close(BendWorker* worker, Channels* channels) {
  for (uint32_t i = 0; i < channels->count; ++i) {
    Channel* channel = &channels->items[i];
    while (channel->count) bend_drop_object(worker, take(channel));
  }
  channels_abandon(channels);
}

void channels_abandon(Channels* channels) {
  for (uint32_t i = 0; i < channels->count; ++i) free(channels->items[i].values);
  free(channels->items);
  *channels = {};
}

}  // namespace bendc::rt

using namespace bendc::rt;

int bend_eff_chan_new(BendWorker* worker, BendTask*, void* payload, void* answer) {
  struct Args {
    BendWord continuation;
    uint32_t room;
  };
  Channels* channels = channels_of(worker);
  uint32_t slot = new_slot(worker, channels);
  Channel* channel = &channels->items[slot];
  channel->room = static_cast<Args*>(payload)->room;
  channel->open = true;
  *static_cast<BendWord*>(answer) = handle_of(slot, channel->generation);
  return BEND_DONE;
}

int bend_eff_chan_send(BendWorker* worker, BendTask* task, void* payload, void* answer) {
  struct Args {
    BendWord continuation, channel, value;
  };
  Args* args = static_cast<Args*>(payload);
  Loop* loop = worker->runtime->loop;
  Channel* channel = channel_of(&loop->channels, args->channel);
  if (!channel || channel->closed) {
    bend_drop_object(worker, args->value);
    answer_bool(answer, false);
    return BEND_DONE;
  }
  if (BendTask* receiver = queue_take(&channel->receivers)) {
    answer_some(receiver->answer, args->value);
    loop_wake(loop, receiver);
  } else if (channel->count < channel->room) {
    put(worker, channel, args->value);
  } else {
    task->state = TaskState::Sending;
    task->channel = args->channel;
    task->value = args->value;
    queue_add(&channel->senders, task);
    return BEND_PARKED;
  }
  answer_bool(answer, true);
  return BEND_DONE;
}

int bend_eff_chan_recv(BendWorker* worker, BendTask* task, void* payload, void* answer) {
  struct Args {
    BendWord continuation, channel;
  };
  Args* args = static_cast<Args*>(payload);
  Loop* loop = worker->runtime->loop;
  Channel* channel = channel_of(&loop->channels, args->channel);
  if (!channel) {
    answer_none(answer);
    return BEND_DONE;
  }
  BendTask* sender = nullptr;
  if (channel->count > 0) {
    answer_some(answer, take(channel));
    sender = queue_take(&channel->senders);
    if (sender) put(worker, channel, sender->value);
  } else {
    sender = queue_take(&channel->senders);
    if (!sender) {   // a closed channel has ended by now, so this one is open
      task->state = TaskState::Receiving;
      task->channel = args->channel;
      queue_add(&channel->receivers, task);
      return BEND_PARKED;
    }
    answer_some(answer, sender->value);
  }
  if (sender) {
    answer_bool(sender->answer, true);
    loop_wake(loop, sender);
  }
  if (channel->closed && channel->count == 0) end_channel(&loop->channels, channel);
  return BEND_DONE;
}

int bend_eff_chan_close(BendWorker* worker, BendTask*, void* payload, void*) {
  struct Args {
    BendWord continuation, channel;
  };
  Loop* loop = worker->runtime->loop;
  Channel* channel = channel_of(&loop->channels, static_cast<Args*>(payload)->channel);
  if (!channel || channel->closed) return BEND_DONE;
  channel->closed = true;
  while (BendTask* receiver = queue_take(&channel->receivers)) {
    answer_none(receiver->answer);
    loop_wake(loop, receiver);
  }
  while (BendTask* sender = queue_take(&channel->senders)) {
    bend_drop_object(worker, sender->value);
    answer_bool(sender->answer, false);
    loop_wake(loop, sender);
  }
  if (channel->count == 0) end_channel(&loop->channels, channel);
  return BEND_DONE;
}
