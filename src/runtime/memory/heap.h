// The heap: segments from the system, chunks of them for workers, size classes inside a worker, and blocks of their own for big arrays.
//
//   size                   kept in                                            given back to
//   16..504, step 8        BendWorker.free_lists, cut from bump (generated)   the list of its class
//   505 B..1 MiB           WorkerHeap.lists, 8 classes a doubling             the list of its class
//   above 1 MiB            a mapping of its own                               a small cache, else the system
//
// Lists are a worker's own. A worker that frees more than it allocates hands whole lists over (heap_share) to a pool that all workers
// look into before they take fresh memory: in one piece, without a lock, when it has nothing to do or somebody has taken a chunk since.
//
// A node has no header for the heap: whoever frees it states its size. With BEND_DEBUG_HEAP=1 fresh nodes always come through the slow
// path, which notes where each starts and its class, so that the walk at the end can tell live, free, doubly free and foreign nodes.
#pragma once
#include <pthread.h>
#include <stddef.h>

#include "runtime/abi.h"
#include "runtime/memory/poison.h"

namespace bendc::rt {

inline constexpr uint64_t kLargeMax = 1ull << 20;
inline constexpr uint32_t kLargeClasses = 96;   // 2^9..2^20, 8 a doubling
inline constexpr uint32_t kCachedBlocks = 8;

// Whoever looks after the pages of a block above kLargeMax while the block lives, told before its memory is used for something else.
struct BlockPager {
  void (*release)(BlockPager* pager);
};

// A block above kLargeMax starts so that what follows an array's header starts a page; the page before holds the header and, at its start, the pager.
inline constexpr uint64_t kHugeStart = 4096 - BEND_ARRAY_HEADER;
[[nodiscard]] inline BlockPager*& block_pager(char* huge_block) { return *reinterpret_cast<BlockPager**>(huge_block - kHugeStart); }

struct Segment {
  Segment* next;
  char* begin;
  uint64_t size;
  uint16_t* starts;       // debug: per 8 bytes, 1 + class of the node that starts there
};

struct HugeBlock {        // debug: one live or cached mapping
  HugeBlock* next;
  char* begin;
  uint64_t size;
};

struct Heap {
  pthread_mutex_t lock;
  Segment* segments;
  char* bump;             // rest of the newest segment
  char* limit;
  uint64_t next_segment;  // size of the next one; doubles up to 64 MiB
  uint64_t mapped;        // bytes taken from the system
  uint64_t most;          // refuse to map more
  struct {
    char* begin;
    uint64_t size;
  } cache[kCachedBlocks]; // freed blocks above kLargeMax
  uint64_t cached;
  bool debug;
  HugeBlock* huge;
  // By class: a stack of free lists, linked through the second words of their first nodes.
  void* pool[BEND_CLASSES + kLargeClasses];
  uint64_t chunks_taken;  // by workers that had others to ask
};

struct WorkerHeap {       // behind BendWorker.private_state
  void* lists[kLargeClasses];
  char* bump;             // for sizes above BEND_MAX_SMALL, and all sizes when debugging
  char* limit;
  void* stash[BEND_CLASSES + kLargeClasses];   // lists taken from the pool and not yet used, linked as there
  uint64_t chunks_seen;   // Heap.chunks_taken when this worker last shared its lists
  struct {                // the last frees, in a ring, where memory is poisoned (poison.h)
    void* node;
    uint64_t bytes;
  } quarantine[kQuarantined];
  uint32_t oldest;
};

void heap_open(Heap* heap, uint64_t most, bool debug);
void heap_close(Heap* heap);
[[nodiscard]] bool worker_heap_open(BendWorker* worker);
void worker_heap_close(BendWorker* worker);

// Any size; rounded up to 16 and a multiple of 8. Never null: error 3.
[[nodiscard]] void* heap_alloc(BendWorker* worker, uint64_t bytes);
void heap_free(BendWorker* worker, void* node, uint64_t bytes);

// Hands this worker's free lists over when others have run out of theirs meanwhile (cheap when not), or in any case.
void heap_share(BendWorker* worker);
void heap_give_all(BendWorker* worker);

// What waits in the worker's quarantine becomes free.
void heap_end_quarantine(BendWorker* worker);

// Zeroed memory of the C library for the runtime's own tables. Never null: error 3.
[[nodiscard]] void* system_alloc(BendWorker* worker, uint64_t bytes);

struct HeapReport {
  uint64_t live_words, live_nodes;
  bool corrupt;
};
// Debug only: walks segments and free lists of all workers; describes the first corruption on stderr.
[[nodiscard]] HeapReport heap_check(Heap* heap, BendWorker* workers, uint32_t worker_count);

// Size classes above BEND_MAX_SMALL: eight steps a doubling, so at most an eighth is lost.
[[nodiscard]] inline uint32_t large_class(uint64_t bytes) {
  uint64_t top = bytes - 1;
  uint32_t exponent = 63u - static_cast<uint32_t>(__builtin_clzll(top));   // 2^exponent <= top; 8 for 505 bytes
  return (exponent - 8) * 8 + (static_cast<uint32_t>(top >> (exponent - 3)) & 7);
}
[[nodiscard]] inline uint64_t large_class_bytes(uint32_t index) { return static_cast<uint64_t>(9 + index % 8) << (index / 8 + 5); }

}  // namespace bendc::rt
