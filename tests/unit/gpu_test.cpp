// The GPU side of the runtime with a hand-written machine: emulated, and through the stand-in driver with every function failing in turn.
#include <doctest/doctest.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string>
#include <vector>

#include "device_fixture.h"
#include "fake_cuda/fake_cuda.h"
#include "gpu_machine.h"
#include "runtime/gpu/gpu.h"
#include "runtime/gpu/kernels.h"
#include "runtime/gpu/overlap.h"
#include "runtime/gpu/rounds.h"
#include "runtime_fixture.h"

using namespace bendc;
using namespace bendc::test;

namespace {

// List<U32>: Nil = 0, Con = node { count, head, tail } | 1.
extern const BendDataInfo kList;
const BendSlot kTail = {8, BEND_SLOT_DATA, &kList};
const BendCtorInfo kListCtors[] = {{BEND_CTOR_NULLARY, 0, {}, "Nil"}, {BEND_CTOR_NODE, 0, {16, 0, 1, 0, &kTail}, "Con"}};
const BendDataInfo kList = {2, 1, kListCtors, "List"};

const BendLayout kU32 = {4, 0, 0, 0, nullptr};
const BendSlot kListSlot = {0, BEND_SLOT_DATA, &kList};
const BendLayout kListValue = {8, 0, 1, 0, &kListSlot};
const BendSlot kArraySlot = {0, BEND_SLOT_ARRAY, &kU32};

// sum { | u32 | list }: tag, then a slot of 8 bytes
const BendSlot kInSum = {8, BEND_SLOT_DATA, &kList};
const BendLayout kVariants[] = {{16, 0, 0, 0, nullptr}, {16, 0, 1, 0, &kInSum}};
const BendSumInfo kSum = {2, 0, kVariants};

// echo: { list, list, array of list, pad } and { sum, array of u32, array of u32 }
const BendSlot kEchoSlots[] = {{0, BEND_SLOT_DATA, &kList}, {8, BEND_SLOT_DATA, &kList}, {16, BEND_SLOT_ARRAY, &kListValue}};
const BendLayout kEcho = {32, 0, 3, 0, kEchoSlots};
const BendSlot kMixedSlots[] = {{0, BEND_SLOT_SUM, &kSum}, {16, BEND_SLOT_ARRAY, &kU32}, {24, BEND_SLOT_ARRAY, &kU32}};
const BendLayout kMixed = {32, 0, 3, 0, kMixedSlots};
const BendLayout kNat = {8, 0, 0, 0, nullptr};
const BendLayout kArray = {8, 0, 1, 0, &kArraySlot};

enum Entry { kFib, kEchoLists, kEchoMixed, kFailing, kSilent, kTouch, kRefused };
const BendGpuEntry kEntries[] = {
    {"fib", "fib.bend:3", nullptr, 0, 0, kNat, kNat, kNat},
    {"echo", "echo.bend:1", nullptr, 2, 0, kEcho, kEcho, kEcho},
    {"mixed", "echo.bend:2", nullptr, 2, 0, kMixed, kMixed, kMixed},
    {"failing", "fail.bend:1", nullptr, 3, 0, kNat, kNat, kNat},
    {"silent", "fail.bend:2", nullptr, 4, 0, kNat, kNat, kNat},
    {"touch", "touch.bend:1", nullptr, 5, 0, kArray, kArray, kArray},
    {"shows", "show.bend:9", "`shows` uses `F32.show`, which exists on the host only", 0, 0, kNat, kNat, kNat},
};
const char* const kSites[] = {"fail.bend:10", "fail.bend:11"};
// Not read by the stand-in; enough for the runtime to make its kernels overlap.
const char kPtx[] = ".version 6.2\n.target sm_70\n" BEND_OVERLAP_WAIT "\n";
const BendGpuCode kCode = {BEND_GPU_PTX, 70, kPtx, sizeof kPtx};
const BendGpuProgram kProgram = {kStride, 7, 2, 1, kEntries, kSites, &kCode, nullptr, machine_round};

struct GpuFixture : RuntimeFixture {
  explicit GpuFixture(rt::gpu::Use use, uint64_t seed = 0) {
    program.gpu = &kProgram;
    runtime->config.gpu.use = use;
    runtime->config.gpu.seed = seed;
    runtime->config.gpu.memory = 64u << 20;
    runtime->config.gpu.threshold = 3;
    runtime->config.gpu.library = BENDC_FAKE_CUDA;
  }
  ~GpuFixture() { close(); }
  bool open(const BendGpuProgram* gpu = &kProgram) {
    bool failed = false;
    runtime->gpu = rt::gpu::gpu_open(runtime->config.gpu, gpu, &failed);
    return !failed && runtime->gpu;
  }
  void close() {
    rt::gpu::gpu_close(runtime->gpu);
    runtime->gpu = nullptr;
  }
  // Whether the body ends by a run-time error, which returns here.
  template <class Body>
  bool fails(Body body) {
    runtime->config.returns_errors = true;
    jmp_buf here;
    if (setjmp(here) != 0) return true;
    runtime->error_exit = &here;
    body();
    return false;
  }
  uint32_t call(Entry entry, void* payload, void* result) { return bend_gpu_call(&worker, &kEntries[entry], payload, result); }

