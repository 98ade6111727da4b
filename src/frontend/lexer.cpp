#include "frontend/lexer.h"

#include <array>
#include <cstring>

#include <fmt/format.h>

#include "support/text.h"

namespace bendc {

namespace {

constexpr size_t kMaxDiagnostics = 200;   // a binary file must not become a million reports

enum CharClass : uint8_t { kHead = 1, kDigit = 2, kDot = 4, kBlank = 8 };

constexpr std::array<uint8_t, 256> kClasses = [] {
  std::array<uint8_t, 256> classes{};
  for (int c = 'a'; c <= 'z'; ++c) classes[static_cast<size_t>(c)] = kHead;
  for (int c = 'A'; c <= 'Z'; ++c) classes[static_cast<size_t>(c)] = kHead;
  classes['_'] = kHead;
  for (int c = '0'; c <= '9'; ++c) classes[static_cast<size_t>(c)] = kDigit;
  classes['.'] = kDot;
  classes[' '] = classes['\t'] = classes['\r'] = classes['\n'] = kBlank;
  return classes;
}();

uint8_t class_of(char c) { return kClasses[static_cast<unsigned char>(c)]; }

struct Keyword {
  std::string_view text;
  TokenKind kind;
};
constexpr Keyword kKeywords[] = {
#define BENDC_TOKEN(kind, text)
#define BENDC_KEYWORD(kind, text) {text, TokenKind::kind},
#include "frontend/token.def"
#undef BENDC_KEYWORD
#undef BENDC_TOKEN
};

// Bit n of entry c: some keyword starts with c and has n characters. Most names are refused by this test alone.
constexpr std::array<uint8_t, 256> kKeywordLengths = [] {
  std::array<uint8_t, 256> lengths{};
  for (const Keyword& keyword : kKeywords) lengths[static_cast<unsigned char>(keyword.text[0])] |= static_cast<uint8_t>(1u << keyword.text.size());
  return lengths;
}();

TokenKind word_kind(std::string_view text) {
  if (text.size() > 7 || !(kKeywordLengths[static_cast<unsigned char>(text[0])] >> text.size() & 1)) return TokenKind::Ident;
  for (const Keyword& keyword : kKeywords)
    if (keyword.text == text) return keyword.kind;
  return TokenKind::Ident;
}

class Lexer {
 public:
  Lexer(const SourceMap& sources, FileId file, uint32_t start, Interner& names) : file_(file), text_(sources[file].text), names_(names), pos_(start) {
    // Code averages a token every 3.4 bytes on the conformance cases.
    tokens_.items.reserve((text_.size() - std::min<size_t>(start, text_.size())) / 3 + 2);
    line_start_ = start;
    while (line_start_ > 0 && text_[line_start_ - 1] != '\n') --line_start_;
  }

  LexResult run() {
    while (token()) {}
    return {std::move(tokens_), std::move(diagnostics_)};
  }

 private:
  [[nodiscard]] char at(size_t i) const { return i < text_.size() ? text_[i] : '\0'; }

  void report(Code code, size_t begin, size_t end, std::string message, std::string fix = {}) {
    if (diagnostics_.size() >= kMaxDiagnostics) return;
    Diagnostic& d = diagnostics_.add(code, {file_, static_cast<uint32_t>(begin), static_cast<uint32_t>(end - begin)}, std::move(message));
    d.fix = std::move(fix);
  }

  // Skips blanks and comments; returns the flags of the token that follows.
  uint8_t skip_blanks() {
    uint8_t flags = pos_ == 0 || (class_of(text_[pos_ - 1]) & kBlank) ? kSpaceBefore : 0;
    while (pos_ < text_.size()) {
      char c = text_[pos_];
      if (c == ' ' || c == '\t' || c == '\r') {
        flags |= kSpaceBefore;
        ++pos_;
      } else if (c == '\n') {
        flags |= kSpaceBefore | kNewlineBefore;
        line_start_ = ++pos_;
      } else if (c == '#') {
        const void* newline = std::memchr(text_.data() + pos_, '\n', text_.size() - pos_);
        pos_ = newline ? static_cast<size_t>(static_cast<const char*>(newline) - text_.data()) : text_.size();
      } else {
        break;
      }
    }
    return flags;
  }

