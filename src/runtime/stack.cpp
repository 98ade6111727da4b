#include "runtime/stack.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/cpu/scheduler.h"
#include "runtime/error.h"
#include "runtime/gpu/gpu.h"
#include "runtime/runtime.h"

namespace bendc::rt {

namespace {

// Frames of generated code are far smaller than this, so no frame can step over the guard.
constexpr uint64_t kGuard = 1ull << 20;
constexpr uint64_t kSmallest = 1ull << 16;
constexpr uint64_t kAlternate = 1ull << 19;      // a fault may copy from the device, through the CUDA driver
constexpr uint64_t kPage = 4096;
constexpr uint64_t kSmallPages = 4ull << 20;   // what shallow programs use; below it huge pages make deep recursion cheaper
constexpr int kExitInternal = 70;

// A signal handler gets no argument of ours; what it needs to know about its thread stands here.
thread_local struct {
  BendWorker* worker;
  Stack* stack;
} t_running;

void on_fault(int, siginfo_t* info, void*) {
  const char* at = static_cast<const char*>(info->si_addr);
  Stack* stack = t_running.stack;
  const int error = errno;
  Message m;
  if (stack && at >= stack->base - kGuard && at < stack->base + kPage) {
    m.text("the computation nests deeper than the ").number(stack->bytes).text(" bytes of its stack (BEND_STACK sets it)");
    leave_tasks(t_running.worker);
    fail(t_running.worker, kErrorStack, nullptr, m);
  }
  if (t_running.worker) {
    switch (gpu::gpu_touch(t_running.worker->runtime->gpu, at, &m)) {
      case gpu::Touch::Done: errno = error; return;
      case gpu::Touch::NotOurs: break;
      case gpu::Touch::Failed: {
        Message text;
        text.text("the GPU failed when the program read an array: ").bytes(m.data(), m.size());
        leave_tasks(t_running.worker);
        fail_plain(t_running.worker, text);
      }
    }
  }
  if (t_running.worker) output_flush(&t_running.worker->runtime->out);
  m.text("bend: internal error: memory fault at ").hex(reinterpret_cast<uint64_t>(at)).text("\n");
  write_stderr(m.data(), m.size());
  _exit(kExitInternal);
}

struct Start {
  Stack* stack;
  BendWorker* worker;
  void (*body)(void*);
  void* argument;
};

void* run_on_stack(void* raw) {
  Start start = *static_cast<Start*>(raw);
  free(raw);
  t_running = {start.worker, start.stack};
  stack_t alternate = {};
  alternate.ss_sp = start.stack->alternate;
  alternate.ss_size = kAlternate;
  sigaltstack(&alternate, nullptr);
  start.body(start.argument);
  alternate.ss_flags = SS_DISABLE;
  sigaltstack(&alternate, nullptr);
  t_running = {nullptr, nullptr};
  return nullptr;
}

}  // namespace

bool stack_map(Stack* stack, uint64_t wanted) {
  *stack = {};
  for (uint64_t bytes = wanted & ~(kPage - 1); bytes >= kSmallest; bytes = (bytes / 2) & ~(kPage - 1)) {
    void* got = mmap(nullptr, bytes + kGuard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (got == MAP_FAILED) continue;
    char* base = static_cast<char*>(got) + kGuard;
    if (mprotect(base, bytes, PROT_READ | PROT_WRITE) == 0) {
      stack->base = base;
      stack->bytes = bytes;
      if (bytes > 2 * kSmallPages) madvise(base, bytes - kSmallPages, MADV_HUGEPAGE);
      break;
    }
    munmap(got, bytes + kGuard);
  }
  if (!stack->base) return false;
  stack->alternate = static_cast<char*>(malloc(kAlternate));
  if (stack->alternate) return true;
  stack_unmap(stack);
  return false;
}

void stack_unmap(Stack* stack) {
  munmap(stack->base - kGuard, stack->bytes + kGuard);
  free(stack->alternate);
  *stack = {};
}

int stack_start(Stack* stack, BendWorker* worker, void (*body)(void*), void* argument, pthread_t* thread) {
  Start* start = static_cast<Start*>(malloc(sizeof(Start)));
  if (!start) return ENOMEM;
  *start = {stack, worker, body, argument};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  int error = pthread_attr_setstack(&attributes, stack->base, stack->bytes);
  if (error == 0) error = pthread_create(thread, &attributes, run_on_stack, start);
  pthread_attr_destroy(&attributes);
  if (error) free(start);
  return error;
}

void fault_handlers_install(FaultHandlers* saved) {
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &saved->old_segv);
  sigaction(SIGBUS, &action, &saved->old_bus);
}

void fault_handlers_restore(const FaultHandlers* saved) {
  sigaction(SIGSEGV, &saved->old_segv, nullptr);
  sigaction(SIGBUS, &saved->old_bus, nullptr);
}

}  // namespace bendc::rt
