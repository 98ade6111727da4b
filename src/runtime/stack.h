// Stacks for threads that run generated code: reserved large, backed by memory only as they grow, with a guard region below. Overrunning one
// is run-time error 7 with the limit as a number; the fault is taken on a small stack of its own.
#pragma once
#include <pthread.h>
#include <signal.h>
#include <stdint.h>

#include "runtime/abi.h"

namespace bendc::rt {

struct Stack {
  char* base;            // lowest usable byte; the guard lies below it
  uint64_t bytes;
  char* alternate;       // for the signal handler
};

// Reserves up to `wanted` bytes, half as much each time the system refuses. False when even the smallest is refused.
[[nodiscard]] bool stack_map(Stack* stack, uint64_t wanted);
void stack_unmap(Stack* stack);

// Starts a thread on the stack: it calls body(argument). The errno of pthread_create, or 0.
[[nodiscard]] int stack_start(Stack* stack, BendWorker* worker, void (*body)(void*), void* argument, pthread_t* thread);

struct FaultHandlers {
  struct sigaction old_segv, old_bus;
};
void fault_handlers_install(FaultHandlers* saved);
void fault_handlers_restore(const FaultHandlers* saved);

}  // namespace bendc::rt
