// Reading the words of abi.h: from a word and its slot or datatype to the node, and from a layout to the counted words of a value.
#pragma once
#include "runtime/abi.h"

namespace bendc::rt {

inline constexpr BendWord kTagMask = 7;

inline uint32_t& count_of(char* node) { return *reinterpret_cast<uint32_t*>(node); }
inline BendWord& word_at(char* place) { return *reinterpret_cast<BendWord*>(place); }
inline uint32_t& u32_at(char* place) { return *reinterpret_cast<uint32_t*>(place); }

// The constructor of a ref word and, for a node, its address (null for a nullary or packed one).
struct RefView {
  uint32_t ctor;
  char* node;
};

inline RefView view_ref(BendWord word, const BendDataInfo* info) {
  if (info->tagged) {
    uint32_t ctor = static_cast<uint32_t>(word & kTagMask);
    bool is_node = info->ctors[ctor].repr == BEND_CTOR_NODE;
    return {ctor, is_node ? reinterpret_cast<char*>(word & ~kTagMask) : nullptr};
  }
  if ((word & kTagMask) == kTagMask) return {static_cast<uint32_t>(word >> 3) & 0x1FFFFFFFu, nullptr};
  char* node = reinterpret_cast<char*>(word);
  return {u32_at(node + 4), node};
}

inline bool is_immediate(BendWord object) { return object == 0 || (object & 1) != 0; }

inline char* array_block(BendWord array) { return reinterpret_cast<char*>(array & BEND_ARRAY_ADDRESS); }
inline uint32_t array_log2(BendWord array) { return static_cast<uint32_t>(array >> BEND_ARRAY_SHIFT); }
inline BendWord array_word(char* block, uint32_t log2) {
  return reinterpret_cast<BendWord>(block) | static_cast<BendWord>(log2) << BEND_ARRAY_SHIFT;
}

// The ordinal-th counted word of the value at `base`, or null. Sums show only the words of their present variant; the recursion is as
// deep as sums nest in a type, which the by-value limit of 32 words bounds.
inline const BendSlot* nth_counted(const BendLayout* layout, char* base, uint32_t& ordinal, char** place) {
  for (uint32_t i = 0; i < layout->slot_count; ++i) {
    const BendSlot& slot = layout->slots[i];
    if (slot.kind == BEND_SLOT_SUM) {
      const BendSumInfo* sum = static_cast<const BendSumInfo*>(slot.info);
      uint32_t tag = u32_at(base + slot.offset);
      if (tag >= sum->variant_count) continue;
      if (const BendSlot* found = nth_counted(&sum->variants[tag], base + slot.offset, ordinal, place)) return found;
    } else if (ordinal == 0) {
      *place = base + slot.offset;
      return &slot;
    } else {
      --ordinal;
    }
  }
  return nullptr;
}

// The same, quickly for the usual layouts without sums.
inline const BendSlot* find_counted(const BendLayout* layout, char* base, uint32_t ordinal, char** place) {
  uint32_t i = 0;
  while (i <= ordinal && i < layout->slot_count && layout->slots[i].kind != BEND_SLOT_SUM) ++i;
  if (i > ordinal) {
    *place = base + layout->slots[ordinal].offset;
    return &layout->slots[ordinal];
  }
  return i == layout->slot_count ? nullptr : nth_counted(layout, base, ordinal, place);
}

}  // namespace bendc::rt
