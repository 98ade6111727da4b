#include "suite.h"

#include <atomic>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <thread>

namespace bendc::tests {

Verdict CaseOutcome::verdict() const {
  for (const LaneOutcome& lane : lanes) {
    if (lane.outcome.verdict == Verdict::Fail) return Verdict::Fail;
  }
  return Verdict::Pass;
}

void run_suite(const std::vector<Case>& cases, const std::vector<Lane>& lanes, const RunContext& context, int jobs, const ReportCase& report) {
  std::vector<CaseOutcome> outcomes(cases.size());
  std::vector<bool> done(cases.size(), false);
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::condition_variable changed;
  auto work = [&] {
    for (size_t i = next++; i < cases.size(); i = next++) {
      CaseOutcome outcome{&cases[i], {}};
      for (Lane lane : lanes_of(cases[i], lanes)) outcome.lanes.push_back({lane, run_case(cases[i], lane, context)});
      std::lock_guard lock(mutex);
      outcomes[i] = std::move(outcome);
      done[i] = true;
      changed.notify_one();
    }
  };
  std::vector<std::jthread> workers;
  for (int i = 0; i < jobs; ++i) workers.emplace_back(work);
  for (size_t i = 0; i < cases.size(); ++i) {
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return done[i]; });
    }
    report(outcomes[i]);
  }
}

bool update_case(const CaseOutcome& outcome) {
  if (!outcome.c->writable || outcome.lanes.empty()) return false;
  const std::vector<std::string>* lines = nullptr;
  for (const LaneOutcome& lane : outcome.lanes) {
    if (lane.lane == Lane::Dump) continue;
    if (!lane.outcome.observed) return false;
    if (lines != nullptr && *lines != *lane.outcome.observed) return false;
    lines = &*lane.outcome.observed;
  }
  if (lines == nullptr) return false;
  auto text = read_file(outcome.c->file);
  if (!text) return false;
  std::ofstream out(outcome.c->file, std::ios::binary);
  out << with_expectation(*text, *lines);
  return bool(out);
}

}  // namespace bendc::tests
