// Process.run on a helper thread: spawn without a shell, feed the input, collect both outputs up to a common limit, stop at the deadline.
// It ends with the child; what a descendant still writes into the pipes after that is not waited for.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/io/answers.h"
#include "runtime/io/loop.h"
#include "runtime/runtime.h"

extern "C" char** environ;

using namespace bendc::rt;

namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr int kTick = 10;          // ms between looks at the child where the kernel has no pidfd (before 5.3)
constexpr int kFirstFree = 3;      // pipes stay clear of the standard descriptors even when those are closed

struct Collected {
  char* data;
  size_t size, capacity;
};

struct ProcessJob : Job {
  char** arguments;                // program first, null last
  uint32_t argument_count;
  Bytes input;
  uint64_t max_output;
  uint32_t timeout_ms;
  Collected out, err;
  int error;
  uint32_t code;
};

struct Pipe {
  int ends[2] = {-1, -1};          // read, write

  bool open() {
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    for (int& end : ends) {
      if (end >= kFirstFree) continue;
      int moved = fcntl(end, F_DUPFD_CLOEXEC, kFirstFree);
      if (moved < 0) return false;
      ::close(end);
      end = moved;
    }
    return true;
  }
  void close(int which) {
    if (ends[which] >= 0) ::close(ends[which]);
    ends[which] = -1;
  }
  void keep(int which) {           // this side stays here and must not block
    close(1 - which);
    fcntl(ends[which], F_SETFL, O_NONBLOCK);
  }
};

// Reads all that is there. 0, or the errno; the end of the stream closes the pipe.
int drain(Pipe* pipe, ProcessJob* job, Collected* into) {
  char buffer[1 << 14];
  for (;;) {
    ssize_t n = read(pipe->ends[0], buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN ? 0 : errno;
    if (n == 0) {
      pipe->close(0);
      return 0;
    }
    size_t size = static_cast<size_t>(n);
    if (job->out.size + job->err.size + size > job->max_output) return EFBIG;
    if (into->size + size > into->capacity) {
      size_t capacity = into->capacity ? into->capacity * 2 : sizeof buffer;
      while (capacity < into->size + size) capacity *= 2;
      char* data = static_cast<char*>(realloc(into->data, capacity));
      if (!data) return ENOMEM;
      into->data = data;
      into->capacity = capacity;
    }
    memcpy(into->data + into->size, buffer, size);
    into->size += size;
  }
}

void feed(Pipe* pipe, const Bytes& input, size_t* fed) {
  while (*fed < input.size) {
    ssize_t n = write(pipe->ends[1], input.data + *fed, input.size - *fed);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0) break;              // the child does not read on
    *fed += static_cast<size_t>(n);
  }
  pipe->close(1);
}

