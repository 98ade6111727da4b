// Types of primitive operations: checks operand types and gives the result type. One place for the verifier, the lowering and passes.
#pragma once
#include <optional>
#include <span>

#include "codegen/flow.h"

namespace bendc::flow {

// The result type of `prim` on operands of these types, or none when the operands do not fit.
[[nodiscard]] std::optional<TypeId> prim_result(Module& module, Prim prim, std::span<const TypeId> operands, bool in_place = false);
// Array primitives whose handle is the first operand and comes back, unchanged, as (the first part of) the result.
[[nodiscard]] bool gives_handle_back(Prim prim);
// Does a primitive only read its operand number `operand`? (It consumes the others.)
[[nodiscard]] bool prim_borrows(const Expr& expr, size_t operand);
// Prims without effect whose result may be dropped or moved (no run-time error possible either).
[[nodiscard]] bool prim_is_pure(const Expr& expr);

}  // namespace bendc::flow
