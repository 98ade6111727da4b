#include <doctest/doctest.h>

#include <cstring>

#include "frontend/lexer.h"

using namespace bendc;

namespace {

struct Lexed {
  SourceMap sources;
  Interner names;
  LexResult result;
  explicit Lexed(const std::string& text) { result = lex(sources, sources.add("t.bend", text), 0, names); }
  const Token& operator[](size_t i) const { return result.tokens.items[i]; }
  size_t size() const { return result.tokens.items.size() - 1; }   // without End
  Code code(size_t i = 0) const { return result.diagnostics.all().at(i).code; }
  size_t errors() const { return result.diagnostics.size(); }
};

using K = TokenKind;

}  // namespace

TEST_CASE("lexer: names, keywords, flags and columns") {
  Lexed t("def f.go(x)\n  where.x is # note\n\tdo");
  REQUIRE(t.size() == 8);
  CHECK(t[0].kind == K::KwDef);
  CHECK(t[1].kind == K::Ident);
  CHECK(t.names.text(Name(t[1].value)) == "f.go");
  CHECK(t[2].kind == K::LeftParen);
  CHECK_FALSE(t[2].space_before());
  CHECK(t[5].kind == K::Ident);
  CHECK(t[5].newline_before());
  CHECK(t[5].column == 3);
  CHECK(t[6].kind == K::KwIs);
  CHECK(t[7].kind == K::KwDo);
  CHECK(t[7].column == 2);
  CHECK(t[7].newline_before());
}

TEST_CASE("lexer: numbers") {
  Lexed t("0007 4294967295 3n 3n+x 1.5 1.0e-3 2.5E+2 4294967295n");
  CHECK(t.errors() == 0);
  CHECK(t[0].value == 7);
  CHECK(t[1].value == 0xFFFFFFFFu);
  CHECK(t[2].kind == K::Nat);
  CHECK(t[3].kind == K::NatPlus);
  CHECK(t[4].kind == K::Ident);
  float value;
  std::memcpy(&value, &t[5].value, 4);
  CHECK(value == 1.5f);
  std::memcpy(&value, &t[7].value, 4);
  CHECK(value == 250.0f);
  CHECK(t[8].kind == K::Nat);
}

TEST_CASE("lexer: malformed numbers are one P6 each") {
  for (const char* bad : {"0xFF", "12ab", "3nx", "7.", "1e5", "4294967296", "4294967296n", "1.0e99", "1.5.2", "1_000", "1.5n", "99999999999999999999999999", ".5"}) {
    INFO(bad);
    Lexed t(bad);
    CHECK(t.size() == 1);
    REQUIRE(t.errors() == 1);
    CHECK(t.code() == Code::P6);
  }
}

TEST_CASE("lexer: malformed names are one P3 each") {
  for (const char* bad : {"a.1b", "a.", "a..b", "Vec.2d", ".a"}) {
    INFO(bad);
    Lexed t(bad);
    CHECK(t.size() == 1);
    REQUIRE(t.errors() == 1);
    CHECK(t.code() == Code::P3);
  }
  CHECK(Lexed("run0.sums _ _1 a._").errors() == 0);
}

TEST_CASE("lexer: strings and characters") {
  Lexed t("\"a\\n\\t\\r\\0\\\\\\'\\\"\\u{41}\\u{D800}\" 'c' '\\'' '\xC3\xA9' '''");
  CHECK(t.errors() == 0);
  CHECK(t.result.tokens.strings.at(0) == std::u32string({U'a', U'\n', U'\t', U'\r', U'\0', U'\\', U'\'', U'"', U'A', static_cast<char32_t>(0xD800)}));
  CHECK(t[1].value == 'c');
  CHECK(t[2].value == '\'');
  CHECK(t[3].value == 0xE9);
  CHECK(t[4].value == '\'');
  Lexed lines("\"a\nbc\" x");
  CHECK(lines.result.tokens.strings.at(0) == U"a\nbc");
  CHECK(lines[1].column == 5);
  CHECK_FALSE(lines[1].newline_before());
}

TEST_CASE("lexer: bad strings and characters are P5") {
  for (const char* bad : {"\"\\q\"", "\"abc", "''", "'ab'", "'a", "\"\\u{}\"", "\"\\u{123456789}\"", "'", "\"\\"}) {
    INFO(bad);
    Lexed t(bad);
    REQUIRE(t.errors() == 1);
    CHECK(t.code() == Code::P5);
  }
  Lexed two("\"\\q \\w\"");
  CHECK(two.errors() == 2);
}

TEST_CASE("lexer: operators that start with < or > stay single") {
  Lexed t("a <- b <> c >>= <&> ++ || && .|. .^. .&. -> => == !=");
  std::vector<K> kinds;
  for (size_t i = 0; i < t.size(); ++i) kinds.push_back(t[i].kind);
  CHECK(kinds == std::vector<K>{K::Ident, K::Less, K::Minus, K::Ident, K::Less, K::Greater, K::Ident, K::Greater, K::Greater, K::Equal, K::Less, K::Ampersand, K::Greater, K::PlusPlus, K::BarBar,
                                K::AndAnd, K::DotBarDot, K::DotCaretDot, K::DotAmpersandDot, K::Arrow, K::FatArrow, K::EqualEqual, K::NotEqual});
}

TEST_CASE("lexer: unreadable text is reported and never stops it") {
  Lexed t("a \xE2\x80\x9C $ b");
  CHECK(t.errors() == 2);
  CHECK(t[t.size() - 1].kind == K::Ident);
  std::string binary;
  for (int i = 0; i < 100000; ++i) binary += static_cast<char>(i * 7919 >> 3);
  CHECK(Lexed(binary).errors() <= 200);
}
