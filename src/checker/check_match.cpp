// Lambda-matches against a function type (language.md 5.5): arms, literal arms, defaults, coverage, and the joining of uses.
#include <algorithm>

#include <fmt/format.h>

#include "checker/typecheck.h"

namespace bendc {

using core::CtorId;
using core::DataId;
using core::Quantity;
using core::Term;
using core::TermId;
using core::TermKind;

namespace {

constexpr uint32_t kListedCases = 8;

}  // namespace

void Checker::check_arm(TermId arm, const Env* env, const Value* goal, bool live, bool spine, Path event) {
  const Path* before = frame_.path;
  if (spine) {
    event.before = before;
    event.term = arm;
    frame_.path = m_.arena().make<Path>(event);
  }
  check(arm, env, goal, live, spine);
  frame_.path = before;
}

bool Checker::literal_belongs(TermId literal, const AdtValue* adt) const {
  const KnownNames& k = m_.known();
  const DataId data(adt->a);
  switch (term(literal).kind) {
    case TermKind::U32: return k.u32.valid() && book_.ctors[k.u32].data == data;
    case TermKind::F32: return k.f32.valid() && book_.ctors[k.f32].data == data;
    case TermKind::Nat: return k.zero.valid() && book_.ctors[k.zero].data == data;
    case TermKind::Var: case TermKind::Ref: case TermKind::Let: case TermKind::Kind: case TermKind::Quant: case TermKind::Qua: case TermKind::Meet:
    case TermKind::All: case TermKind::Lam: case TermKind::App: case TermKind::Adt: case TermKind::Ctr: case TermKind::Str: case TermKind::Mat:
    case TermKind::MatLit: case TermKind::Efq: case TermKind::Eql: case TermKind::Rfl: case TermKind::Rwt: case TermKind::Hole: case TermKind::Ann:
    case TermKind::Error:
      return false;
  }
  return false;
}

// Some live variable in scope has a type without constructors.
bool Checker::unreachable_here() {
  for (const Binding& b : bindings_) {
    if (b.quantity == Quantity::None || b.constant) continue;
    const Value* type = m_.whnf(b.type);
    if (type->tag != Tag::Adt) continue;
    const AdtValue* adt = as<AdtValue>(type);
    if (book_.datatypes[DataId(adt->a)].ctors.size() == adt->removed.size()) return true;
  }
  return false;
}

void Checker::mark_unchecked(TermId id) {
  if (term(id).kind != TermKind::Efq) book_.unchecked.insert(id);
}

// The chain of tests is walked by a loop. Each arm's uses are taken back before the next one and joined at the end.
void Checker::check_match(TermId id, const Env* env, const Value* goal, bool live, bool spine) {
  const Value* all = m_.whnf(goal);
  if (is_error(all) || halted(id)) return;
  const Term first = term(id);
  if (all->tag != Tag::All) {
    Diagnostic& d = report(Code::C5, span(id), "a lambda-match where a value of another type is needed");
    d.expected = show(goal);
    d.observed = "a function";
    return;
  }
  const Value* scrutinee_type = m_.whnf(m_.domain(all));
  if (is_error(scrutinee_type) || halted(id)) return;
  const std::string scrutinee = first.name.valid() ? name_text(first.name) : std::string();
  if (scrutinee_type->tag != Tag::Adt) {
    Diagnostic& d = report(Code::C13, book_.scrutinee_span(id), scrutinee.empty() ? std::string("the matched value has no constructors") : fmt::format("`{}` has no constructors to match", scrutinee));
    d.notes.push_back(fmt::format("its type is `{}`; only values of a datatype are matched", show(scrutinee_type)));
    return;
  }
  if (live && m_.binder_quantity(all) == Quantity::None) {
    Diagnostic& d = report(Code::C14, book_.scrutinee_span(id), scrutinee.empty() ? std::string("live code matches an erased value") : fmt::format("live code matches the erased `{}`", scrutinee));
    d.notes.push_back("an erased value does not exist at run time, so nothing can branch on it");
    const bool constant = frame_.def.valid() && depth() < book_.defs[frame_.def].templates;
    d.fix = constant ? "a `~` parameter stands for a term of the call and is erased: make it a plain parameter, or let it be a function of one"
                     : "drop the `-` of its binder, or match something that is not erased";
    return;
  }

  const size_t saved_base = saved_.size();
  bool literals = false;
  TermId at = id;
  for (;;) {
    const Term t = term(at);
    const AdtValue* adt = as<AdtValue>(scrutinee_type);
    const size_t total = book_.datatypes[DataId(adt->a)].ctors.size();
    const bool covered = adt->removed.size() == total;
    if (t.kind == TermKind::Mat) {
      const CtorId ctor(t.a);
      const core::Ctor& c = book_.ctors[ctor];
      if (c.data != DataId(adt->a) || Machine::is_removed(adt, c.index)) {
        const bool taken = c.data == DataId(adt->a);
        Diagnostic& d = report(Code::C16, span(at), taken ? fmt::format("a second case for `{}`", name_text(c.name))
                                                          : fmt::format("`{}` is no constructor of `{}`", name_text(c.name), show(m_.whole(adt))));
        if (!taken) d.labels.push_back({c.name_span, fmt::format("it belongs to `{}`", name_text(book_.datatypes[c.data].name))});
        if (!taken) {
          d.notes.push_back(fmt::format("the cases are those of `{}`; the matched value has another type", name_text(book_.datatypes[c.data].name)));
          if (c.data == m_.known().nat && DataId(adt->a) == m_.known().u32_type) d.fix = "a literal of `U32` is written without the `n`";
          if (name_text(book_.datatypes[c.data].name) == "List" && DataId(adt->a) == m_.known().string) d.fix = "a string is taken apart by `SNil{}`, or `\"\"`, and `SCon{c, rest}`";
          break;   // the other cases would say the same
        }
        d.notes.push_back("a match has at most one case for each constructor of the matched type");
        at = TermId(t.c);
        if (term(at).kind != TermKind::Mat) break;
        continue;
      }
      const size_t mark = usage_.mark();
      Path event;
      event.kind = Path::Kind::Open;
      event.ctor = ctor;
      check_arm(TermId(t.b), env, m_.arm_type(ctor, adt, all), live, spine, event);
      if (m_.halt() != Halt::None) break;
      scrutinee_type = m_.without(adt, ctor);
      const bool last = as<AdtValue>(scrutinee_type)->removed.size() == total;
      at = TermId(t.c);
      if (last && term(at).kind != TermKind::Mat) {
        mark_unchecked(at);
        break;
      }
      usage_.rewind(mark, saved_);
      all = m_.with_domain(all, scrutinee_type);
      continue;
    }
    if (t.kind == TermKind::MatLit) {
      literals = true;
      if (!literal_belongs(TermId(t.a), adt)) {
        Diagnostic& d = report(Code::C16, span(at), fmt::format("a literal case on a value of `{}`", show(m_.domain(all))));
        const KnownNames& k = m_.known();
        if (term(TermId(t.a)).kind == TermKind::U32 && DataId(adt->a) == k.nat) d.fix = fmt::format("write `{}n`", term(TermId(t.a)).a);
        if (term(TermId(t.a)).kind == TermKind::U32 && DataId(adt->a) == k.f32_type) d.fix = fmt::format("write `{}.0`", term(TermId(t.a)).a);
        break;
      }
      const size_t mark = usage_.mark();
      const Value* literal = m_.eval(TermId(t.a), m_.empty());
      Path event;
      event.kind = Path::Kind::Literal;
      event.value = literal;
      check_arm(TermId(t.b), env, m_.codomain(all, literal), live, spine, event);
      if (m_.halt() != Halt::None) break;
      usage_.rewind(mark, saved_);
      if (literal->tag == Tag::Nat && as<NumberValue>(literal)->number == 0 && !Machine::is_removed(adt, book_.ctors[m_.known().zero].index)) {
        scrutinee_type = m_.without(adt, m_.known().zero);
        all = m_.with_domain(all, scrutinee_type);
      }
      at = TermId(t.c);
      continue;
    }
    if (t.kind == TermKind::Efq) {
      if (!covered && !unreachable_here()) missing_cases(at, adt, spine, literals, at == id);
      break;
    }
    check(at, env, all, live, spine);
    break;
  }
  for (size_t i = saved_base; i < saved_.size(); ++i) usage_.join(saved_[i]);
  saved_.resize(saved_base);
}

// C15 with the patterns that no row takes, written as the def's own left-hand side.
void Checker::missing_cases(TermId id, const AdtValue* adt, bool spine, bool literals, bool bare) {
  const core::Datatype& data = book_.datatypes[DataId(adt->a)];
  const Span where = span(id);
  Missing* entry = nullptr;
  for (Missing& m : missing_) {
    if (m.match.file == where.file && m.match.offset == where.offset) entry = &m;
  }
  if (entry == nullptr) {
    missing_.push_back({.match = where, .literals = literals, .bare = bare, .lambda = !spine || !frame_.def.valid(), .data = DataId(adt->a)});
    entry = &missing_.back();
    ++reported_;
  }
  std::vector<std::string>& missing = entry->cases;
  uint32_t& more = entry->more;
  auto pattern_of = [&](CtorId ctor) {
    const core::Ctor& c = book_.ctors[ctor];
    CtrValue* value = m_.arena().make<CtrValue>();
    value->tag = Tag::Ctr;
    value->a = ctor.index;
    value->count = static_cast<uint32_t>(c.fields.size());
    value->fields = m_.arena().array<const Value*>(c.fields.size());
    for (uint32_t i = 0; i < value->count; ++i) value->fields[i] = m_.var(0, wildcard_, error());
    return static_cast<const Value*>(value);
  };
  for (const CtorId ctor : data.ctors) {
    if (Machine::is_removed(adt, book_.ctors[ctor].index)) continue;
    if (missing.size() == kListedCases) {
      ++more;
      continue;
    }
    if (!spine || !frame_.def.valid()) {
      missing.push_back(fmt::format("`{}`", pattern_text(pattern_of(ctor))));
      continue;
    }
    // Put the constructor where the next argument goes and complete the row with wildcards.
    const Path* before = frame_.path;
    Path* open = m_.arena().make<Path>();
    open->kind = Path::Kind::Bind;
    open->before = before;
    open->value = pattern_of(ctor);
    frame_.path = open;
    size_t written = 0;
    std::vector<const Value*> row = left_hand_side(&written);
    frame_.path = before;
    if (written > frame_.columns) {
      entry->lambda = true;
      missing.push_back(fmt::format("`{}`", pattern_text(pattern_of(ctor))));
      continue;
    }
    std::string text;
    for (const Value* p : row) text += (text.empty() ? "" : ", ") + pattern_text(p);
    missing.push_back(fmt::format("`case {}`", text));
    const KnownNames& k = m_.known();
    for (const Value* p : row) {
      entry->chars = entry->chars || pattern_holds(p, k.chr, k.u32);
      entry->strings = entry->strings || pattern_holds(p, k.scon, k.chr);
    }
  }
}

void Checker::report_missing() {
  for (const Missing& m : missing_) {
    std::string list;
    for (const std::string& c : m.cases) list += (list.empty() ? "" : ", ") + c;
    if (m.more != 0) list += fmt::format(" and {} more", m.more);
    const bool one = m.cases.size() == 1 && m.more == 0;
    Diagnostic& d = report(Code::C15, m.match, m.literals ? fmt::format("literal cases never cover `{}`", m.chars ? "Char" : name_text(book_.datatypes[m.data].name))
                                                          : fmt::format("missing {}: {}", one ? "case" : "cases", list));
    if (m.strings) d.message = "literal cases never cover `String`";
    d.notes.push_back("a match covers every value of the matched type");
    if (m.bare) d.notes.push_back("this match has no cases of its own: those of a match inside a case stand to the right of that `case`");
    if (m.lambda) d.fix = "a lambda-match takes an arm for each constructor, `K: x => y => ..` with its fields, and last a function for all others, `_ => ..`";
    else d.fix = m.literals || m.strings ? std::string("add `case _:` for all other values") : std::string("add the missing cases, or `case _:`");
  }
  missing_.clear();
}

}  // namespace bendc
