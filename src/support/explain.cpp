#include "support/explain.h"

#include <algorithm>

#include <fmt/format.h>

namespace bendc {

namespace {

struct Row {
  Code code;
  CodeExplanation explanation;
};

constexpr Row kRows[] = {
#define BENDC_EXPLAIN(code, text, wrong, right) {Code::code, {text, wrong, right}},
#include "support/diagnostic_texts.def"
#undef BENDC_EXPLAIN
};

void add_program(std::string& out, std::string_view head, std::string_view program) {
  if (program.empty()) return;
  out += fmt::format("\n{}\n\n", head);
  while (!program.empty()) {
    size_t end = std::min(program.find('\n'), program.size());
    out += end == 0 ? std::string("\n") : fmt::format("    {}\n", program.substr(0, end));
    program.remove_prefix(std::min(end + 1, program.size()));
  }
}

}  // namespace

CodeExplanation explanation_of(Code code) {
  for (const Row& row : kRows)
    if (row.code == code) return row.explanation;
  return {};
}

std::string explain(Code code) {
  CodeExplanation explanation = explanation_of(code);
  std::string out = fmt::format("{}: {}\n\n{}\n", code_text(code), code_summary(code), explanation.text);
  add_program(out, "Wrong:", explanation.wrong);
  add_program(out, "Right:", explanation.right);
  return out;
}

}  // namespace bendc
