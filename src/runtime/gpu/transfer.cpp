// Both directions walk depth first with a stack of their own (Item), so that values of any depth cross with bounded native stack; an item that
// still has elements stays below the children of its current one.
#include "runtime/gpu/transfer.h"

#include <string.h>

#include "runtime/error.h"
#include "runtime/memory/counts.h"
#include "runtime/memory/drop.h"
#include "runtime/memory/words.h"
#include "runtime/runtime.h"

namespace bendc::rt::gpu {

namespace {

// From this size on an unboxed array is not copied through the staging image or the mirror.
constexpr uint64_t kStraight = 1u << 16;

template <class T>
void reserve_one(BendWorker* worker, T** list, uint64_t count, uint64_t* capacity) {
  if (count < *capacity) return;
  uint64_t size = *capacity ? *capacity * 2 : 64;
  T* grown = static_cast<T*>(realloc(*list, size * sizeof(T)));
  if (!grown) {
    Message detail;
    detail.text("the system refuses ").number(size * sizeof(T)).text(" bytes for a transfer to the device");
    fail(worker, kErrorMemory, nullptr, detail);
  }
  *list = grown;
  *capacity = size;
}

void push(Transfer* t, char* place, const BendLayout* layout, uint64_t count, bool owned) {
  if (layout->slot_count == 0 || count == 0) return;
  reserve_one(t->worker, &t->items, t->item_count, &t->item_capacity);
  t->items[t->item_count++] = {place, layout, 0, count, owned};
}

// Calls visit(slot, place) for each counted word of the value; sums nest only as deep as types do.
template <class Visit>
void each_word(const BendLayout* layout, char* base, const Visit& visit) {
  for (uint32_t i = 0; i < layout->slot_count; ++i) {
    const BendSlot* slot = &layout->slots[i];
    char* place = base + slot->offset;
    if (slot->kind != BEND_SLOT_SUM) {
      visit(slot, place);
      continue;
    }
    const BendSumInfo* sum = static_cast<const BendSumInfo*>(slot->info);
    uint32_t tag = u32_at(place);
    if (tag < sum->variant_count) each_word(&sum->variants[tag], place, visit);
  }
}

template <class Visit>
void walk(Transfer* t, const Visit& visit) {
  while (t->item_count > 0 && !t->full && !t->failed) {
    Item* top = &t->items[t->item_count - 1];
    char* place = top->place + top->index * top->layout->size;
    const BendLayout* layout = top->layout;
    bool owned = top->owned;
    if (++top->index == top->count) --t->item_count;
    each_word(layout, place, [&](const BendSlot* slot, char* at) { visit(slot, at, owned); });
  }
}

const BendObjectInfo* object_info(Transfer* t, const char* object) {
  uint32_t id;
  memcpy(&id, object + 4, 4);
  const BendProgram* program = t->worker->runtime->program;
  return id < program->object_count ? &program->objects[id] : nullptr;
}

// ---- in ----

// The device's heap has `bytes` free above `used`, if need be without the blocks that are idle there.
bool has_room(Transfer* t, uint64_t used, uint64_t bytes) {
  const Places& places = t->space->places;
  if (used + bytes <= places.floor()) return true;
  if (image_drop_shadow(t->space) && used + bytes <= places.floor()) return true;
  return residency_make_room(t->residency, used, bytes, t->why) && used + bytes <= places.floor();
}

char* stage(Transfer* t, uint64_t bytes) {
  uint64_t at = (t->used + 15) & ~15ull;
  if (at + bytes > t->space->image.staging.bytes || !has_room(t, at, bytes)) {
    t->full = true;
    return nullptr;
  }
  t->used = at + bytes;
  return t->space->image.staging.at + at;
}

uint64_t device_address(Transfer* t, const char* staged) { return t->space->heap + static_cast<uint64_t>(staged - t->space->image.staging.at); }

// The device address of a node or object. `shared`: it may be met again.
uint64_t send_node(Transfer* t, char* node, const BendLayout* layout, bool owned, bool shared) {
  if (shared) {
    if (uint64_t* seen = t->memo.find(reinterpret_cast<uint64_t>(node))) {
      char* copy = reinterpret_cast<char*>(*seen);
      ++count_of(copy);
      return device_address(t, copy);
    }
  }
  char* copy = stage(t, layout->size);
  if (!copy) return 0;
  memcpy(copy, node, layout->size);
  count_of(copy) = 1;
  if (shared) t->memo.add(t->worker, reinterpret_cast<uint64_t>(node), reinterpret_cast<uint64_t>(copy));
  push(t, copy, layout, 1, owned);
  return device_address(t, copy);
}

// A place of the device's own for a large block: where it is resident, where it becomes resident, or for this call. False: there is no room.
bool place_block(Transfer* t, Block* b, uint64_t bytes) {
  Space* space = t->space;
  if (can_reside(t->residency, bytes)) {
    b->resident = resident_of(b->host);
    if (!b->resident) b->resident = residency_link(t->residency, b->host, bytes, t->used);
    if (!b->resident && image_drop_shadow(space)) b->resident = residency_link(t->residency, b->host, bytes, t->used);
    if (!b->resident) return false;
    b->resident->in_call = true;
    b->device = device_block(b->resident);
    return true;
  }
  // The slots, not the header, start a 128-byte line.
  b->place = space->places.take(bytes + 128, t->used);
  if (b->place == kNoPlace && has_room(t, t->used, bytes + 128 + kPlaceStep)) b->place = space->places.take(bytes + 128, t->used);
  if (b->place == kNoPlace) return false;
  b->device = space->heap + b->place + 128 - BEND_ARRAY_HEADER;
  t->straight = true;
  return true;
}

uint64_t send_block(Transfer* t, char* block, uint32_t log2, const BendLayout* element, bool owned) {
  bool shared = count_read(&count_of(block)) != 1;
  if (shared) {
    if (uint64_t* seen = t->memo.find(reinterpret_cast<uint64_t>(block))) {
      Block* known = &t->blocks[*seen - 1];
      ++known->references;
      known->owned += owned;
      return known->device;
    }
  }
  uint64_t bytes = array_bytes(log2, element);
  Block b = {block, 0, element, nullptr, nullptr, kNoPlace, log2, 1, owned ? 1u : 0u, false, false, {0, 0, 0, 0}};
  bool straight = element->slot_count == 0 && bytes >= kStraight;
  if (straight) {
    if (!place_block(t, &b, bytes)) {
      t->full = true;
      return 0;
    }
  } else {
    b.staged = stage(t, bytes);
    if (!b.staged) return 0;
    memcpy(b.staged, block, bytes);
    count_of(b.staged) = 1;
    b.device = device_address(t, b.staged);
    push(t, b.staged + BEND_ARRAY_HEADER, element, 1ull << log2, owned);
  }
  if (shared || straight) {
    reserve_one(t->worker, &t->blocks, t->block_count, &t->block_capacity);
    t->blocks[t->block_count++] = b;
    if (shared) t->memo.add(t->worker, reinterpret_cast<uint64_t>(block), t->block_count);
  }
  return b.device;
}

void send_word(Transfer* t, const BendSlot* slot, char* place, bool owned) {
  BendWord word = word_at(place);
  switch (static_cast<BendSlotKind>(slot->kind)) {
    case BEND_SLOT_DATA: {
      const BendDataInfo* data = static_cast<const BendDataInfo*>(slot->info);
      RefView view = view_ref(word, data);
      if (view.node) word_at(place) = send_node(t, view.node, &data->ctors[view.ctor].layout, owned, count_read(&count_of(view.node)) != 1) | (word & kTagMask);
      return;
    }
    case BEND_SLOT_ARRAY: {
      char* block = array_block(word);
      if (block) word_at(place) = send_block(t, block, array_log2(word), static_cast<const BendLayout*>(slot->info), owned) | (word & ~BEND_ARRAY_ADDRESS);
      return;
    }
    case BEND_SLOT_OBJECT: {
      if (is_immediate(word)) return;
      char* object = reinterpret_cast<char*>(word);
      // A closure without captures is one object for all; the device has one a reference, as for any other closure.
      bool shared = count_read(&count_of(object)) != 1 && !object_info(t, object)->instance;
      word_at(place) = send_node(t, object, &object_info(t, object)->layout, owned, shared);
      return;
    }
    case BEND_SLOT_SUM: return;
  }
}

bool consumes(const BendLayout* owned, const BendSlot* slot) {
  for (uint32_t i = 0; i < owned->slot_count; ++i)
    if (owned->slots[i].offset == slot->offset) return true;
  return false;
}

// The image and the blocks with places, with counts that are final now.
bool put_all(Transfer* t) {
  Space* space = t->space;
  for (uint64_t i = 0; i < t->block_count; ++i) {
    Block* b = &t->blocks[i];
    uint32_t held = count_read(&count_of(b->host));
    b->kept = held > 1 && held > b->owned;
    b->header[0] = b->references + (b->kept ? 1u : 0u);
    if (b->staged) {
      memcpy(b->staged, b->header, 4);
      continue;
    }
    if (!space_put(space, b->device, b->header, sizeof b->header, t->why)) return false;
    if (b->resident) {
      if (!resident_send(b->resident, t->why)) return false;
      count_up(&count_of(b->host));
    } else if (!space_put(space, b->device + BEND_ARRAY_HEADER, b->host + BEND_ARRAY_HEADER, array_bytes(b->log2, b->element) - BEND_ARRAY_HEADER, t->why)) {
      return false;
    }
  }
  // Idle blocks leave a quarter of the heap to a call that may need it.
  return residency_make_room(t->residency, t->used, space->heap_bytes / 4, t->why) && image_send(space, t->used, t->why);
}

// ---- out ----

void broken(Transfer* t) {
  t->failed = true;
  if (t->why->size() == 0) t->why->text("the device returned a value that is none");
}

// The host node of a device node; `known` bytes of it are readable at `view`.
char* receive_node(Transfer* t, uint64_t address, const BendLayout* layout) {
  const char* view = image_view(t->space, address, layout->size, t->why);
  if (!view) {
    broken(t);
    return nullptr;
  }
  uint32_t count;
  memcpy(&count, view, 4);
  if (count != 1) {
    if (uint64_t* seen = t->memo.find(address)) {
      char* node = reinterpret_cast<char*>(*seen);
      count_up(&count_of(node));
      return node;
    }
  }
  char* node = static_cast<char*>(heap_alloc(t->worker, layout->size));
  memcpy(node, view, layout->size);
  count_of(node) = 1;
  if (count != 1) t->memo.add(t->worker, address, reinterpret_cast<uint64_t>(node));
  push(t, node, layout, 1, true);
  return node;
}

// A block of the arguments: the reference that the call holds goes to the result's first handle, unless the host keeps the block anyway.
char* receive_known(Block* b) {
  if (b->kept || b->returned) count_up(&count_of(b->host));
  b->returned = true;
  return b->host;
}

// A large block that the call made: it stays on the device when there is room for it.
bool adopt(Transfer* t, char* block, uint64_t address, uint64_t bytes) {
  if (!can_reside(t->residency, bytes)) return false;
  Resident* resident = residency_adopt(t->residency, block, bytes, address, t->why);
  if (!resident) return false;
  resident->in_call = false;
  return true;
}

char* receive_block(Transfer* t, uint64_t address, uint32_t log2, const BendLayout* element) {
  if (uint64_t* seen = t->memo.find(address)) {
    if (*seen <= t->block_count) return receive_known(&t->blocks[*seen - 1]);
    char* block = reinterpret_cast<char*>(*seen);
    count_up(&count_of(block));
    return block;
  }
  uint64_t bytes = array_bytes(log2, element);
  bool straight = element->slot_count == 0 && bytes >= kStraight;
  const char* view = image_view(t->space, address, straight ? BEND_ARRAY_HEADER : bytes, t->why);
  if (!view || log2 > BEND_MAX_ARRAY_CLASS) {
    broken(t);
    return nullptr;
  }
  char* block = static_cast<char*>(heap_alloc(t->worker, bytes));
  uint32_t count;
  memcpy(&count, view, 4);
  if (straight) {
    if (!adopt(t, block, address, bytes) && !space_get(t->space, block + BEND_ARRAY_HEADER, address + BEND_ARRAY_HEADER, bytes - BEND_ARRAY_HEADER, t->why)) broken(t);
  } else {
    memcpy(block + BEND_ARRAY_HEADER, view + BEND_ARRAY_HEADER, bytes - BEND_ARRAY_HEADER);
    push(t, block + BEND_ARRAY_HEADER, element, 1ull << log2, true);
  }
  memset(block, 0, BEND_ARRAY_HEADER);
  count_of(block) = 1;
  // The device leaves the counts of large unboxed blocks as they are.
  if (count != 1 || bytes > BEND_DEVICE_SMALL) t->memo.add(t->worker, address, reinterpret_cast<uint64_t>(block));
  return block;
}

void receive_ref(Transfer* t, char* place, const BendDataInfo* data) {
  BendWord word = word_at(place);
  uint32_t ctor = static_cast<uint32_t>(word & kTagMask);
  uint64_t address = word & ~kTagMask;
  if (data->tagged) {
    if (ctor >= data->ctor_count) return broken(t);
    if (data->ctors[ctor].repr != BEND_CTOR_NODE) return;
  } else {
    if (ctor == kTagMask) return;
    const char* view = image_view(t->space, address, 8, t->why);
    if (!view) return broken(t);
    memcpy(&ctor, view + 4, 4);
    if (ctor >= data->ctor_count) return broken(t);
  }
  char* node = receive_node(t, address, &data->ctors[ctor].layout);
  word_at(place) = reinterpret_cast<uint64_t>(node) | (word & kTagMask);
}

void receive_word(Transfer* t, const BendSlot* slot, char* place) {
  BendWord word = word_at(place);
  switch (static_cast<BendSlotKind>(slot->kind)) {
    case BEND_SLOT_DATA: return receive_ref(t, place, static_cast<const BendDataInfo*>(slot->info));
    case BEND_SLOT_ARRAY: {
      uint64_t address = word & BEND_ARRAY_ADDRESS;
      if (address == 0) return;
      char* block = receive_block(t, address, array_log2(word), static_cast<const BendLayout*>(slot->info));
      word_at(place) = reinterpret_cast<uint64_t>(block) | (word & ~BEND_ARRAY_ADDRESS);
      return;
    }
    case BEND_SLOT_OBJECT: {
      if (is_immediate(word)) return;
      const char* view = image_view(t->space, word, 8, t->why);
      const BendObjectInfo* info = view ? object_info(t, view) : nullptr;
      if (!info) return broken(t);
      word_at(place) = reinterpret_cast<uint64_t>(info->instance ? info->instance : receive_node(t, word, &info->layout));
      return;
    }
    case BEND_SLOT_SUM: return;
  }
}

// New contents for a block that the host has gone on holding.
bool write_back(Transfer* t, Block* b) {
  char* slots = b->host + BEND_ARRAY_HEADER;
  uint64_t bytes = array_bytes(b->log2, b->element) - BEND_ARRAY_HEADER;
  if (b->element->slot_count == 0) return space_get(t->space, slots, b->device + BEND_ARRAY_HEADER, bytes, t->why);
  const char* view = image_view(t->space, b->device + BEND_ARRAY_HEADER, bytes, t->why);
  if (!view) return false;
  for (uint64_t i = 0; i < 1ull << b->log2; ++i) drop_value(t->worker, b->element, slots + i * b->element->size);
  memcpy(slots, view, bytes);
  push(t, slots, b->element, 1ull << b->log2, true);
  return true;
}

// The call's own reference ends, unless the result's first handle has it: a resident block that nobody else holds dies, any other has its newest bytes
// on the device, or on both sides when the call has only read. (A borrowed argument is held by the caller, so it lives on.)
bool let_go(Transfer* t, Block* b) {
  const bool handed_on = b->returned && !b->kept;
  if (!handed_on && count_down(&count_of(b->host))) {
    heap_free(t->worker, b->host, array_bytes(b->log2, b->element));
    b->resident = nullptr;
    return true;
  }
  return t->reads_only ? resident_read(b->resident, t->why) : resident_returned(b->resident, t->why);
}

}  // namespace

void transfer_open(Transfer* t, BendWorker* worker, Space* space, Residency* residency, Message* why) {
  *t = {};
  t->worker = worker;
  t->space = space;
  t->residency = residency;
  t->why = why;
}

void transfer_close(Transfer* t) {
  for (uint64_t i = 0; i < t->block_count; ++i) {
    if (t->blocks[i].place != kNoPlace) t->space->places.give(t->blocks[i].place);
    if (t->blocks[i].resident) t->blocks[i].resident->in_call = false;
  }
  t->memo.close();
  free(t->items);
  free(t->blocks);
}

Sent send_arguments(Transfer* t, const BendGpuEntry* entry, const char* payload, char* copy) {
  memcpy(copy, payload, entry->args.size);
  t->reads_only = (entry->flags & BEND_GPU_READS_ONLY) != 0;
  for (uint32_t i = 0; i < entry->args.slot_count && !t->full; ++i) {
    const BendSlot* slot = &entry->args.slots[i];
    bool owned = consumes(&entry->owned, slot);
    BendLayout one = {entry->args.size, 0, 1, 0, slot};
    each_word(&one, copy, [&](const BendSlot* s, char* at) { send_word(t, s, at, owned); });
    walk(t, [&](const BendSlot* s, char* at, bool mine) { send_word(t, s, at, mine); });
  }
  if (t->full) return Sent::TooLarge;
  return put_all(t) ? Sent::Done : Sent::Failed;
}

bool receive_result(Transfer* t, const BendGpuEntry* entry, char* place) {
  t->memo.clear();
  for (uint64_t i = 0; i < t->block_count; ++i)
    if (t->blocks[i].kept || t->blocks[i].resident) t->memo.add(t->worker, t->blocks[i].device, i + 1);
  auto receive = [&](const BendSlot* slot, char* at, bool) { receive_word(t, slot, at); };
  each_word(&entry->result, place, [&](const BendSlot* slot, char* at) { receive_word(t, slot, at); });
  walk(t, receive);
  for (uint64_t i = 0; i < t->block_count && !t->failed; ++i) {
    Block* b = &t->blocks[i];
    if (b->resident) t->failed = !let_go(t, b);
    else if (b->kept && !(t->reads_only && b->element->slot_count == 0) && !write_back(t, b)) t->failed = true;
    walk(t, receive);
  }
  return !t->failed && space_wait(t->space, t->why);
}

}  // namespace bendc::rt::gpu
