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

namespace {

// A walk of a tree by a chosen child, and a caller that keeps the tree. `choose` makes %s of %l and %r; `tail` goes on with it.
std::string walk(const std::string& choose, const std::string& tail) {
  return after_passes(("data D0 \"Tree\" { nullary \"Leaf\"(); node \"Node\"(ref D0, u32, ref D0) }\n"
                       "fn @either(%c: enum(2), %a: ref D0, %b: ref D0) -> ref D0 { case %c { 0 => { ret %a } 1 => { ret %b } } }\n"
                       "fn @side(%c: enum(2), %a: ref D0) -> sum{ | ref D0} { case %c { 0 => { let %n: sum{ | ref D0} = variant 0() ret %n } "
                       "1 => { let %s: sum{ | ref D0} = variant 1(%a) ret %s } } }\n"
                       "fn @or_leaf(%c: enum(2), %a: ref D0) -> ref D0 { case %c { 0 => { let %n: ref D0 = con 0() ret %n } 1 => { ret %a } } }\n"
                       "fn @walk(%n: nat, %t: ref D0, %x: u32) -> u32 { switch %n { 0 => { ret %x } else => { let %p: nat = nat.pred(%n) case %t { 0 => { ret %x } 1 => { "
                       "let %l: ref D0 = con_get 1 0(%t) let %k: u32 = con_get 1 1(%t) let %r: ref D0 = con_get 1 2(%t) let %c: enum(2) = u32.is_lt(%x, %k) " +
                       choose + " " + tail + " } } } } }\n"
                       "fn @held(%t: ref D0) -> u32 { case %t { 0 => { let %z: u32 = 0 ret %z } 1 => { let %k: u32 = con_get 1 1(%t) ret %k } } }\n"
                       "fn @two(%n: nat, %t: ref D0, %x: u32) -> u32 { let %a: u32 = call @walk(%n, %t, %x) let %b: u32 = call @walk(%n, %t, %a) ret %b }").c_str());
}

}  // namespace

TEST_CASE("a walk whose next node a selector chooses counts nothing") {
  const std::string on = "tail @walk(%p, %s, %k)";
  std::string out = walk("let %s: ref D0 = call @either(%c, %l, %r)", on);
  CHECK(has(out, "borrow %t: ref D0"));
  CHECK(has(out, "join j0(borrow %s: ref D0)"));
  CHECK(!has(out, "dup"));
  CHECK(!has(out, "call @either("));
  // One selector after the other, and a word for a default.
  out = walk("let %m: ref D0 = call @either(%c, %l, %r) let %s: ref D0 = call @or_leaf(%c, %m)", on);
  CHECK(has(out, "let borrow %n"));
  CHECK(!has(out, "dup"));
  // In a sum, that is looked into.
  out = walk("let %y: sum{ | ref D0} = call @side(%c, %r)", "case %y { 0 => { ret %k } 1 => { let %s: ref D0 = variant_get 1 0(%y) tail @walk(%p, %s, %k) } }");
  CHECK(has(out, "(borrow %y: sum{ | ref D0})"));
  CHECK(has(out, "let borrow %s"));
  CHECK(!has(out, "dup"));
}

TEST_CASE("a chosen node that a use consumes is counted, and its selector stays a call") {
  const std::string either = "let %s: ref D0 = call @either(%c, %l, %r)";
  std::string out = walk(either, "let %z: u32 = 0 let %m: ref D0 = con 1(%s, %z, %s) let %h: u32 = call @held(%m) ret %h");
  CHECK(has(out, "fn @walk(%n: nat, %t: ref D0"));
  CHECK(has(out, "call @either("));
  // One of the two comes from elsewhere and is owned.
  out = walk("let %z: u32 = 0 let %m: ref D0 = con 1(%r, %z, %r) let %s: ref D0 = call @either(%c, %l, %m)", "tail @walk(%p, %s, %k)");
  CHECK(!has(out, "borrow"));
  CHECK(has(out, "call @either("));
}

TEST_CASE("a sum of what is lent is lent to a walk, too") {
  const std::string out = after_passes(
      "data D0 \"Tree\" { nullary \"Leaf\"(); node \"Node\"(ref D0, u32, ref D0) }\n"
      "fn @side(%c: enum(2), %a: ref D0, %b: ref D0) -> sum{ | ref D0} { case %c { 0 => { let %n: sum{ | ref D0} = variant 1(%b) ret %n } "
      "1 => { let %s: sum{ | ref D0} = variant 1(%a) ret %s } } }\n"
      "fn @find(%n: nat, %m: sum{ | ref D0}, %x: u32) -> u32 { switch %n { 0 => { ret %x } else => { let %p: nat = nat.pred(%n) case %m { 0 => { ret %x } 1 => { "
      "let %t: ref D0 = variant_get 1 0(%m) case %t { 0 => { ret %x } 1 => { let %l: ref D0 = con_get 1 0(%t) let %k: u32 = con_get 1 1(%t) let %r: ref D0 = con_get 1 2(%t) "
      "let %c: enum(2) = u32.is_lt(%x, %k) let %s: sum{ | ref D0} = call @side(%c, %l, %r) tail @find(%p, %s, %x) } } } } } } }\n"
      "fn @two(%n: nat, %t: ref D0, %x: u32) -> u32 { let %w: sum{ | ref D0} = variant 1(%t) let %a: u32 = call @find(%n, %w, %x) let %v: sum{ | ref D0} = variant 1(%t) "
      "let %b: u32 = call @find(%n, %v, %a) ret %b }\n"
      "fn @four(%n: nat, %t: ref D0, %x: u32) -> u32 { let %a: u32 = call @two(%n, %t, %x) let %b: u32 = call @two(%n, %t, %a) ret %b }");
  CHECK(has(out, "fn @find(%n: nat, borrow %m: sum{ | ref D0}"));
  CHECK(!has(out, "dup %l"));
  CHECK(!has(out, "dup %r"));
}
