// parse_imports: the import lines at the top of a file, read line by line as text because a path is no token of the language.
// In: the source. Out: the imports, and the offset where declarations start. Example: `import ./scan.bend as Scan  # note`.
#pragma once
#include "frontend/ast.h"
#include "support/diagnostic.h"

namespace bendc {

[[nodiscard]] uint32_t parse_imports(const SourceMap& sources, FileId file, Interner& names, std::vector<ast::Import>& imports, Diagnostics& diagnostics);

}  // namespace bendc
