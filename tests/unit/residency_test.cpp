// Arrays that stay on the device between calls: with the emulator, whose device memory is another copy, and through the stand-in driver.
#include <pthread.h>

#include <vector>

#include "device_fixture.h"

using namespace bendc;
using namespace bendc::test;

namespace {

const BendLayout kU32 = {4, 0, 0, 0, nullptr};
const BendSlot kSlot = {0, BEND_SLOT_ARRAY, &kU32};
const BendLayout kArray = {8, 0, 1, 0, &kSlot};
const BendLayout kNat = {8, 0, 0, 0, nullptr};
const BendLayout kNothing = {8, 0, 0, 0, nullptr};   // the argument is borrowed

// Segments: 0 adds 1 to each slot and returns the array; 1 adds 1 to slot 0 and returns a number; 2 makes an array of 2^n slots, slot i = i;
// 3 returns slot 5.
uint64_t run(BendDeviceControl* c, uint32_t segment, uint64_t argument) {
  auto slots = [](uint64_t array) { return reinterpret_cast<uint32_t*>((array & BEND_ARRAY_ADDRESS) + 16); };
  if (segment == 0) {
    for (uint64_t i = 0; i < 1ull << (argument >> 56); ++i) slots(argument)[i] += 1;
    return argument;
  }
  if (segment == 1) return slots(argument)[0] += 1;
  if (segment == 3) return slots(argument)[5];
  uint64_t block = c->heap_cursor;
  uint64_t array = block | argument << 56;
  c->heap_cursor += 16 + (4ull << argument);
  *reinterpret_cast<uint32_t*>(block) = 1;
  for (uint32_t i = 0; i < 1u << argument; ++i) slots(array)[i] = i;
  return array;
}
void machine(void* control, uint32_t thread, uint32_t) { run_root(control, thread, run); }

enum Entry { kTouch, kFirst, kMake, kPeek, kLook };
const BendGpuEntry kEntries[] = {
    {"touch", "a.bend:1", nullptr, 0, 0, kArray, kArray, kArray},
    {"first", "a.bend:2", nullptr, 1, 0, kArray, kArray, kNat},
    {"make", "a.bend:3", nullptr, 2, 0, kNat, kNat, kArray},
    {"peek", "a.bend:4", nullptr, 3, 0, kArray, kNothing, kNat},
    {"look", "a.bend:5", nullptr, 3, BEND_GPU_READS_ONLY, kArray, kNothing, kNat},
};
const char kPtx[] = "not read by the stand-in";
const BendGpuCode kCode = {BEND_GPU_PTX, 70, kPtx, sizeof kPtx};
const BendGpuProgram kProgram = {64, 5, 0, 1, kEntries, nullptr, &kCode, nullptr, machine};

struct Fixture : DeviceFixture {
  explicit Fixture(bool emulated, uint64_t memory = 64u << 20) : DeviceFixture(&kProgram, emulated, memory) {}
  BendWord array(uint64_t depth, uint32_t first) {
    BendWord a = bend_array_alloc(&worker, depth, &kU32, nullptr);
    for (uint32_t i = 0; i < 1u << depth; ++i) slots(a)[i] = first + i;
    return a;
  }
  void drop(BendWord a) { bend_drop_array(&worker, a, &kU32); }
  static uint32_t& count(BendWord word) { return *reinterpret_cast<uint32_t*>(word & BEND_ARRAY_ADDRESS); }
  static volatile uint32_t* slots(BendWord array) { return reinterpret_cast<uint32_t*>((array & BEND_ARRAY_ADDRESS) + 16); }
};

constexpr uint64_t kDepth = 20;                       // 4 MiB
constexpr uint64_t kGranules = (4ull << kDepth) >> 16;
constexpr uint32_t kPerGranule = 1u << 14;            // slots

template <class Body>
void on_both(Body body, uint64_t memory = 64u << 20) {
  for (bool emulated : {true, false}) {
    CAPTURE(emulated);
    Fixture f(emulated, memory);
    body(f);
    CHECK(f.check().live_nodes == 0);
    CHECK(f.residency().count == 0);
  }
}

}  // namespace

