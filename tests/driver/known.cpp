#include "known.h"

#include <fmt/format.h>

#include <algorithm>

#include "case.h"

namespace bendc::tests {

const std::string* KnownFailures::reason(const std::string& id) const {
  auto at = reasons.find(id);
  return at == reasons.end() ? nullptr : &at->second;
}

KnownFailures read_known_failures(const std::filesystem::path& folder) {
  KnownFailures known;
  if (!std::filesystem::is_directory(folder)) return known;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    int number = 0;
    for (const std::string& line : split_lines(read_file(file).value_or(""))) {
      ++number;
      if (line.empty() || line.front() == '#') continue;
      size_t blank = line.find_first_of(" \t");
      size_t reason = blank == std::string::npos ? blank : line.find_first_not_of(" \t", blank);
      if (reason == std::string::npos) {
        known.problems.push_back(fmt::format("{}:{}: `{}` has no reason", file.filename().string(), number, line));
      } else {
        known.reasons[line.substr(0, blank)] = line.substr(reason);
      }
    }
  }
  return known;
}

}  // namespace bendc::tests
