#include "runtime/gpu/options.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/config.h"
#include "runtime/message.h"
#include "runtime/output.h"

namespace bendc::rt::gpu {

namespace {

// A grid launched from the device costs some microseconds, 2^10 calls in a thread. A round costs that once for all that wait, so there nothing stays in its thread
// by this rule; small subtrees do as bounded copies (codegen/gpu/bounded_recursion.h), and trees below a warp's width.
constexpr uint64_t kLaunchThreshold = 10;

struct Setting {
  const char* value;      // null: not given
  const char* name;       // as the user wrote it
};

Setting setting(const char* option, const char* option_name, const char* variable) {
  if (option && *option) return {option, option_name};
  const char* value = getenv(variable);
  return {value && *value ? value : nullptr, variable};
}

bool bad(const Setting& s, const char* expected) {
  Message m;
  size_t n = strlen(s.value);
  m.text("bend: ").text(s.name).text(": expected ").text(expected).text(", got `").bytes(s.value, n < 100 ? n : 100).text("`\n");
  write_stderr(m.data(), m.size());
  return false;
}

void note(const Setting& s, const char* text) {
  Message m;
  m.text("bend: note: ").text(s.name).text("=").text(s.value).text(": ").text(text).text("\n");
  write_stderr(m.data(), m.size());
}

bool is_device(const char* text) {
  if (strncmp(text, "GPU-", 4) == 0) return strlen(text) == 40;
  size_t n = strlen(text);
  uint64_t index;
  return text::read_decimal(text, n, 1023, &index);
}

}  // namespace

bool read_gpu_config(GpuConfig* config, const BendOptions* options) {
  static const BendOptions kNone = {};
  const BendOptions& given = options ? *options : kNone;
  *config = {};

  Setting use = setting(given.gpu, "--gpu", "BEND_GPU");
  config->use = Use::Auto;
  if (use.value) {
    if (strcmp(use.value, "off") == 0) config->use = Use::Off;
    else if (strcmp(use.value, "require") == 0) config->use = Use::Require;
    else if (strcmp(use.value, "emulate") == 0) config->use = Use::Emulate;
    else if (strcmp(use.value, "auto") != 0) return bad(use, "auto, off, require or emulate");
  }

  Setting fork = setting(given.gpu_fork, "--gpu-fork", "BEND_GPU_FORK");
  config->fork = Fork::Auto;
  if (fork.value) {
    if (strcmp(fork.value, "host") == 0) config->fork = Fork::Host;
    else if (strcmp(fork.value, "sequential") == 0) config->fork = Fork::Sequential;
    else if (strcmp(fork.value, "thread") == 0) config->fork = Fork::Thread;
    else if (strcmp(fork.value, "warp") == 0) config->fork = Fork::Warp;
    else if (strcmp(fork.value, "block") == 0) config->fork = Fork::Block;
    else if (strcmp(fork.value, "flat") == 0) {
      config->fork = Fork::Flat;
    } else if (strcmp(fork.value, "auto") != 0) {
      return bad(fork, "auto, thread, warp, block, host, flat or sequential");
    }
  }

  Setting device = setting(given.gpu_device, "--gpu-device", "BEND_GPU_DEVICE");
  if (device.value && !is_device(device.value)) return bad(device, "a device's index, or its UUID like GPU-01234567-89ab-cdef-0123-456789abcdef");
  config->device = device.value;

  Setting memory = setting(given.gpu_memory, "--gpu-memory", "BEND_GPU_MEMORY");
  if (memory.value && (!parse_size(memory.value, &config->memory) || config->memory < 1u << 20)) return bad(memory, "a size of 1MB or more, like 8GB");

  Setting threshold = setting(given.gpu_threshold, "--gpu-threshold", "BEND_GPU_THRESHOLD");
  config->threshold = launched_from_device(config->fork) ? kLaunchThreshold : 0;
  if (threshold.value && !text::read_decimal(threshold.value, strlen(threshold.value), BEND_NAT_MAX, &config->threshold))
    return bad(threshold, "a size from 0 to 2^48-1");

  Setting seed = setting(nullptr, "", "BEND_SCHED_SEED");
  if (seed.value && !text::read_decimal(seed.value, strlen(seed.value), UINT64_MAX, &config->seed)) return bad(seed, "a number");

  Setting stats = setting(nullptr, "", "BEND_STATS");
  if (stats.value && strcmp(stats.value, "0") != 0 && strcmp(stats.value, "1") != 0 && strcmp(stats.value, "pages") != 0) return bad(stats, "0, 1 or pages");
  config->stats = given.stats || (stats.value && stats.value[0] != '0');
  config->audit = (stats.value && stats.value[0] == 'p') || (config->stats && config->use == Use::Emulate);
  config->device_runtime = setting(nullptr, "", "BEND_CUDADEVRT").value;
  config->library = setting(nullptr, "", "BEND_CUDA_LIBRARY").value;
  return true;
}

}  // namespace bendc::rt::gpu
