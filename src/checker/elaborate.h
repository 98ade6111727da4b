// elaborate: a loaded Program -> an unchecked Book of Core terms. Resolves names (aliases, namespaces, constructors), removes sugar
// (operators, index and do sugar, literals, fills), and turns pattern rows into case trees (case_tree.h). Reports the P codes that need
// declarations (P8-P10, P14, P15, P18-P23, P27), the F codes, and the C codes that are about names alone: C1 unknown names and a type's
// name used as a constructor (C12). What is ill typed is the checker's business.
// Only the errors of the first phase that has any are given: P, else F, else C. A declaration with an error is marked broken.
#pragma once
#include "checker/core.h"
#include "frontend/module_loader.h"
#include "support/diagnostic.h"

namespace bendc {

struct ElaborateResult {
  core::Book book;
  Diagnostics diagnostics;
};

// `stack`: bytes of C++ stack it may use from here on; a case tree nested deeper is L1.
[[nodiscard]] ElaborateResult elaborate(const Program& program, const SourceMap& sources, Interner& names, size_t stack = size_t{6} << 20);

}  // namespace bendc
