// The host's images of the lower end of the device's heap. The staging image is built anew for each call from its arguments, always in the same order,
// so that an unchanged value gives unchanged bytes. The mirror is what the host knows of the heap, by pages of 64 KiB, and is kept between calls:
//
//   before a call   pages of the staging image that the mirror has, equal, stay where they are; the others go to the device
//   after a call    pages that the device changed become unknown; the host's reading of the result fetches them
//
// What the device changed is found by comparing the image with a second copy on the device, its shadow (kernel bend_diff), at memory speed and
// without a mark on any store. Images below a page and very large ones have no shadow: they go as a whole, and nothing is known after a call. An image
// with a shadow takes whole pages, so that no page holds a part of it and nodes of the call.
#pragma once
#include <stdint.h>

#include "runtime/message.h"

namespace bendc::rt::gpu {

struct Space;

inline constexpr uint64_t kPage = 1u << 16;
inline constexpr uint64_t kLeastCompared = kPage;
inline constexpr uint64_t kMostCompared = 1ull << 30;

// Host memory whose first bytes are page-locked step by step as they come into use: copies then run at the bus's speed (on an H200 55 GB/s against 7
// in and 14 out), which pays for the locking (50 us a MiB) at the first use.
struct Locked {
  char* at;
  uint64_t bytes;
  uint64_t locked;
  bool refused;
};

struct Image {
  Locked staging, mirror;
  uint8_t* known;            // a flag a page of the mirror
  uint64_t high;             // no page from here on is known
  uint64_t last_miss;        // page after the one fetched last, for read-ahead
  uint64_t ahead;            // pages to fetch at the next miss in sequence
  uint8_t* changed;          // where bend_diff says so: a flag a page, page-locked
  uint64_t shadow;           // in Space.places; kNoPlace: none
  uint64_t shadow_bytes;
  uint64_t used;             // bytes of the last staging image; whole pages of one with a shadow
  bool compared;             // it has a shadow
  uint64_t waiting;          // bytes of a small image that wait in the bounce buffer's second page for space_start
  uint64_t prefix;           // bytes of the heap's start that come with the look at the control block, so that a small result needs no fetch
  uint64_t pages_in, pages_out, pages_kept;   // pages_kept: of images with a shadow, those that did not go
};

// `changed`: kMostCompared / kPage bytes that the device can write; null: emulated.
[[nodiscard]] bool image_open(Space* space, uint8_t* changed, Message* why);
void image_close(Space* space);

// The staging image's first `used` bytes to the device's heap.
[[nodiscard]] bool image_send(Space* space, uint64_t used, Message* why);
// Bytes of the heap's start that the look at the control block brings to the bounce buffer: some when the image is small.
[[nodiscard]] uint64_t image_look(Space* space);
// After the call's rounds: what of the mirror is still so.
[[nodiscard]] bool image_settle(Space* space, Message* why);
// Host view of device bytes in the heap or among the statics, fetched by pages when first read; null for an address outside, or with `why` set.
[[nodiscard]] const char* image_view(Space* space, uint64_t address, uint64_t bytes, Message* why);
// The call is over: what lies above its image is forgotten, and memory that is no longer needed goes back to the system.
void image_reset(Space* space);
// Gives up the shadow's place; true when there was one.
bool image_drop_shadow(Space* space);

}  // namespace bendc::rt::gpu
