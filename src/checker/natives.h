// Natives: defs of Base that the evaluator computes at once when their arguments are literals. Their definitions stay the meaning
// (they reduce as usual on anything else); a native only saves the steps. F32 natives have no definition and compute only with
// MachineOptions::floats. In: a native and whnf arguments. Out: the result, or null when it does not apply.
#pragma once
#include <string_view>

#include "checker/machine.h"

namespace bendc {

enum class Native : uint8_t {
  None,
#define BENDC_NATIVE(id, name, arity, floats) id,
#include "checker/natives.def"
#undef BENDC_NATIVE
};

[[nodiscard]] Native find_native(std::string_view name);
[[nodiscard]] uint32_t native_arity(Native native);
[[nodiscard]] bool native_uses_floats(Native native);
// `args` are the call's arguments, forced here from left to right; stops at the first that is not a literal.
[[nodiscard]] const Value* run_native(Machine& machine, Native native, const Value* const* args);

}  // namespace bendc
