#include "runtime/gpu/device.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/gpu/device_abi.h"
#include "runtime/gpu/kernels.h"
#include "runtime/gpu/overlap.h"

namespace bendc::rt::gpu {

namespace {

// CUdevice_attribute, CUfunction_attribute, CUlimit and CUjit_option, by their numbers in cuda.h.
constexpr int kAttributeProcessors = 16;
constexpr int kAttributeMajor = 75;
constexpr int kAttributeMinor = 76;
constexpr int kFunctionLocalBytes = 3;
constexpr int kFunctionRegisters = 4;
constexpr int kLimitStack = 0;
constexpr int kJitInfoLog = 3;
constexpr int kJitInfoLogBytes = 4;
constexpr int kJitErrorLog = 5;
constexpr int kJitErrorLogBytes = 6;
constexpr uint32_t kOldest = 70;
constexpr uint32_t kOverlapping = 90;       // machine code from there on is that of kernels that overlap
constexpr unsigned kNonBlocking = 1;

bool check(const Device* device, const char* call, int code, Message* why) {
  if (code == kSuccess) return true;
  describe(&device->driver, call, code, why);
  return false;
}

void show_uuid(const unsigned char* bytes, char* out) {
  const char* digits = "0123456789abcdef";
  memcpy(out, "GPU-", 4);
  size_t at = 4;
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out[at++] = '-';
    out[at++] = digits[bytes[i] >> 4];
    out[at++] = digits[bytes[i] & 15];
  }
  out[at] = 0;
}

// The image's log on failure. Option values go by value in the pointers (nvptx-and-driver notes: by address they are ignored).
bool load_image(Device* device, const char* what, const void* image, void** module, Message* why) {
  char errors[1024];
  char infos[256];
  errors[0] = infos[0] = 0;
  int options[] = {kJitInfoLog, kJitInfoLogBytes, kJitErrorLog, kJitErrorLogBytes};
  void* values[] = {infos, reinterpret_cast<void*>(sizeof infos), errors, reinterpret_cast<void*>(sizeof errors)};
  int code = device->driver.module_load(module, image, 4, options, values);
  if (code == kSuccess) return true;
  why->text("the driver refuses ").text(what).text(": ");
  describe(&device->driver, "cuModuleLoadDataEx", code, why);
  size_t n = strnlen(errors, sizeof errors);
  while (n > 0 && (errors[n - 1] == '\n' || errors[n - 1] == ' ')) --n;
  if (n > 0) why->text(": ").bytes(errors, n);
  return false;
}

// The text for sm_90 where the device, its driver and the text have kernels that overlap; as it stands otherwise, and when the driver refuses that.
bool load_ptx(Device* device, const char* what, const char* text, void** module, bool* overlaps, Message* why) {
  *overlaps = false;
  if (device->major >= 9 && device->driver.launch_with) {
    char* newer = overlapping_ptx(text);
    Message refusal;
    if (newer) *overlaps = load_image(device, what, newer, module, &refusal);
    free(newer);
    if (*overlaps) return true;
  }
  return load_image(device, what, text, module, why);
}

// A cubin of the device's own family, else the newest PTX that it runs.
const BendGpuCode* choose_code(const Device* device, const BendGpuProgram* program) {
  const uint32_t arch = static_cast<uint32_t>(device->major * 10 + device->minor);
  const BendGpuCode* best = nullptr;
  auto rank = [](const BendGpuCode* code) { return code->arch + (code->kind == BEND_GPU_CUBIN ? 1000 : 0); };
  for (uint32_t i = 0; i < program->code_count; ++i) {
    const BendGpuCode* code = &program->codes[i];
    if (code->kind == BEND_GPU_LAUNCH_PTX) continue;
    if (code->arch > arch || (code->kind == BEND_GPU_CUBIN && code->arch / 10 != arch / 10)) continue;
    if (!best || rank(code) > rank(best)) best = code;
  }
  return best;
}

}  // namespace

