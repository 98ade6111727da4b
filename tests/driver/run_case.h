// Runs one case on one lane and judges it. In: a Case, the bendc to test, limits. Out: a verdict and, for a failure, what differed.
// Lanes: `check` (bendc check, or build for what must be refused there), `run` (bendc run), `build` (bendc build, then the executable), `sequential`
// (bendc run with one thread), `threads` (the executable with 1 to 64 threads, some schedules perturbed), `schedules` (the same with 20 perturbed
// schedules each; only when named), `emulated` (bendc run with the GPU's code run by the emulator), `dump` (an intermediate form's lines). A program
// must give the same output on every lane it runs on.
#pragma once
#include "case.h"
#include "process.h"

namespace bendc::tests {

enum class Lane { Check, Run, Build, Sequential, Threads, Schedules, Emulated, Dump };

struct LaneInfo {
  Lane lane;
  std::string_view name;
  bool usual = true;   // also without --lanes
};
inline constexpr LaneInfo kLanes[] = {
    {Lane::Check, "check"},     {Lane::Dump, "dump"},         {Lane::Run, "run"},     {Lane::Sequential, "sequential"},
    {Lane::Threads, "threads"}, {Lane::Emulated, "emulated"}, {Lane::Build, "build"}, {Lane::Schedules, "schedules", false},
};
[[nodiscard]] std::string_view lane_name(Lane lane);
[[nodiscard]] std::optional<Lane> lane_named(std::string_view name);

enum class Verdict { Pass, Fail };

struct Outcome {
  Verdict verdict = Verdict::Fail;
  std::string detail;   // of a failure: what was expected and seen, one finding a line
  std::string command;  // to repeat it by hand
  double seconds = 0;
  // The expectation lines that would make this lane pass; absent when what happened must never become an expectation (crash, time-out, usage).
  std::optional<std::vector<std::string>> observed;
};

struct RunContext {
  std::filesystem::path bendc;
  std::filesystem::path scratch;  // an existing folder; each run makes its own below
  Limits limits;
};

[[nodiscard]] std::vector<Lane> lanes_of(const Case& c, const std::vector<Lane>& chosen);
[[nodiscard]] Outcome run_case(const Case& c, Lane lane, const RunContext& context);

}  // namespace bendc::tests
