// The heap: size classes, large and huge blocks, reuse, the debug walk; and that abi.def names functions that exist.
#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

#include "runtime_fixture.h"

using namespace bendc;
using bendc::test::RuntimeFixture;

TEST_CASE("abi: fast-path fields stand where generated code expects them") {
  CHECK(offsetof(BendWorker, free_lists) == 0);
  CHECK(offsetof(BendWorker, bump) == 8 * BEND_CLASSES);
  CHECK(offsetof(BendWorker, limit) == 8 * BEND_CLASSES + 8);
  CHECK(sizeof(BendSlot) == 16);
  CHECK(sizeof(BendLayout) == 24);
  CHECK(sizeof(BendCtorInfo) == 40);
}

TEST_CASE("abi: every listed function is in the archive") {
  std::vector<const void*> functions = {
#define BENDC_RT(name, result, args) reinterpret_cast<const void*>(&name),
#include "runtime/abi.def"
#undef BENDC_RT
  };
  for (const void* f : functions) CHECK(f != nullptr);
}

TEST_CASE("heap: large classes cover their sizes with at most an eighth lost") {
  for (uint64_t bytes = BEND_MAX_SMALL + 1; bytes <= rt::kLargeMax; bytes += 7) {
    uint32_t c = rt::large_class(bytes);
    REQUIRE(c < rt::kLargeClasses);
    REQUIRE(rt::large_class_bytes(c) >= bytes);
    if (c > 7) REQUIRE(rt::large_class_bytes(c - 1) < bytes);
  }
}

TEST_CASE("heap: blocks of every size hold their bytes and do not overlap") {
  for (bool debug : {false, true}) {
    RuntimeFixture f(debug);
    REQUIRE(f.opened);
    std::vector<std::pair<unsigned char*, uint64_t>> blocks;
    uint64_t bytes = 8;
    for (int i = 0; i < 3000; ++i) {
      bytes = (bytes * 7 + 13 * static_cast<uint64_t>(i)) % (i % 100 == 0 ? 6000000 : i % 7 == 0 ? 70000 : 600) + 8;
      auto* p = static_cast<unsigned char*>(rt::heap_alloc(&f.worker, bytes));
      REQUIRE(reinterpret_cast<uintptr_t>(p) % 8 == 0);
      std::memset(p, i & 255, bytes);
      blocks.push_back({p, bytes});
      if (i % 3 == 2) {
        auto [q, n] = blocks[blocks.size() / 2];
        blocks.erase(blocks.begin() + static_cast<long>(blocks.size() / 2));
        rt::heap_free(&f.worker, q, n);
      }
    }
    for (auto [p, n] : blocks) {
      REQUIRE(p[0] == p[n - 1]);
      REQUIRE(p[n / 2] == p[0]);
    }
    if (debug) CHECK(f.check().live_nodes == blocks.size());
    for (auto [p, n] : blocks) rt::heap_free(&f.worker, p, n);
    if (debug) {
      rt::HeapReport report = f.check();
      CHECK(report.live_nodes == 0);
      CHECK(report.live_words == 0);
      CHECK(!report.corrupt);
    }
  }
}

TEST_CASE("heap: freed memory is used again") {
  if (rt::kPoisons) return;   // there it waits first
  RuntimeFixture f(false);
  void* small = rt::heap_alloc(&f.worker, 48);
  rt::heap_free(&f.worker, small, 48);
  CHECK(rt::heap_alloc(&f.worker, 48) == small);
  for (uint64_t bytes : {4112ull, 300000ull, 3ull << 20, 64ull << 20}) {
    void* block = rt::heap_alloc(&f.worker, bytes);
    rt::heap_free(&f.worker, block, bytes);
    void* again = rt::heap_alloc(&f.worker, bytes);
    CHECK(again == block);
    rt::heap_free(&f.worker, again, bytes);
  }
  uint64_t mapped = f.runtime->heap.mapped;
  for (int i = 0; i < 100; ++i) rt::heap_free(&f.worker, rt::heap_alloc(&f.worker, 64ull << 20), 64ull << 20);
  CHECK(f.runtime->heap.mapped == mapped);
}

TEST_CASE("heap: the walk finds a node that is twice in the free lists, of another size, or foreign") {
  if (rt::kPoisons) return;   // AddressSanitizer ends the process at the first of them
  {
    RuntimeFixture f;
    void* node = rt::heap_alloc(&f.worker, 32);
    rt::heap_free(&f.worker, node, 32);
    rt::heap_free(&f.worker, node, 32);
    CHECK(f.check().corrupt);
  }
  {
    RuntimeFixture f;
    rt::heap_free(&f.worker, rt::heap_alloc(&f.worker, 32), 40);
    CHECK(f.check().corrupt);
  }
  {
    RuntimeFixture f;
    alignas(8) char foreign[64];
    rt::heap_free(&f.worker, foreign, 32);
    CHECK(f.check().corrupt);
  }
}

TEST_CASE("config: sizes") {
  uint64_t n = 0;
  CHECK((rt::parse_size("8GB", &n) && n == 8ull << 30));
  CHECK((rt::parse_size("512MB", &n) && n == 512ull << 20));
  CHECK((rt::parse_size("64KB", &n) && n == 65536));
  CHECK((rt::parse_size("12345", &n) && n == 12345));
  for (const char* bad : {"", "0", "GB", "8G", "-1GB", "8 GB", "99999999999GB", "8gb", "0x10"}) CHECK_FALSE(rt::parse_size(bad, &n));
}
