#include "support/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace bendc::text {

namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

size_t copy(char* out, const char* text) {
  size_t n = strlen(text);
  memcpy(out, text, n);
  return n;
}

bool same_word(const char* text, size_t size, const char* word) {
  if (size != strlen(word)) return false;
  for (size_t i = 0; i < size; ++i)
    if (lower(text[i]) != word[i]) return false;
  return true;
}

// Every midpoint between two f32 values has at most 113 significant decimal digits; later digits matter only by being
// not all zero, so 160 kept digits and one sticky digit give the correctly rounded result.
constexpr int kKeptDigits = 160;

}  // namespace

bool is_scalar(uint32_t c) { return c < 0xD800 || (c >= 0xE000 && c <= 0x10FFFF); }

uint32_t utf8_decode(const char* text, size_t size, size_t* used) {
  const unsigned char* p = reinterpret_cast<const unsigned char*>(text);
  *used = 1;
  if (size == 0) return kBadCodePoint;
  if (p[0] < 0x80) return p[0];
  size_t n = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
  if (p[0] < 0xC2 || p[0] > 0xF4 || size < n) return kBadCodePoint;
  uint32_t c = p[0] & (0xFFu >> (n + 1));
  for (size_t i = 1; i < n; ++i) {
    if ((p[i] & 0xC0) != 0x80) return kBadCodePoint;
    c = (c << 6) | (p[i] & 0x3F);
  }
  static const uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (c < kLeast[n] || !is_scalar(c)) return kBadCodePoint;
  *used = n;
  return c;
}

size_t utf8_encode(uint32_t c, char* out) {
  if (!is_scalar(c)) c = 0xFFFD;
  if (c < 0x80) {
    out[0] = static_cast<char>(c);
    return 1;
  }
  size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  for (size_t i = n - 1; i > 0; --i) {
    out[i] = static_cast<char>(0x80 | (c & 0x3F));
    c >>= 6;
  }
  static const unsigned char kLead[] = {0, 0, 0xC0, 0xE0, 0xF0};
  out[0] = static_cast<char>(kLead[n] | c);
  return n;
}

size_t utf8_validate(const char* text, size_t size) {
  size_t i = 0;
  while (i < size) {
    // Source text is mostly ASCII: eight bytes a step.
    uint64_t word;
    while (i + 8 <= size && (memcpy(&word, text + i, 8), (word & 0x8080808080808080ull) == 0)) i += 8;
    if (i >= size) break;
    size_t used;
    if (utf8_decode(text + i, size - i, &used) == kBadCodePoint) return i;
    i += used;
  }
  return size;
}

bool read_decimal(const char* text, size_t size, uint64_t max, uint64_t* value) {
  if (size == 0) return false;
  uint64_t sum = 0;
  for (size_t i = 0; i < size; ++i) {
    if (!digit(text[i])) return false;
    uint64_t d = static_cast<uint64_t>(text[i] - '0');
    if (d > max || sum > (max - d) / 10) return false;
    sum = sum * 10 + d;
  }
  *value = sum;
  return true;
}

bool f32_read(const char* text, size_t size, float* value) {
  size_t i = 0;
  while (i < size && blank(text[i])) ++i;
  bool negative = false;
  if (i < size && (text[i] == '+' || text[i] == '-')) negative = text[i++] == '-';
  if (same_word(text + i, size - i, "inf") || same_word(text + i, size - i, "infinity")) {
    *value = negative ? -__builtin_inff() : __builtin_inff();
    return true;
  }
  if (same_word(text + i, size - i, "nan")) {
    *value = __builtin_nanf("");
    return true;
  }
  // Rewrite as sign, kept digits, exponent, and let strtof round once.
  char buffer[kKeptDigits + 40];
  int length = 0, kept = 0;
  bool any = false, sticky = false, point = false;
  int64_t exponent = 0;
  if (negative) buffer[length++] = '-';
  for (; i < size && (digit(text[i]) || (text[i] == '.' && !point)); ++i) {
    if (text[i] == '.') {
      point = true;
      continue;
    }
    any = true;
    if (point) --exponent;
    if (kept == 0 && text[i] == '0') continue;
    if (kept < kKeptDigits) {
      buffer[length++] = text[i];
      ++kept;
    } else {
      ++exponent;
      sticky |= text[i] != '0';
    }
  }
  if (!any) return false;
  if (i < size && lower(text[i]) == 'e') {
    ++i;
    bool minus = false;
    if (i < size && (text[i] == '+' || text[i] == '-')) minus = text[i++] == '-';
    if (i >= size || !digit(text[i])) return false;
    int64_t written = 0;
    for (; i < size && digit(text[i]); ++i)
      if (written < 1000000000000) written = written * 10 + (text[i] - '0');
    exponent += minus ? -written : written;
  }
  if (i != size) return false;
  if (kept == 0) buffer[length++] = '0';
  if (sticky) {
    buffer[length++] = '1';
    --exponent;
  }
  if (exponent > 100000) exponent = 100000;
  if (exponent < -100000) exponent = -100000;
  length += snprintf(buffer + length, sizeof buffer - static_cast<size_t>(length), "e%d", static_cast<int>(exponent));
  buffer[length] = 0;
  *value = strtof(buffer, nullptr);
  return true;
}