  bool token() {
    uint8_t flags = skip_blanks();
    Token token;
    token.flags = flags | (unterminated_ ? kReported : 0);
    token.offset = static_cast<uint32_t>(pos_);
    token.column = static_cast<uint32_t>(pos_ - line_start_ + 1);
    if (pos_ >= text_.size()) {
      tokens_.items.push_back(token);
      return false;
    }
    char c = text_[pos_];
    uint8_t cls = class_of(c);
    if (cls & kHead) word(token);
    else if (cls & kDigit) number(token);
    else if (c == '"') string(token);
    else if (c == '\'') character(token);
    else punctuation(token, c);
    token.length = static_cast<uint32_t>(pos_ - token.offset);
    tokens_.items.push_back(token);
    return true;
  }

  void word(Token& token) {
    size_t begin = pos_;
    bool dotted = false, malformed = false;
    for (++pos_; pos_ < text_.size(); ++pos_) {
      uint8_t cls = class_of(text_[pos_]);
      if (cls & (kHead | kDigit)) continue;
      if (!(cls & kDot)) break;
      // `.|.`, `.^.`, `.&.` do not end a name: they need a space before.
      dotted = true;
      malformed |= !(class_of(at(pos_ + 1)) & kHead);
    }
    std::string_view text = std::string_view(text_).substr(begin, pos_ - begin);
    token.kind = dotted ? TokenKind::Ident : word_kind(text);
    if (malformed) malformed_name(begin, text);
    if (token.kind == TokenKind::Ident) token.value = names_.intern(text).index;
  }

  void malformed_name(size_t begin, std::string_view text) {
    size_t dot = text.find('.');
    while (dot != std::string_view::npos && (class_of(at(begin + dot + 1)) & kHead)) dot = text.find('.', dot + 1);
    char after = at(begin + dot + 1);
    if (class_of(after) & kDigit) {
      report(Code::P3, begin, pos_, fmt::format("a part of the name `{}` starts with a digit", text),
             "start every part between dots with a letter or `_`; a part of a pair has no name: take it apart where it is a parameter, by `(a, b) = p`");
    }
    else if (after == '.') report(Code::P3, begin, pos_, fmt::format("the name `{}` has an empty part between two dots", text), "write one dot between two parts");
    else if (after == '|' || after == '^' || after == '&') report(Code::P3, begin, pos_, fmt::format("the name `{}` ends in a dot", text), fmt::format("write a space before `.{}.`", after));
    else report(Code::P3, begin, pos_, fmt::format("the name `{}` ends in a dot", text), "remove the dot: names have no trailing dot, and there is no field access");
  }

  void number(Token& token) {
    size_t begin = pos_;
    auto digits = [&] {
      while (class_of(at(pos_)) & kDigit) ++pos_;
    };
    digits();
    size_t whole_end = pos_;
    token.kind = TokenKind::U32;
    if (at(pos_) == '.' && (class_of(at(pos_ + 1)) & kDigit)) {
      token.kind = TokenKind::F32;
      ++pos_;
      digits();
      if (at(pos_) == 'e' || at(pos_) == 'E') {
        size_t sign = at(pos_ + 1) == '+' || at(pos_ + 1) == '-';
        if (class_of(at(pos_ + 1 + sign)) & kDigit) {
          pos_ += 1 + sign;
          digits();
        }
      }
    } else if (at(pos_) == 'n') {
      token.kind = TokenKind::Nat;
      ++pos_;
    }
    if (class_of(at(pos_)) & (kHead | kDigit | kDot)) {
      glued_number(begin, whole_end);
      token.kind = TokenKind::Bad;
      return;
    }
    std::string_view text = std::string_view(text_).substr(begin, pos_ - begin);
    if (token.kind == TokenKind::F32) {
      float value = 0;
      (void)text::f32_read(text.data(), text.size(), &value);
      if (value - value != 0) {
        report(Code::P6, begin, pos_, fmt::format("the F32 literal {} is too large", shortened(text)), "the largest F32 is 3.4028235e38");
        token.kind = TokenKind::Bad;
        return;
      }
      std::memcpy(&token.value, &value, sizeof value);
      return;
    }
    uint64_t value = 0;
    if (!text::read_decimal(text.data(), whole_end - begin, 0xFFFFFFFFu, &value)) {
      bool nat = token.kind == TokenKind::Nat;
      report(Code::P6, begin, pos_, fmt::format("the {} literal {} is too large", nat ? "Nat" : "U32", shortened(text)), fmt::format("the largest {} literal is 4294967295{}; a literal never wraps", nat ? "Nat" : "U32", nat ? "n" : ""));
      token.kind = TokenKind::Bad;
      return;
    }
    token.value = static_cast<uint32_t>(value);
    if (token.kind == TokenKind::Nat && at(pos_) == '+') {
      token.kind = TokenKind::NatPlus;
      ++pos_;
    }
  }

