// Names, sugar and declarations: what the surface forms become, and the codes elaboration reports.
#include <doctest/doctest.h>

#include "elaborate_fixture.h"

using bendc::test::Elaborated;

namespace {

std::string body_of(const std::string& text) {
  Elaborated e(text);
  CHECK(e.errors == "");
  return e.errors.empty() ? e.body("f") : "";
}

std::string type_of(const std::string& text) {
  Elaborated e(text);
  CHECK(e.errors == "");
  return e.type("f");
}

std::string errors_of(const std::string& text) { return Elaborated(text).errors; }

}  // namespace

TEST_CASE("elaborate: operators take the type of the group around them") {
  CHECK(body_of("def f(x: U32) -> U32: (x + (x + 1) : U32)\n") == "x => U32.add(x, U32.add(x, 1))");
  CHECK(body_of("def f(x: U32) -> Bool: (x + 1 < 3 && x < 4 : U32)\n") == "x => Bool.and(U32.is_lt(U32.add(x, 1), 3), U32.is_lt(x, 4))");
  CHECK(body_of("def f(x: U32) -> Bool: (Bool.and((x < 3), (x < 4)) : U32)\n") == "x => Bool.and(U32.is_lt(x, 3), U32.is_lt(x, 4))");
  CHECK(body_of("def f(x: U32) -> U32: (y = U32.add(x, 1); y + 1 : U32)\n") == "x => y = U32.add(x, 1); U32.add(y, 1)");
  CHECK(body_of("def f(x: Nat) -> Nat: (1n+x + x : Nat)\n") == "x => 1n+Nat.add(x, x)");
  CHECK(body_of("def f(a: Array<U32>, x: U32) -> Array<U32>: a[x + 1]\n") == "a => x => Array.get(U32, a, U32.add(x, 1))");
  CHECK(errors_of("def f(x: U32) -> U32: x + 1\n") == "P18@2");
  CHECK(errors_of("def f(x: U32) -> U32: (f(x + 1) : U32)\n") == "P18@2");
  CHECK(errors_of("def f(x: U32) -> U32: {x + 1 : U32}\n") == "P18@2");
  CHECK(errors_of("def f(x: U32) -> U32: y : U32 = x + 1; y\n") == "P18@2");
  CHECK(errors_of("def f(x: U32) -> U32: (x + 1 : U32 -> U32)\n") == "P19@2");
  CHECK(errors_of("def f(x: U32) -> U32: (f(x) : U32 -> U32)\n") == "");
}

TEST_CASE("elaborate: literals and data sugar") {
  CHECK(body_of("def f() -> Nat: 2n+3n\n") == "5n");
  CHECK(body_of("def f(x: Nat) -> Nat: 300n+x\n") == "x => Nat.add(300n, x)");
  CHECK(body_of("def f(x: Nat) -> Nat: 3n+x\n") == "x => 3n+x");
  CHECK(body_of("def f() -> List<U32>: [1, 2]\n") == "[1, 2]");
  CHECK(body_of("def f(t: List<U32>) -> List<U32>: 1 <> 2 <> t\n") == "t => 1 <> 2 <> t");
  CHECK(body_of("def f() -> U32 & U32 & U32: (1, 2, 3)\n") == "(1, 2, 3)");
  CHECK(body_of("def f() -> Char: 'c'\n") == "'c'");
  CHECK(body_of("def f() -> String: \"a\\n\" ++ \"b\"\n") == "String.append(\"a\\n\", \"b\")");
  CHECK(body_of("def f() -> F32: 1.5\n") == "1.5");
  CHECK(body_of("def f() -> Array<U32>: [0 : U32*8n]\n") == "Array.new(U32, 3n, 0)");
  CHECK(body_of("def f(d: Nat) -> Array<U32>: [0 : U32^d]\n") == "d => Array.new(U32, d, 0)");
  CHECK(body_of("def f(a: Array<U32>) -> Array<U32>:\n  a[1] <- 2\n  a\n") == "a => a = Array.set(U32, a, 1, 2); a");
}