  BendWord list(std::vector<uint32_t> heads, BendWord tail = 0) {
    for (size_t i = heads.size(); i > 0; --i) {
      BendWord node = this->node(16, heads[i - 1]) | 1;
      put(node, 8, tail);
      tail = node;
    }
    return tail;
  }
  static std::vector<uint32_t> heads(BendWord list) {
    std::vector<uint32_t> out;
    for (; list & ~7ull; std::memcpy(&list, reinterpret_cast<char*>(list & ~7ull) + 8, 8)) out.push_back(*reinterpret_cast<uint32_t*>((list & ~7ull) + 4));
    return out;
  }
  static uint32_t& count(BendWord word) { return *reinterpret_cast<uint32_t*>(word & BEND_ARRAY_ADDRESS & ~7ull); }
  static uint32_t* slots(BendWord array) { return reinterpret_cast<uint32_t*>((array & BEND_ARRAY_ADDRESS) + 16); }
};

uint64_t fib(uint64_t n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

struct Fake {
  Fake() {
    library = dlopen(BENDC_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library);
    configure = reinterpret_cast<FakeCudaConfigure>(dlsym(library, "fake_cuda_configure"));
    calls = reinterpret_cast<FakeCudaCalls>(dlsym(library, "fake_cuda_calls"));
    held = reinterpret_cast<FakeCudaHeld>(dlsym(library, "fake_cuda_held"));
    config.round = machine_round;
  }
  void* library;
  FakeCudaConfigure configure;
  FakeCudaCalls calls;
  FakeCudaHeld held;
  FakeCuda config;
};

void check_echo(GpuFixture& f) {
  // One list is shared by two arguments and by a slot of the array; the other tails are their own.
  BendWord shared = f.list({1, 2, 3});
  f.count(shared) = 3;
  BendWord longer = f.list({7, 8}, shared);
  BendWord array = bend_array_alloc(&f.worker, 1, &kListValue, nullptr);
  reinterpret_cast<BendWord*>(f.slots(array))[0] = shared;
  reinterpret_cast<BendWord*>(f.slots(array))[1] = f.list({9});
  BendWord payload[4] = {shared, longer, array, 5};
  BendWord result[4] = {};
  REQUIRE(f.call(kEchoLists, payload, result) == 1);
  CHECK(f.heads(result[0]) == std::vector<uint32_t>{1, 2, 3});
  CHECK(f.heads(result[1]) == std::vector<uint32_t>{7, 8, 1, 2, 3});
  CHECK(f.count(result[0]) == 3);
  BendWord* slots = reinterpret_cast<BendWord*>(f.slots(result[2]));
  CHECK(slots[0] == result[0]);
  CHECK(f.heads(slots[1]) == std::vector<uint32_t>{9});
  CHECK(result[3] == 5);
  CHECK(f.check().live_nodes == 7);
  bend_drop_ref(&f.worker, result[0], &kList);
  bend_drop_ref(&f.worker, result[1], &kList);
  bend_drop_array(&f.worker, result[2], &kListValue);
  CHECK(f.check().live_nodes == 0);
}

void check_mixed(GpuFixture& f) {
  for (uint64_t depth : {3, 15}) {
    BendWord array = bend_array_alloc(&f.worker, depth, &kU32, nullptr);
    for (uint32_t i = 0; i < 1u << depth; ++i) f.slots(array)[i] = i * 3;
    f.count(array) = 2;
    struct {
      uint32_t tag, pad;
      BendWord list, one, two;
    } payload = {1, 0, f.list({4}), array, array}, result = {};
    static_assert(sizeof payload == 32);
    REQUIRE(f.call(kEchoMixed, &payload, &result) == 1);
    CHECK(result.tag == 1);
    CHECK(f.heads(result.list) == std::vector<uint32_t>{4});
    CHECK(result.one == result.two);
    CHECK(f.count(result.one) == 2);
    CHECK(f.slots(result.one)[(1u << depth) - 1] == ((1u << depth) - 1) * 3);
    bend_drop_ref(&f.worker, result.list, &kList);
    bend_drop_array(&f.worker, result.one, &kU32);
    bend_drop_array(&f.worker, result.two, &kU32);
    CHECK(f.check().live_nodes == 0);
    // The other variant holds no reference: its bits stay bits.
    payload = {0, 0, 0x123456789, 0, 0};
    REQUIRE(f.call(kEchoMixed, &payload, &result) == 1);
    CHECK(result.list == 0x123456789);
  }
}

void check_touch(GpuFixture& f) {
  for (uint64_t depth : {2, 16}) {
    BendWord array = bend_array_alloc(&f.worker, depth, &kU32, nullptr);
    for (uint32_t i = 0; i < 1u << depth; ++i) f.slots(array)[i] = i;
    BendWord result = 0;
    BendWord payload = array;
    REQUIRE(f.call(kTouch, &payload, &result) == 1);
    CHECK(f.slots(result)[3] == 4);
    CHECK(f.check().live_nodes == 1);
    // With a second handle on the host the block stays where it is, and both see the new contents.
    f.count(result) = 2;
    BendWord other = result;
    payload = other;
    BendWord again = 0;
    REQUIRE(f.call(kTouch, &payload, &again) == 1);
    CHECK(again == other);
    CHECK(f.count(again) == 2);
    CHECK(f.slots(other)[(1u << depth) - 1] == (1u << depth) + 1);
    bend_drop_array(&f.worker, again, &kU32);
    bend_drop_array(&f.worker, other, &kU32);
    CHECK(f.check().live_nodes == 0);
  }
}

}  // namespace

TEST_CASE("gpu: bend_flip reads and writes the control block where it lies") {
  const std::string ptx = rt::gpu::kRuntimePtx;
  auto uses = [&](size_t offset) { return ptx.find("[%d1+" + std::to_string(offset) + "]") != std::string::npos; };
  CHECK(offsetof(BendDeviceControl, in_queue) == 0);
  CHECK(offsetof(BendDeviceControl, out_queue) == 8);
  CHECK(uses(offsetof(BendDeviceControl, in_count)));
  CHECK(uses(offsetof(BendDeviceControl, queue_capacity)));
  CHECK(uses(offsetof(BendDeviceControl, mode)));
  CHECK(uses(offsetof(BendDeviceControl, budget)));
  CHECK(uses(offsetof(BendDeviceControl, out_count)));
  CHECK(uses(offsetof(BendDeviceControl, next_task)));
  CHECK(uses(offsetof(BendDeviceControl, error)));
  CHECK(uses(offsetof(BendDeviceControl, rounds)));
  CHECK(uses(offsetof(BendDeviceControl, target)));
  CHECK(uses(offsetof(BendDeviceControl, sequential_budget)));
  CHECK(uses(offsetof(BendDeviceControl, tasks)));
  CHECK(uses(offsetof(BendDeviceControl, widest)));
  CHECK(uses(offsetof(BendDeviceControl, middle)));
  CHECK(uses(offsetof(BendDeviceControl, middle_budget)));
  CHECK(uses(offsetof(BendDeviceControl, most_spread)));
  CHECK(uses(offsetof(BendDeviceControl, spread)));
  CHECK(uses(offsetof(BendDeviceControl, resident_threads)));
  CHECK(uses(offsetof(BendDeviceControl, again_budget)));
  CHECK(uses(offsetof(BendDeviceControl, wide_trees)));
  CHECK(uses(offsetof(BendDeviceControl, groups_wanted)));
}

TEST_CASE("gpu: the mode and the spread of a round follow from the width of the frontier") {
  BendDeviceControl c = {};
  c.resident_threads = 1024;
  c.target = 1024;
  c.sequential_budget = 512;
  c.again_budget = 128;
  c.middle = 64;
  c.middle_budget = 32;
  c.most_spread = BEND_LANE_BITS;
  struct Row {
    uint32_t before, next;
    bool trees;
    BendMode mode;
    uint32_t budget, spread;
  };
  const Row rows[] = {
      {0, 1, false, BEND_MODE_PARALLEL, 0, 5},         // the root
      {1, 1, false, BEND_MODE_MIDDLE, 32, 5},          // a chain
      {1, 1, true, BEND_MODE_PARALLEL, 0, 5},          // what waited for a perfect tree: a fork tree's root, perhaps
      {2, 4, false, BEND_MODE_PARALLEL, 0, 5},         // a tree that grows
      {40, 50, false, BEND_MODE_MIDDLE, 32, 4},        // by a quarter or less: a chain of few
      {40, 51, false, BEND_MODE_PARALLEL, 0, 4},
      {900, 65, false, BEND_MODE_PARALLEL, 0, 3},      // many enough that their forks fill the device sooner
      {900, 64, false, BEND_MODE_PARALLEL, 0, 4},      // the next of many trees, perhaps
      {64, 64, false, BEND_MODE_MIDDLE, 32, 4},
      {900, 513, false, BEND_MODE_PARALLEL, 0, 0},
      {512, 1024, false, BEND_MODE_SEQUENTIAL, 512, 0},  // a task a thread
      {5000, 4000000000u, false, BEND_MODE_SEQUENTIAL, 128, 0},   // what is left after one such round
  };
  for (const Row& row : rows) {
    c.in_count = row.next;
    rt::gpu::choose_mode(&c, row.before, row.trees);
    CHECK(c.mode == row.mode);
    CHECK(c.budget == row.budget);
    CHECK(c.spread == row.spread);
  }
  // Every fork to the next round.
  c.middle = 0;
  c.target = UINT32_MAX;
  for (uint32_t next : {1u, 64u, 1024u, 100000u}) {
    c.in_count = next;
    rt::gpu::choose_mode(&c, next, false);
    CHECK(c.mode == BEND_MODE_PARALLEL);
  }
}

TEST_CASE("gpu: every required driver function is asked for, and named when missing") {
  std::vector<std::pair<std::string, bool>> symbols;
#define BENDC_CUDA(name, symbol, required, parameters) symbols.push_back({symbol, required});
#include "runtime/gpu/driver.def"
#undef BENDC_CUDA
  for (const auto& [missing, required] : symbols) {
    rt::gpu::Driver driver = {};
    rt::Message why;
    auto find = [](void* context, const char* symbol) -> void* { return *static_cast<const std::string*>(context) == symbol ? nullptr : context; };
    bool filled = rt::gpu::driver_fill(&driver, find, const_cast<std::string*>(&missing), &why);
    CHECK(filled == !required);
    if (required) CHECK(std::string(why.data(), why.size()).find("`" + missing + "`") != std::string::npos);
  }
  Fake fake;
  for (const auto& [symbol, required] : symbols) CHECK_MESSAGE(dlsym(fake.library, symbol.c_str()), symbol);
}

TEST_CASE("gpu: emulated fork trees in many schedules") {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    GpuFixture f(rt::gpu::Use::Emulate, seed);
    f.runtime->config.gpu.fork = seed % 7 == 5 ? rt::gpu::Fork::Host : seed % 7 == 6 ? rt::gpu::Fork::Sequential : rt::gpu::Fork::Auto;
    REQUIRE(f.open());
    for (uint64_t n : {0, 1, 2, 11, 18}) {
      uint64_t result = 0;
      REQUIRE(f.call(kFib, &n, &result) == 1);
      CHECK(result == fib(n));
    }
  }
}