  static std::string shortened(std::string_view text) { return text.size() <= 24 ? fmt::format("`{}`", text) : fmt::format("`{}...` of {} digits", text.substr(0, 12), text.size()); }

  void glued_number(size_t begin, size_t whole_end) {
    while (class_of(at(pos_)) & (kHead | kDigit | kDot)) ++pos_;
    std::string_view text = std::string_view(text_).substr(begin, pos_ - begin);
    char after = at(whole_end);
    std::string fix = "write a space after the number";
    if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X' || text[1] == 'b' || text[1] == 'o')) fix = "numbers are decimal: write the value in base ten";
    else if (after == '_') fix = "write the digits without `_`";
    else if (const std::string_view suffix = text.substr(std::min(whole_end - begin, text.size())); suffix == "u" || suffix == "u32" || suffix == "U32" || suffix == "f" || suffix == "f32" || suffix == "i32") fix = "a number says its type by its form: `5` is a U32, `5n` a Nat, `5.0` an F32";
    else if (after == 'e' || after == 'E') fix = "an F32 literal needs its point: `1.0e5`";
    else if (after == '.' && whole_end + 1 == pos_) fix = fmt::format("an F32 literal has digits after the point: `{}0`", text.substr(0, 20));
    report(Code::P6, begin, pos_, fmt::format("malformed number {}", shortened(text)), std::move(fix));
  }

  // One code point of a string or char, escapes included; a bad escape is reported and read as the character after the backslash.
  char32_t code_point() {
    if (text_[pos_] != '\\') {
      size_t used;
      uint32_t c = text::utf8_decode(text_.data() + pos_, text_.size() - pos_, &used);
      if (text_[pos_] == '\n') line_start_ = pos_ + 1;
      pos_ += used;
      return c == text::kBadCodePoint ? 0xFFFD : c;
    }
    size_t begin = pos_++;
    char c = at(pos_);
    if (c == 'u' && at(pos_ + 1) == '{') {
      // 1 to 8 hex digits.
      uint64_t value = 0;
      size_t i = pos_ + 2, first = i;
      for (; i < first + 8; ++i) {
        char h = at(i);
        if (h >= '0' && h <= '9') value = value * 16 + static_cast<uint64_t>(h - '0');
        else if ((h | 32) >= 'a' && (h | 32) <= 'f') value = value * 16 + static_cast<uint64_t>((h | 32) - 'a' + 10);
        else break;
      }
      if (i > first && at(i) == '}') {
        pos_ = i + 1;
        return static_cast<char32_t>(value);
      }
      report(Code::P5, begin, i, "malformed `\\u` escape", "write `\\u{` 1 to 8 hexadecimal digits `}`");
      pos_ = i;
      return 0xFFFD;
    }
    static constexpr std::string_view kLetters = "ntr0\\'\"", kValues{"\n\t\r\0\\'\"", 7};
    size_t which = c == '\0' ? std::string_view::npos : kLetters.find(c);
    if (which != std::string_view::npos) {
      ++pos_;
      return static_cast<unsigned char>(kValues[which]);
    }
    if (pos_ >= text_.size()) return 0xFFFD;   // the literal is unterminated, which is reported instead
    size_t used;
    uint32_t value = text::utf8_decode(text_.data() + pos_, text_.size() - pos_, &used);
    if (c == '\n') line_start_ = pos_ + 1;
    report(Code::P5, begin, pos_ + used, c == '\n' ? std::string("a backslash at the end of a line is not an escape") : fmt::format("unknown escape `\\{}`", std::string_view(text_).substr(pos_, used)),
           "the escapes are \\n \\t \\r \\0 \\\\ \\' \\\" and \\u{hex}");
    pos_ += used;
    return value == text::kBadCodePoint ? 0xFFFD : value;
  }

