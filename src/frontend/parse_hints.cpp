// What other languages have and this one has not, recognised around the first error of a declaration: the rule and what to write instead.
#include <algorithm>

#include "frontend/parser_impl.h"

namespace bendc {

namespace {

struct Foreign {
  std::string_view word, note, fix;
};

// First words of a statement that are plain names here.
constexpr Foreign kStatements[] = {
    {"if", "there is no `if`: a choice is a `match` on a parameter", "pass the Bool to a def that matches it: `match c:`, then `case True{}: ..` and `case False{}: ..`"},
    {"else", "there is no `else`: a choice is a `match` on a parameter", "write `case False{}: ..` or `case _: ..`"},
    {"elif", "there is no `elif`: a choice is a `match` on a parameter", "pass the Bool to a def that matches it"},
    {"while", "there are no loops: a def calls itself with a smaller argument", "count a Nat down: `match n:`, then `case 0n: ..` and `case 1n+p: ..`"},
    {"let", "there is no `let`: two names on one line start a parallel let", "write `x = value`, or `x : T = value`"},
    {"var", "there is no `var`: two names on one line start a parallel let", "write `x = value`, or `x : T = value`"},
    {"const", "there is no `const`: two names on one line start a parallel let", "write `x = value`, or `x : T = value`"},
    {"val", "there is no `val`: two names on one line start a parallel let", "write `x = value`, or `x : T = value`"},
};

}  // namespace

void Parser::hint(size_t first_report, uint32_t first_token) {
  if (diagnostics.size() == first_report) return;
  Diagnostic& d = diagnostics.at(first_report);
  const std::vector<Token>& items = tokens().items;
  const auto found = std::lower_bound(items.begin(), items.end(), d.span.offset, [](const Token& t, uint32_t offset) { return t.offset < offset; });
  if (found == items.end() || d.span.offset != found->offset) return;
  const uint32_t at = static_cast<uint32_t>(found - items.begin());
  auto say = [&](std::string_view note, std::string_view fix) {
    d.notes.assign(1, std::string(note));
    d.fix = fix;
  };
  // A statement that starts with a word of another language: on the line of the error, or on the two before it.
  uint32_t lines = 0;
  for (uint32_t i = at + 1; i-- > first_token && lines < 3;) {
    if (items[i].newline_before()) ++lines;
    const bool starts = items[i].newline_before() || (i > first_token && items[i - 1].kind == TokenKind::Colon);
    if (!starts || items[i].kind != TokenKind::Ident) continue;
    for (const Foreign& f : kStatements) {
      if (text(items[i]) == f.word) return say(f.note, f.fix);
    }
  }
  switch (found->kind) {
    case TokenKind::EqualEqual: return say("`==` is no operator on values; `{a == b : T}` is the type of proofs that they are equal", "compare with `T.is_eq(a, b)`, such as `U32.is_eq(a, b)`");
    case TokenKind::NotEqual: return say("`!=` is no operator on values; `{a != b : T}` is the type of proofs that they differ", "compare with `T.is_eq(a, b)` and `Bool.not`");
    case TokenKind::LeftBrace:
      if (d.message.starts_with("expected `:`")) return say("a body stands after a `:`; braces hold the fields of a constructor", "write `:` and the body, without braces");
      break;
    case TokenKind::Less:
      if (at >= 2 && items[at - 2].kind == TokenKind::KwDef) return say("a def has no type parameters of its own kind: a type is an ordinary, erased argument", "write `(-A: Type, ..)`, and pass the type at each call");
      if (items.size() > at + 1 && items[at + 1].kind == TokenKind::Minus && items[at + 1].offset == found->offset + 1) return say("`x <- value` binds inside a `do` block", "open one above: `do IO<Unit>:`");
      break;
    case TokenKind::Minus:
      if (d.message.starts_with("expected a term")) return say("there is no unary minus", "subtract from zero: `(0.0 - x : F32)`");
      break;
    default: break;
  }
  if (d.message.find("erased let") != std::string::npos) say("`-x` at the head of a statement begins an erased let; there is no unary minus", "subtract from zero: `(0.0 - x : F32)`");
}

}  // namespace bendc