TEST_CASE("elaborate: types and fills") {
  CHECK(type_of("def f(x: List<U32>) -> +List<U32>: []\n") == "@x:List<&1, U32> -> List<&2, U32>");
  CHECK(type_of("def f(x: List<&2, U32>) -> U32 & U32 | U32: 0\n") == "@x:List<&2, U32> -> U32 & U32 | U32");
  CHECK(type_of("def f(-A: Type, +g: @-x: A -> A) -> Type: A\n") == "@-A:Type -> @+g:(@-x:A -> A) -> Type");
  CHECK(type_of("def f(x U32) -> {x != U32 : Quant}: 0\n") == "@-x:Quant -> @-U32:Quant -> @_:{x == U32 : Quant} -> Empty");
  CHECK(type_of("def f() -> &x: Nat -> {x == 0n : Nat}: 0\n") == "&x:Nat -> {x == 0n : Nat}");
  CHECK(errors_of("def f(x: +Nat) -> Nat: 0n\n") == "P15@2");
  CHECK(errors_of("def f(x: +List) -> Nat: 0n\n") == "P15@2");
  // Fills need the datatype above; below, the arguments stay as written.
  CHECK(type_of("def f(x: D<Nat>) -> Nat: 0n\ntype D<a, -A: Kind(a)> is Kind(a): K{x: A}\n") == "@x:D<Nat> -> Nat");
}

TEST_CASE("elaborate: lets") {
  CHECK(body_of("def f(x: U32) -> U32:\n  +y = f(x)\n  z w = f(y) f(y)\n  -k = f(1)\n  v : U32 = 5\n  v\n") ==
        "x => +y = f(x); z w = f(y) f(y); -k = f(1); v = {5 : U32}; v");
  Elaborated e("def f(x: U32) -> U32:\n  a b = f(x) f(a)\n  a\n");
  CHECK(e.errors == "C1@3");
}

