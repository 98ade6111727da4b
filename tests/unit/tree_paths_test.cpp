// What the levels of a perfect tree do to its arguments and results, from functions as f@step and f@post are.
#include "codegen/gpu/tree_paths.h"

#include <doctest/doctest.h>

#include "codegen/flow_text.h"

using namespace bendc;
using Kind = PathForm::Kind;

namespace {
flow::Module parsed(const std::string& text) {
  flow::ParsedFlow flow = flow::parse_module(text);
  REQUIRE(flow.error == "");
  return std::move(flow.module);
}
std::vector<PathForm> forms(const std::string& text) { return path_forms(parsed(text), flow::FuncId(0), 0); }
// The step of f(d, i) whose children get `left` and `right` for i; `lets` names them.
std::vector<PathForm> forms(const std::string& lets, const std::string& left, const std::string& right) {
  return forms("fn @f(%d: nat, %i: u32, %child: enum(2)) -> struct{nat, u32} { let %p: nat = nat.pred(%d) " + lets + " case %child { 0 => { let %x: struct{nat, u32} = struct(%p, " + left +
               ") ret %x } 1 => { let %y: struct{nat, u32} = struct(%p, " + right + ") ret %y } } }");
}
}  // namespace

TEST_CASE("a leaf's number, doubled at each level") {
  const auto out = forms("let %two: u32 = 2 let %one: u32 = 1 let %l: u32 = u32.mul(%i, %two) let %r: u32 = u32.add(%l, %one)", "%l", "%r");
  REQUIRE(out.size() == 2);
  CHECK(out[0].kind == Kind::Depth);
  CHECK(out[1].kind == Kind::Number);
}

TEST_CASE("a first slot to which the right half's distance is added") {
  const auto out = forms("let %c: u32 = 64 let %h: u32 = u32.shln(%c, %p) let %r: u32 = u32.add(%i, %h)", "%i", "%r");
  REQUIRE(out.size() == 2);
  CHECK(out[1].kind == Kind::Spread);
  CHECK(out[1].factor == 64);
}

TEST_CASE("what has no closed form goes down level by level") {
  CHECK(forms("let %three: u32 = 3 let %one: u32 = 1 let %l: u32 = u32.mul(%i, %three) let %r: u32 = u32.add(%l, %one)", "%l", "%r").empty());
  CHECK(forms("let %two: u32 = 2 let %l: u32 = u32.mul(%i, %two) let %r: u32 = u32.add(%l, %two)", "%l", "%r").empty());
  CHECK(forms("let %c: u32 = 1 let %h: u32 = u32.shln(%c, %d) let %r: u32 = u32.add(%i, %h)", "%i", "%r").empty());
  CHECK(forms("let %r: u32 = u32.mul(%i, %i)", "%i", "%r").empty());
  // Copied to and fro: the second step undoes the first.
  CHECK(forms("fn @f(%d: nat, %a: u32, %b: u32, %child: enum(2)) -> struct{nat, u32, u32} { let %p: nat = nat.pred(%d) case %child { 0 => { let %x: struct{nat, u32, u32} = struct(%p, %b, "
              "%a) ret %x } 1 => { let %y: struct{nat, u32, u32} = struct(%p, %a, %b) ret %y } } }")
            .empty());
}

TEST_CASE("handles that the first step forks stay the same below it") {
  const auto out = forms(
      "fn @f(%d: nat, %r: struct{array u32, array u32}, %child: enum(2)) -> struct{nat, struct{array u32, array u32}} { open %r 0(%a: array u32, %b: array u32) let %p: nat = nat.pred(%d) "
      "let %s: struct{array u32, array u32} = array.fork(%a) let %t: struct{array u32, array u32} = array.fork(%b) case %child { 0 => { drop %t let %x: struct{nat, struct{array u32, array u32}} "
      "= struct(%p, %s) ret %x } 1 => { drop %s let %y: struct{nat, struct{array u32, array u32}} = struct(%p, %t) ret %y } } }");
  REQUIRE(out.size() == 3);
  for (size_t word : {1, 2}) {
    CHECK(out[word].kind == Kind::Copy);
    CHECK(out[word].left == 1);
    CHECK(out[word].right == 2);
  }
}

TEST_CASE("what writes after the fork is no left child's result alone") {
  const char* const written[] = {
      "fn @post(%x: array u32, %y: array u32) -> array u32 { let %i: u32 = 0 let %z: array u32 = array.set(%y, %i, %i) let %t: array u32 = array.join(%x, %z) ret %t }",
      "fn @post(%x: array u32, %y: array u32) -> array u32 { let %i: u32 = 0 let %u: struct{} = array.set(%x, %i, %i) in_place drop %y ret %x }",
  };
  for (const char* text : written) CHECK_FALSE(gives_left(parsed(text), flow::FuncId(0)));
  CHECK(gives_left(parsed("fn @post(%x: struct{}, %y: struct{}) -> struct{} { let %u: struct{} = struct() ret %u }"), flow::FuncId(0)));
}

TEST_CASE("joined handles are the left child's, sums are not") {
  CHECK(gives_left(parsed("fn @post(%x: array u32, %y: array u32) -> array u32 { let %t: array u32 = array.join(%x, %y) ret %t }"), flow::FuncId(0)));
  CHECK_FALSE(gives_left(parsed("fn @post(%x: array u32, %y: array u32) -> array u32 { let %t: array u32 = array.join(%y, %x) ret %t }"), flow::FuncId(0)));
  CHECK_FALSE(gives_left(parsed("fn @post(%x: u32, %y: u32) -> u32 { let %t: u32 = u32.add(%x, %y) ret %t }"), flow::FuncId(0)));
  CHECK(gives_left(parsed("fn @post(%x: struct{array u32, u32}, %y: struct{array u32, u32}) -> struct{array u32, u32} { open %x 0(%a: array u32, %s: u32) open %y 0(%b: array u32, %t: u32) "
                          "let %c: array u32 = array.join(%a, %b) let %r: struct{array u32, u32} = struct(%c, %s) ret %r }"),
                   flow::FuncId(0)));
}
