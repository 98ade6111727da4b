// Dropping walks the dying structure depth first with reversed pointers (the Deutsch-Schorr-Waite scheme): while a child dies, the slot it
// hung in holds the link to the parent, and the parent's header, no longer needed as a count, holds how far the parent's walk has come.
//
//   node or object: header (8 bytes)   = layout address | next counted word << 48
//   array block:    header (16 bytes)  = layout address | log2(slots) << 56, then element index << 32 | next counted word
//   link:           address of the parent | 1 for an array block
//
// The last counted word of a node is followed after the node has been freed, so lists of any length die with one live link.
#include "runtime/memory/drop.h"

#include "runtime/error.h"
#include "runtime/memory/counts.h"
#include "runtime/memory/words.h"
#include "runtime/runtime.h"

namespace bendc::rt {

namespace {

constexpr uint64_t kAddress48 = 0x0000FFFFFFFFFFFFull;

struct Dying {
  char* cell;
  const BendLayout* layout;   // of the node, or of the array's element
  bool is_array;
  uint32_t log2;
};

// Gives up the reference in `word`; true when it was the last, with what dies.
bool release(BendWorker* worker, BendWord word, uint32_t kind, const void* info, Dying* dying) {
  switch (static_cast<BendSlotKind>(kind)) {
    case BEND_SLOT_DATA: {
      const BendDataInfo* data = static_cast<const BendDataInfo*>(info);
      RefView view = view_ref(word, data);
      if (!view.node || !count_down(&count_of(view.node), worker->atomic)) return false;
      *dying = {view.node, &data->ctors[view.ctor].layout, false, 0};
      return true;
    }
    case BEND_SLOT_ARRAY: {
      char* block = array_block(word);
      if (!block || !count_down(&count_of(block), worker->atomic)) return false;
      *dying = {block, static_cast<const BendLayout*>(info), true, array_log2(word)};
      return true;
    }
    case BEND_SLOT_OBJECT: {
      if (is_immediate(word)) return false;
      char* object = reinterpret_cast<char*>(word);
      if (!count_down(&count_of(object), worker->atomic)) return false;
      *dying = {object, &worker->runtime->program->objects[u32_at(object + 4)].layout, false, 0};
      return true;
    }
    case BEND_SLOT_SUM: break;   // find_counted looks inside sums
  }
  return false;
}

void free_cell(BendWorker* worker, const Dying& d) {
  heap_free(worker, d.cell, d.is_array ? array_bytes(d.log2, d.layout) : d.layout->size);
}

uint64_t walked_elements(const Dying& d) { return d.is_array && d.layout->slot_count ? 1ull << d.log2 : d.is_array ? 0 : 1; }
char* element_at(const Dying& d, uint64_t index) { return d.is_array ? d.cell + BEND_ARRAY_HEADER + index * d.layout->size : d.cell; }

void destroy(BendWorker* worker, Dying now) {
  uint64_t parent = 0;
  uint64_t index = 0;
  uint32_t next = 0;
  uint64_t elements = walked_elements(now);
  for (;;) {
    char* place;
    const BendSlot* slot = nullptr;
    while (index < elements) {
      slot = find_counted(now.layout, element_at(now, index), next, &place);
      if (slot) break;
      ++index;
      next = 0;
    }
    if (!slot) {
      free_cell(worker, now);
      if (parent == 0) return;
      // Back to the parent; the slot walked last holds its own parent.
      char* cell = reinterpret_cast<char*>(parent & ~1ull);
      uint64_t header = word_at(cell);
      if (parent & 1) {
        now = {cell, reinterpret_cast<const BendLayout*>(header & kAddress48), true, static_cast<uint32_t>(header >> BEND_ARRAY_SHIFT)};
        uint64_t progress = word_at(cell + 8);
        index = progress >> 32;
        next = static_cast<uint32_t>(progress);
      } else {
        now = {cell, reinterpret_cast<const BendLayout*>(header & kAddress48), false, 0};
        index = 0;
        next = static_cast<uint32_t>(header >> 48);
      }
      elements = walked_elements(now);
      find_counted(now.layout, element_at(now, index), next - 1, &place);
      parent = word_at(place);
      continue;
    }
    ++next;
    Dying child;
    if (!release(worker, word_at(place), slot->kind, slot->info, &child)) continue;
    if (child.layout->slot_count == 0) {
      free_cell(worker, child);
      continue;
    }
    char* other;
    if (!now.is_array && !find_counted(now.layout, now.cell, next, &other)) {
      free_cell(worker, now);
    } else {
      word_at(place) = parent;
      if (now.is_array) {
        word_at(now.cell) = reinterpret_cast<uint64_t>(now.layout) | static_cast<uint64_t>(now.log2) << BEND_ARRAY_SHIFT;
        word_at(now.cell + 8) = index << 32 | next;
      } else {
        word_at(now.cell) = reinterpret_cast<uint64_t>(now.layout) | static_cast<uint64_t>(next) << 48;
      }
      parent = reinterpret_cast<uint64_t>(now.cell) | (now.is_array ? 1 : 0);
    }
    now = child;
    index = 0;
    next = 0;
    elements = walked_elements(now);
  }
}

void drop_word(BendWorker* worker, BendWord word, uint32_t kind, const void* info) {
  Dying dying;
  if (release(worker, word, kind, info, &dying)) destroy(worker, dying);
}

}  // namespace

uint64_t array_bytes(uint32_t log2, const BendLayout* element) { return BEND_ARRAY_HEADER + (static_cast<uint64_t>(element->size) << log2); }

void dup_value(BendWorker* worker, const BendLayout* layout, char* place) {
  char* at;
  for (uint32_t next = 0;; ++next) {
    const BendSlot* slot = find_counted(layout, place, next, &at);
    if (!slot) return;
    BendWord word = word_at(at);
    switch (static_cast<BendSlotKind>(slot->kind)) {
      case BEND_SLOT_DATA:
        if (char* node = view_ref(word, static_cast<const BendDataInfo*>(slot->info)).node) count_up(&count_of(node), worker->atomic);
        break;
      case BEND_SLOT_ARRAY:
        if (char* block = array_block(word)) count_up(&count_of(block), worker->atomic);
        break;
      case BEND_SLOT_OBJECT: bend_dup_object(worker, word); break;
      case BEND_SLOT_SUM: break;
    }
  }
}

void drop_value(BendWorker* worker, const BendLayout* layout, char* place) {
  char* at;
  for (uint32_t next = 0;; ++next) {
    const BendSlot* slot = find_counted(layout, place, next, &at);
    if (!slot) return;
    drop_word(worker, word_at(at), slot->kind, slot->info);
  }
}

}  // namespace bendc::rt

using namespace bendc::rt;

void bend_drop_ref(BendWorker* worker, BendWord ref, const BendDataInfo* info) { drop_word(worker, ref, BEND_SLOT_DATA, info); }

void bend_drop_fields(BendWorker* worker, BendWord ref, const BendDataInfo* info, uint32_t ctor) {
  char* node = info->tagged ? reinterpret_cast<char*>(ref & ~kTagMask) : reinterpret_cast<char*>(ref);
  destroy(worker, {node, &info->ctors[ctor].layout, false, 0});
}

void bend_drop_array(BendWorker* worker, BendWord array, const BendLayout* element) { drop_word(worker, array, BEND_SLOT_ARRAY, element); }
void bend_drop_object(BendWorker* worker, BendWord object) { drop_word(worker, object, BEND_SLOT_OBJECT, nullptr); }

void bend_dup_object(BendWorker* worker, BendWord object) {
  if (!is_immediate(object)) count_up(&count_of(reinterpret_cast<char*>(object)), worker->atomic);
}
