// Whole declarations: datatypes (C20), signatures (C7, C21, C22), def bodies, laws.
#include <fmt/format.h>

#include "checker/typecheck.h"

namespace bendc {

using core::CtorId;
using core::DataId;
using core::DefId;
using core::DefKind;
using core::Quantity;
using core::Term;
using core::TermId;
using core::TermKind;

namespace {

// Steps of the evaluator for one declaration: about two seconds. Proofs by computation of the size that is practical stay far below.
constexpr uint64_t kFuel = 10'000'000;

}  // namespace

Checker::Checker(core::Book& book, const SourceMap& sources, Interner& names, const CheckOptions& options, Diagnostics& diagnostics)
    : book_(book), sources_(sources), names_(names), options_(options), diagnostics_(diagnostics),
      m_(book, names, {.floats = false, .all_unfold = false, .fuel = kFuel, .memory = options.memory, .stack = options.stack}),
      conv_(m_), descent_(m_) {
  state_.resize(book.defs.size(), State::Unchecked);
  type_checked_.resize(book.defs.size(), false);
  type_broken_.resize(book.defs.size(), false);
  ellipsis_ = names.intern("...");
  wildcard_ = names.intern("_");
  base_io_ = book.find_def(names.intern("IO"));
  if (base_io_.valid() && !book.module_is_stdlib[book.defs[base_io_].module]) base_io_ = DefId{};
}

DefId Checker::add_def(core::Def def) {
  const DefId id = book_.defs.add(std::move(def));
  state_.push_back(State::Checking);
  type_checked_.push_back(true);
  type_broken_.push_back(false);
  return id;
}

void Checker::start_declaration(DefId def) {
  m_.refill();
  halt_reported_ = false;
  reported_ = 0;
  first_report_ = diagnostics_.size();
  frame_ = Frame{};
  frame_.def = def;
}

void Checker::finish_declaration(Arena::Mark mark) {
  if (frame_.def.valid()) suggest_order();
  report_missing();
  keep_few_alike();
  unbind(0);
  actions_.clear();
  saved_.clear();
  m_.reset(mark);
}

void Checker::check_data(DataId id) {
  const Arena::Mark mark = m_.arena().mark();
  start_declaration(DefId{});
  const core::Datatype data = book_.datatypes[id];
  const Env* env = m_.empty();
  for (const core::Telescope& p : data.params) {
    const Value* quantity = check_type(p.type, env);
    const Value* type = m_.delay(p.type, env);
    if (p.quantity == Quantity::Many && !fits_quantity(quantity, Quantity::Many)) not_data(p.span, p.name, type, "parameter");
    env = m_.extend(env, bind(p.name, p.quantity, type, p.span));
  }
  const uint32_t params = depth();
  const std::string name = name_text(data.name);

  const Value* declared = error();
  const TermKind kind_term = term(data.kind).kind;
  const bool literal = kind_term == TermKind::U32 || kind_term == TermKind::Nat || kind_term == TermKind::F32 || kind_term == TermKind::Str || kind_term == TermKind::Ctr;
  if (!literal) (void)check_type(data.kind, env);
  const Value* kind = literal ? m_.quant() : m_.whnf(m_.delay(data.kind, env));
  if (kind->tag == Tag::Kind) {
    declared = as<KindValue>(kind)->of;
  } else if (!is_error(kind) && reported_ == 0 && !halted(data.kind)) {
    Diagnostic& d = report(Code::C20, span(data.kind), fmt::format("the kind of `{}` is not a kind", name));
    d.notes.push_back("a datatype is declared `is Type`, `is Data` or `is Kind(q)`");
    d.def = name;
  }

  for (const CtorId ctor_id : data.ctors) {
    const core::Ctor ctor = book_.ctors[ctor_id];
    const Env* fields = env;
    for (const core::Telescope& f : ctor.fields) {
      const Value* quantity = check_type(f.type, fields);
      const Value* type = m_.delay(f.type, fields);
      if (f.quantity == Quantity::Many && !fits_quantity(quantity, Quantity::Many)) {
        not_data(f.span, f.name, type, "field");
      } else if (f.quantity == Quantity::Lone && !conv_.quantity_fits(quantity, declared, depth()) && !halted(f.type)) {
        Diagnostic& d = report(Code::C20, f.span, fmt::format("the field `{}` of `{}` does not fit the kind of `{}`", name_text(f.name), name_text(ctor.name), name));
        d.expected = fmt::format("a type of kind {}", show(m_.kind_of(m_.whnf(declared))));
        d.observed = fmt::format("{}, of kind {}", show(type), show(m_.kind_of(m_.whnf(quantity))));
        d.labels.push_back({span(data.kind), fmt::format("the kind of `{}`", name)});
        d.notes.push_back("a value may be copied only when all its fields may; functions, arrays and `A & B` may not");
        const core::Term& written = term(f.type);
        if (written.kind == TermKind::Var && written.a < data.params.size() && data.params[written.a].quantity == Quantity::None) {
          d.fix = fmt::format("declare the parameter as `-{}: Data`, or the type as `type {} is Type`", name_text(data.params[written.a].name), name);
        } else {
          d.fix = fmt::format("declare `type {} is Type`, or change the field", name);
        }
        d.def = name;
      }
      fields = m_.extend(fields, bind(f.name, f.quantity, type, f.span));
    }
    unbind(params);
  }
  finish_declaration(mark);
}

// The type of a def or law, once. The arrows of the parameters are walked here so that a `+` is reported at its own binder.
void Checker::check_signature(DefId id) {
  if (type_checked_[id.index]) return;
  type_checked_[id.index] = true;
  const core::Def def = book_.defs[id];
  const uint32_t before = reported_;
  if (!def.type.valid()) {
    type_broken_[id.index] = true;
    return;
  }
  frame_.unsafe = def.unsafe;
  const Env* env = m_.empty();
  TermId at = def.type;
  uint32_t i = 0;
  std::vector<std::pair<Name, Span>> tildes;
  for (; term(at).kind == TermKind::All; at = TermId(term(at).b), ++i) {
    const Term all = term(at);
    const Span where = i < def.param_spans.size() ? def.param_spans[i] : span(at);
    const Value* quantity = check_type(TermId(all.a), env);
    const Value* domain = m_.delay(TermId(all.a), env);
    if (all.quantity == Quantity::Many && !frame_.unsafe && !fits_quantity(quantity, Quantity::Many)) not_data(where, all.name, domain, "parameter");
    if (i < def.templates) {
      for (const auto& [name, first] : tildes) {
        if (name != all.name || name == wildcard_) continue;
        Diagnostic& d = report(Code::C22, where, fmt::format("a second `~` parameter named `{}`", name_text(name)));
        d.labels.push_back({first, "the first one"});
        d.notes.push_back("an instance is keyed by its `~` parameters, so their names are different");
        d.fix = "rename one of them";
      }
      tildes.emplace_back(all.name, where);
    }
    env = m_.extend(env, bind(all.name, Quantity::None, domain, where));
  }
  (void)check_type(at, env);
  unbind(0);
  if (def.foreign && reported_ == before) {
    // Syntactically Base's IO(..) under the declared parameters.
    TermId result = def.type;
    for (uint32_t p = 0; p < def.arity && term(result).kind == TermKind::All; ++p) result = TermId(term(result).b);
    const Term r = term(result);
    const bool io = r.kind == TermKind::App && base_io_.valid() && term(TermId(r.a)).kind == TermKind::Ref && DefId(term(TermId(r.a)).a) == base_io_;
    if (!io) {
      Diagnostic& d = report(Code::C21, def.result_span.valid() ? def.result_span : def.name_span, fmt::format("the foreign def `{}` does not return `IO(..)`", def_text(id)));
      d.notes.push_back("foreign code has effects, so its result is written as Base's `IO(..)`; an alias is not seen through");
      d.fix = "declare the result as `IO(T)`";
    }
  }
  if (reported_ != before || m_.halt() != Halt::None) type_broken_[id.index] = true;
}

void Checker::check_law_type(DefId id) {
  const Arena::Mark mark = m_.arena().mark();
  start_declaration(id);
  check_signature(id);
  finish_declaration(mark);
}

void Checker::check_def(DefId id) {
  const Arena::Mark mark = m_.arena().mark();
  start_declaration(id);
  state_[id.index] = State::Checking;
  check_signature(id);
  const core::Def def = book_.defs[id];
  bool sound = !type_broken_[id.index] && !def.broken;
  if (sound && def.body.valid()) {
    frame_.unsafe = def.unsafe;
    frame_.generic = def.templates != 0;
    frame_.constants = def.templates;
    frame_.columns = def.arity;
    const uint32_t before = reported_;
    check(def.body, m_.empty(), m_.all_of_def(id), true, true);
    sound = reported_ == before && m_.halt() == Halt::None;
  }
  state_[id.index] = sound ? State::Done : State::Broken;
  if (!sound) {
    m_.poison(id);
  } else if (def.body.valid()) {
    m_.allow(id);
  }
  finish_declaration(mark);
}

}  // namespace bendc
