// Splitting a column on the front pending binder x: by constructor (Mat) or by literal (MatLit). Each test's hit rows are elaborated with x
// standing for what it matched; the miss rows go to the next test of the same loop.
#include <algorithm>
#include <vector>

#include "checker/elaborator.h"

namespace bendc::elab {

using core::CtorId;
using core::Quantity;
using core::Term;
using core::TermId;
using core::TermKind;

namespace {

constexpr uint32_t kMaxNatChain = 256;  // larger Nat literals are equality tests, so that no tree nests once per successor

// Rows times successors that a column of Nat literals may cost as a chain of constructors; 256 rows `0n` .. `255n` stay below. The chain lets the
// type of a later row compute; beyond the bound the literals are equality tests, and the cost is linear in the rows.
constexpr uint64_t kMaxNatColumn = 1u << 16;

}  // namespace

// Rows that test the same value, by first row.
void CaseTree::group(std::span<Entry> entries, SmallVector<Group, 8>& groups) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.value != b.value ? a.value < b.value : a.row < b.row; });
  for (uint32_t i = 0; i < entries.size();) {
    uint32_t j = i;
    while (j < entries.size() && entries[j].value == entries[i].value) ++j;
    groups.push_back({entries[i].row, i, j});
    i = j;
  }
  std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.first < b.first; });
}

// The rows of a group and those of the variables, in row order.
void CaseTree::merge(std::span<const Entry> group, std::span<const uint32_t> variables, SmallVector<uint32_t, 16>& out) {
  size_t g = 0, v = 0;
  while (g < group.size() || v < variables.size()) {
    bool variable = g == group.size() || (v < variables.size() && variables[v] < group[g].row);
    out.push_back(variable ? variables[v++] : group[g++].row);
  }
}

Literal CaseTree::literal_of(const Pattern& p) {
  LiteralKind kind = p.kind == PatternKind::Nat ? LiteralKind::Nat : p.kind == PatternKind::U32 ? LiteralKind::U32 : p.kind == PatternKind::F32 ? LiteralKind::F32 : LiteralKind::Word;
  return {kind, p.a, p.kind == PatternKind::Word ? p.b : 0};
}

// Is p tested as a whole? Numbers are, unless the same column also takes one apart bit by bit.
bool CaseTree::is_test(const Pattern& p, Rows rows) const {
  if (p.kind == PatternKind::Nat) return p.a > kMaxNatChain;
  if (p.kind != PatternKind::U32 && p.kind != PatternKind::F32) return false;
  for (uint32_t i = 0; i < rows.count; ++i) {
    if (first(rows_[rows.begin + i]).kind == PatternKind::Ctor) return false;
  }
  return true;
}

// Nothing but Nat literals and variables, too many to take apart one successor at a time?
bool CaseTree::long_nat_column(Rows rows) const {
  if (rows.count <= 16) return false;  // gaps are at most kMaxNatChain, so the bound below cannot be passed
  std::vector<uint32_t> values;
  for (uint32_t i = 0; i < rows.count; ++i) {
    const Pattern& p = first(rows_[rows.begin + i]);
    if (p.kind == PatternKind::Nat) values.push_back(p.a);
    else if (p.kind != PatternKind::Any) return false;
  }
  // A chain goes on through the values that are near enough to the one before.
  std::sort(values.begin(), values.end());
  uint32_t depth = 0;
  for (uint32_t value : values) {
    if (value - depth > kMaxNatChain) break;
    depth = value;
  }
  return uint64_t(depth) * values.size() > kMaxNatColumn;
}

bool CaseTree::covered(const Binder& b) const {
  if (b.taken == kNil || !taken_[b.taken].ctor.valid()) return false;
  const core::Ctor& last = elab_.book.ctors[taken_[b.taken].ctor];
  return b.taken_ctors >= elab_.book.datatypes[last.data].ctors.size();
}

void CaseTree::take(BinderId id, CtorId ctor, const Literal& literal) {
  Binder& b = binders_[id];
  taken_.push_back({ctor, literal, b.taken});
  b.taken = static_cast<uint32_t>(taken_.size() - 1);
  if (ctor.valid()) ++b.taken_ctors;
}

TermId CaseTree::add_test(Term term, Span span, const Scrutinee& s) {
  TermId id = elab_.add(term, span);
  elab_.book.match_sites.push_back({id, ast_->nodes[s.node].span});
  return id;
}