TEST_CASE("residency: an array untouched between two calls does not move") {
  on_both([](Fixture& f) {
    BendWord a = f.call(kTouch, f.array(kDepth, 5));
    CHECK(f.residency().granules_in == kGranules);
    uint64_t in = f.space().moved_in, out = f.space().moved_out;
    for (int i = 0; i < 3; ++i) a = f.call(kTouch, a);
    CHECK(f.residency().granules_in == kGranules);
    CHECK(f.residency().granules_out == 0);
    CHECK(f.space().moved_in - in < 3 * 4096);
    CHECK(f.space().moved_out - out < 3 * 4096);
    CHECK(f.slots(a)[0] == 9);
    CHECK(f.slots(a)[(1u << kDepth) - 1] == (1u << kDepth) + 8);
    CHECK(f.residency().granules_out == 2);
    f.drop(a);
  });
}

TEST_CASE("residency: a call that only reads leaves an array on both sides") {
  on_both([](Fixture& f) {
    BendWord a = f.array(kDepth, 0);
    CHECK(f.call(kLook, a) == 5);
    CHECK(f.residency().granules_in == kGranules);
    for (uint32_t i = 0; i < 1u << kDepth; ++i)
      if (f.slots(a)[i] != i) FAIL_CHECK("slot " << i);
    CHECK(f.residency().faults == 0);
    CHECK(f.call(kLook, a) == 5);
    CHECK(f.residency().granules_in == kGranules);
    f.slots(a)[5] = 7;
    CHECK(f.residency().faults == 1);
    CHECK(f.call(kLook, a) == 7);
    CHECK(f.residency().granules_in == kGranules + 1);
    // What another call has written is on the device alone, also after a call that reads.
    a = f.call(kTouch, a);
    CHECK(f.call(kLook, a) == 8);
    CHECK(f.residency().granules_out == 0);
    CHECK(f.slots(a)[5] == 8);
    CHECK(f.residency().granules_out == 1);
    CHECK(f.slots(a)[kPerGranule] == kPerGranule + 1);
    f.drop(a);
  });
}

TEST_CASE("residency: what the host reads comes once, what it writes goes once") {
  on_both([](Fixture& f) {
    BendWord a = f.call(kTouch, f.array(kDepth, 0));
    for (int i = 0; i < 3; ++i) CHECK(f.slots(a)[5 * kPerGranule + i] == 5 * kPerGranule + i + 1);
    CHECK(f.residency().granules_out == 1);
    f.slots(a)[9 * kPerGranule] = 100;
    f.slots(a)[5 * kPerGranule] = 200;
    CHECK(f.residency().granules_out == 2);
    a = f.call(kTouch, a);
    CHECK(f.residency().granules_in == kGranules + 2);
    CHECK(f.slots(a)[9 * kPerGranule] == 101);
    CHECK(f.slots(a)[9 * kPerGranule + 1] == 9 * kPerGranule + 3);
    CHECK(f.slots(a)[5 * kPerGranule] == 201);
    for (uint32_t i = 10 * kPerGranule; i < 1u << kDepth; ++i)
      if (f.slots(a)[i] != i + 2) FAIL_CHECK("slot " << i);
    f.drop(a);
  });
}

TEST_CASE("residency: a block that the call consumes dies, and its memory is ordinary again") {
  on_both([](Fixture& f) {
    for (int i = 0; i < 3; ++i) {
      CHECK(f.call(kFirst, f.array(kDepth, 41)) == 42);
      CHECK(f.check().live_nodes == 0);
      CHECK(f.space().places.floor() == f.space().heap_bytes / 512 * 512);
    }
    f.drop(f.call(kTouch, f.array(kDepth, 1)));   // dies with all its bytes on the device
    BendWord a = f.array(kDepth, 3);              // the heap's cached block again
    CHECK(f.slots(a)[77] == 80);
    f.drop(a);
  });
}

