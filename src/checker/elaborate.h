// elaborate: a loaded Program -> an unchecked Book of Core terms. Resolves names (aliases, namespaces, constructors), removes sugar
// (operators, index and do sugar, literals, fills), and turns pattern rows into case trees (case_tree.h). Reports the P codes that need
// declarations (P8-P10, P14, P15, P18-P20, P22, P23, P27) and the F codes. What is ill typed is the checker's business, but an
// unknown name is reported by the checker as C1: elaborate keeps it as an Error term plus an entry in `unknown`.
#pragma once
#include "checker/core.h"
#include "frontend/module_loader.h"
#include "support/diagnostic.h"

namespace bendc {

struct ElaborateResult {
  core::Book book;
  Diagnostics diagnostics;
};

[[nodiscard]] ElaborateResult elaborate(const Program& program, const SourceMap& sources, Interner& names);

}  // namespace bendc
