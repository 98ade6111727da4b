#include "runtime/gpu/page_audit.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/gpu/space.h"

namespace bendc::rt::gpu {

namespace {

// The first `bytes` of the device's heap as they are now; these copies are not counted. Null: `why` says so.
const char* heap_now(Space* space, uint64_t bytes, Message* why) {
  PageAudit* a = &space->audit;
  if (!space->device) return reinterpret_cast<const char*>(space->heap);
  if (a->copy_bytes < bytes) {
    free(a->copy);
    a->copy_bytes = bytes + bytes / 4;
    a->copy = static_cast<char*>(malloc(a->copy_bytes));
    if (!a->copy) {
      a->copy_bytes = 0;
      why->text("the system refuses memory for BEND_STATS=pages");
      return nullptr;
    }
  }
  int code = space->device->driver.copy_out(a->copy, space->heap, bytes, space->device->stream);
  if (code != kSuccess) {
    describe(&space->device->driver, "cuMemcpyDtoHAsync", code, why);
    return nullptr;
  }
  return space_wait(space, why) ? a->copy : nullptr;
}

bool is_zero(const char* bytes, uint64_t count) { return count == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, count - 1) == 0); }

uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

}  // namespace

bool audit_sent(Space* space, uint64_t used, Message* why) {
  PageAudit* a = &space->audit;
  if (!a->on) return true;
  const uint64_t pages = (used + kPage - 1) / kPage;
  const uint64_t before = least(pages, a->held);
  if (before > 0) {
    const char* now = heap_now(space, least(before * kPage, used), why);
    if (!now) return false;
    for (uint64_t page = 0; page < before; ++page) a->by_host += memcmp(now + page * kPage, space->image.staging.at + page * kPage, least(kPage, used - page * kPage)) != 0;
  }
  a->first_read += pages - before;
  a->held = pages;
  return true;
}

bool audit_ended(Space* space, Message* why) {
  PageAudit* a = &space->audit;
  if (!a->on) return true;
  const uint64_t used = space->image.used, reached = space->reached > used ? space->reached : used;
  if (reached == 0) return true;
  const char* now = heap_now(space, reached, why);
  if (!now) return false;
  for (uint64_t from = 0; from < reached; from += kPage) {
    const uint64_t end = least(from + kPage, reached);
    const uint64_t image = from < used ? least(end, used) : from;   // where the page's part of the image ends
    bool changed = memcmp(now + from, space->image.staging.at + from, image - from) != 0;
    // Behind the image the emulator's memory was zero; a device's holds what older calls left, and nodes take all of it in order.
    changed = changed || (image < end && (space->device || !is_zero(now + image, end - image)));
    a->by_device += changed;
  }
  return true;
}

void audit_close(PageAudit* audit) {
  free(audit->copy);
  *audit = {};
}

}  // namespace bendc::rt::gpu
