// Tokens of one file: 20 bytes each, in one vector, ended by an End token. Values are decoded (numbers, names, string index);
// what the layout rules need is kept as the column and two flags.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bendc {

enum class TokenKind : uint8_t {
#define BENDC_TOKEN(kind, text) kind,
#define BENDC_KEYWORD(kind, text) kind,
#include "frontend/token.def"
#undef BENDC_KEYWORD
#undef BENDC_TOKEN
};

inline constexpr uint8_t kSpaceBefore = 1;    // the character before is white space, or there is none
inline constexpr uint8_t kNewlineBefore = 2;  // a newline stands between this token and the one before
inline constexpr uint8_t kReported = 4;       // reaching this End is the fault of an error already reported

struct Token {
  uint32_t offset = 0;
  uint32_t length = 0;
  uint32_t value = 0;    // Ident: Name index; numbers: value or F32 bits; Char: code point; String: index into Tokens::strings
  uint32_t column = 1;   // 1-based, bytes since the newline before
  TokenKind kind = TokenKind::End;
  uint8_t flags = 0;

  [[nodiscard]] uint32_t end() const { return offset + length; }
  [[nodiscard]] bool space_before() const { return (flags & kSpaceBefore) != 0; }
  [[nodiscard]] bool newline_before() const { return (flags & kNewlineBefore) != 0; }
};

struct Tokens {
  std::vector<Token> items;               // never empty; the last one is End
  std::vector<std::u32string> strings;
};

[[nodiscard]] std::string_view token_text(TokenKind kind);   // "`(`", "a name"
[[nodiscard]] constexpr bool is_keyword(TokenKind kind) { return kind >= TokenKind::KwDef && kind <= TokenKind::KwQuant; }

}  // namespace bendc