TEST_CASE("gpu: values cross to the emulated device and back") {
  GpuFixture f(rt::gpu::Use::Emulate);
  REQUIRE(f.open());
  check_echo(f);
  check_mixed(f);
  check_touch(f);
}

TEST_CASE("gpu: a long list crosses without a deep stack") {
  GpuFixture f(rt::gpu::Use::Emulate);
  REQUIRE(f.open());
  std::vector<uint32_t> heads(200000);
  for (size_t i = 0; i < heads.size(); ++i) heads[i] = static_cast<uint32_t>(i);
  BendWord payload[4] = {f.list(heads), 0, 0, 0};
  BendWord result[4];
  REQUIRE(f.call(kEchoLists, payload, result) == 1);
  CHECK(f.heads(result[0]) == heads);
  CHECK(f.check().live_nodes == heads.size());
  bend_drop_ref(&f.worker, result[0], &kList);
}

TEST_CASE("gpu: steps run the rounds of few tasks, and leave those of more to rounds") {
  Fake fake;
  fake.configure(&fake.config);
  GpuFixture f(rt::gpu::Use::Require);
  REQUIRE(f.open());
  for (uint64_t n : {3, 3, 3, 20, 3, 3, 2, 18, 1, 19}) {
    uint64_t result = 0;
    REQUIRE(f.call(kFib, &n, &result) == 1);
    CHECK(result == fib(n));
    CHECK((*f.runtime->gpu->widths <= BEND_STEP_TASKS) == (n <= 3));
  }
}

