// check_book: checks every declaration of an elaborated Book in textual order (language.md section 5.11) and gives the verdict.
// In: the Book (its tables may grow: checking a template mints instances' terms). Out: diagnostics and facts that later phases use.
#pragma once
#include <vector>

#include "checker/core.h"
#include "support/diagnostic.h"

namespace bendc {

struct CheckOptions {
  bool safe = false;                 // relying on unsafe or foreign code is an error (B3)
  bool verify = false;               // extra internal checks
  size_t stack = size_t{6} << 20;    // bytes of C++ stack that checking may use from here on
  size_t memory = size_t{1} << 29;   // bytes of values that one declaration may build
};

struct Verdict {
  std::vector<core::DefId> relies_on_unsafe;  // user defs, declaration order (stdlib left out)
  uint32_t todos = 0;                         // ?TODO holes and open laws
  bool clean = false;                         // no errors, no todos
};

struct CheckResult {
  Verdict verdict;
  Diagnostics diagnostics;
};

[[nodiscard]] CheckResult check_book(core::Book& book, const SourceMap& sources, Interner& names, const CheckOptions& options);

}  // namespace bendc
