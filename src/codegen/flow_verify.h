// The Flow verifier: numbered invariants (types, scopes, arities, exhaustiveness; once ownership is explicit, that every owned value is
// consumed exactly once on every path). Returns the first violation in words, or an empty string.
#pragma once
#include <string>

#include "codegen/flow.h"

namespace bendc::flow {
[[nodiscard]] std::string verify(const Module& module);
// Invariant 10 alone (flow_verify_ownership.cpp); part of verify() for owned modules.
[[nodiscard]] std::string verify_ownership(const Module& module);
}  // namespace bendc::flow