int spawn_child(ProcessJob* job, const Pipe& in, const Pipe& out, const Pipe& err, pid_t* child) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  if (int error = posix_spawn_file_actions_init(&actions)) return error;
  posix_spawn_file_actions_adddup2(&actions, in.ends[0], 0);
  posix_spawn_file_actions_adddup2(&actions, out.ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, err.ends[1], 2);
  posix_spawnattr_init(&attributes);
  sigset_t set;
  sigemptyset(&set);
  posix_spawnattr_setsigmask(&attributes, &set);
  sigaddset(&set, SIGPIPE);
  sigaddset(&set, SIGXFSZ);
  posix_spawnattr_setsigdefault(&attributes, &set);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  int error = posix_spawnp(child, job->arguments[0], &actions, &attributes, job->arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

// Serves the pipes until the child has ended. 0, or the errno for which the child is to be killed.
int serve(ProcessJob* job, Pipe* in, Pipe* out, Pipe* err, pid_t child, int pidfd, int* status, bool* ended) {
  uint64_t deadline = monotonic_ns() + job->timeout_ms * kMillisecond;
  size_t fed = 0;
  for (;;) {
    feed(in, job->input, &fed);
    pid_t got = waitpid(child, status, WNOHANG);
    if (got < 0 && errno != EINTR) return errno;
    *ended = got == child;
    if (out->ends[0] >= 0)
      if (int error = drain(out, job, &job->out)) return error;
    if (err->ends[0] >= 0)
      if (int error = drain(err, job, &job->err)) return error;
    if (*ended) return 0;
    uint64_t now = monotonic_ns();
    if (now >= deadline) return ETIMEDOUT;
    uint64_t left = (deadline - now + kMillisecond - 1) / kMillisecond;
    int wait = left < 0x7FFFFFFF ? static_cast<int>(left) : 0x7FFFFFFF;
    if (pidfd < 0 && wait > kTick) wait = kTick;
    pollfd fds[4] = {{in->ends[1], POLLOUT, 0}, {out->ends[0], POLLIN, 0}, {err->ends[0], POLLIN, 0}, {pidfd, POLLIN, 0}};   // negative ones are skipped
    if (poll(fds, 4, wait) < 0 && errno != EINTR) return errno;
  }
}

void run_process(Job* raw) {
  ProcessJob* job = static_cast<ProcessJob*>(raw);
  Pipe in, out, err;
  pid_t child = -1;
  if (!in.open() || !out.open() || !err.open()) job->error = errno;
  else job->error = spawn_child(job, in, out, err, &child);
  if (job->error == 0) {
    in.keep(1);
    out.keep(0);
    err.keep(0);
    int pidfd = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
    int status = 0;
    bool ended = false;
    job->error = serve(job, &in, &out, &err, child, pidfd, &status, &ended);
    if (!ended) {
      kill(child, SIGKILL);
      while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    }
    if (pidfd >= 0) close(pidfd);
    job->code = WIFSIGNALED(status) ? 128u + static_cast<uint32_t>(WTERMSIG(status)) : static_cast<uint32_t>(WEXITSTATUS(status));
  }
  for (Pipe* pipe : {&in, &out, &err})
    for (int which : {0, 1}) pipe->close(which);
}

void end_job(ProcessJob* job) {
  for (uint32_t i = 0; i < job->argument_count; ++i) free(job->arguments[i]);
  free(job->arguments);
  bytes_free(&job->input);
  free(job->out.data);
  free(job->err.data);
  free(job);
}

void finish_process(BendWorker* worker, Job* raw, void* answer) {
  ProcessJob* job = static_cast<ProcessJob*>(raw);
  ResultU32Texts* result = static_cast<ResultU32Texts*>(answer);
  if (job->error) {
    answer_fail(worker, result, job->error);
  } else {
    BendWord out = string_decode(worker, job->out.data, job->out.size);
    *result = {1, job->code, out, string_decode(worker, job->err.data, job->err.size)};
  }
  end_job(job);
}

// Takes over the text as an argument; false when it holds a zero.
bool add_argument(BendWorker* worker, ProcessJob* job, BendWord text) {
  Bytes bytes = string_encode(worker, text);
  // Room for one more and the null, doubled at powers of two.
  uint32_t count = job->argument_count;
  if ((count & (count - 1)) == 0) {
    char** wider = static_cast<char**>(system_alloc(worker, (2 * count + 2) * sizeof(char*)));
    if (count) memcpy(wider, job->arguments, count * sizeof(char*));
    free(job->arguments);
    job->arguments = wider;
  }
  job->arguments[job->argument_count++] = bytes.data;
  job->arguments[job->argument_count] = nullptr;
  return !has_zero(bytes);
}

}  // namespace

int bend_eff_process_run(BendWorker* worker, BendTask* task, void* payload, void* answer) {
  struct Args {
    BendWord continuation, program, arguments, input;
    uint32_t max_output, timeout_ms;
  };
  Args* args = static_cast<Args*>(payload);
  ProcessJob* job = static_cast<ProcessJob*>(system_alloc(worker, sizeof(ProcessJob)));
  job->run = run_process;
  job->finish = finish_process;
  bool ok = add_argument(worker, job, args->program);
  for (BendWord list = args->arguments; WordNode* node = list_node<WordNode>(list);) {
    // The list has one owner or is shared from some node on; a shared rest is read and then given up.
    if (count_read(&node->count) != 1) {
      for (BendWord rest = list; WordNode* shared = list_node<WordNode>(rest); rest = shared->tail) {
        if (U32Node* text = list_node<U32Node>(shared->head)) count_up(&text->count, worker->atomic);
        ok &= add_argument(worker, job, shared->head);
      }
      text_list_drop(worker, list);
      break;
    }
    ok &= add_argument(worker, job, node->head);
    list = node->tail;
    heap_free(worker, node, kWordNodeBytes);
  }
  job->input = string_encode(worker, args->input);
  job->max_output = args->max_output;
  job->timeout_ms = args->timeout_ms;
  if (!ok || job->max_output == 0 || job->timeout_ms == 0) {
    end_job(job);
    answer_fail(worker, static_cast<ResultU32Texts*>(answer), EINVAL);
    return BEND_DONE;
  }
  return loop_submit(worker, task, job);
}
