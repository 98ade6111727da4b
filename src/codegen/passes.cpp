#include "codegen/passes.h"

#include <fmt/format.h>

#include <chrono>

#include "codegen/borrow.h"
#include "codegen/elide_handles.h"
#include "codegen/flow_text.h"
#include "codegen/flow_verify.h"
#include "codegen/gpu/fuse_bangs.h"
#include "codegen/index_range.h"
#include "codegen/inline.h"
#include "codegen/loops.h"
#include "codegen/ownership.h"

namespace bendc {

const std::vector<Pass>& pass_table() {
  static const std::vector<Pass> table = {
      {"fuse_bangs", "a `!` call that only feeds another becomes part of it", fuse_bangs},
      {"normalise_tails", "a call whose result is returned becomes a tail call", normalise_tails},
      {"inline_small", "small functions are copied into their callers", inline_small},
      {"elide_handles", "an array result that is always an argument is not passed back", elide_handles},
      {"infer_borrows", "parameters that are only read stay with the caller", infer_borrows},
      {"make_loops", "self tail calls become loops", make_loops},
      {"hoist_index_masks", "loops over consecutive slots get a copy without index masks", hoist_index_masks},
      {"insert_ownership", "explicit dup, drop, open and reuse", insert_ownership},
  };
  return table;
}

PassReport run_passes(flow::Module& module, const PassOptions& options) {
  PassReport report;
  auto check = [&](std::string_view name) {
    if (!options.verify) return true;
    std::string complaint = flow::verify(module);
    if (complaint.empty()) return true;
    report.internal_error = fmt::format("after `{}`: {}", name, complaint);
    return false;
  };
  auto dump = [&](std::string_view name) {
    if (options.dump_after != name && options.dump_after != "all") return;
    if (options.dump_after == "all") report.dump += fmt::format("; after {}\n", name);
    report.dump += flow::print_module(module);
  };
  dump("lower");
  if (!check("lower") || options.stop_after == "lower") return report;
  for (const Pass& pass : pass_table()) {
    auto start = std::chrono::steady_clock::now();
    pass.run(module, options);
    report.timings.push_back({std::string(pass.name), std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()});
    dump(pass.name);
    if (!check(pass.name) || options.stop_after == pass.name) return report;
  }
  return report;
}

}  // namespace bendc
