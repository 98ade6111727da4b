// elide_handles: which results are known to be arguments, and what is left of calls and joins; verified through ownership.
#include <doctest/doctest.h>

#include "codegen/flow_text.h"
#include "codegen/passes.h"

using namespace bendc;

namespace {

// Verified after every pass; the text after `pass`.
std::string after(const std::string& text, const char* pass = "elide_handles") {
  flow::ParsedFlow parsed = flow::parse_module(text);
  REQUIRE(parsed.error == "");
  PassOptions options;
  options.verify = true;
  options.dump_after = pass;
  PassReport report = run_passes(parsed.module, options);
  CHECK(report.internal_error == "");
  flow::ParsedFlow again = flow::parse_module(report.dump);
  CHECK(again.error == "");
  return report.dump;
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }
size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

const std::string kFill =
    "fn @fill(%n: nat, %a: array u32) -> array u32 { switch %n { 0 => { ret %a } else => { let %p: nat = nat.pred(%n) let %i: u32 = u32.from_nat(%p) "
    "let %b: array u32 = array.set(%a, %i, %i) tail @fill(%p, %b) } } }\n";

}  // namespace

TEST_CASE("elide_handles: paths that meet with one handle keep its name, others get the join's") {
  const std::string out = after(kFill +
                                "fn @f(%c: enum(2), %n: nat, %a: array u32) -> array u32 { join j0(%x: array u32, %k: u32) { let %y: array u32 = array.set(%x, %k, %k) ret %y } "
                                "case %c { 0 => { let %one: u32 = 1 jump j0(%a, %one) } 1 => { let %b: array u32 = call @fill(%n, %a) let %two: u32 = 2 jump j0(%b, %two) } } }\n"
                                "fn @g(%c: enum(2), %a: array u32, %b: array u32) -> array u32 { join j1(%x: array u32) { let %k: u32 = 3 let %y: array u32 = array.set(%x, %k, %k) ret %y } "
                                "case %c { 0 => { jump j1(%a) } 1 => { jump j1(%b) } } }\n"
                                "fn @h(%c: enum(2), %n: nat, %a: array u32, %b: array u32) -> array u32 { let %x: array u32 = call @f(%c, %n, %a) tail @g(%c, %x, %b) }");
  CHECK(has(out, "fn @f(%c: enum(2), %n: nat, borrow %a: array u32) -> struct{}"));
  CHECK(has(out, "join j0(%k: u32)"));
  CHECK(has(out, "fn @g(%c: enum(2), %a: array u32, %b: array u32) -> array u32"));
  CHECK(has(out, "join j1(%x: array u32)"));
  CHECK(has(out, "tail @g(%c, %a, %b)"));
}

TEST_CASE("elide_handles: a handle bound inside a branch is no name for a join outside it") {
  const std::string out = after(
      "fn @f(%c: enum(2), %d: nat, %v: u32) -> u32 { join j0(%x: array u32) { let %m: u32 = array.mask(%x) ret %m } "
      "case %c { 0 => { let %a: array u32 = array.new(%d, %v) let %b: array u32 = array.set(%a, %v, %v) jump j0(%b) } 1 => { abort 2 } } }");
  CHECK(has(out, "join j0(%x: array u32)"));
  CHECK(has(out, "jump j0(%a)"));
}

TEST_CASE("elide_handles: records keep what is left, nested and swapped") {
  const std::string pair = "struct{array u32, array u32}";
  const std::string out = after("fn @turn(%n: nat, %k: u32, %b: struct{" + pair + ", u32}) -> struct{" + pair + ", u32} { let %p: " + pair + " = get 0(%b) let %x: array u32 = get 0(%p) let %y: array u32 = get 1(%p) " +
                                "let %q: " + pair + " = struct(%y, %x) let %s: u32 = array.mask(%x) let %r: struct{" + pair + ", u32} = struct(%q, %s) " +
                                "switch %n { 0 => { ret %r } else => { abort 2 } } }\n"
                                "fn @use(%n: nat, %k: u32, %x: array u32, %y: array u32) -> array u32 { let %p: " + pair + " = struct(%x, %y) let %b: struct{" + pair + ", u32} = struct(%p, %k) " +
                                "let %r: struct{" + pair + ", u32} = call @turn(%n, %k, %b) let %q: " + pair + " = get 0(%r) let %z: array u32 = get 0(%q) let %s: u32 = get 1(%r) " +
                                "let %w: array u32 = array.set(%z, %s, %s) ret %w }");
  CHECK(has(out, "fn @turn(%n: nat, %k: u32, borrow %b: array u32, borrow %b.1: array u32, %b.2: u32) -> u32"));
  CHECK(has(out, ": u32 = call @turn(%n, %k, %x, %y, %k)"));
  CHECK(has(out, "array.set(%y, "));
  CHECK(has(out, "ret %y"));
}

