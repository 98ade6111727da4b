#include <doctest/doctest.h>

#include "frontend/ast_print.h"
#include "frontend/parser.h"

using namespace bendc;

namespace {

struct Parsed {
  SourceMap sources;
  Interner names;
  ParseResult result;
  explicit Parsed(const std::string& text) { result = parse(sources, sources.add("t.bend", text), names); }
  std::string printed() { return print_ast(result.ast, names); }
  // "P1 4:3 P7 9:1"
  std::string errors() {
    std::string out;
    for (const Diagnostic& d : result.diagnostics.all()) {
      LineColumn at = sources.locate(d.span.file, d.span.offset);
      out += (out.empty() ? "" : " ") + std::string(code_text(d.code)) + " " + std::to_string(at.line) + ":" + std::to_string(at.column);
    }
    return out;
  }
};

// The body of a def, printed.
std::string body(const std::string& text) {
  Parsed p("def f() -> T:\n" + text + "\n");
  if (!p.errors().empty()) return p.errors();
  if (p.result.ast.decls.size() != 1 || p.result.ast.decls[0].span.end() + 1 < p.sources[FileId(0)].text.size()) return "not one declaration";
  return print_ast_node(p.result.ast, p.names, p.result.ast.decls[0].body);
}

std::string errors(const std::string& text) { return Parsed(text).errors(); }

}  // namespace

TEST_CASE("parser: operator levels and sides") {
  CHECK(body("a + b * c - d") == "(- (+ a (* b c)) d)");
  CHECK(body("A -> B -> C") == "(-> A (-> B C))");
  CHECK(body("A & B | C") == "(& A (| B C))");
  CHECK(body("a || b && c < d") == "(|| a (&& b (< c d)))");
  CHECK(body("a <> b ++ c <&> d") == "(<> a (++ b (<&> c d)))");
  CHECK(body("a .|. b .^. c .&. d << e") == "(.|. a (.^. b (.&. c (<< d e))))");
  CHECK(body("a <= b") == "(<= a b)");
  CHECK(body("a >= b") == "(>= a b)");
  CHECK(body("a >> b") == "(>> a b)");
  CHECK(body("a / b % c") == "(% (/ a b) c)");
  CHECK(body("1n+p <> t") == "(1n+ (<> p t))");
  CHECK(body("+x -> y") == "(-> (+ x) y)");
}

TEST_CASE("parser: spacing rules") {
  CHECK(body("a - b") == "(- a b)");
  CHECK(body("a -1") == "(- a 1)");
  CHECK(body("a-1") == "(- a 1)");
  CHECK(body("x = a\n-b = c\nd") == "(let x = a)\n(let - b = c)\nd");
  CHECK(body("f (x)") == "(call f x)");
  CHECK(body("a [i]") == "(index a i)");
  CHECK(body("a\n  + b") == "(+ a b)");
  CHECK(body("List<List<U32>>") == "(List<> (List<> U32))");
  CHECK(body("x & List<A>") == "(& x (List<> A))");
  CHECK(body("a <b") == "(< a b)");
  CHECK(body("a<b") == "(< a b)");
  CHECK(body("a % b") == "(% a b)");
  CHECK(body("x = a\n%e : P; q") == "(let x = a)\n(rewrite e : P)\nq");
  CHECK(body("x + f(y) > z") == "(> (+ x (call f y)) z)");
  // a glued `>` never fires
  CHECK(errors("def f() -> T:\n  a>b\n") == "P28 2:4");
  // a newline before `(` or `[` ends the spine
  CHECK(errors("def f() -> T:\n  f\n  (x)\n") == "P28 3:3");
  CHECK(body("x = f\n(x, y)") == "(let x = f)\n(tuple x y)");
}

TEST_CASE("parser: primaries") {
  CHECK(body("@x:A -> B") == "(@ x : A -> B)");
  CHECK(body("@-x:A -> @+y:B & C -> D") == "(@ -x : A -> (@ +y : (& B C) -> D))");
  CHECK(body("&x:A -> B") == "(& x : A -> B)");
  CHECK(body("(&0, &1, &2)") == "(tuple &0 &1 &2)");
  CHECK(body("D<&2, A & B>") == "(D<> &2 (& A B))");
  CHECK(body("+Maybe<U32>") == "(+ (Maybe<> U32))");
  CHECK(body("{==}") == "{==}");
  CHECK(body("{a == b : T}") == "(== a b : T)");
  CHECK(body("{a != b : T}") == "(!= a b : T)");
  CHECK(body("{5 : U32}") == "(ann 5 : U32)");
  CHECK(body("(a + 1 : U32)") == "(group (+ a 1) : U32)");
  CHECK(body("[0 : U32*8n]") == "(fill 0 : U32 * 8n)");
  CHECK(body("[0 : U32^d]") == "(fill 0 : U32 ^ d)");
  CHECK(body("[x => x : F*2n]") == "(fill (x => x) : F * 2n)");
  CHECK(body("[1, 2 3]") == "(list 1 2 3)");
  CHECK(body("\\{A: x; B: y; z}") == "(raw-match (A : x) (B : y) else z)");
  CHECK(body("%h@e : P; x") == "(rewrite h@e : P)\nx");
  CHECK(body("?hole") == "?hole");
  CHECK(body("Kind(a)") == "(Kind a)");
  CHECK(body("K{a, b}") == "(K{} a b)");
  CHECK(body("f!(~g, x)") == "(call! f ~g x)");
  CHECK(body("(x : T) => x") == "(x => x)");
  CHECK(body("+x => y => x") == "(+x => (y => x))");
  CHECK(body("a[j] <- s & t") == "(& (write a j s) t)");
  CHECK(body("((a[j] <- s)[q], 1)") == "(tuple (index (group (write a j s)) q) 1)");
  CHECK(body("300n") == "300n");
  CHECK(body("1.0e21") == "1.0e21");
}

