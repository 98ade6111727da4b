#include "runtime/gpu/residency.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace bendc::rt::gpu {

namespace {

constexpr uint64_t kSystemPage = 4096;
constexpr uint64_t kMostAhead = 64;            // granules a fetch: 4 MiB, 76 us of the bus where a fetch of one granule takes 25 with its fault
// From this many misses on the rest of the array is likely to be read too, in whatever order: each miss then fetches twice as much as the last.
constexpr uint64_t kFewMisses = 8;
// A granule that goes without need costs a fifth of a fault.
constexpr uint64_t kMostWrittenAhead = 16;
// Slots stand this far into their place, at a 128-byte line.
constexpr uint64_t kSlotsInPlace = 128;

uint64_t span(const Resident* r) { return (r->bytes + kSystemPage - 1) & ~(kSystemPage - 1); }
uint64_t granule_bytes(const Resident* r, uint64_t first, uint64_t count) {
  uint64_t end = (first + count) * kGranule;
  return (end < r->bytes ? end : r->bytes) - first * kGranule;
}
uint64_t device_slots(const Resident* r) { return r->owner->space->heap + r->place + kSlotsInPlace; }

bool protect(const Resident* r, uint64_t first, uint64_t count, int protection) {
  uint64_t from = first * kGranule;
  uint64_t to = (first + count) * kGranule;
  if (to > span(r)) to = span(r);
  return mprotect(r->slots + from, to - from, protection) == 0;
}

// Whether a write through /proc/self/mem reaches a page without access; hardened kernels refuse it.
int open_own_memory() {
  int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  if (fd < 0) return -1;
  void* page = mmap(nullptr, kSystemPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  bool works = false;
  if (page != MAP_FAILED) {
    const uint64_t mark = 0x5AFE5AFE5AFE5AFEull;
    works = pwrite(fd, &mark, sizeof mark, static_cast<off_t>(reinterpret_cast<uint64_t>(page))) == sizeof mark && mprotect(page, kSystemPage, PROT_READ) == 0 &&
            memcmp(page, &mark, sizeof mark) == 0;
    munmap(page, kSystemPage);
  }
  if (works) return fd;
  close(fd);
  return -1;
}

bool write_below(const Residency* y, char* to, const char* from, uint64_t bytes, Message* why) {
  while (bytes > 0) {
    ssize_t n = pwrite(y->memory, from, bytes, static_cast<off_t>(reinterpret_cast<uint64_t>(to)));
    if (n <= 0) {
      why->text("the system refuses a write to the program's memory");
      return false;
    }
    to += n;
    from += n;
    bytes -= static_cast<uint64_t>(n);
  }
  return true;
}

// The device's bytes of granules that the host cannot access, which they still are afterwards.
bool fetch(Resident* r, uint64_t first, uint64_t count, Message* why) {
  Residency* y = r->owner;
  Space* space = y->space;
  char* to = r->slots + first * kGranule;
  uint64_t from = device_slots(r) + first * kGranule;
  uint64_t bytes = granule_bytes(r, first, count);
  y->granules_out += count;
  if (r->registered) return space_get(space, to, from, bytes, why) && space_wait(space, why);
  if (!space->device) {
    space->moved_out += bytes;
    return write_below(y, to, reinterpret_cast<const char*>(from), bytes, why);
  }
  while (bytes > 0) {
    uint64_t part = bytes < kBounceBytes ? bytes : kBounceBytes;
    if (!space_get(space, space->bounce, from, part, why) || !space_wait(space, why) || !write_below(y, to, space->bounce, part, why)) return false;
    to += part;
    from += part;
    bytes -= part;
  }
  return true;
}

uint64_t run_of(const Resident* r, uint64_t first, Granule state) {
  uint64_t end = first;
  while (end < r->granules && r->state[end] == state) ++end;
  return end - first;
}

// All bytes on the host, all pages writable.
bool bring_home(Resident* r, Message* why) {
  for (uint64_t g = 0; g < r->granules; ++g) {
    uint64_t count = run_of(r, g, Granule::Device);
    if (count == 0) continue;
    if (!fetch(r, g, count, why)) return false;
    g += count - 1;
  }
  if (mprotect(r->slots, span(r), PROT_READ | PROT_WRITE) != 0) {
    why->text("the system refuses to change the protection of memory");
    return false;
  }
  memset(r->state, static_cast<int>(Granule::Host), r->granules);
  return true;
}

uint64_t index_of(const Residency* y, const char* at) {
  uint64_t low = 0, high = y->count;
  while (low < high) {
    uint64_t middle = (low + high) / 2;
    if (y->residents[middle]->slots + y->residents[middle]->bytes <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

void use_context(const Space* space) {
  if (space->device) space->device->driver.context_use(space->device->context);
}

void unlink(Resident* r) {
  Residency* y = r->owner;
  if (r->registered) {
    use_context(y->space);
    y->space->device->driver.host_unregister(r->slots);
  }
  y->space->places.give(r->place);
  uint64_t i = index_of(y, r->slots);
  --y->count;
  memmove(y->residents + i, y->residents + i + 1, (y->count - i) * sizeof(Resident*));
  block_pager(r->slots - BEND_ARRAY_HEADER) = nullptr;
  free(r);
}

// The block dies. Its bytes no longer matter, its pages become ordinary ones.
void release(BlockPager* pager) {
  Resident* r = reinterpret_cast<Resident*>(pager);
  Residency* y = r->owner;
  pthread_mutex_lock(&y->lock);
  mprotect(r->slots, span(r), PROT_READ | PROT_WRITE);
  unlink(r);
  pthread_mutex_unlock(&y->lock);
}

Resident* idlest(const Residency* y) {
  Resident* found = nullptr;
  for (uint64_t i = 0; i < y->count; ++i) {
    Resident* r = y->residents[i];
    if (!r->in_call && (!found || r->last_use < found->last_use)) found = r;
  }
  return found;
}

// False: nothing is idle, or a fetch failed (`why` says so).
bool evict_one(Residency* y, Message* why) {
  Resident* r = idlest(y);
  if (!r) return false;
  use_context(y->space);
  if (!bring_home(r, why)) return false;
  unlink(r);
  ++y->evicted;
  return true;
}

// A place that leaves the heap below `lowest` free; idle blocks make room.
uint64_t take_place(Residency* y, uint64_t bytes, uint64_t lowest) {
  Message unused;
  for (;;) {
    uint64_t at = y->space->places.take(bytes, lowest);
    if (at != kNoPlace || !evict_one(y, &unused)) return at;
  }
}

Resident* add(Residency* y, char* block, uint64_t block_bytes, uint64_t place, Granule state) {
  uint64_t bytes = block_bytes - BEND_ARRAY_HEADER;
  uint64_t granules = (bytes + kGranule - 1) / kGranule;
  Resident* r = static_cast<Resident*>(calloc(1, sizeof(Resident) + granules));
  if (y->count == y->capacity) {
    uint64_t size = y->capacity ? y->capacity * 2 : 16;
    Resident** grown = static_cast<Resident**>(realloc(y->residents, size * sizeof(Resident*)));
    if (grown) {
      y->residents = grown;
      y->capacity = size;
    }
  }
  if (!r || y->count == y->capacity) {
    free(r);
    y->space->places.give(place);
    return nullptr;
  }
  r->pager.release = release;
  r->owner = y;
  r->slots = block + BEND_ARRAY_HEADER;
  r->bytes = bytes;
  r->granules = granules;
  r->place = place;
  r->next_miss = r->next_write = UINT64_MAX;
  r->in_call = true;
  r->last_use = ++y->clock;
  memset(r->state, static_cast<int>(state), granules);
  uint64_t i = index_of(y, r->slots);
  memmove(y->residents + i + 1, y->residents + i, (y->count - i) * sizeof(Resident*));
  y->residents[i] = r;
  ++y->count;
  block_pager(block) = &r->pager;
  return r;
}

// Page-locks the block; its pages must be writable.
void try_register(Resident* r) {
  const Space* space = r->owner->space;
  if (r->tried || !space->device) return;
  r->tried = true;
  const Driver& d = space->device->driver;
  r->registered = d.host_register && d.host_unregister && d.host_register(r->slots, span(r), 0) == kSuccess;
}

uint64_t place_bytes(uint64_t block_bytes) { return block_bytes - BEND_ARRAY_HEADER + kSlotsInPlace; }

}  // namespace

void residency_open(Residency* y, Space* space) {
  memset(y, 0, sizeof *y);
  pthread_mutex_init(&y->lock, nullptr);
  y->memory = open_own_memory();
  y->space = space;
}

void residency_close(Residency* y) {
  if (!y->space) return;
  while (y->count > 0) release(&y->residents[y->count - 1]->pager);
  free(y->residents);
  if (y->memory >= 0) close(y->memory);
  pthread_mutex_destroy(&y->lock);
  y->space = nullptr;
}

bool can_reside(const Residency* y, uint64_t block_bytes) { return y->memory >= 0 && block_bytes > kLargeMax; }

Resident* resident_of(char* block) { return reinterpret_cast<Resident*>(block_pager(block)); }

uint64_t device_block(const Resident* r) { return device_slots(r) - BEND_ARRAY_HEADER; }

Resident* residency_link(Residency* y, char* block, uint64_t block_bytes, uint64_t used) {
  pthread_mutex_lock(&y->lock);
  // The arguments of a call may fill the heap; with a choice, a quarter stays free for what the call makes.
  uint64_t place = take_place(y, place_bytes(block_bytes), used + y->space->heap_bytes / 4);
  if (place == kNoPlace) place = take_place(y, place_bytes(block_bytes), used);
  Resident* r = place == kNoPlace ? nullptr : add(y, block, block_bytes, place, Granule::Host);
  if (r) ++y->linked;
  pthread_mutex_unlock(&y->lock);
  return r;
}

Resident* residency_adopt(Residency* y, char* block, uint64_t block_bytes, uint64_t device, Message* why) {
  pthread_mutex_lock(&y->lock);
  const Space* space = y->space;
  uint64_t quarter = space->heap_bytes / 4;
  uint64_t place = take_place(y, place_bytes(block_bytes), space->reached > quarter ? space->reached : quarter);
  Resident* r = place == kNoPlace ? nullptr : add(y, block, block_bytes, place, Granule::Device);
  if (r && !(space_copy(y->space, device_slots(r), device + BEND_ARRAY_HEADER, r->bytes, why) && protect(r, 0, r->granules, PROT_NONE))) {
    unlink(r);
    r = nullptr;
  }
  if (r) ++y->adopted;
  pthread_mutex_unlock(&y->lock);
  return r;
}

bool resident_send(Resident* r, Message* why) {
  Residency* y = r->owner;
  Space* space = y->space;
  pthread_mutex_lock(&y->lock);
  r->in_call = true;
  r->last_use = ++y->clock;
  bool ok = true;
  if (run_of(r, 0, Granule::Host) == r->granules) try_register(r);
  for (uint64_t g = 0; g < r->granules && ok; ++g) {
    uint64_t count = run_of(r, g, Granule::Host);
    if (count == 0) continue;
    ok = space_put(space, device_slots(r) + g * kGranule, r->slots + g * kGranule, granule_bytes(r, g, count), why);
    y->granules_in += count;
    g += count - 1;
  }
  pthread_mutex_unlock(&y->lock);
  return ok;
}

bool resident_read(Resident* r, Message* why) {
  pthread_mutex_lock(&r->owner->lock);
  bool ok = true;
  for (uint64_t g = 0; g < r->granules && ok; ++g) {
    uint64_t count = run_of(r, g, Granule::Host);
    if (count == 0) continue;
    ok = protect(r, g, count, PROT_READ);
    memset(r->state + g, static_cast<int>(Granule::Both), count);
    g += count - 1;
  }
  r->next_miss = r->next_write = UINT64_MAX;
  r->misses = 0;
  ok = ok || bring_home(r, why);
  pthread_mutex_unlock(&r->owner->lock);
  return ok;
}

bool resident_returned(Resident* r, Message* why) {
  pthread_mutex_lock(&r->owner->lock);
  memset(r->state, static_cast<int>(Granule::Device), r->granules);
  r->next_miss = r->next_write = UINT64_MAX;
  r->misses = 0;
  // A system that has no room for another range of protections gets everything at once.
  bool ok = protect(r, 0, r->granules, PROT_NONE) || bring_home(r, why);
  pthread_mutex_unlock(&r->owner->lock);
  return ok;
}

bool residency_make_room(Residency* y, uint64_t used, uint64_t bytes, Message* why) {
  pthread_mutex_lock(&y->lock);
  while (y->space->places.floor() < used + bytes && evict_one(y, why)) {
  }
  pthread_mutex_unlock(&y->lock);
  return why->size() == 0;
}

Touch residency_touch(Residency* y, const void* at, Message* why) {
  if (!y->space) return Touch::NotOurs;
  const char* address = static_cast<const char*>(at);
  pthread_mutex_lock(&y->lock);
  uint64_t i = index_of(y, address);
  Resident* r = i < y->count && y->residents[i]->slots <= address ? y->residents[i] : nullptr;
  Touch result = Touch::Done;
  bool ok = true;
  if (!r) {
    result = Touch::NotOurs;
  } else {
    ++y->faults;
    uint64_t g = static_cast<uint64_t>(address - r->slots) / kGranule;
    switch (r->state[g]) {
      case Granule::Host: break;   // another thread was here first
      case Granule::Both: {
        r->write_ahead = g != r->next_write ? 1 : r->write_ahead < kMostWrittenAhead ? r->write_ahead * 2 : kMostWrittenAhead;
        uint64_t count = run_of(r, g, Granule::Both);
        if (count > r->write_ahead) count = r->write_ahead;
        ok = protect(r, g, count, PROT_READ | PROT_WRITE);
        memset(r->state + g, static_cast<int>(Granule::Host), count);
        r->next_write = g + count;
        break;
      }
      case Granule::Device: {
        r->ahead = g != r->next_miss && ++r->misses < kFewMisses ? 1 : r->ahead < kMostAhead ? r->ahead * 2 : kMostAhead;
        uint64_t count = run_of(r, g, Granule::Device);
        if (count > r->ahead) count = r->ahead;
        use_context(y->space);
        if (!fetch(r, g, count, why)) {
          result = Touch::Failed;
          break;
        }
        ok = protect(r, g, count, PROT_READ);
        memset(r->state + g, static_cast<int>(Granule::Both), count);
        r->next_miss = g + count;
        break;
      }
    }
    if (!ok && !bring_home(r, why)) result = Touch::Failed;
  }
  pthread_mutex_unlock(&y->lock);
  return result;
}

}  // namespace bendc::rt::gpu
