// split_segments on small programs: the cut form verifies, nothing is live across a cut but its arguments.
#include <doctest/doctest.h>

#include "codegen/flow_text.h"
#include "codegen/flow_verify.h"
#include "codegen/gpu/segments.h"
#include "codegen/passes.h"

using namespace bendc;

namespace {
DeviceModule split(const char* text) {
  flow::ParsedFlow parsed = flow::parse_module(text);
  REQUIRE(parsed.error == "");
  PassReport report = run_passes(parsed.module, PassOptions{});
  REQUIRE(report.internal_error == "");
  return split_segments(parsed.module);
}
bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }
}  // namespace

TEST_CASE("a forked fib becomes two segments") {
  DeviceModule d = split(
      "fn @fib(%n: nat) -> u32 { switch %n { 0 => { let %z: u32 = 0 ret %z } 1 => { let %o: u32 = 1 ret %o } else => { let %p: nat = nat.pred(%n) "
      "let %q: nat = nat.pred(%p) fork { %a: u32 = call @fib(%p) %b: u32 = call @fib(%q) } let %s: u32 = u32.add(%a, %b) ret %s } } }\n"
      "fn @main(%n: nat) -> u32 { let %r: u32 = call! @fib(%n) let %one: u32 = 1 let %s: u32 = u32.add(%r, %one) ret %s }");
  CHECK(flow::verify(d.module) == "");
  REQUIRE(d.entries.size() == 1);
  CHECK(d.entries[0].refusal == "");
  std::string text = flow::print_module(d.module);
  // The sum so far goes along: the first child starts from it, the second from nothing.
  CHECK(has(text, "tail @\"fib~acc$1\"(%a, %b)"));
  REQUIRE(d.accumulators.size() == 1);
  CHECK(d.accumulators[0].identity == 0);
  CHECK(d.module.funcs[d.accumulators[0].func].params.size() == 2);
  CHECK(d.async[d.entries[0].device.index]);
}

TEST_CASE("plain recursion is cut, its live value becomes an argument") {
  DeviceModule d = split(
      "data D0 \"List\" { nullary \"Nil\"(); node \"Con\"(u32, ref D0) }\n"
      "fn @sum(%xs: ref D0) -> u32 { case %xs { 0 => { let %z: u32 = 0 ret %z } 1 => { let %h: u32 = con_get 1 0(%xs) let %t: ref D0 = con_get 1 1(%xs) "
      "let %r: u32 = call @sum(%t) let %s: u32 = u32.add(%h, %r) ret %s } } }\n"
      "fn @main(%xs: ref D0) -> u32 { let %r: u32 = call! @sum(%xs) let %one: u32 = 1 let %s: u32 = u32.add(%r, %one) ret %s }");
  CHECK(flow::verify(d.module) == "");
  CHECK(has(flow::print_module(d.module), "tail @\"sum$1\"("));
}

TEST_CASE("a loop whose body forks is lifted with its jumps") {
  DeviceModule d = split(
      "fn @f(%x: u32) -> u32 { ret %x }\n"
      "fn @loop(%n: nat, %acc: u32) -> u32 { switch %n { 0 => { ret %acc } else => { let %p: nat = nat.pred(%n) "
      "fork { %a: u32 = call @f(%acc) %b: u32 = call @f(%acc) } let %s: u32 = u32.add(%a, %b) tail @loop(%p, %s) } } }\n"
      "fn @main(%n: nat, %x: u32) -> u32 { let %r: u32 = call! @loop(%n, %x) let %one: u32 = 1 let %s: u32 = u32.add(%r, %one) ret %s }");
  CHECK(flow::verify(d.module) == "");
  CHECK(!has(flow::print_module(d.module), "jump j1"));
}