TEST_CASE("parser: lets") {
  CHECK(body("x = 1; y") == "(let x = 1)\ny");
  CHECK(body("x : U32 = 1\ny") == "(let x : U32 = 1)\ny");
  CHECK(body("-x y = a b\nz") == "(let - x y = a b)\nz");
  CHECK(body("l +r = f(x)\n  g(y)\nz") == "(let l (+ r) = (call f x) (call g y))\nz");
  CHECK(body("Two{a, s} = r\n(b, +c) = q\nd") == "(let (Two{} a s) = r)\n(let (tuple b (+ c)) = q)\nd");
  CHECK(body("  a[0] <- 1\n  a") == "(write-let a = (write a 0 1))\na");
  CHECK(body("  a[0] <- 1; a") == "(write-let a = (write a 0 1))\na");
  CHECK(body("  a[0] <- 1") == "(write a 0 1)");
  CHECK(body("(t = f(x); g(t))") == "(group (let t = (call f x))\n(call g t))");
  CHECK(body("(x : (y : (z : T)))") == "(group x : (group y : (group z : T)))");
}

TEST_CASE("parser: match layout") {
  CHECK(body("  match b: case True{}: 1 case False{}: 0") == "(match b\n  (case (True{})\n    1)\n  (case (False{})\n    0))");
  CHECK(body("  match a, b:\n  case x, y: x") == "(match a b\n  (case x y\n    x))");
  CHECK(body("  match x as e:\n    case a b c: a") == "(match x as e\n  (case a b c\n    a))");
  CHECK(body("  match e:") == "(match e)");
  // the inner match has no cases: they do not stand right of the case around it
  CHECK(body("match a:\n  case A{}: match b:\n  case B{}: 1") == "(match a\n  (case (A{})\n    (match b))\n  (case (B{})\n    1))");
  CHECK(body("match a:\n  case A{}:\n    match b:\n      case C{}: 1\n  case B{}: 2") == "(match a\n  (case (A{})\n    (match b\n      (case (C{})\n        1)))\n  (case (B{})\n    2))");
}

TEST_CASE("parser: do blocks") {
  CHECK(body("  do IO<U32>:\n    x : U32 <- f\n    y : U32 = 1\n    g(x)\n    Unit <- h\n    return y") ==
        "(do IO< U32 >\n  (x : U32 <- f)\n  (y : U32 = 1)\n  (step (call g x))\n  (_ : Unit <- h)\n  (return y))");
  CHECK(body("  do M<>: a; b") == "(do M< >\n  (step a)\n  b)");
}

TEST_CASE("parser: declarations") {
  Parsed p("import Base\nimport ./a-b/c.bend as C  # note\nimport Scan\n\ntype L<a, -A: Kind(a)> is Kind(a):\n  Nil{}\n  Con{head: A, tail: L<a, A>}\n"
           "law add:\n  for ~n: Nat\n  for +m: Nat where P(m)\n  exs k: Nat\n  {n == k : Nat}\ndef add(n, m): {==}\n@unsafe def spin?(~f: A -> B, -x: Nat, y) -> U32: import \"./x.c\" import \"x.js\"\n");
  CHECK(p.errors() == "P24 14:19");
  CHECK(p.printed() ==
        "(import Base)\n(import ./a-b/c.bend as C)\n(import Scan)\n"
        "(type L (-a, -A : (Kind a)) is (Kind a)\n  (Nil )\n  (Con head : A, tail : (L<> a A)))\n"
        "(law add\n  (for ~n : Nat)\n  (for +m : Nat where (call P m))\n  (exs k : Nat)\n  (== n k : Nat))\n"
        "(def add (n, m)\n  {==})\n"
        "(unsafe-def spin (~f : (-> A B), -x : Nat, -y) -> U32\n  (foreign ./x.c)\n  (foreign x.js))\n");
  CHECK(Parsed("def f(x U32) -> Nat: 0n").printed() == "(def f (-x, -U32) -> Nat\n  0n)\n");
}