TermId CaseTree::split(uint32_t scrutinees, Rows rows, uint32_t pending, const Site& site) {
  const Scrutinee s = scrutinees_[scrutinees];
  const BinderId x = s.binder;
  const Binder before = binders_[x];
  const size_t links_mark = links_.size(), rows_mark = rows_.size();
  const ast::Node& written = ast_->nodes[s.node];
  const Name name = written.kind == ast::Kind::Name ? written.name : before.name;

  TermId last;
  while (!last.valid()) {
    uint32_t chosen = 0;
    while (chosen < rows.count && first(rows_[rows.begin + chosen]).kind == PatternKind::Any) ++chosen;
    if (!work(rows.count)) {
      last = too_large(site);
    } else if (chosen < rows.count) {
      PatternId pattern = columns_[rows_[rows.begin + chosen].columns].pattern;
      const Pattern p = patterns_[pattern];
      if (is_test(p, rows)) {
        bool pure = true;
        for (uint32_t i = 0; i < rows.count && pure; ++i) {
          const Pattern& q = first(rows_[rows.begin + i]);
          pure = q.kind == PatternKind::Any || (q.kind == p.kind && is_test(q, Rows{}));
        }
        if (pure) split_literal_column(scrutinees, rows, pending, site);
        else split_literal(scrutinees, rows, pending, site, p);
      } else if (p.kind == PatternKind::Nat && long_nat_column(rows)) {
        split_literal_column(scrutinees, rows, pending, site);
      } else {
        split_constructor_column(scrutinees, rows, pending, site);
      }
    } else if (rows.count == 0 || covered(binders_[x])) {
      // After the last constructor nothing is left to match: the rows that remain are dead and are not elaborated.
      for (uint32_t i = 0; i < rows.count; ++i) origins_[rows_[rows.begin + i].origin].dead = true;
      last = add_test({.kind = TermKind::Efq, .name = name}, site.span, s);
    } else {
      last = tree(scrutinees, rows, pending, site);
    }
  }
  while (links_.size() > links_mark) {
    const Link link = links_.back();
    links_.pop_back();
    Term test{.kind = link.ctor.valid() ? TermKind::Mat : TermKind::MatLit, .name = name};
    test.a = link.ctor.valid() ? link.ctor.index : link.literal.index;
    test.b = link.hit.index;
    test.c = last.index;
    last = add_test(test, link.span, s);
  }
  binders_[x] = before;
  rows_.resize(rows_mark);
  return last;
}

CaseTree::Row CaseTree::open_row(const Row& row, PatternId pattern, BinderId binder) {
  Row out = row;
  out.columns = columns_[row.columns].next;
  auto subs = patterns_.subs(patterns_[pattern]);
  for (size_t i = subs.size(); i-- > 0;) {
    columns_.push_back({subs[i], out.columns});
    out.columns = static_cast<uint32_t>(columns_.size() - 1);
  }
  out.opened = cons_pending(binder, row.opened);
  return out;
}

CaseTree::Row CaseTree::pass_row(const Row& row, BinderId binder, uint32_t fields) {
  Row out = row;
  const Pattern p = first(row);
  out.columns = columns_[row.columns].next;
  if (fields > 0) {
    PatternId any = patterns_.any(p.span);
    for (uint32_t i = 0; i < fields; ++i) {
      columns_.push_back({any, out.columns});
      out.columns = static_cast<uint32_t>(columns_.size() - 1);
    }
  }
  out.names = add_name(row.names, p.name, binder);
  return out;
}

// A column of constructors (literals among them seen as such): the rows are sorted by constructor once, so that an enumeration's n rows cost
// n log n, and tested in the order of their first rows.
void CaseTree::split_constructor_column(uint32_t scrutinees, Rows& rows, uint32_t pending, const Site& site) {
  SmallVector<Entry, 8> constructors;
  SmallVector<uint32_t, 8> variables;
  Quantity mark = binders_[scrutinees_[scrutinees].binder].mark;
  for (uint32_t i = 0; i < rows.count; ++i) {
    const Pattern& p = first(rows_[rows.begin + i]);
    if (p.kind == PatternKind::Any) {
      variables.push_back(i);
      mark = std::max(mark, p.mark);
    } else {
      constructors.push_back({patterns_.head(p).index, i});
    }
  }
  SmallVector<Group, 8> groups;
  group(constructors, groups);
  SmallVector<uint32_t, 16> hits;
  for (const Group& g : groups) {
    hits.clear();
    merge({constructors.data() + g.begin, g.end - g.begin}, variables, hits);
    if (!work(hits.size()) || !split_constructor(scrutinees, rows, hits, mark, pending, site, CtorId(constructors[g.begin].value), g.first)) break;
  }
  for (size_t i = 0; i < variables.size(); ++i) rows_[rows.begin + i] = rows_[rows.begin + variables[i]];
  rows.count = static_cast<uint32_t>(variables.size());
}