TEST_CASE("gpu: the stand-in driver runs calls and gets everything back") {
  Fake fake;
  fake.configure(&fake.config);
  {
    GpuFixture f(rt::gpu::Use::Require);
    REQUIRE(f.open());
    for (uint64_t n : {1, 20, 21, 20, 2}) {
      uint64_t result = 0;
      REQUIRE(f.call(kFib, &n, &result) == 1);
      CHECK(result == fib(n));
    }
    check_echo(f);
    check_mixed(f);
    check_touch(f);
    CHECK(f.runtime->gpu->counters.calls == 14);
    f.close();
  }
  CHECK(fake.held(nullptr) == 0);
}

TEST_CASE("gpu: of a hundred programs in one process the context is all that stays, however they end") {
  Fake fake;
  fake.configure(&fake.config);
  rt::gpu::GpuConfig config = {};
  config.library = BENDC_FAKE_CUDA;
  rt::gpu::Device device;
  rt::Message why;
  REQUIRE(rt::gpu::device_probe(&device, config, &why));
  REQUIRE(device.driver.context_retain(&device.context, device.ordinal) == 0);
  const int null = open("/dev/null", O_WRONLY | O_CLOEXEC), err = dup(2);
  for (int i = 0; i < 100; ++i) {
    GpuFixture f(rt::gpu::Use::Require);
    REQUIRE(f.open());
    uint64_t n = 18, result = 0;
    switch (i % 5) {
      case 0:   // ends when its device has started, or while it does
        while (i % 2 == 0 && !__atomic_load_n(&f.runtime->gpu->ready, __ATOMIC_ACQUIRE)) sched_yield();
        break;
      case 1:
        REQUIRE(f.call(kFib, &n, &result) == 1);
        CHECK(result == fib(18));
        break;
      case 2: {   // a block that stays on the device
        BendWord array = bend_array_alloc(&f.worker, 20, &kU32, nullptr), back = 0;
        REQUIRE(f.call(kTouch, &array, &back) == 1);
        break;
      }
      case 3: dup2(null, 2); CHECK(f.fails([&] { (void)f.call(kFailing, &n, &result); })); dup2(err, 2); break;
      case 4: dup2(null, 2); CHECK(f.fails([&] { (void)f.call(kSilent, &n, &result); })); dup2(err, 2); break;
    }
    f.close();
    for (const char* kind : {"modules", "memory", "host memory", "registered memory", "streams", "events", "graphs", "executable graphs", "links", "unfinished work"}) {
      CAPTURE(i);
      CAPTURE(kind);
      CHECK(fake.held(kind) == 0);
    }
    CHECK(fake.held("contexts") == 1);
  }
  close(null);
  close(err);
  CHECK(fake.calls("cuModuleLoadDataEx") >= 160);
  device.driver.context_release(device.ordinal);
}

