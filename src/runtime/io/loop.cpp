#include "runtime/io/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "runtime/error.h"
#include "runtime/runtime.h"
#include "runtime/strings.h"

namespace bendc::rt {

namespace {

constexpr uint64_t kTurnsBetweenLooks = 64;
constexpr uint64_t kLookEvery = 10'000'000;   // ns between looks at descriptors while computations are ready
constexpr uint64_t kMillisecond = 1'000'000;
constexpr int kEventBatch = 64;
constexpr int kRunning = -1;                  // of step(): no exit status yet

enum OpCtor : uint32_t { kEmit = 0, kHalt = 1, kRequest = 2 };
constexpr uint64_t kOpNodeBytes = 16;

BendTask* new_task(BendWorker* worker, Loop* loop, TaskState state, BendWord word) {
  BendTask* task = static_cast<BendTask*>(system_alloc(worker, sizeof(BendTask)));
  task->id = ++loop->next_id;
  task->state = state;
  task->word = word;
  task->next_live = loop->live;
  if (loop->live) loop->live->previous_live = task;
  loop->live = task;
  ++loop->live_count;
  queue_add(&loop->ready, task);
  return task;
}

void end_task(Loop* loop, BendTask* task) {
  if (task->next_live) task->next_live->previous_live = task->previous_live;
  if (task->previous_live) task->previous_live->next_live = task->next_live;
  else loop->live = task->next_live;
  --loop->live_count;
  free(task->answer);
  free(task);
}

const BendObjectInfo& object_info(BendWorker* worker, BendWord object) {
  uint32_t id = u32_at(reinterpret_cast<char*>(object) + 4);
  const BendProgram* program = worker->runtime->program;
  if (id >= program->object_count || program->objects[id].kind != BEND_OBJECT_REQUEST) {
    Message m;
    m.text("internal error: an alien request (object ").number(id).text(")");
    fail_plain(worker, m);
  }
  return program->objects[id];
}

void reserve_answer(BendWorker* worker, BendTask* task, uint64_t bytes) {
  if (bytes <= task->answer_capacity) return;
  free(task->answer);
  task->answer = system_alloc(worker, bytes);
  task->answer_capacity = bytes;
}

int halt(BendWorker* worker, char* node) {
  uint32_t code = u32_at(node + 4);
  BendWord message = word_at(node + 8);
  output_flush(&worker->runtime->out);
  Bytes text;
  bytes_add(worker, &text, nullptr, 0);
  u32_list_visit(message, [&](uint32_t c) {
    char encoded[4];
    bytes_add(worker, &text, encoded, encode_char(c, encoded));
  });
  bytes_add(worker, &text, "\n", 1);
  write_stderr(text.data, text.size);
  bytes_free(&text);
  return static_cast<int>(code & 0xFF);
}

// Runs the task until it parks or ends; an exit status when it halts the process.
int step(BendWorker* worker, Loop* loop, BendTask* task) {
  const BendProgram* program = worker->runtime->program;
  if (task->state == TaskState::Start) {
    task->word = program->apply_unit(worker, task->word);
  } else if (task->state == TaskState::Answered) {
    task->word = object_info(worker, task->word).resume(worker, task->word, task->answer);
  }
  for (;;) {
    task->state = TaskState::Step;
    BendWord op = task->word;
    char* node = reinterpret_cast<char*>(op & ~kTagMask);
    switch (static_cast<uint32_t>(op & kTagMask)) {
      case kEmit:
        bend_drop_ref(worker, op, program->op_info);
        end_task(loop, task);
        return kRunning;
      case kHalt: {
        int status = halt(worker, node);
        bend_drop_ref(worker, op, program->op_info);
        return status;
      }
      case kRequest: {
        BendWord object = word_at(node + 8);
        heap_free(worker, node, kOpNodeBytes);
        const BendObjectInfo& info = object_info(worker, object);
        task->word = object;
        task->timed_out = false;
        reserve_answer(worker, task, info.answer_size);
        if (info.handler(worker, task, reinterpret_cast<char*>(object) + 8, task->answer) == BEND_PARKED) return kRunning;
        task->word = info.resume(worker, object, task->answer);
        break;
      }
      default: {
        Message m;
        m.text("internal error: not an IO operation: ").hex(op);
        fail_plain(worker, m);
      }
    }
  }
}

// A parked effect goes on: its descriptor is ready or its deadline has passed.
void retry(BendWorker* worker, Loop* loop, BendTask* task, bool timed_out) {
  task->timed_out = timed_out;
  if (task->retry(worker, task, task->answer) == BEND_DONE) loop_wake(loop, task);
}

void fire_timers(BendWorker* worker, Loop* loop) {
  if (loop->timers.count == 0) return;
  uint64_t now = monotonic_ns();
  while (loop->timers.count && loop->timers.items[0].deadline <= now) {
    BendTask* task = loop->timers.items[0].task;
    timers_remove(&loop->timers, task);
    if (task->state == TaskState::Sleeping) {
      loop_wake(loop, task);
    } else {
      --loop->fd_waits;
      // A hang-up is reported even to a disarmed descriptor: once, then never. Fails only when the descriptor is gone.
      epoll_event none = {};
      none.events = EPOLLONESHOT;
      epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, static_cast<int>(task->value), &none);
      retry(worker, loop, task, true);
    }
  }
}

void finish_jobs(BendWorker* worker, Loop* loop) {
  if (loop->jobs == 0) return;
  for (Job* job = helpers_collect(loop->helpers); job;) {
    Job* next = job->next;
    BendTask* task = job->task;
    job->finish(worker, job, task->answer);
    --loop->jobs;
    loop_wake(loop, task);
    job = next;
  }
}

[[noreturn]] void fail_poller(BendWorker* worker, const char* what) {
  Message m;
  m.text("the poller failed: ").text(what).text(": ").text(strerror(errno));
  fail_plain(worker, m);
}

// Looks at descriptors and ended jobs; waits up to `timeout` ms (-1: until something happens).
void look(BendWorker* worker, Loop* loop, int timeout) {
  loop->last_look = monotonic_ns();
  epoll_event events[kEventBatch];
  int count = epoll_wait(loop->epoll_fd, events, kEventBatch, timeout);
  if (count < 0 && errno != EINTR) fail_poller(worker, "epoll_wait");
  for (int i = 0; i < count; ++i) {
    BendTask* task = static_cast<BendTask*>(events[i].data.ptr);
    if (!task) continue;   // the helpers' event: collected by finish_jobs
    --loop->fd_waits;
    timers_remove(&loop->timers, task);
    retry(worker, loop, task, false);
  }
}

void wait(BendWorker* worker, Loop* loop) {
  uint64_t deadline = loop->timers.count ? loop->timers.items[0].deadline : 0;
  if (loop->fd_waits == 0 && loop->jobs == 0) {
    timespec until = {static_cast<time_t>(deadline / 1000000000u), static_cast<long>(deadline % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {}
  } else {
    int timeout = -1;
    if (deadline) {
      uint64_t now = monotonic_ns();
      uint64_t left = deadline > now ? (deadline - now + kMillisecond - 1) / kMillisecond : 0;
      timeout = left < 0x7FFFFFFF ? static_cast<int>(left) : 0x7FFFFFFF;
    }
    look(worker, loop, timeout);
    finish_jobs(worker, loop);
  }
  fire_timers(worker, loop);
}

[[noreturn]] void report_deadlock(BendWorker* worker, Loop* loop) {
  constexpr uint32_t kMostLines = 20;
  Message m;
  m.text("deadlock: every computation waits on a channel");
  BendTask* oldest = loop->live;
  while (oldest->next_live) oldest = oldest->next_live;
  uint32_t lines = 0;
  for (BendTask* task = oldest; task && lines < kMostLines; task = task->previous_live, ++lines) {
    m.text("\n  computation ").number(task->id);
    if (task->id == 1) m.text(" (main)");
    m.text(task->state == TaskState::Sending ? " waits to send to channel " : " waits to receive from channel ").number(channel_number(task->channel));
    const Channel* channel = channel_of(&loop->channels, task->channel);
    if (!channel) continue;
    m.text(" (").number(channel->count).text(" of ").number(channel->room).text(" buffered)");
  }
  if (loop->live_count > lines) m.text("\n  and ").number(loop->live_count - lines).text(" more");
  fail_plain(worker, m);
}

void open_epoll(BendWorker* worker, Loop* loop) {
  if (loop->epoll_fd >= 0) return;
  loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  if (loop->epoll_fd < 0) fail_poller(worker, "epoll_create1");
}

}  // namespace

int loop_run(BendWorker* worker, BendWord (*entry)(BendWorker*)) {
  Loop* loop = static_cast<Loop*>(system_alloc(worker, sizeof(Loop)));
  loop->epoll_fd = -1;
  worker->runtime->loop = loop;
  new_task(worker, loop, TaskState::Step, entry(worker));
  uint64_t turns = 0;
  int status = kRunning;
  while (status == kRunning) {
    BendTask* task = queue_take(&loop->ready);
    if (task) {
      status = step(worker, loop, task);
      if (++turns % kTurnsBetweenLooks != 0) continue;
      finish_jobs(worker, loop);
      fire_timers(worker, loop);
      if (loop->fd_waits && monotonic_ns() - loop->last_look >= kLookEvery) look(worker, loop, 0);
      continue;
    }
    if (loop->live_count == 0) break;
    if (loop->timers.count == 0 && loop->fd_waits == 0 && loop->jobs == 0) report_deadlock(worker, loop);
    output_flush(&worker->runtime->out);
    wait(worker, loop);
  }
  output_flush(&worker->runtime->out);
  // A halted program may have helpers inside blocking calls: they and the loop end with the process, or loop_abandon gives them back.
  if (status != kRunning) return status;
  if (loop->helpers) helpers_close(loop->helpers);
  if (loop->epoll_fd >= 0) close(loop->epoll_fd);
  timers_close(&loop->timers);
  channels_close(worker, &loop->channels);
  worker->runtime->loop = nullptr;
  free(loop);
  return 0;
}

void loop_abandon(Loop* loop) {
  if (!loop || loop->jobs > 0) return;
  if (loop->helpers) helpers_close(loop->helpers);
  if (loop->epoll_fd >= 0) close(loop->epoll_fd);
  timers_close(&loop->timers);
  channels_abandon(&loop->channels);
  while (loop->live) end_task(loop, loop->live);
  free(loop);
}

void loop_spawn(BendWorker* worker, BendWord closure) { new_task(worker, worker->runtime->loop, TaskState::Start, closure); }

void loop_wake(Loop* loop, BendTask* task) {
  task->state = TaskState::Answered;
  queue_add(&loop->ready, task);
}

int loop_yield(BendWorker* worker, BendTask* task) {
  loop_wake(worker->runtime->loop, task);
  return BEND_PARKED;
}

int loop_sleep(BendWorker* worker, BendTask* task, uint64_t deadline) {
  task->state = TaskState::Sleeping;
  timers_add(worker, &worker->runtime->loop->timers, deadline, task);
  return BEND_PARKED;
}

int loop_submit(BendWorker* worker, BendTask* task, Job* job) {
  Loop* loop = worker->runtime->loop;
  if (!loop->helpers) {
    open_epoll(worker, loop);
    loop->helpers = helpers_open(worker);
    if (!loop->helpers) fail_poller(worker, "eventfd");
    epoll_event event = {};
    event.events = EPOLLIN;
    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->helpers->event_fd, &event) != 0) fail_poller(worker, "epoll_ctl");
  }
  task->state = TaskState::WaitingJob;
  job->task = task;
  ++loop->jobs;
  helpers_submit(worker, loop->helpers, job);
  return BEND_PARKED;
}

int loop_wait_fd(BendWorker* worker, BendTask* task, int fd, uint32_t events, uint64_t deadline, Retry go_on) {
  Loop* loop = worker->runtime->loop;
  open_epoll(worker, loop);
  task->state = TaskState::WaitingFd;
  task->retry = go_on;
  task->value = static_cast<BendWord>(fd);
  epoll_event event = {};
  event.events = events | EPOLLONESHOT;
  event.data.ptr = task;
  // A descriptor stays registered between waits, disarmed; the kernel forgets it when it is closed.
  if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, fd, &event) != 0 &&
      (errno != ENOENT || epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0))
    fail_poller(worker, "epoll_ctl");
  ++loop->fd_waits;
  if (deadline) timers_add(worker, &loop->timers, deadline, task);
  return BEND_PARKED;
}

}  // namespace bendc::rt
