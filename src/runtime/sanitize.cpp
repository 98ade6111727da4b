// Under ThreadSanitizer: block operations by the names that LLVM's instrumentation calls. gcc's library has only the intercepted C functions.
#if defined(__SANITIZE_THREAD__)
#include <string.h>

extern "C" {
__attribute__((weak)) void* __tsan_memcpy(void* to, const void* from, size_t size) { return memcpy(to, from, size); }
__attribute__((weak)) void* __tsan_memmove(void* to, const void* from, size_t size) { return memmove(to, from, size); }
__attribute__((weak)) void* __tsan_memset(void* to, int value, size_t size) { return memset(to, value, size); }
}
#endif