TEST_CASE("gpu: rounds run without graphs too, and a graph that fails ends the call") {
  Fake fake;
  for (const char* function : {"cuStreamBeginCapture", "cuStreamEndCapture", "cuGraphInstantiateWithFlags", "cuGraphLaunch"}) {
    auto [status, text] = run_in_child([&] {
      fake.config.fail = function;
      fake.config.code = 700;
      fake.configure(&fake.config);
      GpuFixture f(rt::gpu::Use::Require);
      if (!f.open()) return 20;
      uint64_t n = 20, result = 0;
      return f.call(kFib, &n, &result) == 1 && result == fib(n) ? 10 : 21;
    });
    CAPTURE(function);
    CAPTURE(text);
    CHECK(status == (std::string(function) == "cuGraphLaunch" ? 1 : 10));
  }
}

TEST_CASE("gpu: kernels overlap from compute capability 9.0 on, where the driver takes their code and records them") {
  CHECK(rt::gpu::overlapping_ptx(".version 6.2\n.target sm_70\nret;\n") == nullptr);
  char* text = rt::gpu::overlapping_ptx(".version 6.0\n.target sm_70\n  // griddepcontrol.wait;\n  // griddepcontrol.launch_dependents;\n");
  REQUIRE(text);
  CHECK(std::string(text) == ".version 7.8\n.target sm_90\n     griddepcontrol.wait;\n     griddepcontrol.launch_dependents;\n");
  std::free(text);
  struct Row {
    int major;
    const char* fail;
    int fail_at;
    bool overlaps, tried;
  };
  // The runtime's module is loaded first, then the program's; each is tried as it stands when the newer text is refused.
  const Row rows[] = {{9, nullptr, 0, true, true}, {8, nullptr, 0, false, false}, {9, "cuModuleLoadDataEx", 1, false, false}, {9, "cuModuleLoadDataEx", 2, false, false},
                      {9, "cuStreamEndCapture", 1, false, true}, {9, "cuLaunchKernelEx", 1, false, true}};
  for (const Row& row : rows) {
    Fake fake;
    fake.config.major = row.major;
    fake.config.fail = row.fail;
    fake.config.fail_at = row.fail_at;
    fake.configure(&fake.config);
    GpuFixture f(rt::gpu::Use::Require);
    REQUIRE(f.open());
    uint64_t n = 20, result = 0;
    REQUIRE(f.call(kFib, &n, &result) == 1);
    CHECK(result == fib(n));
    CAPTURE(row.fail);
    CHECK(f.runtime->gpu->device.overlaps == row.overlaps);
    CHECK(f.runtime->gpu->space.rounds_graph != nullptr);
    CHECK((fake.calls("cuLaunchKernelEx") > 0) == row.tried);
  }
}

