// A `!` call of generated code: arguments to the device, rounds, result back. Everything that can be refused is refused before anything has
// changed, and the caller makes the ordinary call; after that, a failure of the device ends the program.
#include <stdlib.h>
#include <string.h>

#include "runtime/cpu/scheduler.h"
#include "runtime/error.h"
#include "runtime/gpu/gpu.h"
#include "runtime/gpu/transfer.h"
#include "runtime/memory/drop.h"
#include "runtime/runtime.h"

using namespace bendc::rt;
using namespace bendc::rt::gpu;

namespace {

void name_call(Message* m, const BendGpuEntry* entry) {
  m->text("`").text(entry->name).text("!`");
  if (entry->site) m->text(" (").text(entry->site).text(")");
}

// This call runs on the CPU: an error under `require`, else one line for the def, so that nobody takes a time for the GPU's.
uint32_t refuse(BendWorker* worker, Gpu* gpu, const BendGpuEntry* entry, const char* reason, size_t size) {
  Message m;
  if (gpu->config.use == Use::Require) {
    name_call(&m, entry);
    m.text(" cannot run on a GPU: ").bytes(reason, size);
    pthread_mutex_unlock(&gpu->lock);
    fail_plain(worker, m);
  }
  ++gpu->counters.refused;
  bool* noted = &gpu->noted[entry - gpu->program->entries];
  if (!*noted) {
    m.text("bend: note: ");
    name_call(&m, entry);
    m.text(" runs on the CPU: ").bytes(reason, size).text("\n");
    write_stderr(m.data(), m.size());
  }
  *noted = true;
  return 0;
}

// The device cannot go on and the arguments are gone.
[[noreturn]] void fail_device(BendWorker* worker, const BendGpuEntry* entry, const Message& why) {
  Message m;
  m.text("the GPU failed in ");
  name_call(&m, entry);
  m.text(": ").bytes(why.data(), why.size());
  fail_plain(worker, m);
}

[[noreturn]] void fail_posted(BendWorker* worker, Gpu* gpu, const BendGpuEntry* entry, const BendDeviceControl& control) {
  uint32_t number = static_cast<uint32_t>(control.error);
  uint32_t site = static_cast<uint32_t>(control.error >> 32);
  Message detail;
  if (number == kErrorMemory) {
    detail.text("the device's heap of ").number(gpu->space.heap_bytes).text(" bytes is used up in ");
    name_call(&detail, entry);
    detail.text("; BEND_GPU_MEMORY sets the size of the device's memory, now ").number(gpu->space.bytes).text(" bytes");
  }
  fail(worker, number, site < gpu->program->site_count ? gpu->program->sites[site] : nullptr, detail);
}

void wait_for_device(Gpu* gpu) {
  if (!gpu->starting) return;
  uint64_t from = now_ns();
  pthread_join(gpu->starter, nullptr);
  gpu->starting = false;
  gpu->waited_ns = now_ns() - from;
}

// Below a fork of the host a `!` is an ordinary call: the other lanes may hold handles to the arrays that would move.
bool below_fork(const BendWorker* worker) {
  const Scheduler* scheduler = worker->runtime->scheduler;
  return worker->index != 0 || (scheduler && worker->task_tail != scheduler->tasks[0].base);
}

bool record_event(const Gpu* gpu, void* event, Message* why) {
  if (!gpu->config.stats || gpu->emulated) return true;
  const int code = gpu->device.driver.event_record(event, gpu->device.stream);
  if (code != kSuccess) describe(&gpu->device.driver, "cuEventRecord", code, why);
  return code == kSuccess;
}

// The times of the call that ends.
bool count_times(Gpu* gpu, EntryTimes* times, Message* why) {
  if (!gpu->config.stats || gpu->emulated) return true;
  const Driver& d = gpu->device.driver;
  float whole = 0, rounds = 0;
  if (!record_event(gpu, gpu->device.end, why) || !space_wait(&gpu->space, why)) return false;
  int code = d.event_elapsed(&whole, gpu->device.begin, gpu->device.end);
  if (code == kSuccess) code = d.event_elapsed(&rounds, gpu->device.rounds_begin, gpu->device.rounds_end);
  if (code != kSuccess) {
    describe(&d, "cuEventElapsedTime", code, why);
    return false;
  }
  const uint64_t rounds_ns = static_cast<uint64_t>(rounds * 1e6f), device_ns = static_cast<uint64_t>(whole * 1e6f);
  if (times->calls == 0 || rounds_ns < times->least_rounds_ns) times->least_rounds_ns = rounds_ns;
  times->calls += 1;
  times->rounds_ns += rounds_ns;
  times->device_ns += device_ns;
  gpu->counters.device_ns += device_ns;
  return true;
}

uint32_t call(BendWorker* worker, Gpu* gpu, const BendGpuEntry* entry, char* payload, char* result) {
  const uint64_t asked = now_ns();
  if (entry->refusal) return refuse(worker, gpu, entry, entry->refusal, strlen(entry->refusal));
  wait_for_device(gpu);
  if (gpu->refused) {
    refuse(worker, gpu, entry, gpu->why.data(), gpu->why.size());
    memset(gpu->noted, true, gpu->program->entry_count);   // the reason is the same for all
    return 0;
  }
  if (entry->result.size > kResultBytes || BEND_TASK_HEADER + entry->args.size > gpu->space.task_stride) {
    const char* reason = "its arguments or its result are too large by value";
    return refuse(worker, gpu, entry, reason, strlen(reason));
  }
  Message why;
  Space* space = &gpu->space;
  const Driver& driver = gpu->device.driver;
  uint64_t begin = now_ns();
  if (!gpu->emulated) {
    // The calling thread is another than the one that made the context.
    if (int code = driver.context_use(gpu->device.context)) {
      describe(&driver, "cuCtxSetCurrent", code, &why);
      return refuse(worker, gpu, entry, why.data(), why.size());
    }
    if (!record_event(gpu, gpu->device.begin, &why)) return refuse(worker, gpu, entry, why.data(), why.size());
  }
  char* record = static_cast<char*>(system_alloc(worker, space->task_stride + entry->result.size));
  BendTaskRecord* head = reinterpret_cast<BendTaskRecord*>(record);
  head->segment = entry->segment;
  Transfer transfer;
  transfer_open(&transfer, worker, space, &gpu->residency, &why);
  // A process may go on after the program's error (BendOptions.returns_errors).
  auto leave = [&] {
    transfer_close(&transfer);
    free(record);
    pthread_mutex_unlock(&gpu->lock);
  };
  auto fail_here = [&]() __attribute__((noreturn)) {
    leave();
    fail_device(worker, entry, why);
  };
  switch (send_arguments(&transfer, entry, payload, record + BEND_TASK_HEADER)) {
    case Sent::Done: break;
    case Sent::TooLarge: {
      transfer_close(&transfer);
      free(record);
      Message m;
      m.text("its arguments do not fit into the device's heap of ").number(space->heap_bytes).text(" bytes (BEND_GPU_MEMORY)");
      return refuse(worker, gpu, entry, m.data(), m.size());
    }
    case Sent::Failed: fail_here();
  }
  // The copies read the host's blocks until the stream has passed them.
  if (transfer.straight && !space_wait(space, &why)) fail_here();
  drop_value(worker, &entry->owned, payload);

  BendDeviceControl control;
  Run run = {&gpu->config, gpu->program, space, gpu->launches.way ? &gpu->launches : nullptr, &gpu->counters, record, space->image.used, space->places.floor(), static_cast<uint32_t>(entry - gpu->program->entries), &gpu->rounds[entry - gpu->program->entries], &gpu->widths[entry - gpu->program->entries], &gpu->chunks[entry - gpu->program->entries], &control,
             record + space->task_stride};
  if (!record_event(gpu, gpu->device.rounds_begin, &why) || !run_rounds(&run, &why) || !record_event(gpu, gpu->device.rounds_end, &why)) fail_here();
  if (control.error) {
    leave();
    fail_posted(worker, gpu, entry, control);
  }
  if (!control.finished) {
    why.text("internal error: the device machine stopped without a result");
    fail_here();
  }
  memcpy(result, run.result, entry->result.size);
  space->reached = control.heap_cursor - space->heap < run.top ? control.heap_cursor - space->heap : run.top;
  if (!audit_ended(space, &why) || !image_settle(space, &why)) fail_here();
  if (!receive_result(&transfer, entry, result)) fail_here();
  transfer_close(&transfer);
  free(record);
  image_reset(space);
  if (!count_times(gpu, &gpu->times[entry - gpu->program->entries], &why)) {
    pthread_mutex_unlock(&gpu->lock);
    fail_device(worker, entry, why);
  }
  const uint64_t end = now_ns();
  if (gpu->counters.calls == 0) gpu->first_ns = end - asked;
  ++gpu->counters.calls;
  gpu->counters.wall_ns += end - begin;
  return 1;
}

}  // namespace

uint32_t bend_gpu_call(BendWorker* worker, const BendGpuEntry* entry, void* payload, void* result) {
  Gpu* gpu = worker->runtime->gpu;
  if (!gpu || below_fork(worker) || pthread_mutex_trylock(&gpu->lock) != 0) return 0;
  uint32_t done = call(worker, gpu, entry, static_cast<char*>(payload), static_cast<char*>(result));
  pthread_mutex_unlock(&gpu->lock);
  return done;
}
