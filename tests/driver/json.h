// Reads the diagnostics that `bendc --diagnostics=json` writes: one object a line. Only the top level's texts and whole numbers are kept;
// a line that is no object is an error, so that a broken report cannot pass.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bendc::tests {

struct ReportedDiagnostic {
  std::string code, severity, file, message;
  int line = 0;
};

// nullopt: a line is not a JSON object; `bad_line` then holds it.
[[nodiscard]] std::optional<std::vector<ReportedDiagnostic>> read_diagnostics(std::string_view text, std::string& bad_line);

}  // namespace bendc::tests
