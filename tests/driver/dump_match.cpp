#include "dump_match.h"

#include <fmt/format.h>

namespace bendc::tests {

std::vector<std::string> match_dump(const DumpCheck& check, std::string_view dump) {
  std::vector<std::string> findings;
  const std::vector<std::string> lines = split_lines(dump);
  std::vector<const DumpLine*> absent;  // since the last match
  size_t from = 0;                      // first line not yet passed
  auto none_in = [&](size_t end) {
    for (const DumpLine* line : absent) {
      for (size_t i = from; i < end; ++i) {
        if (lines[i].find(line->text) != std::string::npos) {
          findings.push_back(fmt::format("has `{}` (case line {}) in its line {}: `{}`", line->text, line->source_line, i + 1, lines[i]));
          break;
        }
      }
    }
    absent.clear();
  };
  for (const DumpLine& wanted : check.lines) {
    if (wanted.absent) {
      absent.push_back(&wanted);
      continue;
    }
    size_t at = from;
    while (at < lines.size() && lines[at].find(wanted.text) == std::string::npos) ++at;
    if (at == lines.size()) {
      findings.push_back(fmt::format("lacks `{}` (case line {}) from its line {} on", wanted.text, wanted.source_line, from + 1));
      return findings;
    }
    none_in(at);
    from = at + 1;
  }
  none_in(lines.size());
  return findings;
}

}  // namespace bendc::tests
