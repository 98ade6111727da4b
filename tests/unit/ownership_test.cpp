// Ownership insertion on small Flow programs: the text after the pass shows each dup, drop, open and reuse.
#include <doctest/doctest.h>

#include "codegen/flow_text.h"
#include "codegen/flow_verify.h"
#include "codegen/passes.h"

using namespace bendc;

namespace {

std::string after_passes(const char* text) {
  flow::ParsedFlow parsed = flow::parse_module(text);
  REQUIRE(parsed.error == "");
  PassOptions options;
  options.verify = true;
  PassReport report = run_passes(parsed.module, options);
  CHECK(report.internal_error == "");
  return flow::print_module(parsed.module);
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

const char* kList = "data D0 \"List\" { nullary \"Nil\"(); node \"Con\"(u32, ref D0) }\n";

}  // namespace

TEST_CASE("flow text round trip") {
  std::string text = std::string(kList) +
                     "fn @sum(%xs: ref D0, %acc: u32) -> u32 {\n  case %xs {\n    0 => {\n      ret %acc\n    }\n    1 => {\n"
                     "      let %h: u32 = con_get 1 0(%xs)\n      let %t: ref D0 = con_get 1 1(%xs)\n      let %s: u32 = u32.add(%acc, %h)\n"
                     "      tail @sum(%t, %s)\n    }\n  }\n}\n";
  flow::ParsedFlow parsed = flow::parse_module(text);
  REQUIRE(parsed.error == "");
  std::string once = flow::print_module(parsed.module);
  flow::ParsedFlow again = flow::parse_module(once);
  REQUIRE(again.error == "");
  CHECK(flow::print_module(again.module) == once);
  CHECK(flow::verify(parsed.module) == "");
}

TEST_CASE("a consuming fold opens its nodes and loops") {
  std::string out = after_passes((std::string(kList) +
                                  "fn @sum(%xs: ref D0, %acc: u32) -> u32 { case %xs { 0 => { ret %acc } 1 => { let %h: u32 = con_get 1 0(%xs) "
                                  "let %t: ref D0 = con_get 1 1(%xs) let %s: u32 = u32.add(%acc, %h) tail @sum(%t, %s) } } }").c_str());
  CHECK(has(out, "loop j0"));
  CHECK(has(out, "open %xs"));
  CHECK(!has(out, "dup"));
  CHECK(!has(out, "drop"));
}

TEST_CASE("map reuses the node it opens") {
  std::string out = after_passes((std::string(kList) +
                                  "fn @inc(%xs: ref D0) -> ref D0 { case %xs { 0 => { let %n: ref D0 = con 0() ret %n } 1 => { let %h: u32 = con_get 1 0(%xs) "
                                  "let %t: ref D0 = con_get 1 1(%xs) let %k: u32 = u32.inc(%h) let %r: ref D0 = call @inc(%t) let %c: ref D0 = con 1(%k, %r) ret %c } } }").c_str());
  CHECK(has(out, "token %token"));
  CHECK(has(out, "reuse %token"));
}

TEST_CASE("a shared value is dup'ed once and an unused one dropped") {
  std::string out = after_passes((std::string(kList) +
                                  "fn @f(%xs: ref D0) -> ref D0 { let %z: u32 = 0 let %c: ref D0 = con 1(%z, %xs) ret %c }\n"
                                  "fn @g(%xs: ref D0, %ys: ref D0) -> struct{ref D0, ref D0} { let %a: ref D0 = call @f(%xs) let %b: ref D0 = call @f(%xs) "
                                  "let %s: struct{ref D0, ref D0} = struct(%a, %b) ret %s }").c_str());
  CHECK(has(out, "drop %ys"));
  CHECK(has(out, "dup %xs"));
}

TEST_CASE("pairs of arrays move without counts") {
  std::string out = after_passes("fn @f(%r: struct{array u32, u32}) -> struct{array u32, u32} { let %a: array u32 = get 0(%r) let %x: u32 = get 1(%r) "
                                 "let %b: array u32 = array.set(%a, %x, %x) let %p: struct{array u32, u32} = struct(%b, %x) ret %p }");
  CHECK(!has(out, "dup"));
  CHECK(!has(out, "drop"));
}

TEST_CASE("a sum used whole in an arm is built again") {
  std::string out = after_passes((std::string(kList) +
                                  "fn @or(%m: sum{ | ref D0}, %n: sum{ | ref D0}) -> sum{ | ref D0} { case %m { 0 => { ret %n } 1 => { ret %m } } }").c_str());
  CHECK(has(out, "drop %n"));
  CHECK(has(out, "variant 1("));
}

TEST_CASE("verifier names the broken invariant") {
  flow::ParsedFlow parsed = flow::parse_module("fn @f(%x: u32) -> nat { ret %x }");
  REQUIRE(parsed.error == "");
  CHECK(has(flow::verify(parsed.module), "7:"));
}

TEST_CASE("a shared list read twice is borrowed, in a loop too") {
  std::string out = after_passes((std::string(kList) +
                                  "fn @sum(%xs: ref D0, %acc: u32) -> u32 { case %xs { 0 => { ret %acc } 1 => { let %h: u32 = con_get 1 0(%xs) "
                                  "let %t: ref D0 = con_get 1 1(%xs) let %s: u32 = u32.add(%acc, %h) tail @sum(%t, %s) } } }\n"
                                  "fn @twice(%xs: ref D0) -> u32 { let %z: u32 = 0 let %a: u32 = call @sum(%xs, %z) let %b: u32 = call @sum(%xs, %a) ret %b }").c_str());
  CHECK(has(out, "@sum(borrow %xs"));
  CHECK(!has(out, "dup"));
  CHECK(has(out, "drop %xs"));
}

TEST_CASE("a parameter that is read or returned is borrowed where a caller keeps the value") {
  const std::string longer = std::string(kList) +
                             "fn @longer(%xs: ref D0, %ys: ref D0) -> ref D0 { case %xs { 0 => { ret %ys } 1 => { case %ys { 0 => { ret %xs } 1 => { "
                             "let %t: ref D0 = con_get 1 1(%xs) let %u: ref D0 = con_get 1 1(%ys) let %r: ref D0 = call @longer(%t, %u) ret %r } } } } }\n";
  std::string out = after_passes((longer + "fn @main(%xs: ref D0, %ys: ref D0) -> struct{ref D0, ref D0, ref D0} { let %r: ref D0 = call @longer(%xs, %ys) "
                                           "let %p: struct{ref D0, ref D0, ref D0} = struct(%r, %xs, %ys) ret %p }").c_str());
  CHECK(has(out, "@longer(borrow %xs: ref D0, borrow %ys"));
  CHECK(has(out, "dup %ys"));   // on the way out only
  // What is only handed on and returned moves.
  const std::string last = std::string(kList) + "fn @last(%a: ref D0, %rest: ref D0) -> ref D0 { case %a { 0 => { ret %rest } 1 => { let %t: ref D0 = con_get 1 1(%a) "
                                                "let %r: ref D0 = call @last(%t, %rest) ret %r } } }\n";
  CHECK(!has(after_passes((last + "fn @main(%a: ref D0, %rest: ref D0) -> struct{ref D0, ref D0} { let %r: ref D0 = call @last(%a, %rest) "
                                  "let %p: struct{ref D0, ref D0} = struct(%r, %rest) ret %p }").c_str()), "borrow"));
  // Values used once are given away.
  out = after_passes((longer + "fn @main(%xs: ref D0, %ys: ref D0) -> ref D0 { let %r: ref D0 = call @longer(%xs, %ys) ret %r }").c_str());
  CHECK(!has(out, "borrow"));
}

TEST_CASE("a list that is stored stays owned") {
  std::string out = after_passes((std::string(kList) +
                                  "fn @push(%xs: ref D0, %x: u32) -> ref D0 { let %c: ref D0 = con 1(%x, %xs) ret %c }\n"
                                  "fn @two(%xs: ref D0) -> struct{ref D0, ref D0} { let %z: u32 = 0 let %a: ref D0 = call @push(%xs, %z) let %b: ref D0 = call @push(%xs, %z) "
                                  "let %p: struct{ref D0, ref D0} = struct(%a, %b) ret %p }").c_str());
  CHECK(!has(out, "borrow"));
  CHECK(has(out, "dup %xs"));
}

TEST_CASE("a node used whole in one arm of an inner case is opened without counts in the other") {
  std::string out = after_passes((std::string(kList) +
                                  "fn @zip(%xs: ref D0, %ys: ref D0) -> ref D0 { case %xs { 0 => { ret %ys } 1 => { let %t: ref D0 = con_get 1 1(%xs) case %ys { "
                                  "1 => { let %u: ref D0 = con_get 1 1(%ys) tail @zip(%t, %u) } else => { ret %xs } } } } }").c_str());
  CHECK(!has(out, "dup"));
  CHECK(has(out, "open %xs"));
}

TEST_CASE("an opening sinks below a case on one of its fields") {
  std::string out = after_passes((std::string(kList) +
                                  "data D1 \"Tree\" { nullary \"Tip\"(); node \"Bin\"(ref D1, ref D1) }\n"
                                  "fn @left(%t: ref D1) -> ref D1 { case %t { 0 => { ret %t } 1 => { let %l: ref D1 = con_get 1 0(%t) let %r: ref D1 = con_get 1 1(%t) "
                                  "case %l { 1 => { let %a: ref D1 = con_get 1 0(%l) let %b: ref D1 = con_get 1 1(%l) let %n: ref D1 = con 1(%b, %r) "
                                  "let %m: ref D1 = con 1(%a, %n) ret %m } else => { ret %t } } } } }").c_str());
  CHECK(!has(out, "dup"));
  CHECK(has(out, "reuse"));
}
