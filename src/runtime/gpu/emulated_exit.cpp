#include "runtime/gpu/emulated_exit.h"

#include <setjmp.h>

#include "runtime/runtime.h"

namespace bendc::rt::gpu {

// Generated code holds nothing that would need unwinding.
void bend_emulated_thread(void (*round)(void*, uint32_t, uint32_t), BendDeviceControl* control, uint32_t thread, uint32_t threads) {
  jmp_buf here;
  control->emulated_exit = reinterpret_cast<uint64_t>(&here);
  if (setjmp(here) == 0) round(control, thread, threads);
  control->emulated_exit = 0;
}

// Tasks of emulated grids nest, so what waits outside is kept.
void bend_emulated_task(void (*task)(void*, const void*, uint32_t, void*), BendDeviceControl* control, const void* record, uint32_t parallel, void* pending) {
  jmp_buf here;
  const uint64_t outer = control->emulated_exit;
  control->emulated_exit = reinterpret_cast<uint64_t>(&here);
  if (setjmp(here) == 0) task(control, record, parallel, pending);
  control->emulated_exit = outer;
}

void bend_emulated_tree(void (*tree)(void*, const void*, uint32_t, uint32_t, void*), BendDeviceControl* control, const void* group, uint32_t number, uint32_t warps, void* pending) {
  jmp_buf here;
  const uint64_t outer = control->emulated_exit;
  control->emulated_exit = reinterpret_cast<uint64_t>(&here);
  if (setjmp(here) == 0) tree(control, group, number, warps, pending);
  control->emulated_exit = outer;
}

}  // namespace bendc::rt::gpu

void bend_emulated_exit(void* control) {
  longjmp(*reinterpret_cast<jmp_buf*>(static_cast<BendDeviceControl*>(control)->emulated_exit), 1);
}
