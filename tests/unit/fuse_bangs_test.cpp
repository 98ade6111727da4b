// fuse_bangs on small Flow texts.
#include <doctest/doctest.h>

#include "codegen/flow_text.h"
#include "codegen/flow_verify.h"
#include "codegen/gpu/fuse_bangs.h"
#include "codegen/passes.h"

using namespace bendc;

namespace {
constexpr const char* kParts =
    "fn @build(%d: nat, %i: u32) -> u32 { let %s: u32 = u32.add(%i, %i) ret %s }\n"
    "fn @sort(%k: u32, %t: u32) -> u32 { let %s: u32 = u32.add(%k, %t) ret %s }\n"
    "fn @sum(%t: u32) -> u32 { ret %t }\n";

std::string fused(const std::string& text) {
  flow::ParsedFlow parsed = flow::parse_module(text);
  REQUIRE(parsed.error == "");
  fuse_bangs(parsed.module, PassOptions{});
  CHECK(flow::verify(parsed.module) == "");
  return flow::print_module(parsed.module);
}
bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }
}  // namespace

TEST_CASE("fuse_bangs: a chain of calls becomes one") {
  const std::string text = fused(std::string(kParts) +
                                 "fn @main(%d: nat, %i: u32) -> u32 { let %t: u32 = call! @build(%d, %i) let %k: u32 = 7 let %s: u32 = call! @sort(%k, %t) "
                                 "let %r: u32 = call! @sum(%s) let %w: u32 = u32.add(%r, %r) ret %w }");
  CHECK(has(text, "call! @sum.of.sort.of.build(%d, %i, %k)"));
  CHECK(!has(text, "call! @build"));
  CHECK(!has(text, "call! @sort("));
  CHECK(has(text, "call @sort.of.build("));
}

TEST_CASE("fuse_bangs: a result used elsewhere too keeps its call") {
  const std::string text = fused(std::string(kParts) +
                                 "fn @main(%d: nat, %i: u32) -> u32 { let %t: u32 = call! @build(%d, %i) let %s: u32 = call! @sum(%t) let %w: u32 = u32.add(%s, %t) ret %w }");
  CHECK(has(text, "call! @build(%d, %i)"));
  CHECK(has(text, "call! @sum(%t)"));
}

TEST_CASE("fuse_bangs: plain calls and host-only code stay apart") {
  const std::string plain = fused(std::string(kParts) + "fn @main(%d: nat, %i: u32) -> u32 { let %t: u32 = call @build(%d, %i) let %s: u32 = call! @sum(%t) ret %s }");
  CHECK(has(plain, "call @build(%d, %i)"));
  const std::string host = fused(std::string(kParts) +
                                 "fn @code(%k: u32, %x: u32) -> u32 { ret %x }\n"
                                 "fn @f(%x: u32) -> u32 { let %c: fn(u32) -> u32 = closure @code(%x) let %r: u32 = apply(%c, %x) ret %r }\n"
                                 "fn @main(%d: nat, %i: u32) -> u32 { let %t: u32 = call! @f(%i) let %s: u32 = call! @sum(%t) ret %s }");
  CHECK(has(host, "call! @f(%i)"));
  CHECK(has(host, "call! @sum(%t)"));
}

TEST_CASE("fuse_bangs: calls in the arms of a case") {
  const std::string text = fused(std::string(kParts) +
                                 "fn @main(%d: nat, %i: u32) -> u32 { switch %d { 0 => { let %t: u32 = call! @build(%d, %i) let %s: u32 = call! @sum(%t) ret %s } "
                                 "else => { let %u: u32 = call! @build(%d, %i) let %v: u32 = call! @sum(%u) ret %v } } }");
  CHECK(has(text, "call! @sum.of.build(%d, %i)"));
  CHECK(!has(text, "call! @build"));
  CHECK(!has(text, "sum.of.build~2"));
}
