#include <doctest/doctest.h>

#include <set>

#include "frontend/parser.h"
#include "support/explain.h"

using namespace bendc;

namespace {

constexpr Code kAllCodes[] = {
#define BENDC_DIAGNOSTIC(code, severity, summary) Code::code,
#include "support/diagnostic_codes.def"
#undef BENDC_DIAGNOSTIC
};

// The codes a parser finds without knowing other declarations.
const std::set<Code> kSyntax = {Code::P1,  Code::P2,  Code::P3,  Code::P4,  Code::P5,  Code::P6,  Code::P7,  Code::P11, Code::P12, Code::P13,
                                Code::P16, Code::P17, Code::P23, Code::P24, Code::P25, Code::P28};

std::string codes_of(std::string_view program) {
  SourceMap sources;
  Interner names;
  ParseResult result = parse(sources, sources.add("t.bend", std::string(program)), names);
  std::string out;
  for (const Diagnostic& d : result.diagnostics.all()) out += code_text(d.code);
  return out;
}

}  // namespace

TEST_CASE("explain: every code has a text, and its programs parse as they should") {
  for (Code code : kAllCodes) {
    INFO(code_text(code));
    CodeExplanation e = explanation_of(code);
    CHECK(e.text.size() > 20);
    CHECK(e.wrong.empty() == e.right.empty());
    CHECK(codes_of(e.right) == "");
    CHECK(codes_of(e.wrong) == (kSyntax.contains(code) ? code_text(code) : ""));
    CHECK(explain(code).starts_with(std::string(code_text(code)) + ": "));
  }
}
