// Effects on the standard streams, the command line, the environment, the clock and the run itself.
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "runtime/io/answers.h"
#include "runtime/io/loop.h"
#include "runtime/runtime.h"
#include "runtime/strings.h"

using namespace bendc::rt;

namespace {

struct TextArgs {
  BendWord continuation, text;
};

void print(BendWorker* worker, BendWord text) {
  Output* out = &worker->runtime->out;
  u32_list_take(worker, text, [&](uint32_t c) { output_char(out, c); });
}

}  // namespace

int bend_eff_print(BendWorker* worker, BendTask*, void* payload, void*) {
  print(worker, static_cast<TextArgs*>(payload)->text);
  output_char(&worker->runtime->out, '\n');
  return BEND_DONE;
}

int bend_eff_write(BendWorker* worker, BendTask*, void* payload, void*) {
  print(worker, static_cast<TextArgs*>(payload)->text);
  return BEND_DONE;
}

int bend_eff_print_err(BendWorker* worker, BendTask*, void* payload, void*) {
  output_flush(&worker->runtime->out);
  Bytes text = string_encode(worker, static_cast<TextArgs*>(payload)->text);
  bytes_add(worker, &text, "\n", 1);
  write_stderr(text.data, text.size);
  bytes_free(&text);
  return BEND_DONE;
}

int bend_eff_args(BendWorker* worker, BendTask*, void*, void* answer) {
  const Config& config = worker->runtime->config;
  WordListBuilder list(worker);
  list.add(string_from(worker, config.program_name));
  for (int i = 1; i < config.argc; ++i) list.add(string_from(worker, config.argv[i]));
  *static_cast<BendWord*>(answer) = list.list();
  return BEND_DONE;
}

int bend_eff_get_env(BendWorker* worker, BendTask*, void* payload, void* answer) {
  Bytes name = string_encode(worker, static_cast<TextArgs*>(payload)->text);
  const char* value = has_zero(name) ? nullptr : getenv(name.data);
  bytes_free(&name);
  ResultWord* result = static_cast<ResultWord*>(answer);
  if (value) answer_done(result, string_from(worker, value));
  else answer_fail(worker, result, ENOENT);
  return BEND_DONE;
}

int bend_eff_random_u32(BendWorker* worker, BendTask*, void*, void* answer) {
  uint32_t value;
  ssize_t got;
  do got = getrandom(&value, sizeof value, 0);
  while (got < 0 && errno == EINTR);
  ResultU32* result = static_cast<ResultU32*>(answer);
  if (got == static_cast<ssize_t>(sizeof value)) answer_done(result, value);
  else answer_fail(worker, result, got < 0 ? errno : EIO);
  return BEND_DONE;
}

int bend_eff_now(BendWorker*, BendTask*, void*, void* answer) {
  *static_cast<uint64_t*>(answer) = monotonic_ns() / 1000000u;
  return BEND_DONE;
}

int bend_eff_sleep(BendWorker* worker, BendTask* task, void* payload, void*) {
  struct Args {
    BendWord continuation;
    uint32_t ms;
  };
  return loop_sleep(worker, task, monotonic_ns() + static_cast<Args*>(payload)->ms * 1000000ull);
}

int bend_eff_thread_count(BendWorker* worker, BendTask*, void*, void* answer) {
  *static_cast<uint32_t*>(answer) = worker->runtime->config.threads;
  return BEND_DONE;
}

int bend_eff_spawn(BendWorker* worker, BendTask*, void* payload, void*) {
  struct Args {
    BendWord continuation, act;
  };
  loop_spawn(worker, static_cast<Args*>(payload)->act);
  return BEND_DONE;
}
