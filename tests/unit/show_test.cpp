// The printer of value mains and the text routines of the runtime: exact formats.
#include <doctest/doctest.h>

#include <cmath>

#include "runtime/strings.h"
#include "runtime_fixture.h"

using namespace bendc;
using bendc::test::RuntimeFixture;

namespace {

std::string read_back(BendWord string) {
  std::string text;
  rt::u32_list_visit(string, [&](uint32_t c) {
    char bytes[4];
    text.append(bytes, rt::encode_char(c, bytes));
  });
  return text;
}

std::u32string decoded(RuntimeFixture& f, std::string_view bytes) {
  std::u32string text;
  rt::u32_list_take(&f.worker, rt::string_decode(&f.worker, bytes.data(), bytes.size()), [&](uint32_t c) { text.push_back(c); });
  return text;
}

}  // namespace

TEST_CASE("show: leaves") {
  RuntimeFixture f;
  BendWorker* w = &f.worker;
  bend_show_u32(w, 4294967295u);
  bend_show_text(w, " ", 1);
  bend_show_nat(w, BEND_NAT_MAX);
  bend_show_text(w, " ", 1);
  for (float x : {1.0f, 0.1f, -0.0f, 1e20f, 1e21f, 1e-7f, 1.44140625f, INFINITY, -INFINITY, NAN}) {
    bend_show_f32(w, x);
    bend_show_text(w, " ", 1);
  }
  bend_show_char(w, 'c');
  bend_show_char(w, '\'');
  bend_show_char(w, '"');
  bend_show_char(w, 0x1F600);
  CHECK(f.printed() == "4294967295 281474976710655n 1.0 0.1 -0.0 100000000000000000000.0 1.0e21 1.0e-7 1.4414062 inf -inf nan 'c''\\'''\"''\xF0\x9F\x98\x80'");
}

TEST_CASE("show: strings with escapes") {
  RuntimeFixture f;
  const uint32_t text[] = {'a', '\n', '\t', '\r', 0, '\\', '"', '\'', 1, 0x7F, 0xD800, 0x110000, 0x3BB};
  BendWord string = bend_string_literal(&f.worker, text, 13);
  bend_show_string(&f.worker, string);
  bend_show_string(&f.worker, 0);
  CHECK(f.printed() == "\"a\\n\\t\\r\\0\\\\\\\"'\\u{1}\\u{7f}\\u{d800}\\u{110000}\xCE\xBB\"\"\"");
  rt::u32_list_drop(&f.worker, string);
  CHECK(f.check().live_nodes == 0);
}

TEST_CASE("show: output larger than the buffer arrives whole") {
  RuntimeFixture f;
  std::string text(100'000, 'x');
  text += "end";
  bend_show_text(&f.worker, text.data(), text.size());
  bend_show_u32(&f.worker, 7);
  CHECK(f.printed() == text + "7");
}

TEST_CASE("text: inbound bytes are decoded as WHATWG says") {
  RuntimeFixture f;
  CHECK(decoded(f, "a\xCE\xBB\xF0\x9F\x98\x80") == U"a\u03bb\U0001F600");
  CHECK(decoded(f, "\xEF\xBB\xBF" "x") == U"\uFEFFx");
  CHECK(decoded(f, "\xE2\x82" "A") == U"\uFFFDA");            // one mark for the broken sequence, the byte after is read again
  CHECK(decoded(f, "\xC0\x80") == U"\uFFFD\uFFFD");
  CHECK(decoded(f, "\xED\xA0\x80") == U"\uFFFD\uFFFD\uFFFD");   // a surrogate
  CHECK(decoded(f, "\xF0\x9F\x98") == U"\uFFFD");
  CHECK(decoded(f, "\xF4\x90\x80\x80") == U"\uFFFD\uFFFD\uFFFD\uFFFD");
  CHECK(decoded(f, "\xFF" "ok\x80") == U"\uFFFDok\uFFFD");
  CHECK(f.check().live_nodes == 0);
}

TEST_CASE("text: chars that are no scalars are written as their bit pattern") {
  char bytes[4];
  CHECK(rt::encode_char(0xD800, bytes) == 3);
  CHECK(std::string(bytes, 3) == "\xED\xA0\x80");
  CHECK(rt::encode_char(0x110000, bytes) == 4);
  CHECK(std::string(bytes, 4) == "\xF4\x90\x80\x80");
}

TEST_CASE("f32: show and read through strings") {
  RuntimeFixture f;
  for (auto [value, text] : {std::pair{2.0f, "2"}, {-0.0f, "-0"}, {1e20f, "100000000000000000000"}, {1e21f, "1e+21"}, {1e-7f, "1e-7"}, {23577.5625f, "23577.562"}}) {
    BendWord string = bend_f32_show(&f.worker, value);
    CHECK(read_back(string) == text);
    uint64_t read = bend_f32_read(&f.worker, string);
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    uint64_t tag = read >> 32;
    CHECK(tag == 1);
    if (value != 23577.5625f) CHECK(static_cast<uint32_t>(read) == bits);
  }
  for (const char* bad : {"", "1 ", "0x10", "nan(1)", "one", "1e", "."}) CHECK(bend_f32_read(&f.worker, rt::string_from(&f.worker, bad)) == 0);
  uint64_t next_up = 1ull << 32 | 0x4B800001u, infinite = 1ull << 32 | 0x7F800000u;
  CHECK(bend_f32_read(&f.worker, rt::string_from(&f.worker, " \t16777217.00000000001")) == next_up);
  CHECK(bend_f32_read(&f.worker, rt::string_from(&f.worker, "1e99")) == infinite);
  CHECK(f.check().live_nodes == 0);
}
