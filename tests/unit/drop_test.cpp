// Drops over hand-built datatypes: lists, trees, arrays, sums, objects, static nodes; nothing leaks and no stack is used.
#include <doctest/doctest.h>

#include <pthread.h>

#include "runtime_fixture.h"

using namespace bendc;
using bendc::test::RuntimeFixture;

namespace {

extern const BendDataInfo kList, kTree, kWide, kBox;

// List { Nil; Con { u32 head, tail } } and Tree { Leaf u32 packed; Node { left, right } }
const BendSlot kConSlots[] = {{8, BEND_SLOT_DATA, &kList}};
const BendCtorInfo kListCtors[] = {{BEND_CTOR_NULLARY, 0, {0, 0, 0, 0, nullptr}, "Nil"}, {BEND_CTOR_NODE, 0, {16, 1, 1, 0, kConSlots}, "Con"}};
const BendDataInfo kList = {2, 1, kListCtors, "List"};

const BendSlot kNodeSlots[] = {{8, BEND_SLOT_DATA, &kTree}, {16, BEND_SLOT_DATA, &kTree}};
const BendCtorInfo kTreeCtors[] = {{BEND_CTOR_PACKED, 0, {0, 0, 0, 0, nullptr}, "Leaf"}, {BEND_CTOR_NODE, 0, {24, 2, 2, 0, kNodeSlots}, "Node"}};
const BendDataInfo kTree = {2, 1, kTreeCtors, "Tree"};

// An array whose slots are lists; and a value { sum { | list | u32, tree }, u32 }.
const BendSlot kListSlot[] = {{0, BEND_SLOT_DATA, &kList}};
const BendLayout kListElement = {8, 0, 1, 0, kListSlot};
const BendLayout kU32Element = {4, 0, 0, 0, nullptr};
const BendSlot kArraySlot[] = {{0, BEND_SLOT_ARRAY, &kListElement}};
const BendLayout kArrayElement = {8, 0, 1, 0, kArraySlot};
const BendSlot kVariant1[] = {{8, BEND_SLOT_DATA, &kList}};
const BendSlot kVariant2[] = {{16, BEND_SLOT_DATA, &kTree}};
const BendLayout kVariants[] = {{24, 0, 0, 0, nullptr}, {24, 0, 1, 0, kVariant1}, {24, 0, 1, 0, kVariant2}};
const BendSumInfo kSum = {3, 0, kVariants};
const BendSlot kSumSlot[] = {{0, BEND_SLOT_SUM, &kSum}};
const BendLayout kSumElement = {32, 2, 1, 0, kSumSlot};

// Box { a node with an array, a sum and an object }
const BendSlot kBoxSlots[] = {{8, BEND_SLOT_ARRAY, &kListElement}, {16, BEND_SLOT_SUM, &kSum}, {40, BEND_SLOT_OBJECT, nullptr}, {48, BEND_SLOT_DATA, &kBox}};
const BendCtorInfo kBoxCtors[] = {{BEND_CTOR_NULLARY, 0, {0, 0, 0, 0, nullptr}, "None"}, {BEND_CTOR_NODE, 0, {56, 3, 4, 0, kBoxSlots}, "Box"}};
const BendDataInfo kBox = {2, 1, kBoxCtors, "Box"};

// Nine constructors: the index stands in the node.
const BendSlot kWideSlots[] = {{8, BEND_SLOT_DATA, &kWide}};
const BendCtorInfo kNothing = {BEND_CTOR_NULLARY, 0, {0, 0, 0, 0, nullptr}, "K"};
const BendCtorInfo kWideCtors[] = {kNothing, kNothing, kNothing, kNothing, kNothing, kNothing, kNothing,
                                   {BEND_CTOR_PACKED, 0, {0, 0, 0, 0, nullptr}, "P"}, {BEND_CTOR_NODE, 0, {16, 1, 1, 0, kWideSlots}, "N"}};
const BendDataInfo kWide = {9, 0, kWideCtors, "Wide"};

BendWord make_list(RuntimeFixture& f, uint64_t length) {
  BendWord list = 0;
  for (uint64_t i = 0; i < length; ++i) {
    BendWord node = f.node(16, static_cast<uint32_t>(i));
    f.put(node, 8, list);
    list = node | 1;
  }
  return list;
}

BendWord leaf(uint32_t value) { return static_cast<BendWord>(value) << 32; }

BendWord make_tree(RuntimeFixture& f, BendWord left, BendWord right) {
  BendWord node = f.node(24);
  f.put(node, 8, left);
  f.put(node, 16, right);
  return node | 1;
}

BendWord full_tree(RuntimeFixture& f, int depth) { return depth == 0 ? leaf(7) : make_tree(f, full_tree(f, depth - 1), full_tree(f, depth - 1)); }

// Runs body on a thread with a stack of 64 KiB: a drop that recursed would fault.
void on_small_stack(void (*body)(void*), void* argument) {
  struct Call {
    void (*body)(void*);
    void* argument;
  } call = {body, argument};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  REQUIRE(pthread_attr_setstacksize(&attributes, 64 << 10) == 0);
  pthread_t thread;
  auto run = [](void* raw) -> void* {
    static_cast<Call*>(raw)->body(static_cast<Call*>(raw)->argument);
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, run, &call) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

struct DropCall {
  RuntimeFixture* f;
  BendWord word;
  const BendDataInfo* info;
};
void drop_small(RuntimeFixture& f, BendWord word, const BendDataInfo* info) {
  DropCall call = {&f, word, info};
  on_small_stack([](void* raw) {
    auto* c = static_cast<DropCall*>(raw);
    bend_drop_ref(&c->f->worker, c->word, c->info);
  }, &call);
}

}  // namespace

TEST_CASE("drop: a list of 10^7 nodes needs no stack") {
  RuntimeFixture f(false);
  BendWord list = make_list(f, 10'000'000);
  drop_small(f, list, &kList);
  rt::heap_end_quarantine(&f.worker);
  uint64_t free_nodes = 0;
  for (void* p = f.worker.free_lists[(16 + rt::kRedzone) / 8]; p; p = rt::free_link(p, 0)) ++free_nodes;
  CHECK(free_nodes >= 10'000'000);
}

TEST_CASE("drop: trees leaning left, leaning right and full") {
  RuntimeFixture f;
  BendWord left = leaf(1), right = leaf(1);
  for (int i = 0; i < 1'000'000; ++i) {
    left = make_tree(f, left, leaf(2));
    right = make_tree(f, leaf(2), right);
  }
  BendWord zigzag = leaf(0);
  for (int i = 0; i < 100'000; ++i) zigzag = i & 1 ? make_tree(f, zigzag, make_tree(f, leaf(1), leaf(2))) : make_tree(f, make_tree(f, leaf(1), leaf(2)), zigzag);
  drop_small(f, left, &kTree);
  drop_small(f, right, &kTree);
  drop_small(f, zigzag, &kTree);
  drop_small(f, full_tree(f, 16), &kTree);
  CHECK(f.check().live_nodes == 0);
}

TEST_CASE("drop: shared parts live until their last owner") {
  RuntimeFixture f;
  BendWord shared = full_tree(f, 4);
  rt::count_up(&rt::count_of(reinterpret_cast<char*>(shared & ~7ull)));
  BendWord outer = make_tree(f, shared, shared);
  BendWord again = make_tree(f, shared, leaf(3));
  rt::count_up(&rt::count_of(reinterpret_cast<char*>(shared & ~7ull)));
  bend_drop_ref(&f.worker, outer, &kTree);
  CHECK(f.check().live_nodes == 16);
  bend_drop_ref(&f.worker, again, &kTree);
  CHECK(f.check().live_nodes == 0);
}

TEST_CASE("drop: static nodes are left alone") {
  RuntimeFixture f;
  alignas(8) static struct {
    uint32_t count = BEND_IMMORTAL, head = 5;
    BendWord tail = 0;
  } still;
  BendWord node = f.node(16, 1);
  f.put(node, 8, reinterpret_cast<BendWord>(&still) | 1);
  bend_drop_ref(&f.worker, node | 1, &kList);
  CHECK(still.count == BEND_IMMORTAL);
  CHECK(f.check().live_nodes == 0);
}

TEST_CASE("drop: more than eight constructors") {
  RuntimeFixture f;
  BendWord word = (5ull << 32) | (7 << 3) | 7;   // packed
  for (int i = 0; i < 100'000; ++i) {
    BendWord node = f.node(16, 8);
    f.put(node, 8, word);
    word = node;
  }
  drop_small(f, word, &kWide);
  CHECK(f.check().live_nodes == 0);
  bend_drop_ref(&f.worker, (3ull << 3) | 7, &kWide);
}

TEST_CASE("drop: arrays of lists, arrays of arrays, sums by value") {
  RuntimeFixture f;
  BendWord outer = bend_array_alloc(&f.worker, 3, &kArrayElement, nullptr);
  for (uint64_t i = 0; i < 8; ++i) {
    BendWord inner = bend_array_alloc(&f.worker, i, &kListElement, nullptr);
    for (uint64_t j = 0; j < 1ull << i; ++j) f.put(rt::array_word(rt::array_block(inner), 0), 16 + 8 * static_cast<uint32_t>(j), make_list(f, j));
    f.put(outer & BEND_ARRAY_ADDRESS, 16 + 8 * static_cast<uint32_t>(i), inner);
  }
  bend_drop_array(&f.worker, outer, &kArrayElement);
  CHECK(f.check().live_nodes == 0);

  BendWord sums = bend_array_alloc(&f.worker, 2, &kSumElement, nullptr);
  char* slot = rt::array_block(sums) + BEND_ARRAY_HEADER;
  std::memset(slot, 0, 4 * kSumElement.size);
  for (uint32_t i = 0; i < 4; ++i, slot += kSumElement.size) {
    rt::u32_at(slot) = i % 3;
    if (i % 3 == 1) rt::word_at(slot + 8) = make_list(f, 10);
    if (i % 3 == 2) rt::word_at(slot + 8) = 12345, rt::word_at(slot + 16) = full_tree(f, 3);
  }
  BendWord copy = bend_array_clone(&f.worker, sums, &kSumElement);
  bend_drop_array(&f.worker, sums, &kSumElement);
  CHECK(f.check().live_nodes == 1 + 10 + 7);
  bend_drop_array(&f.worker, copy, &kSumElement);
  CHECK(f.check().live_nodes == 0);
}

TEST_CASE("drop: nodes that hold arrays, sums, objects and themselves in a chain") {
  RuntimeFixture f;
  const BendSlot closure_slots[] = {{8, BEND_SLOT_DATA, &kBox}};
  BendObjectInfo objects[2] = {};
  objects[0].layout = {16, 1, 1, 0, closure_slots};
  objects[1].kind = BEND_OBJECT_BOX;
  objects[1].layout = {8, 0, 0, 0, nullptr};
  f.program.objects = objects;
  f.program.object_count = 2;
  BendWord chain = 0;
  for (int i = 0; i < 20'000; ++i) {
    BendWord node = f.node(56);
    BendWord array = bend_array_alloc(&f.worker, 1, &kListElement, nullptr);
    f.put(array & BEND_ARRAY_ADDRESS, 16, make_list(f, 2));
    f.put(array & BEND_ARRAY_ADDRESS, 24, make_list(f, 3));
    f.put(node, 8, array);
    f.put_u32(node, 16, static_cast<uint32_t>(i % 3));
    if (i % 3 == 1) f.put(node, 24, make_list(f, 4));
    if (i % 3 == 2) f.put(node, 32, full_tree(f, 2));
    BendWord closure = f.node(16, 0);
    BendWord box = f.node(8, 1);
    if (i & 1) {   // the chain goes through the closure
      f.put(closure, 8, chain);
      f.put(node, 40, closure);
      bend_drop_object(&f.worker, box);
    } else {
      f.put(node, 40, i % 4 ? box : 77);
      if (i % 4 == 0) bend_drop_object(&f.worker, box);
      f.put(node, 48, chain);
      bend_drop_object(&f.worker, closure);
    }
    chain = node | 1;
  }
  drop_small(f, chain, &kBox);
  rt::HeapReport report = f.check();
  CHECK(report.live_nodes == 0);
  CHECK(!report.corrupt);
}

TEST_CASE("drop_fields frees a node whose count is known to be one") {
  RuntimeFixture f;
  BendWord list = make_list(f, 5);
  bend_drop_fields(&f.worker, list, &kList, 1);
  CHECK(f.check().live_nodes == 0);
}

TEST_CASE("array: split moves the slots of an only owner and shares those of a forked block") {
  RuntimeFixture f;
  for (bool forked : {false, true}) {
    BendWord array = bend_array_alloc(&f.worker, 2, &kListElement, nullptr);
    for (uint32_t i = 0; i < 4; ++i) f.put(array & BEND_ARRAY_ADDRESS, 16 + 8 * i, make_list(f, i + 1));
    if (forked) rt::count_up(&rt::count_of(rt::array_block(array)));
    BendWord halves[2];
    bend_array_split(&f.worker, array, &kListElement, halves, nullptr);
    CHECK(rt::array_log2(halves[0]) == 1);
    BendWord low = rt::word_at(rt::array_block(halves[0]) + 16);
    uint32_t owners = forked ? 2 : 1;
    CHECK(rt::count_of(reinterpret_cast<char*>(low & ~7ull)) == owners);
    BendWord whole = bend_array_node(&f.worker, halves[0], halves[1], &kListElement, nullptr);
    CHECK(rt::array_log2(whole) == 2);
    bend_drop_array(&f.worker, whole, &kListElement);
    if (forked) bend_drop_array(&f.worker, array, &kListElement);
    CHECK(f.check().live_nodes == 0);
  }
}

TEST_CASE("array: release keeps the copied slot alive when the block is shared") {
  RuntimeFixture f;
  BendWord array = bend_array_alloc(&f.worker, 0, &kListElement, nullptr);
  f.put(array & BEND_ARRAY_ADDRESS, 16, make_list(f, 3));
  BendWord element = rt::word_at(rt::array_block(array) + 16);
  rt::count_up(&rt::count_of(rt::array_block(array)));
  bend_array_release(&f.worker, array, &kListElement);
  bend_array_release(&f.worker, array, &kListElement);
  CHECK(f.check().live_nodes == 3);
  CHECK(rt::count_of(reinterpret_cast<char*>(element & ~7ull)) == 2);
  bend_drop_ref(&f.worker, element, &kList);
  bend_drop_ref(&f.worker, element, &kList);
  CHECK(f.check().live_nodes == 0);
}

TEST_CASE("array: a big block of words") {
  RuntimeFixture f;
  BendWord array = bend_array_alloc(&f.worker, 22, &kU32Element, nullptr);
  uint32_t* slots = reinterpret_cast<uint32_t*>(rt::array_block(array) + BEND_ARRAY_HEADER);
  for (uint32_t i = 0; i < 1u << 22; ++i) slots[i] = i;
  BendWord copy = bend_array_clone(&f.worker, array, &kU32Element);
  bend_drop_array(&f.worker, array, &kU32Element);
  CHECK(reinterpret_cast<uint32_t*>(rt::array_block(copy) + BEND_ARRAY_HEADER)[4194303] == 4194303);
  bend_drop_array(&f.worker, copy, &kU32Element);
  CHECK(f.check().live_nodes == 0);
}
