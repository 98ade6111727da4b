// Bodies: sequences of statements that end in a term or a match. A chain of lets and rewrites is a loop that fills in each statement's
// body afterwards, so that 100000 lets need no stack.
#include "checker/elaborator.h"

namespace bendc::elab {

using ast::Kind;
using ast::NodeId;
using core::Quantity;
using core::TermId;
using core::TermKind;

bool Elaborator::is_pattern_let(const ast::Let& let) const {
  if (let.patterns.size() != 1 || let.erased || let.type.valid()) return false;
  Kind kind = node(strip(let.patterns[0])).kind;
  return kind != Kind::Name && kind != Kind::PlusMark && kind != Kind::Error;
}

// The name a plain let binds. A reserved look at the pattern rules: `Nil = x` is refused as in a case.
void Elaborator::let_name(NodeId pattern, bool erased, core::LetRow& row) {
  if (erased) {
    const Node& n = node(pattern);
    row.name = n.kind == Kind::Name ? n.name : words_.underscore;
    row.quantity = Quantity::None;
    row.span = n.span;
    return;
  }
  const Pattern p = patterns_[patterns_.convert(pattern)];
  row.name = p.name.valid() ? p.name : words_.underscore;
  row.quantity = p.mark;
  row.span = p.span;
}

void Elaborator::plain_let(const ast::Let& let, const Node& n, TermId& id) {
  SmallVector<core::LetRow, 4> rows(let.patterns.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    let_name(let.patterns[i], let.erased, rows[i]);
    if (i >= let.values.size()) {
      rows[i].value = error_term(n.span);
      continue;
    }
    rows[i].value = term(let.values[i]);
    if (let.type.valid()) {
      TermId type = term(let.type);
      rows[i].value = add({.kind = TermKind::Ann, .a = rows[i].value.index, .b = type.index}, node(let.values[i]).span);
    }
  }
  uint32_t offset = static_cast<uint32_t>(book.let_rows.size());
  uint32_t count = static_cast<uint32_t>(rows.size());
  uint8_t flags = count >= 2 && !let.erased ? core::kParallel : 0;
  tree_.let_bound = {};
  for (uint32_t i = 0; i < count; ++i) {
    BinderId b = tree_.add_binder({.name = rows[i].name, .span = rows[i].span, .state = BinderState::Closed, .level = depth + i});
    if (i == 0) tree_.let_bound.from = b.index;
    tree_.let_bound.to = b.index + 1;
    if (rows[i].name != words_.underscore) scope.push(rows[i].name, b);
  }
  book.let_rows.insert(book.let_rows.end(), rows.begin(), rows.end());
  depth += count;
  id = add({.kind = TermKind::Let, .flags = flags, .a = offset, .b = count}, let.statement);
}

// `%e : P` or `%h@e : P`: in P, `_` is the right endpoint and h the evidence.
void Elaborator::rewrite_head(const Node& n, TermId& id) {
  TermId evidence = term(NodeId(n.a));
  Name h = n.name.valid() ? n.name : words_.underscore;
  size_t scope_mark = scope.size();
  scope.push(words_.underscore, tree_.add_binder({.name = words_.underscore, .span = n.span, .level = depth}));
  BinderId evidence_binder = tree_.add_binder({.name = h, .span = n.name_span, .level = depth + 1});
  if (h != words_.underscore) scope.push(h, evidence_binder);
  depth += 2;
  TermId motive = term(NodeId(n.b));
  depth -= 2;
  scope.pop_to(scope_mark);
  Span span = node(NodeId(n.b)).span;
  motive = add({.kind = TermKind::Lam, .name = h, .a = motive.index}, span);
  motive = add({.kind = TermKind::Lam, .name = words_.underscore, .a = motive.index}, span);
  id = add({.kind = TermKind::Rwt, .a = evidence.index, .b = motive.index}, n.span);
}

void Elaborator::attach(TermId id, TermId& first, TermId& hole) {
  if (hole.valid()) book.terms[hole].c = id.index;
  else first = id;
}

TermId Elaborator::body(NodeId id, uint32_t pending, const OperatorType& operators) {
  if (!nesting.enter()) {
    too_deep(node(id).span);
    return error_term(node(id).span);
  }
  const size_t scope_mark = scope.size(), trail_mark = tree_.trail_mark(), lambda_mark = tree_.lambda_mark();
  const uint32_t lambdas_depth = depth;
  const CaseTree::LetBound outer_let_bound = tree_.let_bound;
  uint32_t statements = 0;   // binders of the lets and lambdas so far
  TermId first, hole, last;
  auto close = [&] {
    tree_.close_all(pending);
    pending = kNil;
  };
  while (!last.valid()) {
    const Node& n = node(id);
    if (n.kind == Kind::Match) {
      body_operators = operators;
      last = tree_.match(id, pending);
    } else if (n.kind == Kind::Let && is_pattern_let(ast_->lets[n.a])) {
      body_operators = operators;
      last = tree_.destructure(id, pending);
    } else if (n.kind == Kind::Let) {
      const ast::Let& let = ast_->lets[n.a];
      close();
      uint32_t before = depth;
      TermId statement;
      plain_let(let, n, statement);
      statements += depth - before;
      attach(statement, first, hole);
      hole = statement;
      id = let.body;
    } else if (n.kind == Kind::Rewrite) {
      close();
      tree_.let_bound = {};
      TermId statement;
      rewrite_head(n, statement);
      attach(statement, first, hole);
      hole = statement;
      id = NodeId(n.c);
    } else {
      close();
      tree_.let_bound = {};
      last = term(id, operators);
    }
  }
  attach(last, first, hole);
  depth -= statements;
  TermId out = tree_.end_lambdas(lambda_mark, first);
  depth = lambdas_depth;
  tree_.restore(trail_mark);
  tree_.let_bound = outer_let_bound;
  scope.pop_to(scope_mark);
  return out;
}

TermId Elaborator::block(NodeId id, const OperatorType& operators) {
  CaseTree::LetBound outer = tree_.let_bound;
  tree_.let_bound = {};
  TermId out = body(id, kNil, operators);
  tree_.let_bound = outer;
  return out;
}

}  // namespace bendc::elab
