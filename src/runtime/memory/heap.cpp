#include "runtime/memory/heap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/error.h"
#include "runtime/runtime.h"

namespace bendc::rt {

namespace {

constexpr uint64_t kFirstSegment = 1ull << 20;
constexpr uint64_t kLastSegment = 64ull << 20;
constexpr uint64_t kHugePage = 2ull << 20;
constexpr uint64_t kPage = 4096;
constexpr uint64_t kFirstChunk = 64ull << 10;
constexpr uint64_t kChunk = 1ull << 20;
// Blocks above BEND_MAX_SMALL start here modulo 64, so that the slots of an array, 16 bytes on, start at a cache line.
constexpr uint64_t kBlockStart = 64 - BEND_ARRAY_HEADER;
constexpr uint64_t kMostCached = 1ull << 30;

uint64_t round_up(uint64_t n, uint64_t step) { return (n + step - 1) / step * step; }
uint64_t node_bytes(uint64_t bytes) { return bytes < 16 ? 16 : round_up(bytes, 8); }
// From two huge pages on the kernel is asked to back a mapping by huge pages; they are aligned to them.
uint64_t mapping_bytes(uint64_t bytes) { return round_up(bytes, bytes >= 2 * kHugePage ? kHugePage : kPage); }

WorkerHeap* worker_heap(BendWorker* worker) { return static_cast<WorkerHeap*>(worker->private_state); }

// A mapping of `bytes` (a multiple of its page size) or null.
char* map_bytes(Heap* heap, uint64_t bytes) {
  if (bytes > heap->most || heap->mapped > heap->most - bytes) return nullptr;
  bool huge = bytes >= 2 * kHugePage;
  uint64_t reserve = huge ? bytes + kHugePage : bytes;
  void* got = mmap(nullptr, reserve, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED) return nullptr;
  char* begin = static_cast<char*>(got);
  if (huge) {
    char* aligned = reinterpret_cast<char*>(round_up(reinterpret_cast<uint64_t>(begin), kHugePage));
    if (aligned > begin) munmap(begin, static_cast<size_t>(aligned - begin));
    char* end = begin + reserve;
    if (aligned + bytes < end) munmap(aligned + bytes, static_cast<size_t>(end - (aligned + bytes)));
    begin = aligned;
    madvise(begin, bytes, MADV_HUGEPAGE);
  }
  heap->mapped += bytes;
  close_memory(begin, bytes);
  return begin;
}

void unmap_bytes(Heap* heap, char* begin, uint64_t bytes) {
  open_memory(begin, bytes);
  munmap(begin, bytes);
  heap->mapped -= bytes;
}

void drop_cache(Heap* heap) {
  for (auto& entry : heap->cache) {
    if (entry.begin) unmap_bytes(heap, entry.begin, entry.size);
    entry = {nullptr, 0};
  }
  heap->cached = 0;
}

char* map_or_drop_cache(Heap* heap, uint64_t bytes) {
  char* begin = map_bytes(heap, bytes);
  if (begin || heap->cached == 0) return begin;
  drop_cache(heap);
  return map_bytes(heap, bytes);
}

[[noreturn]] void out_of_memory(BendWorker* worker, uint64_t bytes) {
  Heap* heap = &worker->runtime->heap;
  uint64_t mapped = heap->mapped;
  pthread_mutex_unlock(&heap->lock);
  Message detail;
  detail.text("cannot take ").number(bytes).text(" bytes more than the ").number(mapped);
  if (bytes > heap->most || mapped > heap->most - bytes) detail.text(" in use; the limit is ").number(heap->most).text(" (BEND_HEAP sets it)");
  else detail.text(" in use; the system refuses");
  fail(worker, kErrorMemory, nullptr, detail);
}

// `bytes` of segment memory; called with the lock held. The rest of a segment too small for a request is not used again: segments are at
// least 16 times the largest request made of them except for the first few.
char* take_segment_bytes(BendWorker* worker, uint64_t bytes) {
  Heap* heap = &worker->runtime->heap;
  if (static_cast<uint64_t>(heap->limit - heap->bump) < bytes) {
    uint64_t size = heap->next_segment;
    while (size < bytes) size *= 2;
    char* begin = map_or_drop_cache(heap, size);
    while (!begin && size / 2 >= bytes) {
      size /= 2;
      begin = map_or_drop_cache(heap, size);
    }
    Segment* segment = begin ? static_cast<Segment*>(calloc(1, sizeof(Segment))) : nullptr;
    if (segment && heap->debug) segment->starts = static_cast<uint16_t*>(calloc(size / 8, sizeof(uint16_t)));
    if (!segment || (heap->debug && !segment->starts)) out_of_memory(worker, bytes);
    segment->begin = begin;
    segment->size = size;
    segment->next = heap->segments;
    heap->segments = segment;
    heap->bump = begin;
    heap->limit = begin + size;
    if (size >= heap->next_segment && heap->next_segment < kLastSegment) heap->next_segment *= 2;
  }
  char* taken = heap->bump;
  heap->bump += bytes;
  return taken;
}

// The next chunk for a worker: small at first, so that a small program touches little memory.
char* take_chunk(BendWorker* worker, uint64_t least, uint64_t* size) {
  Heap* heap = &worker->runtime->heap;
  pthread_mutex_lock(&heap->lock);
  uint64_t wanted = heap->mapped <= kFirstSegment ? kFirstChunk : kChunk;
  if (wanted < least) wanted = least;
  char* chunk = take_segment_bytes(worker, wanted);
  pthread_mutex_unlock(&heap->lock);
  *size = wanted;
  return chunk;
}

void push(void** list, void* node) {
  set_free_link(node, 0, *list);
  *list = node;
}

// The rest of a chunk goes to the free lists in the largest pieces that fit them. It is no longer the chunk's: when no other chunk is to be had, the
// task fails and its worker goes on with others.
void give_rest(BendWorker* worker, char*& bump, char*& limit) {
  char *from = bump, *to = limit;
  bump = limit = nullptr;
  while (to - from >= 16) {
    uint64_t rest = static_cast<uint64_t>(to - from) & ~7ull;
    uint64_t piece = rest;
    if (rest > BEND_MAX_SMALL) {
      uint32_t index = large_class(rest < kLargeMax ? rest : kLargeMax);
      if (large_class_bytes(index) > rest) --index;
      piece = large_class_bytes(index);
      push(&worker_heap(worker)->lists[index], from);
    } else {
      push(&worker->free_lists[piece / 8], from);
    }
    from += piece;
  }
}

Segment* segment_of(Heap* heap, const void* node) {
  const char* at = static_cast<const char*>(node);
  for (Segment* s = heap->segments; s; s = s->next)
    if (at >= s->begin && at < s->begin + s->size) return s;
  return nullptr;
}

// Debug: the class is at most 63 + 96, so it fits beside the mark of the final walk.
void note_start(BendWorker* worker, char* node, uint32_t class_code) {
  Heap* heap = &worker->runtime->heap;
  pthread_mutex_lock(&heap->lock);
  Segment* segment = segment_of(heap, node);
  segment->starts[(node - segment->begin) / 8] = static_cast<uint16_t>(1 + class_code);
  pthread_mutex_unlock(&heap->lock);
}

void** list_of(BendWorker* worker, uint32_t code) {
  return code < BEND_CLASSES ? &worker->free_lists[code] : &worker_heap(worker)->lists[code - BEND_CLASSES];
}

// The link between the free lists of one class in the pool.
void* next_list(const void* list) { return free_link(list, 1); }
void set_next_list(void* list, void* next) { set_free_link(list, 1, next); }

void give_lists(Heap* heap, uint32_t code, void* first, void* last) {
  void* top = __atomic_load_n(&heap->pool[code], __ATOMIC_RELAXED);
  do set_next_list(last, top);
  while (!__atomic_compare_exchange_n(&heap->pool[code], &top, first, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

// A list of the class from the pool becomes the worker's own. The whole stack is taken, so that nobody sees a node's link change. All lists
// but the first go back when nobody has given one meanwhile, else they wait in the worker's stash: finding their end could take long.
bool take_list(BendWorker* worker, uint32_t code) {
  Heap* heap = &worker->runtime->heap;
  if (!worker->atomic) return false;
  void*& stash = worker_heap(worker)->stash[code];
  if (stash) {
    *list_of(worker, code) = stash;
    stash = next_list(stash);
    return true;
  }
  if (!__atomic_load_n(&heap->pool[code], __ATOMIC_RELAXED)) return false;
  void* list = __atomic_exchange_n(&heap->pool[code], nullptr, __ATOMIC_ACQUIRE);
  if (!list) return false;
  if (void* rest = next_list(list)) {
    void* empty = nullptr;
    if (!__atomic_compare_exchange_n(&heap->pool[code], &empty, rest, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) stash = rest;
  }
  *list_of(worker, code) = list;
  return true;
}

// Fresh memory is about to be taken: the others are asked for their lists, for the next time.
void ask_others(BendWorker* worker) {
  if (!worker->atomic) return;
  uint64_t before = __atomic_fetch_add(&worker->runtime->heap.chunks_taken, 1, __ATOMIC_RELAXED);
  WorkerHeap* own = worker_heap(worker);
  if (own->chunks_seen == before) own->chunks_seen = before + 1;
}

// A fresh node from the worker's second bump range, which large classes use, and every class when debugging.
char* fresh_large(BendWorker* worker, uint64_t bytes, uint32_t class_code) {
  WorkerHeap* own = worker_heap(worker);
  if (static_cast<uint64_t>(own->limit - own->bump) < bytes) {
    bool debug = worker->runtime->heap.debug;
    // A big block does not waste the rest of a chunk that still serves smaller ones.
    if (bytes >= kChunk / 4) {
      Heap* heap = &worker->runtime->heap;
      pthread_mutex_lock(&heap->lock);
      char* alone = take_segment_bytes(worker, bytes + 64) + kBlockStart;
      pthread_mutex_unlock(&heap->lock);
      if (debug) note_start(worker, alone, class_code);
      return alone;
    }
    if (!debug) give_rest(worker, own->bump, own->limit);
    ask_others(worker);
    uint64_t size;
    own->bump = take_chunk(worker, bytes + kBlockStart, &size);
    own->limit = own->bump + size;
    own->bump += kBlockStart;
  }
  char* node = own->bump;
  own->bump += bytes;
  if (worker->runtime->heap.debug) note_start(worker, node, class_code);
  return node;
}

void* alloc_small(BendWorker* worker, uint64_t bytes) {
  uint32_t index = static_cast<uint32_t>(bytes / 8);
  void* node = worker->free_lists[index];
  if (!node && static_cast<uint64_t>(worker->limit - worker->bump) < bytes && take_list(worker, index)) node = worker->free_lists[index];
  if (node) {
    worker->free_lists[index] = free_link(node, 0);
    return node;
  }
  if (worker->runtime->heap.debug) return fresh_large(worker, bytes, index);
  if (static_cast<uint64_t>(worker->limit - worker->bump) < bytes) {
    give_rest(worker, worker->bump, worker->limit);
    ask_others(worker);
    uint64_t size;
    worker->bump = take_chunk(worker, bytes, &size);
    worker->limit = worker->bump + size;
  }
  char* fresh = worker->bump;
  worker->bump += bytes;
  return fresh;
}

void* alloc_huge(BendWorker* worker, uint64_t bytes) {
  Heap* heap = &worker->runtime->heap;
  uint64_t size = mapping_bytes(bytes + kHugeStart);
  pthread_mutex_lock(&heap->lock);
  char* begin = nullptr;
  for (auto& entry : heap->cache) {
    if (entry.size != size) continue;
    begin = entry.begin;
    heap->cached -= size;
    entry = {nullptr, 0};
    break;
  }
  if (!begin) begin = map_or_drop_cache(heap, size);
  if (!begin) out_of_memory(worker, size);
  if (heap->debug) {
    HugeBlock* noted = static_cast<HugeBlock*>(malloc(sizeof(HugeBlock)));
    if (!noted) out_of_memory(worker, sizeof(HugeBlock));
    *noted = {heap->huge, begin, size};
    heap->huge = noted;
  }
  pthread_mutex_unlock(&heap->lock);
  char* block = begin + kHugeStart;
  open_memory(begin, sizeof(BlockPager*));
  block_pager(block) = nullptr;
  return block;
}

void free_huge(BendWorker* worker, char* block, uint64_t bytes) {
  Heap* heap = &worker->runtime->heap;
  char* begin = block - kHugeStart;
  uint64_t size = mapping_bytes(bytes + kHugeStart);
  pthread_mutex_lock(&heap->lock);
  if (heap->debug) {
    HugeBlock** link = &heap->huge;
    while (*link && !((*link)->begin == begin && (*link)->size == size)) link = &(*link)->next;
    if (!*link) {
      pthread_mutex_unlock(&heap->lock);
      Message m;
      m.text("heap: corruption: a block of ").number(size).text(" bytes at ").hex(reinterpret_cast<uint64_t>(begin)).text(" is freed but not in use");
      fail_plain(worker, m);
    }
    HugeBlock* noted = *link;
    *link = noted->next;
    free(noted);
  }
  pthread_mutex_unlock(&heap->lock);
  if (BlockPager* pager = block_pager(block)) pager->release(pager);
  pthread_mutex_lock(&heap->lock);
  auto* place = &heap->cache[0];
  for (auto& entry : heap->cache)
    if (!entry.begin) place = &entry;
  if (!place->begin && size <= kMostCached - heap->cached) {
    *place = {begin, size};
    heap->cached += size;
  } else {
    unmap_bytes(heap, begin, size);
  }
  pthread_mutex_unlock(&heap->lock);
}

// A node of the size, a multiple of 8.
void* take(BendWorker* worker, uint64_t bytes) {
  if (bytes <= BEND_MAX_SMALL) return alloc_small(worker, bytes);
  if (bytes > kLargeMax) return alloc_huge(worker, bytes);
  uint32_t index = large_class(bytes);
  void** list = &worker_heap(worker)->lists[index];
  if (*list || take_list(worker, BEND_CLASSES + index)) {
    void* node = *list;
    *list = free_link(node, 0);
    return node;
  }
  return fresh_large(worker, large_class_bytes(index), BEND_CLASSES + index);
}

void put_back(BendWorker* worker, void* node, uint64_t bytes) {
  if (bytes <= BEND_MAX_SMALL) push(&worker->free_lists[bytes / 8], node);
  else if (bytes > kLargeMax) free_huge(worker, static_cast<char*>(node), bytes);
  else push(&worker_heap(worker)->lists[large_class(bytes)], node);
}

}  // namespace

void heap_open(Heap* heap, uint64_t most, bool debug) {
  memset(heap, 0, sizeof *heap);
  pthread_mutex_init(&heap->lock, nullptr);
  heap->next_segment = kFirstSegment;
  heap->most = most;
  heap->debug = debug;
}

void heap_close(Heap* heap) {
  drop_cache(heap);
  while (Segment* s = heap->segments) {
    heap->segments = s->next;
    open_memory(s->begin, s->size);
    munmap(s->begin, s->size);
    free(s->starts);
    free(s);
  }
  while (HugeBlock* b = heap->huge) {
    heap->huge = b->next;
    free(b);
  }
  pthread_mutex_destroy(&heap->lock);
}

bool worker_heap_open(BendWorker* worker) {
  worker->private_state = calloc(1, sizeof(WorkerHeap));
  return worker->private_state != nullptr;
}

void worker_heap_close(BendWorker* worker) {
  free(worker->private_state);
  worker->private_state = nullptr;
}

void* heap_alloc(BendWorker* worker, uint64_t bytes) {
  bytes = node_bytes(bytes);
  void* node = take(worker, bytes + kRedzone);
  open_memory(node, bytes);
  return node;
}

void heap_free(BendWorker* worker, void* node, uint64_t bytes) {
  bytes = node_bytes(bytes);
  touch_memory(node);
  close_memory(node, bytes);
  bytes += kRedzone;
  if (kPoisons && bytes <= kLargeMax) {
    WorkerHeap* own = worker_heap(worker);
    auto& place = own->quarantine[own->oldest];
    if (place.node) put_back(worker, place.node, place.bytes);
    place = {node, bytes};
    own->oldest = (own->oldest + 1) % kQuarantined;
    return;
  }
  put_back(worker, node, bytes);
}

void heap_end_quarantine(BendWorker* worker) {
  if (!kPoisons) return;
  for (auto& place : worker_heap(worker)->quarantine) {
    if (place.node) put_back(worker, place.node, place.bytes);
    place = {nullptr, 0};
  }
}

void heap_share(BendWorker* worker) {
  Heap* heap = &worker->runtime->heap;
  WorkerHeap* own = worker_heap(worker);
  uint64_t taken = __atomic_load_n(&heap->chunks_taken, __ATOMIC_RELAXED);
  if (own->chunks_seen == taken) return;
  own->chunks_seen = taken;
  heap_give_all(worker);
}

void heap_give_all(BendWorker* worker) {
  Heap* heap = &worker->runtime->heap;
  for (uint32_t code = 0; code < BEND_CLASSES + kLargeClasses; ++code) {
    void** list = list_of(worker, code);
    void*& stash = worker_heap(worker)->stash[code];
    if (*list) {
      set_next_list(*list, stash);
      stash = *list;
      *list = nullptr;
    }
    if (!stash) continue;
    void* last = stash;
    while (next_list(last)) last = next_list(last);
    give_lists(heap, code, stash, last);
    stash = nullptr;
  }
}

void* system_alloc(BendWorker* worker, uint64_t bytes) {
  void* memory = calloc(1, bytes);
  if (memory) return memory;
  Message detail;
  detail.text("the system refuses ").number(bytes).text(" bytes");
  fail(worker, kErrorMemory, nullptr, detail);
}

}  // namespace bendc::rt

void* bend_alloc_slow(BendWorker* worker, uint64_t bytes) { return bendc::rt::heap_alloc(worker, bytes); }
void* bend_alloc_large(BendWorker* worker, uint64_t bytes) { return bendc::rt::heap_alloc(worker, bytes); }
void bend_free_large(BendWorker* worker, void* node, uint64_t bytes) { bendc::rt::heap_free(worker, node, bytes); }
