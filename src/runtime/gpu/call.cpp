// A `!` call of generated code: on the device when there is one, else the caller makes the ordinary call.
#include "runtime/runtime.h"

uint32_t bend_gpu_call(BendWorker*, const BendGpuEntry*, void*, void*) { return 0; }
