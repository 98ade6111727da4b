// What other languages have and this one has not, recognised around the first error of a declaration: the rule and what to write instead.
// A hint looks at tokens only, so it may be wrong about what was meant; it never changes what is an error.
#include <algorithm>
#include <span>

#include "frontend/parser_impl.h"

namespace bendc {

namespace {

struct Foreign {
  std::string_view word, note, fix;
};

constexpr std::string_view kNoIf = "a choice is a `match` on a parameter", kNoLet = "two names on one line start a parallel let", kLet = "write `x = value`, or `x : T = value`";
constexpr std::string_view kNoLoop = "a def calls itself with a smaller argument", kLoop = "count a Nat down: `match n:`, then `case 0n: ..` and `case 1n+p: ..`";
constexpr std::string_view kTypeParameters = "a def has no type parameters of its own kind: a type is an ordinary, erased argument", kErased = "write `(-A: Type, ..)`, and pass the type at each call";
constexpr std::string_view kComment = "a comment starts with `#` and ends with its line";
constexpr std::string_view kUnary = "there is no unary minus", kSubtract = "subtract from zero: `(0.0 - x : F32)`; U32 and Nat have no negative numbers";

// First words of a statement that are plain names here (`for` heads a clause of a law).
constexpr Foreign kStatements[] = {
    {"if", kNoIf, "pass the Bool to a def that matches it: `match c:`, then `case True{}: ..` and `case False{}: ..`"},
    {"else", kNoIf, "write `case False{}: ..` or `case _: ..`"},
    {"elif", kNoIf, "pass the Bool to a def that matches it"},
    {"switch", kNoIf, "write `match x:` and a `case` for each constructor"},
    {"while", kNoLoop, kLoop},
    {"for", kNoLoop, kLoop},
    {"let", kNoLet, kLet},
    {"var", kNoLet, kLet},
    {"const", kNoLet, kLet},
    {"val", kNoLet, kLet},
};

constexpr std::string_view kTypes = "a datatype is declared by `type`, with its kind", kType = "write `type T is Data:` and its constructors, such as `K{x: U32}`";
constexpr std::string_view kDefs = "a definition starts with `def`", kDef = "write `def f(x: T) -> R: body`";
constexpr std::string_view kModifiers = "a declaration has no modifier but `@unsafe`", kNoModifier = "drop it: every declaration is visible under the alias of its file";
constexpr Foreign kDeclarations[] = {
    {"data", kTypes, kType}, {"struct", kTypes, kType}, {"enum", kTypes, kType}, {"record", kTypes, kType}, {"class", kTypes, kType}, {"object", kTypes, kType},
    {"fn", kDefs, kDef}, {"fun", kDefs, kDef}, {"func", kDefs, kDef}, {"function", kDefs, kDef}, {"let", kDefs, kDef}, {"const", kDefs, kDef},
    {"unsafe", "the attribute is written with `@`", "write `@unsafe def`, or `def f?(..)`"},
    {"pub", kModifiers, kNoModifier}, {"public", kModifiers, kNoModifier}, {"private", kModifiers, kNoModifier}, {"static", kModifiers, kNoModifier}, {"export", kModifiers, kNoModifier},
    {"async", kModifiers, kNoModifier}, {"inline", kModifiers, kNoModifier},
    {"from", "imports are whole modules under an alias", "write `import ./path.bend as Alias` at the top of the file"},
};

// Names between two terms of one line, where a parallel let is read.
constexpr Foreign kOperators[] = {
    {"and", "`&&` joins two Bools", "write `a && b`"},
    {"or", "`||` joins two Bools", "write `a || b`"},
    {"xor", "`.^.` is the bitwise exclusive or", "write `(a .^. b : U32)`"},
    {"mod", "`%` is the remainder", "write `(a % b : U32)`"},
    {"div", "`/` is the quotient", "write `(a / b : U32)`"},
    {"in", "there is no `in`", ""},
    {"not", "`Bool.not` is a function", "write `Bool.not(x)`"},
};
constexpr std::string_view kLambdas[] = {"lambda", "fun", "fn", "func", "function"};

const Foreign* find(std::span<const Foreign> table, std::string_view word) {
  const auto it = std::find_if(table.begin(), table.end(), [&](const Foreign& f) { return f.word == word; });
  return it == table.end() ? nullptr : &*it;
}

bool name_head(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

}  // namespace

void Parser::hint(size_t first_report, uint32_t first_token) {
  if (diagnostics.size() == first_report) return;
  Diagnostic& d = diagnostics.at(first_report);
  const std::vector<Token>& items = tokens().items;
  const auto found = std::lower_bound(items.begin(), items.end(), d.span.offset, [](const Token& t, uint32_t offset) { return t.offset < offset; });
  if (found == items.end() || d.span.offset != found->offset) return;
  const uint32_t at = static_cast<uint32_t>(found - items.begin());
  auto say = [&](std::string_view note, std::string_view fix) {
    d.notes.assign(1, std::string(note));
    d.fix = fix;
  };
  auto is = [&](uint32_t i, TokenKind kind) { return i < items.size() && items[i].kind == kind; };
  auto twice = [&] { return at > 0 && items[at - 1].kind == found->kind && items[at - 1].end() == found->offset; };   // `::`, `**`, `//`
  auto line_start = [&](uint32_t i) {
    while (i > 0 && !items[i].newline_before()) --i;
    return i;
  };
  const bool no_term = d.message.starts_with("expected a term");
  const uint32_t line = line_start(at);

  if (d.code == Code::P28 && (ast.decls.empty() || found->column == 1)) {
    if (const Foreign* f = find(kDeclarations, text(*found))) return say(f->note, f->fix);
  }
  // A statement that starts with a word of another language: on the line of the error, or on the two before it.
  uint32_t lines = 0;
  for (uint32_t i = at + 1; i-- > first_token && lines < 3;) {
    if (items[i].newline_before()) ++lines;
    const bool starts = items[i].newline_before() || (i > first_token && items[i - 1].kind == TokenKind::Colon);
    if (!starts || (items[i].kind != TokenKind::Ident && (items[i].kind != TokenKind::KwFor || is(first_token, TokenKind::KwLaw)))) continue;
    if (const Foreign* f = find(kStatements, text(items[i]))) return say(fmt::format("there is no `{}`: {}", f->word, f->note), f->fix);
  }
  if (d.code == Code::P7) {
    for (uint32_t i = at; i < items.size() && !is(i, TokenKind::Colon); ++i)
      if (is(i, TokenKind::Ident) && text(items[i]) == "if") return say("a case has no guard: its patterns alone decide", "pass the Bool to a def that matches it");
  }
  if (d.code == Code::P7 && is(at, TokenKind::U32) && is(at + 1, TokenKind::Plus) && items[at + 1].offset == found->end())
    return say("`1n+p` matches a Nat; a U32 is matched by its literals alone", "count a Nat down, or write `case 0: ..` and `case _: ..`");
  if (no_term && found->kind == TokenKind::Equal && at >= 2 && items[at - 1].end() == found->offset && is(at - 2, TokenKind::Ident) && items[at - 1].length == 1)
    return say("no value changes: a let gives the new one a name, which may be the old one", fmt::format("write `{0} = ({0} {1} .. : T)`", text(items[at - 2]), text(items[at - 1])));
  if (found->kind == TokenKind::Equal && d.message.starts_with("expected `is` and the kind")) return say(kTypes, kType);
  if (no_term && at >= 2 && (found->kind == TokenKind::Colon || found->kind == TokenKind::Equal) && is(at - 1, TokenKind::Ident)) {
    uint32_t open = at - 1;   // the bracket around `x: ..`
    for (uint32_t depth = 0; open-- > line;) {
      if (is(open, TokenKind::RightBrace) || is(open, TokenKind::RightParen)) ++depth;
      if ((is(open, TokenKind::LeftBrace) || is(open, TokenKind::LeftParen)) && depth-- == 0) break;
    }
    if (open > line && is(open, TokenKind::LeftParen) && is(open - 1, TokenKind::Ident)) return say("arguments are given in the order of the parameters, without names", fmt::format("write `{}(a, b)`", text(items[open - 1])));
    if (open > line && is(open, TokenKind::LeftBrace) && is(open - 1, TokenKind::Ident)) return say("fields are given in the order of their declaration, without names", fmt::format("write `{}{{a, b}}`", text(items[open - 1])));
  }
  if (d.code == Code::P28 && ast.decls.empty() && found->kind == TokenKind::Ident && is(at + 1, TokenKind::Equal)) {
    return say("a constant is a def without parameters", fmt::format("write `def {}() -> T: value`", text(*found)));
  }
  if (is(at, TokenKind::KwDef) && found->column > 1 && d.message.starts_with("expected the body")) return say("definitions do not nest", "move the inner one above this one");
  if (is(first_token, TokenKind::KwLaw)) {
    for (uint32_t i = first_token; i < at; ++i)
      if (is(i, TokenKind::Ident) && (text(items[i]) == "forall" || text(items[i]) == "all" || text(items[i]) == "exists")) return say("the clauses of a law are `for x: A` and `exs x: A`, and then its claim", "write `for n: Nat`");
  }
  if (d.message.starts_with("expected `:` after the name") && at >= 2 && is(at - 2, TokenKind::Ampersand)) return say("`&x: A -> B` is the type of pairs whose second part depends on the first; there are no references", "write the type alone");
  if (found->kind == TokenKind::Equal && d.message.starts_with("expected `)` to close the parameters")) return say("parameters have no default values", "write a second def that calls this one with the value");
  if (d.message.starts_with("expected `=` after the")) {
    // What follows the names may be missing: then they stand on the line before.
    const uint32_t from = found->newline_before() && at > 0 ? line_start(at - 1) : line;
    for (uint32_t i = from; i < at; ++i) {
      if (!is(i, TokenKind::Ident)) continue;
      if (const Foreign* f = find(kOperators, text(items[i])); f && (i > from || f->word == "not")) return say(f->note, f->fix);
      if (std::find(std::begin(kLambdas), std::end(kLambdas), text(items[i])) != std::end(kLambdas)) return say("a function value is written with `=>` and has no keyword", "write `x => body`");
    }
    if (found->kind == TokenKind::Colon) return say("the names of a parallel let have no types", "give the value its type: `a b = {f(x) : T} g(y)`");
  }
  if (d.message.starts_with("expected `)` to close the group") && (found->kind == TokenKind::U32 || found->kind == TokenKind::Nat || found->kind == TokenKind::F32 || found->kind == TokenKind::String || found->kind == TokenKind::Char)) {
    return say("a tuple's parts are separated by commas, and an operator stands between two operands", "write `(a, b)` for a pair");
  }
  switch (found->kind) {
    case TokenKind::EqualEqual: return say("`==` is no operator on values; `{a == b : T}` is the type of proofs that they are equal", "compare with `T.is_eq(a, b)`, such as `U32.is_eq(a, b)`");
    case TokenKind::NotEqual: return say("`!=` is no operator on values; `{a != b : T}` is the type of proofs that they differ", "compare with `T.is_eq(a, b)` and `Bool.not`");
    case TokenKind::LeftBrace:
      if (d.message.starts_with("expected `:`")) return say("a body stands after a `:`; braces hold the fields of a constructor", "write `:` and the body, without braces");
      break;
    case TokenKind::KwCase:
      if (d.code == Code::P4 && at > 0 && is(at - 1, TokenKind::LeftBrace)) return say("the cases of a match stand below a `:`, without braces", "write `match x:`, then the cases on lines of their own");
      break;
    case TokenKind::Less:
      if (at >= 2 && is(at - 2, TokenKind::KwDef)) return say(kTypeParameters, kErased);
      if (is(at + 1, TokenKind::Minus) && items[at + 1].offset == found->offset + 1) return say("`x <- value` binds inside a `do` block", "open one above: `do IO<Unit>:`");
      break;
    case TokenKind::Minus:
    case TokenKind::Plus:
      if (no_term && twice() && found->kind == TokenKind::Minus) return say(kComment, "write `# ..`");
      if (no_term && found->kind == TokenKind::Minus) return say(kUnary, kSubtract);
      if (!no_term && found->space_before() && name_head(char_after(*found))) {
        const std::string_view sign = text(*found), next = is(at + 1, TokenKind::Ident) ? text(items[at + 1]) : "x";
        return say(fmt::format("`{}` glued to a name marks a binder as {}", sign, sign == "-" ? "erased" : "reusable"), fmt::format("put a space on both sides of the operator: `.. {} {}`", sign, next));
      }
      break;
    case TokenKind::Greater:
      if (no_term && at > 0 && is(at - 1, TokenKind::Bar) && items[at - 1].end() == found->offset) return say("there is no operator `|>`", "write the call around its argument: `f(x)`");
      if (!found->space_before()) return say("without a space before it `>` closes type arguments", "put a space on both sides of the operator");
      break;
    case TokenKind::Percent:
      if (!no_term) return say("without a space after it `%` starts a rewrite", "put a space on both sides of the operator");
      break;
    case TokenKind::Colon:
      if (no_term && twice()) return say("`h <> t` puts an element before a list; a type stands after one `:`", "write `h <> t`");
      if (no_term) {
        // `(a : T) (b : T)`: the group was read as the arguments of what stands before it.
        uint32_t open = at;
        for (uint32_t closed = 0; open > line; --open) {
          if (is(open - 1, TokenKind::RightParen)) ++closed;
          else if (is(open - 1, TokenKind::LeftParen) && closed-- == 0) break;
        }
        if (open > line + 1 && is(open - 2, TokenKind::RightParen)) return say("a `(` that follows a term on its line holds the arguments of a call of that term", "begin the second value on a line of its own");
      }
      if (at > 0 && d.message.starts_with("expected `(`")) return say("a constant is a def without parameters", fmt::format("write `def {}() -> T: value`", text(items[at - 1])));
      for (uint32_t i = at; d.code == Code::P28 && i < items.size() && (i == at || !items[i].newline_before()); ++i)
        if (is(i, TokenKind::Less) && is(i + 1, TokenKind::Minus) && items[i + 1].offset == items[i].end()) return say("`x : T <- value` binds inside a `do` block", "open one above: `do IO<Unit>:`");
      if (d.code == Code::P28) return say("a body ends at its first plain expression; only a let, a group and braces take a type", "write `{x : T}` for the type of a term, `x : T = value` for that of a let");
      break;
    case TokenKind::Star:
      if (no_term && twice()) return say("there is no power operator", "multiply, or call `U32.pow` or `F32.pow`");
      break;
    case TokenKind::Slash:
      if ((no_term && twice()) || (d.code == Code::P28 && at + 1 < items.size())) return say(kComment, "write `# ..`");
      break;
    case TokenKind::Bang:
      if (no_term) return say("there is no operator `!` before a value", "negate a Bool with `Bool.not(x)`");
      if (d.code == Code::P28) return say("`!` marks a call and stands directly between the name and its `(`", "write `f!(x)`");
      break;
    case TokenKind::RightParen:
      if (no_term && at > 0 && is(at - 1, TokenKind::LeftParen)) return say("an empty pair of parentheses is no value", "the value of type `Unit` is `Unit{}`; a def without arguments is called as `f()`");
      break;
    case TokenKind::RightBracket:
      if (no_term && is(at - 1, TokenKind::LeftBracket) && !is(line, TokenKind::KwCase)) return say("brackets after a term are an index; types take their arguments in `<>`", "the type of an array is `Array<T>`, of a list `List<T>`");
      if (no_term && is(line, TokenKind::KwCase)) return say("a bracket after a term reads as an index", "put a comma between two patterns: `case _, []:`");
      break;
    case TokenKind::String:
      if (d.code == Code::P28 && at > 0 && items[at - 1].end() == found->offset) return say("a string has no prefix, and nothing in it is replaced by a value", "join the parts: `\"x = \" ++ U32.show(x)`");
      break;
    case TokenKind::Question:
      if (d.code == Code::P28) return say("there is no conditional operator: a choice is a `match` on a parameter", "pass the Bool to a def that matches it");
      break;
    case TokenKind::Caret:
    case TokenKind::Bar:
      if (!no_term && found->space_before()) return say(fmt::format("the operators on bits are `.&.`, `.|.` and `.^.`"), fmt::format("write `.{}.`", text(*found)));
      if (d.message.starts_with("expected a name for a constructor")) return say("constructors follow each other with nothing between them", "drop the `|`");
      break;
    case TokenKind::Semicolon:
      if (no_term && at >= 2 && is(at - 2, TokenKind::LeftBracket)) return say("an array is filled with one value", "write `[v : T*4n]` for 4 slots, `[v : T^d]` for 2^d");
      if (d.code == Code::P28) return say("`;` ends a let, a step of a `do` block, a rewrite's head or an arm, and nothing else", "drop it");
      break;
    case TokenKind::Comma:
      if (d.code == Code::P28) {
        for (uint32_t i = at; i < items.size() && (i == at || !items[i].newline_before()); ++i)
          if (is(i, TokenKind::Equal)) return say("the names of a parallel let and its values stand side by side, without commas", "write `a b = f(x) g(y)`");
      }
      break;
    case TokenKind::LeftParen:
    case TokenKind::LeftBracket:
      if (found->kind == TokenKind::LeftBracket && at >= 2 && is(at - 2, TokenKind::KwDef)) return say(kTypeParameters, kErased);
      if (d.code == Code::P28 && found->newline_before()) return say("a bracket at the start of a line does not continue the line above", "write it on the line of what it belongs to");
      break;
    default:
      if (d.code != Code::P28 || ast.decls.empty() || !found->newline_before() || at == 0) break;
      if (is(at - 1, TokenKind::Colon) && is(line_start(at - 1), TokenKind::KwMatch)) return say("a match without cases, then other text", "begin each row with `case`: `case K{}: ..`");
      if (is(line_start(at - 1), TokenKind::KwReturn)) return say("`return` ends a `do` block: nothing follows it", "move this line above the `return`");
      if (found->kind == TokenKind::Ident) return say("a body ends at its first plain expression", "name the value of the line above by `x = ..`, or let effects follow each other in a `do` block: `do IO<Unit>:`");
      break;
  }
  if (d.message.find("erased let") != std::string::npos) say("`-x` at the head of a statement begins an erased let; there is no unary minus", kSubtract);
}

}  // namespace bendc