TEST_CASE("parser: errors point at the token that cannot be read") {
  CHECK(errors("def f(x: U32 -> U32: x\n") == "P1 1:20");
  CHECK(errors("def where() -> U32: 0") == "P2 1:5");
  CHECK(errors("def f() -> U32: g(match)") == "P4 1:19");
  CHECK(errors("def f() -> U32: \"\\q\"") == "P5 1:18");
  CHECK(errors("def f() -> U32: 0xFF") == "P6 1:17");
  CHECK(errors("def f(a: B, b: B) -> N: match a b: case x: 0n") == "P7 1:41");
  CHECK(errors("def f() -> U32: g((a, b) => a)") == "P11 1:19");
  CHECK(errors("def f() -> U32: %f(x)@e : P; {==}") == "P12 1:18");
  CHECK(errors("def f() -> U32: (a, b) c = f(x) g(y) a") == "P13 1:17");
  CHECK(errors("def f() -> U32: (a, b) : T = f(x) a") == "P13 1:17");
  CHECK(errors("def f() -> U32: g(x)!(3)") == "P14 1:21");
  CHECK(errors("def f() -> f(x)<U32>: x") == "P16 1:12");
  CHECK(errors("def f() -> List<A & B>: x") == "P16 1:19");
  CHECK(errors("def f() -> A: [0 : U32*6n]") == "P17 1:24");
  CHECK(errors("def f() -> A: [0 : U32*8]") == "P17 1:24");
  CHECK(errors("def f(x: A, ~g: B) -> C: x") == "P23 1:13");
  CHECK(errors("law l: for x: A for ~y: B C") == "P23 1:21");
  CHECK(errors("def f() -> A: g(x, ~y, ~z)") == "P23 1:20");                 // once a list
  CHECK(errors("def f() -> A:\n  g(h~x, ~y, z))") == "P23 2:6 P28 2:16");   // a parenthesis is lost
  CHECK(errors("def f() -> IO(U32): import \"./x.rs\"") == "P24 1:28");
  CHECK(errors("@inline def f() -> A: x") == "P25 1:1");
  CHECK(errors("@unsafe type A is Data:") == "P25 1:1");
  CHECK(errors("import x y\ndef f() -> A: x") == "P26 1:1");
  CHECK(errors("import ./x.bend as a.b") == "P26 1:20");
  CHECK(errors("def f() -> A: x\nimport Base") == "P28 2:1");
  CHECK(errors("def f() -> A:\n  f(x)\n  g(y)") == "P28 3:3");
  CHECK(errors("") == "");
  CHECK(errors("def f() -> A:\n\ndef g() -> A: x") == "P1 3:1");
}

TEST_CASE("parser: several mistakes, one report each") {
  CHECK(errors("def f() -> A: g(]\ndef g() -> A: h(\ndef i() -> A: 0x1\ndef where() -> A: x\n") == "P1 1:17 P1 2:16 P6 3:15 P2 4:5");
  CHECK(errors("def f(a: A) -> A:\n  match a:\n    case A{}: g(]\n    case B{}: )\n    case C{} D{}: x\n") == "P1 3:17 P1 4:15 P7 5:10");
  CHECK(errors("def f() -> A: g(\"never closed\ndef g() -> A: x\n") == "P5 1:17");
}

TEST_CASE("parser: depth is bounded, length is not") {
  auto repeat = [](const std::string& text, int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += text;
    return out;
  };
  for (const char* open : {"(", "[", "{", "f(", "x => ", "@x:A -> ", "1n+", "(x : ", "%e : ", "\\{K: ", "match a: case b: ", "a[", "List<", "[x => 0 : ", "do M<>: x <- "}) {
    INFO(open);
    Parsed p("def f() -> A: " + repeat(open, 50000) + "a");
    REQUIRE(p.result.diagnostics.size() == 1);
    CHECK(p.result.diagnostics.all()[0].code == Code::L1);
  }
  CHECK(errors("def f() -> A: " + repeat("(", 900) + "a" + repeat(")", 900)) == "");
  CHECK(errors("def f() -> A: [" + repeat("a, ", 100000) + "]") == "");
  CHECK(errors("def f() -> A: (" + repeat("a + ", 100000) + "a : T)") == "");
  CHECK(errors("def f() -> A: " + repeat("a <> ", 100000) + "a") == "");
  CHECK(errors("def f() -> A:\n" + repeat("  x = f(x)\n", 100000) + "x") == "");
  CHECK(errors("def f(a: A) -> A: match a:\n" + repeat("  case 1: 2\n", 100000)) == "");
}

TEST_CASE("parser: spans") {
  Parsed p("def f(+x: Nat) -> Nat:\n  y = x\n  y\n");
  const ast::Decl& decl = p.result.ast.decls.at(0);
  FileId file(0);
  CHECK(p.sources.text(decl.span) == "def f(+x: Nat) -> Nat:\n  y = x\n  y");
  CHECK(p.sources.text(decl.name_span) == "f");
  CHECK(p.sources.text(decl.params.at(0).span) == "+x: Nat");
  CHECK(p.sources.text(decl.params.at(0).name_span) == "x");
  const ast::Node& let = p.result.ast.nodes[decl.body];
  CHECK(p.sources.text(let.span) == "y = x\n  y");
  CHECK(p.sources.text(p.result.ast.lets.at(0).statement) == "y = x");
}
