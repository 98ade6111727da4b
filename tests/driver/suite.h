// Runs a list of cases on their lanes, several at a time, and reports in the order of the list, each case as soon as all before it are done.
#pragma once
#include <functional>

#include "known.h"
#include "run_case.h"

namespace bendc::tests {

struct LaneOutcome {
  Lane lane;
  Outcome outcome;
};

struct CaseOutcome {
  const Case* c = nullptr;
  std::vector<LaneOutcome> lanes;  // empty: none of the chosen lanes applies

  // Fail if a lane failed.
  [[nodiscard]] Verdict verdict() const;
};

using ReportCase = std::function<void(const CaseOutcome&)>;

// `jobs` threads; `report` is called from the calling thread, in order.
void run_suite(const std::vector<Case>& cases, const std::vector<Lane>& lanes, const RunContext& context, int jobs, const ReportCase& report);

// Rewrites a case's expectation to what every lane saw; false when lanes differ or saw what must not be expected.
[[nodiscard]] bool update_case(const CaseOutcome& outcome);

}  // namespace bendc::tests
