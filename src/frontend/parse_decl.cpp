// Declarations: type, law, def; and what all parts of the parser share.
#include <algorithm>

#include "frontend/lexer.h"
#include "frontend/parse_imports.h"
#include "frontend/parser.h"
#include "frontend/parser_impl.h"
#include "support/text.h"

namespace bendc {

using ast::DeclKind;
using ast::Kind;
using ast::Mark;

// ---- shared helpers

Parser::NodeId Parser::error_node(Span span) {
  Node made;
  made.span = span;
  return add(made);
}

bool Parser::expect(TokenKind kind, std::string_view why) {
  if (take(kind)) return true;
  const bool line_ends = peek().newline_before() && position() > 0;
  if (auto* d = fail(Code::P1, here(), fmt::format("expected {} {}, found {}", token_text(kind), why, found())); d && line_ends && kind == TokenKind::Colon && d->labels.empty()) {
    d->labels.push_back({{d->span.file, tokens().items[position() - 1].end(), 0}, "it is missing here"});
  }
  return false;
}

bool Parser::close(TokenKind kind, std::string_view what, Span open) {
  if (take(kind)) return true;
  // At the next declaration nothing more can be said than that the bracket stays open: it is the culprit, and the text there is innocent.
  const bool never = at(TokenKind::End) || (starts_declaration() && peek().newline_before());
  if (never) {
    const Span end = here();
    const std::string until = found();
    if (auto* d = fail(Code::P1, open, fmt::format("{} is opened here and not closed before {}", what, until))) {
      d->labels.clear();
      d->labels.push_back({end, fmt::format("{} is still missing here", token_text(kind))});
    }
    return false;
  }
  if (auto* d = fail(Code::P1, here(), fmt::format("expected {} to close {}, found {}", token_text(kind), what, found()))) d->labels.push_back({open, "opened here"});
  return false;
}

bool Parser::name(Name& name, Span& span, std::string_view what) {
  if (panic()) return false;
  if (at(TokenKind::Ident)) {
    span = here();
    name = Name(next().value);
    return true;
  }
  if (is_keyword(kind()) && !(starts_declaration() && peek().newline_before())) {
    if (auto* d = fail(Code::P2, here(), fmt::format("the keyword {} cannot name {}", found(), what))) d->fix = "keywords are reserved as whole names only: `my.where` would do";
    return false;
  }
  fail(Code::P1, here(), fmt::format("expected a name for {}, found {}", what, found()));
  return false;
}

Parser::NodeId Parser::strip_groups(NodeId id) const {
  while (node(id).kind == Kind::Group) id = NodeId(node(id).a);
  return id;
}

Parser::NodeId Parser::bare_name(NodeId id) const {
  id = strip_groups(id);
  return node(id).kind == Kind::Name ? id : NodeId();
}

Parser::NodeId Parser::bare_binder(NodeId id) const {
  id = strip_groups(id);
  const Node& found = node(id);
  return found.kind == Kind::Name || (found.kind == Kind::PlusMark && bare_name(NodeId(found.a)).valid()) ? id : NodeId();
}

Slice Parser::list_since(size_t mark) {
  Slice list = ast.lists.add(std::span<const NodeId>(scratch_.data() + mark, scratch_.size() - mark));
  scratch_.resize(mark);
  return list;
}

// ---- declarations

void Parser::file() {
  while (!at(TokenKind::End)) {
    const size_t reports = diagnostics.size();
    const uint32_t first_token = position();
    declaration();
    hint(reports, first_token);
    if (panic()) {
      recover();
      if (panic()) return;   // given up
      skip_to_declaration();
    }
  }
}

bool Parser::starts_declaration() const {
  switch (kind()) {
    case TokenKind::KwDef:
    case TokenKind::KwType:
    case TokenKind::KwLaw: return true;
    case TokenKind::At: return peek(1).kind == TokenKind::Ident && peek(2).kind == TokenKind::KwDef;
    default: return false;
  }
}

void Parser::skip_to_declaration() {
  while (!at(TokenKind::End) && !starts_declaration()) next();
}

void Parser::declaration() {
  uint32_t start = peek().offset;
  switch (kind()) {
    case TokenKind::KwType: return type_decl();
    case TokenKind::KwLaw: return law_decl();
    case TokenKind::KwDef: return def_decl(false, start);
    case TokenKind::At: return attribute();
    default: return stray();
  }
}

void Parser::stray() {
  Diagnostic* d = nullptr;
  switch (kind()) {
    case TokenKind::KwImport:
      d = fail(Code::P28, here(), "an import after the first declaration");
      if (d) d->fix = "move the import to the top of the file";
      return;
    case TokenKind::KwCase:
      d = fail(Code::P28, here(), "this `case` belongs to no match");
      if (d) d->notes.push_back("the cases of a match stand at or right of its first case, and right of the case around it");
      return;
    default:
      d = fail(Code::P28, here(), fmt::format("stray text {} outside of a declaration", found()));
      if (!d) return;
      if (ast.decls.empty()) d->notes.push_back("a file holds imports, then `type`, `law` and `def` declarations");
      else d->notes.push_back("a body ends at its first plain expression");
      return;
  }
}

// `@unsafe def ..`
void Parser::attribute() {
  uint32_t start = peek().offset;
  Span at_span = here();
  bool unsafe = peek(1).kind == TokenKind::Ident && text(peek(1)) == "unsafe";
  if (unsafe && peek(2).kind == TokenKind::KwDef) {
    next();
    next();
    return def_decl(true, start);
  }
  next();
  Diagnostic* d = unsafe ? error(Code::P25, at_span, "`@unsafe` is not followed by `def`") : error(Code::P25, cover(at_span, here()), fmt::format("unknown attribute `@{}`", at(TokenKind::Ident) ? text(peek()) : std::string_view()));
  if (d) d->fix = "the only attribute is `@unsafe`, directly before a `def`";
  if (at(TokenKind::Ident) && peek(1).kind == TokenKind::KwDef) {
    next();
    return def_decl(false, start);
  }
  skip_to_declaration();
}

// `[q] x : T`, a bare `x`, and where allowed `~x : T`
ast::Binder Parser::binder(bool tildes) {
  ast::Binder made;
  uint32_t start = peek().offset;
  if (at(TokenKind::Tilde)) {
    if (!tildes)
      if (auto* d = error(Code::P23, here(), "`~` on a type parameter or field")) d->fix = "only definitions and laws have template parameters";
    next();
    made.tilde = tildes;
  }
  if (!made.tilde && take(TokenKind::Minus)) made.mark = Mark::Erased;
  else if (!made.tilde && take(TokenKind::Plus)) made.mark = Mark::Reusable;
  bool marked = made.tilde || made.mark != Mark::Affine;
  if (!name(made.name, made.name_span, tildes ? "a parameter" : "a parameter or field")) return made;
  if (take(TokenKind::Colon)) made.type = term(0);
  else if (!tildes && marked) expect(TokenKind::Colon, "and a type after a marked name");
  else if (!tildes) made.mark = Mark::Erased;   // a bare name is an erased Quant
  made.span = since(start);
  return made;
}

std::vector<ast::Binder> Parser::binders(TokenKind end, std::string_view what, Span open, bool tildes) {
  std::vector<ast::Binder> made;
  while (!panic() && !at(end)) {
    bool starts = at(TokenKind::Ident) || at(TokenKind::Minus) || at(TokenKind::Plus) || at(TokenKind::Tilde) || (is_keyword(kind()) && !starts_declaration());
    if (!starts) break;
    made.push_back(binder(tildes));
    take(TokenKind::Comma);
  }
  close(end, what, open);
  return made;
}

void Parser::type_decl() {
  ast::Decl decl;
  decl.kind = DeclKind::Type;
  uint32_t start = peek().offset;
  next();
  if (!name(decl.name, decl.name_span, "a datatype")) return;
  if (at(TokenKind::Less)) {
    Span open = here();
    next();
    decl.params = binders(TokenKind::Greater, "the type parameters", open, false);
  }
  if (at(TokenKind::Colon)) {
    if (auto* d = fail(Code::P1, here(), "expected `is` and the kind of the datatype, found `:`"))
      d->fix = fmt::format("write `type {} is Data:`, or `is Type` where a field holds a function, an array or an `A & B`", names_.text(decl.name));
  } else if (expect(TokenKind::KwIs, "and the kind of the datatype")) {
    decl.type = term(0);
    expect(TokenKind::Colon, "after the kind of the datatype");
  }
  while (!panic() && !at(TokenKind::End) && !starts_declaration() && !at(TokenKind::At)) {
    ast::CtorDecl ctor;
    uint32_t ctor_start = peek().offset;
    if (!name(ctor.name, ctor.name_span, "a constructor")) break;
    if (!at(TokenKind::LeftBrace)) {
      if (auto* d = fail(Code::P1, here(), fmt::format("expected `{{` after the constructor `{}`, found {}", names_.text(ctor.name), found())))
        d->fix = fmt::format(fmt::runtime(at(TokenKind::LeftParen) ? "fields stand in braces: `{}{{x: T}}`" : "a constructor without fields is `{}{{}}`"), names_.text(ctor.name));
      break;
    }
    Span open = here();
    next();
    ctor.fields = binders(TokenKind::RightBrace, "the fields", open, false);
    ctor.span = since(ctor_start);
    decl.ctors.push_back(std::move(ctor));
  }
  if (!decl.type.valid()) decl.type = error_node(decl.name_span);
  decl.span = since(start);
  ast.decls.push_back(std::move(decl));
}

bool Parser::clause(ast::Decl& decl) {
  if (!at(TokenKind::KwFor) && !at(TokenKind::KwExs)) return false;
  ast::Clause made;
  uint32_t start = peek().offset;
  made.exists = at(TokenKind::KwExs);
  next();
  if (!made.exists) {
    if (at(TokenKind::Tilde)) {
      bool plain = std::any_of(decl.clauses.begin(), decl.clauses.end(), [](const ast::Clause& c) { return !c.binder.tilde; });
      if (plain)
        if (auto* d = error(Code::P23, here(), "`~` after a plain clause")) d->fix = "template clauses come first";
      next();
      made.binder.tilde = true;
    } else if (take(TokenKind::Minus)) {
      made.binder.mark = Mark::Erased;
    } else if (take(TokenKind::Plus)) {
      made.binder.mark = Mark::Reusable;
    }
  } else if (at(TokenKind::Tilde)) {
    if (auto* d = error(Code::P23, here(), "`~` on an `exs` clause")) d->fix = "only `for` clauses can be template parameters";
    next();
  }
  if (name(made.binder.name, made.binder.name_span, "a clause") && expect(TokenKind::Colon, "after the clause's name")) made.binder.type = term(0);
  if (!made.binder.type.valid()) made.binder.type = error_node(here());
  made.binder.span = since(start);
  if (take(TokenKind::KwWhere)) made.where = term(0);
  decl.clauses.push_back(std::move(made));
  return !panic();
}

void Parser::law_decl() {
  ast::Decl decl;
  decl.kind = DeclKind::Law;
  uint32_t start = peek().offset;
  next();
  if (!name(decl.name, decl.name_span, "a law")) return;
  if (expect(TokenKind::Colon, "after the law's name"))
    while (clause(decl)) {}
  decl.body = panic() ? error_node(here()) : body(0);
  decl.span = since(start);
  ast.decls.push_back(std::move(decl));
}

void Parser::def_decl(bool unsafe, uint32_t start) {
  ast::Decl decl;
  decl.kind = DeclKind::Def;
  decl.unsafe = unsafe;
  next();
  if (!name(decl.name, decl.name_span, "a definition")) return;
  if (at(TokenKind::Question) && !peek().space_before()) {
    next();
    decl.unsafe = true;
  }
  bool fill = false;
  if (!at(TokenKind::LeftParen)) {
    fail(Code::P1, here(), fmt::format("expected `(` and the parameters of `{}`, found {}", names_.text(decl.name), found()));
  } else {
    Span open = here();
    next();
    decl.params = binders(TokenKind::RightParen, "the parameters", open, true);
    if (take(TokenKind::Arrow)) {
      decl.type = term(0);
      expect(TokenKind::Colon, "after the result type");
    } else if (take(TokenKind::Colon)) {
      fill = true;
    } else if (auto* d = fail(Code::P1, here(), fmt::format("expected `->` and the result type of `{}`, found {}", names_.text(decl.name), found()))) {
      d->fix = "write `def f(..) -> T: body`, or `def f(names): body` to fill a law";
    }
    if (!fill && !panic()) check_params(decl);
  }
  if (panic()) {
    if (!fill && !decl.type.valid()) decl.type = error_node(decl.name_span);
    decl.body = error_node(here());
  } else {
    def_body(decl);
  }
  decl.span = since(start);
  ast.decls.push_back(std::move(decl));
}

// A definition with a signature of its own; what the names of a law's fill may carry is judged where laws are known.
void Parser::check_params(ast::Decl& decl) {
  bool plain = false;
  for (ast::Binder& param : decl.params) {
    if (param.tilde && plain)
      if (auto* d = error(Code::P23, param.span, fmt::format("the template parameter `{}` stands after a plain one", names_.text(param.name)))) d->fix = "move the `~` parameters to the front";
    plain |= !param.tilde;
    if (param.type.valid()) continue;
    if (param.tilde || param.mark != Mark::Affine) {
      Span after{ast.file, param.span.end(), 0};
      if (auto* d = error(Code::P1, param.span, fmt::format("expected `:` and a type after the marked parameter `{}`", names_.text(param.name)))) d->labels.push_back({after, "the type goes here"});
      param.type = error_node(param.span);
    } else {
      param.mark = Mark::Erased;   // a bare name is an erased Quant
    }
  }
}

void Parser::def_body(ast::Decl& decl) {
  if (!at(TokenKind::KwImport) || peek(1).kind != TokenKind::String) {
    if (at(TokenKind::End) || (starts_declaration() && peek().newline_before())) {
      if (auto* d = fail(Code::P1, here(), fmt::format("expected the body of `{}`, found {}", names_.text(decl.name), found()))) d->fix = "write what it gives; `?TODO` stands for a body that is still to come";
    }
    decl.body = body(0);
    return;
  }
  Span first = here();
  while (at(TokenKind::KwImport) && peek(1).kind == TokenKind::String) {
    next();
    Span at_path = here();
    const std::u32string& points = ast.strings[next().value];
    std::string path;
    for (char32_t c : points) {
      char bytes[text::kUtf8Chars];
      path.append(bytes, text::utf8_encode(c, bytes));
    }
    if (!path.ends_with(".c") && !path.ends_with(".js"))
      if (auto* d = error(Code::P24, at_path, fmt::format("the foreign body `{}` is neither a .c nor a .js file", path))) d->fix = "name a file that ends in .c or .js";
    decl.foreign.push_back(std::move(path));
    decl.foreign_spans.push_back(at_path);
  }
  for (const ast::Binder& param : decl.params) {
    if (!param.tilde) continue;
    if (auto* d = error(Code::P24, param.span, fmt::format("`{}` has a foreign body and the template parameter `{}`", names_.text(decl.name), names_.text(param.name)))) d->labels.push_back({first, "the foreign body"});
    break;
  }
}

ParseResult parse(const SourceMap& sources, FileId file, Interner& names) {
  Diagnostics diagnostics;
  std::vector<ast::Import> imports;
  uint32_t start = parse_imports(sources, file, names, imports, diagnostics);
  LexResult lexed = lex(sources, file, start, names);
  Parser parser(file, sources[file].text, std::move(lexed.tokens), names);
  parser.ast.imports = std::move(imports);
  parser.file();
  // The path of an import that stands too late is not for the lexer to judge.
  for (const Diagnostic& d : parser.diagnostics.all()) {
    if (d.code != Code::P28 || sources.text(d.span) != "import") continue;
    const uint32_t line = sources.locate(file, d.span.offset).line;
    lexed.diagnostics.remove_from(0, [&](const Diagnostic& l) { return sources.locate(file, l.span.offset).line == line; });
  }
  diagnostics.append(std::move(lexed.diagnostics));
  diagnostics.append(std::move(parser.diagnostics));
  diagnostics.sort(sources);
  return {std::move(parser.ast), std::move(diagnostics)};
}

}  // namespace bendc
