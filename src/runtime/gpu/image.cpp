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
constexpr uint64_t kLockStep = 8 * kMiB;
constexpr uint64_t kMostLocked = 256 * kMiB;
constexpr uint64_t kLeastLocked = kMiB;        // smaller transfers are not worth a first locking
constexpr uint64_t kNewPages = 16;             // fetched at once where the call made its nodes, which threads scatter
constexpr uint64_t kPrefix = 16384;
constexpr uint64_t kSmallImage = 12288;
static_assert(kPrefix <= kPage && kSmallImage <= kPage && 2 * kPage <= kBounceBytes);
constexpr uint32_t kDiffThreads = 128;         // bend_diff: a block compares a page

char* reserve(uint64_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : static_cast<char*>(p);
}

// Page-locks what lies below `wanted`, if it is not yet.
void lock_memory(Space* space, Locked* memory, uint64_t wanted) {
  if (!space->device || wanted < kLeastLocked) return;
  const Driver& d = space->device->driver;
  if (wanted > kMostLocked) wanted = kMostLocked;
  while (memory->locked < wanted && memory->locked + kLockStep <= memory->bytes && !memory->refused) {
    memory->refused = !d.host_register || !d.host_unregister || d.host_register(memory->at + memory->locked, kLockStep, 0) != kSuccess;
    if (!memory->refused) memory->locked += kLockStep;
  }
}

void release_memory(Space* space, Locked* memory) {
  for (uint64_t at = 0; at < memory->locked; at += kLockStep) space->device->driver.host_unregister(memory->at + at);
  if (memory->at) munmap(memory->at, memory->bytes);
}

// Gives memory back to the system, but for what is locked.
void discard(Locked* memory, uint64_t from, uint64_t to) {
  if (from < memory->locked) from = memory->locked;
  if (from < to) madvise(memory->at + from, to - from, MADV_DONTNEED);
}

// Calls copy(offset, bytes) for the parts of [from, from + bytes) that lie in one step each: a copy must not cross from one locked range to another.
template <class Copy>
bool in_steps(uint64_t from, uint64_t bytes, const Copy& copy) {
  const uint64_t end = from + bytes;
  while (from < end) {
    uint64_t next = (from / kLockStep + 1) * kLockStep;
    if (next > end) next = end;
    if (!copy(from, next - from)) return false;
    from = next;
  }
  return true;
}