bool device_describe(Device* device, int ordinal, Message* why) {
  const Driver& d = device->driver;
  int handle = 0;
  size_t bytes = 0;
  if (!check(device, "cuDeviceGet", d.device_get(&handle, ordinal), why)) return false;
  device->ordinal = handle;
  if (!check(device, "cuDeviceGetName", d.device_name(device->name, sizeof device->name, handle), why)) return false;
  device->name[sizeof device->name - 1] = 0;
  if (!check(device, "cuDeviceGetAttribute", d.device_attribute(&device->major, kAttributeMajor, handle), why)) return false;
  if (!check(device, "cuDeviceGetAttribute", d.device_attribute(&device->minor, kAttributeMinor, handle), why)) return false;
  if (!check(device, "cuDeviceGetAttribute", d.device_attribute(&device->processors, kAttributeProcessors, handle), why)) return false;
  if (!check(device, "cuDeviceTotalMem", d.device_memory(&bytes, handle), why)) return false;
  device->total_memory = bytes;
  unsigned char uuid[16];
  device->uuid[0] = 0;
  if (d.device_uuid && d.device_uuid(uuid, handle) == kSuccess) show_uuid(uuid, device->uuid);
  return true;
}

bool device_probe(Device* device, const GpuConfig& config, Message* why) {
  *device = {};
  if (!driver_open(&device->driver, config.library, why)) return false;
  int count = 0;
  if (!check(device, "cuInit", device->driver.init(0), why) || !check(device, "cuDeviceGetCount", device->driver.device_count(&count), why)) {
    driver_close(&device->driver);
    return false;
  }
  if (count == 0) {
    why->text("the CUDA driver sees no device");
  } else if (!config.device || config.device[0] != 'G') {
    uint64_t index = 0;
    if (config.device && !text::read_decimal(config.device, strlen(config.device), 1023, &index)) index = UINT64_MAX;
    if (index < static_cast<uint64_t>(count)) {
      if (device_describe(device, static_cast<int>(index), why)) return true;
    } else {
      why->text("there is no GPU ").text(config.device).text("; the driver sees ").number(static_cast<uint64_t>(count));
    }
  } else {
    for (int i = 0; i < count; ++i) {
      Message skipped;
      if (device_describe(device, i, &skipped) && strcasecmp(device->uuid, config.device) == 0) return true;
    }
    why->text("there is no GPU with the UUID ").text(config.device);
  }
  driver_close(&device->driver);
  return false;
}

bool device_open(Device* device, Message* why) {
  const Driver& d = device->driver;
  const uint32_t arch = static_cast<uint32_t>(device->major * 10 + device->minor);
  if (arch < kOldest) {
    why->text(device->name).text(" has compute capability ").number(static_cast<uint64_t>(device->major)).text(".").number(static_cast<uint64_t>(device->minor));
    why->text("; 7.0 is the oldest that works");
    return false;
  }
  return check(device, "cuDevicePrimaryCtxRetain", d.context_retain(&device->context, device->ordinal), why) &&
         check(device, "cuCtxSetCurrent", d.context_use(device->context), why) &&
         check(device, "cuStreamCreate", d.stream_create(&device->stream, kNonBlocking), why) &&
         check(device, "cuEventCreate", d.event_create(&device->begin, 0), why) && check(device, "cuEventCreate", d.event_create(&device->end, 0), why) &&
         check(device, "cuEventCreate", d.event_create(&device->rounds_begin, 0), why) && check(device, "cuEventCreate", d.event_create(&device->rounds_end, 0), why) &&
         load_ptx(device, "the runtime's kernels", kRuntimePtx, &device->own_module, &device->overlaps, why) &&
         check(device, "cuModuleGetFunction bend_flip", d.module_function(&device->flip, device->own_module, "bend_flip"), why) &&
         check(device, "cuModuleGetFunction bend_diff", d.module_function(&device->diff, device->own_module, "bend_diff"), why) &&
         check(device, "cuModuleGetFunction bend_move", d.module_function(&device->move, device->own_module, "bend_move"), why) &&
         check(device, "cuModuleGetFunction bend_selftest", d.module_function(&device->selftest, device->own_module, "bend_selftest"), why);
}

