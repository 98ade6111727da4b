// Strings and lists as the program's linked nodes: built front to back, walked without recursion.
//   String     SNil = 0; SCon = node { count, u32 char, tail } | 1      (16 bytes)
//   List<U32>  Nil = 0;  Con  = node { count, u32 head, tail } | 1      (16 bytes)
//   List<ref>  Nil = 0;  Con  = node { count, -, head, tail } | 1       (24 bytes)
#pragma once
#include <stddef.h>

#include "runtime/memory/counts.h"
#include "runtime/memory/heap.h"
#include "runtime/memory/words.h"

namespace bendc::rt {

inline constexpr uint64_t kU32NodeBytes = 16;
inline constexpr uint64_t kWordNodeBytes = 24;

struct U32Node {          // a String's or a List<U32>'s
  uint32_t count;
  uint32_t head;
  BendWord tail;
};
struct WordNode {
  uint32_t count;
  uint32_t padding;
  BendWord head;
  BendWord tail;
};

template <class Node>
inline Node* list_node(BendWord list) { return reinterpret_cast<Node*>(list & ~kTagMask); }

// Appends in order; `list` is the result at any time.
class U32ListBuilder {
 public:
  explicit U32ListBuilder(BendWorker* worker) : worker_(worker) {}
  void add(uint32_t head) {
    U32Node* node = static_cast<U32Node*>(heap_alloc(worker_, kU32NodeBytes));
    *node = {1, head, 0};
    *end_ = reinterpret_cast<BendWord>(node) | 1;
    end_ = &node->tail;
  }
  BendWord list() const { return list_; }
  U32ListBuilder(const U32ListBuilder&) = delete;

 private:
  BendWorker* worker_;
  BendWord list_ = 0;
  BendWord* end_ = &list_;
};

class WordListBuilder {
 public:
  explicit WordListBuilder(BendWorker* worker) : worker_(worker) {}
  void add(BendWord head) {
    WordNode* node = static_cast<WordNode*>(heap_alloc(worker_, kWordNodeBytes));
    *node = {1, 0, head, 0};
    *end_ = reinterpret_cast<BendWord>(node) | 1;
    end_ = &node->tail;
  }
  BendWord list() const { return list_; }
  WordListBuilder(const WordListBuilder&) = delete;

 private:
  BendWorker* worker_;
  BendWord list_ = 0;
  BendWord* end_ = &list_;
};

// A String from bytes, decoded as the WHATWG standard says: each maximal broken sequence is one U+FFFD, a byte order mark stays.
[[nodiscard]] BendWord string_decode(BendWorker* worker, const char* bytes, size_t size);
[[nodiscard]] BendWord string_from(BendWorker* worker, const char* zero_terminated);
[[nodiscard]] BendWord byte_list(BendWorker* worker, const char* bytes, size_t size);   // List<U32>

void u32_list_drop(BendWorker* worker, BendWord list);   // a String or a List<U32>

void text_list_drop(BendWorker* worker, BendWord list); // a List<String>

// Calls visit(head) for each element of a borrowed String or List<U32>.
template <class Visit>
inline void u32_list_visit(BendWord list, Visit visit) {
  while (U32Node* node = list_node<U32Node>(list)) {
    visit(node->head);
    list = node->tail;
  }
}

// The same for an owned one, which is used up: nodes of one owner are freed on the way.
template <class Visit>
inline void u32_list_take(BendWorker* worker, BendWord list, Visit visit) {
  while (U32Node* node = list_node<U32Node>(list)) {
    if (count_read(&node->count) != 1) {
      u32_list_visit(list, visit);
      u32_list_drop(worker, list);
      return;
    }
    visit(node->head);
    BendWord tail = node->tail;
    heap_free(worker, node, kU32NodeBytes);
    list = tail;
  }
}

// Bytes outside the heap, for system calls and helper threads. `data` is malloc'ed and always has a terminating zero past `size`.
struct Bytes {
  char* data = nullptr;
  size_t size = 0;
  size_t capacity = 0;
};
void bytes_add(BendWorker* worker, Bytes* bytes, const char* from, size_t size);
void bytes_free(Bytes* bytes);
// Uses up a String.
[[nodiscard]] Bytes string_encode(BendWorker* worker, BendWord string);
// Uses up a List<U32> of bytes; false when an element is above 255 (then `out` holds nothing).
[[nodiscard]] bool byte_list_take(BendWorker* worker, BendWord list, Bytes* out);
[[nodiscard]] bool has_zero(const Bytes& bytes);

}  // namespace bendc::rt
