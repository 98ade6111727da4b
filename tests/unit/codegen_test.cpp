// Code generation end to end: Flow text -> passes -> LLVM -> object -> linked into this process -> run on the real runtime's heap.
// A test program's entry is a function without parameters returning u32, called through the descriptor's value entry: its result is
// shown by show.u32 into the output buffer; here a probe reads it instead.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "codegen/flow_text.h"
#include "codegen/llvm/context.h"
#include "codegen/passes.h"
#include "runtime/abi.h"
#include "runtime_fixture.h"

using namespace bendc;

namespace {

thread_local std::string shown;

extern "C" {
void probe_show_u32(BendWorker*, uint32_t value) { shown += std::to_string(value) + " "; }
void probe_show_nat(BendWorker*, uint64_t value) { shown += std::to_string(value) + "n "; }
void probe_show_text(BendWorker*, const char* bytes, uint64_t size) { shown.append(bytes, size); }
}

struct Ran {
  std::string shown, error, ir;
};

// Runs the value entry of a Flow program on the runtime's heap.
Ran run(const std::string& text, int level = 2, bool passes = true) {
  Ran out;
  flow::ParsedFlow parsed = flow::parse_module(text);
  if (!parsed.error.empty()) return {"", parsed.error, ""};
  if (passes) {
    PassReport report = run_passes(parsed.module, PassOptions{});
    if (!report.internal_error.empty()) return {"", report.internal_error, ""};
  }
  codegen::MachinePtr machine = codegen::host_machine({"native", level}, out.error);
  if (!machine) return out;
  codegen::IrModulePtr ir = codegen::emit_module(parsed.module, *machine, {});
  out.error = codegen::verify_ir(*ir);
  out.ir = codegen::print_ir(*ir);
  if (!out.error.empty()) return out;
  out.error = codegen::optimize_module(*ir, *machine, level);
  if (!out.error.empty()) return out;
  codegen::ObjectResult object = codegen::emit_object(*ir, *machine);
  if (!object.error.empty()) return {"", object.error, ""};
  std::vector<codegen::Symbol> symbols = codegen::runtime_symbols();
  for (codegen::Symbol& symbol : symbols) {
    if (symbol.name == "bend_show_u32") symbol.address = reinterpret_cast<void*>(&probe_show_u32);
    if (symbol.name == "bend_show_nat") symbol.address = reinterpret_cast<void*>(&probe_show_nat);
    if (symbol.name == "bend_show_text") symbol.address = reinterpret_cast<void*>(&probe_show_text);
  }
  codegen::LoadedProgram loaded = codegen::load_object(object.bytes, *machine, symbols);
  out.error = loaded.error;
  if (!out.error.empty()) return out;
  shown.clear();
  test::RuntimeFixture fixture(false);
  reinterpret_cast<void (*)(BendWorker*)>(loaded.program->entry)(&fixture.worker);
  out.shown = shown;
  return out;
}

// An entry that shows the u32 result of @main.
std::string program(const std::string& body) {
  return body + "\nentry value @entry\nfn @entry() -> struct{} { let %r: u32 = call @main() let %u: struct{} = show.u32(%r) ret %u }\n";
}

void expect(const std::string& body, const char* wanted) {
  for (int level : {0, 1, 3}) {
    const Ran ran = run(program(body), level);
    CHECK_MESSAGE(ran.error == "", ran.error << "\n" << ran.ir);
    CHECK(ran.shown == wanted);
  }
}

const char* kList = "data D0 \"List\" { nullary \"Nil\"(); node \"Con\"(u32, ref D0) }\n";

}  // namespace

TEST_CASE("u32 arithmetic guards division and shifts") {
  expect("fn @main() -> u32 { let %a: u32 = 17 let %z: u32 = 0 let %d: u32 = u32.div(%a, %z) let %m: u32 = u32.mod(%a, %z) let %n: nat = 32 "
         "let %s: u32 = u32.shln(%a, %n) let %x: u32 = u32.add(%d, %m) let %y: u32 = u32.add(%x, %s) ret %y }",
         "17 ");
}

TEST_CASE("self tail calls loop, mutual tail calls run in constant stack") {
  expect("fn @even(%n: u32) -> u32 { switch %n { 0 => { let %r: u32 = 1 ret %r } else => { let %o: u32 = 1 let %p: u32 = u32.sub(%n, %o) tail @odd(%p) } } }\n"
         "fn @odd(%n: u32) -> u32 { switch %n { 0 => { let %r: u32 = 0 ret %r } else => { let %o: u32 = 1 let %p: u32 = u32.sub(%n, %o) tail @even(%p) } } }\n"
         "fn @main() -> u32 { let %n: u32 = 10000001 let %r: u32 = call @odd(%n) ret %r }",
         "1 ");
}

