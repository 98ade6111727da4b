// The pass table: what runs on Flow, in order, as data. The runner verifies after each pass (when asked), times it, and keeps the
// text asked for by --dump=after:NAME.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "codegen/flow.h"

namespace bendc {

struct PassOptions {
  bool verify = true;
  std::string dump_after;      // pass name, "all", or empty
  std::string stop_after;
  int optimize = 2;            // 0: only what is needed for correctness
};

struct PassTiming {
  std::string name;
  double seconds = 0;
};

struct PassReport {
  std::vector<PassTiming> timings;
  std::string dump;            // text of the dumps asked for
  std::string internal_error;  // verifier complaint with the pass name; empty when fine
};

struct Pass {
  std::string_view name;
  std::string_view summary;
  void (*run)(flow::Module&, const PassOptions&);
};

[[nodiscard]] const std::vector<Pass>& pass_table();
[[nodiscard]] PassReport run_passes(flow::Module& module, const PassOptions& options);

}  // namespace bendc