TEST_CASE("gpu: machine code of the device's own family is taken before PTX, and from sm_90 on it overlaps") {
  const BendGpuCode codes[] = {kCode, {BEND_GPU_CUBIN, 80, kPtx, sizeof kPtx}, {BEND_GPU_CUBIN, 90, kPtx, sizeof kPtx}};
  BendGpuProgram program = kProgram;
  program.code_count = 3;
  program.codes = codes;
  struct Row {
    int major, minor;
    uint32_t arch;
    bool overlaps;
  };
  for (const Row& row : {Row{9, 0, 90, true}, Row{8, 9, 80, false}, Row{7, 5, 70, false}, Row{12, 0, 70, true}}) {
    CAPTURE(row.major);
    Fake fake;
    fake.config.major = row.major;
    fake.config.minor = row.minor;
    fake.configure(&fake.config);
    GpuFixture f(rt::gpu::Use::Require);
    REQUIRE(f.open(&program));
    uint64_t n = 20, result = 0;
    REQUIRE(f.call(kFib, &n, &result) == 1);
    CHECK(result == fib(n));
    CHECK(f.runtime->gpu->device.arch == row.arch);
    CHECK(f.runtime->gpu->device.overlaps == row.overlaps);
  }
}

TEST_CASE("gpu: any driver function may fail at any call") {
  Fake fake;
  const char* functions[] = {"cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetUuid", "cuDeviceGetAttribute", "cuDeviceTotalMem",
                             "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuCtxGetLimit", "cuCtxSetLimit", "cuMemGetInfo", "cuMemAlloc", "cuMemHostAlloc", "cuMemcpyHtoDAsync",
                             "cuMemcpyDtoHAsync", "cuMemsetD8Async", "cuModuleLoadDataEx", "cuModuleGetFunction", "cuFuncGetAttribute",
                             "cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuLaunchKernel", "cuLaunchKernelEx", "cuStreamBeginCapture", "cuStreamEndCapture",
                             "cuGraphInstantiateWithFlags", "cuGraphDestroy", "cuStreamCreate", "cuStreamSynchronize", "cuEventCreate", "cuEventRecord"};
  for (const char* function : functions) {
    for (int at = 1; at <= 5; ++at) {
      for (bool out_of_memory : {false, true}) {
        auto [status, text] = run_in_child([&] {
          fake.config.fail = function;
          fake.config.fail_at = at;
          fake.config.code = out_of_memory ? 2 : 700;
          fake.config.local_bytes = 2048;
          fake.config.log = "ptxas error : line 3";
          fake.configure(&fake.config);
          GpuFixture f(rt::gpu::Use::Auto);
          if (!f.open()) return 20;
          BendWord array = bend_array_alloc(&f.worker, 16, &kU32, nullptr);
          f.slots(array)[3] = 3;
          BendWord result = 0;
          uint32_t done = 0;
          const bool failed = f.fails([&] { done = f.call(kTouch, &array, &result); });
          f.close();
          // What the driver does not take back is its own.
          if (fake.held(nullptr) != 0 && std::strcmp(function, "cuGraphDestroy") != 0) return 30 + fake.held(nullptr);
          if (failed) return 1;
          if (done == 0) return f.slots(array)[3] == 3 && f.check().live_nodes == 1 ? 11 : 21;
          return f.slots(result)[3] == 4 ? 10 : 22;
        });
        CAPTURE(function);
        CAPTURE(at);
        CAPTURE(text);
        CHECK((status == 1 || status == 10 || status == 11));
        if (status == 1) {
          CHECK(text.find("bend: the GPU failed in `touch!` (touch.bend:1): cu") == 0);
          CHECK(text.find(out_of_memory ? "2 CUDA_ERROR_OUT_OF_MEMORY: out of memory" : "700 CUDA_ERROR_ILLEGAL_ADDRESS") != std::string::npos);
        }
      }
    }
  }
}

