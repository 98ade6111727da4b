// Types of primitive operations: checks operand types and gives the result type. One place for the verifier, the lowering and passes.
#pragma once
#include <optional>
#include <span>

#include "codegen/flow.h"

namespace bendc::flow {

// The result type of `prim` on operands of these types, or none when the operands do not fit.
[[nodiscard]] std::optional<TypeId> prim_result(Module& module, Prim prim, std::span<const TypeId> operands);
// Prims that only read their counted operands (everything else consumes them).
[[nodiscard]] bool prim_borrows(Prim prim);
// Prims without effect whose result may be dropped or moved (no run-time error possible either).
[[nodiscard]] bool prim_is_pure(Prim prim);

}  // namespace bendc::flow