TEST_CASE("residency: a block with handles on the host shows them what the device wrote") {
  on_both([](Fixture& f) {
    BendWord a = f.array(kDepth, 10);
    f.count(a) = 2;
    CHECK(f.call(kFirst, a) == 11);
    CHECK(f.count(a) == 1);
    CHECK(f.slots(a)[0] == 11);
    f.count(a) = 3;
    BendWord b = f.call(kTouch, a);
    CHECK(b == a);
    CHECK(f.count(a) == 3);
    CHECK(f.slots(a)[0] == 12);
    for (int i = 0; i < 3; ++i) f.drop(a);
  });
}

TEST_CASE("residency: a borrowed array stays the caller's") {
  on_both([](Fixture& f) {
    BendWord a = f.array(kDepth, 10);
    for (int i = 0; i < 3; ++i) {
      CHECK(f.call(kPeek, a) == 15);
      CHECK(f.count(a) == 1);
      CHECK(f.check().live_nodes == 1);
    }
    CHECK(f.residency().granules_in == kGranules);
    CHECK(f.slots(a)[6] == 16);
    a = f.call(kTouch, a);
    CHECK(f.call(kPeek, a) == 16);
    f.drop(a);
  });
}

TEST_CASE("residency: an array that the device made stays there") {
  on_both([](Fixture& f) {
    BendWord a = f.call(kMake, kDepth);
    BendWord b = f.call(kMake, kDepth);
    CHECK(f.residency().adopted == 2);
    CHECK(f.residency().granules_out == 0);
    a = f.call(kTouch, a);
    CHECK(f.residency().granules_in == 0);
    CHECK(f.slots(a)[3 * kPerGranule] == 3 * kPerGranule + 1);
    CHECK(f.slots(b)[3 * kPerGranule] == 3 * kPerGranule);
    CHECK(f.residency().granules_out == 2);
    for (uint32_t i = 0; i < 1u << kDepth; ++i)
      if (f.slots(b)[i] != i) FAIL_CHECK("slot " << i);
    CHECK(f.residency().faults < 20);   // reads in order fetch ahead
    f.drop(a);
    f.drop(b);
  });
}

TEST_CASE("residency: an array read in any order comes in few fetches") {
  on_both([](Fixture& f) {
    constexpr uint64_t depth = kDepth + 4;
    BendWord a = f.call(kTouch, f.array(depth, 0));
    for (uint32_t phase = 0; phase < 4; ++phase)
      for (uint32_t i = phase * kPerGranule; i < 1u << depth; i += 4 * kPerGranule)
        if (f.slots(a)[i] != i + 1) FAIL_CHECK("slot " << i);
    CHECK(f.residency().granules_out == kGranules << 4);
    CHECK(f.residency().faults < 40);
    // Writes in order, too; a write here and there takes its own granule only.
    uint64_t faults = f.residency().faults;
    for (uint32_t i = 0; i < 1u << (depth - 1); ++i) f.slots(a)[i] = i;
    CHECK(f.residency().faults - faults < 80);
    f.slots(a)[(1u << depth) - 1] = 0;
    uint64_t in = f.residency().granules_in;
    a = f.call(kTouch, a);
    CHECK(f.residency().granules_in - in <= (kGranules << 3) + 1 + 16);
    f.drop(a);
  }, 256u << 20);
}

TEST_CASE("residency: idle blocks make room on the device") {
  on_both([](Fixture& f) {
    std::vector<BendWord> arrays;
    for (uint32_t i = 0; i < 24; ++i) arrays.push_back(f.call(kTouch, f.array(kDepth, i)));   // 96 MiB through 64
    CHECK(f.residency().evicted > 0);
    for (uint32_t turn = 0; turn < 2; ++turn)
      for (BendWord& a : arrays) a = f.call(kTouch, a);
    for (uint32_t i = 0; i < 24; ++i) {
      CHECK(f.slots(arrays[i])[12345] == 12345 + i + 3);
      f.drop(arrays[i]);
    }
  });
}

