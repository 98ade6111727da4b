#include "runtime/gpu/image.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/gpu/space.h"

namespace bendc::rt::gpu {

namespace {

constexpr uint64_t kMiB = 1ull << 20;
constexpr uint64_t kMaxAhead = 64;             // 4 MiB a fetch
constexpr uint64_t kKeptStaging = 64 * kMiB;
constexpr uint32_t kDiffThreads = 128;         // bend_diff: a block compares a page

char* reserve(uint64_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : static_cast<char*>(p);
}

uint64_t shadow_address(const Space* space) { return space->heap + space->image.shadow; }

void forget_from(Image* m, uint64_t page) {
  if (m->high <= page) return;
  memset(m->known + page, 0, m->high - page);
  m->high = page;
}

// A shadow of at least `bytes`; `*fresh` when it holds nothing yet. At least half of the heap stays for the call.
bool take_shadow(Space* space, uint64_t bytes, bool* fresh) {
  Image* m = &space->image;
  *fresh = false;
  if (m->shadow != kNoPlace && m->shadow_bytes >= bytes) return true;
  image_drop_shadow(space);
  uint64_t lowest = space->heap_bytes / 2;
  if (bytes + bytes > lowest) return false;
  uint64_t size = (bytes + bytes / 4 + kPage - 1) / kPage * kPage;
  m->shadow = space->places.take(size, lowest);
  if (m->shadow == kNoPlace) return false;
  m->shadow_bytes = size;
  *fresh = true;
  return true;
}

bool fetch_pages(Space* space, uint64_t first, uint64_t last, Message* why) {
  Image* m = &space->image;
  const uint64_t pages = (space->heap_bytes + kPage - 1) / kPage;
  for (uint64_t page = first; page <= last; ++page) {
    if (m->known[page]) continue;
    m->ahead = page == m->last_miss ? (m->ahead < kMaxAhead ? m->ahead * 2 : kMaxAhead) : 1;
    uint64_t most = last - page + 1 > m->ahead ? last - page + 1 : m->ahead;
    uint64_t end = page;
    while (end < pages && end - page < most && !m->known[end]) ++end;
    uint64_t from = page * kPage;
    uint64_t bytes = (end * kPage < space->heap_bytes ? end * kPage : space->heap_bytes) - from;
    // Small pieces come sooner through page-locked memory (7.6 against 14.5 us for a page on an H200).
    char* to = m->mirror + from;
    char* by = space->bounce && bytes <= kBounceBytes ? space->bounce : to;
    if (!space_get(space, by, space->heap + from, bytes, why) || !space_wait(space, why)) return false;
    if (by != to) memcpy(to, by, bytes);
    memset(m->known + page, 1, end - page);
    if (end > m->high) m->high = end;
    m->pages_out += end - page;
    m->last_miss = end;
    page = end - 1;
  }
  return true;
}

}  // namespace

bool image_open(Space* space, uint8_t* changed, Message* why) {
  Image* m = &space->image;
  m->shadow = kNoPlace;
  m->changed = changed;
  // As large as the system lets us reserve; arguments that do not fit run on the host.
  for (m->staging_bytes = space->heap_bytes; !m->staging && m->staging_bytes >= kMiB; m->staging_bytes /= 2) {
    m->staging = reserve(m->staging_bytes);
    if (m->staging) break;
  }
  m->mirror = reserve(space->heap_bytes);
  m->known = static_cast<uint8_t*>(calloc(space->heap_bytes / kPage + 1, 1));
  if (m->staging && m->mirror && m->known) return true;
  why->text("the system refuses ").number(space->heap_bytes).text(" bytes of address space for the image of the device's memory; BEND_GPU_MEMORY sets a smaller one");
  return false;
}

void image_close(Space* space) {
  Image* m = &space->image;
  if (m->staging) munmap(m->staging, m->staging_bytes);
  if (m->mirror) munmap(m->mirror, space->heap_bytes);
  free(m->known);
  *m = {};
}

bool image_drop_shadow(Space* space) {
  Image* m = &space->image;
  if (m->shadow == kNoPlace) return false;
  space->places.give(m->shadow);
  m->shadow = kNoPlace;
  return true;
}

bool image_send(Space* space, uint64_t used, Message* why) {
  Image* m = &space->image;
  const uint64_t pages = used / kPage;
  bool fresh = false;
  m->used = used;
  m->compared = used >= kLeastCompared && used <= kMostCompared && take_shadow(space, pages * kPage, &fresh);
  if (!m->compared) {
    forget_from(m, 0);
    m->pages_in += (used + kPage - 1) / kPage;
    return space_put(space, space->heap, m->staging, used, why);
  }
  auto equal = [&](uint64_t page) { return m->known[page] && memcmp(m->staging + page * kPage, m->mirror + page * kPage, kPage) == 0; };
  for (uint64_t page = 0; page < pages; ++page) {
    if (equal(page)) {
      ++m->pages_kept;
      continue;
    }
    uint64_t end = page + 1;
    while (end < pages && !equal(end)) ++end;
    const uint64_t from = page * kPage, bytes = (end - page) * kPage;
    if (!space_put(space, space->heap + from, m->staging + from, bytes, why)) return false;
    if (!fresh && !space_copy(space, shadow_address(space) + from, space->heap + from, bytes, why)) return false;
    memcpy(m->mirror + from, m->staging + from, bytes);
    memset(m->known + page, 1, end - page);
    m->pages_in += end - page;
    if (end < pages) ++m->pages_kept;
    page = end;
  }
  forget_from(m, pages);
  m->high = pages;
  if (fresh && !space_copy(space, shadow_address(space), space->heap, pages * kPage, why)) return false;
  const uint64_t tail = pages * kPage;
  m->pages_in += used > tail;
  return space_put(space, space->heap + tail, m->staging + tail, used - tail, why);
}

bool image_settle(Space* space, Message* why) {
  Image* m = &space->image;
  if (!m->compared) return true;
  const uint64_t pages = m->used / kPage;
  if (space->device) {
    const Device* device = space->device;
    uint64_t heap = space->heap, shadow = shadow_address(space), flags = reinterpret_cast<uint64_t>(m->changed);
    void* arguments[] = {&heap, &shadow, &flags};
    memset(m->changed, 0, pages);
    int code = device->driver.launch(device->diff, static_cast<unsigned>(pages), 1, 1, kDiffThreads, 1, 1, 0, device->stream, arguments, nullptr);
    if (code != kSuccess) {
      describe(&device->driver, "cuLaunchKernel bend_diff", code, why);
      return false;
    }
    if (!space_wait(space, why)) return false;
    for (uint64_t page = 0; page < pages; ++page)
      if (m->changed[page]) m->known[page] = 0;
    return true;
  }
  for (uint64_t page = 0; page < pages; ++page) {
    const char* now = reinterpret_cast<const char*>(space->heap + page * kPage);
    char* before = reinterpret_cast<char*>(shadow_address(space) + page * kPage);
    if (memcmp(before, now, kPage) == 0) continue;
    memcpy(before, now, kPage);
    m->known[page] = 0;
  }
  return true;
}

const char* image_view(Space* space, uint64_t address, uint64_t bytes, Message* why) {
  const bool in_heap = address >= space->heap && address - space->heap <= space->heap_bytes && bytes <= space->heap_bytes - (address - space->heap);
  if (!in_heap) {
    if (!space->device) return reinterpret_cast<const char*>(address);   // an immortal node of the program
    const uint64_t statics = space->device->statics;
    if (space->statics && address >= statics && address - statics + bytes <= space->device->statics_bytes) return space->statics + (address - statics);
    why->text("the device returned an address outside its memory: ").hex(address);
    return nullptr;
  }
  const Image* m = &space->image;
  uint64_t offset = address - space->heap;
  uint64_t last = (offset + (bytes ? bytes - 1 : 0)) / kPage;
  for (uint64_t page = offset / kPage; page <= last; ++page)
    if (!m->known[page] && !fetch_pages(space, page, last, why)) return nullptr;
  return m->mirror + offset;
}

void image_reset(Space* space) {
  Image* m = &space->image;
  const uint64_t kept = m->compared ? m->used / kPage : 0;
  if (!m->compared && m->used > kKeptStaging) madvise(m->staging, m->used, MADV_DONTNEED);
  if (m->high > kept && (m->high - kept) * kPage > kKeptStaging) madvise(m->mirror + kept * kPage, (m->high - kept) * kPage, MADV_DONTNEED);
  forget_from(m, kept);
  m->last_miss = m->ahead = 0;
  // Emulated memory goes back to the system, so that a program with many calls stays small and a stale read shows as zeros.
  uint64_t floor = space->places.floor() & ~4095ull;
  if (!space->device && floor > kept * kPage) madvise(reinterpret_cast<char*>(space->heap + kept * kPage), floor - kept * kPage, MADV_DONTNEED);
}

}  // namespace bendc::rt::gpu
