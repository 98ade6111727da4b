// Inference (language.md 5.1): variables, names, applications, families, kinds, function types, equations and annotations.
#include <fmt/format.h>

#include <numeric>

#include "checker/typecheck.h"

namespace bendc {

namespace {
constexpr size_t kShownArgument = 40;   // bytes of an argument in the fix of a call
}

using core::DataId;
using core::DefId;
using core::Quantity;
using core::Term;
using core::TermId;
using core::TermKind;

const Value* Checker::infer(TermId id, const Env* env, bool live) {
  const Term t = term(id);
  switch (t.kind) {
    case TermKind::Var:
      return infer_variable(id, live);
    case TermKind::Ref:
      if (!check_name(id, nullptr, env, live)) return error();
      return m_.all_of_def(DefId(t.a));
    case TermKind::App:
      return infer_app(id, env, live);
    case TermKind::Adt:
      return infer_family(id, env, live);
    case TermKind::Kind:
      check(TermId(t.a), env, m_.quant(), false);
      return m_.type();
    case TermKind::Quant:
      return m_.type();
    case TermKind::Qua:
      return m_.quant();
    case TermKind::Meet:
      if (m_.deep()) return error();
      check(TermId(t.a), env, m_.quant(), live);
      check(TermId(t.b), env, m_.quant(), live);
      return m_.quant();
    case TermKind::All: {
      // A loop over the arrows of one type; each binder stays in scope for the rest.
      const uint32_t outer = depth();
      TermId at = id;
      while (term(at).kind == TermKind::All) {
        const Term all = term(at);
        const Value* quantity = check_type(TermId(all.a), env);
        const Value* domain = m_.delay(TermId(all.a), env);
        if (all.quantity == Quantity::Many && !frame_.unsafe && !fits_quantity(quantity, Quantity::Many)) {
          not_data(span(at), all.name, domain, "parameter");
        }
        const Value* x = bind(all.name, Quantity::None, domain, span(at));
        env = m_.extend(env, x);
        at = TermId(all.b);
      }
      (void)check_type(at, env);
      unbind(outer);
      return m_.type();
    }
    case TermKind::Eql: {
      (void)check_type(TermId(t.c), env);
      const Value* type = m_.delay(TermId(t.c), env);
      check(TermId(t.a), env, type, false);
      check(TermId(t.b), env, type, false);
      return m_.data();
    }
    case TermKind::Ann: {
      const uint32_t before = reported_;
      (void)check_type(TermId(t.b), env);
      const Value* type = reported_ != before ? error() : m_.delay(TermId(t.b), env);
      check(TermId(t.a), env, type, live);
      return type;
    }
    case TermKind::Error:
      return error();
    case TermKind::Let: case TermKind::Lam: case TermKind::Ctr: case TermKind::U32: case TermKind::Nat: case TermKind::F32: case TermKind::Str:
    case TermKind::Mat: case TermKind::MatLit: case TermKind::Efq: case TermKind::Rfl: case TermKind::Rwt: case TermKind::Hole:
      return not_inferable(id);
  }
  return error();
}

const Value* Checker::not_inferable(TermId id) {
  const Term t = term(id);
  if (t.kind == TermKind::Hole) {
    check_hole(id, error(), nullptr);
    return error();
  }
  std::string what;
  std::string fix = "write `{... : T}` with its type, or give the let a type: `x : T = ...`";
  switch (t.kind) {
    case TermKind::U32: what = fmt::format("the literal `{}`", t.a); fix = fmt::format("write `{{{} : U32}}`, or `x : U32 = {}` in a let", t.a, t.a); break;
    case TermKind::Nat: what = fmt::format("the literal `{}n`", t.a); fix = fmt::format("write `{{{}n : Nat}}`, or `x : Nat = {}n` in a let", t.a, t.a); break;
    case TermKind::F32: what = "this F32 literal"; break;
    case TermKind::Str: what = "this text"; fix = "write `{\"...\" : String}`, or `x : String = ...` in a let"; break;
    case TermKind::Ctr:
      what = core::CtorId(t.a) == m_.known().tuple ? std::string("this tuple") : fmt::format("the constructor `{}`", name_text(book_.ctors[core::CtorId(t.a)].name));
      break;
    case TermKind::Lam: what = fmt::format("the function `{} => ...`", name_text(t.name)); break;
    case TermKind::Mat: case TermKind::MatLit: case TermKind::Efq: what = "this lambda-match"; break;
    case TermKind::Let: what = "this let"; break;
    case TermKind::Rfl: what = "`{==}`"; break;
    case TermKind::Rwt: what = "this rewrite"; break;
    case TermKind::Var: case TermKind::Ref: case TermKind::Kind: case TermKind::Quant: case TermKind::Qua: case TermKind::Meet: case TermKind::All:
    case TermKind::App: case TermKind::Adt: case TermKind::Eql: case TermKind::Hole: case TermKind::Ann: case TermKind::Error: what = "this"; break;
  }
  Diagnostic& d = report(Code::C3, span(id), fmt::format("cannot infer the type of {}", what));
  d.notes.push_back("only variables, calls and annotated terms have a type of their own; `( : T)` selects operators and annotates nothing");
  d.fix = fix;
  return error();
}

const Value* Checker::infer_variable(TermId id, bool live) {
  const Term& t = term(id);
  if (t.a >= bindings_.size()) {
    if (frame_.instance.valid()) {
      Diagnostic& d = report(Code::C10, span(id), fmt::format("the template argument mentions the local `{}`", name_text(t.name)));
      d.notes.push_back("a `~` argument is compiled into an instance of the template, so it may name only top-level definitions");
      const DefId made_of = book_.defs[frame_.instance].instance_of;
      d.labels.push_back({book_.defs[made_of].name_span, fmt::format("`{}` takes {} first", def_text(made_of), count_text(book_.defs[made_of].templates, "`~` argument"))});
      d.fix = "pass the local as an ordinary argument, or move it into the template's own parameters";
    }
    return error();
  }
  Binding& b = bindings_[t.a];
  if (live && !b.constant && !is_error(b.type)) {
    const Quantity total = usage_.use(t.a, id);
    if (static_cast<uint8_t>(total) > static_cast<uint8_t>(b.quantity)) quantity_exceeded(t.a, id);
  }
  return b.type;
}

const Value* Checker::infer_app(TermId id, const Env* env, bool live, const Spine* outer) {
  const Term t = term(id);
  const Term head = term(TermId(t.a));
  if (m_.deep()) return error();
  // While the type is written as arrows it is walked as a term: no value is made for the partial applications.
  TermId at;
  const Env* at_env = m_.empty();
  const Value* type = nullptr;
  uint32_t first = 0;
  if (head.kind == TermKind::Ref) {
    const DefId def(head.a);
    const Spine spine{id, outer};
    if (!check_name(TermId(t.a), &spine, env, live)) return error();
    at = book_.defs[def].type;
    // The `~` arguments of an instance were checked when it was minted.
    if (live && !frame_.generic && book_.defs[def].templates != 0) first = book_.defs[def].templates;
  } else if (head.kind == TermKind::App) {
    const Spine spine{id, outer};
    type = infer_app(TermId(t.a), env, live, &spine);
  } else if (head.kind == TermKind::U32 || head.kind == TermKind::Nat || head.kind == TermKind::F32 || head.kind == TermKind::Str ||
             head.kind == TermKind::Ctr || head.kind == TermKind::Rfl) {
    report(Code::C4, span(TermId(t.a)), "this is applied, but it is not a function");
    return error();
  } else {
    type = infer(TermId(t.a), env, live);
  }
  const uint32_t params = at.valid() ? written_params(at) : 0;
  const bool too_many = at.valid() && t.c > params && ends_in_data(at);
  const uint32_t reported_before = reported_;
  const size_t diagnostics_before = diagnostics_.size();
  std::vector<uint32_t> misplaced;   // arguments that are right but for their types
  for (uint32_t i = 0; i < t.c; ++i) {
    const TermId arg = item(t.b, i);
    Quantity quantity;
    const Value* domain;
    // An argument too many moves all after it to the wrong parameter: what they would say is replaced by the cause.
    if (too_many && (i == params || reported_ != reported_before)) {
      diagnostics_.truncate(diagnostics_before);
      reported_ = reported_before;
      wrong_count(DefId(head.a), t.c, params, span(item(t.b, i == params ? i : i - 1)));
      return error();
    }
    if (at.valid() && term(at).kind != TermKind::All) {
      type = m_.eval(at, at_env);
      at = TermId{};
    }
    if (at.valid()) {
      const Term& all = term(at);
      quantity = all.quantity;
      domain = m_.delay(TermId(all.a), at_env);
    } else {
      type = m_.whnf(type);
      if (halted(id)) return error();
      if (is_error(type) && (i != params || reported_ == reported_before)) return error();
      if (type->tag != Tag::All) {
        // A result of a type that an argument gives shows only here that it takes no further argument.
        if (head.kind == TermKind::Ref && params != 0 && i == params && reported_ != reported_before) {
          diagnostics_.truncate(diagnostics_before);
          reported_ = reported_before;
          wrong_count(DefId(head.a), t.c, params, span(arg));
          return error();
        }
        if (is_error(type)) return error();
        const bool literal = i == 0 && head.kind != TermKind::Ref;
        const bool variable = i == 0 && head.kind == TermKind::Var && head.a < depth();
        Diagnostic& d = report(Code::C4, span(literal ? TermId(t.a) : arg),
                               variable ? fmt::format("`{}` is applied, but it is not a function", name_text(bindings_[head.a].name))
                               : i == 0 ? std::string("this is applied, but it is not a function")
                                      : fmt::format("one argument too many: after {} the result is not a function", i == 1 ? std::string("1 argument") : fmt::format("{} arguments", i)));
        d.notes.push_back(fmt::format("its type is `{}`", show(type)));
        if (head.kind == TermKind::Ref) d.labels.push_back({book_.defs[DefId(head.a)].name_span, fmt::format("`{}` is declared here", def_text(DefId(head.a)))});
        return error();
      }
      quantity = m_.binder_quantity(type);
      domain = m_.domain(type);
    }
    const uint32_t reported_here = reported_;
    const size_t diagnostics_here = diagnostics_.size();
    if (i >= first) check(arg, env, domain, live && quantity != Quantity::None);
    // What this argument itself was found to be; a call that does not descend is counted now and reported at the end of the def.
    Diagnostic* found = diagnostics_.size() > diagnostics_here && diagnostics_.last().span.offset == span(arg).offset ? &diagnostics_.last() : nullptr;
    if (reported_ == reported_here + 1 && found != nullptr && (found->code == Code::C5 || found->code == Code::C12)) misplaced.push_back(i);
    if (reported_ != reported_before) {
      if (at.valid() && t.c < params && found != nullptr) {
        found->notes.push_back(fmt::format("`{}` takes {}, this call gives {}", def_text(DefId(head.a)), count_text(params, "argument"), t.c));
        found->labels.push_back({book_.defs[DefId(head.a)].name_span, fmt::format("`{}` is declared here", def_text(DefId(head.a)))});
        if (i == 0 && t.c + 1 == params && found->expected == "Quant") {
          found->fix = fmt::format("a quantity comes first: `{}(&2, ..)` when its values can be copied, else `{}(&1, ..)`", def_text(DefId(head.a)), def_text(DefId(head.a)));
        }
        return error();
      }
      if ((t.flags & core::kOperator) != 0) return error();   // the operands have one type: one report
      if (found != nullptr && found->code == Code::C5 && head.kind == TermKind::Ref && explains_all(DefId(head.a), i, *found)) return error();
    }
    // What a wrong type argument makes of the other arguments' types is no news.
    const Value* value = reported_ != reported_here && quantity == Quantity::None ? error() : m_.delay(arg, env);
    if (at.valid()) {
      at_env = m_.extend(at_env, value);
      at = TermId(term(at).b);
    } else {
      type = m_.codomain(type, value);
    }
  }
  if (misplaced.size() > 1 && reported_ == reported_before + misplaced.size() && diagnostics_.size() == diagnostics_before + misplaced.size() && head.kind == TermKind::Ref) {
    suggest_arguments(id, misplaced, diagnostics_before);
  }
  return at.valid() ? m_.delay(at, at_env) : type;
}

// Whether what is wrong with an argument says what is wrong with those after it, too: the array of an index, a side of `A & B`.
bool Checker::explains_all(DefId called, uint32_t argument, Diagnostic& d) const {
  if (!book_.module_is_stdlib[book_.defs[called].module]) return false;
  const std::string name = def_text(called);
  if ((name == "Array.get" || name == "Array.set") && argument == 1) return true;
  if ((name != "Pair" && name != "Or") || d.expected != "Type" || !d.fix.empty()) return false;
  d.notes.push_back("`A & B` is the type of pairs and `A | B` that of choices");
  d.fix = "bits are combined by `.&.` and `.|.`, truth values by `&&` and `||`, and a pair is written `(a, b)`";
  return true;
}

uint32_t Checker::written_params(TermId type) const {
  uint32_t count = 0;
  for (; term(type).kind == TermKind::All; type = TermId(term(type).b)) ++count;
  return count;
}

// Is what a def of this type gives a value of a datatype (or an IO, which only the library applies), so that more arguments are a mistake?
bool Checker::ends_in_data(TermId type) const {
  while (term(type).kind == TermKind::All) type = TermId(term(type).b);
  const Term& result = term(type);
  if (result.kind == TermKind::Adt) return true;
  if (result.kind != TermKind::App || term(TermId(result.a)).kind != TermKind::Ref) return false;
  const DefId head(term(TermId(result.a)).a);
  return base_io_.valid() && head == base_io_ && frame_.def.valid() && !book_.module_is_stdlib[book_.defs[frame_.def].module];
}

namespace {
// Whether what was observed may be a value of the type that is expected elsewhere: a constructor says no more than its datatype.
bool is_of(const std::string& observed, const std::string& expected) {
  if (observed == expected) return true;
  constexpr std::string_view kValue = "a value of `";
  if (!observed.starts_with(kValue)) return false;
  const std::string_view data = std::string_view(observed).substr(kValue.size(), observed.size() - kValue.size() - 1);
  return expected.starts_with(data) && (expected.size() == data.size() || expected[data.size()] == '<');
}
}  // namespace

// A call's arguments whose types do not fit, one report each from `first` on: when they would fit in another order, that is the one mistake.
void Checker::suggest_arguments(TermId call, const std::vector<uint32_t>& misplaced, size_t first) {
  const Term t = term(call);
  std::vector<uint32_t> order(t.c);
  std::iota(order.begin(), order.end(), 0);
  std::vector<bool> used(misplaced.size(), false);
  for (size_t i = 0; i < misplaced.size(); ++i) {
    size_t j = 0;
    while (j < misplaced.size() && (used[j] || !is_of(diagnostics_.at(first + j).observed, diagnostics_.at(first + i).expected))) ++j;
    if (j == misplaced.size()) return;
    used[j] = true;
    order[misplaced[i]] = misplaced[j];
  }
  const DefId def(term(TermId(t.a)).a);
  std::vector<Name> scope;
  for (const Binding& b : bindings_) scope.push_back(b.name);
  std::vector<std::string> arguments, expected, observed;
  for (uint32_t i : order) {
    std::string text = core::print_term(book_, names_, item(t.b, i), scope);
    text = text.size() > kShownArgument || text.find('\n') != std::string::npos ? ".." : std::move(text);
    arguments.push_back(i >= book_.defs[def].templates ? std::move(text) : text.find(' ') == std::string::npos ? "~" + text : fmt::format("~({})", text));
  }
  for (size_t i = 0; i < misplaced.size(); ++i) {
    expected.push_back(diagnostics_.at(first + i).expected);
    observed.push_back(diagnostics_.at(first + i).observed);
  }
  // A constructor's own fields have not been looked at.
  bool certain = true;
  for (size_t i = 0; i < misplaced.size(); ++i) certain = certain && diagnostics_.at(first + i).code == Code::C5;
  diagnostics_.truncate(first + 1);
  reported_ -= static_cast<uint32_t>(misplaced.size()) - 1;
  Diagnostic& d = diagnostics_.last();
  d.code = Code::C5;
  d.message = fmt::format("the arguments of `{}` are in another order than its parameters", def_text(def));
  d.expected = fmt::format("{}", fmt::join(expected, ", "));
  d.observed = fmt::format("{}", fmt::join(observed, ", "));
  d.notes.clear();
  d.labels.clear();
  d.labels.push_back({book_.defs[def].name_span, fmt::format("`{}` is declared here", def_text(def))});
  const std::string call_text = fmt::format("`{}({})`", def_text(def), fmt::join(arguments, ", "));
  d.fix = certain ? "write " + call_text : "";
  if (!certain) d.notes.push_back("in the parameters' order the call is " + call_text);
}

void Checker::wrong_count(DefId def, uint32_t given, uint32_t params, Span at) {
  Diagnostic& d = report(Code::C4, at, fmt::format("`{}` takes {}, this call gives {}", def_text(def), count_text(params, "argument"), given));
  d.labels.push_back({book_.defs[def].name_span, fmt::format("`{}` is declared here", def_text(def))});
  d.notes.push_back("the first argument that does not fit is shown; what a call gives is no function, so it takes no further argument");
}

const Value* Checker::infer_family(TermId id, const Env* env, bool live) {
  const Term t = term(id);
  const DataId data(t.a);
  const size_t params = book_.datatypes[data].params.size();
  if (t.c != params) {
    const core::Datatype& d = book_.datatypes[data];
    const std::string name = name_text(d.name);
    Diagnostic& r = report(Code::C2, span(id), fmt::format("`{}` takes {} type {}, not {}", name, params, params == 1 ? "argument" : "arguments", t.c));
    r.labels.push_back({d.name_span, fmt::format("`{}` is declared here", name)});
    r.notes.push_back("a parameterised datatype is written with all its arguments in `<>`; leading quantities may be left out and are then &1");
    if (t.c == 0) r.fix = fmt::format("write `{}<..>`", name);
    return error();
  }
  const Env* fields = m_.empty();
  for (uint32_t i = 0; i < t.c; ++i) {
    const TermId arg = item(t.b, i);
    const core::Telescope& p = book_.datatypes[data].params[i];
    const Quantity quantity = p.quantity;
    const Value* type = m_.delay(p.type, fields);
    check(arg, env, type, live && quantity != Quantity::None);
    fields = m_.extend(fields, m_.delay(arg, env));
  }
  return m_.delay(book_.datatypes[data].kind, fields);
}

const Value* Checker::check_type(TermId id, const Env* env) {
  if (term(id).kind == TermKind::Ctr) {
    const core::Ctor& ctor = book_.ctors[core::CtorId(term(id).a)];
    const bool tuple = core::CtorId(term(id).a) == m_.known().tuple;
    Diagnostic& d = report(Code::C5, span(id), tuple ? std::string("a tuple where a type is needed") : fmt::format("a value of `{}` where a type is needed", name_text(book_.datatypes[ctor.data].name)));
    d.expected = "Type";
    d.observed = tuple ? std::string("a pair") : fmt::format("a value of `{}`", name_text(book_.datatypes[ctor.data].name));
    if (tuple) d.fix = "the type of a pair is `A & B`; a function of two arguments has type `A -> B -> C`";
    else d.fix = fmt::format("the type is `{}{}`", name_text(book_.datatypes[ctor.data].name), book_.datatypes[ctor.data].params.empty() ? "" : "<..>");
    return error();
  }
  const Value* kind = m_.whnf(infer(id, env, false));
  if (kind->tag == Tag::Kind) return as<KindValue>(kind)->of;
  if (is_error(kind) || halted(id)) return error();
  Diagnostic& d = report(Code::C5, span(id), "a type is needed here");
  d.expected = "Type";
  d.observed = show(kind);
  if (term(id).kind == TermKind::Var && kind->tag == Tag::Quant) {
    const Binding& b = bindings_[term(id).a];
    d.labels.push_back({b.span, fmt::format("`{}` is declared here", name_text(b.name))});
    d.notes.push_back("a parameter written without a type is an erased quantity, one of `&0`, `&1`, `&2`");
    d.fix = fmt::format("declare a type as `-{} : Type`, or `-{} : Data` where its values are copied", name_text(b.name), name_text(b.name));
  }
  note_missing_arguments(d, id, kind);
  return error();
}

bool Checker::fits_quantity(const Value* kind_quantity, Quantity q) {
  return conv_.quantity_fits(kind_quantity, m_.qua(q), depth()) || m_.halt() != Halt::None;
}

}  // namespace bendc