  void string(Token& token) {
    size_t begin = pos_++;
    std::u32string value;
    while (pos_ < text_.size() && text_[pos_] != '"') value.push_back(code_point());
    if (pos_ >= text_.size()) {
      size_t line_end = std::min(text_.find('\n', begin), text_.size());
      report(Code::P5, begin, line_end, "this string is never closed", "end it with `\"`");
      token.kind = TokenKind::Bad;
      unterminated_ = true;
      return;
    }
    ++pos_;
    token.kind = TokenKind::String;
    token.value = static_cast<uint32_t>(tokens_.strings.size());
    tokens_.strings.push_back(std::move(value));
  }

  void character(Token& token) {
    size_t begin = pos_++;
    size_t before = diagnostics_.size();
    bool empty = pos_ >= text_.size() || (at(pos_) == '\'' && at(pos_ + 1) != '\'');
    if (empty) {
      if (pos_ < text_.size()) ++pos_;
      report(Code::P5, begin, pos_, "a character literal holds exactly one character", "write a string with `\"` for zero or more characters");
      token.kind = TokenKind::Bad;
      return;
    }
    token.value = code_point();
    if (at(pos_) == '\'') {
      ++pos_;
      token.kind = TokenKind::Char;
      return;
    }
    // Skip to a closing quote on the same line, if there is one, so that the rest of the line still reads.
    size_t close = pos_;
    while (close < text_.size() && text_[close] != '\n' && text_[close] != '\'') ++close;
    bool closed = at(close) == '\'' && close < text_.size();
    if (closed) pos_ = close + 1;
    if (diagnostics_.size() == before) {
      if (closed) report(Code::P5, begin, pos_, "a character literal holds exactly one character", "write a string with `\"` for more than one");
      else report(Code::P5, begin, pos_, "this character literal is never closed", "end it with `'`");
    }
    token.kind = TokenKind::Bad;
  }

  void punctuation(Token& token, char c) {
    char next = at(pos_ + 1);
    auto one = [&](TokenKind kind) {
      token.kind = kind;
      pos_ += 1;
    };
    auto two = [&](TokenKind kind) {
      token.kind = kind;
      pos_ += 2;
    };
    switch (c) {
      case '(': return one(TokenKind::LeftParen);
      case ')': return one(TokenKind::RightParen);
      case '[': return one(TokenKind::LeftBracket);
      case ']': return one(TokenKind::RightBracket);
      case '{': return one(TokenKind::LeftBrace);
      case '}': return one(TokenKind::RightBrace);
      case ',': return one(TokenKind::Comma);
      case ';': return one(TokenKind::Semicolon);
      case ':': return one(TokenKind::Colon);
      case '=': return next == '=' ? two(TokenKind::EqualEqual) : next == '>' ? two(TokenKind::FatArrow) : one(TokenKind::Equal);
      case '!': return next == '=' ? two(TokenKind::NotEqual) : one(TokenKind::Bang);
      case '@': return one(TokenKind::At);
      case '%': return one(TokenKind::Percent);
      case '?': return one(TokenKind::Question);
      case '~': return one(TokenKind::Tilde);
      case '\\': return one(TokenKind::Backslash);
      case '^': return one(TokenKind::Caret);
      case '*': return one(TokenKind::Star);
      case '+': return next == '+' ? two(TokenKind::PlusPlus) : one(TokenKind::Plus);
      case '-': return next == '>' ? two(TokenKind::Arrow) : one(TokenKind::Minus);
      case '/': return one(TokenKind::Slash);
      case '<': return one(TokenKind::Less);
      case '>': return one(TokenKind::Greater);
      case '&': return next == '&' ? two(TokenKind::AndAnd) : one(TokenKind::Ampersand);
      case '|': return next == '|' ? two(TokenKind::BarBar) : one(TokenKind::Bar);
      case '.':
        if (at(pos_ + 2) == '.' && (next == '|' || next == '^' || next == '&')) {
          token.kind = next == '|' ? TokenKind::DotBarDot : next == '^' ? TokenKind::DotCaretDot : TokenKind::DotAmpersandDot;
          pos_ += 3;
          return;
        }
        return stray_dot(token);
      default: return unknown(token);
    }
  }