TEST_CASE("residency: threads that touch one block at once see one copy of it") {
  on_both([](Fixture& f) {
    for (int turn = 0; turn < 4; ++turn) {
      BendWord a = f.call(kTouch, f.array(kDepth, 0));
      struct Job {
        BendWord array;
        uint32_t lane;
        uint64_t wrong;
      } jobs[4];
      pthread_t threads[4];
      for (uint32_t lane = 0; lane < 4; ++lane) {
        jobs[lane] = {a, lane, 0};
        auto body = [](void* raw) -> void* {
          Job* job = static_cast<Job*>(raw);
          for (uint32_t i = job->lane; i < 1u << kDepth; i += 4) {
            job->wrong += Fixture::slots(job->array)[i] != i + 1;
            if (i % 3 == 0) Fixture::slots(job->array)[i] = i + 2;
          }
          return nullptr;
        };
        REQUIRE(pthread_create(&threads[lane], nullptr, body, &jobs[lane]) == 0);
      }
      for (uint32_t lane = 0; lane < 4; ++lane) {
        pthread_join(threads[lane], nullptr);
        CHECK(jobs[lane].wrong == 0);
      }
      a = f.call(kTouch, a);
      for (uint32_t i = 0; i < 1u << kDepth; ++i)
        if (f.slots(a)[i] != (i % 3 == 0 ? i + 3 : i + 2)) FAIL_CHECK("slot " << i);
      f.drop(a);
    }
  });
}

TEST_CASE("residency: a driver that locks no pages gives the same answers") {
  Fixture f(false);
  f.fake.fail = "cuMemHostRegister";
  f.fake.fail_at = 1;
  f.fake.code = 801;
  f.configure();
  BendWord a = f.array(kDepth, 0);
  for (uint32_t i = 0; i < 3; ++i) {
    a = f.call(kTouch, a);
    CHECK(f.slots(a)[99] == 100 + i);
  }
  f.drop(a);
  CHECK(f.check().live_nodes == 0);
}

TEST_CASE("residency: any driver function may fail at any call") {
  for (const char* function : {"cuCtxSetCurrent", "cuMemHostRegister", "cuMemHostUnregister", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemcpyDtoDAsync", "cuStreamSynchronize", "cuLaunchKernel"})
    for (int at = 1; at <= 12; ++at) {
      auto [status, text] = run_in_child([&] {
        Fixture f(false);
        f.fake.fail = function;
        f.fake.fail_at = at;
        f.fake.code = 700;
        f.configure();
        BendWord a = f.array(kDepth, 0), result = 0;
        if (bend_gpu_call(&f.worker, &kEntries[kTouch], &a, &result) == 0) return f.slots(a)[77] == 77 ? 11 : 21;
        BendWord n = kDepth, made = 0;
        if (f.slots(result)[77] != 78) return 22;
        if (bend_gpu_call(&f.worker, &kEntries[kMake], &n, &made) == 0) return 11;
        if (f.slots(made)[77] != 77) return 23;
        f.drop(made);
        f.drop(result);
        return f.check().live_nodes == 0 ? 10 : 24;
      });
      CAPTURE(function);
      CAPTURE(at);
      CAPTURE(text);
      CHECK((status == 1 || status == 10 || status == 11));
      if (status == 1) CHECK((text.find("bend: the GPU failed in") != std::string::npos || text.find("cannot run on a GPU: cu") != std::string::npos));
    }
}

TEST_CASE("residency: places are taken from the top and given back in any order") {
  rt::gpu::Places places;
  places.open(10000);
  CHECK(places.floor() == 9728);
  CHECK(places.take(600, 0) == 8704);
  CHECK(places.take(1, 0) == 8192);
  CHECK(places.take(512, 7680) == 7680);
  CHECK(places.take(1, 7680) == UINT64_MAX);
  places.give(8192);
  CHECK(places.take(1024, 7000) == UINT64_MAX);
  CHECK(places.take(512, 7680) == 8192);
  places.give(8704);
  CHECK(places.floor() == 7680);
  CHECK(places.take(1024, 7680) == 8704);
  for (uint64_t at : {7680, 8704, 8192}) places.give(at);
  CHECK(places.floor() == 9728);
  places.give(8192);
  CHECK(places.take(9728, 0) == 0);
  places.close();
}
