// explain_forks, explain_html: the plan of a program's `!` calls and fork sites, for `bendc explain FILE`.
// In: the owned host module, its device module and machine. Out: text with one paragraph for each `!` target and each fork, in order of the
// source; or one self-contained page that shows the same beside the source.
//
//   fork at fib.bend:8 in `fib`, 2 calls of `fib`: host, seq up to `n` = 10
//     because the calls make `n` smaller by 1 to 2: subtrees differ in size
//     on the CPU: a task for idle cores, ..
//     on a GPU: ..
#pragma once
#include <string>
#include <vector>

#include "codegen/gpu/fork_sites.h"
#include "support/source.h"

namespace bendc {

[[nodiscard]] std::string explain_forks(const flow::Module& host, const DeviceModule& device, const MachinePlan& plan, const SourceMap& sources);
[[nodiscard]] std::string explain_html(const flow::Module& host, const DeviceModule& device, const MachinePlan& plan, const SourceMap& sources, const std::string& title);

// The parts that both show.
[[nodiscard]] std::string entry_text(const DeviceEntry& entry);
[[nodiscard]] std::string site_head(const ForkSite& site);
[[nodiscard]] std::vector<std::string> site_details(const ForkSite& site);

}  // namespace bendc
