// Shared by the suite's C twins: names of types, the constants, prng, the words of a run, and nodes from a free list.
#ifndef SUITE_H
#define SUITE_H
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint32_t u32;
typedef uint64_t u64;

#define K1 2654435761u
#define K2 340573321u
#define K3 2246822519u

static inline u32 prng(u32 x) {
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  return x;
}

// The sizes of a run: SMALL without words, BIG for the word `big`, else the words themselves.
static inline void sizes(int count, char** words, int n, u32* out, const u32* small, const u32* big) {
  for (int i = 0; i < n; i++) {
    out[i] = count == 2 && strcmp(words[1], "big") == 0 ? big[i] : count > n ? (u32)strtoul(words[i + 1], 0, 10) : small[i];
  }
}

static inline int answer(u32 checksum) {
  printf("%u\n", checksum);
  return 0;
}

// Cells of one size: taken from the list of freed ones, else from a chunk of 1 MB. Faster than malloc and free on every twin that allocates.
typedef struct Pool {
  void* freed;
  char *next, *end;
} Pool;

static __attribute__((noinline)) void* pool_refill(Pool* pool, size_t size) {
  char* chunk = malloc(1 << 20);
  if (!chunk) abort();
  pool->next = chunk + size;
  pool->end = chunk + (1 << 20) / size * size;
  return chunk;
}

static inline void* pool_take(Pool* pool, size_t size) {
  void* cell = pool->freed;
  if (cell) {
    pool->freed = *(void**)cell;
    return cell;
  }
  if (pool->next == pool->end) return pool_refill(pool, size);
  cell = pool->next;
  pool->next += size;
  return cell;
}

static inline void pool_give(Pool* pool, void* cell) {
  *(void**)cell = pool->freed;
  pool->freed = cell;
}
#endif
