// Diagnostics: what the compiler says about a program. Code, severity, primary span, message, labels, notes, fix.
// Codes live in diagnostic_codes.def, spelled as in the language reference (P8, F2, C6); ours beyond it start at new letters
// (W1.. warnings, I1.. input/environment, L1.. limits).
// Wording: lower case, no final stop, code text in backticks, observation first, then the rule, then a fix.
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "support/source.h"

namespace bendc {

enum class Code : uint16_t {
#define BENDC_DIAGNOSTIC(code, severity, summary) code,
#include "support/diagnostic_codes.def"
#undef BENDC_DIAGNOSTIC
};

enum class Severity : uint8_t { Error, Warning, Note };

struct Label {
  Span span;
  std::string text;
};

struct Diagnostic {
  Code code;
  Span span;                        // primary; may be invalid for whole-program errors
  std::string message;              // one line: the observation, naming the culprit
  std::string expected, observed;   // both set: shown as an expected/observed pair
  std::vector<Label> labels;        // secondary spans
  std::vector<std::string> notes;   // the rule, reasons, context lines (`name : type`)
  std::string fix;                  // how to mend it, when one exists
  std::string def;                  // the def it was found in, if any
};

// An ordered bag of diagnostics; a phase returns one beside its value.
class Diagnostics {
 public:
  Diagnostic& add(Code code, Span span, std::string message);
  void append(Diagnostics other);
  [[nodiscard]] bool has_errors() const;
  [[nodiscard]] const std::vector<Diagnostic>& all() const { return items_; }
  [[nodiscard]] size_t size() const { return items_.size(); }
  // For a report that turns out to follow from another: one of them to add to, and forgetting all but the first `size`.
  [[nodiscard]] Diagnostic& at(size_t index) { return items_[index]; }
  [[nodiscard]] Diagnostic& last() { return items_.back(); }
  void remove_from(size_t first, const auto& unwanted) { items_.erase(std::remove_if(items_.begin() + static_cast<std::ptrdiff_t>(first), items_.end(), unwanted), items_.end()); }
  void truncate(size_t size) { items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(size), items_.end()); }
  // Sorted by file and offset, exact duplicates removed.
  void sort(const SourceMap& sources);

 private:
  std::vector<Diagnostic> items_;
};

[[nodiscard]] Severity severity_of(Code code);
[[nodiscard]] std::string_view code_text(Code code);       // "P8"
[[nodiscard]] std::string_view code_summary(Code code);    // one line
[[nodiscard]] std::optional<Code> parse_code(std::string_view text);  // "c06", "C6"

}  // namespace bendc
