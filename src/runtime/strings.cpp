#include "runtime/strings.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"
#include "runtime/runtime.h"

namespace bendc::rt {

BendWord string_decode(BendWorker* worker, const char* text, size_t size) {
  const unsigned char* p = reinterpret_cast<const unsigned char*>(text);
  constexpr uint32_t kReplacement = 0xFFFD;
  U32ListBuilder out(worker);
  uint32_t code = 0, needed = 0;
  unsigned char lower = 0x80, upper = 0xBF;
  for (size_t i = 0; i < size;) {
    unsigned char byte = p[i];
    if (needed == 0) {
      ++i;
      if (byte < 0x80) {
        out.add(byte);
      } else if (byte >= 0xC2 && byte <= 0xDF) {
        needed = 1;
        code = byte & 0x1F;
      } else if (byte >= 0xE0 && byte <= 0xEF) {
        if (byte == 0xE0) lower = 0xA0;
        if (byte == 0xED) upper = 0x9F;
        needed = 2;
        code = byte & 0xF;
      } else if (byte >= 0xF0 && byte <= 0xF4) {
        if (byte == 0xF0) lower = 0x90;
        if (byte == 0xF4) upper = 0x8F;
        needed = 3;
        code = byte & 0x7;
      } else {
        out.add(kReplacement);
      }
      continue;
    }
    if (byte < lower || byte > upper) {   // the byte is read again as a first one
      needed = 0;
      lower = 0x80;
      upper = 0xBF;
      out.add(kReplacement);
      continue;
    }
    ++i;
    lower = 0x80;
    upper = 0xBF;
    code = code << 6 | (byte & 0x3F);
    if (--needed == 0) out.add(code);
  }
  if (needed) out.add(kReplacement);
  return out.list();
}

BendWord string_from(BendWorker* worker, const char* text) { return string_decode(worker, text, strlen(text)); }

BendWord byte_list(BendWorker* worker, const char* bytes, size_t size) {
  U32ListBuilder out(worker);
  for (size_t i = 0; i < size; ++i) out.add(static_cast<unsigned char>(bytes[i]));
  return out.list();
}

void u32_list_drop(BendWorker* worker, BendWord list) {
  while (U32Node* node = list_node<U32Node>(list)) {
    if (!count_down(&node->count, worker->atomic)) return;
    list = node->tail;
    heap_free(worker, node, kU32NodeBytes);
  }
}

void text_list_drop(BendWorker* worker, BendWord list) {
  while (WordNode* node = list_node<WordNode>(list)) {
    if (!count_down(&node->count, worker->atomic)) return;
    u32_list_drop(worker, node->head);
    list = node->tail;
    heap_free(worker, node, kWordNodeBytes);
  }
}

void bytes_add(BendWorker* worker, Bytes* bytes, const char* from, size_t size) {
  if (bytes->capacity < bytes->size + size + 1) {
    size_t capacity = bytes->capacity ? bytes->capacity * 2 : 64;
    while (capacity < bytes->size + size + 1) capacity *= 2;
    char* data = static_cast<char*>(realloc(bytes->data, capacity));
    if (!data) {
      Message detail;
      detail.text("cannot take ").number(capacity).text(" bytes for a text outside the heap");
      fail(worker, kErrorMemory, nullptr, detail);
    }
    bytes->data = data;
    bytes->capacity = capacity;
  }
  if (size) memcpy(bytes->data + bytes->size, from, size);
  bytes->size += size;
  bytes->data[bytes->size] = 0;
}

void bytes_free(Bytes* bytes) {
  free(bytes->data);
  *bytes = {};
}

Bytes string_encode(BendWorker* worker, BendWord string) {
  Bytes bytes;
  bytes_add(worker, &bytes, nullptr, 0);
  u32_list_take(worker, string, [&](uint32_t c) {
    char encoded[4];
    bytes_add(worker, &bytes, encoded, encode_char(c, encoded));
  });
  return bytes;
}

bool byte_list_take(BendWorker* worker, BendWord list, Bytes* out) {
  bool ok = true;
  bytes_add(worker, out, nullptr, 0);
  u32_list_take(worker, list, [&](uint32_t head) {
    char byte = static_cast<char>(head);
    ok = ok && head <= 0xFF;
    if (ok) bytes_add(worker, out, &byte, 1);
  });
  if (!ok) bytes_free(out);
  return ok;
}

bool has_zero(const Bytes& bytes) { return memchr(bytes.data, 0, bytes.size) != nullptr; }

}  // namespace bendc::rt

using namespace bendc::rt;

BendWord bend_string_literal(BendWorker* worker, const uint32_t* code_points, uint64_t count) {
  // Back to front: the address of the tail is known when a node is written.
  BendWord list = 0;
  for (uint64_t i = count; i > 0; --i) {
    U32Node* node = static_cast<U32Node*>(heap_alloc(worker, kU32NodeBytes));
    *node = {1, code_points[i - 1], list};
    list = reinterpret_cast<BendWord>(node) | 1;
  }
  return list;
}

void bend_fill_strings(BendWorker*, void* nodes, const void* codes, uint32_t width, const uint64_t* ends, uint64_t count) {
  auto* node = static_cast<U32Node*>(nodes);
  uint64_t at = 0;
  for (uint64_t i = 0; i < count; ++i)
    for (; at < ends[i]; ++at) {
      const uint32_t code = width == 1   ? static_cast<const uint8_t*>(codes)[at]
                            : width == 2 ? static_cast<const uint16_t*>(codes)[at]
                                         : static_cast<const uint32_t*>(codes)[at];
      node[at] = {BEND_IMMORTAL, code, at + 1 < ends[i] ? reinterpret_cast<BendWord>(node + at + 1) | 1 : 0};
    }
}
