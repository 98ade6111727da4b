#include "support/diagnostic.h"

#include <algorithm>
#include <tuple>

namespace bendc {

namespace {

struct CodeRow {
  Severity severity;
  std::string_view text;
  std::string_view summary;
};

constexpr CodeRow kCodes[] = {
#define BENDC_DIAGNOSTIC(code, severity, summary) {Severity::severity, #code, summary},
#include "support/diagnostic_codes.def"
#undef BENDC_DIAGNOSTIC
};

const CodeRow& row(Code code) { return kCodes[static_cast<size_t>(code)]; }

// Diagnostics without a span come last: they speak of the whole program.
auto order_key(const Diagnostic& d) {
  return std::tuple(d.span.file.index, d.span.offset, d.code, d.span.length);
}

bool same(const Diagnostic& a, const Diagnostic& b) {
  return order_key(a) == order_key(b) && a.message == b.message && a.expected == b.expected && a.observed == b.observed;
}

}  // namespace

Diagnostic& Diagnostics::add(Code code, Span span, std::string message) {
  Diagnostic item;
  item.code = code;
  item.span = span;
  item.message = std::move(message);
  items_.push_back(std::move(item));
  return items_.back();
}

void Diagnostics::append(Diagnostics other) {
  items_.insert(items_.end(), std::make_move_iterator(other.items_.begin()), std::make_move_iterator(other.items_.end()));
}

bool Diagnostics::has_errors() const {
  return std::any_of(items_.begin(), items_.end(), [](const Diagnostic& d) { return severity_of(d.code) == Severity::Error; });
}

void Diagnostics::sort(const SourceMap&) {
  std::stable_sort(items_.begin(), items_.end(), [](const Diagnostic& a, const Diagnostic& b) { return order_key(a) < order_key(b); });
  items_.erase(std::unique(items_.begin(), items_.end(), same), items_.end());
}

Severity severity_of(Code code) { return row(code).severity; }
std::string_view code_text(Code code) { return row(code).text; }
std::string_view code_summary(Code code) { return row(code).summary; }

std::optional<Code> parse_code(std::string_view text) {
  if (text.size() < 2) return std::nullopt;
  char letter = text[0];
  if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  text.remove_prefix(1);
  while (text.size() > 1 && text[0] == '0') text.remove_prefix(1);
  for (size_t i = 0; i < std::size(kCodes); ++i) {
    std::string_view code = kCodes[i].text;
    if (code[0] == letter && code.substr(1) == text) return static_cast<Code>(i);
  }
  return std::nullopt;
}

}  // namespace bendc
