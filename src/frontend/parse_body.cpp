// Bodies: a sequence of lets ended by a match or one expression. Layout rules L2, L3 and L5 live here.
#include "frontend/parser_impl.h"

namespace bendc {

using ast::Kind;

Parser::NodeId Parser::block() { return body(peek().column - 1); }

Parser::NodeId Parser::body(uint32_t column) {
  // Lets and rewrites are linked as they are read: each body slot is filled by the next statement.
  NodeId first;
  size_t mark = scratch_.size();
  auto link = [&](NodeId part) {
    const NodeId before = scratch_.back();
    if (node(before).kind == Kind::Let) ast.lets[node(before).a].body = part;
    else ast.nodes[before].c = part.index;
  };
  bool more = true;
  while (more) {
    NodeId part;
    const bool rewrites = at(TokenKind::Percent);
    if (rewrites) part = rewrite_head();
    more = (rewrites || statement(column, part)) && !panic();
    if (first.valid()) link(part);
    else first = part;
    if (node(part).kind != Kind::Let && (!rewrites || node(part).kind != Kind::Rewrite)) break;
    scratch_.push_back(part);
    if (more && node(part).kind == Kind::Let && (at(TokenKind::End) || (starts_declaration() && peek().newline_before()))) no_result(ast.lets[node(part).a]);
    more = more && !panic();
    if (!more) link(error_node(since(node(part).span.offset)));
  }
  for (size_t i = mark; i < scratch_.size(); ++i) {
    Node& head = ast.nodes[scratch_[i]];
    head.span = since(head.span.offset);
  }
  scratch_.resize(mark);
  return first;
}

// A let, and then nothing: often a line that was meant as the result has been read as the value of a let above it.
void Parser::no_result(const ast::Let& let) {
  Diagnostic* d = fail(Code::P1, here(), fmt::format("expected the result of this body after its last let, found {}", found()));
  if (!d) return;
  d->labels.clear();
  const NodeId target = let.write ? NodeId() : bare_binder(let.patterns.back());
  if (!target.valid()) d->labels.push_back({let.statement, "the last let"});
  else d->labels.push_back({node(let.values.back()).span, fmt::format("read as the value of `{}`", names_.text(node(target).kind == Kind::PlusMark ? node(bare_name(NodeId(node(target).a))).name : node(target).name))});
  d->notes.push_back("a body is lets and then one expression, which is its result; a let of n names takes n values");
}

bool Parser::starts_name() const { return at(TokenKind::Ident); }

bool Parser::statement(uint32_t column, NodeId& out) {
  if (at(TokenKind::KwMatch)) {
    out = match(column);
    return false;
  }
  if (at(TokenKind::Minus)) return erased_let(out);
  const Token head = peek();
  ast::Let let;
  let.patterns.push_back(term(0));
  while (!panic() && !peek().newline_before() && (starts_name() || at(TokenKind::Plus))) let.patterns.push_back(term(0));
  if (panic()) {
    out = let.patterns[0];
    return false;
  }
  if (let.patterns.size() == 1 && at(TokenKind::Colon)) {
    uint32_t colon = position();
    next();
    let.type = term(0);
    if (!panic() && !at(TokenKind::Equal)) {
      group_type_ = {colon, position(), let.type};
      let.type = {};
      rewind(colon);
    }
  }
  if (!let.type.valid() && let.patterns.size() == 1 && !at(TokenKind::Equal)) {
    out = let.patterns[0];
    const Node written = node(out);
    if (written.kind != Kind::Write || node(NodeId(written.a)).kind != Kind::Name || node(NodeId(written.a)).span.offset != head.offset) return false;
    // L5: a write to a variable is a statement when another one follows.
    if (!at(TokenKind::Semicolon) && (at(TokenKind::End) || peek().column != head.column)) return false;
    let.write = true;
    let.values.push_back(out);
    let.patterns[0] = NodeId(written.a);
    let.statement = since(head.offset);
    take(TokenKind::Semicolon);
    out = this->let(std::move(let), head.offset);
    return true;
  }
  if (!take(TokenKind::Equal)) {
    if (auto* d = fail(Code::P1, here(), fmt::format("expected `=` after the {} names of a parallel let, found {}", let.patterns.size(), found()))) {
      d->notes.push_back("two terms on one line start a parallel let: `a b = f(x) g(y)`");
      d->fix = "put the second term on its own line, or a comma before it where a list is meant";
    }
    out = error_node(since(head.offset));
    return false;
  }
  bool names_only = let.patterns.size() > 1 || let.type.valid();
  for (NodeId& pattern : let.patterns) {
    pattern = strip_groups(pattern);
    if (!names_only || bare_binder(pattern).valid()) continue;
    if (auto* d = error(Code::P13, node(pattern).span, fmt::format("a {} let binds names only", let.type.valid() ? "typed" : "parallel"))) d->fix = "bind a name and take it apart in a def that receives it as a parameter";
    pattern = error_node(node(pattern).span);
  }
  let_values(let);
  let.statement = since(head.offset);
  take(TokenKind::Semicolon);
  out = this->let(std::move(let), head.offset);
  return true;
}

// `- x y = u v`
bool Parser::erased_let(NodeId& out) {
  uint32_t start = peek().offset;
  next();
  ast::Let let;
  let.erased = true;
  do {
    Node made;
    made.kind = Kind::Name;
    if (!name(made.name, made.name_span, "an erased let")) {
      out = error_node(since(start));
      return false;
    }
    made.span = made.name_span;
    let.patterns.push_back(add(made));
  } while (!peek().newline_before() && starts_name());
  if (let.patterns.size() == 1 && take(TokenKind::Colon)) let.type = term(0);
  if (!expect(TokenKind::Equal, "after the name of an erased let")) {
    out = error_node(since(start));
    return false;
  }
  let_values(let);
  let.statement = since(start);
  take(TokenKind::Semicolon);
  out = this->let(std::move(let), start);
  return true;
}

// As many values as names; no commas between them.
void Parser::let_values(ast::Let& let) {
  size_t wanted = let.patterns.size();
  while (!panic() && let.values.size() < wanted) {
    if (!let.values.empty() && (at(TokenKind::Comma) || at(TokenKind::End) || at(TokenKind::RightParen) || at(TokenKind::KwCase) || starts_declaration())) {
      bool comma = at(TokenKind::Comma);
      if (auto* d = fail(Code::P1, here(), fmt::format("this let has {} names and {} value{}", wanted, let.values.size(), let.values.size() == 1 ? "" : "s")))
        d->fix = comma ? "the values of a parallel let stand side by side, without commas" : "give every name a value";
      break;
    }
    let.values.push_back(term(0));
  }
  while (let.values.size() < wanted) let.values.push_back(error_node(here()));
}

Parser::NodeId Parser::let(ast::Let let, uint32_t start) {
  Node made;
  made.kind = Kind::Let;
  made.a = static_cast<uint32_t>(ast.lets.size());
  made.name_span = let.statement;
  made.span = since(start);
  ast.lets.push_back(std::move(let));
  return add(made);
}

// `match terms: case .. case ..` inside a body at `column` (L3)
Parser::NodeId Parser::match(uint32_t column) {
  Nesting nesting(*this);
  if (panic()) return error_node(here());
  Node made;
  made.kind = Kind::Match;
  made.name_span = here();
  next();
  size_t mark = scratch_.size();
  while (!panic() && !at(TokenKind::Colon)) {
    if (at(TokenKind::KwCase) || at(TokenKind::End)) break;
    scratch_.push_back(term(0));
    take(TokenKind::Comma);
  }
  uint32_t scrutinees = static_cast<uint32_t>(scratch_.size() - mark);
  if (!panic() && scrutinees == 0) fail(Code::P1, here(), "`match` without a scrutinee");
  expect(TokenKind::Colon, "after the scrutinees of `match`");
  Slice list = list_since(mark);
  made.a = list.offset;
  made.b = list.length;
  if (panic()) {
    scrutinees = 0;   // unknown: the cases are read for their own mistakes only
    skip_to_case();
  }
  if (at(TokenKind::KwCase) && peek().column > column) {
    uint32_t case_column = peek().column;
    recover();
    uint32_t wrong = scrutinees;
    while (!panic() && at(TokenKind::KwCase) && peek().column >= case_column) {
      scratch_.push_back(match_case(scrutinees, wrong));
      if (!panic()) continue;
      skip_to_case();
      if (at(TokenKind::KwCase) && peek().column >= case_column) recover();
    }
  }
  list = list_since(mark);
  made.c = list.offset;
  made.d = list.length;
  made.span = since(made.name_span.offset);
  return add(made);
}

// `wrong` is the last number of patterns that was reported: where all cases have it, the match itself is likely the culprit, and said once.
Parser::NodeId Parser::match_case(uint32_t scrutinees, uint32_t& wrong) {
  Node made;
  made.kind = Kind::Case;
  const Token head = peek();
  made.name_span = span(head);
  next();
  size_t mark = scratch_.size();
  while (!panic() && !at(TokenKind::Colon)) {
    if (at(TokenKind::End) || at(TokenKind::KwCase) || starts_declaration()) break;
    NodeId pattern = strip_groups(term(0));
    scratch_.push_back(pattern);
    take(TokenKind::Comma);
  }
  uint32_t patterns = static_cast<uint32_t>(scratch_.size() - mark);
  if (!panic() && at(TokenKind::Colon) && scrutinees > 0 && patterns != scrutinees && patterns != wrong) {
    wrong = patterns;
    Span where = patterns == 0 ? span(head) : cover(node(scratch_[mark]).span, node(scratch_.back()).span);
    if (auto* d = error(Code::P7, where, fmt::format("this case has {} pattern{} for {} scrutinee{}", patterns, patterns == 1 ? "" : "s", scrutinees, scrutinees == 1 ? "" : "s"))) {
      if (patterns < scrutinees) d->fix = "separate patterns by commas: `a (b, c)` reads as one call; use `_` for a part of no interest";
      else d->fix = "remove a pattern, or match on more scrutinees";
    }
  }
  expect(TokenKind::Colon, "after the patterns of a case");
  Slice list = list_since(mark);
  made.a = list.offset;
  made.b = list.length;
  made.c = panic() ? error_node(here()).index : body(head.column).index;
  made.span = since(head.offset);
  return add(made);
}

void Parser::skip_to_case() {
  while (!at(TokenKind::End) && !at(TokenKind::KwCase) && !starts_declaration()) next();
}

}  // namespace bendc
