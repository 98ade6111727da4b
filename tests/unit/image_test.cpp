// Boxed values that cross again and again: only pages that a side changed move.
#include <vector>

#include "device_fixture.h"

using namespace bendc;
using namespace bendc::test;

namespace {

// List<U32>: Nil = 0, Con = node { count, head, tail } | 1.
extern const BendDataInfo kList;
const BendSlot kTail = {8, BEND_SLOT_DATA, &kList};
const BendCtorInfo kCtors[] = {{BEND_CTOR_NULLARY, 0, {}, "Nil"}, {BEND_CTOR_NODE, 0, {16, 0, 1, 0, &kTail}, "Con"}};
const BendDataInfo kList = {2, 1, kCtors, "List"};
const BendSlot kSlot = {0, BEND_SLOT_DATA, &kList};
const BendLayout kValue = {8, 0, 1, 0, &kSlot};

char* node(uint64_t list) { return reinterpret_cast<char*>(list & ~7ull); }
uint32_t& head(uint64_t list) { return *reinterpret_cast<uint32_t*>(node(list) + 4); }
uint64_t& tail(uint64_t list) { return *reinterpret_cast<uint64_t*>(node(list) + 8); }

// Segments: 0 returns the list; 1 adds 1 to its first ten heads; 2 puts a new node before it, with head 7; 3 drops the first node.
uint64_t run(BendDeviceControl* c, uint32_t segment, uint64_t list) {
  if (segment == 1) {
    uint64_t at = list;
    for (int i = 0; i < 10 && at; ++i, at = tail(at)) head(at) += 1;
  } else if (segment == 2) {
    uint64_t fresh = c->heap_cursor;
    c->heap_cursor += 16;
    *reinterpret_cast<uint32_t*>(fresh) = 1;
    head(fresh) = 7;
    tail(fresh) = list;
    return fresh | 1;
  } else if (segment == 3) {
    return tail(list);
  }
  return list;
}
void machine(void* control, uint32_t thread, uint32_t) { run_root(control, thread, run); }

enum Entry { kSame, kBump, kPush, kPop };
const BendGpuEntry kEntries[] = {
    {"same", "a.bend:1", nullptr, 0, 0, kValue, kValue, kValue},
    {"bump", "a.bend:2", nullptr, 1, 0, kValue, kValue, kValue},
    {"push", "a.bend:3", nullptr, 2, 0, kValue, kValue, kValue},
    {"pop", "a.bend:4", nullptr, 3, 0, kValue, kValue, kValue},
};
const char kPtx[] = "not read by the stand-in";
const BendGpuCode kCode = {BEND_GPU_PTX, 70, kPtx, sizeof kPtx};
const BendGpuProgram kProgram = {64, 4, 0, 1, kEntries, nullptr, &kCode, nullptr, machine};

struct Fixture : DeviceFixture {
  explicit Fixture(bool emulated) : DeviceFixture(&kProgram, emulated) {}
  BendWord list(const std::vector<uint32_t>& heads) {
    BendWord at = 0;
    for (size_t i = heads.size(); i > 0; --i) {
      BendWord fresh = this->node(16, heads[i - 1]) | 1;
      put(fresh, 8, at);
      at = fresh;
    }
    return at;
  }
  static std::vector<uint32_t> heads(BendWord list) {
    std::vector<uint32_t> out;
    for (; list; list = tail(list)) out.push_back(head(list));
    return out;
  }
  void drop(BendWord list) { bend_drop_ref(&worker, list, &kList); }
  rt::gpu::Image& image() { return space().image; }
};

std::vector<uint32_t> counting(uint32_t count) {
  std::vector<uint32_t> out(count);
  for (uint32_t i = 0; i < count; ++i) out[i] = i;
  return out;
}

template <class Body>
void on_both(Body body) {
  for (bool emulated : {true, false}) {
    CAPTURE(emulated);
    Fixture f(emulated);
    body(f);
    CHECK(f.check().live_nodes == 0);
  }
}

constexpr uint32_t kNodes = 100000;   // 1.6 MB: 24 pages and a part of one

}  // namespace

TEST_CASE("image: turns in which both sides write a little move a little") {
  on_both([](Fixture& f) {
    std::vector<uint32_t> want = counting(kNodes);
    BendWord list = f.list(want);
    uint64_t in = 0, out = 0;
    for (int turn = 0; turn < 200; ++turn) {
      list = f.call(kBump, list);
      for (int i = 0; i < 10; ++i) want[i] += 1;
      if (turn == 0) in = f.image().pages_in, out = f.image().pages_out;
      BendWord at = list;
      for (int i = 0; i < 60000; ++i) at = tail(at);   // page 14
      head(at) += 3;
      want[60000] += 3;
    }
    CHECK(f.heads(list) == want);
    CHECK(in == 25);
    // In: the host's page. Out: the device's.
    CHECK(f.image().pages_in - in <= 199);
    CHECK(f.image().pages_out - out <= 199);
    f.drop(list);
  });
}

TEST_CASE("image: of two pages, and one of them in part, the one that a side changed moves") {
  on_both([](Fixture& f) {
    std::vector<uint32_t> want = counting(6000);   // 96 KB
    BendWord list = f.list(want);
    for (int turn = 0; turn < 20; ++turn) {
      list = f.call(kBump, list);
      for (int i = 0; i < 10; ++i) want[i] += 1;
    }
    CHECK(f.image().pages_in == 2);
    CHECK(f.image().pages_out == 20);
    BendWord at = list;
    for (int i = 0; i < 5999; ++i) at = tail(at);
    head(at) += 3;
    want[5999] += 3;
    list = f.call(kSame, list);
    CHECK(f.image().pages_in == 3);
    CHECK(f.heads(list) == want);
    f.drop(list);
  });
}

TEST_CASE("image: a list that grows and shrinks on either side keeps its elements") {
  on_both([](Fixture& f) {
    std::vector<uint32_t> want = counting(kNodes);
    BendWord list = f.list(want);
    for (int turn = 0; turn < 12; ++turn) {
      if (turn % 3 != 2) {
        list = f.call(kPush, list);
        want.insert(want.begin(), 7);
      } else {
        list = f.call(kPop, list);
        want.erase(want.begin());
      }
      if (turn % 4 == 1) {
        BendWord fresh = f.list({42});
        tail(fresh) = list;
        list = fresh;
        want.insert(want.begin(), 42);
      }
      if (turn == 6) {   // much longer: the shadow grows
        std::vector<uint32_t> more = counting(2 * kNodes);
        BendWord front = f.list(more), last = front;
        while (tail(last)) last = tail(last);
        tail(last) = list;
        list = front;
        want.insert(want.begin(), more.begin(), more.end());
      }
      REQUIRE(f.heads(list) == want);
    }
    f.drop(list);
    // A small value in between, and another large one: nothing of the old is taken for new.
    BendWord small = f.call(kBump, f.list({1, 2}));
    CHECK(f.heads(small) == std::vector<uint32_t>{2, 3});
    f.drop(small);
    std::vector<uint32_t> other = counting(kNodes);
    for (uint32_t& x : other) x += 5;
    BendWord again = f.call(kSame, f.list(other));
    CHECK(f.heads(again) == other);
    f.drop(again);
  });
}
