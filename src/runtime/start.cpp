// One run: configuration, heap, a thread with a large stack for the program, its event loop or value, the final flush and heap report.
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/cpu/scheduler.h"
#include "runtime/error.h"
#include "runtime/gpu/gpu.h"
#include "runtime/io/loop.h"
#include "runtime/runtime.h"
#include "runtime/stack.h"

using namespace bendc::rt;

namespace {

constexpr int kExitUsage = 2;
constexpr int kExitInternal = 70;

int complain(const char* text, int status) {
  Message m;
  m.text("bend: ").text(text).text("\n");
  write_stderr(m.data(), m.size());
  return status;
}

// Zeroed pages, which cost nothing before a worker uses them; null when the system refuses.
BendWorker* map_workers(uint32_t count) {
  void* got = mmap(nullptr, count * sizeof(BendWorker), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return got == MAP_FAILED ? nullptr : static_cast<BendWorker*>(got);
}

struct ProgramRun {
  BendWorker* worker;
  int status;
  bool failed;      // ended by a run-time error; the heap is as it was left
};

// Generated code and the runtime hold nothing that would need unwinding.
void run_program(void* raw) {
  ProgramRun* run = static_cast<ProgramRun*>(raw);
  BendRuntime* runtime = run->worker->runtime;
  jmp_buf here;
  if (runtime->config.returns_errors) {
    if (_setjmp(here) != 0) {
      run->failed = true;
      return;
    }
    runtime->error_exit = &here;
  }
  const BendProgram* program = runtime->program;
  Output* out = &runtime->out;
  if (program->main_kind == BEND_MAIN_IO) {
    auto entry = reinterpret_cast<BendWord (*)(BendWorker*)>(program->entry);
    run->status = loop_run(run->worker, entry);
  } else {
    reinterpret_cast<void (*)(BendWorker*)>(program->entry)(run->worker);
    output_bytes(out, "\n", 1);
    run->status = 0;
  }
  output_flush(out);
  runtime->error_exit = nullptr;
}

int report_heap(BendRuntime* runtime, int status) {
  HeapReport report = heap_check(&runtime->heap, runtime->workers, runtime->worker_count);
  Message m;
  m.text("bend: heap: ").number(report.live_words).text(" live words in ").number(report.live_nodes).text(" nodes\n");
  write_stderr(m.data(), m.size());
  return report.corrupt ? 1 : status;
}

int run(BendRuntime* runtime) {
  Stack stack;
  if (!stack_map(&stack, runtime->config.stack_bytes)) return complain("the system refuses the memory for a stack", 1);
  ProgramRun program = {runtime->workers, 1, false};
  pthread_t thread;
  if (int error = stack_start(&stack, runtime->workers, run_program, &program, &thread)) {
    stack_unmap(&stack);
    Message m;
    m.text("cannot start the program's thread: ").text(strerror(error)).bytes("\0", 1);
    return complain(m.data(), 1);
  }
  pthread_join(thread, nullptr);
  stack_unmap(&stack);
  scheduler_close(runtime);
  return runtime->config.debug_heap && !program.failed ? report_heap(runtime, program.status) : program.status;
}

}  // namespace

int bend_start(const BendProgram* program, const BendOptions* options, int argc, char** argv) {
  if (program->abi_version != BEND_ABI_VERSION) return complain("internal error: the program was compiled for another runtime", kExitInternal);
  BendRuntime* runtime = static_cast<BendRuntime*>(calloc(1, sizeof(BendRuntime)));
  int status = 1;
  if (!runtime) {
    status = complain("the system refuses the memory to start", 1);
  } else if (!read_config(&runtime->config, options, argc, argv)) {
    status = kExitUsage;
  } else if (BendWorker* workers = map_workers(runtime->config.threads); !workers) {
    status = complain("the system refuses the memory to start", 1);
  } else {
    runtime->program = program;
    runtime->workers = workers;
    runtime->worker_count = 1;
    workers->runtime = runtime;
    output_open(&runtime->out, STDOUT_FILENO);
    heap_open(&runtime->heap, runtime->config.heap_bytes, runtime->config.debug_heap);
    // First, so that the device's start runs beside everything else.
    bool refused = false;
    runtime->gpu = gpu::gpu_open(runtime->config.gpu, program->gpu, &refused);
    if (refused) {
      status = kExitUsage;
    } else if (worker_heap_open(workers) && scheduler_open(runtime)) {
      // A closed pipe and a limit on file sizes are error codes of the write: effects answer with them, and standard output says what stopped it.
      struct sigaction ignore = {}, old_pipe, old_limit;
      ignore.sa_handler = SIG_IGN;
      sigaction(SIGPIPE, &ignore, &old_pipe);
      sigaction(SIGXFSZ, &ignore, &old_limit);
      FaultHandlers handlers;
      fault_handlers_install(&handlers);
      status = run(runtime);
      fault_handlers_restore(&handlers);
      sigaction(SIGPIPE, &old_pipe, nullptr);
      sigaction(SIGXFSZ, &old_limit, nullptr);
      loop_abandon(runtime->loop);
    } else {
      status = complain("the system refuses the memory to start", 1);
    }
    gpu::gpu_close(runtime->gpu);
    scheduler_free(runtime);
    for (uint32_t i = 0; i < runtime->worker_count; ++i) worker_heap_close(&workers[i]);
    heap_close(&runtime->heap);
    munmap(workers, runtime->config.threads * sizeof(BendWorker));
  }
  free(runtime);
  return status;
}