bool CaseTree::split_constructor(uint32_t scrutinees, Rows rows, std::span<const uint32_t> hit_rows, Quantity mark, uint32_t pending, const Site& site, CtorId k, uint32_t chosen) {
  const Scrutinee s = scrutinees_[scrutinees];
  const Pattern pattern = patterns_[patterns_.expand(columns_[rows_[rows.begin + chosen].columns].pattern)];
  if (pattern.kind != PatternKind::Ctor) return false;  // a literal whose constructors are missing: P10, reported
  const uint32_t count = pattern.count;

  const BinderId first_field(binders_.size());
  for (uint32_t i = 0; i < count; ++i) {
    const Pattern& sub = patterns_[patterns_.subs(pattern)[i]];
    Binder field{.name = sub.name, .span = sub.span, .mark = mark, .state = BinderState::Pending};
    if (sub.kind == PatternKind::Any) field.mark = std::max(mark, sub.mark);
    if (!field.name.valid()) field.name = elab_.book.ctors[k].fields[i].name;
    binders_.add(field);
  }
  SmallVector<Row, 8> hits;
  for (uint32_t i : hit_rows) {
    const Row row = rows_[rows.begin + i];
    PatternId p = columns_[row.columns].pattern;
    hits.push_back(patterns_[p].kind == PatternKind::Any ? pass_row(row, s.binder, count) : open_row(row, patterns_.expand(p), s.binder));
  }
  work_ += hits.size() * count;

  const Binder before = binders_[s.binder];
  uint32_t columns = s.next, fields = binders_lists_[pending].next;
  for (uint32_t i = count; i-- > 0;) {
    BinderId field(first_field.index + i);
    scrutinees_.push_back({field, s.node, false, false, columns});
    columns = static_cast<uint32_t>(scrutinees_.size() - 1);
    fields = cons_pending(field, fields);
  }
  Binder& x = binders_[s.binder];
  x.state = BinderState::Opened;
  x.ctor = k;
  x.first_field = first_field;
  x.field_count = count;
  size_t rows_mark = rows_.size();
  TermId hit = tree(columns, push_rows(hits), fields, site);
  rows_.resize(rows_mark);
  binders_[s.binder] = before;
  links_.push_back({k, {}, hit, pattern.span});
  take(s.binder, k, {});
  return true;
}

// x equals the literal: the rest of the match goes on without x's column.
void CaseTree::literal_hit(uint32_t scrutinees, Rows hits, uint32_t pending, const Site& site, const Literal& literal, Span span) {
  const Scrutinee s = scrutinees_[scrutinees];
  const Binder before = binders_[s.binder];
  Binder& x = binders_[s.binder];
  x.state = BinderState::Known;
  x.literal = literal;
  TermId hit = tree(s.next, hits, binders_lists_[pending].next, site);
  binders_[s.binder] = before;
  links_.push_back({{}, elab_.literal_term(literal, span), hit, span});
  take(s.binder, {}, literal);
}

// A literal in a column that also holds constructors: rows that may match it are decided now.
void CaseTree::split_literal(uint32_t scrutinees, Rows& rows, uint32_t pending, const Site& site, const Pattern& chosen) {
  const Scrutinee s = scrutinees_[scrutinees];
  const Literal literal = literal_of(chosen);
  const Span span = chosen.span;
  SmallVector<Row, 8> hits;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < rows.count; ++i) {
    const Row row = rows_[rows.begin + i];
    PatternId id = columns_[row.columns].pattern;
    const Pattern p = patterns_[id];
    Row hit = row;
    hit.columns = columns_[row.columns].next;
    if (known_match(id, literal, hit)) {
      if (p.kind == PatternKind::Any) hit.names = add_name(hit.names, p.name, s.binder);
      else hit.opened = cons_pending(s.binder, hit.opened);
      hits.push_back(hit);
    }
    bool same = p.kind != PatternKind::Any && p.kind != PatternKind::Ctor && literal_of(p) == literal;
    if (!same) rows_[rows.begin + kept++] = row;
  }
  rows.count = kept;
  size_t rows_mark = rows_.size();
  literal_hit(scrutinees, push_rows(hits), pending, site, literal, span);
  rows_.resize(rows_mark);
}

