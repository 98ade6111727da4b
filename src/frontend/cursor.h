// Cursor: a position in the tokens of one file, the spans it gives, and the parser's error state.
// `error` reports and goes on. `fail` reports and sets panic: every expectation then fails silently until `recover` is called at a
// place where reading can start again, so one mistake gives one report. `give_up` ends the file (nesting limit).
#pragma once
#include <fmt/format.h>

#include "frontend/token.h"
#include "support/diagnostic.h"

namespace bendc {

class Cursor {
 public:
  Cursor(FileId file, std::string_view text, Tokens tokens) : file_(file), text_(text), tokens_(std::move(tokens)) {}

  [[nodiscard]] const Token& peek(uint32_t ahead = 0) const { return tokens_.items[std::min<size_t>(pos_ + ahead, tokens_.items.size() - 1)]; }
  [[nodiscard]] TokenKind kind() const { return tokens_.items[pos_].kind; }
  [[nodiscard]] bool at(TokenKind kind) const { return tokens_.items[pos_].kind == kind; }
  [[nodiscard]] uint32_t position() const { return pos_; }
  void rewind(uint32_t position) { pos_ = position; }

  // The token read; End is never passed.
  const Token& next() {
    const Token& token = tokens_.items[pos_];
    if (token.kind != TokenKind::End) ++pos_;
    return token;
  }
  bool take(TokenKind kind) {
    if (!at(kind) || panic_) return false;
    next();
    return true;
  }

  // Whether the token `ahead` follows the one before it without a gap.
  [[nodiscard]] bool glued(uint32_t ahead) const { return peek(ahead).offset == peek(ahead - 1).end() && peek(ahead).length > 0; }
  [[nodiscard]] char char_after(const Token& token) const { return token.end() < text_.size() ? text_[token.end()] : '\0'; }

  [[nodiscard]] std::string_view text(const Token& token) const { return text_.substr(token.offset, token.length); }
  [[nodiscard]] Span span(const Token& token) const { return {file_, token.offset, token.length}; }
  [[nodiscard]] Span here() const { return span(peek()); }
  // From a token's start to the end of the last token read.
  [[nodiscard]] Span since(uint32_t offset) const {
    uint32_t end = pos_ > 0 ? tokens_.items[pos_ - 1].end() : offset;
    return {file_, offset, end > offset ? end - offset : 0};
  }

  [[nodiscard]] bool panic() const { return panic_; }
  void recover() {
    if (!gave_up_) panic_ = false;
  }

  // Returns null when the report is dropped.
  Diagnostic* error(Code code, Span span, std::string message) {
    if (gave_up_ || diagnostics.size() >= kMaxDiagnostics) return nullptr;
    last_error_ = pos_;
    return &diagnostics.add(code, span, std::move(message));
  }
  Diagnostic* fail(Code code, Span span, std::string message) {
    // Right behind an error the parser is still finding its way: what it meets there is an echo.
    constexpr uint32_t kFar = 3;
    const bool echo = last_error_ != kNone && pos_ - last_error_ <= kFar;
    const bool behind_bad = pos_ > 0 && tokens_.items[pos_ - 1].kind == TokenKind::Bad && !peek().newline_before();
    bool silent = panic_ || at(TokenKind::Bad) || behind_bad || (peek().flags & kReported) || (echo && code == Code::P1);
    panic_ = true;
    last_error_ = pos_;
    Diagnostic* d = silent ? nullptr : error(code, span, std::move(message));
    // What is missing at the end of a declaration is noticed at the next one, maybe many lines below.
    bool far = at(TokenKind::End) || at(TokenKind::KwDef) || at(TokenKind::KwType) || at(TokenKind::KwLaw);
    if (d && code == Code::P1 && far && pos_ > 0 && (peek().newline_before() || at(TokenKind::End))) d->labels.push_back({this->span(tokens_.items[pos_ - 1]), "the text before ends here"});
    return d;
  }
  void give_up(Code code, Span span, std::string message, std::string_view fix) {
    if (gave_up_) return;
    if (Diagnostic* d = error(code, span, std::move(message))) d->fix = fix;
    gave_up_ = panic_ = true;
    pos_ = static_cast<uint32_t>(tokens_.items.size() - 1);
  }

  // How a message calls the next token: `word` itself, or a description for long and special ones.
  [[nodiscard]] std::string found() const {
    const Token& token = peek();
    if (token.kind == TokenKind::End) return "the end of the file";
    if (token.kind == TokenKind::String) return "a string";
    if (token.length > 40) return fmt::format("`{}...`", text(token).substr(0, 37));
    return fmt::format("`{}`", text(token));
  }

  Diagnostics diagnostics;

 private:
  static constexpr size_t kMaxDiagnostics = 200;

  FileId file_;
  std::string_view text_;
  Tokens tokens_;
  uint32_t pos_ = 0;
  static constexpr uint32_t kNone = 0xFFFFFFFFu;
  uint32_t last_error_ = kNone;   // the token at the latest error
  bool panic_ = false;
  bool gave_up_ = false;

 protected:
  [[nodiscard]] Tokens& tokens() { return tokens_; }
};

}  // namespace bendc
