#include "runtime/config.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/machine.h"
#include "runtime/message.h"
#include "runtime/output.h"

namespace bendc::rt {

namespace {

constexpr uint64_t kGiB = 1ull << 30;
#if defined(__SANITIZE_THREAD__)
constexpr uint64_t kMaxStack = kGiB;   // the sanitizer has little room for mappings, and four bytes of its own for each
#else
constexpr uint64_t kMaxStack = 256 * kGiB;
#endif
constexpr uint64_t kMinStack = 1ull << 16;
constexpr uint32_t kMaxThreads = 128;
constexpr uint64_t kMaxWatchdog = 24 * 60 * 60;

bool bad_value(const char* name, const char* value, const char* expected) {
  Message m;
  m.text("bend: ").text(name).text(": expected ").text(expected).text(", got `");
  size_t n = strlen(value);
  m.bytes(value, n < 100 ? n : 100).text("`\n");
  write_stderr(m.data(), m.size());
  return false;
}

}  // namespace

bool parse_size(const char* text, uint64_t* bytes) {
  size_t size = strlen(text);
  uint32_t shift = 0;
  if (size > 2 && text[size - 1] == 'B') {
    char unit = text[size - 2];
    shift = unit == 'K' ? 10 : unit == 'M' ? 20 : unit == 'G' ? 30 : unit == 'T' ? 40 : 0;
    if (shift == 0) return false;
    size -= 2;
  }
  uint64_t count;
  if (!text::read_decimal(text, size, UINT64_MAX >> shift, &count) || count == 0) return false;
  *bytes = count << shift;
  return true;
}

bool read_config(Config* config, const BendOptions* options, int argc, char** argv) {
  config->argc = argc;
  config->argv = argv;
  config->program_name = options && options->file ? options->file : argc > 0 ? argv[0] : "";

  config->returns_errors = options && options->returns_errors != 0;

  const char* threads = getenv("BEND_THREADS");
  uint64_t count = options ? options->threads : 0;
  if (count == 0 && threads && !(text::read_decimal(threads, strlen(threads), UINT32_MAX, &count) && count >= 1))
    return bad_value("BEND_THREADS", threads, "a thread count of 1 or more");
  if (count == 0) count = usable_cpus();
  config->threads = count < kMaxThreads ? static_cast<uint32_t>(count) : kMaxThreads;

  const char* seed = getenv("BEND_SCHED_SEED");
  config->sched_seed = 0;
  if (seed && !text::read_decimal(seed, strlen(seed), UINT64_MAX, &config->sched_seed)) return bad_value("BEND_SCHED_SEED", seed, "a number");

  const char* watchdog = getenv("BEND_WATCHDOG");
  uint64_t seconds = 0;
  if (watchdog && !text::read_decimal(watchdog, strlen(watchdog), kMaxWatchdog, &seconds)) return bad_value("BEND_WATCHDOG", watchdog, "seconds, at most a day's");
  config->watchdog_seconds = static_cast<uint32_t>(seconds);

  const char* debug = getenv("BEND_DEBUG_HEAP");
  if (debug && strcmp(debug, "0") != 0 && strcmp(debug, "1") != 0) return bad_value("BEND_DEBUG_HEAP", debug, "0 or 1");
  config->debug_heap = debug && debug[0] == '1';

  if (!gpu::read_gpu_config(&config->gpu, options)) return false;

  MemoryLimits limits = memory_limits();
  const char* stack = getenv("BEND_STACK");
  if (stack) {
    if (!parse_size(stack, &config->stack_bytes) || config->stack_bytes < kMinStack)
      return bad_value("BEND_STACK", stack, "a size of 64KB or more, like 4GB");
  } else {
    // Stack pages are never given back while the program runs, so a recursion without end must stop before memory does, with room for
    // the heap beside it.
    config->stack_bytes = limits.available / 2;
    if (limits.addresses != UINT64_MAX && config->stack_bytes > limits.addresses / 4) config->stack_bytes = limits.addresses / 4;
    if (config->stack_bytes > kMaxStack) config->stack_bytes = kMaxStack;
    if (config->stack_bytes < kMinStack) config->stack_bytes = kMinStack;
  }
  const char* heap = getenv("BEND_HEAP");
  if (heap) {
    if (!parse_size(heap, &config->heap_bytes)) return bad_value("BEND_HEAP", heap, "a size, like 4GB");
  } else {
    config->heap_bytes = limits.total;
  }
  return true;
}

}  // namespace bendc::rt
