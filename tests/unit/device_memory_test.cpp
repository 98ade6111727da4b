// What is known beforehand of the memory that device functions take and give back: made_nodes.h, last_frees.h.
#include <doctest/doctest.h>

#include <string>

#include "codegen/flow_text.h"
#include "codegen/gpu/last_frees.h"
#include "codegen/gpu/machine_plan.h"
#include "codegen/gpu/made_nodes.h"
#include "codegen/passes.h"

using namespace bendc;

namespace {

const char* const kData =
    "data D0 \"Tree\" affine { packed \"Leaf\"(u32); node \"Node\"(ref D0, ref D0); node \"Wide\"(ref D0, ref D0, ref D0) }\n"
    "fn @leaf(%x: u32) -> ref D0 { let %t: ref D0 = con 0(%x) ret %t }\n";

flow::Module parse(const std::string& text) {
  flow::ParsedFlow parsed = flow::parse_module(kData + text);
  REQUIRE(parsed.error == "");
  return std::move(parsed.module);
}

flow::FuncId find(const flow::Module& module, const std::string& name) {
  for (uint32_t i = 0; i < module.funcs.size(); ++i)
    if (module.funcs[flow::FuncId(i)].name == name) return flow::FuncId(i);
  FAIL("no function " << name);
  return {};
}

MadeNodes made(const std::string& text) {
  flow::Module module = parse(text);
  module.owned = true;
  flow::Layouts layouts(module);
  return made_nodes(module, layouts, find(module, "f"));
}

// The names of the functions whose dead nodes nobody needs.
std::string last(const std::string& text) {
  flow::Module module = parse(text);
  PassReport report = run_passes(module, PassOptions{});
  REQUIRE(report.internal_error == "");
  const DeviceModule device = split_segments(module);
  const std::vector<bool> frees = find_last_frees(device);
  std::string out;
  for (uint32_t i = 0; i < frees.size(); ++i)
    if (frees[i]) out += device.module.funcs[flow::FuncId(i)].name + " ";
  return out;
}

const char* const kSum =
    "fn @sum(%t: ref D0) -> u32 { case %t { 0 => { let %x: u32 = con_get 0 0(%t) ret %x } 1 => { let %l: ref D0 = con_get 1 0(%t) let %r: ref D0 = con_get 1 1(%t) "
    "fork { %a: u32 = call @sum(%l) %b: u32 = call @sum(%r) } let %s: u32 = u32.add(%a, %b) ret %s } else => { let %z: u32 = 0 ret %z } } }\n"
    "fn @build(%d: nat, %i: u32) -> ref D0 { switch %d { 0 => { let %t: ref D0 = con 0(%i) ret %t } else => { let %p: nat = nat.pred(%d) let %two: u32 = 2 "
    "let %j: u32 = u32.mul(%i, %two) fork { %l: ref D0 = call @build(%p, %i) %r: ref D0 = call @build(%p, %j) } let %t: ref D0 = con 1(%l, %r) ret %t } } }\n";

}  // namespace