TEST_CASE("lists: build, map in place, fold") {
  expect(std::string(kList) +
             "fn @range(%n: u32) -> ref D0 { switch %n { 0 => { let %r: ref D0 = con 0() ret %r } else => { let %o: u32 = 1 let %p: u32 = u32.sub(%n, %o) "
             "let %t: ref D0 = call @range(%p) let %c: ref D0 = con 1(%n, %t) ret %c } } }\n"
             "fn @inc(%xs: ref D0) -> ref D0 { case %xs { 0 => { let %n: ref D0 = con 0() ret %n } 1 => { let %h: u32 = con_get 1 0(%xs) "
             "let %t: ref D0 = con_get 1 1(%xs) let %k: u32 = u32.inc(%h) let %r: ref D0 = call @inc(%t) let %c: ref D0 = con 1(%k, %r) ret %c } } }\n"
             "fn @sum(%xs: ref D0, %acc: u32) -> u32 { case %xs { 0 => { ret %acc } 1 => { let %h: u32 = con_get 1 0(%xs) "
             "let %t: ref D0 = con_get 1 1(%xs) let %s: u32 = u32.add(%acc, %h) tail @sum(%t, %s) } } }\n"
             "fn @main() -> u32 { let %n: u32 = 1000 let %xs: ref D0 = call @range(%n) let %ys: ref D0 = call @inc(%xs) let %z: u32 = 0 let %r: u32 = call @sum(%ys, %z) ret %r }",
         "501500 ");
}

TEST_CASE("shared lists keep their nodes") {
  expect(std::string(kList) +
             "fn @inc(%xs: ref D0) -> ref D0 { case %xs { 0 => { let %n: ref D0 = con 0() ret %n } 1 => { let %h: u32 = con_get 1 0(%xs) "
             "let %t: ref D0 = con_get 1 1(%xs) let %k: u32 = u32.inc(%h) let %r: ref D0 = call @inc(%t) let %c: ref D0 = con 1(%k, %r) ret %c } } }\n"
             "fn @sum(%xs: ref D0, %acc: u32) -> u32 { case %xs { 0 => { ret %acc } 1 => { let %h: u32 = con_get 1 0(%xs) "
             "let %t: ref D0 = con_get 1 1(%xs) let %s: u32 = u32.add(%acc, %h) tail @sum(%t, %s) } } }\n"
             "fn @main() -> u32 { let %e: ref D0 = con 0() let %a: u32 = 10 let %b: u32 = 20 let %x: ref D0 = con 1(%a, %e) let %y: ref D0 = con 1(%b, %x) "
             "let %i: ref D0 = call @inc(%y) let %z: u32 = 0 let %p: u32 = call @sum(%y, %z) let %q: u32 = call @sum(%i, %z) let %m: u32 = 100 "
             "let %pm: u32 = u32.mul(%p, %m) let %r: u32 = u32.add(%pm, %q) ret %r }",
         "3032 ");
}

TEST_CASE("sums, structs and wide results travel by value") {
  expect("fn @pick(%n: u32) -> sum{ | u32 | nat, u32, f32} { switch %n { 0 => { let %r: sum{ | u32 | nat, u32, f32} = variant 0() ret %r } "
         "1 => { let %r1: sum{ | u32 | nat, u32, f32} = variant 1(%n) ret %r1 } "
         "else => { let %w: nat = u32.to_nat(%n) let %f: f32 = u32.to_f32(%n) let %r2: sum{ | u32 | nat, u32, f32} = variant 2(%w, %n, %f) ret %r2 } } }\n"
         "fn @size(%s: sum{ | u32 | nat, u32, f32}) -> u32 { case %s { 0 => { let %z: u32 = 7 ret %z } 1 => { let %a: u32 = variant_get 1 0(%s) ret %a } "
         "2 => { let %b: nat = variant_get 2 0(%s) let %c: u32 = variant_get 2 1(%s) let %d: f32 = variant_get 2 2(%s) let %e: u32 = u32.from_nat(%b) "
         "let %g: u32 = f32.to_u32(%d) let %h: u32 = u32.add(%e, %c) let %i: u32 = u32.add(%h, %g) ret %i } } }\n"
         "fn @wide(%n: u32) -> struct{u32, u32, u32, u32, nat} { let %w: nat = u32.to_nat(%n) let %r: struct{u32, u32, u32, u32, nat} = struct(%n, %n, %n, %n, %w) ret %r }\n"
         "fn @main() -> u32 { let %a: u32 = 0 let %b: u32 = 1 let %c: u32 = 5 let %s0: sum{ | u32 | nat, u32, f32} = call @pick(%a) "
         "let %s1: sum{ | u32 | nat, u32, f32} = call @pick(%b) let %s2: sum{ | u32 | nat, u32, f32} = call @pick(%c) let %x: u32 = call @size(%s0) "
         "let %y: u32 = call @size(%s1) let %z: u32 = call @size(%s2) let %xy: u32 = u32.add(%x, %y) let %xyz: u32 = u32.add(%xy, %z) "
         "let %wd: struct{u32, u32, u32, u32, nat} = call @wide(%c) let %w4: nat = get 4(%wd) let %w4u: u32 = u32.from_nat(%w4) let %r: u32 = u32.add(%xyz, %w4u) ret %r }",
         "28 ");
}

