// lex: source text -> tokens, from a byte offset on (import lines are read before, as text). It never stops: what cannot be
// read becomes a Bad token and a P3, P5, P6 or P1 diagnostic. Example: `f(x) # note` gives Ident LeftParen Ident RightParen End.
#pragma once
#include "frontend/token.h"
#include "support/diagnostic.h"
#include "support/interner.h"

namespace bendc {

struct LexResult {
  Tokens tokens;
  Diagnostics diagnostics;
};

[[nodiscard]] LexResult lex(const SourceMap& sources, FileId file, uint32_t start, Interner& names);

[[nodiscard]] bool is_name_head(char c);      // A-Z a-z _
[[nodiscard]] bool is_name_char(char c);      // name heads, digits, `.`

}  // namespace bendc
