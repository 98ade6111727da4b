// Which part of a device's heap is known to hold zeros, against a model of its bytes.
#include "runtime/gpu/zeros.h"

#include <doctest/doctest.h>

#include <random>
#include <vector>

using bendc::rt::gpu::Zeros;

TEST_CASE("zeros: what is called zero is zero, and is zeroed once") {
  std::mt19937 random(7);
  std::vector<bool> dirty(256, true);
  Zeros zeros = {0, 0};
  uint64_t written = 0, asked = 0;
  for (int turn = 0; turn < 20000; ++turn) {
    const uint64_t low = random() % 200, high = 40 + random() % 217;
    for (uint64_t i = 0; i < low; ++i) dirty[i] = true;
    for (uint64_t i = high; i < dirty.size(); ++i) dirty[i] = true;
    zeros.touched(low, high);
    if (turn % 3 == 0) {
      const uint64_t from = low / 2, to = random() % 257;
      const bool fine = zeros.extend(from, to, [&](uint64_t at, uint64_t bytes) {
        if (turn % 99 == 0) return false;
        for (uint64_t i = 0; i < bytes; ++i) dirty[at + i] = false;
        written += bytes;
        return true;
      });
      if (fine && from < to) {
        REQUIRE(zeros.from == from);
        REQUIRE(zeros.to == to);
        asked += to - from;
      }
    }
    REQUIRE(zeros.from <= zeros.to);
    REQUIRE(zeros.to <= dirty.size());
    for (uint64_t i = zeros.from; i < zeros.to; ++i) REQUIRE(!dirty[i]);
  }
  CHECK(written < asked);
}

TEST_CASE("zeros: only what was touched is zeroed again") {
  std::vector<std::pair<uint64_t, uint64_t>> made;
  auto note = [&](uint64_t at, uint64_t bytes) {
    made.push_back({at, bytes});
    return true;
  };
  Zeros zeros = {0, 0};
  CHECK(zeros.extend(16, 100, note));
  zeros.touched(40, 90);
  CHECK(zeros.extend(16, 120, note));
  CHECK(zeros.extend(16, 120, note));
  CHECK(made == std::vector<std::pair<uint64_t, uint64_t>>{{16, 84}, {16, 24}, {90, 30}});
}
