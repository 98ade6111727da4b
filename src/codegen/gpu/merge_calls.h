// merge_calls: fewer turns of the device machine (machine_plan.h). A call of an async function is a cut: a frame, and a turn each for the callee and for what follows it.
// In: a device module before it is cut. Out: the same, where an async call whose value is the caller's is a tail call, and a straight async function that is called
// at one place only, and ends with a tail call, has become part of its caller.
// merge_tails: the same for what cutting makes. In: a module in cut form. Out: a lifted function that does nothing but go on with a small async function holds its body.
#pragma once
#include <functional>

#include "codegen/flow.h"

namespace bendc {

// `movable`: functions that are nothing but their code: no `!` target, no perfect tree or scan, no accumulator. `dissolve` is told which have become part of others.
struct MergeRules {
  std::function<bool(flow::FuncId)> is_async;   // and reachable
  std::function<bool(flow::FuncId)> movable;
};

[[nodiscard]] std::vector<flow::FuncId> merge_calls(flow::Module& module, const MergeRules& rules);   // those that nobody calls any more
void merge_tails(flow::Module& module, uint32_t first_lifted, const MergeRules& rules);

}  // namespace bendc
