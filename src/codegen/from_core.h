// lower: the reachable part of a checked Book -> a Flow module. Erasure of types, quantities and proofs, specialisation of polymorphic
// and template defs by the layout of their erased arguments, A-normal form, closure conversion, and the printer of value mains.
#pragma once
#include <string>

#include "checker/core.h"
#include "codegen/flow.h"
#include "support/diagnostic.h"

namespace bendc {

struct LowerResult {
  flow::Module module;
  Diagnostics diagnostics;       // B5 (cannot be built), L1
  bool needs_normalise = false;  // main's type has no run-time form (functions, types, proofs, erased fields)
};

// `stack`: bytes of C++ stack it may use from here on; a term nested deeper is L1.
[[nodiscard]] LowerResult lower(core::Book& book, const SourceMap& sources, Interner& names, size_t stack = size_t{6} << 20);

}  // namespace bendc
