#include "driver/allocator.h"

#include <malloc.h>

#include <climits>

namespace bendc {

#ifdef __GLIBC__

// With glibc's defaults half of the time of large programs was the kernel's, for pages given back and taken again: 100,000 constructors down to
// insert_ownership take 0.80 of that time by these settings, 160,000 laws 0.67. Huge pages (MADV_HUGEPAGE) would halve it again,
// but every other run waits as long once more for the kernel to make them.
void keep_freed_memory() {
  constexpr int kMapped = 128 << 20;   // larger blocks get a mapping of their own: as holes in the heap, grown tables would cost a third more at the peak
  constexpr int kStep = 64 << 20;      // of the heap's growth, in addresses
  mallopt(M_ARENA_MAX, 1);             // the compiler is one thread, and not the first: an arena of its own is made of pieces of 64 MiB
  mallopt(M_MMAP_THRESHOLD, kMapped);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, kStep);
}

void give_freed_memory_back() { malloc_trim(0); }

#else

void keep_freed_memory() {}
void give_freed_memory_back() {}

#endif

}  // namespace bendc