TEST_CASE("elaborate: do blocks") {
  CHECK(body_of(R"(def f(m: Maybe<&2, U32>) -> Maybe<&2, U32>:
  do Maybe<&2, U32>:
    +x : U32 <- m
    y : U32 = x
    Unit <- None{}
    return y
)") == "m => Maybe.bind(&2, U32, U32, m, +x => y = {x : U32}; Maybe.bind(&2, Unit, U32, None{}, _ => Maybe.pure(&2, U32, y)))");
  CHECK(body_of("def f(m: Maybe<U32>) -> Maybe<U32>:\n  do Maybe<U32>:\n    m\n") == "m => {m : Maybe<&1, U32>}");
}

TEST_CASE("elaborate: rewrites bind the endpoint and the evidence") {
  CHECK(body_of("def f(x: Nat, e: {x == x : Nat}) -> Nat:\n  %h@e : {_ == x : Nat};\n  x\n") == "x => e => %h@e : {_ == x : Nat}; x");
  CHECK(errors_of("def f(x: Nat) -> Nat: _\n") == "C1@2");
}

TEST_CASE("elaborate: raw matches, lambdas, bangs, templates") {
  CHECK(body_of("def f() -> Nat -> Nat: \\{Zero: 0n; Succ: p => p}\n") == "\\{Zero: 0n; Succ: p => p}");
  CHECK(body_of("def f(x: U32) -> U32: f!(x)\n") == "x => f!(x)");
  CHECK(body_of("def f(x: U32) -> U32: map(~(y => y), x)\n") == "x => map(~y => y, x)");
  CHECK(errors_of("def f(x: U32 -> U32) -> U32: x!(3)\n") == "P14@2");
  CHECK(errors_of("def f(x: U32) -> U32: map(~f, ~f, x)\n") == "P23@2");
  CHECK(errors_of("def f(x: U32) -> U32: f(~x)\n") == "P23@2");
  CHECK(errors_of("def f(x: U32) -> U32: t(~f, x)\ndef t(~g: U32 -> U32, x: U32) -> U32: g(x)\n") == "P23@2");
}

TEST_CASE("elaborate: unknown names") {
  Elaborated e("def foo(x: U32) -> U32: fooo(x)\n");
  CHECK(e.errors == "C1@2");
  CHECK(e.result.diagnostics.all()[0].fix == "did you mean `foo`?");
  CHECK(e.def("foo").broken);
  CHECK(errors_of("def f() -> Nat: Some{1}\ndef g() -> Nat: Sone{1}\n") == "C1@3");
  CHECK(errors_of("def f(x: List{&1, U32}) -> Nat: 0n\n") == "C12@2");
  CHECK(errors_of("def f(x: Pair<U32, U32>) -> Nat: 0n\n") == "C1@2");
  CHECK(errors_of("def f() -> Bool: True\n") == "C1@2");
  CHECK(Elaborated("def f() -> Nat: 0n\n", {}, true).errors == "C1@1");
}

TEST_CASE("elaborate: declarations collide") {
  CHECK(errors_of("def f(x: U32) -> U32: x\ndef f(x: U32) -> U32: x\n") == "P20@3");
  CHECK(errors_of("def Nat.add(x: U32) -> U32: x\n") == "P20@2");
  CHECK(errors_of("type A is Data: K{}\ntype B is Data: K{}\n") == "P20@3");
  CHECK(errors_of("type A is Data: K{x: Nat, x: Nat}\n") == "P20@2");
  CHECK(errors_of("type A is Data: K{}\ndef K(x: Nat) -> Nat: x\n") == "");
  CHECK(errors_of("def g(x): x\n") == "P21@2");
}

TEST_CASE("elaborate: laws and their fills") {
  Elaborated e("law f:\n  for ~k: Nat\n  for +n: Nat where {n == k : Nat}\n  exs m: Nat\n  {m == k : Nat}\ndef f(k, n): (0n, {==})\n");
  CHECK(e.errors == "");
  CHECK(e.type("f") == "@-k:Nat -> @+n:(&n:Nat -> {n == k : Nat}) -> &m:Nat -> {m == k : Nat}");
  CHECK(e.body("f") == "k => n => (0n, {==})");
  CHECK(e.def("f").arity == 2);
  CHECK(e.def("f").templates == 1);
  CHECK(errors_of("law f:\n  for n: Nat\n  Nat\ndef f(n): n\ndef f(n): n\n") == "P20@6");
  CHECK(errors_of("law f:\n  for ~n: Nat\n  Nat\ndef f(): 0n\n") == "P22@5");
  CHECK(errors_of("law f:\n  for n: Nat\n  Nat\ndef f(n: Nat) -> Nat: n\n") == "P22@5");
}

TEST_CASE("elaborate: modules") {
  Elaborated::Files files{{"lib/vec.bend", "import Base\ntype Vec is Data:\n  Vec{x: U32}\nlaw one:\n  for n: Nat\n  Nat\ndef add(a: Vec, b: Vec) -> Vec: a\ndef Vec.add(a: Vec, b: Vec) -> Vec: go(a)\ndef go(a: Vec) -> Vec: a\n"}};
  Elaborated e("import ./lib/vec.bend as V\ndef f(v: V.Vec) -> V.Vec:\n  match v:\n    case V.Vec{x}: (V.Vec{x} + V.Vec{1} : V.Vec)\ndef V.one(n): n\n", files);
  CHECK(e.errors == "");
  CHECK(e.body("f") == "\\{lib/vec.Vec: x => lib/vec.Vec.add(lib/vec.Vec{x}, lib/vec.Vec{1})}");
  CHECK(e.body("lib/vec:one") == "n => n");
  CHECK(Elaborated("import ./lib/vec.bend as V\ndef V.two(n: Nat) -> Nat: n\n", files).errors == "P20@3");
  CHECK(Elaborated("import ./lib/vec.bend as U32\ndef f(n: U32) -> U32: U32.add(n, 1)\n", files).errors == "P27@3");
  CHECK(Elaborated("import ./lib/vec.bend as V\ndef f(n: Vec) -> Nat: 0n\n", files).errors == "C1@3");
}

TEST_CASE("elaborate: long chains need neither stack nor time") {
  std::string lets = "def f(x: U32) -> U32:\n", sum = "def f(x: U32) -> U32:\n  (x", list = "def f() -> List<U32>:\n  [";
  for (int i = 0; i < 50000; ++i) {
    lets += "  x = U32.add(x, 1)\n";
    sum += " + x";
    list += "1, ";
  }
  CHECK(errors_of(lets + "  x\n") == "");
  CHECK(errors_of(sum + " : U32)\n") == "");
  CHECK(errors_of(list + "]\n") == "");
}