TEST_CASE("elide_handles: what a closure, a `!` or the entry calls keeps its signature") {
  const std::string out = after(kFill +
                                "fn @close(%n: nat) -> fn(array u32) -> array u32 { let %f: fn(array u32) -> array u32 = closure @fill(%n) ret %f }\n"
                                "fn @bang(%n: nat, %a: array u32) -> array u32 { let %b: array u32 = call! @fill(%n, %a) let %i: u32 = 0 let %c: array u32 = array.set(%b, %i, %i) ret %c }\n"
                                "fn @only(%n: nat, %a: array u32) -> array u32 { let %i: u32 = 0 let %c: array u32 = array.set(%a, %i, %i) ret %c }\n"
                                "fn @other(%n: nat) -> fn(array u32) -> array u32 { let %f: fn(array u32) -> array u32 = closure @only(%n) ret %f }");
  CHECK(has(out, "closure @fill~whole(%n)"));
  CHECK(has(out, "call! @fill~whole(%n, %a)"));
  CHECK(has(out, "fn @fill~whole(%n: nat, %a: array u32) -> array u32"));
  CHECK(has(out, "fn @fill(%n: nat, borrow %a: array u32) -> struct{}"));
  CHECK(has(out, "fn @only(%n: nat, %a: array u32) -> array u32"));   // never called: nothing to gain
  CHECK(!has(out, "@only~whole"));
  CHECK(has(out, "fn @bang(%n: nat, %a: array u32) -> array u32"));   // a device may give another block
}

TEST_CASE("elide_handles: a path that does not return keeps its tail call and elides nothing") {
  const std::string out = after(
      "fn @never(%a: array u32) -> array u32 { tail @never(%a) }\n"
      "fn @f(%c: enum(2), %a: array u32) -> array u32 { case %c { 0 => { ret %a } 1 => { tail @never(%a) } } }\n"
      "fn @g(%c: enum(2), %a: array u32) -> array u32 { tail @f(%c, %a) }", "elide_handles");
  CHECK(has(out, "fn @never(%a: array u32) -> array u32"));
  CHECK(has(out, "tail @never(%a)"));
}

TEST_CASE("elide_handles: counts of a fork go where its join goes, and stay where a name goes on") {
  const std::string both =
      "fn @pair(%n: nat, %a: array u32) -> struct{array u32, array u32} { let %f: struct{array u32, array u32} = array.fork(%a) let %x: array u32 = get 0(%f) let %y: array u32 = get 1(%f) "
      "let %i: u32 = u32.from_nat(%n) let %u: array u32 = array.set(%x, %i, %i) let %v: array u32 = array.set(%y, %i, %i) switch %n { 0 => { abort 2 } else => { "
      "let %r: struct{array u32, array u32} = struct(%u, %v) ret %r } } }\n";
  const std::string joined = after(both +
                                   "fn @f(%n: nat, %a: array u32) -> array u32 { let %r: struct{array u32, array u32} = call @pair(%n, %a) let %x: array u32 = get 0(%r) let %y: array u32 = get 1(%r) "
                                   "let %j: array u32 = array.join(%x, %y) ret %j }", "insert_ownership");
  CHECK(has(joined, "fn @pair(%n: nat, borrow %a: array u32) -> struct{}"));
  CHECK(count(joined, "dup ") == 0);
  CHECK(count(joined, "drop ") == 0);
  // The caller keeps both names in a box and a record: one count more for the second.
  const std::string kept = after(both +
                                 "fn @g(%n: nat, %a: array u32) -> struct{any, array u32} { let %r: struct{array u32, array u32} = call @pair(%n, %a) let %x: array u32 = get 0(%r) "
                                 "let %y: array u32 = get 1(%r) let %b: any = box(%x) let %s: struct{any, array u32} = struct(%b, %y) ret %s }", "insert_ownership");
  CHECK(count(kept, "dup %a") == 1);
  CHECK(count(kept, "drop ") == 0);
}
