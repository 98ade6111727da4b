#include "runtime/gpu/doctor.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/gpu/gpu.h"

namespace bendc::rt::gpu {

namespace {

constexpr uint32_t kElements = 1u << 22;
constexpr uint64_t kBytes = uint64_t{kElements} * 4;
constexpr uint32_t kLaunches = 1000;

void say(Message& m) {
  m.text("\n");
  size_t done = 0;
  while (done < m.size()) {
    ssize_t n = write(STDOUT_FILENO, m.data() + done, m.size() - done);
    if (n <= 0) return;
    done += static_cast<size_t>(n);
  }
  m = Message();
}

Message& millis(Message& m, uint64_t ns) { return m.number(ns / 1000000).text(".").number(ns / 100000 % 10).text(" ms"); }
Message& tenths(Message& m, uint64_t n, const char* unit) { return m.number(n / 10).text(".").number(n % 10).text(unit); }

bool check(const Device* device, const char* call, int code, Message& why) {
  if (code == kSuccess) return true;
  describe(&device->driver, call, code, &why);
  return false;
}

// The newest PTX version that the driver takes, as major * 10 + minor; 0 when it takes none.
uint32_t newest_ptx(const Device* device) {
  for (uint32_t version = 99; version >= 60; --version) {
    Message text;
    text.text(".version ").number(version / 10).text(".").number(version % 10).text("\n.target sm_70\n.address_size 64\n").bytes("", 1);
    void* module = nullptr;
    int option = 0;
    if (device->driver.module_load(&module, text.data(), 0, &option, nullptr) != kSuccess) continue;
    device->driver.module_unload(module);
    return version;
  }
  return 0;
}

bool test_kernel(const Device* device, uint64_t memory, uint32_t* host, Message& why) {
  const Driver& d = device->driver;
  void* arguments[] = {&memory, const_cast<uint32_t*>(&kElements)};
  memset(host, 0, kBytes);
  if (!check(device, "cuLaunchKernel", d.launch(device->selftest, kElements / 128, 1, 1, 128, 1, 1, 0, device->stream, arguments, nullptr), why) ||
      !check(device, "cuMemcpyDtoHAsync", d.copy_out(host, memory, kBytes, device->stream), why) || !check(device, "cuStreamSynchronize", d.stream_wait(device->stream), why))
    return false;
  for (uint32_t i = 0; i < kElements; ++i) {
    if (host[i] == ((i * 2654435761u) ^ i)) continue;
    why.text("element ").number(i).text(" is ").number(host[i]).text(", not ").number((i * 2654435761u) ^ i);
    return false;
  }
  return true;
}

// Launch costs and copy speeds; each figure is of the second pass, so that first-use costs stay out.
bool measure(const Device* device, uint64_t memory, uint32_t* host, Message& why) {
  const Driver& d = device->driver;
  uint32_t none = 0;
  void* arguments[] = {&memory, &none};
  uint64_t launch_ns = 0, turn_ns = 0, in_ns = 0, out_ns = 0;
  for (int pass = 0; pass < 2; ++pass) {
    uint64_t from = now_ns();
    for (uint32_t i = 0; i < kLaunches; ++i)
      if (!check(device, "cuLaunchKernel", d.launch(device->selftest, 1, 1, 1, 128, 1, 1, 0, device->stream, arguments, nullptr), why)) return false;
    if (!check(device, "cuStreamSynchronize", d.stream_wait(device->stream), why)) return false;
    launch_ns = (now_ns() - from) / kLaunches;
    from = now_ns();
    for (uint32_t i = 0; i < 100; ++i) {
      if (!check(device, "cuLaunchKernel", d.launch(device->selftest, 1, 1, 1, 128, 1, 1, 0, device->stream, arguments, nullptr), why) ||
          !check(device, "cuStreamSynchronize", d.stream_wait(device->stream), why))
        return false;
    }
    turn_ns = (now_ns() - from) / 100;
    from = now_ns();
    if (!check(device, "cuMemcpyHtoDAsync", d.copy_in(memory, host, kBytes, device->stream), why) || !check(device, "cuStreamSynchronize", d.stream_wait(device->stream), why)) return false;
    in_ns = now_ns() - from;
    from = now_ns();
    if (!check(device, "cuMemcpyDtoHAsync", d.copy_out(host, memory, kBytes, device->stream), why) || !check(device, "cuStreamSynchronize", d.stream_wait(device->stream), why)) return false;
    out_ns = now_ns() - from;
  }
  Message m;
  m.text("launch: ");
  tenths(m, launch_ns / 100, " us in a row, ");
  tenths(m, turn_ns / 100, " us with a wait; copies of 16 MiB: ");
  tenths(m, kBytes * 10 / (in_ns ? in_ns : 1), " GB/s in, ");
  tenths(m, kBytes * 10 / (out_ns ? out_ns : 1), " GB/s out");
  say(m);
  return true;
}

bool examine(Device* device, const GpuConfig& config, Message& why) {
  Message m;
  uint64_t from = now_ns();
  const uint64_t begin = from;
  if (!device_probe(device, config, &why)) return false;
  uint64_t probed = now_ns();
  m.text("driver: CUDA ").number(static_cast<uint64_t>(device->driver.version / 1000)).text(".").number(static_cast<uint64_t>(device->driver.version % 1000 / 10)).text(", opened and initialised in ");
  millis(m, probed - from);
  say(m);
  int count = 0;
  if (!check(device, "cuDeviceGetCount", device->driver.device_count(&count), why)) return false;
  for (int i = 0; i < count; ++i) {
    Device other = *device;
    if (!device_describe(&other, i, &why)) return false;
    m.text("device ").number(static_cast<uint64_t>(i)).text(": ").text(other.name).text(", compute capability ").number(static_cast<uint64_t>(other.major)).text(".");
    m.number(static_cast<uint64_t>(other.minor)).text(", ").number(static_cast<uint64_t>(other.processors)).text(" processors, ").number(other.total_memory >> 20).text(" MiB ");
    m.text(other.uuid);
    if (other.ordinal == device->ordinal) m.text(" (chosen)");
    say(m);
  }
  from = now_ns();
  if (!device_open(device, &why)) return false;
  m.text("context and the runtime's kernels: ");
  millis(m, now_ns() - from);
  say(m);
  const Driver& d = device->driver;
  const uint64_t opened = now_ns();
  static const char kEmpty[] = ".version 6.0\n.target sm_70\n.address_size 64\n";
  void* empty = nullptr;
  int option = 0;
  if (!check(device, "cuModuleLoadDataEx", d.module_load(&empty, kEmpty, 0, &option, nullptr), why)) return false;
  m.text("floor of a program's first `!` (driver, context, an empty module): ");
  millis(m, probed - begin + opened - from + now_ns() - opened);
  say(m);
  d.module_unload(empty);
  size_t stack = 0, free_bytes = 0, total = 0;
  if (!check(device, "cuCtxGetLimit", d.context_get_limit(&stack, 0), why) || !check(device, "cuMemGetInfo", d.memory_info(&free_bytes, &total), why)) return false;
  uint32_t ptx = newest_ptx(device);
  m.text("limits: stack ").number(stack).text(" bytes a thread, ").number(free_bytes >> 20).text(" of ").number(total >> 20).text(" MiB free, PTX up to ").number(ptx / 10).text(".").number(ptx % 10);
  say(m);
  uint64_t memory = 0;
  from = now_ns();
  if (!check(device, "cuMemAlloc", d.memory_alloc(&memory, free_bytes / 2), why)) return false;
  m.text("a block of ").number(free_bytes >> 21).text(" MiB: ");
  millis(m, now_ns() - from);
  say(m);
  uint32_t* host = static_cast<uint32_t*>(malloc(kBytes));
  if (!host) {
    why.text("the system refuses memory");
    return false;
  }
  bool passed = test_kernel(device, memory, host, why) && measure(device, memory, host, why) && check(device, "cuMemFree", d.memory_free(memory), why);
  free(host);
  return passed;
}

}  // namespace

bool doctor(const GpuConfig& config) {
  Device device = {};
  Message why;
  bool passed = examine(&device, config, why);
  Message m;
  if (passed) m.text("self-test: passed");
  else m.text("no GPU can be used: ").bytes(why.data(), why.size());
  say(m);
  device_close(&device);
  return passed;
}

}  // namespace bendc::rt::gpu

int bend_gpu_doctor(const BendOptions* options) {
  bendc::rt::gpu::GpuConfig config;
  if (!bendc::rt::gpu::read_gpu_config(&config, options)) return 2;
  return bendc::rt::gpu::doctor(config) ? 0 : 1;
}
