#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include "support/text.h"

using namespace bendc;

namespace {

std::string show(float value) {
  char out[text::kF32Chars];
  return {out, text::f32_show(value, out)};
}
std::string show_point(float value) {
  char out[text::kF32Chars];
  return {out, text::f32_show_point(value, out)};
}
bool reads(std::string_view s, float& value) { return text::f32_read(s.data(), s.size(), &value); }
float read(std::string_view s) {
  float value = -12345;
  REQUIRE(reads(s, value));
  return value;
}
std::string escape(uint32_t c, char quote) {
  char out[16];
  return {out, text::escape_show(c, quote, out)};
}

}  // namespace

TEST_CASE("text: F32 shown with the fewest digits") {
  CHECK(show(2.0f) == "2");
  CHECK(show(-0.0f) == "-0");
  CHECK(show(0.1f) == "0.1");
  CHECK(show(1e20f) == "100000000000000000000");
  CHECK(show(1e21f) == "1e+21");
  CHECK(show(1.5e21f) == "1.5e+21");
  CHECK(show(1e-7f) == "1e-7");
  CHECK(show(1e-6f) == "0.000001");
  CHECK(show(1.44140625f) == "1.4414062");
  CHECK(show(23577.5625f) == "23577.562");
  CHECK(show(16777216.0f) == "16777216");
  CHECK(show(3.40282347e38f) == "3.4028235e+38");
  CHECK(show(1e-45f) == "1e-45");
  CHECK(show(std::numeric_limits<float>::infinity()) == "inf");
  CHECK(show(-std::numeric_limits<float>::infinity()) == "-inf");
  CHECK(show(std::nanf("")) == "nan");
}

TEST_CASE("text: F32 shown with a point") {
  CHECK(show_point(1.0f) == "1.0");
  CHECK(show_point(0.5f) == "0.5");
  CHECK(show_point(1e21f) == "1.0e21");
  CHECK(show_point(-2.5e-9f) == "-2.5e-9");
  CHECK(show_point(std::numeric_limits<float>::infinity()) == "inf");
}

TEST_CASE("text: shown F32 values read back") {
  uint32_t bits = 1;
  for (int i = 0; i < 20000; ++i) {
    bits = bits * 1664525u + 1013904223u;
    float value, back;
    std::memcpy(&value, &bits, 4);
    if (value != value) continue;
    REQUIRE(reads(show(value), back));
    REQUIRE(std::memcmp(&value, &back, 4) == 0);
  }
}

TEST_CASE("text: F32 reading") {
  CHECK(read(" \t1.5") == 1.5f);
  CHECK(read(".5") == 0.5f);
  CHECK(read("1.") == 1.0f);
  CHECK(read("-1e5") == -100000.0f);
  CHECK(std::isinf(read("InFiNiTy")));
  CHECK(std::isnan(read("nan")));
  CHECK(std::isinf(read("1e999999999999999999")));
  CHECK(read("1e-999999999999999999") == 0.0f);
  CHECK(read("0e999999999") == 0.0f);
  // Just above the midpoint of 16777216 and 16777218, decided by a digit far behind.
  CHECK(read("16777217.00000000001") == 16777218.0f);
  CHECK(read("16777217." + std::string(5000, '0') + "1") == 16777218.0f);
  CHECK(read("16777217." + std::string(5000, '0')) == 16777216.0f);
  CHECK(read("0." + std::string(1000, '0') + "1e1001") == 1.0f);
  CHECK(read("1" + std::string(1000, '0') + "e-1000") == 1.0f);
  float value;
  for (std::string_view bad : {"", " ", ".", "1 ", "0x1p3", "nan(1)", "1e", "1e+", "--1", "1.2.3", "infin", "e5"}) {
    INFO(bad);
    CHECK_FALSE(reads(bad, value));
  }
}

TEST_CASE("text: UTF-8") {
  for (uint32_t c : {0x24u, 0xE9u, 0x20ACu, 0x1F600u, 0x7FFu, 0x800u, 0xFFFFu, 0x10FFFFu}) {
    char bytes[4];
    size_t size = text::utf8_encode(c, bytes), used = 0;
    CHECK(text::utf8_decode(bytes, size, &used) == c);
    CHECK(used == size);
  }
  size_t used;
  for (std::string_view bad : {"\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82", "\x80", "\xFF", "\xF0\x80\x80\x80", "\xE0\x9F\xBF"}) {
    CHECK(text::utf8_decode(bad.data(), bad.size(), &used) == text::kBadCodePoint);
    CHECK(used == 1);
  }
  std::string long_text = std::string(100, 'a') + "\xC3\xA9" + std::string(30, 'b') + "\xFFz";
  CHECK(text::utf8_validate(long_text.data(), long_text.size()) == 132);
  CHECK(text::utf8_validate("abc", 3) == 3);
}

TEST_CASE("text: decimals with a limit") {
  uint64_t value = 0;
  CHECK(text::read_decimal("4294967295", 10, 0xFFFFFFFFu, &value));
  CHECK(value == 0xFFFFFFFFu);
  CHECK_FALSE(text::read_decimal("4294967296", 10, 0xFFFFFFFFu, &value));
  CHECK_FALSE(text::read_decimal("99999999999999999999999", 23, ~0ull, &value));
  CHECK(text::read_decimal("18446744073709551615", 20, ~0ull, &value));
  CHECK(text::read_decimal("0000000000000000000000007", 25, 9, &value));
  CHECK(value == 7);
  CHECK_FALSE(text::read_decimal("", 0, 9, &value));
  CHECK_FALSE(text::read_decimal("1a", 2, 99, &value));
  CHECK_FALSE(text::read_decimal("9", 1, 5, &value));
  char out[20];
  CHECK(std::string(out, text::u64_show(18446744073709551615ull, out)) == "18446744073709551615");
  CHECK(std::string(out, text::u64_show(0, out)) == "0");
}

TEST_CASE("text: escapes") {
  CHECK(escape('\n', '"') == "\\n");
  CHECK(escape(0, '"') == "\\0");
  CHECK(escape('"', '"') == "\\\"");
  CHECK(escape('\'', '"') == "'");
  CHECK(escape('\'', '\'') == "\\'");
  CHECK(escape(7, '"') == "\\u{7}");
  CHECK(escape(0x7F, '"') == "\\u{7f}");
  CHECK(escape(0xD800, '"') == "\\u{d800}");
  CHECK(escape(0xFFFFFFFF, '"') == "\\u{ffffffff}");
  CHECK(escape(0xE9, '"') == "\xC3\xA9");
}
