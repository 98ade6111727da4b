// parse: one source file -> Ast, with every syntax diagnostic found (the parser recovers at the next declaration or case).
// Pure: depends on the text alone. What needs other declarations (P8-P10, P14, P15, P18-P22, P23 in part, P27) is the resolver's.
#pragma once
#include "frontend/ast.h"
#include "support/diagnostic.h"

namespace bendc {

struct ParseResult {
  ast::Ast ast;
  Diagnostics diagnostics;
};

[[nodiscard]] ParseResult parse(const SourceMap& sources, FileId file, Interner& names);

}  // namespace bendc
