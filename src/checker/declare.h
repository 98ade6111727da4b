// declare: the first pass of elaboration. Every declaration of every module gets its key, its row in the Book and its place in the checking
// order, so that the second pass can resolve names that stand below. Reports P20-P23.
#pragma once
#include <vector>

#include "checker/elab_reports.h"
#include "checker/symbols.h"
#include "checker/core.h"

namespace bendc::elab {

enum class DeclaredKind : uint8_t { Data, Def, Law, Fill };

struct Declared {
  DeclaredKind kind = DeclaredKind::Def;
  ModuleId module;
  uint32_t decl = 0;       // index into Ast::decls
  uint32_t id = 0;         // DataId or DefId index
  uint32_t position = 0;   // index of this entry
};

[[nodiscard]] std::vector<Declared> declare(const Program& program, Interner& names, Symbols& symbols, core::Book& book, Reports& reports);

}  // namespace bendc::elab
