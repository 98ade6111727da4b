// The device machine compiled for the host, thread by thread. A thread never waits for another, so running each to its end is one of the device's
// schedules; BEND_SCHED_SEED picks others: the order of the threads, and how wide a frontier grows before tasks run inside their threads.
#include "runtime/gpu/emulated_exit.h"
#include "runtime/gpu/executor.h"

namespace bendc::rt::gpu {

namespace {

uint64_t mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9ull;
  x ^= x >> 27;
  x *= 0x94D049BB133111EBull;
  return x ^ x >> 31;
}

}  // namespace

void emulate_limits(const Run* run, BendDeviceControl* control) {
  uint64_t seed = run->config->seed;
  if (run->config->fork != Fork::Auto) return;
  control->target = seed == 0 ? 256 : 1u << mix(seed) % 11;
  control->sequential_budget = seed == 0 ? 512 : mix(seed + 1) % 4 == 0 ? 0 : 1u << mix(seed + 2) % 10;
}

void emulate_round(const Run* run, BendDeviceControl* control, uint64_t round) {
  const uint32_t threads = control->resident_threads;
  const uint64_t seed = run->config->seed;
  // thread = a * i + b modulo a power of two: every odd a gives an order of all threads.
  const uint32_t mask = threads - 1;
  uint32_t a = 1, b = 0;
  if (seed != 0 && (threads & mask) == 0) {
    uint64_t random = mix(seed * 0x9E3779B97F4A7C15ull + round);
    a = static_cast<uint32_t>(random) | 1;
    b = static_cast<uint32_t>(random >> 32);
  }
  for (uint32_t i = 0; i < threads; ++i) bend_emulated_thread(run->program->emulated_round, control, a == 1 && b == 0 ? i : (a * i + b) & mask, threads);
}

}  // namespace bendc::rt::gpu
