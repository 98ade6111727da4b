#include "run_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "dump_match.h"
#include "json.h"

namespace bendc::tests {
namespace {

namespace fs = std::filesystem;

constexpr int kUsageStatus = 2;
constexpr int kInternalStatus = 70;
constexpr size_t kShownLines = 12;
constexpr int kWatchdogSeconds = 15;   // below the driver's own limit
constexpr int kSeeds = 20;

// A folder that is gone at the end of the run, failures included: a case is repeated by its command, not by its leftovers.
class ScratchFolder {
 public:
  ScratchFolder(const fs::path& root, std::string_view id, Lane lane) {
    std::string name(id);
    std::replace(name.begin(), name.end(), '/', '.');
    path_ = root / fmt::format("{}.{}", name, lane_name(lane));
    fs::create_directories(path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string indented(std::string_view title, std::string_view text) {
  if (text.empty()) return "";
  std::string out = fmt::format("{}:\n", title);
  std::vector<std::string> lines = split_lines(text);
  for (size_t i = 0; i < lines.size() && i < kShownLines; ++i) out += fmt::format("  {}\n", lines[i]);
  if (lines.size() > kShownLines) out += fmt::format("  ... {} lines more\n", lines.size() - kShownLines);
  return out;
}

// The codes of `error[C6]: ...` lines.
std::vector<std::string> error_codes(std::string_view text) {
  constexpr std::string_view kHead = "error[";
  std::vector<std::string> codes;
  for (const std::string& line : split_lines(text)) {
    size_t end = line.find(']');
    if (line.starts_with(kHead) && end != std::string::npos) codes.push_back(line.substr(kHead.size(), end - kHead.size()));
  }
  return codes;
}

class CaseRun {
 public:
  CaseRun(const Case& c, Lane lane, const RunContext& context)
      : case_(c), lane_(lane), context_(context), folder_(context.scratch, c.id, lane), file_(c.file) {}

  Outcome go() {
    if (!case_.problems.empty()) {
      for (const std::string& problem : case_.problems) fail("malformed case: {}", problem);
      return finish();
    }
    if (!place_files()) return finish();
    switch (lane_) {
      case Lane::Check: check(); break;
      case Lane::Run: program(run_words({})); break;
      case Lane::Sequential: program(run_words({"--threads", "1"})); break;
      case Lane::Threads: threaded_program({{1, 0}, {2, 0}, {3, 1}, {8, 2}, {64, 3}}); break;
      case Lane::Schedules: threaded_program(all_schedules()); break;
      case Lane::Emulated: program(run_words({"--gpu", "emulate"})); break;
      case Lane::Build: built_program(); break;
      case Lane::Dump: dumps(); break;
    }
    return finish();
  }

 private:
  template <typename... Args>
  void fail(fmt::format_string<Args...> text, Args&&... args) {
    failed_ = true;
    outcome_.detail += fmt::format(text, std::forward<Args>(args)...);
    if (!outcome_.detail.ends_with('\n')) outcome_.detail += '\n';
  }

  Outcome finish() {
    outcome_.verdict = failed_ ? Verdict::Fail : Verdict::Pass;
    return std::move(outcome_);
  }

  // With virtual files the case is copied beside them.
  bool place_files() {
    if (case_.files.empty()) return true;
    file_ = folder_.path() / case_.file.filename();
    std::error_code error;
    fs::copy_file(case_.file, file_, error);
    for (const VirtualFile& file : case_.files) {
      fs::path path = folder_.path() / file.name;
      fs::create_directories(path.parent_path(), error);
      std::ofstream(path, std::ios::binary) << file.text;
      if (!fs::exists(path)) error = std::make_error_code(std::errc::io_error);
    }
    if (error) fail("the scratch folder cannot be written: {}", error.message());
    return !error;
  }

  ProcessResult run(const std::vector<std::string>& words) {
    outcome_.command = fmt::format("{}{}", built_.empty() ? "" : built_ + " && ", fmt::join(words, " "));
    ProcessResult result = run_process(words, folder_.path(), context_.limits);
    outcome_.seconds += result.seconds;
    return result;
  }

  std::vector<std::string> compiler_words(std::vector<std::string> words) {
    words.insert(words.begin(), context_.bendc.string());
    words.emplace_back("--verify");  // the invariants of every form of the program; a breach is an internal error
    words.insert(words.end(), case_.flags.begin(), case_.flags.end());
    return words;
  }
  std::vector<std::string> run_words(std::vector<std::string> options) {
    options.insert(options.begin(), "run");
    std::vector<std::string> words = compiler_words(std::move(options));
    words.push_back(file_.string());
    words.insert(words.end(), case_.args.begin(), case_.args.end());
    return words;
  }
  std::string executable() const { return (folder_.path() / "program.out").string(); }

  bool ended_by_itself(const ProcessResult& result) {
    if (result.end == End::Exited && result.status != kInternalStatus) return true;
    fail("{}{}", describe_end(result, context_.limits), result.end == End::Exited ? ": an internal error" : "");
    context_of(result);
    return false;
  }
  void context_of(const ProcessResult& result) {
    outcome_.detail += indented("stdout", result.out);
    outcome_.detail += indented("stderr", result.err);
  }
  void stderr_texts(const ProcessResult& result) {
    for (const std::string& text : case_.error_texts) {
      if (result.err.find(text) == std::string::npos) fail("stderr lacks `{}`\n{}", text, indented("stderr", result.err));
    }
  }

  // A program's run: exit status, stdout, stderr texts.
  void program(const std::vector<std::string>& words) {
    ProcessResult result = run(words);
    if (!ended_by_itself(result)) return;
    std::vector<std::string> seen = split_lines(result.out);
    bool refused = result.status == 1 && !error_codes(result.err).empty();
    if (result.status != kUsageStatus && !refused) {
      outcome_.observed.emplace();
      for (const std::string& line : seen) outcome_.observed->push_back(line.empty() ? "#|" : "#| " + line);
      if (result.status != 0 || seen.empty()) outcome_.observed->push_back(fmt::format("#! exit {}", result.status));
    }
    if (result.status != case_.exit_status) {
      fail("exit status: expected {}, observed {}\n{}", case_.exit_status, result.status, indented("stderr", result.err));
    }
    compare_output(seen);
    stderr_texts(result);
  }

  void compare_output(const std::vector<std::string>& seen) {
    const std::vector<std::string>& expected = case_.output;
    size_t at = 0;
    while (at < seen.size() && at < expected.size() && seen[at] == expected[at]) ++at;
    if (at == seen.size() && at == expected.size()) return;
    auto line = [&](const std::vector<std::string>& lines) { return at < lines.size() ? "`" + lines[at] + "`" : "the end of the output"; };
    fail("stdout line {}:\n  expected {}\n  observed {}", at + 1, line(expected), line(seen));
    if (expected.size() != seen.size()) fail("stdout has {} lines, expected {}", seen.size(), expected.size());
  }

  void built_program() {
    if (build()) program(append({executable()}, case_.args));
  }

  // The answer must not depend on the schedule: several numbers of threads, more than this machine may have, and perturbed schedules.
  struct Schedule {
    int threads, seed;
  };
  void threaded_program(const std::vector<Schedule>& schedules) {
    if (!build()) return;
    for (Schedule schedule : schedules) {
      std::vector<std::string> words = {"/usr/bin/env", fmt::format("BEND_THREADS={}", schedule.threads), fmt::format("BEND_SCHED_SEED={}", schedule.seed),
                                        fmt::format("BEND_WATCHDOG={}", kWatchdogSeconds), executable()};
      program(append(words, case_.args));
      if (failed_) return;
    }
  }
  // One thread has one schedule.
  static std::vector<Schedule> all_schedules() {
    std::vector<Schedule> out = {{1, 0}};
    for (int threads : {2, 3, 8, 64}) {
      for (int seed = 1; seed <= kSeeds; ++seed) out.push_back({threads, seed});
    }
    return out;
  }

  bool build() {
    ProcessResult built = run(append(compiler_words({"build", "-o", executable()}), {file_.string()}));
    if (!ended_by_itself(built)) return false;
    if (built.status != 0) {
      fail("bendc build: exit status {}", built.status);
      context_of(built);
      return false;
    }
    built_ = outcome_.command;
    if (!fs::exists(executable())) fail("bendc build succeeded and wrote no executable");
    return !failed_;
  }

  static std::vector<std::string> append(std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  std::vector<std::string> check_words() {
    std::vector<std::string> words;
    switch (case_.command) {
      case Command::Run: words = {"run"}; break;
      case Command::Check: words = {"check"}; break;
      case Command::CheckSafe: words = {"check", "--safe"}; break;
      case Command::Build: words = {"build", "-o", executable()}; break;
    }
    words.emplace_back("--diagnostics=json");
    return append(compiler_words(words), {file_.string()});
  }

  // A case that is refused, or accepted without being run.
  void check() {
    ProcessResult result = run(check_words());
    if (!ended_by_itself(result)) return;
    std::string bad_line;
    auto reported = read_diagnostics(json_part(result.err), bad_line);
    if (!reported) return fail("stderr has a line that is no diagnostic in JSON: `{}`", bad_line);
    if (case_.error) {
      refused(result, *reported);
    } else {
      accepted(result, *reported);
    }
  }

  // Notes meant for people (`note: ...`) may stand between the objects; anything that starts an object must be one.
  static std::string json_part(std::string_view err) {
    std::string out;
    for (const std::string& line : split_lines(err)) {
      if (line.starts_with('{')) out.append(line).push_back('\n');
    }
    return out;
  }

  [[nodiscard]] bool in_this_file(const ReportedDiagnostic& d) const {
    std::error_code ignored;
    return fs::equivalent(folder_.path() / d.file, file_, ignored);
  }

  void refused(const ProcessResult& result, const std::vector<ReportedDiagnostic>& reported) {
    if (result.status == kUsageStatus) return fail("exit status 2: the command line was not understood"), context_of(result);
    if (result.status != 1) fail("exit status: expected 1, observed {}", result.status);
    if (case_.command == Command::Run && !result.out.empty()) fail("it ran: {}", indented("stdout", result.out));
    if (case_.command == Command::Build && fs::exists(executable())) fail("an executable was written");
    const ReportedDiagnostic* first = nullptr;
    for (const ReportedDiagnostic& d : reported) {
      if (first == nullptr && d.severity == "error" && in_this_file(d)) first = &d;
    }
    if (first == nullptr) {
      fail("expected error {} at line {}, observed no error in this file", case_.error->code, case_.error->line);
      return context_of(result);
    }
    CodeAt seen{first->code, first->line};
    outcome_.observed = {{fmt::format("#! error {} {}", seen.code, seen.line)}};
    if (seen != *case_.error) {
      fail("expected error {} at line {}, observed {} at line {}: {}", case_.error->code, case_.error->line, seen.code, seen.line, first->message);
    }
    stderr_texts(result);
  }

  void accepted(const ProcessResult& result, const std::vector<ReportedDiagnostic>& reported) {
    if (result.status != 0) {
      fail("expected to be accepted, observed exit status {}", result.status);
      for (const ReportedDiagnostic& d : reported) fail("  {} {} at line {}: {}", d.severity, d.code, d.line, d.message);
      if (reported.empty()) context_of(result);
    }
    for (const CodeAt& warning : case_.warnings) {
      bool found = std::any_of(reported.begin(), reported.end(), [&](const ReportedDiagnostic& d) {
        return d.severity == "warning" && d.code == warning.code && d.line == warning.line && in_this_file(d);
      });
      if (!found) fail("expected warning {} at line {}\n{}", warning.code, warning.line, indented("stderr", result.err));
    }
    stderr_texts(result);
  }

  void dumps() {
    for (const DumpCheck& dump : case_.dumps) {
      constexpr std::string_view kForms[] = {"ast", "core", "flow", "device", "forks", "llvm", "llvm-opt", "device-llvm", "ptx", "asm"};
      bool stage = dump.what.starts_with("after:") || std::find(std::begin(kForms), std::end(kForms), dump.what) != std::end(kForms);
      std::string option = fmt::format("--dump={}{}", stage ? "" : "after:", dump.what);
      ProcessResult result = run(append(compiler_words({"build", "-o", executable(), option}), {file_.string()}));
      if (!ended_by_itself(result)) return;
      if (result.status != 0) {
        fail("{}: exit status {}\n{}", option, result.status, indented("stderr", result.err));
        return;
      }
      for (const std::string& finding : match_dump(dump, result.out)) fail("{}: {}", option, finding);
    }
  }

  const Case& case_;
  const Lane lane_;
  const RunContext& context_;
  ScratchFolder folder_;
  fs::path file_;
  Outcome outcome_;
  std::string built_;   // the command that made the executable
  bool failed_ = false;
};

}  // namespace

std::string_view lane_name(Lane lane) {
  for (const LaneInfo& info : kLanes) {
    if (info.lane == lane) return info.name;
  }
  return "?";
}

std::optional<Lane> lane_named(std::string_view name) {
  for (const LaneInfo& info : kLanes) {
    if (info.name == name) return info.lane;
  }
  return std::nullopt;
}

std::vector<Lane> lanes_of(const Case& c, const std::vector<Lane>& chosen) {
  auto allowed = [&](Lane lane) {
    if (!c.problems.empty()) return lane == chosen.front();
    if (lane == Lane::Check) return c.error || c.check || !c.warnings.empty();
    if (lane == Lane::Dump) return !c.dumps.empty();
    if (!c.expects_output) return false;  // the rest run the program
    return c.lanes.empty() || std::find(c.lanes.begin(), c.lanes.end(), lane_name(lane)) != c.lanes.end();
  };
  std::vector<Lane> lanes;
  std::copy_if(chosen.begin(), chosen.end(), std::back_inserter(lanes), allowed);
  return lanes;
}

Outcome run_case(const Case& c, Lane lane, const RunContext& context) { return CaseRun(c, lane, context).go(); }

}  // namespace bendc::tests
