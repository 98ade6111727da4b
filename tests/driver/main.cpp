// case_driver: runs the .bend cases of tests/cases (and of ../shared/cases where it exists) against a bendc executable.
// The last line says `N passed, N failed`; the exit status is 1 when something failed and 2 for a wrong command line.
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <set>
#include <thread>

#include "discover.h"
#include "suite.h"

namespace bendc::tests {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kUsage = R"(usage: case_driver --bendc FILE --tests FOLDER [options] [FILTER...]
  --bendc FILE      the executable to test
  --tests FOLDER    the folder with cases/, known/ and codes_elsewhere
  --examples FOLDER more cases of ours, ids examples/..
  --shared FOLDER   cases from elsewhere; those equal to ours are left out
  --selftest FOLDER judge the driver itself: cases named pass_ and fail_
  --lanes A,B       check, dump, run, sequential, threads, emulated, build (default: all)
  --jobs N          cases at a time (default: the processors)
  --timeout S       seconds a process may take (default 20)
  --memory MIB      memory a process may fill (default 3072)
  --update          rewrite the expectations of our failing cases
  --list            print the cases and their lanes, run nothing
  -v                print passing cases too
FILTER: only cases whose id contains one of them. The lane schedules (20 perturbed schedules a number of threads) runs only when it is named.
)";

struct Options {
  fs::path bendc, tests, examples, shared, selftest;
  std::vector<Lane> lanes;
  std::vector<std::string> filters;
  Limits limits;
  int jobs = int(std::thread::hardware_concurrency());
  bool update = false, list = false, verbose = false;
};

std::optional<Options> read_options(int argc, char** argv, std::string& error) {
  Options options;
  std::vector<std::string> words(argv + 1, argv + argc);
  size_t i = 0;
  auto value = [&]() -> std::optional<std::string> {
    if (i + 1 >= words.size()) return std::nullopt;
    return words[++i];
  };
  for (; i < words.size(); ++i) {
    const std::string word = words[i];
    if (word == "--update") {
      options.update = true;
    } else if (word == "--list") {
      options.list = true;
    } else if (word == "-v") {
      options.verbose = true;
    } else if (!word.starts_with("-")) {
      options.filters.push_back(word);
    } else {
      auto text = value();
      if (!text) return error = fmt::format("`{}` is unknown or lacks its value", word), std::nullopt;
      auto number = [&](auto& into) {
        auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), into);
        return code == std::errc() && end == text->data() + text->size() && into > 0;
      };
      bool good = true;
      if (word == "--bendc") {
        options.bendc = fs::absolute(*text);
      } else if (word == "--tests") {
        options.tests = fs::absolute(*text);
      } else if (word == "--examples") {
        options.examples = fs::absolute(*text);
      } else if (word == "--shared") {
        options.shared = fs::absolute(*text);
      } else if (word == "--selftest") {
        options.selftest = fs::absolute(*text);
      } else if (word == "--jobs") {
        good = number(options.jobs);
      } else if (word == "--timeout") {
        good = number(options.limits.seconds);
      } else if (word == "--memory") {
        good = number(options.limits.memory);
        options.limits.memory <<= 20;
      } else if (word == "--lanes") {
        std::string list = *text;
        std::replace(list.begin(), list.end(), ',', ' ');
        for (const std::string& name : split_words(list)) {
          auto lane = lane_named(name);
          good &= lane.has_value();
          if (lane) options.lanes.push_back(*lane);
        }
        good &= !options.lanes.empty();
      } else {
        return error = fmt::format("unknown option `{}`", word), std::nullopt;
      }
      if (!good) return error = fmt::format("`{}` is no value for {}", *text, word), std::nullopt;
    }
  }
  if (options.bendc.empty() || (options.tests.empty() && options.selftest.empty())) return error = "--bendc and --tests are needed", std::nullopt;
  if (access(options.bendc.c_str(), X_OK) != 0) return error = fmt::format("`{}` is no executable", options.bendc.string()), std::nullopt;
  if (options.lanes.empty()) {
    for (const LaneInfo& info : kLanes) {
      if (info.usual) options.lanes.push_back(info.lane);
    }
  }
  options.jobs = std::max(options.jobs, 1);
  return options;
}

