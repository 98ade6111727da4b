#include <doctest/doctest.h>

#include "support/diagnostic.h"
#include "support/render.h"

using namespace bendc;

TEST_CASE("diagnostics: codes by text") {
  CHECK(parse_code("C6") == Code::C6);
  CHECK(parse_code("c06") == Code::C6);
  CHECK(parse_code("p28") == Code::P28);
  CHECK_FALSE(parse_code("Z1").has_value());
  CHECK_FALSE(parse_code("C").has_value());
  CHECK_FALSE(parse_code("C60").has_value());
  CHECK(code_text(Code::F3) == "F3");
  CHECK(severity_of(Code::W1) == Severity::Warning);
}

TEST_CASE("diagnostics: sorted, without duplicates") {
  SourceMap sources;
  FileId file = sources.add("a.bend", "abc\ndef\n");
  Diagnostics bag;
  bag.add(Code::W1, {file, 4, 1}, "later");
  bag.add(Code::C1, {file, 0, 1}, "first");
  bag.add(Code::B1, Span{}, "whole program");
  bag.add(Code::C1, {file, 0, 1}, "first");
  bag.sort(sources);
  REQUIRE(bag.size() == 3);
  CHECK(bag.all()[0].message == "first");
  CHECK(bag.all()[1].message == "later");
  CHECK(bag.all()[2].message == "whole program");
  CHECK(bag.has_errors());
}

TEST_CASE("render: excerpt, label, notes and fix") {
  SourceMap sources;
  FileId file = sources.add("dup.bend", "def dup(x: Nat) -> Nat & Nat:\n  (\xC3\xA9, x, x)\n\n");
  Diagnostics bag;
  Diagnostic& d = bag.add(Code::C6, {file, 39, 1}, "`x` is used twice");
  d.labels.push_back({{file, 8, 1}, "bound here"});
  d.expected = "one use";
  d.observed = "two";
  d.notes.push_back("a plain binder is affine");
  d.fix = "write `+x`";
  d.def = "dup";
  CHECK(render_text(bag, sources, {}) ==
        "error[C6]: `x` is used twice\n"
        "  --> dup.bend:2:9 in `dup`\n"
        "    |\n"
        "  1 | def dup(x: Nat) -> Nat & Nat:\n"
        "  2 |   (\xC3\xA9, x, x)\n"
        "    |         ^\n"
        "  --> dup.bend:1:9\n"
        "    |\n"
        "  1 | def dup(x: Nat) -> Nat & Nat:\n"
        "    |         ^ bound here\n"
        "    = expected: one use\n"
        "    = observed: two\n"
        "    = note: a plain binder is affine\n"
        "    = fix: write `+x`\n");
}

TEST_CASE("render: long lines and control characters stay harmless") {
  SourceMap sources;
  std::string line(500000, 'a');
  FileId file = sources.add("long.bend", line + "\x1b[31m" + line + "\n");
  Diagnostics bag;
  bag.add(Code::P1, {file, 500000, 3}, "unexpected \x1b[31m");
  std::string text = render_text(bag, sources, {});
  CHECK(text.size() < 2000);
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find("long.bend:1:500001") != std::string::npos);
}

TEST_CASE("render: a limit on what is shown") {
  SourceMap sources;
  Diagnostics bag;
  for (int i = 0; i < 30; ++i) bag.add(Code::B1, Span{}, "number " + std::to_string(i));
  std::string text = render_text(bag, sources, {false, 20});
  CHECK(text.find("... and 10 more") != std::string::npos);
  CHECK(text.find("number 20") == std::string::npos);
}

TEST_CASE("render: JSON, one object a line") {
  SourceMap sources;
  FileId file = sources.add("a \"b\".bend", "x\ny\n");
  Diagnostics bag;
  bag.add(Code::C1, {file, 2, 1}, "unknown\n`y`").notes = {"one", "two"};
  CHECK(render_json(bag, sources) ==
        "{\"severity\":\"error\",\"code\":\"C1\",\"message\":\"unknown\\n`y`\",\"file\":\"a \\\"b\\\".bend\",\"line\":2,\"column\":1,\"end_line\":2,\"end_column\":2,"
        "\"offset\":2,\"length\":1,\"notes\":[\"one\",\"two\"]}\n");
}
