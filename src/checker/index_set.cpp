#include "checker/index_set.h"

namespace bendc {

bool IndexSet::has(uint32_t index) const {
  if (size_ == 0) return false;
  Link at = root_;
  for (uint32_t height = height_; height > 0; --height) {
    if (at.node == nullptr) return false;
    at = at.node->below[slot(index, height)];
  }
  return ((at.word >> (index & 63)) & 1) != 0;
}

IndexSet IndexSet::with(Arena& arena, uint32_t index, uint32_t total) const {
  if (has(index)) return *this;
  IndexSet out = *this;
  if (size_ == 0) {
    while (total > (uint64_t{1} << (kWordBits + kBranchBits * out.height_))) ++out.height_;
    if (out.height_ > 0) out.root_.node = nullptr;
  }
  out.root_ = set(arena, out.root_, index, out.height_);
  ++out.size_;
  return out;
}

IndexSet::Link IndexSet::set(Arena& arena, Link old, uint32_t index, uint32_t height) {
  Link out;
  if (height == 0) {
    out.word = old.word | (uint64_t{1} << (index & 63));
    return out;
  }
  Node* node = arena.make<Node>();
  for (uint32_t i = 0; i < (1u << kBranchBits); ++i) {
    if (old.node != nullptr) node->below[i] = old.node->below[i];
    else if (height == 1) node->below[i].word = 0;
    else node->below[i].node = nullptr;
  }
  Link& link = node->below[slot(index, height)];
  link = set(arena, link, index, height - 1);
  out.node = node;
  return out;
}

bool IndexSet::contains(const IndexSet& other) const {
  if (other.size_ > size_) return false;
  return other.size_ == 0 || covers(root_, other.root_, height_);
}

bool IndexSet::covers(Link whole, Link part, uint32_t height) {
  if (height == 0) return (part.word & ~whole.word) == 0;
  if (part.node == nullptr || part.node == whole.node) return true;
  if (whole.node == nullptr) return false;
  for (uint32_t i = 0; i < (1u << kBranchBits); ++i) {
    if (!covers(whole.node->below[i], part.node->below[i], height - 1)) return false;
  }
  return true;
}

uint64_t IndexSet::first_word() const {
  if (size_ == 0) return 0;
  Link at = root_;
  for (uint32_t height = height_; height > 0; --height) {
    if (at.node == nullptr) return 0;
    at = at.node->below[0];
  }
  return at.word;
}

}  // namespace bendc