  void stray_dot(Token& token) {
    size_t begin = pos_;
    while (class_of(at(pos_)) & (kHead | kDigit | kDot)) ++pos_;
    std::string_view text = std::string_view(text_).substr(begin, pos_ - begin);
    if (text.size() > 1 && (class_of(text[1]) & kDigit)) report(Code::P6, begin, pos_, fmt::format("malformed number {}", shortened(text)), "write a digit before the point");
    else report(Code::P3, begin, pos_, fmt::format("a name cannot start with a dot: `{}`", text.substr(0, 60)), "remove the dot, or write what stands before it");
    token.kind = TokenKind::Bad;
  }

  void unknown(Token& token) {
    size_t begin = pos_;
    unsigned char c = static_cast<unsigned char>(text_[pos_]);
    if (c >= 0x80) {
      while (static_cast<unsigned char>(at(pos_)) >= 0x80) ++pos_;
      // Some of these look like a space or like nothing: the number tells. The first twelve are shown.
      size_t shown = begin, used;
      const uint32_t first = text::utf8_decode(text_.data() + begin, pos_ - begin, &used);
      for (int i = 0; i < 12 && shown < pos_; ++i, shown += used) (void)text::utf8_decode(text_.data() + shown, pos_ - shown, &used);
      const std::string_view more = shown < pos_ ? "..." : "";
      report(Code::P1, begin, pos_, fmt::format("`{}{}` (U+{:04X}) has no meaning outside strings, characters and comments", std::string_view(text_).substr(begin, shown - begin), more, first),
             "write straight quotes, plain spaces, and ASCII names and operators");
    } else {
      ++pos_;
      report(Code::P1, begin, pos_, c < 0x20 || c == 0x7F ? fmt::format("the control character {} has no meaning outside strings, characters and comments", c)
                                                                : fmt::format("`{}` has no meaning outside strings, characters and comments", static_cast<char>(c)));
    }
    token.kind = TokenKind::Bad;
  }

  FileId file_;
  const std::string& text_;
  Interner& names_;
  size_t pos_;
  size_t line_start_ = 0;
  bool unterminated_ = false;
  Tokens tokens_;
  Diagnostics diagnostics_;
};

}  // namespace

LexResult lex(const SourceMap& sources, FileId file, uint32_t start, Interner& names) { return Lexer(sources, file, start, names).run(); }

bool is_name_head(char c) { return (class_of(c) & kHead) != 0; }
bool is_name_char(char c) { return (class_of(c) & (kHead | kDigit | kDot)) != 0; }

std::string_view token_text(TokenKind kind) {
  static constexpr std::string_view kTexts[] = {
#define BENDC_TOKEN(kind, text) text,
#define BENDC_KEYWORD(kind, text) "`" text "`",
#include "frontend/token.def"
#undef BENDC_KEYWORD
#undef BENDC_TOKEN
  };
  return kTexts[static_cast<size_t>(kind)];
}

}  // namespace bendc
