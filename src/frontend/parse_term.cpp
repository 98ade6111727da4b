// Operators and postfix forms: precedence climbing with an explicit stack of frames, so that chains of any length cost no C++ stack.
#include "frontend/parser_impl.h"

namespace bendc {

using ast::Kind;
using ast::Mark;

namespace {

struct OpRow {
  uint8_t level;
  bool right;   // right associative
};

OpRow op_row(ast::Op op) {
  using ast::Op;
  switch (op) {
    case Op::None: return {0, false};
    case Op::Arrow: return {0, true};
    case Op::Pair:
    case Op::Or: return {1, true};
    case Op::OrElse: return {2, false};
    case Op::AndAlso: return {3, false};
    case Op::Less:
    case Op::LessEq:
    case Op::Greater:
    case Op::GreaterEq: return {4, false};
    case Op::Cons:
    case Op::Append:
    case Op::Meet: return {5, true};
    case Op::BitOr: return {6, false};
    case Op::BitXor: return {7, false};
    case Op::BitAnd: return {8, false};
    case Op::Shl:
    case Op::Shr: return {9, false};
    case Op::Add:
    case Op::Sub: return {10, false};
    case Op::Mul:
    case Op::Div:
    case Op::Mod: return {11, false};
  }
  return {0, false};
}

bool name_head(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

constexpr uint8_t kPrefixLevel = 12;   // above every operator

}  // namespace

void Parser::enter() {
  if (++depth_ > kMaxNesting) {
    give_up(Code::L1, here(), fmt::format("nesting is deeper than {}", kMaxNesting), "give an inner part a name: by a let, or by a definition of its own");
  }
}

Parser::OpToken Parser::peek_op() const {
  const Token& token = peek();
  switch (token.kind) {
    case TokenKind::Arrow: return {Op::Arrow, 1};
    case TokenKind::Ampersand: return {Op::Pair, 1};
    case TokenKind::Bar: return {Op::Or, 1};
    case TokenKind::BarBar: return {Op::OrElse, 1};
    case TokenKind::AndAnd: return {Op::AndAlso, 1};
    case TokenKind::PlusPlus: return {Op::Append, 1};
    case TokenKind::DotBarDot: return {Op::BitOr, 1};
    case TokenKind::DotCaretDot: return {Op::BitXor, 1};
    case TokenKind::DotAmpersandDot: return {Op::BitAnd, 1};
    case TokenKind::Star: return {Op::Mul, 1};
    case TokenKind::Slash: return {Op::Div, 1};
    case TokenKind::Percent: return blank(char_after(token)) ? OpToken{Op::Mod, 1} : OpToken{};
    case TokenKind::Plus:
    case TokenKind::Minus: {
      // `+x` and `-x` mark the next binder.
      char after = char_after(token);
      if (name_head(after) || after == '>') return {};
      return {token.kind == TokenKind::Plus ? Op::Add : Op::Sub, 1};
    }
    case TokenKind::Greater:
      if (!token.space_before()) return {};   // closes a type-argument list
      if (glued(1) && peek(1).kind == TokenKind::Equal) return {Op::GreaterEq, 2};
      if (glued(1) && peek(1).kind == TokenKind::Greater) return {Op::Shr, 2};
      return {Op::Greater, 1};
    case TokenKind::Less:
      if (!glued(1)) return {Op::Less, 1};
      switch (peek(1).kind) {
        case TokenKind::Ampersand:
          if (glued(2) && peek(2).kind == TokenKind::Greater) return {Op::Meet, 3};
          return {Op::Less, 1};
        case TokenKind::Equal: return {Op::LessEq, 2};
        case TokenKind::Greater: return {Op::Cons, 2};
        case TokenKind::Less: return {Op::Shl, 2};
        case TokenKind::Minus:
        case TokenKind::Arrow: return {};     // `<-` ends every term but an index
        default: return {Op::Less, 1};
      }
    default: return {};
  }
}

Parser::NodeId Parser::term(uint8_t level) {
  Nesting nesting(*this);
  if (panic()) return error_node(here());
  size_t base = frames_.size();
  uint32_t depth = depth_;
  NodeId out;
  bool operand = true;
  while (!panic()) {
    if (operand) {
      if (prefix(level)) continue;
      out = primary();
      operand = false;
      continue;
    }
    const Token& token = peek();
    // A newline ends the call spine.
    bool spine = !token.newline_before();
    if (spine && token.kind == TokenKind::LeftParen) {
      out = call(out, false);
      continue;
    }
    if (spine && token.kind == TokenKind::LeftBracket) {
      out = index(out);
      continue;
    }
    if (token.kind == TokenKind::Bang && glued(1) && peek(1).kind == TokenKind::LeftParen) {
      out = call(out, true);
      continue;
    }
    if (token.kind == TokenKind::FatArrow && level == 0) {
      out = lambda(out);
      continue;
    }
    OpToken op = peek_op();
    bool glued_op = !token.space_before();
    if (op.op != Op::None && (op_row(op.op).level >= level || (op.op == Op::Less && glued_op))) {
      Frame frame;
      frame.op = op.op;
      frame.level = level;
      frame.glued = glued_op;
      frame.left = out.index;
      frame.name_span = here();
      frame.name_span.length = peek(op.tokens - 1).end() - token.offset;
      frame.counted = op.op == Op::Less && glued_op;   // `A<A<A<..` nests like brackets
      for (uint32_t i = 0; i < op.tokens; ++i) next();
      frames_.push_back(frame);
      if (frame.counted) enter();
      OpRow row = op_row(op.op);
      level = row.right ? row.level : static_cast<uint8_t>(row.level + 1);
      operand = true;
      continue;
    }
    if (frames_.size() == base) return out;
    Frame& frame = frames_.back();
    if (frame.what == Frame::What::Binary && frame.op == Op::Less) {
      if (frame.glued && !frame.compound && (token.kind == TokenKind::Arrow || token.kind == TokenKind::Ampersand || token.kind == TokenKind::Bar)) {
        // Report, then read the compound argument anyway so that the rest of the line is understood.
        if (auto* d = error(Code::P16, here(), fmt::format("{} in the first type argument needs parentheses", found()))) {
          const char* op = token.kind == TokenKind::Arrow ? "->" : token.kind == TokenKind::Ampersand ? "&" : "|";
          d->fix = fmt::format("write the whole argument in parentheses, as in `D<(A {} B)>`", op);
        }
        frame.compound = true;
        level = 0;
        continue;
      }
      bool closed = false, counted = frame.counted;
      uint8_t back = frame.level;
      NodeId made = close_less(out, closed);
      if (closed) {
        if (counted) --depth_;
        out = made;
        level = back;
        continue;
      }
    }
    level = frames_.back().level;
    if (frames_.back().counted) --depth_;
    frames_.back().start = cover(frames_.back().start, node(out).span);
    Frame top = frames_.back();
    frames_.pop_back();
    Node made;
    made.span = top.start;
    made.name = top.name;
    made.name_span = top.name_span;
    made.mark = top.mark;
    made.op = top.op;
    switch (top.what) {
      case Frame::What::Binary:
        made.kind = Kind::Binary;
        made.a = top.left;
        made.b = out.index;
        made.span = cover(node(NodeId(top.left)).span, node(out).span);
        break;
      case Frame::What::NatPlus:
        made.kind = Kind::NatPlus;
        made.a = top.left;
        made.b = out.index;
        break;
      case Frame::What::All:
      case Frame::What::Exists:
        made.kind = top.what == Frame::What::All ? Kind::All : Kind::Exists;
        made.a = top.left;
        made.b = out.index;
        break;
      case Frame::What::Plus:
        made.kind = Kind::PlusMark;
        made.a = out.index;
        break;
    }
    out = add(made);
  }
  frames_.resize(base);
  depth_ = depth;
  return error_node(out.valid() ? node(out).span : here());
}

bool Parser::prefix(uint8_t& level) {
  switch (kind()) {
    case TokenKind::Plus: {
      Frame frame;
      frame.what = Frame::What::Plus;
      frame.counted = true;
      frame.level = level;
      frame.start = here();
      next();
      frames_.push_back(frame);
      level = kPrefixLevel;
      enter();
      return true;
    }
    case TokenKind::NatPlus: {
      Frame frame;
      frame.what = Frame::What::NatPlus;
      frame.counted = true;
      frame.level = level;
      frame.start = here();
      frame.left = next().value;
      frames_.push_back(frame);
      level = 0;
      enter();
      return true;
    }
    case TokenKind::At: return all(level);
    case TokenKind::Ampersand: return !(peek(1).kind == TokenKind::U32 && glued(1)) && quantity_or_exists(level);
    default: return false;
  }
}

// `@ [q] x : A -> B`
bool Parser::all(uint8_t& level) {
  Frame frame;
  frame.what = Frame::What::All;
  frame.counted = true;
  frame.level = level;
  frame.start = here();
  next();
  if (take(TokenKind::Minus)) frame.mark = Mark::Erased;
  else if (take(TokenKind::Plus)) frame.mark = Mark::Reusable;
  if (!name(frame.name, frame.name_span, "the parameter of a function type") || !expect(TokenKind::Colon, "after the parameter's name")) return true;
  frame.left = term(1).index;
  if (!expect(TokenKind::Arrow, "after the parameter's type")) return true;
  frames_.push_back(frame);
  level = 0;
  enter();
  return true;
}

// `& x : A -> B`
bool Parser::quantity_or_exists(uint8_t& level) {
  Frame frame;
  frame.what = Frame::What::Exists;
  frame.counted = true;
  frame.level = level;
  frame.start = here();
  next();
  if (!at(TokenKind::Ident) && !is_keyword(kind())) {
    if (auto* d = fail(Code::P1, here(), fmt::format("expected a quantity or a name after `&`, found {}", found()))) d->fix = "the quantities are `&0`, `&1` and `&2`; a pair type is `&x:A -> B`";
    return true;
  }
  if (!name(frame.name, frame.name_span, "the first part of a pair type") || !expect(TokenKind::Colon, "after the name")) return true;
  frame.left = term(1).index;
  if (!expect(TokenKind::Arrow, "after the first part's type")) return true;
  frames_.push_back(frame);
  level = 0;
  enter();
  return true;
}

// After `head < right`: a type-argument list when `>` or `,` follows. Pops the frame when it does.
Parser::NodeId Parser::close_less(NodeId right, bool& closed) {
  closed = at(TokenKind::Greater) || at(TokenKind::Comma);
  if (!closed) return {};
  Frame frame = frames_.back();
  frames_.pop_back();
  NodeId head = bare_name(NodeId(frame.left));
  Span start = node(NodeId(frame.left)).span;
  if (!head.valid()) {
    if (auto* d = error(Code::P16, cover(start, frame.name_span), "type arguments after something that is not a name")) {
      d->notes.push_back("`<` followed by one operand and `>` or `,` opens a type-argument list");
      d->fix = "put a comparison in parentheses";
    }
  }
  size_t mark = scratch_.size();
  scratch_.push_back(right);
  take(TokenKind::Comma);
  while (!panic() && !at(TokenKind::Greater)) {
    if (at(TokenKind::End) || at(TokenKind::RightParen) || at(TokenKind::RightBrace) || at(TokenKind::RightBracket) || at(TokenKind::Colon)) break;
    scratch_.push_back(term(0));
    take(TokenKind::Comma);
  }
  if (!at(TokenKind::Greater)) {
    if (auto* d = fail(Code::P1, here(), fmt::format("expected `>` to close the type arguments, found {}", found()))) {
      d->labels.push_back({frame.name_span, "opened here"});
      if (!frame.glued) d->fix = "`a < b, ..` reads as type arguments: put a comparison in parentheses";
    }
  }
  take(TokenKind::Greater);
  Node made;
  made.kind = head.valid() ? Kind::TypeArgs : Kind::Error;
  Slice list = list_since(mark);
  if (head.valid()) {
    made.name = node(head).name;
    made.name_span = node(head).span;
    made.a = list.offset;
    made.b = list.length;
  }
  made.span = since(start.offset);
  return add(made);
}

Parser::NodeId Parser::call(NodeId head, bool bang) {
  if (bang) {
    NodeId target = bare_name(head);
    if (target.valid()) head = target;
    else if (auto* d = error(Code::P14, here(), "`!` after something that is not a name")) {
      d->notes.push_back("`f!(..)` offloads the call of a definition");
      d->fix = "name the computation in a def and mark its call";
    }
    next();
  }
  Span start = node(head).span, open = here();
  next();
  Slice list = items(TokenKind::RightParen, "the call", open, true);
  Node made;
  made.kind = Kind::Call;
  made.flags = bang ? ast::kFlagBang : 0;
  made.a = head.index;
  made.b = list.offset;
  made.c = list.length;
  made.span = since(start.offset);
  return add(made);
}

// `a[i]` and `a[i] <- v`
Parser::NodeId Parser::index(NodeId array) {
  Span start = node(array).span, open = here();
  next();
  NodeId at_index = term(0);
  close(TokenKind::RightBracket, "the index", open);
  Node made;
  made.kind = Kind::Index;
  made.a = array.index;
  made.b = at_index.index;
  if (!panic() && at(TokenKind::Less) && !peek().newline_before() && glued(1) && peek(1).kind == TokenKind::Minus) {
    next();
    next();
    made.kind = Kind::Write;
    made.c = term(2).index;
  }
  made.span = since(start.offset);
  return add(made);
}

// `x => body`, with `binder` read already
Parser::NodeId Parser::lambda(NodeId binder) {
  Span start = node(binder).span;
  NodeId target = bare_binder(binder);
  if (!target.valid()) {
    uint32_t line = position();
    while (line > 0 && !tokens().items[line].newline_before()) --line;
    const bool in_case = tokens().items[line].kind == TokenKind::KwCase && node(strip_groups(binder)).kind != Kind::Tuple;
    if (auto* d = error(Code::P11, start, "a lambda takes exactly one name"))
      d->fix = in_case ? "the body of a case stands after a `:`, as in `case K{}: body`" : "write one lambda for each parameter (`a => b => ..`), and take parts of data in a def";
  }
  next();
  NodeId inner = block();
  Node made;
  made.kind = target.valid() ? Kind::Lambda : Kind::Error;
  if (target.valid()) {
    const Node& found = node(target);
    const Node& named = found.kind == Kind::PlusMark ? node(strip_groups(NodeId(found.a))) : found;
    made.mark = found.kind == Kind::PlusMark ? Mark::Reusable : Mark::Affine;
    made.name = named.name;
    made.name_span = named.span;
    made.a = inner.index;
  }
  made.span = since(start.offset);
  return add(made);
}

}  // namespace bendc
