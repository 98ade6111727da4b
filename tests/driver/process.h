// One child process under a watch: its output, how it ended, and what it was stopped for.
// In: words, working folder, limits. Out: captured stdout and stderr and one End. The child leads a process group of its own, which is killed when it
// breaks a limit. Memory is what is resident (sampled), not address space: programs reserve far more than they touch, so RLIMIT_AS would say nothing.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace bendc::tests {

struct Limits {
  double seconds = 20;
  size_t memory = size_t(3) << 30;
  size_t output = size_t(16) << 20;
};

enum class End { Exited, Signaled, TimedOut, TooMuchMemory, TooMuchOutput, NotStarted };

struct ProcessResult {
  End end = End::NotStarted;
  int status = 0;  // exit status or signal number
  std::string out, err;
  double seconds = 0;
};

[[nodiscard]] ProcessResult run_process(const std::vector<std::string>& words, const std::filesystem::path& folder, const Limits& limits);

// "exit status 3", "killed by signal 11 (Segmentation fault)", "no answer after 20 s", ...
[[nodiscard]] std::string describe_end(const ProcessResult& result, const Limits& limits);

}  // namespace bendc::tests
