// Unboxed arrays above kLargeMax, on both sides between calls: a block of the host's heap is linked with a place in the device's, and bytes move only
// when the side that lacks them needs them, by granules of 64 KiB.
//
//   granule   host page protection   newest bytes
//   Host      read and write         the host's; goes to the device before the next call with the array
//   Both      read                   equal; the host's first write makes it Host
//   Device    none                   the device's; the host's first access fetches it
//
// After a call, all granules of its arrays are Device: what a kernel wrote is not known. A call that writes to no array leaves them Both. Accesses are seen by the handler of SIGSEGV (residency_touch).
// Bytes come to a page while no thread can read it: by DMA when the block is registered with the driver (page-locked), else through
// /proc/self/mem, which writes below protections. The heap tells when a block dies (BlockPager).
#pragma once
#include <pthread.h>

#include "runtime/gpu/space.h"
#include "runtime/memory/heap.h"

namespace bendc::rt::gpu {

inline constexpr uint64_t kGranule = kPage;

enum class Granule : uint8_t { Host, Both, Device };

struct Residency;

struct Resident {
  BlockPager pager;          // first: the heap knows a Resident by it
  Residency* owner;
  char* slots;               // starts a page
  uint64_t bytes;            // of the slots
  uint64_t granules;
  uint64_t place;            // in Space.places
  uint64_t last_use;
  uint64_t misses;           // since the last call with the array
  uint64_t next_miss, ahead; // granule after the last fetch; granules to fetch at a miss there
  uint64_t next_write, write_ahead;   // the same for first writes
  bool registered, tried;    // with the driver
  bool in_call;              // an argument or result of the call under way: not evicted
  Granule state[];
};

struct Residency {
  Space* space;              // null: closed
  pthread_mutex_t lock;      // of everything here; threads of the program meet at faults
  Resident** residents;      // by address
  uint64_t count, capacity;
  uint64_t clock;
  int memory;                // /proc/self/mem, or -1 where writes below protections do not work
  uint64_t linked, adopted, evicted, faults;   // for the statistics, with granules moved
  uint64_t granules_in, granules_out;
};

void residency_open(Residency* residency, Space* space);
// Gives the blocks of the heap back their protections; bytes that only the device has are lost.
void residency_close(Residency* residency);

// An array block of the heap that is linked, or can be: its element holds no references and it is above kLargeMax.
[[nodiscard]] bool can_reside(const Residency* residency, uint64_t block_bytes);
[[nodiscard]] Resident* resident_of(char* block);
// Links a block, all Host; `used` bytes of the device's heap hold the call's values. Null: no room, or the system lets us not.
[[nodiscard]] Resident* residency_link(Residency* residency, char* block, uint64_t block_bytes, uint64_t used);
// Links a fresh host block with the device's array at `device`, which is copied to a place of its own on the device: all Device. Null: no room.
[[nodiscard]] Resident* residency_adopt(Residency* residency, char* block, uint64_t block_bytes, uint64_t device, Message* why);

// The device address of the block, header included.
[[nodiscard]] uint64_t device_block(const Resident* resident);
// Puts the Host granules to the device; they are then as Both, except that the host's pages stay writable until resident_returned.
[[nodiscard]] bool resident_send(Resident* resident, Message* why);
// After a call that has only read it: both sides are equal where the host's bytes were sent.
[[nodiscard]] bool resident_read(Resident* resident, Message* why);
// After any other call: the device may have written any byte.
[[nodiscard]] bool resident_returned(Resident* resident, Message* why);
// Fetches and unlinks idle blocks, the least recently used first, until the device's heap has `bytes` free above `used` or none is idle.
[[nodiscard]] bool residency_make_room(Residency* residency, uint64_t used, uint64_t bytes, Message* why);

enum class Touch : uint8_t { NotOurs, Done, Failed };
// The host accessed `at` against its protection; called in the handler of SIGSEGV, by any thread of the program.
[[nodiscard]] Touch residency_touch(Residency* residency, const void* at, Message* why);

}  // namespace bendc::rt::gpu
