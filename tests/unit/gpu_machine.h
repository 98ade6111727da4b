// A device machine written by hand, as generated code would behave (device_abi.h): for tests of the executor without a compiler.
//   segment 0  fib(n: u64)        segment 1  its continuation (a, b)
//   segment 2  echo: the result is the argument, `kEchoBytes` of it
//   segment 3  fails with error 2 at site 1        segment 4  never returns a result
//   segment 5  touch(array of u32, owned): adds 1 to each slot, returns the array
#pragma once
#include <cstring>

#include "runtime/gpu/device_abi.h"

namespace bendc::test {

inline constexpr uint32_t kStride = 64;
inline constexpr uint32_t kEchoBytes = 32;

struct MachineThread {
  BendDeviceControl* c;
  uint64_t steps = 0;

  void* take(uint64_t bytes) {
    bytes = (bytes + 15) / 16 * 16;
    uint64_t at = __atomic_fetch_add(&c->heap_cursor, bytes, __ATOMIC_RELAXED);
    if (at + bytes > c->heap_limit) {
      post(3, BEND_NO_SITE);
      return nullptr;
    }
    return reinterpret_cast<void*>(at);
  }
  void post(uint32_t number, uint32_t site) {
    uint64_t none = 0;
    uint64_t value = number | static_cast<uint64_t>(site) << 32;
    __atomic_compare_exchange_n(&c->error, &none, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }
};

struct FibJoin {
  BendJoin head;
  uint64_t results[2];
};
struct FibFrame {
  BendFrame head;
  uint64_t results[2];
  uint64_t second;
};

inline void run_task(BendDeviceControl* c, const BendTaskRecord* task) {
  MachineThread t{c};
  uint32_t segment = task->segment;
  uint64_t parent = task->parent;
  uint64_t args[4];
  std::memcpy(args, task + 1, sizeof args);
  for (;;) {
    if (c->error) return;
    ++t.steps;
    uint64_t value = 0;
    switch (segment) {
      case 0: {
        uint64_t n = args[0];
        if (n < 2) {
          value = n;
          break;
        }
        bool parallel = c->mode == BEND_MODE_PARALLEL || (c->budget && t.steps > c->budget);
        if (parallel && n >= c->threshold) {
          uint32_t at = __atomic_fetch_add(&c->out_count, 2, __ATOMIC_RELAXED);

          auto record = [&](uint32_t i) { return reinterpret_cast<BendTaskRecord*>(c->out_queue + static_cast<uint64_t>(i) * c->task_stride); };
          if (at + 2 <= c->queue_capacity && at + 2 > at) {
            auto* join = static_cast<FibJoin*>(t.take(sizeof(FibJoin)));
            if (!join) {
              for (uint32_t i = at; i < at + 2; ++i) record(i)->segment = BEND_SEGMENT_NONE;
              return;
            }
            join->head = {parent, 2, 1};
            for (uint32_t k = 0; k < 2; ++k) {
              *record(at + k) = {0, 0, reinterpret_cast<uint64_t>(join) | 1 | static_cast<uint64_t>(16 + 8 * k) << BEND_PARENT_SLOT};
              uint64_t argument = n - 1 - k;
              std::memcpy(record(at + k) + 1, &argument, 8);
            }
            return;
          }
          for (uint32_t i = at; i < c->queue_capacity && i < at + 2; ++i) record(i)->segment = BEND_SEGMENT_NONE;
        }
        auto* frame = static_cast<FibFrame*>(t.take(sizeof(FibFrame)));
        if (!frame) return;
        *frame = {{parent, 16, 1}, {0, 0}, n - 2};
        parent = reinterpret_cast<uint64_t>(frame);
        args[0] = n - 1;
        continue;
      }
      case 1: value = args[0] + args[1]; break;
      case 2:
        std::memcpy(reinterpret_cast<void*>(c->result), args, kEchoBytes);
        c->finished = 1;
        return;
      case 3: t.post(2, 1); return;
      case 4: return;
      default: {
        uint64_t block = args[0] & 0x0000FFFFFFFFFFFFull;
        auto* slots = reinterpret_cast<uint32_t*>(block + 16);
        for (uint64_t i = 0; i < 1ull << (args[0] >> 56); ++i) slots[i] += 1;
        value = args[0];
        break;
      }
    }
    // ret value
    if (parent == 0) {
      std::memcpy(reinterpret_cast<void*>(c->result), &value, 8);
      c->finished = 1;
      return;
    }
    if (parent & 1) {
      auto* join = reinterpret_cast<FibJoin*>(parent & BEND_PARENT_ADDRESS);
      std::memcpy(reinterpret_cast<char*>(join) + (parent >> BEND_PARENT_SLOT), &value, 8);
      if (__atomic_sub_fetch(&join->head.remaining, 1, __ATOMIC_ACQ_REL) != 0) return;
      segment = join->head.segment;
      parent = join->head.parent;
      std::memcpy(args, join->results, 16);
      continue;
    }
    auto* frame = reinterpret_cast<FibFrame*>(parent);
    std::memcpy(reinterpret_cast<char*>(frame) + frame->head.shape, &value, 8);
    if (frame->head.shape == 16) {
      frame->head.shape = 24;
      segment = 0;
      args[0] = frame->second;
      continue;
    }
    segment = frame->head.segment;
    parent = frame->head.parent;
    std::memcpy(args, frame->results, 16);
  }
}

inline void machine_round(void* raw, uint32_t thread, uint32_t threads) {
  auto* c = static_cast<BendDeviceControl*>(raw);
  if (thread % (1u << c->spread) != 0) return;
  for (uint64_t i = thread >> c->spread; i < c->in_count; i += threads >> c->spread) {
    auto* task = reinterpret_cast<const BendTaskRecord*>(c->in_queue + i * c->task_stride);
    if (task->segment != BEND_SEGMENT_NONE) run_task(c, task);
  }
}

}  // namespace bendc::test
