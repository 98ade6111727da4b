#include <doctest/doctest.h>

#include <set>

#include "checker/index_set.h"

using namespace bendc;

TEST_CASE("index set: members and subsets like std::set's, old versions unchanged") {
  for (uint32_t total : {1u, 64u, 65u, 512u, 513u, 70000u}) {
    Arena arena;
    IndexSet s, half;
    std::set<uint32_t> want;
    uint32_t x = 12345;
    for (uint32_t i = 0; i < 300; ++i) {
      x = x * 1664525u + 1013904223u;
      s = s.with(arena, x % total, total);
      want.insert(x % total);
      if (i == 150) half = s;
    }
    CHECK(s.size() == want.size());
    bool same = true;
    for (uint32_t i = 0; i < total; ++i) same &= s.has(i) == (want.count(i) != 0);
    CHECK(same);
    CHECK(s.contains(half));
    CHECK(s.contains(IndexSet()));
    CHECK(half.contains(s) == (half.size() == s.size()));
  }
}
