// Values between host and device, by the layouts of abi.h: deep copies that keep sharing. Going in, a node's or block's count becomes the number
// of references inside the arguments; coming out, the number of references in the result. Unboxed arrays of some size have places of their own on
// the device: above kLargeMax they stay there (residency.h), smaller ones move straight between the host's block and the device's. A block that
// other host handles share stays the same block: what the device wrote comes back to it.
#pragma once
#include "runtime/gpu/address_map.h"
#include "runtime/gpu/residency.h"
#include "runtime/gpu/space.h"

namespace bendc::rt::gpu {

struct Block {               // an array of the arguments that is shared on the host, or has a place of its own on the device
  char* host;
  uint64_t device;
  const BendLayout* element;
  char* staged;              // its header in the staging image; null: it has a place
  Resident* resident;        // held by one reference more from before the arguments are dropped until the result is there
  uint64_t place;            // for this call; kNoPlace: resident or staged
  uint32_t log2;
  uint32_t references;       // inside the arguments
  uint32_t owned;            // of those, ones that the call consumes
  bool kept;                 // the host holds handles beside the arguments
  bool returned;             // a resident block that is in the result
  uint32_t header[4];        // as the device gets it
};

// A value yet to be walked: `count` elements of `layout` at `place`, those before `index` done.
struct Item {
  char* place;
  const BendLayout* layout;
  uint64_t index, count;
  bool owned;
};

struct Transfer {
  BendWorker* worker;
  Space* space;
  Residency* residency;
  AddressMap memo;           // in: host node -> staged copy, host block -> 1 + index in blocks; out: device node -> host node, block of the arguments -> 1 + index
  Item* items;
  uint64_t item_count, item_capacity;
  Block* blocks;
  uint64_t block_count, block_capacity;
  uint64_t used;             // bytes of the staging image
  bool reads_only;           // the call writes to no array
  bool straight;             // some blocks moved straight: the host's must not change until they have arrived
  bool full;
  Message* why;              // set when a copy fails
  bool failed;
};

void transfer_open(Transfer* transfer, BendWorker* worker, Space* space, Residency* residency, Message* why);
void transfer_close(Transfer* transfer);

enum class Sent : uint8_t { Done, TooLarge, Failed };
// Copies the arguments at `payload` to the device; `copy` receives them with device words. Host counts do not change: the caller drops the owned ones.
[[nodiscard]] Sent send_arguments(Transfer* transfer, const BendGpuEntry* entry, const char* payload, char* copy);
// The result from its device words in `place` (changed in place to host words), then the kept blocks of the arguments.
[[nodiscard]] bool receive_result(Transfer* transfer, const BendGpuEntry* entry, char* place);

}  // namespace bendc::rt::gpu
