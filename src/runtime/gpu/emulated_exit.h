// How an emulated device thread ends early. On a device a thread that has posted an error executes `exit`, from any depth of calls; its
// emulated twin jumps back to here. In: emulated_round and what it takes; out: it has returned, by itself or by an error.
#pragma once
#include "runtime/abi.h"
#include "runtime/gpu/device_abi.h"

namespace bendc::rt::gpu {

void bend_emulated_task(void (*task)(void*, const void*, uint32_t, void*), BendDeviceControl* control, const void* record, uint32_t parallel, void* pending);
void bend_emulated_tree(void (*tree)(void*, const void*, uint32_t, uint32_t, void*), BendDeviceControl* control, const void* group, uint32_t number, uint32_t warps, void* pending);
void bend_emulated_thread(void (*round)(void*, uint32_t, uint32_t), BendDeviceControl* control, uint32_t thread, uint32_t threads);

}  // namespace bendc::rt::gpu