// A part of the staging image to its place.
bool put(Space* space, uint64_t from, uint64_t bytes, Message* why) {
  return in_steps(from, bytes, [&](uint64_t at, uint64_t part) { return space_put(space, space->heap + at, space->image.staging.at + at, part, why); });
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
  const uint64_t image_pages = m->used / kPage;
  const uint64_t reached = (space->reached + kPage - 1) / kPage;
  const uint64_t pages = (space->heap_bytes + kPage - 1) / kPage;
  for (uint64_t page = first; page <= last; ++page) {
    if (m->known[page]) continue;
    m->ahead = page == m->last_miss ? (m->ahead < kMaxAhead ? m->ahead * 2 : kMaxAhead) : 1;
    uint64_t most = m->ahead;
    if (page >= image_pages) {
      if (reached - image_pages <= kMaxAhead) most = kMaxAhead;
      else if (most < kNewPages) most = kNewPages;
    }
    if (page < reached && most > reached - page) most = reached - page;
    if (most < last - page + 1) most = last - page + 1;
    if (most > pages - page) most = pages - page;   // reading ahead ends with the heap
    uint64_t end = page;
    while (end - page < most && !m->known[end]) ++end;
    const uint64_t from = page * kPage;
    const uint64_t bytes = (end * kPage < space->heap_bytes ? end * kPage : space->heap_bytes) - from;
    lock_memory(space, &m->mirror, from + bytes);
    if (from + bytes > m->mirror.locked && space->bounce && bytes <= kBounceBytes) {
      if (!space_get(space, space->bounce, space->heap + from, bytes, why) || !space_wait(space, why)) return false;
      memcpy(m->mirror.at + from, space->bounce, bytes);
    } else if (!in_steps(from, bytes, [&](uint64_t at, uint64_t part) { return space_get(space, m->mirror.at + at, space->heap + at, part, why); }) || !space_wait(space, why)) {
      return false;
    }
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
  for (m->staging.bytes = space->heap_bytes; !m->staging.at && m->staging.bytes >= kMiB; m->staging.bytes /= 2) {
    m->staging.at = reserve(m->staging.bytes);
    if (m->staging.at) break;
  }
  m->mirror.bytes = space->heap_bytes;
  m->mirror.at = reserve(space->heap_bytes);
  m->known = static_cast<uint8_t*>(calloc(space->heap_bytes / kPage + 1, 1));
  if (m->staging.at && m->mirror.at && m->known) return true;
  why->text("the system refuses ").number(space->heap_bytes).text(" bytes of address space for the image of the device's memory; BEND_GPU_MEMORY sets a smaller one");
  return false;
}

void image_close(Space* space) {
  Image* m = &space->image;
  release_memory(space, &m->staging);
  release_memory(space, &m->mirror);
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
  const uint64_t pages = (used + kPage - 1) / kPage;
  bool fresh = false;
  if (!audit_sent(space, used, why)) return false;
  m->prefix = 0;
  lock_memory(space, &m->staging, used);
  m->compared = used >= kLeastCompared && used <= kMostCompared && pages * kPage <= m->staging.bytes && take_shadow(space, pages * kPage, &fresh) && pages * kPage <= space->places.floor();
  if (!m->compared) {
    m->used = used;
    forget_from(m, 0);
    m->pages_in += (used + kPage - 1) / kPage;
    if (!space->device || used > kSmallImage) return put(space, 0, used, why);
    memcpy(space->bounce + kPage, m->staging.at, used);
    m->waiting = used;
    return true;
  }
  m->used = pages * kPage;
  memset(m->staging.at + used, 0, m->used - used);
  auto equal = [&](uint64_t page) { return m->known[page] && memcmp(m->staging.at + page * kPage, m->mirror.at + page * kPage, kPage) == 0; };
  for (uint64_t page = 0; page < pages; ++page) {
    if (equal(page)) {
      ++m->pages_kept;
      continue;
    }
    uint64_t end = page + 1;
    while (end < pages && !equal(end)) ++end;
    const uint64_t from = page * kPage, bytes = (end - page) * kPage;
    if (!put(space, from, bytes, why)) return false;
    if (!fresh && !space_copy(space, shadow_address(space) + from, space->heap + from, bytes, why)) return false;
    memcpy(m->mirror.at + from, m->staging.at + from, bytes);
    memset(m->known + page, 1, end - page);
    m->pages_in += end - page;
    if (end < pages) ++m->pages_kept;
    page = end;
  }
  forget_from(m, pages);
  m->high = pages;
  return !fresh || space_copy(space, shadow_address(space), space->heap, pages * kPage, why);
}

uint64_t image_look(Space* space) {
  Image* m = &space->image;
  m->prefix = m->used == 0 || m->used > kSmallImage || kPrefix > space->heap_bytes ? 0 : kPrefix;
  return m->prefix;
}

bool image_settle(Space* space, Message* why) {
  Image* m = &space->image;
  if (m->prefix) memcpy(m->mirror.at, space->bounce, m->prefix);
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
  if (bytes == 0 || offset + bytes <= m->prefix) return m->mirror.at + offset;
  uint64_t last = (offset + bytes - 1) / kPage;
  for (uint64_t page = offset / kPage; page <= last; ++page)
    if (!m->known[page] && !fetch_pages(space, page, last, why)) return nullptr;
  return m->mirror.at + offset;
}

void image_reset(Space* space) {
  Image* m = &space->image;
  const uint64_t kept = m->compared ? m->used / kPage : 0;
  if (!m->compared && m->used > kKeptStaging) discard(&m->staging, 0, m->used);
  if (m->high > kept && (m->high - kept) * kPage > kKeptStaging) discard(&m->mirror, kept * kPage, m->high * kPage);
  forget_from(m, kept);
  m->prefix = 0;
  m->last_miss = m->ahead = 0;
  // Emulated memory goes back to the system, so that a program with many calls stays small and a stale read shows as zeros.
  uint64_t floor = space->places.floor() & ~4095ull;
  if (!space->device && floor > kept * kPage) madvise(reinterpret_cast<char*>(space->heap + kept * kPage), floor - kept * kPage, MADV_DONTNEED);
}

}  // namespace bendc::rt::gpu
