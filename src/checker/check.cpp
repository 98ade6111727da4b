// Checking against a goal (language.md 5.2-5.4, 5.10): lambdas, lets, constructors, literals, holes, and everything inferable.
#include <fmt/format.h>

#include "checker/typecheck.h"

namespace bendc {

using core::CtorId;
using core::DataId;
using core::DefId;
using core::Quantity;
using core::Term;
using core::TermId;
using core::TermKind;

// One loop over what stands in tail position: lambda and let bodies, the last field of a constructor, the body of a rewrite. Binders
// opened on the way are closed at the end, so long lists and long let chains take no C++ stack.
void Checker::check(TermId id, const Env* env, const Value* goal, bool live, bool spine) {
  if (m_.deep()) {
    (void)halted(id);
    return;
  }
  const uint32_t outer = depth();
  const Path* path = frame_.path;
  for (bool more = true; more;) {
    more = false;
    const TermKind kind = term(id).kind;
    switch (kind) {
      case TermKind::Lam:
        if (open_lambda(id, env, goal, live, spine)) {
          id = TermId(term(id).a);
          more = true;
        }
        break;
      case TermKind::Mat: case TermKind::MatLit: case TermKind::Efq:
        check_match(id, env, goal, live, spine);
        break;
      case TermKind::Let:
        open_let(id, env, live);
        id = TermId(term(id).c);
        spine = false;
        more = true;
        break;
      case TermKind::Ctr: {
        TermId last;
        spine = false;
        if (check_fields(id, env, goal, live, last)) {
          id = last;
          more = true;
        }
        break;
      }
      case TermKind::U32: case TermKind::Nat: case TermKind::F32: case TermKind::Str:
        check_literal(id, goal);
        break;
      case TermKind::Rfl:
        check_reflexivity(id, goal);
        break;
      case TermKind::Rwt:
        spine = false;
        if (open_rewrite(id, env, goal, live)) {
          id = TermId(term(id).c);
          more = true;
        }
        break;
      case TermKind::Hole:
        check_hole(id, goal, env);
        break;
      case TermKind::Error:
        break;
      case TermKind::Var: case TermKind::Ref: case TermKind::Kind: case TermKind::Quant: case TermKind::Qua: case TermKind::Meet: case TermKind::All:
      case TermKind::App: case TermKind::Adt: case TermKind::Eql: case TermKind::Ann:
        check_inferred(id, env, goal, live);
        break;
    }
    if (m_.halt() != Halt::None) more = false;
  }
  if (m_.halt() != Halt::None) (void)halted(id);
  unbind(outer);
  frame_.path = path;
}

void Checker::check_inferred(TermId id, const Env* env, const Value* goal, bool live) {
  const uint32_t before = reported_;
  const Value* type = infer(id, env, live);
  if (type == goal || is_error(type) || reported_ != before) return;   // a wrong part makes a wrong whole: said once
  if (!fits(type, goal, id)) mismatch(id, goal, type);
}

bool Checker::open_lambda(TermId id, const Env*& env, const Value*& goal, bool live, bool spine) {
  const Term t = term(id);
  const Value* all = m_.whnf(goal);
  if (is_error(all)) return false;
  if (all->tag != Tag::All) {
    if (halted(id)) return false;
    Diagnostic& d = report(Code::C5, span(id), fmt::format("a function `{} => ...` where a value of another type is needed", name_text(t.name)));
    d.expected = show(goal);
    d.observed = "a function";
    return false;
  }
  Quantity quantity = m_.binder_quantity(all);
  const Value* domain = m_.domain(all);
  if (quantity == Quantity::Lone && t.quantity == Quantity::Many) {
    quantity = Quantity::Many;
    if (!frame_.unsafe) {
      const Value* kind = conv_.kind_quantity(domain, depth());
      if (kind != nullptr && !fits_quantity(kind, Quantity::Many)) not_data(span(id), t.name, domain, "binder");
    }
  }
  const bool constant = frame_.generic && spine && depth() < frame_.constants;
  const Value* x = bind(t.name, quantity, domain, span(id), constant);
  env = m_.extend(env, x);
  goal = m_.codomain(all, x);
  if (spine) {
    Path* p = m_.arena().make<Path>();
    p->kind = Path::Kind::Bind;
    p->before = frame_.path;
    p->value = x;
    p->term = id;
    frame_.path = p;
  }
  (void)live;
  return true;
}

void Checker::open_let(TermId id, const Env*& env, bool live) {
  const Term t = term(id);
  const Env* inner = env;
  struct Row {
    Name name;
    Quantity quantity;
    const Value* type;
    Span span;
    bool action;
  };
  Row single;
  std::vector<Row> several;   // only a parallel let allocates
  for (uint32_t i = 0; i < t.b; ++i) {
    const core::LetRow row = book_.let_rows[t.a + i];
    const Value* type = infer(row.value, env, live && row.quantity != Quantity::None);
    if (row.quantity == Quantity::Many && !frame_.unsafe && !is_error(m_.force(type))) {
      const Value* kind = conv_.kind_quantity(type, depth());
      if (kind != nullptr && !fits_quantity(kind, Quantity::Many)) not_data(row.span, row.name, type, "let");
    }
    inner = m_.extend(inner, m_.delay(row.value, env));
    const bool action = live && row.quantity != Quantity::None && frame_.def.valid() && !book_.module_is_stdlib[book_.defs[frame_.def].module] && is_io(type);
    if (t.b == 1) {
      single = {row.name, row.quantity, type, row.span, action};
    } else {
      several.push_back({row.name, row.quantity, type, row.span, action});
    }
  }
  auto bind_row = [&](const Row& row) {
    if (row.action) actions_.push_back({depth(), reported_});
    bind_value(row.name, row.quantity, row.type, row.span);
  };
  if (t.b == 1) bind_row(single);
  for (const Row& row : several) bind_row(row);
  env = inner;
}

// Checks all fields but the last, which becomes the new goal. False: nothing left to check.
bool Checker::check_fields(TermId id, const Env* env, const Value*& goal, bool& live, TermId& last) {
  const Term t = term(id);
  const CtorId ctor(t.a);
  const Value* type = m_.whnf(goal);
  if (is_error(type) || halted(id)) return false;
  const std::string_view what = "constructor";
  if (type->tag != Tag::Adt) {
    Diagnostic& d = report(type->tag == Tag::All ? Code::C5 : Code::C12, span(id),
                           fmt::format("the {} `{}` where a value of another type is needed", what, name_text(book_.ctors[ctor].name)));
    d.expected = show(goal);
    d.observed = fmt::format("a value of `{}`", name_text(book_.datatypes[book_.ctors[ctor].data].name));
    return false;
  }
  const AdtValue* adt = as<AdtValue>(type);
  if (book_.ctors[ctor].data != DataId(adt->a) || Machine::is_removed(adt, book_.ctors[ctor].index)) {
    const bool taken = book_.ctors[ctor].data == DataId(adt->a);
    const bool tuple = ctor == m_.known().tuple;
    Diagnostic& d = report(Code::C12, span(id), tuple ? fmt::format("a tuple where a value of `{}` is needed", show(goal))
                                                      : fmt::format("`{}` is {} of `{}`", name_text(book_.ctors[ctor].name), taken ? "a removed constructor" : "no constructor", show(goal)));
    d.expected = show(goal);
    d.observed = tuple ? std::string("a pair") : fmt::format("a value of `{}`", name_text(book_.datatypes[book_.ctors[ctor].data].name));
    if (book_.module_is_stdlib[book_.datatypes[DataId(adt->a)].module] && names_.text(book_.datatypes[DataId(adt->a)].name) == "Array") {
      d.notes.push_back("`[a, b]` is a list; an array is filled and then written, or built from halves by `ANode` and `ALeaf`");
      d.fix = "write `[v : T*4n]` for an array of 4 slots";
    }
    if (ctor == m_.known().chr && m_.known().string.valid() && DataId(adt->a) == m_.known().string) d.fix = "a string of one character stands in double quotes: `\"c\"`";
    if (!tuple) d.labels.push_back({book_.ctors[ctor].name_span, fmt::format("`{}` is declared here", name_text(book_.ctors[ctor].name))});
    return false;
  }
  const uint32_t count = static_cast<uint32_t>(book_.ctors[ctor].fields.size());
  if (count != t.c) {
    Diagnostic& d = report(Code::C12, span(id), fmt::format("`{}` has {} field{}, not {}", name_text(book_.ctors[ctor].name), count, count == 1 ? "" : "s", t.c));
    d.labels.push_back({book_.ctors[ctor].span, "its fields"});
    if (book_.datatypes[DataId(adt->a)].params.size() == t.c) d.fix = "type arguments are written in `<>` and never passed to a constructor";
    return false;
  }
  const Env* fields = m_.env_of(adt);
  for (uint32_t i = 0; i < count; ++i) {
    const TermId arg = item(t.b, i);
    const core::Telescope& field = book_.ctors[ctor].fields[i];
    const bool field_live = live && field.quantity != Quantity::None;
    const Value* field_type = m_.delay(field.type, fields);
    if (i + 1 == count) {
      goal = field_type;
      live = field_live;
      last = arg;
      return true;
    }
    check(arg, env, field_type, field_live);
    fields = m_.extend(fields, m_.delay(arg, env));
  }
  return false;
}

void Checker::check_literal(TermId id, const Value* goal) {
  const Term t = term(id);
  const Value* type = m_.whnf(goal);
  if (is_error(type) || halted(id)) return;
  const KnownNames& k = m_.known();
  if (type->tag == Tag::Adt) {
    const AdtValue* adt = as<AdtValue>(type);
    const DataId data(adt->a);
    if (adt->removed.size() == 0) {
      if (t.kind == TermKind::U32 && data == k.u32_type) return;
      if (t.kind == TermKind::Nat && data == k.nat) return;
      if (t.kind == TermKind::F32 && data == k.f32_type) return;
      if (t.kind == TermKind::Str && data == k.string) return;
    }
    // A type of the file's own: the literal is checked as the constructor it stands for.
    const Value* literal = m_.eval(id, m_.empty());
    const Value* layer = m_.step(literal);
    if (layer != nullptr && book_.ctors[CtorId(layer->a)].data == data && !Machine::is_removed(adt, book_.ctors[CtorId(layer->a)].index)) {
      const core::Ctor& ctor = book_.ctors[CtorId(layer->a)];
      if (ctor.fields.size() == as<CtrValue>(layer)->count) {
        // Zero{} and Succ{pred: Nat} of one type: every layer checks like the first.
        bool same = true;
        for (const core::Telescope& field : ctor.fields) {
          const Value* field_type = m_.whnf(m_.delay(field.type, m_.env_of(adt)));
          if (t.kind == TermKind::Nat && !(field_type->tag == Tag::Adt && DataId(field_type->a) == data)) same = false;
        }
        if (same) return;
      }
    }
  }
  Diagnostic& d = report(Code::C5, span(id), fmt::format("a {} literal where a value of another type is needed",
                         t.kind == TermKind::U32 ? "U32" : t.kind == TermKind::Nat ? "Nat" : t.kind == TermKind::F32 ? "F32" : "String"));
  d.expected = show(goal);
  d.observed = t.kind == TermKind::U32 ? "U32" : t.kind == TermKind::Nat ? "Nat" : t.kind == TermKind::F32 ? "F32" : "String";
  if (t.kind == TermKind::U32 && type->tag == Tag::Adt && DataId(type->a) == k.nat) d.fix = fmt::format("write `{}n`", t.a);
  if (t.kind == TermKind::Nat && type->tag == Tag::Adt && DataId(type->a) == k.u32_type) d.fix = fmt::format("write `{}`", t.a);
  if (t.kind == TermKind::U32 && type->tag == Tag::Adt && DataId(type->a) == k.f32_type) d.fix = fmt::format("write `{}.0`", t.a);
  if (t.kind == TermKind::Str && k.chr.valid() && type->tag == Tag::Adt && book_.ctors[k.chr].data == DataId(type->a)) d.fix = "a character stands in single quotes: `'c'`";
  suggest(d, type, nullptr);
}

void Checker::check_hole(TermId id, const Value* goal, const Env* env) {
  (void)env;
  const Term t = term(id);
  if (names_.text(t.name) == "TODO") {
    todos.push_back({span(id), frame_.def});
    return;
  }
  Diagnostic& d = report(Code::C19, span(id), fmt::format("the hole `?{}`", name_text(t.name)));
  d.notes.push_back(is_error(goal) ? std::string("goal: unknown here") : fmt::format("goal: {}", show(goal)));
  for (uint32_t i = 0; i < depth(); ++i) {
    const Binding& b = bindings_[i];
    if (names_.text(b.name) == "_" || is_error(b.type)) continue;
    const std::string_view mark = b.constant ? "~" : b.quantity == Quantity::None ? "-" : b.quantity == Quantity::Many ? "+" : "";
    d.notes.push_back(fmt::format("{}{} : {}", mark, name_text(b.name), show(b.type)));
  }
}

}  // namespace bendc
