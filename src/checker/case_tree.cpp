// The column loop of language.md section 6, and what happens to rows whose scrutinee cannot be matched. Splitting a column is in
// case_split.cpp. Recursion is one level per test that a path passes; chains of misses are loops.
#include "checker/case_tree.h"

#include <fmt/format.h>

#include "checker/elaborator.h"

namespace bendc::elab {

using ast::Kind;
using ast::NodeId;
using core::CtorId;
using core::Quantity;
using core::Term;
using core::TermId;
using core::TermKind;

namespace {

// Rows examined, lambdas around arms (one for each pending binder) and terms copied into second and later arms, per declaration: an allowance that hand-written matches never need, at which a
// declaration has taken about a second and 100 MB, and more in proportion to the text, since a table of string rows takes about 3 a byte.
constexpr uint64_t kMaxWork = uint64_t(1) << 22;
constexpr uint64_t kWorkPerByte = 16;

// Copies of one row's body up to which a row of variables still waits for the columns that later rows split. Splitting them first lets the type
// of each copy compute; past the bound the first row of variables ends the tree, so that rows over n columns cost n^2 and not 2^n.
constexpr uint32_t kMaxCopies = 64;

}  // namespace

CaseTree::CaseTree(Elaborator& elab, Patterns& patterns) : elab_(elab), patterns_(patterns) {}

void CaseTree::clear() {
  for (const Origin& o : origins_) origin_of_[o.node.index] = kNil;
  binders_.clear();
  rows_.clear();
  scrutinees_.clear();
  columns_.clear();
  names_.clear();
  binders_lists_.clear();
  taken_.clear();
  links_.clear();
  trail_.clear();
  closed_.clear();
  origins_.clear();
  work_ = 0;
  max_work_ = kMaxWork;
  stopped_ = false;
  let_bound = {};
  opened = kNil;
}

void CaseTree::begin(Span declaration) { max_work_ = kMaxWork + kWorkPerByte * declaration.length; }

uint32_t CaseTree::cons_pending(BinderId binder, uint32_t rest) {
  binders_lists_.push_back({binder, rest});
  return static_cast<uint32_t>(binders_lists_.size() - 1);
}

uint32_t CaseTree::add_name(uint32_t names, Name name, BinderId binder) {
  if (!name.valid()) return names;
  names_.push_back({name, binder, names});
  return static_cast<uint32_t>(names_.size() - 1);
}

CaseTree::Rows CaseTree::push_rows(std::span<const Row> rows) {
  Rows out{static_cast<uint32_t>(rows_.size()), static_cast<uint32_t>(rows.size())};
  rows_.insert(rows_.end(), rows.begin(), rows.end());
  return out;
}

bool CaseTree::in_list(uint32_t list, BinderId binder) const {
  for (; list != kNil; list = binders_lists_[list].next) {
    if (binders_lists_[list].binder == binder) return true;
  }
  return false;
}

void CaseTree::restore(size_t mark) {
  while (trail_.size() > mark) {
    binders_[trail_.back().id] = trail_.back().binder;
    trail_.pop_back();
  }
}

bool CaseTree::work(uint64_t amount) {
  work_ += amount;
  return !stopped_ && work_ <= max_work_;
}

// Lambdas around what follows, outermost first. ---------------------------------------------------------------------------------------

void CaseTree::close_all(uint32_t pending) {
  for (; pending != kNil; pending = binders_lists_[pending].next) {
    BinderId id = binders_lists_[pending].binder;
    save(id);
    Binder& b = binders_[id];
    b.state = BinderState::Closed;
    b.level = elab_.depth++;
    closed_.push_back(id);
    ++work_;
  }
}

// The binders' states are put back by whoever holds the trail mark; only their marks matter here.
TermId CaseTree::end_lambdas(size_t mark, TermId inner) {
  while (closed_.size() > mark) {
    const Binder& b = binders_[closed_.back()];
    closed_.pop_back();
    --elab_.depth;
    inner = elab_.add({.kind = TermKind::Lam, .quantity = b.mark, .name = b.name, .a = inner.index}, b.span);
  }
  return inner;
}

// Statements ----------------------------------------------------------------------------------------------------------------------------

uint32_t CaseTree::origin(NodeId node, NodeId body) {
  uint32_t& slot = origin_of_[node.index];
  if (slot == kNil) {
    slot = static_cast<uint32_t>(origins_.size());
    origins_.push_back({node, body});
  }
  return slot;
}

CaseTree::Scrutinee CaseTree::scrutinee(NodeId node) {
  while (ast_->nodes[node].kind == Kind::Group) node = NodeId(ast_->nodes[node].a);
  Scrutinee s{.node = node};
  if (ast_->nodes[node].kind == Kind::Name) s.binder = elab_.scope.find(ast_->nodes[node].name);
  s.foldable = foldable(s.binder);
  return s;
}

bool CaseTree::foldable(BinderId id) const {
  if (!id.valid()) return false;
  BinderState state = binders_[id].state;
  return (state == BinderState::Opened || state == BinderState::Known) && !in_list(opened, id);
}

TermId CaseTree::match(NodeId statement, uint32_t pending) {
  const ast::Node& n = ast_->nodes[statement];
  size_t rows_mark = rows_.size();
  SmallVector<Row, 8> rows;
  auto heads = ast_->list(n.a, n.b);
  for (NodeId case_node : ast_->list(n.c, n.d)) {
    const ast::Node& c = ast_->nodes[case_node];
    if (c.kind != Kind::Case) { elab_.reports.broken = true; continue; }
    Row row{.opened = opened, .origin = origin(case_node, NodeId(c.c))};
    auto patterns = ast_->list(c.a, c.b);
    if (patterns.size() != heads.size()) { elab_.reports.broken = true; continue; }  // P7, the parser's
    SmallVector<PatternId, 4> converted;
    for (NodeId p : patterns) converted.push_back(patterns_.convert(p));
    for (size_t i = converted.size(); i-- > 0;) {
      columns_.push_back({converted[i], row.columns});
      row.columns = static_cast<uint32_t>(columns_.size() - 1);
    }
    rows.push_back(row);
  }
  uint32_t list = kNil;
  for (size_t i = heads.size(); i-- > 0;) {
    Scrutinee s = scrutinee(heads[i]);
    s.next = list;
    scrutinees_.push_back(s);
    list = static_cast<uint32_t>(scrutinees_.size() - 1);
  }
  TermId out = tree(list, push_rows(rows), pending, Site{n.name_span});
  rows_.resize(rows_mark);
  return out;
}

TermId CaseTree::destructure(NodeId let_node, uint32_t pending) {
  const ast::Let& let = ast_->lets[ast_->nodes[let_node].a];
  size_t rows_mark = rows_.size();
  Row row{.opened = opened, .origin = origin(let_node, let.body)};
  columns_.push_back({patterns_.convert(let.patterns[0]), kNil});
  row.columns = static_cast<uint32_t>(columns_.size() - 1);
  Scrutinee s = scrutinee(let.values[0]);
  scrutinees_.push_back(s);
  TermId out = tree(static_cast<uint32_t>(scrutinees_.size() - 1), push_rows({&row, 1}), pending, Site{let.statement});
  rows_.resize(rows_mark);
  return out;
}

TermId CaseTree::row_body(Row row, uint32_t pending) {
  Origin& o = origins_[row.origin];
  bool again = o.copies > 0;
  ++o.copies;
  NodeId body = o.body;

  size_t scope_mark = elab_.scope.size();
  SmallVector<uint32_t, 8> cells;
  for (uint32_t c = row.names; c != kNil; c = names_[c].next) cells.push_back(c);
  for (size_t i = cells.size(); i-- > 0;) elab_.scope.push(names_[cells[i]].name, names_[cells[i]].binder);
  uint32_t outer_opened = opened;
  opened = row.opened;
  uint32_t terms = elab_.book.terms.size();
  TermId out = elab_.body(body, pending, elab_.body_operators);
  if (again) work_ += elab_.book.terms.size() - terms;
  opened = outer_opened;
  elab_.scope.pop_to(scope_mark);
  return out;
}

// The column loop ---------------------------------------------------------------------------------------------------------------------

bool CaseTree::has_constructor(Rows rows) const {
  for (uint32_t i = 0; i < rows.count; ++i) {
    if (first(rows_[rows.begin + i]).kind != PatternKind::Any) return true;
  }
  return false;
}

// Does nothing that is left of the row test anything?
bool CaseTree::takes_all(const Row& row) const {
  for (uint32_t c = row.columns; c != kNil; c = columns_[c].next) {
    if (patterns_[columns_[c].pattern].kind != PatternKind::Any) return false;
  }
  return true;
}

// A column of variables: each row's name becomes another name of the binder, which stays as it is.
void CaseTree::rename(Rows rows, BinderId id) {
  Quantity mark = binders_[id].mark;
  for (uint32_t i = 0; i < rows.count; ++i) {
    Row& row = rows_[rows.begin + i];
    const Pattern& p = first(row);
    mark = std::max(mark, p.mark);
    row.names = add_name(row.names, p.name, id);
    row.columns = columns_[row.columns].next;
    // What the cases above leave over is called as its own case calls it, where there is one.
    if (rows.count == 1 && p.name.valid() && binders_[id].taken != kNil && binders_[id].state == BinderState::Pending) {
      save(id);
      binders_[id].name = p.name;
    }
  }
  if (mark != binders_[id].mark && binders_[id].state == BinderState::Pending) {
    save(id);
    binders_[id].mark = mark;
  }
}

bool CaseTree::is_taken(const Pattern& p, uint32_t taken) {
  if (p.kind == PatternKind::Any) return false;
  CtorId head = patterns_.head(p);
  for (; taken != kNil; taken = taken_[taken].next) {
    const TakenCell& t = taken_[taken];
    if (t.ctor.valid() ? t.ctor == head : p.kind != PatternKind::Ctor && p.kind != PatternKind::String && t.literal == literal_of(p)) return true;
  }
  return false;
}

// Rows for what an enclosing match has already ruled out on this path.
void CaseTree::drop_taken(Rows& rows, BinderId id) {
  uint32_t taken = binders_[id].taken, kept = 0;
  for (uint32_t i = 0; i < rows.count; ++i) {
    if (!is_taken(first(rows_[rows.begin + i]), taken)) rows_[rows.begin + kept++] = rows_[rows.begin + i];
  }
  rows.count = kept;
}

TermId CaseTree::tree(uint32_t scrutinees, Rows given, uint32_t pending, const Site& site) {
  if (!elab_.nesting.enter()) return too_deep(site);
  size_t trail_mark = trail_.size(), lambda_start = closed_.size(), rows_mark = rows_.size();
  // Columns are dropped in place below, so the caller's rows are copied.
  Rows rows{static_cast<uint32_t>(rows_.size()), given.count};
  for (uint32_t i = 0; i < given.count; ++i) rows_.push_back(Row(rows_[given.begin + i]));

  TermId out;
  while (!out.valid()) {
    if (!work(rows.count + 1)) {
      out = too_large(site);
      break;
    }
    if (scrutinees == kNil) {
      // No row is left only where an error was reported.
      out = rows.count > 0 ? row_body(rows_[rows.begin], pending) : elab_.error_term(site.span);
      break;
    }
    Scrutinee s = scrutinees_[scrutinees];
    if (!s.binder.valid()) {
      out = refuse(s, site);
      break;
    }
    const Binder& b = binders_[s.binder];
    bool live = b.state == BinderState::Pending;
    if (live && b.taken != kNil) drop_taken(rows, s.binder);
    if (rows.count > 1 && origins_[rows_[rows.begin].origin].copies >= kMaxCopies && takes_all(rows_[rows.begin])) rows.count = 1;
    if (rows.count > 0 && !has_constructor(rows) && (live || s.folded || s.foldable || is_let_bound(s.binder))) {
      rename(rows, s.binder);
      scrutinees = s.next;
    } else if (s.foldable) {
      if (!fold(s, scrutinees, rows, site)) out = elab_.error_term(site.span);
    } else if (!live) {
      out = refuse(s, site);
    } else if (binders_lists_[pending].binder == s.binder) {
      out = split(scrutinees, rows, pending, site);
    } else {
      // A match on a later binder closes the ones before it.
      uint32_t rest = binders_lists_[pending].next;
      binders_lists_.push_back({binders_lists_[pending].binder, kNil});
      close_all(static_cast<uint32_t>(binders_lists_.size() - 1));
      pending = rest;
    }
  }
  out = end_lambdas(lambda_start, out);
  restore(trail_mark);
  rows_.resize(rows_mark);
  return out;
}

// Matching a binder that already stands for a constructor or literal because its row reached here through a variable: the answer is known,
// so nothing is tested.
bool CaseTree::fold(Scrutinee& s, uint32_t& scrutinees, Rows& rows, const Site& site) {
  const Binder b = binders_[s.binder];
  SmallVector<Row, 8> kept;
  for (uint32_t i = 0; i < rows.count; ++i) {
    const Row row = rows_[rows.begin + i];
    PatternId pattern = columns_[row.columns].pattern;
    if (b.state == BinderState::Known) {
      Row out = row;
      out.columns = columns_[row.columns].next;
      if (!known_match(pattern, b.literal, out)) continue;
      if (patterns_[pattern].kind == PatternKind::Any) out.names = add_name(out.names, patterns_[pattern].name, s.binder);
      else out.opened = cons_pending(s.binder, out.opened);
      kept.push_back(out);
    } else if (patterns_[pattern].kind == PatternKind::Any) {
      kept.push_back(pass_row(row, s.binder, b.field_count));
    } else {
      PatternId expanded = patterns_.expand(pattern);
      if (patterns_[expanded].kind == PatternKind::Ctor && CtorId(patterns_[expanded].a) == b.ctor) kept.push_back(open_row(row, expanded, s.binder));
    }
  }
  if (kept.empty()) {
    if (!elab_.reports.broken) {
      std::string value = b.state == BinderState::Opened ? std::string(elab_.symbols.show(elab_.book.ctors[b.ctor].name)) + "{..}" : "the literal that an enclosing case matched";
      Diagnostic& d = elab_.reports.add(Code::C15, site.span, fmt::format("this match has no case for `{}`", value));
      d.notes.push_back("an enclosing case already fixed the scrutinee's constructor");
    }
    elab_.reports.broken = true;
    return false;
  }
  uint32_t next = s.next;
  if (b.state == BinderState::Opened) {
    for (uint32_t i = b.field_count; i-- > 0;) {
      BinderId field(b.first_field.index + i);
      scrutinees_.push_back({field, s.node, true, foldable(field), next});
      next = static_cast<uint32_t>(scrutinees_.size() - 1);
    }
  }
  scrutinees = next;
  for (size_t i = 0; i < kept.size(); ++i) rows_[rows.begin + i] = kept[i];
  rows.count = static_cast<uint32_t>(kept.size());
  return true;
}

// Refusals ------------------------------------------------------------------------------------------------------------------------------

TermId CaseTree::refuse(const Scrutinee& s, const Site& site) {
  const ast::Node& n = ast_->nodes[s.node];
  std::string written = n.name.valid() && n.kind == Kind::Name ? std::string(elab_.names.text(n.name)) : "";
  Code code = Code::F3;
  std::string message, rule, fix;
  Span span = n.span.valid() ? n.span : site.span;
  switch (n.kind) {
    case Kind::Name:
      if (!s.binder.valid()) {
        code = Code::F1;
        bool global = static_cast<bool>(elab_.symbols.term(n.name).symbol);
        message = global ? fmt::format("`{}` is a global name, which cannot be matched", written) : fmt::format("`{}` is no parameter or field that can be matched here", written);
        rule = "a match takes the parameters of its definition and the fields of earlier patterns, in order";
        fix = "pass the value to a helper definition that matches its parameter";
        if (!global) {
          if (std::string near = elab_.nearest_local(written); !near.empty()) fix = fmt::format("did you mean `{}`?", near);
        }
      } else if (binders_[s.binder].state == BinderState::Opened || binders_[s.binder].state == BinderState::Known) {
        code = Code::F2;
        message = fmt::format("`{}` was already taken apart by an enclosing pattern", written);
        rule = "inside a case the scrutinee is its constructor; only its fields can be matched further";
        fix = "match the fields, or write the inner rows as rows of the outer match";
      } else if (is_let_bound(s.binder)) {
        code = Code::F4;
        message = fmt::format("`{}` is bound by a let, which cannot be taken apart", written);
        rule = "only parameters and pattern fields can be matched";
        fix = "pass the value to a helper definition that matches its parameter";
      } else {
        code = Code::F1;
        message = fmt::format("`{}` can no longer be matched here", written);
        rule = "matches follow the order of the binders: a let, a lambda or a match on a later binder closes the ones before it";
        fix = "match it earlier, or reorder the parameters, or pass it to a helper definition";
      }
      break;
    case Kind::Ctor: case Kind::U32Lit: case Kind::NatLit: case Kind::F32Lit: case Kind::CharLit: case Kind::StringLit:
    case Kind::Tuple: case Kind::List: case Kind::NatPlus:
      code = Code::F2;
      message = "this match is on a constructor or literal, whose case is known";
      rule = "only parameters and pattern fields can be matched";
      if (n.kind == Kind::Tuple) fix = "name each part by a let of its own, `a = f(x)`, or two calls by a parallel let, `a b = f(x) g(y)`";
      break;
    case Kind::Error: elab_.reports.broken = true; return elab_.error_term(site.span);
    case Kind::TypeKw: case Kind::DataKw: case Kind::QuantKw: case Kind::KindOf: case Kind::QuantLit: case Kind::All: case Kind::Exists:
    case Kind::PlusMark: case Kind::Rfl: case Kind::Eql: case Kind::Neq: case Kind::Ann: case Kind::Group: case Kind::Fill:
    case Kind::RawMatch: case Kind::RawArm: case Kind::Rewrite: case Kind::Do: case Kind::DoBind: case Kind::DoLet: case Kind::DoStep:
    case Kind::DoReturn: case Kind::Hole: case Kind::Lambda: case Kind::Call: case Kind::TildeArg: case Kind::TypeArgs: case Kind::Index:
    case Kind::Write: case Kind::Binary: case Kind::Match: case Kind::Case: case Kind::Let:
      message = "this value is computed, and only a parameter or a pattern field can be taken apart";
      rule = "there is no test of a computed value: a match reads its definition's own parameters";
      fix = "pass the value to a helper definition that matches its parameter";
      break;
  }
  if (n.kind == Kind::Binary && n.op == ast::Op::Cons) code = Code::F2;
  Diagnostic& d = elab_.reports.add(code, span, std::move(message));
  d.notes.push_back(std::move(rule));
  d.fix = std::move(fix);
  return elab_.error_term(site.span);
}

TermId CaseTree::too_large(const Site& site) {
  if (!stopped_) {
    stopped_ = true;
    bool quiet = std::exchange(elab_.reports.quiet, false);
    Diagnostic& d = elab_.reports.add(Code::L1, site.span, fmt::format("the case tree of `{}` is too large", elab_.reports.def));
    d.notes.push_back("every arm takes the parameters and fields that are still to come, and rows with variables are copied into every case they can reach: these multiply");
    d.fix = "split the match: let helper definitions match some of the columns";
    elab_.reports.quiet = quiet;
  }
  elab_.reports.broken = true;
  return elab_.error_term(site.span);
}

TermId CaseTree::too_deep(const Site& site) {
  elab_.too_deep(site.span);
  return elab_.error_term(site.span);
}

}  // namespace bendc::elab
