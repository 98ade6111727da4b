// Array blocks: one header and 2^n slots. The fast paths (get, set, swap, size, fork, atomics) are generated; here is what allocates or copies.
#include <string.h>

#include "runtime/error.h"
#include "runtime/memory/counts.h"
#include "runtime/memory/drop.h"
#include "runtime/memory/words.h"
#include "runtime/runtime.h"

using namespace bendc::rt;

namespace {

char* slots(char* block) { return block + BEND_ARRAY_HEADER; }

char* new_block(BendWorker* worker, uint32_t log2, const BendLayout* element) {
  char* block = static_cast<char*>(heap_alloc(worker, array_bytes(log2, element)));
  memset(block, 0, BEND_ARRAY_HEADER);
  count_of(block) = 1;
  return block;
}

// Slots [from, from + 2^log2) of a block copied to `to`; shared when the source keeps them.
void copy_slots(BendWorker* worker, char* to, char* block, uint64_t from, uint32_t log2, const BendLayout* element, bool share) {
  uint64_t count = 1ull << log2;
  if (element->size == 0) return;
  memcpy(to, slots(block) + from * element->size, count * element->size);
  if (!share || element->slot_count == 0) return;
  for (uint64_t i = 0; i < count; ++i) dup_value(worker, element, to + i * element->size);
}

[[noreturn]] void fail_depth(BendWorker* worker, uint32_t error, uint64_t depth, const BendLayout* element, const char* site) {
  Message detail;
  detail.text("an array of depth ").number(depth);
  if (element->words_log2 > 0) detail.text(" with slots of ").number(1ull << element->words_log2).text(" cells");
  fail(worker, error, site, detail);
}

}  // namespace

BendWord bend_array_alloc(BendWorker* worker, uint64_t depth, const BendLayout* element, const char* site) {
  if (depth > BEND_MAX_ARRAY_CLASS || depth + element->words_log2 > BEND_MAX_ARRAY_CLASS) fail_depth(worker, kErrorArray, depth, element, site);
  uint32_t log2 = static_cast<uint32_t>(depth);
  return array_word(new_block(worker, log2, element), log2);
}

BendWord bend_array_clone(BendWorker* worker, BendWord array, const BendLayout* element) {
  uint32_t log2 = array_log2(array);
  char* copy = new_block(worker, log2, element);
  copy_slots(worker, slots(copy), array_block(array), 0, log2, element, true);
  return array_word(copy, log2);
}

void bend_array_split(BendWorker* worker, BendWord array, const BendLayout* element, BendWord* halves, const char* site) {
  uint32_t log2 = array_log2(array);
  if (log2 == 0) {
    Message detail;
    detail.text("an array of one slot has no halves");
    fail(worker, kErrorMatch, site, detail);
  }
  char* block = array_block(array);
  bool share = count_read(&count_of(block)) != 1;
  for (uint32_t h = 0; h < 2; ++h) {
    char* half = new_block(worker, log2 - 1, element);
    copy_slots(worker, slots(half), block, static_cast<uint64_t>(h) << (log2 - 1), log2 - 1, element, share);
    halves[h] = array_word(half, log2 - 1);
  }
  if (share) bend_drop_array(worker, array, element);
  else heap_free(worker, block, array_bytes(log2, element));
}

BendWord bend_array_node(BendWorker* worker, BendWord low, BendWord high, const BendLayout* element, const char* site) {
  uint32_t log2 = array_log2(low);
  if (log2 != array_log2(high)) {
    Message detail;
    detail.text("the halves of an array have ").number(1ull << log2).text(" and ").number(1ull << array_log2(high)).text(" slots");
    fail(worker, kErrorMatch, site, detail);
  }
  if (log2 + 1 + element->words_log2 > BEND_MAX_ARRAY_CLASS) fail_depth(worker, kErrorMatch, log2 + 1, element, site);
  char* whole = new_block(worker, log2 + 1, element);
  char* to = slots(whole);
  for (BendWord half : {low, high}) {
    char* block = array_block(half);
    bool share = count_read(&count_of(block)) != 1;
    copy_slots(worker, to, block, 0, log2, element, share);
    if (share) bend_drop_array(worker, half, element);
    else heap_free(worker, block, array_bytes(log2, element));
    to += static_cast<uint64_t>(element->size) << log2;
  }
  return array_word(whole, log2 + 1);
}

void bend_array_release(BendWorker* worker, BendWord array, const BendLayout* element) {
  char* block = array_block(array);
  uint32_t log2 = array_log2(array);
  if (count_read(&count_of(block)) == 1) {
    heap_free(worker, block, array_bytes(log2, element));
    return;
  }
  for (uint64_t i = 0; element->slot_count && i < 1ull << log2; ++i) dup_value(worker, element, slots(block) + i * element->size);
  bend_drop_array(worker, array, element);
}