TEST_CASE("closures are nodes of one datatype and an application is a case over those that can get there") {
  DeviceModule d = split(
      "fn @code(%k: u32, %x: u32) -> u32 { let %s: u32 = u32.add(%k, %x) ret %s }\n"
      "fn @host(%k: u32, %x: u32) -> u32 { let %f: f32 = u32.to_f32(%x) let %u: struct{} = show.f32(%f) ret %k }\n"
      "fn @f(%x: u32) -> u32 { let %c: fn(u32) -> u32 = closure @code(%x) let %r: u32 = apply(%c, %x) ret %r }\n"
      "fn @g(%x: u32) -> u32 { let %c: fn(u32) -> u32 = closure @host(%x) let %r: u32 = apply(%c, %x) ret %r }\n"
      "fn @main(%x: u32) -> u32 { let %r: u32 = call! @f(%x) let %q: u32 = call! @g(%x) let %s: u32 = u32.add(%r, %q) ret %s }");
  REQUIRE(d.entries.size() == 2);
  CHECK(flow::verify(d.module) == "");
  CHECK(d.entries[0].refusal == "");
  CHECK(has(d.entries[1].refusal, "`host` uses"));
  const std::string text = flow::print_module(d.module);
  CHECK(!has(text, "apply("));
  CHECK(!has(text, "closure"));
}

TEST_CASE("an entry that reaches a store into an array is told from one that only reads") {
  const char* text =
      "fn @get(%a: array u32) -> u32 { let %i: u32 = 3 let %r: struct{array u32, u32} = array.get(%a, %i) let %x: u32 = get 1(%r) ret %x }\n"
      "fn @put(%a: array u32) -> array u32 { let %i: u32 = 3 let %b: array u32 = array.set(%a, %i, %i) ret %b }\n"
      "fn @both(%a: array u32) -> u32 { let %b: array u32 = call @put(%a) let %x: u32 = call @get(%b) ret %x }\n"
      "fn @main(%a: array u32, %b: array u32) -> u32 { let %x: u32 = call! @get(%a) let %y: u32 = call! @both(%b) let %s: u32 = u32.add(%x, %y) ret %s }";
  const DeviceModule d = split(text);
  REQUIRE(d.entries.size() == 2);
  CHECK(d.entries[0].reads_only);
  CHECK_FALSE(d.entries[1].reads_only);
}

TEST_CASE("an async call whose value is returned, at one place, and what only goes on become part of others") {
  // `step` is called at one place and ends with the call of a fork; what follows the call in `loop` only goes on with the loop.
  DeviceModule d = split(
      "fn @leaf(%x: u32) -> u32 { ret %x }\n"
      "fn @both(%x: u32) -> u32 { fork { %a: u32 = call @leaf(%x) %b: u32 = call @leaf(%x) } let %s: u32 = u32.mul(%a, %b) let %t: u32 = u32.add(%s, %a) ret %t }\n"
      "fn @step(%x: u32) -> u32 { let %y: u32 = u32.add(%x, %x) let %z: u32 = u32.mul(%y, %y) let %w: u32 = u32.xor(%z, %x) let %c: u32 = u32.mul(%w, %z) let %d: u32 = u32.add(%c, %y) "
      "let %e: u32 = u32.mul(%d, %w) let %f: u32 = u32.add(%e, %c) let %g: u32 = u32.mul(%f, %d) let %h: u32 = u32.add(%g, %e) let %i: u32 = u32.mul(%h, %f) let %j: u32 = u32.add(%i, %g) "
      "let %k: u32 = u32.mul(%j, %h) let %l: u32 = u32.add(%k, %i) let %m: u32 = u32.mul(%l, %j) let %n: u32 = u32.add(%m, %k) let %r: u32 = call @both(%n) ret %r }\n"
      "fn @loop(%n: nat, %acc: u32) -> u32 { switch %n { 0 => { ret %acc } else => { let %p: nat = nat.pred(%n) let %s: u32 = call @step(%acc) tail @loop(%p, %s) } } }\n"
      "fn @main(%n: nat, %x: u32) -> u32 { let %r: u32 = call! @loop(%n, %x) let %one: u32 = 1 let %s: u32 = u32.add(%r, %one) ret %s }");
  CHECK(flow::verify(d.module) == "");
  const std::string text = flow::print_module(d.module);
  CHECK(!has(text, "call @step("));
  uint32_t turns = 0;   // lifted functions that do nothing but go on with another
  for (uint32_t i = 0; i < d.module.funcs.size(); ++i) {
    const flow::Func& func = d.module.funcs[flow::FuncId(i)];
    turns += d.reachable[i] && func.name.find('$') != std::string::npos && d.module.nodes[func.body].kind == flow::NodeKind::Tail;
  }
  CHECK(turns == 0);
}