TEST_CASE("made nodes: all ways must make as many bytes") {
  const MadeNodes two = made("fn @f(%x: u32) -> ref D0 { let %a: ref D0 = call @leaf(%x) let %b: ref D0 = call @leaf(%x) let %n: ref D0 = con 1(%a, %b) let %c: ref D0 = call @leaf(%x) let %m: ref D0 = con 1(%n, %c) ret %m }\n");
  CHECK(two.bytes == 48);
  CHECK(two.sizes == std::set<uint32_t>{24});
  // A node on one way only.
  CHECK(made("fn @f(%x: u32) -> ref D0 { let %a: ref D0 = call @leaf(%x) switch %x { 0 => { ret %a } else => { let %b: ref D0 = call @leaf(%x) let %n: ref D0 = con 1(%a, %b) ret %n } } }\n").bytes == 0);
  // As many on each way, or an error.
  CHECK(made("fn @f(%x: u32) -> ref D0 { let %a: ref D0 = call @leaf(%x) let %b: ref D0 = call @leaf(%x) switch %x { 0 => { let %n: ref D0 = con 1(%b, %a) ret %n } 1 => { abort 4 } "
             "else => { let %m: ref D0 = con 1(%a, %b) ret %m } } }\n").bytes == 24);
  // Nodes of two sizes.
  CHECK(made("fn @f(%x: u32) -> ref D0 { let %a: ref D0 = call @leaf(%x) let %b: ref D0 = call @leaf(%x) let %c: ref D0 = call @leaf(%x) let %d: ref D0 = call @leaf(%x) let %n: ref D0 = con 1(%a, %b) "
             "let %w: ref D0 = con 2(%n, %c, %d) ret %w }\n").sizes == std::set<uint32_t>{24, 32});
  // No node, and recursion.
  CHECK(made("fn @f(%x: u32) -> ref D0 { let %a: ref D0 = call @leaf(%x) ret %a }\n").bytes == 0);
  CHECK(made("fn @f(%x: u32) -> ref D0 { let %a: ref D0 = call @f(%x) let %b: ref D0 = call @f(%x) let %n: ref D0 = con 1(%a, %b) ret %n }\n").bytes == 0);
}

TEST_CASE("last frees: a fold that nothing follows gives no node back") {
  const std::string sum = kSum;
  const std::string found = last(sum + "fn @main(%d: nat, %i: u32) -> u32 { let %t: ref D0 = call! @build(%d, %i) let %s: u32 = call! @sum(%t) ret %s }\n");
  CHECK(found.find("sum") != std::string::npos);
  CHECK((" " + found).find(" build ") == std::string::npos);
}

TEST_CASE("last frees: what is followed by a maker of nodes, or runs beside one, gives them back") {
  const std::string sum = kSum;
  // One tree after the other.
  const std::string after = last(sum + "fn @twice(%d: nat, %i: u32) -> u32 { let %t: ref D0 = call @build(%d, %i) let %s: u32 = call @sum(%t) let %u: ref D0 = call @build(%d, %s) let %r: u32 = call @sum(%u) ret %r }\n"
                                      "fn @main(%d: nat, %i: u32) -> u32 { let %r: u32 = call! @twice(%d, %i) ret %r }\n");
  CHECK(after.find("sum") == std::string::npos);
  // A tree is built while another is summed.
  const std::string beside = last(sum + "fn @one(%d: nat, %i: u32) -> u32 { let %t: ref D0 = call @build(%d, %i) let %s: u32 = call @sum(%t) ret %s }\n"
                                       "fn @both(%d: nat, %i: u32) -> u32 { fork { %a: u32 = call @one(%d, %i) %b: u32 = call @one(%d, %i) } let %s: u32 = u32.add(%a, %b) ret %s }\n"
                                       "fn @main(%d: nat, %i: u32) -> u32 { let %r: u32 = call! @both(%d, %i) ret %r }\n");
  CHECK(beside.find("sum") == std::string::npos);
}

TEST_CASE("made nodes: the leaves of a perfect tree are planned to be staged, those that are too large are not") {
  auto staged = [](const std::string& text) {
    flow::Module module = parse(text);
    PassReport report = run_passes(module, PassOptions{});
    REQUIRE(report.internal_error == "");
    DeviceModule device = split_segments(module);
    return plan_machine(device).stage_bytes;
  };
  const std::string main = "fn @main(%d: nat, %i: u32) -> ref D0 { let %t: ref D0 = call! @build(%d, %i) ret %t }\n";
  // Fifteen nodes of 24 bytes.
  CHECK(staged(kSum + main) == 360);
  // Fifteen of 32.
  CHECK(staged("fn @build(%d: nat, %i: u32) -> ref D0 { switch %d { 0 => { let %t: ref D0 = con 0(%i) ret %t } else => { let %p: nat = nat.pred(%d) let %two: u32 = 2 "
               "let %j: u32 = u32.mul(%i, %two) fork { %l: ref D0 = call @build(%p, %i) %r: ref D0 = call @build(%p, %j) } let %z: ref D0 = con 0(%i) let %t: ref D0 = con 2(%l, %r, %z) ret %t } } }\n" +
               main) == 0);
}
