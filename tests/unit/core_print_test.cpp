// Printing Core terms: the table of language.md section 11, precedence, shadowing, depth.
#include <doctest/doctest.h>

#include "elaborate_fixture.h"

using bendc::test::Elaborated;
namespace core = bendc::core;

namespace {

std::string printed(const std::string& type, const std::string& text) {
  Elaborated e("def f() -> " + type + ": " + text + "\n");
  CHECK(e.errors == "");
  return e.body("f");
}

}  // namespace

TEST_CASE("print: values") {
  CHECK(printed("U32", "42") == "42");
  CHECK(printed("F32", "1.0") == "1.0");
  CHECK(printed("Nat", "Succ{Succ{Zero{}}}") == "2n");
  CHECK(printed("Char", "'\\''") == "'\\''");
  CHECK(printed("String", "SCon{'a', SCon{'\\n', SNil{}}}") == "\"a\\n\"");
  CHECK(printed("String", "\"\\u{1}\\\"\"") == "\"\\u{1}\\\"\"");
  CHECK(printed("List<U32>", "Con{1, Con{2, Nil{}}}") == "[1, 2]");
  CHECK(printed("Array<U32>", "ANode{ANode{ALeaf{1}, ALeaf{2}}, ANode{ALeaf{3}, ALeaf{4}}}") == "[1, 2, 3, 4]");
  CHECK(printed("Maybe<List<U32>>", "Some{[[], [1]]}") == "Some{[[], [1]]}");
  CHECK(printed("U32 & U32", "((1, 2), 3, 4)") == "((1, 2), 3, 4)");
  std::string bits = "WNil{}";
  for (int i = 31; i >= 0; --i) bits = std::string("WCon{") + (i == 1 || i == 3 ? "True" : "False") + "{}, " + bits + "}";
  CHECK(printed("U32", "U32{" + bits + "}") == "10");
}

TEST_CASE("print: functions and precedence") {
  CHECK(printed("Nat", "x => +y => 1n+x") == "x => +y => 1n+x");
  CHECK(printed("Nat", "x => x => x") == "x => x => x");
  CHECK(printed("Nat", "{x => x : Nat -> Nat}(0n)") == "{x => x : @_:Nat -> Nat}(0n)");
  CHECK(printed("Nat", "x => (x <> x) <> x") == "x => (x <> x) <> x");
  CHECK(printed("Type", "((U32 -> U32) -> (U32 | U32) & U32)") == "@_:(@_:U32 -> U32) -> (U32 | U32) & U32");
  CHECK(printed("Quant", "(&1 <&> &2) <&> &0") == "(&1 <&> &2) <&> &0");
}

TEST_CASE("print: a hidden variable shows its level") {
  Elaborated e("def f(x: Nat) -> Nat: x\n");
  core::Book& book = e.result.book;
  bendc::Name x = e.names.intern("x"), y = e.names.intern("y");
  core::TermId outer = book.add({.kind = core::TermKind::Var, .a = 0}, {}), inner = book.add({.kind = core::TermKind::Var, .a = 2}, {});
  CHECK(core::print_term(book, e.names, outer, {x, y, x}) == "x^0");
  CHECK(core::print_term(book, e.names, inner, {x, y, x}) == "x");
}

TEST_CASE("print: depth needs no stack") {
  Elaborated e("def f() -> Maybe<Nat>: Some{0n}\n");
  core::Book& book = e.result.book;
  core::TermId at = e.def("f").body;
  const uint32_t some = book.terms[at].a;
  for (int i = 0; i < 200000; ++i) {
    bendc::Slice list = book.lists.add({&at, 1});
    at = book.add({.kind = core::TermKind::Ctr, .a = some, .b = list.offset, .c = list.length}, {});
  }
  std::string text = core::print_term(book, e.names, at);
  CHECK(text.size() == 200001 * 6 + 2);
  CHECK(text.starts_with("Some{Some{"));
}
