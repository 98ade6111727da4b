// explain_forks: the plan of a program's `!` calls and fork sites as text, for `bendc explain FILE`.
// In: the owned host module, its device module and machine. Out: one paragraph for each `!` target and each fork, in order of the source.
//
//   fork at fib.bend:8 in `fib`, 2 calls of `fib`
//     on the CPU: a task for each call but the first, for whoever is idle
//     on a GPU: ..
#pragma once
#include <string>

#include "codegen/gpu/machine_plan.h"
#include "codegen/gpu/segments.h"
#include "support/source.h"

namespace bendc {

[[nodiscard]] std::string explain_forks(const flow::Module& host, const DeviceModule& device, const MachinePlan& plan, const SourceMap& sources);

}  // namespace bendc
