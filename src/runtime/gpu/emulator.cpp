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
  control->warps_log2 = seed == 0 ? 3 : static_cast<uint32_t>(mix(seed + 3) % 7);
  if (run->config->fork != Fork::Auto && run->config->fork != Fork::Flat) return;
  control->target = seed == 0 ? 256 : 1u << mix(seed) % 11;
  control->middle = seed == 0 ? 64 : (1u << mix(seed + 6) % 11) - 1;
  control->most_spread = static_cast<uint32_t>(mix(seed + 4) % (BEND_LANE_BITS + 1));
  control->middle_budget = seed == 0 ? 16 : 1u << mix(seed + 5) % 6;
  control->sequential_budget = seed == 0 ? 512 : mix(seed + 1) % 4 == 0 ? 0 : 1u << mix(seed + 2) % 10;
  control->again_budget = seed == 0 ? 128 : 1u << mix(seed + 7) % 8;
}

namespace {

void in_some_order(const Run* run, BendDeviceControl* control, uint64_t round, void (*code)(void*, uint32_t, uint32_t), uint32_t count) {
  const uint64_t seed = run->config->seed;
  // number = a * i + b modulo a power of two: every odd a gives an order of all.
  const uint32_t mask = count - 1;
  uint32_t a = 1, b = 0;
  if (seed != 0 && (count & mask) == 0) {
    uint64_t random = mix(seed * 0x9E3779B97F4A7C15ull + round);
    a = static_cast<uint32_t>(random) | 1;
    b = static_cast<uint32_t>(random >> 32);
  }
  for (uint32_t i = 0; i < count; ++i) bend_emulated_thread(code, control, a == 1 && b == 0 ? i : (a * i + b) & mask, count);
}

}  // namespace

void emulate_round(const Run* run, BendDeviceControl* control, uint64_t round) { in_some_order(run, control, round, run->program->emulated_round, control->resident_threads); }

void emulate_groups(const Run* run, BendDeviceControl* control, uint64_t round) {
  in_some_order(run, control, ~round, run->program->emulated_flat, control->resident_threads / BEND_LANES);
}

}  // namespace bendc::rt::gpu
