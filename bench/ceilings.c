// What this processor can do at most, on one thread: prints instructions a second (independent adds, a jump for every 64) and bytes a second of reading
// and writing 256 MB in order. Best of several runs.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#define FOUR "add $1, %%rax\n add $1, %%rcx\n add $1, %%rdx\n add $1, %%rsi\n"
#define SIXTEEN FOUR FOUR FOUR FOUR

static double adds(void) {
  enum { kRounds = 4000000 };
  double start = now();
  for (int i = 0; i < kRounds; i++) __asm__ volatile(SIXTEEN SIXTEEN SIXTEEN SIXTEEN : : : "rax", "rcx", "rdx", "rsi", "cc");
  return kRounds * 66.0 / (now() - start);
}

static double bytes(uint64_t* a, uint64_t n, int writes) {
  uint64_t sum = 0;
  double start = now();
  if (writes) {
    memset(a, 1, n * 8);
    __asm__ volatile("" : : "r"(a) : "memory");
  } else {
    for (uint64_t i = 0; i < n; i++) sum += a[i];
    __asm__ volatile("" : : "r"(sum));
  }
  return (double)(n * 8) / (now() - start);
}

int main(void) {
  const uint64_t n = 32ull << 20;
  uint64_t* a = malloc(n * 8);
  if (!a) return 1;
  memset(a, 0, n * 8);
  double add = 0, read = 0, write = 0;
  for (int i = 0; i < 7; i++) {
    double x = adds(), r = bytes(a, n, 0), w = bytes(a, n, 1);
    if (x > add) add = x;
    if (r > read) read = r;
    if (w > write) write = w;
  }
  printf("%.0f %.0f %.0f\n", add, read, write);
  free(a);
  return 0;
}