size_t f32_show(float value, char* out) {
  if (value != value) return copy(out, "nan");
  size_t n = 0;
  if (__builtin_signbit(value)) {
    out[n++] = '-';
    value = -value;
  }
  if (value > 3.40282347e38f) return n + copy(out + n, "inf");
  if (value == 0) {
    out[n++] = '0';
    return n;
  }
  char scientific[32];
  for (int precision = 0; precision < 9; ++precision) {
    snprintf(scientific, sizeof scientific, "%.*e", precision, static_cast<double>(value));
    if (strtof(scientific, nullptr) == value) break;
  }
  // Split `d.ddde±xx` into digits and exponent. Trailing zeros cannot occur: fewer digits would have read back.
  char digits[16] = {};
  int count = 0;
  const char* p = scientific;
  for (; *p != 'e'; ++p)
    if (digit(*p)) digits[count++] = *p;
  int exponent = atoi(p + 1);
  if (exponent >= 21 || exponent <= -7) {
    out[n++] = digits[0];
    if (count > 1) out[n++] = '.';
    for (int i = 1; i < count; ++i) out[n++] = digits[i];
    char tail[8];
    snprintf(tail, sizeof tail, "e%+d", exponent);
    return n + copy(out + n, tail);
  }
  if (exponent < 0) {
    n += copy(out + n, "0.");
    for (int i = -1; i > exponent; --i) out[n++] = '0';
    for (int i = 0; i < count; ++i) out[n++] = digits[i];
    return n;
  }
  for (int i = 0; i < count || i <= exponent; ++i) {
    if (i == exponent + 1) out[n++] = '.';
    out[n++] = i < count ? digits[i] : '0';
  }
  return n;
}

size_t f32_show_point(float value, char* out) {
  char plain[kF32Chars];
  size_t size = f32_show(value, plain);
  if (value != value || value - value != 0) {
    memcpy(out, plain, size);
    return size;
  }
  size_t n = 0;
  bool point = false;
  for (size_t i = 0; i < size; ++i) {
    if (plain[i] == '.') point = true;
    if (plain[i] == 'e' && !point) {
      n += copy(out + n, ".0");
      point = true;
    }
    if (plain[i] == '+') continue;   // literals write 1.0e21
    out[n++] = plain[i];
  }
  if (!point) n += copy(out + n, ".0");
  return n;
}

size_t u64_show(uint64_t value, char* out) {
  char reversed[20];
  size_t n = 0;
  do {
    reversed[n++] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  for (size_t i = 0; i < n; ++i) out[i] = reversed[n - 1 - i];
  return n;
}

size_t escape_show(uint32_t c, char quote, char* out) {
  char letter = 0;
  if (c == '\n') letter = 'n';
  else if (c == '\t') letter = 't';
  else if (c == '\r') letter = 'r';
  else if (c == 0) letter = '0';
  else if (c == '\\') letter = '\\';
  else if (c == static_cast<unsigned char>(quote)) letter = quote;
  if (letter) {
    out[0] = '\\';
    out[1] = letter;
    return 2;
  }
  if (c < 0x20 || c == 0x7F || !is_scalar(c)) {
    char hex[16];
    snprintf(hex, sizeof hex, "\\u{%x}", static_cast<unsigned>(c));
    return copy(out, hex);
  }
  return utf8_encode(c, out);
}

}  // namespace bendc::text
