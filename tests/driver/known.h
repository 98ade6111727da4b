// Known failures: files of tests/known/, one `ID reason` a line (`#` starts a comment). Such a case still runs; its failure is shown with the reason
// and counted apart, and its success is a failure, so that the list cannot outlive the fault. `code:B4 reason` stands for a diagnostic code without a
// case.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace bendc::tests {

struct KnownFailures {
  std::map<std::string, std::string> reasons;
  std::vector<std::string> problems;  // lines without a reason, unreadable files

  [[nodiscard]] const std::string* reason(const std::string& id) const;
};

[[nodiscard]] KnownFailures read_known_failures(const std::filesystem::path& folder);

}  // namespace bendc::tests