bool selected(const Case& c, const std::vector<std::string>& filters) {
  return filters.empty() || std::any_of(filters.begin(), filters.end(), [&](const std::string& f) { return c.id.find(f) != std::string::npos; });
}

void print_indented(std::string_view text) {
  for (const std::string& line : split_lines(text)) fmt::print("    {}\n", line);
}

void print_failure(const CaseOutcome& outcome) {
  for (const LaneOutcome& lane : outcome.lanes) {
    if (lane.outcome.verdict != Verdict::Fail) continue;
    fmt::print("FAIL {} [{}]\n", outcome.c->id, lane_name(lane.lane));
    print_indented(lane.outcome.detail);
    if (!lane.outcome.command.empty()) fmt::print("    command: {}\n", lane.outcome.command);
  }
}

void print_times(const CaseOutcome& outcome, std::string_view verdict) {
  fmt::print("{} {}", verdict, outcome.c->id);
  for (const LaneOutcome& lane : outcome.lanes) fmt::print(" {} {:.2f}s", lane_name(lane.lane), lane.outcome.seconds);
  fmt::print("\n");
}

int print_totals(size_t passed, size_t failed) {
  fmt::print("{} passed, {} failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

// Each code of the catalogue has a case of ours that is refused with it, or a test named in codes_elsewhere that mentions it.
std::vector<std::string> codes_without_case(const std::vector<Case>& own, const fs::path& tests) {
  std::set<std::string> covered;
  for (const std::string& line : split_lines(read_file(tests / "codes_elsewhere").value_or(""))) {
    std::vector<std::string> words = split_words(line);
    if (words.size() == 2 && read_file(tests / words[1]).value_or("").find(words[0]) != std::string::npos) covered.insert(words[0]);
  }
  for (const Case& c : own) {
    if (c.error) covered.insert(c.error->code);
    for (const CodeAt& warning : c.warnings) covered.insert(warning.code);
  }
  std::vector<std::string> missing;
#define BENDC_DIAGNOSTIC(code, severity, summary) \
  if (!covered.contains(#code)) missing.emplace_back(#code);
#include "support/diagnostic_codes.def"
#undef BENDC_DIAGNOSTIC
  return missing;
}

class Report {
 public:
  Report(const Options& options, const KnownFailures& known) : options_(options), known_(known) {
    for (const std::string& problem : known.problems) fail(fmt::format("tests/known: {}", problem));
  }

  void add(const CaseOutcome& outcome) {
    const std::string& id = outcome.c->id;
    const std::string* reason = known_.reason(id);
    if (outcome.lanes.empty()) {
      ++not_on_lanes_;
      if (options_.verbose) fmt::print("not on these lanes: {}\n", id);
      return;
    }
    seen_.insert(id);
    switch (outcome.verdict()) {
      case Verdict::Pass:
        if (reason != nullptr) {
          fail(fmt::format("{}: passes, yet tests/known lists it ({})", id, *reason));
        } else {
          ++passed_;
          if (options_.verbose) print_times(outcome, "pass");
        }
        break;
      case Verdict::Fail:
        if (reason != nullptr) {
          ++known_failures_;
          fmt::print("known failure {}: {}\n", id, *reason);
          break;
        }
        if (options_.update && update_case(outcome)) {
          fmt::print("updated {}\n", id);
          ++passed_;
          break;
        }
        ++failed_;
        print_failure(outcome);
        break;
    }
    fflush(stdout);
  }

  // What only a whole run can say: the allowance, uncovered codes, stale entries of tests/known.
  void whole_run(const std::vector<Case>& own) {
    for (const std::string& code : codes_without_case(own, options_.tests)) {
      const std::string* reason = known_.reason("code:" + code);
      seen_.insert("code:" + code);
      if (reason == nullptr) {
        fail(fmt::format("diagnostic code {} has no case", code));
      } else {
        ++known_failures_;
        fmt::print("known failure code:{}: {}\n", code, *reason);
      }
    }
    for (const auto& [id, reason] : known_.reasons) {
      if (!seen_.contains(id) && !id.starts_with("shared/") && not_on_lanes_ == 0)
        fail(fmt::format("tests/known lists {}, which does not exist or does not fail", id));
    }
  }

  int finish() {
    if (known_failures_ > 0) fmt::print("{} known failures\n", known_failures_);
    if (not_on_lanes_ > 0) fmt::print("{} not on these lanes\n", not_on_lanes_);
    return print_totals(passed_, failed_);
  }

 private:
  void fail(const std::string& text) {
    ++failed_;
    fmt::print("FAIL {}\n", text);
  }

  const Options& options_;
  const KnownFailures& known_;
  std::set<std::string> seen_;
  size_t passed_ = 0, failed_ = 0, known_failures_ = 0, not_on_lanes_ = 0;
};

// The driver judged by cases whose outcome their name tells; a failing one also says in `# reports: TEXT` what the failure must mention.
int run_selftest(const Options& options, const RunContext& context) {
  const std::vector<Case> cases = discover_cases(options.selftest, "", false);
  size_t passed = 0, failed = 0;
  run_suite(cases, options.lanes, context, options.jobs, [&](const CaseOutcome& outcome) {
    const std::string& id = outcome.c->id;
    std::string_view name = std::string_view(id).substr(id.rfind('/') + 1);
    Verdict verdict = outcome.verdict();
    bool good = !outcome.lanes.empty() &&
                ((name.starts_with("pass_") && verdict == Verdict::Pass) || (name.starts_with("fail_") && verdict == Verdict::Fail));
    std::string details;
    for (const LaneOutcome& lane : outcome.lanes) details += lane.outcome.detail;
    for (const std::string& line : split_lines(read_file(outcome.c->file).value_or(""))) {
      constexpr std::string_view kReports = "# reports: ";
      if (line.starts_with(kReports) && details.find(line.substr(kReports.size())) == std::string::npos) good = false;
    }
    ++(good ? passed : failed);
    if (!good) {
      fmt::print("FAIL selftest {}: judged otherwise than its name or `# reports:` says\n", id);
      print_indented(details);
    }
  });
  if (cases.empty()) ++failed, fmt::print("FAIL selftest: no cases in {}\n", options.selftest.string());
  return print_totals(passed, failed);
}

int run_cases(const Options& options, const RunContext& context) {
  constexpr std::string_view kShared = "shared/";
  std::vector<Case> own = discover_cases(options.tests / "cases", "", true);
  if (!options.examples.empty()) {
    std::vector<Case> examples = discover_cases(options.examples, "examples/", true);
    own.insert(own.end(), examples.begin(), examples.end());
  }
  std::vector<Case> cases = own;
  if (!options.shared.empty()) {
    std::vector<Case> shared = discover_cases(options.shared, std::string(kShared), false);
    drop_copies(shared, own, std::string(kShared));
    cases.insert(cases.end(), shared.begin(), shared.end());
  }
  std::erase_if(cases, [&](const Case& c) { return !selected(c, options.filters); });
  if (options.list) {
    for (const Case& c : cases) {
      fmt::print("{}", c.id);
      for (Lane lane : lanes_of(c, options.lanes)) fmt::print(" {}", lane_name(lane));
      fmt::print("\n");
    }
    return 0;
  }
  const KnownFailures known = read_known_failures(options.tests / "known");
  Report report(options, known);
  run_suite(cases, options.lanes, context, options.jobs, [&](const CaseOutcome& outcome) { report.add(outcome); });
  if (options.filters.empty()) report.whole_run(own);
  if (cases.empty()) fmt::print("no case matches\n");
  int status = report.finish();
  return cases.empty() ? 1 : status;
}

int run(int argc, char** argv) {
  std::string error;
  auto options = read_options(argc, argv, error);
  if (!options) {
    fmt::print(stderr, "case_driver: {}\n{}", error, kUsage);
    return 2;
  }
  rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);  // inherited: a crash is reported, not kept
  std::string scratch = (fs::temp_directory_path() / "bendc-cases-XXXXXX").string();
  if (mkdtemp(scratch.data()) == nullptr) {
    fmt::print(stderr, "case_driver: no scratch folder can be made in {}\n", fs::temp_directory_path().string());
    return 2;
  }
  RunContext context{options->bendc, scratch, options->limits};
  int status = options->selftest.empty() ? run_cases(*options, context) : run_selftest(*options, context);
  std::error_code ignored;
  fs::remove_all(scratch, ignored);
  return status;
}

}  // namespace
}  // namespace bendc::tests

int main(int argc, char** argv) { return bendc::tests::run(argc, argv); }
