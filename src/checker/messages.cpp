// Binders in scope and the texts that several rules share.
#include <fmt/format.h>

#include "checker/typecheck.h"

namespace bendc {

using core::DefId;
using core::Quantity;
using core::TermId;

namespace {

constexpr uint32_t kShownNodes = 200;     // of a value in a message
constexpr size_t kShownBytes = 600;

std::string cut(std::string text) {
  if (text.size() <= kShownBytes) return text;
  size_t end = kShownBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  return text + "...";
}

}  // namespace

const Value* Checker::bind(Name name, Quantity quantity, const Value* type, Span span, bool constant) {
  const Value* x = m_.var(depth(), name, type);
  bindings_.push_back({name, quantity, constant, false, type, span});
  usage_.push();
  return x;
}

void Checker::bind_value(Name name, Quantity quantity, const Value* type, Span span) {
  bindings_.push_back({name, quantity, false, false, type, span});
  usage_.push();
}

// Base's own `IO(T)`.
bool Checker::is_io(const Value* type) {
  if (!base_io_.valid()) return false;
  type = m_.force(type);
  return type->tag == Tag::Call && DefId(type->a) == base_io_;
}

void Checker::warn_of_unused_actions(uint32_t from) {
  for (; !actions_.empty() && actions_.back().level >= from; actions_.pop_back()) {
    const auto [level, reported] = actions_.back();
    if (usage_.used(level) != Quantity::None || reported != reported_ || m_.halt() != Halt::None) continue;
    const Binding& b = bindings_[level];
    Diagnostic& d = diagnostics_.add(Code::W4, b.span, fmt::format("the action `{}` is never run", name_text(b.name)));
    if (frame_.def.valid()) d.def = def_text(frame_.def);
    d.notes.push_back("an `IO` is a value: giving it a name does not run it");
    d.fix = "make it a line of a do block, with `<-` in place of `=` when what it gives is needed";
  }
}

void Checker::unbind(uint32_t to) {
  warn_of_unused_actions(to);
  bindings_.resize(to);
  usage_.truncate(to);
}

std::string Checker::name_text(Name name) const { return name.valid() ? core::display_name(names_.text(name)) : std::string("_"); }
std::string Checker::def_text(DefId def) const { return def.valid() ? name_text(book_.defs[def].name) : std::string("this declaration"); }

std::string Checker::show(const Value* v) {
  const uint32_t quoted = static_cast<uint32_t>(book_.terms.size());
  const TermId id = m_.quote(book_, v, depth(), false, kShownNodes, ellipsis_);
  for (uint32_t i = quoted; i < book_.terms.size(); ++i) shown_error_ |= book_.terms[TermId(i)].kind == core::TermKind::Error;
  std::vector<Name> scope;
  for (const Binding& b : bindings_) scope.push_back(b.name);
  return cut(core::print_term(book_, names_, id, std::move(scope)));
}

std::string Checker::show_normal(const Value* v) {
  const TermId id = m_.quote(book_, v, depth(), true, kShownNodes, ellipsis_);
  if (m_.halt() != Halt::None) {
    m_.refill();
    return show(v);
  }
  std::vector<Name> scope;
  for (const Binding& b : bindings_) scope.push_back(b.name);
  return cut(core::print_term(book_, names_, id, std::move(scope)));
}

Diagnostic& Checker::report(Code code, Span at, std::string message) {
  ++reported_;
  Diagnostic& d = diagnostics_.add(code, at, std::move(message));
  if (frame_.def.valid()) d.def = def_text(frame_.def);
  return d;
}

// A wrong type in a signature makes every use of it wrong in the same way: the first few of a declaration's mismatches with one pair of types stay.
void Checker::keep_few_alike() {
  constexpr uint32_t kAlike = 3;
  if (diagnostics_.size() - first_report_ <= kAlike) return;
  std::unordered_map<std::string, uint32_t> seen;
  diagnostics_.remove_from(first_report_, [&](Diagnostic& d) {
    if (d.code != Code::C5) return false;
    const uint32_t count = ++seen[d.expected + '\n' + d.observed];
    if (count == kAlike) d.notes.push_back("further mismatches of these two types in this definition are not shown");
    return count > kAlike;
  });
}

void Checker::mismatch(TermId at, const Value* expected, const Value* observed) {
  if (const core::Term& called = book_.terms[at]; called.kind == core::TermKind::App && book_.terms[TermId(called.a)].kind == core::TermKind::Ref) {
    // Its signature may be what is wrong with it; that was said where it is declared.
    const DefId def(book_.terms[TermId(called.a)].a);
    if (def != frame_.def && state_[def.index] == State::Broken) {
      ++reported_;
      return;
    }
  }
  shown_error_ = false;
  std::string expected_text = show(expected);
  std::string observed_text = show(observed);
  if (shown_error_) {
    // A part of the type was reported where it is written.
    ++reported_;
    return;
  }
  const std::string expected_normal = expected_text == observed_text ? show_normal(expected) : std::string();
  const std::string observed_normal = expected_text == observed_text ? show_normal(observed) : std::string();
  const core::Term t = book_.terms[at];
  const core::Term head = t.kind == core::TermKind::App ? book_.terms[TermId(t.a)] : t;
  std::string what = "this has another type than is needed here";
  if (head.kind == core::TermKind::Ref) {
    what = fmt::format("{}`{}` {} another type than is needed here", t.kind == core::TermKind::App ? "the call of " : "", def_text(DefId(head.a)),
                       t.kind == core::TermKind::App ? "gives" : "has");
  } else if (t.kind == core::TermKind::Adt) {
    what = fmt::format("the type `{}` where something else is needed", name_text(book_.datatypes[core::DataId(t.a)].name));
  } else if (t.kind == core::TermKind::Qua) {
    what = fmt::format("the quantity `&{}` where something else is needed", t.a);
  } else if (head.kind == core::TermKind::Var && head.a < depth()) {
    what = fmt::format("{}`{}` {} another type than is needed here", t.kind == core::TermKind::App ? "the call of " : "", name_text(bindings_[head.a].name),
                       t.kind == core::TermKind::App ? "gives" : "has");
  }
  Diagnostic& d = report(Code::C5, span(at), std::move(what));
  d.expected = expected_normal.empty() ? std::move(expected_text) : expected_normal;
  d.observed = observed_normal.empty() ? std::move(observed_text) : observed_normal;
  const Value* e = m_.whnf(expected);
  const Value* o = m_.whnf(observed);
  if (e->tag == Tag::Quant && o->tag == Tag::Kind) d.notes.push_back("a quantity, `&0`, `&1` or `&2`, stands here; a datatype's leading quantities are written all or left out all");
  if (head.kind == core::TermKind::Ref && e->tag != Tag::All && def_text(DefId(head.a)) == "Array.get") {
    d.notes.push_back("`a[i]` takes the array and gives it back: its value is the pair of the array and the element");
    d.fix = "pass it to a def that takes the pair apart: `(a, x) = p`";
  }
  if (head.kind == core::TermKind::Ref && is_io(expected) && def_text(DefId(head.a)) == "Array.set") {
    d.notes.push_back("a step of a `do` block is an effect, and writing to an array is none: its value is the array, which takes a name");
    d.fix = fmt::format("write `a : {} = ..`", d.observed);
  }
  if (e->tag != Tag::All) note_missing_arguments(d, at, observed);
  if (e->tag == Tag::All && o->tag == Tag::All && m_.binder_quantity(e) != m_.binder_quantity(o)) {
    d.notes.push_back("function types agree only when their parameters have the same quantity");
    d.fix = "wrap it: `y => f(y)`";
  }
  if (e->tag == Tag::Eql && o->tag == Tag::Eql) d.notes.push_back("a proof of one equation serves another by a rewrite: `%e : P; ..`, where `_` in P stands for the right side of `e`");
  if (t.kind == core::TermKind::Adt && e->tag == Tag::Adt && e->a == t.a && !book_.datatypes[core::DataId(t.a)].ctors.empty()) {
    const core::Ctor& first = book_.ctors[book_.datatypes[core::DataId(t.a)].ctors[0]];
    d.fix = fmt::format("a value of it is made by a constructor: `{}{{{}}}`", name_text(first.name), first.fields.empty() ? "" : "..");
  }
  if (d.expected == "Array<U32>" && d.observed.starts_with("Array<")) {
    d.notes.push_back("`a[i]` and `a[i] <- v` are for arrays of U32");
    d.fix = "write `Array.get(T, a, i)` or `Array.set(T, a, i, v)` with the type T of the elements";
  }
  suggest(d, e, o);
}

// What usually turns a value of the one type into one of the other; nothing where that is not known.
void Checker::suggest(Diagnostic& d, const Value* expected, const Value* observed) {
  const std::string& want = d.expected;
  const std::string& have = d.observed;
  if (!d.fix.empty()) return;
  if (want == fmt::format("IO({})", have)) {
    d.fix = "`return x` ends a `do` block with a value; outside of one, `IO.pure` makes it an effect";
    return;
  }
  if (have == fmt::format("IO({})", want)) {
    d.fix = fmt::format("name the effect's result in a `do` block: `x : {} <- ..`", want);
    return;
  }
  if (want == "IO(Unit)" && have.starts_with("IO(") && have.ends_with(")")) {
    d.notes.push_back("a step of a `do` block gives a Unit; other results are named");
    d.fix = fmt::format("write `x : {} <- ..`", have.substr(3, have.size() - 4));
    return;
  }
  if (expected->tag != Tag::Adt) return;
  struct Entry { std::string_view to, from, by; };
  static constexpr Entry kConversions[] = {
      {"U32", "Nat", "U32.from_nat"}, {"U32", "F32", "F32.to_u32"}, {"U32", "Char", "Char.to_u32"}, {"U32", "Bool", "Bool.to_u32"}, {"Nat", "U32", "U32.to_nat"},
      {"Nat", "F32", "F32.to_nat"}, {"F32", "U32", "U32.to_f32"}, {"F32", "Nat", "F32.from_nat"}, {"Char", "U32", "Char.from_u32"}, {"String", "U32", "U32.show"},
      {"String", "Nat", "Nat.show"}, {"String", "F32", "F32.show"}, {"String", "Char", "Char.show"}, {"String", "Bool", "Bool.show"}};
  const core::Datatype& to = book_.datatypes[core::DataId(expected->a)];
  if (!book_.module_is_stdlib[to.module] || (observed != nullptr && (observed->tag != Tag::Adt || !book_.module_is_stdlib[book_.datatypes[core::DataId(observed->a)].module]))) return;
  for (const Entry& entry : kConversions) {
    if (entry.to == want && entry.from == have) d.fix = fmt::format("convert with `{}(..)`", entry.by);
  }
}

std::string Checker::count_text(size_t n, std::string_view what) { return fmt::format("{} {}{}", n == 0 ? "no" : std::to_string(n), what, n == 1 ? "" : "s"); }

void Checker::note_missing_arguments(Diagnostic& d, TermId at, const Value* type) {
  const core::Term t = book_.terms[at];
  const core::Term head = t.kind == core::TermKind::App ? book_.terms[TermId(t.a)] : t;
  if (head.kind != core::TermKind::Ref || m_.whnf(type)->tag != Tag::All) return;
  const uint32_t params = written_params(book_.defs[DefId(head.a)].type), given = t.kind == core::TermKind::App ? t.c : 0;
  if (given < params) d.notes.push_back(fmt::format("`{}` takes {}, {} given here", def_text(DefId(head.a)), count_text(params, "argument"), given == 0 ? "none is" : given == 1 ? "1 is" : fmt::format("{} are", given)));
}

void Checker::quantity_exceeded(uint32_t level, TermId at) {
  Binding& b = bindings_[level];
  if (b.reported) return;
  b.reported = true;
  const std::string name = name_text(b.name);
  if (b.quantity == Quantity::None) {
    Diagnostic& d = report(Code::C6, span(at), fmt::format("the erased `{}` is used by live code", name));
    d.labels.push_back({b.span, fmt::format("`{}` is erased here", name)});
    d.notes.push_back("an erased value does not exist at run time; only types and other dead code may name it");
    // Where no `-` is written the quantity comes from the binder's lack of a type, or from what the binder takes apart.
    const std::string_view before = b.span.valid() ? sources_.text({b.span.file, 0, b.span.offset}) : std::string_view();
    const size_t last = before.find_last_not_of(" \t");
    if (last != std::string_view::npos && before[last] == '-') {
      d.fix = fmt::format("drop the `-` of `{}`", name);
    } else if (m_.whnf(b.type)->tag == Tag::Quant) {
      d.notes.push_back("a parameter written without a type is an erased quantity, one of `&0`, `&1`, `&2`");
      d.fix = fmt::format("write its type: `{}: T`", name);
    } else {
      d.fix = "drop the `-` where it is declared: of the field that the pattern names, or of the parameter in the function's type";
    }
    return;
  }
  const TermId first = usage_.first_use(level);
  const Value* kind = conv_.kind_quantity(b.type, depth());
  const bool data = kind != nullptr && conv_.quantity_fits(kind, m_.qua(Quantity::Many), depth());
  Diagnostic& d = report(Code::C6, span(at), fmt::format("the affine `{}` is used twice", name));
  if (first.valid()) d.labels.push_back({span(first), "first used here"});
  d.labels.push_back({b.span, fmt::format("`{}` is bound here", name)});
  d.notes.push_back("a plain binder is used at most once; each branch of a match counts for itself");
  const bool matched = ((book_.terms[at].flags | (first.valid() ? book_.terms[first].flags : 0)) & core::kOfMatched) != 0;
  if (matched) d.notes.push_back(fmt::format("a name that was matched stands for its pattern, so it uses `{}` too", name));
  if (data) {
    d.fix = fmt::format("bind it as `+{}`: its type is Data", name);
  } else {
    const std::string type = show(b.type);
    d.notes.push_back(fmt::format("`{}` has type `{}`, which is not Data, so `+` is not allowed either", name, type));
    if (m_.whnf(b.type)->tag == Tag::All) d.fix = fmt::format("make it a template parameter, which may be called any number of times: `~{}`, first among the parameters", name);
    else d.fix = copyable(b.type);
  }
}

void Checker::not_data(Span at, Name name, const Value* type, std::string_view what) {
  Diagnostic& d = report(Code::C7, at, fmt::format("the {} `+{}` has a type that is not Data", what, name_text(name)));
  d.notes.push_back(fmt::format("its type is `{}`", show(type)));
  d.notes.push_back("`+` means any number of uses, which only types of kind Data allow; functions, arrays, `Type` and `A & B` never are");
  d.fix = copyable(type);
  if (d.fix.empty()) d.fix = "drop the `+`";
}

// How to ask for a form of the type whose values may be copied; empty when there is none.
std::string Checker::copyable(const Value* type) {
  const Value* t = m_.whnf(type);
  if (t->tag == Tag::Var && t->a < depth() && m_.whnf(bindings_[t->a].type)->tag == Tag::Kind) return fmt::format("declare the type as `-{} : Data`, whose values may be copied", name_text(bindings_[t->a].name));
  if (t->tag != Tag::Adt) return {};
  const core::Datatype& data = book_.datatypes[core::DataId(t->a)];
  if (m_.known().tuple.valid() && book_.ctors[m_.known().tuple].data == core::DataId(t->a)) return "a copyable pair is `Sigma<&2, &2, A, _ => B>`";
  if (data.leading_quants != 0) return fmt::format("ask for the copyable form: `+{}<..>`", name_text(data.name));
  if (names_.text(data.name) == "Array") return "pass the array on from use to use; `Array.clone` makes two of one";
  return {};
}

bool Checker::halted(TermId at) {
  if (m_.halt() == Halt::None) return false;
  if (halt_reported_) return true;
  halt_reported_ = true;
  const Span where = span(at);
  switch (m_.halt()) {
    case Halt::None:
      break;
    case Halt::Fuel: case Halt::Memory: case Halt::NatOverflow: {
      Diagnostic& d = report(Code::L1, where, m_.halt() == Halt::Memory ? "checking this needs too much memory" : "checking this does not come to an end");
      d.notes.push_back("types are compared by computing them, and this computation was given up");
      d.fix = "keep non-terminating definitions and large numbers out of types, or state the equation as a law";
      break;
    }
    case Halt::Stack: {
      Diagnostic& d = report(Code::B4, where, "this is nested too deeply for the checker");
      d.notes.push_back("the checker ran out of stack here");
      d.fix = "split the expression into definitions, or build the value by recursion";
      break;
    }
  }
  return true;
}

bool Checker::fits(const Value* a, const Value* b, TermId at) { return conv_.fits(a, b, depth()) || halted(at); }
bool Checker::equal(const Value* a, const Value* b, TermId at) { return conv_.equal(a, b, depth()) || halted(at); }

}  // namespace bendc
