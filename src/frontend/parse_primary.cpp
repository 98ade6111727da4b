// Terms that start with their own token: names, literals, brackets of every kind, rewrites, do blocks, holes.
#include <bit>

#include "frontend/parser_impl.h"

namespace bendc {

using ast::Kind;
using ast::Mark;

Parser::NodeId Parser::primary() {
  const Token& token = peek();
  Node made;
  made.span = span(token);
  switch (token.kind) {
    case TokenKind::Ident: {
      next();
      made.name = Name(token.value);
      made.name_span = made.span;
      made.kind = Kind::Name;
      if (at(TokenKind::LeftBrace) && peek().offset == token.end()) {
        Span open = here();
        next();
        Slice list = items(TokenKind::RightBrace, "the constructor", open, false);
        made.kind = Kind::Ctor;
        made.a = list.offset;
        made.b = list.length;
        made.span = since(made.span.offset);
      }
      return add(made);
    }
    case TokenKind::U32: made.kind = Kind::U32Lit; break;
    case TokenKind::Nat: made.kind = Kind::NatLit; break;
    case TokenKind::F32: made.kind = Kind::F32Lit; break;
    case TokenKind::Char: made.kind = Kind::CharLit; break;
    case TokenKind::String: made.kind = Kind::StringLit; break;
    case TokenKind::KwTypeUniverse: made.kind = Kind::TypeKw; break;
    case TokenKind::KwData: made.kind = Kind::DataKw; break;
    case TokenKind::KwQuant: made.kind = Kind::QuantKw; break;
    case TokenKind::Bad: made.kind = Kind::Error; break;
    case TokenKind::KwKind: {
      next();
      if (!at(TokenKind::LeftParen)) {
        if (auto* d = fail(Code::P1, here(), fmt::format("expected `(` after `Kind`, found {}", found()))) d->fix = "write `Kind(q)` with a quantity q";
        return error_node(made.span);
      }
      Span open = here();
      next();
      made.kind = Kind::KindOf;
      made.a = term(0).index;
      close(TokenKind::RightParen, "`Kind`", open);
      made.span = since(made.span.offset);
      return add(made);
    }
    case TokenKind::Ampersand: {   // prefix() has seen that a number is glued to it
      next();
      const Token& digit = next();
      made.span = since(token.offset);
      if (digit.length != 1 || digit.value > 2) {
        if (auto* d = error(Code::P1, made.span, fmt::format("there is no quantity `&{}`", text(digit).substr(0, 20)))) d->fix = "the quantities are `&0`, `&1` and `&2`";
        return error_node(made.span);
      }
      made.kind = Kind::QuantLit;
      made.a = digit.value;
      return add(made);
    }
    case TokenKind::LeftBrace: return braces();
    case TokenKind::LeftBracket: return brackets();
    case TokenKind::LeftParen: return parens();
    case TokenKind::Backslash: return raw_match();
    case TokenKind::Percent: return rewrite();
    case TokenKind::KwDo: return do_block();
    case TokenKind::Question: {
      next();
      made.kind = Kind::Hole;
      if (!name(made.name, made.name_span, "the hole")) return error_node(made.span);
      made.span = since(token.offset);
      return add(made);
    }
    default: return no_term();
  }
  made.a = token.value;
  next();
  return add(made);
}

// The next token starts no term.
Parser::NodeId Parser::no_term() {
  Span at_token = here();
  TokenKind found_kind = kind();
  if (is_keyword(found_kind) && !(starts_declaration() && peek().newline_before())) {
    if (auto* d = fail(Code::P4, at_token, fmt::format("the keyword {} cannot start a term", found()))) {
      if (found_kind == TokenKind::KwMatch) d->fix = "`match` stands at the head of a def or case body: move it into a def of its own and call that";
      else if (found_kind == TokenKind::KwCase) d->fix = "a `case` needs a `match` before it and a body after the `:` of the case above";
      else if (found_kind == TokenKind::KwReturn) d->fix = "`return` ends a `do` block; elsewhere the last expression is the result";
      else d->fix = "choose another name: keywords are reserved";
    }
    return error_node(at_token);
  }
  fail(Code::P1, at_token, fmt::format("expected a term, found {}", found()));
  return error_node(at_token);
}

// `item [","] item [","] .. close`; `~ item` where allowed.
Slice Parser::items(TokenKind end, std::string_view what, Span open, bool tildes) {
  size_t mark = scratch_.size();
  bool plain_seen = false, told = false, apart = true;
  while (!panic() && !at(end)) {
    if (at(TokenKind::End) || (starts_declaration() && peek().newline_before())) break;
    if (tildes && at(TokenKind::Tilde)) {
      // Once a list: where an opening parenthesis is lost, all of a call's template arguments follow a plain one.
      if (plain_seen && !told) {
        if (auto* d = error(Code::P23, here(), "`~` after a plain argument")) d->fix = apart ? "template arguments come first" : "arguments stand in parentheses: put `(` before the `~`";
        told = true;
      }
      Node tilde;
      tilde.kind = Kind::TildeArg;
      tilde.span = here();
      next();
      tilde.a = term(0).index;
      tilde.span = since(tilde.span.offset);
      scratch_.push_back(add(tilde));
    } else {
      plain_seen = true;
      scratch_.push_back(term(0));
    }
    apart = take(TokenKind::Comma);
  }
  close(end, what, open);
  return list_since(mark);
}

// `{==}`, `{a == b : T}`, `{a != b : T}`, `{a : T}`
Parser::NodeId Parser::braces() {
  Node made;
  Span open = here();
  next();
  if (take(TokenKind::EqualEqual)) {
    close(TokenKind::RightBrace, "`{==}`", open);
    made.kind = Kind::Rfl;
    made.span = since(open.offset);
    return add(made);
  }
  made.a = term(0).index;
  if (take(TokenKind::EqualEqual)) made.kind = Kind::Eql;
  else if (take(TokenKind::NotEqual)) made.kind = Kind::Neq;
  else made.kind = Kind::Ann;
  uint32_t* type = &made.b;
  if (made.kind != Kind::Ann) {
    made.b = term(0).index;
    type = &made.c;
  }
  if (!at(TokenKind::Colon)) {
    std::string_view wanted = made.kind == Kind::Ann ? "`==`, `!=` or `:` inside `{ }`" : "`:` and the type of the equation";
    if (auto* d = fail(Code::P1, here(), fmt::format("expected {}, found {}", wanted, found()))) d->labels.push_back({open, "opened here"});
    return error_node(since(open.offset));
  }
  next();
  *type = term(0).index;
  close(TokenKind::RightBrace, made.kind == Kind::Ann ? "the annotation" : "the equation", open);
  made.span = since(open.offset);
  return add(made);
}

// `[a, b]` or an array fill
Parser::NodeId Parser::brackets() {
  Span open = here();
  next();
  size_t mark = scratch_.size();
  while (!panic() && !at(TokenKind::RightBracket)) {
    if (at(TokenKind::End)) break;
    scratch_.push_back(term(0));
    if (scratch_.size() == mark + 1 && at(TokenKind::Colon) && !panic()) {
      NodeId value = scratch_.back();
      scratch_.pop_back();
      return fill(open.offset, value);
    }
    take(TokenKind::Comma);
  }
  close(TokenKind::RightBracket, "the list", open);
  Slice list = list_since(mark);
  Node made;
  made.kind = Kind::List;
  made.a = list.offset;
  made.b = list.length;
  made.span = since(open.offset);
  return add(made);
}

// `[v : T * n]` and `[v : T ^ d]`, from the colon on
Parser::NodeId Parser::fill(uint32_t start, NodeId value) {
  // A lambda as the value has already read `: T*n` while looking for a typed let. Reading it again is linear unless such fills
  // nest in each other's types; the budget keeps that case from doubling at every level.
  if (group_type_.colon == position()) {
    reread_ += group_type_.end - position();
    if (reread_ > 64 * static_cast<uint64_t>(tokens().items.size())) {
      give_up(Code::L1, here(), "array fills are nested too deeply in each other's types", "name the inner types by definitions");
      return error_node(here());
    }
  }
  Span open = here();
  open.offset = start;
  open.length = 1;
  next();
  Node made;
  made.kind = Kind::Fill;
  made.a = value.index;
  made.b = term(12).index;
  if (take(TokenKind::Star)) {
    NodeId count = strip_groups(term(0));
    made.c = count.index;
    const Node& literal = node(count);
    bool power = literal.kind == Kind::NatLit && std::has_single_bit(literal.a);
    if (!panic() && !power && literal.kind != Kind::Error) {
      if (auto* d = error(Code::P17, literal.span, "the count of an array fill is not a literal power of two")) {
        if (literal.kind == Kind::U32Lit && std::has_single_bit(literal.a)) d->fix = fmt::format("write the count as a Nat: `{}n`", literal.a);
        else if (literal.kind == Kind::NatLit) d->fix = "use 1n, 2n, 4n, 8n, ..";
        else d->fix = "write `[v : T^d]` for 2^d slots with any Nat d";
      }
    }
  } else if (take(TokenKind::Caret)) {
    made.flags = ast::kFlagPower;
    made.c = term(0).index;
  } else {
    if (auto* d = fail(Code::P1, here(), fmt::format("expected `*` and a count or `^` and a depth in the array fill, found {}", found()))) d->fix = "write `[v : T*8n]` or `[v : T^3n]`; an element type of several words needs parentheses";
  }
  close(TokenKind::RightBracket, "the array fill", open);
  made.span = since(start);
  return add(made);
}

// `(e)`, `(e : T)`, `(a, b, ..)`; e may be a whole body
Parser::NodeId Parser::parens() {
  Node made;
  Span open = here();
  next();
  NodeId first = block();
  made.kind = Kind::Group;
  made.a = first.index;
  Kind first_kind = node(first).kind;
  if (!panic() && at(TokenKind::Comma) && first_kind != Kind::Let && first_kind != Kind::Match) {
    size_t mark = scratch_.size();
    scratch_.push_back(first);
    while (take(TokenKind::Comma)) scratch_.push_back(term(0));
    made.kind = Kind::Tuple;
    close(TokenKind::RightParen, "the tuple", open);
    Slice list = list_since(mark);
    made.a = list.offset;
    made.b = list.length;
  } else {
    if (!panic() && at(TokenKind::Colon)) {
      if (group_type_.colon == position()) {
        made.b = group_type_.type.index;
        rewind(group_type_.end);
      } else {
        next();
        made.b = term(0).index;
      }
    }
    close(TokenKind::RightParen, "the group", open);
  }
  made.span = since(open.offset);
  return add(made);
}

// `\{K: h; L: g; rest}`
Parser::NodeId Parser::raw_match() {
  Node made;
  made.kind = Kind::RawMatch;
  Span open = here();
  next();
  if (!at(TokenKind::LeftBrace)) {
    if (auto* d = fail(Code::P1, here(), fmt::format("expected `{{` after `\\`, found {}", found()))) d->fix = "a raw match is `\\{K: h; rest}`; a lambda is `x => e`";
    return error_node(open);
  }
  Span brace = here();
  next();
  size_t mark = scratch_.size();
  while (!panic() && at(TokenKind::Ident) && peek(1).kind == TokenKind::Colon) {
    Node arm;
    arm.kind = Kind::RawArm;
    arm.name = Name(peek().value);
    arm.name_span = here();
    next();
    next();
    arm.a = term(0).index;
    arm.span = since(arm.name_span.offset);
    scratch_.push_back(add(arm));
    take(TokenKind::Semicolon);
  }
  if (!panic() && !at(TokenKind::RightBrace)) {
    made.c = term(0).index;
    take(TokenKind::Semicolon);
  }
  close(TokenKind::RightBrace, "the raw match", brace);
  Slice list = list_since(mark);
  made.a = list.offset;
  made.b = list.length;
  made.span = since(open.offset);
  return add(made);
}

// `% [h @] e : P [;] body`
Parser::NodeId Parser::rewrite() {
  const NodeId made = rewrite_head();
  if (node(made).kind != Kind::Rewrite) return made;
  ast.nodes[made].c = block().index;
  ast.nodes[made].span = since(node(made).span.offset);
  return made;
}

// All but the body, which is the caller's to set.
Parser::NodeId Parser::rewrite_head() {
  Node made;
  made.kind = Kind::Rewrite;
  Span percent = here();
  next();
  NodeId evidence = term(0);
  if (take(TokenKind::At)) {
    const Node& binder = node(strip_groups(evidence));
    if (binder.kind == Kind::Name) {
      made.name = binder.name;
      made.name_span = binder.span;
    } else if (auto* d = error(Code::P12, binder.span, "the evidence binder of a rewrite is not a name")) {
      d->fix = "write `%h@e : P` with a fresh name `h`, or `%e : P`";
    }
    evidence = term(0);
  }
  made.a = evidence.index;
  if (!expect(TokenKind::Colon, "and the goal with `_` for the right side, after the rewrite's equation")) return error_node(since(percent.offset));
  made.b = term(0).index;
  take(TokenKind::Semicolon);
  made.span = since(percent.offset);
  return add(made);
}

// `do M<args>: statements`
Parser::NodeId Parser::do_block() {
  Node made;
  made.kind = Kind::Do;
  Span head = here();
  next();
  if (at(TokenKind::Colon)) {
    if (auto* d = fail(Code::P1, here(), "expected the type of the effects after `do`, found `:`")) d->fix = "write it with the result type: `do IO<Unit>:`";
    return error_node(head);
  }
  if (!name(made.name, made.name_span, "the type of a `do` block")) return error_node(head);
  if (!at(TokenKind::Less)) {
    if (auto* d = fail(Code::P1, here(), fmt::format("expected `<` after `do {}`, found {}", names_.text(made.name), found()))) d->fix = "write the result type: `do IO<U32>:`";
    return error_node(head);
  }
  Span open = here();
  next();
  Slice arguments = items(TokenKind::Greater, "the types of the `do` block", open, false);
  made.a = arguments.offset;
  made.b = arguments.length;
  if (!expect(TokenKind::Colon, "after the head of the `do` block")) return error_node(since(head.offset));
  size_t mark = scratch_.size();
  uint32_t column = peek().column;
  bool more = true;
  while (more && !panic()) {
    NodeId statement;
    more = do_statement(column, statement);
    scratch_.push_back(statement);
  }
  Slice statements = list_since(mark);
  made.c = statements.offset;
  made.d = statements.length;
  made.span = since(head.offset);
  return add(made);
}

bool Parser::do_statement(uint32_t column, NodeId& statement) {
  Node made;
  uint32_t start = peek().offset;
  auto finish = [&](Kind made_kind, bool more) {
    made.kind = made_kind;
    made.span = since(start);
    statement = add(made);
    return more && !panic();
  };
  if (take(TokenKind::KwReturn)) {
    made.a = term(0).index;
    return finish(Kind::DoReturn, false);
  }
  NodeId first = term(0);
  auto arrow = [&] { return !panic() && at(TokenKind::Less) && glued(1) && peek(1).kind == TokenKind::Minus; };
  auto take_arrow = [&] {
    if (!arrow()) return false;
    next();
    next();
    return true;
  };
  if (!panic() && at(TokenKind::Colon)) {
    NodeId target = bare_binder(first);
    if (!target.valid()) {
      if (auto* d = fail(Code::P1, here(), "only a single name takes a type in a `do` statement")) d->labels.push_back({node(first).span, "not a name"});
      statement = first;
      return false;
    }
    const Node& binder = node(target);
    made.mark = binder.kind == Kind::PlusMark ? Mark::Reusable : Mark::Affine;
    const Node& named = binder.kind == Kind::PlusMark ? node(strip_groups(NodeId(binder.a))) : binder;
    made.name = named.name;
    made.name_span = named.span;
    next();
    made.a = term(1).index;
    bool bind = take_arrow();
    if (!bind && !take(TokenKind::Equal)) {
      fail(Code::P1, here(), fmt::format("expected `<-` or `=` after the type of `{}`, found {}", names_.text(made.name), found()));
      return finish(Kind::Error, false);
    }
    made.b = term(0).index;
    take(TokenKind::Semicolon);
    return finish(bind ? Kind::DoBind : Kind::DoLet, true);
  }
  if (take_arrow()) {
    made.a = first.index;
    made.b = term(0).index;
    take(TokenKind::Semicolon);
    return finish(Kind::DoBind, true);
  }
  if (!panic() && at(TokenKind::Equal) && !bare_binder(first).valid() && node(first).kind != Kind::Error) {
    if (auto* d = error(Code::P13, node(first).span, "a let of a `do` block binds one name")) {
      d->notes.push_back("only a definition's parameters and their fields are taken apart");
      d->fix = "pass the value to a definition that takes it apart and gives the rest of the effects";
    }
    next();
    (void)term(0);
    take(TokenKind::Semicolon);
    return finish(Kind::Error, true);
  }
  if (!panic() && at(TokenKind::Equal) && bare_binder(first).valid()) {
    const Node& binder = node(bare_binder(first));
    const std::string written(names_.text(binder.kind == Kind::PlusMark ? node(bare_name(NodeId(binder.a))).name : binder.name));
    if (auto* d = fail(Code::P1, here(), fmt::format("expected `:` and the type of `{}`, found `=`", written))) {
      d->notes.push_back("a let inside a `do` block states its type");
      d->fix = fmt::format("write `{} : T = value`", written);
    }
    statement = first;
    return false;
  }
  bool step = !panic() && (take(TokenKind::Semicolon) || (!at(TokenKind::End) && peek().column == column));
  if (!step) {
    statement = first;
    return false;
  }
  made.a = first.index;
  return finish(Kind::DoStep, true);
}

}  // namespace bendc
