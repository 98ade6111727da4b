// What either side wrote of the image's part of the heap, page by page, found by reading the device's memory itself before and after each call. It knows
// nothing of what image.cpp believes and sends, so that the pages moved can be held against it: only for `--stats`, emulated, and under BEND_STATS=pages,
// where a device's memory is copied to the host twice a call.
#pragma once
#include <stdint.h>

#include "runtime/message.h"

namespace bendc::rt::gpu {

struct Space;

struct PageAudit {
  bool on;
  uint64_t held;             // pages of the last call's image: what the device had read
  uint64_t by_host;          // pages of images that are no longer what the device has
  uint64_t first_read;       // pages of images behind the end of the last one
  uint64_t by_device;        // pages that calls changed, in their image or with nodes of their own
  char* copy;                // of device memory
  uint64_t copy_bytes;
};

// A new staging image of `used` bytes, before any of it goes.
[[nodiscard]] bool audit_sent(Space* space, uint64_t used, Message* why);
// After the rounds of the call that had it; nodes reach up to Space.reached.
[[nodiscard]] bool audit_ended(Space* space, Message* why);
void audit_close(PageAudit* audit);

}  // namespace bendc::rt::gpu
