#include "runtime/gpu/gpu.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/output.h"

namespace bendc::rt::gpu {

namespace {

void complain(const char* text) {
  Message m;
  m.text("bend: ").text(text).text("\n");
  write_stderr(m.data(), m.size());
}

void open_launches(Gpu* gpu, Device* device) {
  Message why;
  const uint64_t begin = now_ns();
  const bool opened = launches_open(&gpu->launches, gpu->config, gpu->program, device, &why);
  gpu->link_ns = now_ns() - begin;
  if (opened) return;
  Message m;
  m.text("bend: note: no launches from the device: ").bytes(why.data(), why.size()).text("; forks go to the next round (host)\n");
  write_stderr(m.data(), m.size());
  launches_close(&gpu->launches);
  gpu->config.fork = Fork::Host;
}

bool has_launches(const BendGpuProgram* program, bool emulated) {
  if (emulated) return program->emulated_task != nullptr;
  for (uint32_t i = 0; i < program->code_count; ++i)
    if (program->codes[i].kind == BEND_GPU_LAUNCH_PTX) return true;
  return false;
}

void* start_device(void* raw) {
  Gpu* gpu = static_cast<Gpu*>(raw);
  uint64_t at = now_ns();
  const uint64_t begin = at;
  auto lap = [&](int step) {
    uint64_t now = now_ns();
    gpu->start_ns[step] = now - at;
    at = now;
    return !__atomic_load_n(&gpu->stop, __ATOMIC_ACQUIRE);
  };
  bool ready = device_probe(&gpu->device, gpu->config, &gpu->why) && lap(0) && device_open(&gpu->device, &gpu->why) && lap(1) &&
               device_load(&gpu->device, gpu->program, &gpu->why) && lap(2) && space_open(&gpu->space, &gpu->device, gpu->program, gpu->config.memory, 0, &gpu->why) && lap(3);
  if (ready) residency_open(&gpu->residency, &gpu->space);
  gpu->start_ns[4] = now_ns() - begin;
  gpu->space.audit.on = gpu->config.audit;
  // Without the device runtime forks go to rounds; that is said, and no error.
  if (ready && launched_from_device(gpu->config.fork)) open_launches(gpu, &gpu->device);
  gpu->ready = ready;
  gpu->refused = !ready;
  return nullptr;
}

// A line for each `!` target that ran: what its kernels took, and what the copies around them.
void print_times(const Gpu* gpu) {
  for (uint32_t i = 0; i < gpu->program->entry_count; ++i) {
    const EntryTimes& t = gpu->times[i];
    if (t.calls == 0) continue;
    Message m;
    m.text("bend: gpu: `").text(gpu->program->entries[i].name).text("!`: ").number(t.calls).text(" calls, kernels ").number(t.rounds_ns / 1000).text(" us, least ").number(t.least_rounds_ns / 1000);
    m.text(" us, copies ").number((t.device_ns - t.rounds_ns) / 1000).text(" us\n");
    write_stderr(m.data(), m.size());
  }
}

void print_counters(Gpu* gpu) {
  const Counters& k = gpu->counters;
  Message m;
  m.text("bend: gpu: ");
  if (gpu->emulated) m.text("emulated");
  else if (gpu->ready) m.text(gpu->device.name).text(", code for ").number(gpu->device.arch);
  else m.text("none (").bytes(gpu->why.data(), gpu->why.size()).text(")");
  m.text("; ").number(k.calls).text(" calls, ").number(k.refused).text(" on the CPU, ").number(k.rounds).text(" rounds, ").number(k.tasks).text(" tasks, widest ").number(k.widest);
  if (k.groups > 0) m.text(", ").number(k.groups).text(" trees of ").number(k.warps).text(" warps");
  m.text(", ").number(k.launches).text(" launches, ").number(k.looks).text(" looks, in ").number(gpu->space.moved_in).text(" bytes, out ").number(gpu->space.moved_out);
  m.text(" bytes, device ").number(k.device_ns / 1000).text(" us, wall ").number(k.wall_ns / 1000).text(" us");
  const Image& image = gpu->space.image;
  m.text("\nbend: gpu: pages: ").number(image.pages_in).text(" in, ").number(image.pages_out).text(" out, ").number(image.pages_kept).text(" kept");
  const PageAudit& audit = gpu->space.audit;
  if (audit.on) m.text("; written: ").number(audit.by_host).text(" by the host, ").number(audit.by_device).text(" by the device; first read: ").number(audit.first_read);
  const Residency& y = gpu->residency;
  if (y.linked + y.adopted > 0) {
    m.text("\nbend: gpu: arrays: ").number(y.linked).text(" linked, ").number(y.adopted).text(" made there, ").number(y.granules_in).text(" granules in, ").number(y.granules_out);
    m.text(" out, ").number(y.faults).text(" faults, ").number(y.evicted).text(" evicted");
  }
  if (gpu->launches.way) {
    m.text("\nbend: gpu: ").number(k.grids).text(" grids launched from the device, ").number(k.launched_trees).text(" trees in them, ").number(k.refused_forks).text(" forks refused");
    if (!gpu->emulated) m.text("; kernel: ").number(gpu->launches.registers).text(" registers, ").number(gpu->launches.local_bytes).text(" local bytes, linked in ").number(gpu->link_ns / 1000).text(" us");
  }
  if (gpu->ready && !gpu->emulated) {
    m.text("\nbend: gpu: start: driver ").number(gpu->start_ns[0] / 1000).text(" us, context ").number(gpu->start_ns[1] / 1000).text(" us, module ").number(gpu->start_ns[2] / 1000);
    m.text(" us, memory ").number(gpu->start_ns[3] / 1000).text(" us, waited for ").number(gpu->waited_ns / 1000).text(" us, first call ").number(gpu->first_ns / 1000).text(" us with that; kernel: ").number(gpu->device.registers);
    m.text(" registers, ").number(gpu->device.local_bytes).text(" local bytes, ").number(gpu->device.blocks).text(" blocks");
    if (gpu->device.flat) m.text("; trees: ").number(gpu->device.flat_registers).text(" registers, ").number(gpu->device.flat_blocks).text(" blocks");
    m.text("; memory ").number(gpu->space.bytes).text(" bytes");
  }
  m.text("\n");
  write_stderr(m.data(), m.size());
  if (!gpu->emulated) print_times(gpu);
}

}  // namespace

Touch gpu_touch(Gpu* gpu, const void* at, Message* why) {
  // Blocks are linked by calls, after the starter's end.
  return gpu && gpu->counters.calls > 0 ? residency_touch(&gpu->residency, at, why) : Touch::NotOurs;
}

uint64_t now_ns() {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

Gpu* gpu_open(const GpuConfig& config, const BendGpuProgram* program, bool* failed) {
  *failed = false;
  if (program && program->entry_count > 0 && config.fork == Fork::Flat && config.use != Use::Off && program->group_stride == 0) {
    const char* text = "bend: note: --gpu-fork=flat: no fork tree of this program is perfect (`bendc explain` says why); forks go to the next round (host)\n";
    write_stderr(text, strlen(text));
  }
  if (!program || program->entry_count == 0 || config.use == Use::Off) return nullptr;
  *failed = true;
  const bool emulated = config.use == Use::Emulate;
  if (emulated && !program->emulated_round) {
    complain("gpu emulate: this executable holds no emulator; `bendc run` does, and `bendc build --emulator` puts one in");
    return nullptr;
  }
  if (launched_from_device(config.fork) && program->code_count + (emulated ? 1 : 0) > 0 && !has_launches(program, emulated)) {
    complain("gpu fork: this executable holds no launches from the device; `bendc build --gpu-fork=all` puts them in, and `bendc run` makes them when asked");
    return nullptr;
  }
  void* memory = calloc(1, sizeof(Gpu));
  bool* noted = static_cast<bool*>(calloc(program->entry_count, 1));
  uint32_t* rounds = static_cast<uint32_t*>(calloc(program->entry_count, 4));
  uint32_t* widths = static_cast<uint32_t*>(calloc(program->entry_count, 4));
  uint32_t* chunks = static_cast<uint32_t*>(calloc(program->entry_count, 4));
  EntryTimes* times = static_cast<EntryTimes*>(calloc(program->entry_count, sizeof(EntryTimes)));
  if (!memory || !noted || !rounds || !widths || !chunks || !times) {
    free(memory);
    free(times);
    free(noted);
    free(rounds);
    free(widths);
    free(chunks);
    complain("the system refuses the memory to start");
    return nullptr;
  }
  Gpu* gpu = static_cast<Gpu*>(memory);
  gpu->config = config;
  gpu->program = program;
  gpu->emulated = emulated;
  gpu->noted = noted;
  gpu->rounds = rounds;
  gpu->widths = widths;
  gpu->chunks = chunks;
  gpu->times = times;
  pthread_mutex_init(&gpu->lock, nullptr);
  *failed = false;
  if (emulated) {
    uint32_t capacity = config.seed == 0 ? 1u << 16 : 16u << config.seed % 8;
    gpu->ready = space_open(&gpu->space, nullptr, program, config.memory, capacity, &gpu->why);
    gpu->refused = !gpu->ready;
    gpu->space.audit.on = gpu->config.audit;
    if (gpu->ready) residency_open(&gpu->residency, &gpu->space);
    if (gpu->ready && launched_from_device(config.fork)) open_launches(gpu, nullptr);
    return gpu;
  }
  if (program->code_count == 0) {
    gpu->refused = true;
    // Unless one is required, `bendc run` makes none where it finds no driver: then that is the reason.
    if (config.use == Use::Require || driver_open(&gpu->device.driver, config.library, &gpu->why)) gpu->why.text("the program holds no device code");
    return gpu;
  }
  if (pthread_create(&gpu->starter, nullptr, start_device, gpu) == 0) {
    gpu->starting = true;
  } else {
    start_device(gpu);
  }
  return gpu;
}

void gpu_close(Gpu* gpu) {
  if (!gpu) return;
  if (gpu->starting) {
    __atomic_store_n(&gpu->stop, true, __ATOMIC_RELEASE);
    pthread_join(gpu->starter, nullptr);
    if (gpu->counters.calls == 0 && gpu->counters.refused == 0 && gpu->refused && gpu->why.size() == 0) gpu->why.text("not needed");
  }
  if (gpu->config.stats) print_counters(gpu);
  // A program may end, or fail, with work enqueued that nobody has waited for; it reads and writes what is given back next.
  if (gpu->device.stream && gpu->device.driver.context_use(gpu->device.context) == kSuccess) (void)gpu->device.driver.stream_wait(gpu->device.stream);
  if (gpu->launches.way) launches_close(&gpu->launches);
  residency_close(&gpu->residency);
  if (gpu->space.base) space_close(&gpu->space);
  if (!gpu->emulated) device_close(&gpu->device);
  pthread_mutex_destroy(&gpu->lock);
  free(gpu->noted);
  free(gpu->rounds);
  free(gpu->widths);
  free(gpu->chunks);
  free(gpu->times);
  free(gpu);
}

}  // namespace bendc::rt::gpu