// A column of nothing but tested literals and variables, grouped in the same way.
void CaseTree::split_literal_column(uint32_t scrutinees, Rows& rows, uint32_t pending, const Site& site) {
  const Scrutinee s = scrutinees_[scrutinees];
  SmallVector<Entry, 8> literals;
  SmallVector<uint32_t, 8> variables;
  for (uint32_t i = 0; i < rows.count; ++i) {
    const Pattern& p = first(rows_[rows.begin + i]);
    if (p.kind == PatternKind::Any) variables.push_back(i);
    else literals.push_back({p.a, i});
  }
  SmallVector<Group, 8> groups;
  group(literals, groups);
  SmallVector<uint32_t, 16> hit_rows;
  SmallVector<Row, 8> hits;
  for (const Group& g : groups) {
    hit_rows.clear();
    merge({literals.data() + g.begin, g.end - g.begin}, variables, hit_rows);
    if (!work(hit_rows.size())) break;
    const Pattern tested = first(rows_[rows.begin + g.first]);
    hits.clear();
    for (uint32_t i : hit_rows) {
      Row row = rows_[rows.begin + i];
      const Pattern p = first(row);
      row.columns = columns_[row.columns].next;
      if (p.kind == PatternKind::Any) row.names = add_name(row.names, p.name, s.binder);
      else row.opened = cons_pending(s.binder, row.opened);
      hits.push_back(row);
    }
    size_t rows_mark = rows_.size();
    literal_hit(scrutinees, push_rows(hits), pending, site, literal_of(tested), tested.span);
    rows_.resize(rows_mark);
  }
  for (size_t i = 0; i < variables.size(); ++i) rows_[rows.begin + i] = rows_[rows.begin + variables[i]];
  rows.count = static_cast<uint32_t>(variables.size());
}

// Does the pattern match the literal? Its variables become names of the literal's parts (the whole literal is the caller's to name).
bool CaseTree::known_match(PatternId id, Literal literal, Row& row) {
  struct Part { PatternId pattern; Literal literal; };
  SmallVector<Part, 8> parts;
  parts.push_back({id, literal});
  bool whole = true;
  while (!parts.empty()) {
    Part part = parts.back();
    parts.pop_back();
    const Pattern p = patterns_[part.pattern];
    const Literal& l = part.literal;
    if (p.kind == PatternKind::Any) {
      if (!whole && p.name.valid()) {
        BinderId b = binders_.add(Binder{.name = p.name, .span = p.span, .mark = p.mark, .state = BinderState::Known, .literal = l});
        row.names = add_name(row.names, p.name, b);
      }
    } else if (p.kind != PatternKind::Ctor) {
      if (p.kind == PatternKind::String || !(literal_of(p) == l)) return false;
    } else {
      CtorId k(p.a);
      switch (l.kind) {
        case LiteralKind::Nat:
          if (k != patterns_.nat_ctor(l.value == 0)) return false;
          if (l.value > 0) parts.push_back({patterns_.subs(p)[0], {LiteralKind::Nat, l.value - 1, 0}});
          break;
        case LiteralKind::U32:
        case LiteralKind::F32:
          if (k != patterns_.number_ctor(l.kind)) return false;
          parts.push_back({patterns_.subs(p)[0], {LiteralKind::Word, l.value, 32}});
          break;
        case LiteralKind::Word: {
          if (k != patterns_.word_ctor(l.bits == 0)) return false;
          if (l.bits == 0) break;
          const Pattern bit = patterns_[patterns_.subs(p)[0]];
          if (bit.kind == PatternKind::Ctor && CtorId(bit.a) != patterns_.bool_ctor((l.value & 1) != 0)) return false;
          if (bit.kind == PatternKind::Any && bit.name.valid()) {
            BinderId b = binders_.add(Binder{.name = bit.name, .span = bit.span, .mark = bit.mark, .state = BinderState::Opened, .ctor = patterns_.bool_ctor((l.value & 1) != 0)});
            row.names = add_name(row.names, bit.name, b);
          }
          parts.push_back({patterns_.subs(p)[1], {LiteralKind::Word, l.value >> 1, l.bits - 1}});
          break;
        }
      }
    }
    whole = false;
  }
  return true;
}

}  // namespace bendc::elab
