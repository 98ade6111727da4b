// The long text of a diagnostic code, with one program that has the mistake and its mended twin (`bendc explain C6`).
// The texts live in diagnostic_texts.def, one row for every row of diagnostic_codes.def.
#pragma once
#include <string>

#include "support/diagnostic.h"

namespace bendc {

struct CodeExplanation {
  std::string_view text;    // the rule and its reason, in sentences
  std::string_view wrong;   // a file, or several, each headed by a line `# -- NAME`
  std::string_view right;
};

[[nodiscard]] CodeExplanation explanation_of(Code code);   // empty when the code has no text, which a test forbids
[[nodiscard]] std::string explain(Code code);   // ready to print, ends in a newline

}  // namespace bendc
