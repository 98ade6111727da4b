// Virtual programs for the elaboration tests: a small Base and any files, elaborated in memory.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "checker/elaborate.h"

namespace bendc::test {

// The types and names that the sugar stands for (language.md 3.6), with bodies only where a test needs them.
inline constexpr std::string_view kSmallBase = R"(
type Empty is Data:
type Unit is Data:
  Unit{}
type Bool is Data:
  False{}
  True{}
type Nat is Data:
  Zero{}
  Succ{pred: Nat}
type Word.Nil is Data:
  WNil{}
def Word(n: Nat) -> Data:
  Word.Nil
type Word.Con<-p: Nat> is Data:
  WCon{head: Bool, tail: Word(p)}
type U32 is Data:
  U32{data: Word(32n)}
type F32 is Data:
  F32{data: Word(32n)}
type Char is Data:
  Chr{code: U32}
type String is Data:
  SNil{}
  SCon{head: Char, tail: String}
type Maybe<a, -A: Kind(a)> is Kind(a):
  None{}
  Some{value: A}
type List<a, -A: Kind(a)> is Kind(a):
  Nil{}
  Con{head: A, tail: List<a, A>}
type Sigma<a, b, -A: Kind(a), -B: @-x: A -> Kind(b)> is Kind(a <&> b):
  Tuple{fst: A, snd: B(fst)}
type Either<a, b, -A: Kind(a), -B: Kind(b)> is Kind(a <&> b):
  Inl{value: A}
  Inr{value: B}
type Array<-T: Type> is Type:
  ALeaf{value: T}
  ANode{xs: Array<T>, ys: Array<T>}
def Pair(-A: Type, -B: Type) -> Type:
  Sigma<A, B>
def Or(-A: Type, -B: Type) -> Type:
  Either<A, B>
def Exists(-A: Type, -B: @-x: A -> Type) -> Type:
  Sigma<A, B>
def Bool.and(a: Bool, b: Bool) -> Bool: a
def Bool.or(a: Bool, b: Bool) -> Bool: a
def Nat.add(a: Nat, b: Nat) -> Nat: a
def Nat.mul(a: Nat, b: Nat) -> Nat: a
def Nat.is_lt(a: Nat, b: Nat) -> Bool: True{}
def String.append(a: String, b: String) -> String: a
law U32.add:
  for a: U32
  for b: U32
  U32
law U32.is_lt:
  for a: U32
  for b: U32
  Bool
law U32.shln:
  for a: U32
  for b: Nat
  U32
law Array.new:
  for -T: Data
  for +d: Nat
  for +v: T
  Array<T>
law Array.get:
  for -T: Data
  for a: Array<T>
  for +i: U32
  Array<T>
law Array.set:
  for -T: Type
  for a: Array<T>
  for +i: U32
  for v: T
  Array<T>
def Maybe.bind(a, b, -A: Kind(a), -B: Kind(b), m: Maybe<a, A>, f: A -> Maybe<b, B>) -> Maybe<b, B>: None{}
def Maybe.pure(a, -A: Kind(a), x: A) -> Maybe<a, A>: Some{x}
def map(~f: U32 -> U32, x: U32) -> U32: f(x)
)";

class Elaborated {
 public:
  using Files = std::map<std::string, std::string>;

  // The entry file's text (with `import Base` added unless `bare`), and other files by path.
  explicit Elaborated(std::string entry, Files files = {}, bool bare = false) {
    files["main.bend"] = bare ? std::move(entry) : "import Base\n" + std::move(entry);
    FileReader reader{[files](const std::string& path, std::string& reason) -> std::optional<LoadedFile> {
      std::string plain = path.starts_with("./") ? path.substr(2) : path;
      auto it = files.find(plain);
      if (it == files.end()) {
        reason = "no such file";
        return std::nullopt;
      }
      return LoadedFile{plain, it->second};
    }};
    Stdlib stdlib{{{"base/small.bend", kSmallBase}}, {}};
    LoadResult loaded = load_program(sources, names, "main.bend", reader, stdlib);
    parse_errors = loaded.diagnostics.has_errors();
    for (const Diagnostic& d : loaded.diagnostics.all()) note(d);
    result = elaborate(loaded.program, sources, names);
    for (const Diagnostic& d : result.diagnostics.all()) note(d);
  }

  // "F1@5 C1@7": every error's code and line, in order.
  std::string errors, warnings;
  bool parse_errors = false;

  [[nodiscard]] const core::Def& def(std::string_view key) { return result.book.defs[result.book.find_def(names.intern(key))]; }
  [[nodiscard]] std::string body(std::string_view key) { return core::print_term(result.book, names, def(key).body); }
  [[nodiscard]] std::string type(std::string_view key) { return core::print_term(result.book, names, def(key).type); }

  SourceMap sources;
  Interner names;
  ElaborateResult result;

 private:
  void note(const Diagnostic& d) {
    std::string& out = severity_of(d.code) == Severity::Error ? errors : warnings;
    if (!out.empty()) out += ' ';
    out += std::string(code_text(d.code));
    if (d.span.valid()) out += "@" + std::to_string(sources.locate(d.span.file, d.span.offset).line);
  }
};

}  // namespace bendc::test