bool device_load(Device* device, const BendGpuProgram* program, Message* why) {
  const Driver& d = device->driver;
  const BendGpuCode* code = choose_code(device, program);
  if (!code) {
    why->text("the program holds no code for compute capability ").number(static_cast<uint64_t>(device->major)).text(".").number(static_cast<uint64_t>(device->minor));
    return false;
  }
  int local = 0, registers = 0, blocks = 0, flat_local = 0, flat_registers = 0, flat_blocks = 0;
  bool overlaps = false;
  const char* what = "the program's device code";
  if (!(code->kind == BEND_GPU_PTX ? load_ptx(device, what, static_cast<const char*>(code->bytes), &device->module, &overlaps, why) : load_image(device, what, code->bytes, &device->module, why)) ||
      !check(device, "cuModuleGetFunction " BEND_KERNEL_NAME, d.module_function(&device->round, device->module, BEND_KERNEL_NAME), why) ||
      !check(device, "cuFuncGetAttribute", d.function_attribute(&local, kFunctionLocalBytes, device->round), why) ||
      !check(device, "cuFuncGetAttribute", d.function_attribute(&registers, kFunctionRegisters, device->round), why))
    return false;
  if (program->group_stride > 0 && (!check(device, "cuModuleGetFunction " BEND_FLAT_KERNEL_NAME, d.module_function(&device->flat, device->module, BEND_FLAT_KERNEL_NAME), why) ||
                                    !check(device, "cuFuncGetAttribute", d.function_attribute(&flat_local, kFunctionLocalBytes, device->flat), why) ||
                                    !check(device, "cuFuncGetAttribute", d.function_attribute(&flat_registers, kFunctionRegisters, device->flat), why)))
    return false;
  if (code->kind == BEND_GPU_CUBIN) overlaps = code->arch >= kOverlapping;
  device->overlaps = device->overlaps && overlaps;
  if (flat_local > local) local = flat_local;
  size_t stack = 0;
  if (!check(device, "cuCtxGetLimit", d.context_get_limit(&stack, kLimitStack), why)) return false;
  if (static_cast<size_t>(local) > stack && !check(device, "cuCtxSetLimit", d.context_limit(kLimitStack, static_cast<size_t>(local)), why)) return false;
  if (!check(device, "cuOccupancyMaxActiveBlocksPerMultiprocessor", d.occupancy(&blocks, device->round, BEND_BLOCK_THREADS, 0), why)) return false;
  if (device->flat && !check(device, "cuOccupancyMaxActiveBlocksPerMultiprocessor", d.occupancy(&flat_blocks, device->flat, BEND_BLOCK_THREADS, 0), why)) return false;
  if (blocks < 1 || (device->flat && flat_blocks < 1)) {
    why->text("the program's kernel needs more registers or memory than a processor of ").text(device->name).text(" has");
    return false;
  }
  device->arch = code->arch;
  device->local_bytes = static_cast<uint32_t>(local);
  device->registers = static_cast<uint32_t>(registers);
  device->blocks = static_cast<uint32_t>(blocks) * static_cast<uint32_t>(device->processors);
  device->flat_blocks = static_cast<uint32_t>(flat_blocks) * static_cast<uint32_t>(device->processors);
  device->flat_registers = static_cast<uint32_t>(flat_registers);
  if (program->statics) {
    size_t bytes = 0;
    if (!check(device, "cuModuleGetGlobal", d.module_global(&device->statics, &bytes, device->module, program->statics), why)) return false;
    device->statics_bytes = bytes;
  }
  return true;
}

void device_close(Device* device) {
  const Driver& d = device->driver;
  if (!d.library && !d.init) return;
  // What fails here has failed before and been reported; the process is about to end.
  if (device->context) {
    d.context_use(device->context);
    if (device->module) d.module_unload(device->module);
    if (device->own_module) d.module_unload(device->own_module);
    void* events[] = {device->begin, device->end, device->rounds_begin, device->rounds_end};
    for (void* event : events)
      if (event) d.event_destroy(event);
    if (device->stream) d.stream_destroy(device->stream);
    d.context_release(device->ordinal);
  }
  // The library stays open: the driver's own threads may still run.
}

}  // namespace bendc::rt::gpu