TEST_CASE("gpu: what cannot run says so") {
  Fake fake;
  auto require = [&](Entry entry) {
    return run_in_child([&] {
      fake.configure(&fake.config);
      GpuFixture f(rt::gpu::Use::Require);
      if (!f.open()) return 20;
      uint64_t n = 5, result = 0;
      return static_cast<int>(f.call(entry, &n, &result)) + 10;
    });
  };
  CHECK(require(kRefused).second == "bend: `shows!` (show.bend:9) cannot run on a GPU: `shows` uses `F32.show`, which exists on the host only\n");
  CHECK(require(kFailing).second == "bend: error 2: a match has no case for its value, or an array has no such half (at fail.bend:11)\n");
  CHECK(require(kSilent).second == "bend: the GPU failed in `silent!` (fail.bend:2): internal error: the device machine stopped without a result\n");
  fake.config.devices = 0;
  CHECK(require(kFib).second == "bend: `fib!` (fib.bend:3) cannot run on a GPU: the CUDA driver sees no device\n");
  fake.config.devices = 1;
  fake.config.major = 6;
  CHECK(require(kFib).second == "bend: `fib!` (fib.bend:3) cannot run on a GPU: Stand-in has compute capability 6.0; 7.0 is the oldest that works\n");
  fake.config.major = 8;
  fake.config.fail = "cuModuleLoadDataEx";
  fake.config.fail_at = 2;
  fake.config.code = 218;
  fake.config.log = "ptxas error : line 3\n";
  CHECK(require(kFib).second ==
        "bend: `fib!` (fib.bend:3) cannot run on a GPU: the driver refuses the program's device code: cuModuleLoadDataEx: 218 CUDA_ERROR_UNKNOWN: unknown error: ptxas error : line 3\n");
  auto none = run_in_child([&] {
    GpuFixture f(rt::gpu::Use::Require);
    f.runtime->config.gpu.library = "/nonexistent/libcuda.so.1";
    if (!f.open()) return 20;
    uint64_t n = 5, result = 0;
    return static_cast<int>(f.call(kFib, &n, &result)) + 10;
  });
  CHECK(none.first == 1);
  CHECK(none.second.find("bend: `fib!` (fib.bend:3) cannot run on a GPU: no CUDA driver: /nonexistent/libcuda.so.1") == 0);
}

