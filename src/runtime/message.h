// A line of text in a fixed buffer, for error messages: usable in a signal handler (no allocation, no stdio). Longer text is cut.
#pragma once
#include <string.h>

#include "support/text.h"

namespace bendc::rt {

class Message {
 public:
  Message& text(const char* s) { return bytes(s, strlen(s)); }
  Message& number(uint64_t n) {
    char digits[20];
    return bytes(digits, text::u64_show(n, digits));
  }
  Message& hex(uint64_t n) {
    char digits[16];
    size_t count = 0;
    do digits[count++] = "0123456789abcdef"[n & 15];
    while (n >>= 4);
    for (size_t i = 0; i < count / 2; ++i) {
      char swapped = digits[i];
      digits[i] = digits[count - 1 - i];
      digits[count - 1 - i] = swapped;
    }
    return text("0x").bytes(digits, count);
  }
  Message& bytes(const char* s, size_t n) {
    if (n > sizeof buffer_ - size_) n = sizeof buffer_ - size_;
    memcpy(buffer_ + size_, s, n);
    size_ += n;
    return *this;
  }
  const char* data() const { return buffer_; }
  size_t size() const { return size_; }

 private:
  char buffer_[2048];
  size_t size_ = 0;
};

}  // namespace bendc::rt
