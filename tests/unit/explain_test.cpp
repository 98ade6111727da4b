#include <doctest/doctest.h>

#include "support/explain.h"

using namespace bendc;

namespace {

constexpr Code kAllCodes[] = {
#define BENDC_DIAGNOSTIC(code, severity, summary) Code::code,
#include "support/diagnostic_codes.def"
#undef BENDC_DIAGNOSTIC
};

}  // namespace

// tests/checks/docs gives the programs to bendc: the wrong one must be refused with the code, the right one accepted.
TEST_CASE("explain: every code has a text and two programs") {
  for (Code code : kAllCodes) {
    INFO(code_text(code));
    CodeExplanation e = explanation_of(code);
    CHECK(e.text.size() > 20);
    CHECK(!e.wrong.empty());
    CHECK(!e.right.empty());
    CHECK(e.wrong != e.right);
    CHECK(explain(code).starts_with(std::string(code_text(code)) + ": "));
  }
}
