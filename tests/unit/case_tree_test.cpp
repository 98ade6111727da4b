// Case trees (language.md section 6): the shape of the tree for given rows, and the F codes.
#include <doctest/doctest.h>

#include "elaborate_fixture.h"

using bendc::test::Elaborated;

namespace {

std::string body_of(const std::string& text) {
  Elaborated e(text);
  CHECK(e.errors == "");
  return e.errors.empty() ? e.body("f") : "";
}

std::string errors_of(const std::string& text) { return Elaborated(text).errors; }

}  // namespace

TEST_CASE("case tree: the example of the reference") {
  CHECK(body_of(R"(def f(n: Nat, xs: List<U32>, d: U32) -> U32:
  match n xs:
    case 0n, h <> _: h
    case 1n+p, _ <> t: f(p, t, d)
    case _, []: d
)") == "\\{Zero: \\{Con: h => tail => d => h; Nil: d => d}; Succ: p => \\{Con: head => t => d => f(p, t, d); Nil: d => d}}");
}

TEST_CASE("case tree: variable columns leave their binder open") {
  CHECK(body_of(R"(def f(n: Nat, m: Nat) -> Nat:
  match n:
    case k:
      match m:
        case 0n: k
        case 1n+p: p
)") == "n => \\{Zero: n; Succ: p => p}");
  CHECK(body_of(R"(def f(a: Bool, b: Bool) -> Bool:
  match a b:
    case _, True{}: a
    case x, False{}: x
)") == "a => \\{True: a; False: a}");
}

TEST_CASE("case tree: a catch-all stands for the rebuilt constructor") {
  CHECK(body_of(R"(def f(n: Nat) -> Nat:
  match n:
    case 2n: 0n
    case k: 1n+k
)") == "\\{Succ: \\{Succ: \\{Zero: 0n; pred => 3n+pred}; pred => 2n+pred}; k => 1n+k}");
}

TEST_CASE("case tree: marks of the rows are joined") {
  CHECK(body_of(R"(def f(n: Nat, b: Bool) -> Nat:
  match n b:
    case +k, True{}: k
    case k, False{}: 0n
)") == "+n => \\{True: n; False: 0n}");
  CHECK(body_of("def f(m: Maybe<&2, Nat>) -> Nat:\n  match m:\n    case Some{+x}: x\n    case None{}: 0n\n") == "\\{Some: +x => x; None: 0n}");
}

TEST_CASE("case tree: literals") {
  SUBCASE("numbers are equality tests") {
    CHECK(body_of("def f(x: U32) -> U32:\n  match x:\n    case 7: 1\n    case 9: 2\n    case k: k\n") == "\\{7: 1; 9: 2; k => k}");
  }
  SUBCASE("bits are opened when the column opens one") {
    std::string tree = body_of("def f(x: U32) -> U32:\n  match x:\n    case 1: 1\n    case U32{WCon{True{}, r}}: 2\n    case _: 3\n");
    CHECK(tree.starts_with("\\{U32: \\{WCon: \\{True: \\{WCon: \\{False:"));
  }
  SUBCASE("large Nat literals are tests, also beside constructors") {
    CHECK(body_of("def f(n: Nat) -> Nat:\n  match n:\n    case 1000n: 1n\n    case 1n+p: p\n    case 0n: 0n\n") == "\\{1000n: 1n; Succ: p => p; Zero: 0n}");
    CHECK(body_of("def f(n: Nat) -> Nat:\n  match n:\n    case 1n+p: p\n    case 1000n: 1n\n    case _: 0n\n") == "\\{Succ: \\{999n: 999n; p => p}; n => 0n}");
    CHECK(body_of("def f(n: Nat, b: Bool) -> Nat:\n  match n b:\n    case 1000n, True{}: 1n\n    case 2n+p, _: p\n    case _, _: 0n\n") ==
          "\\{1000n: \\{True: 1n; b => 998n}; Succ: \\{Succ: p => b => p; pred => b => 0n}; n => b => 0n}");
  }
  SUBCASE("strings and characters") {
    CHECK(body_of("def f(s: String) -> Nat:\n  match s:\n    case \"a\": 1n\n    case _: 0n\n") ==
          "\\{SCon: \\{Chr: \\{97: \\{SNil: 1n; tail => 0n}; code => tail => 0n}}; s => 0n}");
  }
}

TEST_CASE("case tree: inner matches on a row's own variable fold") {
  SUBCASE("the constructor is known in hit arms and ruled out in the miss arm") {
    CHECK(body_of(R"(def f(n: Nat, m: Nat) -> Nat:
  match n m:
    case 0n, 0n: 0n
    case y, z:
      match y:
        case 0n: 1n
        case 1n+p: p
)") == "\\{Zero: \\{Zero: 0n; z => 1n}; Succ: p => m => p}");
  }
  SUBCASE("a folded field with a constructor pattern needs its field pending") {
    CHECK(body_of(R"(def f(n: Nat) -> Nat:
  match n:
    case 0n: 0n
    case y:
      match y:
        case 0n: 1n
        case 1n+0n: 2n
        case 2n+p: p
)") == "\\{Zero: 0n; Succ: \\{Zero: 2n; Succ: p => p}}");
  }
  SUBCASE("a literal") {
    CHECK(body_of(R"(def f(n: U32, b: Bool) -> U32:
  match n b:
    case 5, True{}: 0
    case y, _:
      match y:
        case 5: 1
        case _: y
)") == "\\{5: \\{True: 0; b => 1}; y => b => y}");
  }
  SUBCASE("no row left") {
    CHECK(errors_of(R"(def f(n: Nat, b: Bool) -> Nat:
  match n b:
    case 0n, True{}: 0n
    case y, _:
      match y:
        case 1n+p: p
)") == "C15@6");
  }
  SUBCASE("a scrutinee that its own row opened does not fold") {
    CHECK(errors_of("def f(n: Nat) -> Nat:\n  match n:\n    case 0n: 0n\n    case 1n+p:\n      match n:\n        case _: p\n") == "F2@6");
  }
}

TEST_CASE("case tree: refused scrutinees") {
  CHECK(errors_of("def f(a: Nat, b: Bool) -> Nat:\n  match b a:\n    case True{}, 0n: 0n\n    case _, _: 1n\n") == "F1@3");
  CHECK(errors_of("def f(a: Nat) -> Nat:\n  match a, a:\n    case 0n, 0n: 0n\n    case _, _: 1n\n") == "F2@3");
  CHECK(errors_of("def f(a: Nat) -> Nat:\n  match Nat.add:\n    case _: a\n") == "F1@3");
  CHECK(errors_of("def f(a: Nat) -> Nat:\n  match 0n:\n    case _: a\n") == "F2@3");
  CHECK(errors_of("def f(a: Nat) -> Nat:\n  match Nat.add(a, a):\n    case _: a\n") == "F3@3");
  CHECK(errors_of("def f(a: Nat) -> Nat:\n  k = Nat.add(a, 1n)\n  match a:\n    case _: k\n") == "F1@4");
  CHECK(errors_of("def f(a: Nat) -> Nat:\n  k = Nat.add(a, 1n)\n  match k:\n    case 0n: a\n    case _: a\n") == "F4@4");
  CHECK(errors_of("def f(a: Nat) -> Nat:\n  k = Nat.add(a, 1n)\n  match k:\n    case j: j\n") == "");
  CHECK(errors_of("def f(a: Nat) -> Nat -> Nat:\n  x => (match a: case 0n: 0n case _: x)\n") == "F1@3");
  CHECK(errors_of("def f(a: Nat) -> Nat:\n  +k j = Nat.add(a, 1n) Nat.add(a, 2n)\n  1n+p = j\n  p\n") == "F4@4");
}

TEST_CASE("case tree: unreached rows are still read") {
  Elaborated e("def f(b: Bool, x: U32) -> U32:\n  match b:\n    case True{}: 0\n    case False{}: 1\n    case _: (x + y : U32)\n");
  CHECK(e.errors == "");
  CHECK(e.warnings == "W2@6");
  CHECK(errors_of("def f(b: Bool, x: U32) -> U32:\n  match b:\n    case True{}: 0\n    case False{}: 1\n    case _: x + 1\n") == "P18@6");
  CHECK(errors_of("def f(b: Bool, x: U32) -> U32:\n  match x b:\n    case 0, True{}: 0\n    case _, Truee{}: 1\n") == "P10@5");
  CHECK(Elaborated("def f(x: U32) -> U32:\n  match x:\n    case y: y\n    case 0: 0\n").warnings == "W1@5");
  CHECK(Elaborated("def f(x: U32) -> U32:\n  match x:\n    case 0: 0\n    case 0: 1\n    case y: y\n").warnings == "W1@5");
}

TEST_CASE("case tree: a tree that multiplies is stopped") {
  std::string fields, rows;
  for (int i = 0; i < 20; ++i) fields += "a" + std::to_string(i) + ": Bool ";
  for (int r = 0; r < 20; ++r) {
    rows += "    case P{";
    for (int i = 0; i < 20; ++i) rows += i == r ? "True{}, " : "_, ";
    rows += "}, P{";
    for (int i = 0; i < 20; ++i) rows += i == (r * 7) % 20 ? "False{}, " : "_, ";
    rows += "}: 1\n";
  }
  CHECK(errors_of("type B is Data:\n  P{" + fields + "}\ndef f(p: B, q: B) -> U32:\n  match p q:\n" + rows + "    case _, _: 0\n") == "L1@5");
}
