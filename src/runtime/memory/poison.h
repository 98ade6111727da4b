// Which heap memory may be touched, told to AddressSanitizer in a build with it; in every other build nothing and free of cost.
//
// There, segments and mappings are poisoned when they come from the system. An allocation opens the bytes asked for; kRedzone bytes behind
// them stay closed. A free closes the node again and it waits among the worker's last kQuarantined frees, so that a stale reference meets
// closed memory and not the next node. Free nodes are linked through their own closed bytes: only the two link functions may touch those.
#pragma once
#include <stddef.h>
#include <stdint.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define BENDC_UNWATCHED __attribute__((no_sanitize("address"), noinline))
#else
#define BENDC_UNWATCHED
#endif

namespace bendc::rt {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kPoisons = true;
inline constexpr uint64_t kRedzone = 16;
inline constexpr uint32_t kQuarantined = 256;
inline void close_memory(const void* from, uint64_t bytes) { __asan_poison_memory_region(from, bytes); }
inline void open_memory(const void* from, uint64_t bytes) { __asan_unpoison_memory_region(from, bytes); }
// Reports a node that is closed already: freed twice.
inline void touch_memory(const void* node) { (void)*static_cast<const volatile char*>(node); }
#else
inline constexpr bool kPoisons = false;
inline constexpr uint64_t kRedzone = 0;
inline constexpr uint32_t kQuarantined = 1;   // none
inline void close_memory(const void*, uint64_t) {}
inline void open_memory(const void*, uint64_t) {}
inline void touch_memory(const void*) {}
#endif

// Words of a free node: 0 links the nodes of a list, 1 the lists of a class (heap.cpp).
BENDC_UNWATCHED inline void* free_link(const void* node, uint32_t which) { return static_cast<void* const*>(node)[which]; }
BENDC_UNWATCHED inline void set_free_link(void* node, uint32_t which, void* next) { static_cast<void**>(node)[which] = next; }

}  // namespace bendc::rt