TEST_CASE("gpu: without a driver a call is an ordinary call") {
  GpuFixture f(rt::gpu::Use::Auto);
  f.runtime->config.gpu.library = "/nonexistent/libcuda.so.1";
  REQUIRE(f.open());
  uint64_t n = 5, result = 0;
  CHECK(f.call(kFib, &n, &result) == 0);
  CHECK(f.call(kRefused, &n, &result) == 0);
  GpuFixture off(rt::gpu::Use::Off);
  CHECK(!off.open());
  CHECK(off.call(kFib, &n, &result) == 0);
}

TEST_CASE("gpu: the doctor passes a device and says what is wrong without one") {
  Fake fake;
  auto ask = [&](const char* library) {
    return run_in_child([&] {
      dup2(2, 1);
      fake.configure(&fake.config);
      setenv("BEND_CUDA_LIBRARY", library, 1);
      return bend_gpu_doctor(nullptr);
    });
  };
  auto [status, text] = ask(BENDC_FAKE_CUDA);
  CHECK(status == 0);
  CHECK(text.find("device 0: Stand-in, compute capability 9.0, 2 processors, 512 MiB GPU-10101010-1010-1010-1010-101010101010 (chosen)\n") != std::string::npos);
  CHECK(text.find("self-test: passed\n") != std::string::npos);
  fake.config.fail = "cuLaunchKernel";
  CHECK(ask(BENDC_FAKE_CUDA).second.find("no GPU can be used: cuLaunchKernel: 999 CUDA_ERROR_UNKNOWN: unknown error\n") != std::string::npos);
  CHECK(ask("/nonexistent").first == 1);
}

TEST_CASE("gpu: the heap's end is error 3 with the sizes") {
  auto [status, text] = run_in_child([] {
    GpuFixture f(rt::gpu::Use::Emulate);
    f.runtime->config.gpu.memory = 3u << 20;
    if (!f.open()) return 20;
    uint64_t n = 27, result = 0;
    return static_cast<int>(f.call(kFib, &n, &result)) + 10;
  });
  CHECK(status == 1);
  CHECK(text.find("bend: error 3: out of memory: the device's heap of ") == 0);
  CHECK(text.find("used up in `fib!` (fib.bend:3); BEND_GPU_MEMORY sets the size of the device's memory, now 3145728 bytes") != std::string::npos);
}

TEST_CASE("gpu: arguments past the heap run on the CPU") {
  GpuFixture f(rt::gpu::Use::Emulate);
  f.runtime->config.gpu.memory = 3u << 20;
  REQUIRE(f.open());
  BendWord array = bend_array_alloc(&f.worker, 20, &kU32, nullptr);
  BendWord result = 0;
  CHECK(f.call(kTouch, &array, &result) == 0);
  CHECK(f.count(array) == 1);
  bend_drop_array(&f.worker, array, &kU32);
}