TEST_CASE("closures carry captures; packed and many-constructor data") {
  expect("data D0 \"Many\" { nullary \"A\"(); nullary \"B\"(); packed \"C\"(u32); node \"D\"(u32, nat); nullary \"E\"(); nullary \"F\"(); nullary \"G\"(); nullary \"H\"(); node \"I\"(nat) }\n"
         "data D1 \"Few\" { packed \"P\"(f32); node \"Q\"(ref D1, ref D1); nullary \"R\"() }\n"
         "fn @add3(%a: u32, %b: nat, %x: u32) -> u32 { let %c: u32 = u32.from_nat(%b) let %s: u32 = u32.add(%a, %c) let %r: u32 = u32.add(%s, %x) ret %r }\n"
         "fn @show(%m: ref D0) -> u32 { case %m { 2 => { let %v: u32 = con_get 2 0(%m) ret %v } 3 => { let %p: u32 = con_get 3 0(%m) let %q: nat = con_get 3 1(%m) "
         "let %u: u32 = u32.from_nat(%q) let %s: u32 = u32.add(%p, %u) ret %s } 8 => { let %n: nat = con_get 8 0(%m) let %k: u32 = u32.from_nat(%n) ret %k } else => { let %z: u32 = 1 ret %z } } }\n"
         "fn @few(%t: ref D1) -> u32 { case %t { 0 => { let %f: f32 = con_get 0 0(%t) let %u: u32 = f32.to_u32(%f) ret %u } 1 => { let %l: ref D1 = con_get 1 0(%t) "
         "let %r: ref D1 = con_get 1 1(%t) let %a: u32 = call @few(%l) let %b: u32 = call @few(%r) let %c: u32 = u32.add(%a, %b) ret %c } 2 => { let %z: u32 = 1000 ret %z } } }\n"
         "fn @main() -> u32 { let %a: u32 = 1 let %b: nat = 20 let %c: u32 = 300 let %k: fn(u32) -> u32 = closure @add3(%a, %b) let %r: u32 = apply(%k, %c) "
         "let %m0: ref D0 = con 4() let %m1: ref D0 = con 2(%c) let %m2: ref D0 = con 3(%a, %b) let %m3: ref D0 = con 8(%b) let %v0: u32 = call @show(%m0) "
         "let %v1: u32 = call @show(%m1) let %v2: u32 = call @show(%m2) let %v3: u32 = call @show(%m3) let %s0: u32 = u32.add(%r, %v0) let %s1: u32 = u32.add(%s0, %v1) "
         "let %s2: u32 = u32.add(%s1, %v2) let %s3: u32 = u32.add(%s2, %v3) let %f: f32 = 1065353216 let %p: ref D1 = con 0(%f) let %q: ref D1 = con 2() "
         "let %t: ref D1 = con 1(%p, %q) let %t2: ref D1 = con 1(%t, %p) let %w: u32 = call @few(%t2) let %out: u32 = u32.add(%s3, %w) ret %out }",
         "1665 ");
}

#if defined(__SANITIZE_ADDRESS__)
// A compiler built with AddressSanitizer makes programs that it watches. The fault is in the Flow text: no pass writes such a program.
TEST_CASE("a read of a freed node is reported in generated code") {
  const std::string text = program("owned\n" + std::string(kList) +
                                   "fn @main() -> u32 { let %e: ref D0 = con 0() let %a: u32 = 10 let %x: ref D0 = con 1(%a, %e) drop %x "
                                   "let %r: u32 = con_get 1 0(%x) ret %r }");
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    dup2(ends[1], 2);
    const Ran ran = run(text, 0, false);
    (void)!write(2, ran.error.data(), ran.error.size());
    _exit(0);
  }
  close(ends[1]);
  std::string said;
  char part[4096];
  for (ssize_t n; (n = read(ends[0], part, sizeof part)) > 0;) said.append(part, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK_MESSAGE(said.find("AddressSanitizer: use-after-poison") != std::string::npos, said);
  CHECK(said.find("READ of size 4") != std::string::npos);
}
#endif
