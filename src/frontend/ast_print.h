// Prints a syntax tree as s-expressions, one declaration after another (`--dump=ast`). Example: `(a + 1 : U32)` prints as
// `(group (+ a 1) : U32)`. Sugar is shown as written; a chain of any length is printed without recursion along it.
#pragma once
#include <string>

#include "frontend/ast.h"

namespace bendc {

[[nodiscard]] std::string print_ast(const ast::Ast& tree, const Interner& names);
[[nodiscard]] std::string print_ast_node(const ast::Ast& tree, const Interner& names, ast::NodeId id);

}  // namespace bendc
