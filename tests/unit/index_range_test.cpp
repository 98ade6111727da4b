// The loop versioning of hoist_index_masks on loops written as a user would write them.
#include <doctest/doctest.h>

#include "codegen/flow_text.h"
#include "codegen/passes.h"

using namespace bendc;

namespace {
std::string run(const char* text) {
  flow::ParsedFlow parsed = flow::parse_module(text);
  REQUIRE(parsed.error == "");
  PassOptions options;
  PassReport report = run_passes(parsed.module, options);
  CHECK(report.internal_error == "");
  return flow::print_module(parsed.module);
}
size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}
}  // namespace

TEST_CASE("a fill over consecutive slots has a copy without masks") {
  std::string out = run(
      "fn @fill(%n: nat, %i: u32, %a: array u32) -> array u32 { switch %n { 0 => { ret %a } else => { let %p: nat = nat.pred(%n) let %one: u32 = 1 "
      "let %j: u32 = u32.add(%i, %one) let %b: array u32 = array.set(%a, %i, %i) tail @fill(%p, %j, %b) } } }");
  CHECK(count(out, "loop j") == 2);
  CHECK(count(out, "array.mask") == 1);
  CHECK(count(out, "in_range") >= 2);
}

TEST_CASE("the array inside a pair, read one slot ahead") {
  std::string out = run(
      "fn @sum(%n: nat, %j: u32, %s: u32, %r: struct{array u32, u32}) -> struct{array u32, u32} { let %a: array u32 = get 0(%r) let %x: u32 = get 1(%r) "
      "let %t: u32 = u32.add(%s, %x) switch %n { 0 => { let %z: struct{array u32, u32} = struct(%a, %t) ret %z } "
      "else => { let %p: nat = nat.pred(%n) let %q: u32 = u32.inc(%j) let %g: struct{array u32, u32} = array.get(%a, %q) tail @sum(%p, %q, %t, %g) } } }");
  CHECK(count(out, "loop j") == 2);
  CHECK(count(out, "array.get") == 2);
}

TEST_CASE("an index that does not walk keeps its mask") {
  std::string out = run(
      "fn @hop(%n: nat, %i: u32, %a: array u32) -> array u32 { switch %n { 0 => { ret %a } else => { let %p: nat = nat.pred(%n) let %two: u32 = 2 "
      "let %j: u32 = u32.add(%i, %two) let %b: array u32 = array.set(%a, %i, %i) tail @hop(%p, %j, %b) } } }");
  CHECK(count(out, "loop j") == 1);
  CHECK(count(out, "in_range") == 0);
}

TEST_CASE("one slot ahead: the copy goes as far as the slots go, unless the counter is looked at") {
  const char* ahead =
      "fn @sum(%n: nat, %j: u32, %s: u32, %x: u32, %a: array u32) -> u32 { switch %n { 0 => { ret %s } else => { let %p: nat = nat.pred(%n) let %q: u32 = u32.inc(%j) "
      "let %t: u32 = u32.add(%s, %x) let %g: struct{array u32, u32} = array.get(%a, %q) let %b: array u32 = get 0(%g) let %y: u32 = get 1(%g) tail @sum(%p, %q, %t, %y, %b) } } }";
  std::string out = run(ahead);
  CHECK(count(out, "switch %left") == 1);
  CHECK(count(out, "loop j") == 2);
  std::string looked(ahead);
  looked.replace(looked.find("u32.add(%s, %x)"), 15, "u32.from_nat(%n)");
  out = run(looked.c_str());
  CHECK(count(out, "switch %left") == 0);
  CHECK(count(out, "loop j") == 2);
}
