// Copying small functions into their callers.
#include <doctest/doctest.h>

#include "codegen/flow_text.h"
#include "codegen/flow_verify.h"
#include "codegen/passes.h"

using namespace bendc;

namespace {

std::string after_passes(const std::string& text) {
  flow::ParsedFlow parsed = flow::parse_module(text);
  REQUIRE(parsed.error == "");
  PassOptions options;
  options.verify = true;
  PassReport report = run_passes(parsed.module, options);
  CHECK(report.internal_error == "");
  return flow::print_module(parsed.module);
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

const std::string kTree = "data D0 \"Tree\" { nullary \"Tip\"(); node \"Bin\"(ref D0, ref D0) }\n";

}  // namespace

TEST_CASE("a node opened by the caller is reused by the callee's constructor") {
  const std::string out = after_passes(kTree +
                                       "fn @flip(%t: ref D0) -> ref D0 { case %t { 0 => { ret %t } 1 => { let %l: ref D0 = con_get 1 0(%t) "
                                       "let %r: ref D0 = con_get 1 1(%t) tail @node(%r, %l) } } }\n"
                                       "fn @node(%a: ref D0, %b: ref D0) -> ref D0 { let %n: ref D0 = con 1(%a, %b) ret %n }");
  CHECK(has(out, "reuse %token"));
  CHECK(!has(out, "@node(%r"));
}

TEST_CASE("a callee that gives back its parameter leaves no call and its result is the argument") {
  const std::string out = after_passes("fn @id(%x: u32) -> u32 { ret %x }\n"
                                       "fn @f(%x: u32) -> u32 { let %a: u32 = call @id(%x) let %b: u32 = call @id(%a) let %c: u32 = u32.add(%a, %b) ret %c }");
  CHECK(has(out, "u32.add(%x, %x)"));
}

TEST_CASE("a callee's tail call becomes a call when its result is used") {
  const std::string out = after_passes("fn @big(%n: nat, %x: u32) -> u32 { switch %n { 0 => { ret %x } else => { let %p: nat = nat.pred(%n) tail @big(%p, %x) } } }\n"
                                       "fn @two(%x: u32) -> u32 { let %n: nat = 2 tail @big(%n, %x) }\n"
                                       "fn @f(%x: u32) -> u32 { let %a: u32 = call @two(%x) let %c: u32 = u32.add(%a, %x) ret %c }");
  CHECK(has(out, "call @big("));
  CHECK(!has(out, "call @two("));
}

TEST_CASE("functions that can report an error stay calls, and so do cycles") {
  const std::string out = after_passes("fn @add(%x: nat) -> nat { let %y: nat = nat.add(%x, %x) ret %y }\n"
                                       "fn @f(%x: nat) -> nat { let %a: nat = call @add(%x) let %b: nat = nat.add(%a, %x) ret %b }\n"
                                       "fn @ping(%x: nat) -> nat { tail @pong(%x) }\n"
                                       "fn @pong(%x: nat) -> nat { tail @ping(%x) }");
  CHECK(has(out, "call @add("));
  CHECK(has(out, "tail @pong("));
}
