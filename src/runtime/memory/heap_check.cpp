// The walk of BEND_DEBUG_HEAP: marks the start of every node in a free list, then counts the starts without a mark.
#include "runtime/error.h"
#include "runtime/runtime.h"

namespace bendc::rt {

namespace {

constexpr uint16_t kSeen = 0x8000;

uint64_t class_bytes(uint32_t code) { return code < BEND_CLASSES ? 8ull * code : large_class_bytes(code - BEND_CLASSES); }

void report(const char* what, const void* node, uint32_t code) {
  Message m;
  m.text("bend: heap: corruption: a node of ").number(class_bytes(code)).text(" bytes at ").hex(reinterpret_cast<uint64_t>(node)).text(" ").text(what).text("\n");
  write_stderr(m.data(), m.size());
}

struct Walk {
  Heap* heap;
  Segment* last = nullptr;   // neighbours in a list are mostly neighbours in memory

  Segment* find(const char* node) {
    if (last && node >= last->begin && node < last->begin + last->size) return last;
    for (Segment* s = heap->segments; s; s = s->next)
      if (node >= s->begin && node < s->begin + s->size) return last = s;
    return nullptr;
  }

  bool mark_list(void* head, uint32_t code) {
    for (char* node = static_cast<char*>(head); node; node = static_cast<char*>(free_link(node, 0))) {
      Segment* s = find(node);
      if (!s || (reinterpret_cast<uint64_t>(node) & 7) != 0) {
        report("is in a free list but outside the heap", node, code);
        return false;
      }
      uint16_t& start = s->starts[(node - s->begin) / 8];
      if (start & kSeen) {
        report("is twice in the free lists", node, code);
        return false;
      }
      if (start != 1 + code) {
        report(start == 0 ? "is in a free list but no node starts there" : "is in the free list of another size", node, code);
        return false;
      }
      start |= kSeen;
    }
    return true;
  }
};

}  // namespace

HeapReport heap_check(Heap* heap, BendWorker* workers, uint32_t worker_count) {
  HeapReport result = {0, 0, false};
  Walk walk{heap};
  for (uint32_t w = 0; w < worker_count; ++w)
    if (workers[w].private_state) heap_end_quarantine(&workers[w]);
  for (uint32_t w = 0; w < worker_count && !result.corrupt; ++w) {
    if (!workers[w].private_state) continue;   // its start was refused
    for (uint32_t c = 0; c < BEND_CLASSES && !result.corrupt; ++c) result.corrupt = !walk.mark_list(workers[w].free_lists[c], c);
    WorkerHeap* own = static_cast<WorkerHeap*>(workers[w].private_state);
    for (uint32_t c = 0; c < kLargeClasses && !result.corrupt; ++c) result.corrupt = !walk.mark_list(own->lists[c], BEND_CLASSES + c);
    for (uint32_t c = 0; c < BEND_CLASSES + kLargeClasses; ++c)
      for (void* list = own->stash[c]; list && !result.corrupt; list = free_link(list, 1)) result.corrupt = !walk.mark_list(list, c);
  }
  for (uint32_t c = 0; c < BEND_CLASSES + kLargeClasses; ++c)
    for (void* list = heap->pool[c]; list && !result.corrupt; list = free_link(list, 1)) result.corrupt = !walk.mark_list(list, c);
  for (Segment* s = heap->segments; s; s = s->next)
    for (uint64_t i = 0; i < s->size / 8; ++i) {
      uint16_t start = s->starts[i];
      s->starts[i] = static_cast<uint16_t>(start & ~kSeen);
      if (start == 0 || (start & kSeen)) continue;
      ++result.live_nodes;
      result.live_words += class_bytes(start - 1u) / 8;
    }
  for (HugeBlock* b = heap->huge; b; b = b->next) {
    ++result.live_nodes;
    result.live_words += b->size / 8;
  }
  return result;
}

}  // namespace bendc::rt
