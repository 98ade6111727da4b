// Names in live code: what may be called where it stands (C8), descent of self-calls (C9), and the left-hand side of the def at a point.
#include <algorithm>
#include <fmt/format.h>

#include "checker/typecheck.h"

namespace bendc {

using core::CtorId;
using core::DefId;
using core::DefKind;
using core::Quantity;
using core::Term;
using core::TermId;
using core::TermKind;

bool Checker::check_name(TermId ref, const Spine* spine, const Env* env, bool live) {
  const DefId id(term(ref).a);
  if (!book_.defs[id].type.valid() || type_broken_[id.index]) return false;
  if (!live) return true;
  const core::Def& def = book_.defs[id];
  const State state = state_[id.index];
  const bool self = id == frame_.def;
  const bool open_law = def.kind == DefKind::Law && !def.body.valid() && !def.foreign && !def.broken;
  const bool stdlib = def.module < book_.module_is_stdlib.size() && book_.module_is_stdlib[def.module];
  if (open_law ? !stdlib : state != State::Done && state != State::Broken && !def.broken) {
    if (!self && !frame_.unsafe) {
      const std::string name = def_text(id);
      Diagnostic& d = report(Code::C8, span(ref), open_law ? fmt::format("live code calls `{}`, a law without a fill", name)
                                                           : state == State::Checking ? fmt::format("`{}` calls back into `{}`, which is still being checked", def_text(frame_.def), name)
                                                                                      : fmt::format("live code calls `{}` before its declaration", name));
      d.labels.push_back({def.name_span, open_law ? "the law" : "declared here"});
      if (open_law) {
        d.notes.push_back("an unfilled law is a claim: it may be named in types and other dead code only");
        d.fix = fmt::format("fill it above the call: `def {}(..): ...`", name);
      } else {
        d.notes.push_back("live code calls only what is declared and checked above it, so safe definitions are never mutually recursive");
        d.fix = fmt::format("move `{}` above, merge both into one def with a selector argument, or mark the earlier def `@unsafe`", name);
      }
      return true;
    }
  }
  if (def.templates != 0 && !frame_.generic) {
    if (spine == nullptr || term(spine->call).c < def.templates) {
      Diagnostic& d = report(Code::C10, span(ref), fmt::format("the template `{}` needs {} `~` argument{} here", def_text(id), def.templates, def.templates == 1 ? "" : "s"));
      d.labels.push_back({def.name_span, "declared here"});
      d.notes.push_back("each live call of a template makes an instance from its closed `~` arguments");
      return false;
    }
    return instantiate(ref, spine->call);
  }
  if (self && !frame_.unsafe) check_descent(ref, spine, env);
  return true;
}

// The patterns of the def's parameters at this point, rebuilt from the events on the path.
std::vector<const Value*> Checker::left_hand_side(size_t* written) {
  std::vector<const Path*> events;
  for (const Path* p = frame_.path; p != nullptr; p = p->before) events.push_back(p);
  struct Open {
    CtorId ctor;
    std::vector<const Value*> fields;
  };
  std::vector<Open> open;
  std::vector<const Value*> row;
  auto make = [&](const Open& o) {
    CtrValue* v = m_.arena().make<CtrValue>();
    v->tag = Tag::Ctr;
    v->a = o.ctor.index;
    v->count = static_cast<uint32_t>(o.fields.size());
    v->fields = m_.arena().array<const Value*>(o.fields.size());
    std::copy(o.fields.begin(), o.fields.end(), v->fields);
    return static_cast<const Value*>(v);
  };
  auto close = [&]() {
    while (!open.empty() && open.back().fields.size() == book_.ctors[open.back().ctor].fields.size()) {
      const Value* whole = make(open.back());
      open.pop_back();
      (open.empty() ? row : open.back().fields).push_back(whole);
    }
  };
  for (size_t i = events.size(); i-- > 0;) {
    const Path& p = *events[i];
    if (p.kind == Path::Kind::Open) {
      open.push_back({p.ctor, {}});
    } else {
      (open.empty() ? row : open.back().fields).push_back(p.value);
    }
    close();
  }
  const Value* any = m_.var(~uint32_t{0}, wildcard_, error());
  while (!open.empty()) {
    open.back().fields.push_back(any);
    close();
  }
  if (written != nullptr) *written = row.size();
  while (row.size() < frame_.columns) row.push_back(any);
  row.resize(frame_.columns);
  return row;
}

std::string Checker::pattern_text(const Value* v) {
  v = m_.force(v);
  switch (v->tag) {
    case Tag::Var: return name_text(as<VarValue>(v)->name);
    case Tag::U32: return fmt::format("{}", as<NumberValue>(v)->number);
    case Tag::Nat: return fmt::format("{}n", as<NumberValue>(v)->number);
    case Tag::Ctr: {
      const CtrValue* c = as<CtrValue>(v);
      const KnownNames& k = m_.known();
      const CtorId id(c->a);
      if (id == k.zero) return "0n";
      if (id == k.succ) {
        uint32_t n = 0;
        while (v->tag == Tag::Ctr && CtorId(v->a) == k.succ) {
          ++n;
          v = m_.force(as<CtrValue>(v)->fields[0]);
        }
        if (v->tag == Tag::Ctr && CtorId(v->a) == k.zero) return fmt::format("{}n", n);
        return fmt::format("{}n+{}", n, pattern_text(v));
      }
      std::string out;
      if (id == k.tuple && c->count == 2) return fmt::format("({}, {})", pattern_text(c->fields[0]), pattern_text(c->fields[1]));
      for (uint32_t i = 0; i < c->count; ++i) out += (i == 0 ? "" : ", ") + pattern_text(c->fields[i]);
      return fmt::format("{}{{{}}}", name_text(book_.ctors[id].name), out);
    }
    case Tag::Thunk: case Tag::Forward: case Tag::App: case Tag::StuckMatch: case Tag::StuckRewrite: case Tag::Call: case Tag::Lam: case Tag::Mat:
    case Tag::MatLit: case Tag::Efq: case Tag::Kind: case Tag::Quant: case Tag::Qua: case Tag::Meet: case Tag::All: case Tag::Adt: case Tag::F32:
    case Tag::Str: case Tag::Eql: case Tag::Rfl: case Tag::Hole: case Tag::Error:
      return show(v);
  }
  return "_";
}

bool Checker::pattern_holds(const Value* v, CtorId outer, CtorId first) {
  std::vector<const Value*> work{v};
  while (!work.empty()) {
    const Value* at = m_.force(work.back());
    work.pop_back();
    if (at->tag != Tag::Ctr) continue;
    const CtrValue* c = as<CtrValue>(at);
    const Value* inside = c->count > 0 ? m_.force(c->fields[0]) : nullptr;
    if (CtorId(c->a) == outer && inside != nullptr && inside->tag == Tag::Ctr && CtorId(inside->a) == first) return true;
    work.insert(work.end(), c->fields, c->fields + c->count);
  }
  return false;
}

void Checker::check_descent(TermId ref, const Spine* spine, const Env* env) {
  const std::string name = def_text(frame_.def);
  if (spine == nullptr) {
    Diagnostic& d = report(Code::C9, span(ref), fmt::format("`{}` hands itself out as a value", name));
    d.notes.push_back("a def may name itself only in a call whose arguments shrink, so that every call ends");
    d.fix = fmt::format("call it here with a smaller argument, or wrap the recursion in a def of its own");
    return;
  }
  std::vector<const Value*> args;
  std::vector<TermId> arg_terms;
  for (const Spine* s = spine; s != nullptr; s = s->outer) {
    const Term t = term(s->call);
    for (uint32_t i = 0; i < t.c; ++i) {
      arg_terms.push_back(item(t.b, i));
      args.push_back(m_.delay(arg_terms.back(), env));
    }
  }
  const std::vector<const Value*> patterns = left_hand_side();
  std::vector<bool> erased(patterns.size(), false);
  std::vector<Name> params(patterns.size(), wildcard_);
  TermId at = book_.defs[frame_.def].type;
  for (size_t i = 0; i < patterns.size() && term(at).kind == TermKind::All; ++i, at = TermId(term(at).b)) {
    erased[i] = term(at).quantity == Quantity::None;
    params[i] = term(at).name;
  }
  Descent::Result result = descent_.lexicographic(args, patterns, erased);
  if (halted(ref)) return;
  SelfCall call;
  call.descends = result.descends;
  if (!result.descends) {
    Diagnostic& d = call.diagnostic;
    d.code = Code::C9;
    d.def = name;
    const core::Def& def = book_.defs[frame_.def];
    const size_t count = std::min(args.size(), patterns.size());
    if (result.failing < count) {
      const uint32_t i = result.failing;
      d.span = span(arg_terms[i]);
      d.message = fmt::format("the call of `{}` does not descend: `{}` is not smaller than `{}`", name, show(args[i]), pattern_text(patterns[i]));
      if (i < def.param_spans.size()) d.labels.push_back({def.param_spans[i], fmt::format("compared with the parameter `{}`", name_text(params[i]))});
    } else {
      d.span = span(spine->call);
      d.message = fmt::format("the call of `{}` passes {}", name, count < patterns.size() ? "too few arguments to show a decrease" : "every argument unchanged");
      d.labels.push_back({def.name_span, "the def"});
    }
    d.notes.push_back("arguments are compared from left to right with the def's own patterns: each must be unchanged until one is a part of its pattern");
    ++reported_;
  }
  call.orders = std::move(result.orders);
  for (size_t i = 0; i < call.orders.size(); ++i) {
    if (erased[i]) call.orders[i] = Order::Equal;
  }
  self_calls_.push_back(std::move(call));
}

// The parameters in another order; empty when a type would then name a later parameter, or one is a `~` parameter.
std::string Checker::signature_text(const std::vector<size_t>& order) {
  const core::Def& def = book_.defs[frame_.def];
  std::vector<TermId> arrows;
  std::vector<Name> names;
  for (TermId at = def.type; term(at).kind == TermKind::All && arrows.size() < order.size(); at = TermId(term(at).b)) {
    arrows.push_back(at);
    names.push_back(term(at).name);
  }
  if (arrows.size() != order.size() || def.templates != 0) return {};
  std::string text;
  std::vector<bool> placed(order.size(), false);
  for (const size_t j : order) {
    const Term all = term(arrows[j]);
    std::vector<TermId> work{TermId(all.a)};
    while (!work.empty()) {
      const Term t = term(work.back());
      work.pop_back();
      if (t.kind == TermKind::Var && t.a < j && !placed[t.a]) return {};
      auto list = [&](uint32_t offset, uint32_t count) {
        for (uint32_t i = 0; i < count; ++i) work.push_back(item(offset, i));
      };
      if (t.kind == TermKind::App) work.push_back(TermId(t.a));
      if (t.kind == TermKind::App || t.kind == TermKind::Adt || t.kind == TermKind::Ctr) list(t.b, t.c);
      if (t.kind == TermKind::Kind || t.kind == TermKind::Lam) work.push_back(TermId(t.a));
      if (t.kind == TermKind::Meet || t.kind == TermKind::All || t.kind == TermKind::Ann || t.kind == TermKind::Eql) {
        work.push_back(TermId(t.a));
        work.push_back(TermId(t.b));
      }
      if (t.kind == TermKind::Eql) work.push_back(TermId(t.c));
    }
    placed[j] = true;
    const char* mark = all.quantity == Quantity::None ? "-" : all.quantity == Quantity::Many ? "+" : "";
    std::vector<Name> scope(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(j));
    text += fmt::format("{}{}{}: {}", text.empty() ? "" : ", ", mark, name_text(names[j]), core::print_term(book_, names_, TermId(all.a), std::move(scope)));
  }
  return text;
}

// When some other order of the parameters makes every self-call descend, each failing call says so and shows the signature.
void Checker::suggest_order() {
  bool failing = false;
  size_t columns = ~size_t{0};
  for (const SelfCall& c : self_calls_) {
    failing |= !c.descends;
    columns = std::min(columns, c.orders.size());
  }
  if (failing) {
    const core::Def& def = book_.defs[frame_.def];
    std::vector<size_t> order;
    std::vector<bool> done(self_calls_.size(), false);
    bool progress = true;
    while (progress) {
      progress = false;
      for (size_t j = 0; j < columns; ++j) {
        if (std::find(order.begin(), order.end(), j) != order.end()) continue;
        bool usable = true, shrinks = false;
        for (size_t c = 0; c < self_calls_.size(); ++c) {
          if (done[c]) continue;
          usable &= self_calls_[c].orders[j] != Order::Greater;
          shrinks |= self_calls_[c].orders[j] == Order::Less;
        }
        if (!usable || !shrinks) continue;
        order.push_back(j);
        for (size_t c = 0; c < self_calls_.size(); ++c) {
          if (!done[c] && self_calls_[c].orders[j] == Order::Less) done[c] = true;
        }
        progress = true;
        break;
      }
    }
    const bool all = std::all_of(done.begin(), done.end(), [](bool b) { return b; });
    std::string fix = "shrink an argument by matching on it, count a Nat down as fuel, or mark the def `@unsafe`";
    if (all && !order.empty() && columns <= def.param_spans.size()) {
      for (size_t j = 0; j < def.param_spans.size(); ++j) {
        if (std::find(order.begin(), order.end(), j) == order.end()) order.push_back(j);
      }
      if (const std::string signature = signature_text(order); !signature.empty()) {
        fix = fmt::format("put the shrinking parameter first: `def {}({})`", def_text(frame_.def), signature);
      }
    }
    for (SelfCall& c : self_calls_) {
      if (c.descends) continue;
      c.diagnostic.fix = fix;
      for (size_t j = 0; j < c.orders.size() && j < def.param_spans.size(); ++j) {
        if (c.orders[j] == Order::Less) c.diagnostic.labels.push_back({def.param_spans[j], "this parameter shrinks in the call"});
      }
      Diagnostics one;
      one.add(c.diagnostic.code, c.diagnostic.span, "") = std::move(c.diagnostic);
      diagnostics_.append(std::move(one));
    }
  }
  self_calls_.clear();
}

}  // namespace bendc
