// Terms: names, calls, types, constructors, functions. Sugar is in elaborate_sugar.cpp.
#include <algorithm>

#include <fmt/format.h>

#include "checker/elaborator.h"

namespace bendc::elab {

using ast::Kind;
using ast::NodeId;
using core::Quantity;
using core::TermId;
using core::TermKind;

NodeId Elaborator::strip(NodeId id) const {
  while (node(id).kind == Kind::Group) {
    Kind inner = node(NodeId(node(id).a)).kind;
    if (inner == Kind::Let || inner == Kind::Match || inner == Kind::Rewrite) break;
    id = NodeId(node(id).a);
  }
  return id;
}

Name Elaborator::joined(std::string_view left, std::string_view right) {
  std::string text;
  text.reserve(left.size() + right.size());
  text.append(left).append(right);
  return names.intern(text);
}

void Elaborator::too_deep(Span span) {
  if (!reports.broken) {
    Diagnostic& d = reports.add(Code::L1, span, fmt::format("`{}` is nested too deeply", reports.def));
    d.notes.push_back("one test lies in another for each element of a list pattern and each character of a string pattern; a hundred thousand are read");
    d.fix = "match the first part here and the rest in a definition of its own; `String.is_eq` compares strings of any length";
  }
  reports.broken = true;
}

TermId Elaborator::apply(TermId head, std::span<const TermId> args, Span span, uint8_t tildes) {
  if (args.empty()) return head;
  Slice list = book.lists.add(args);
  return add({.kind = TermKind::App, .extra = tildes, .a = head.index, .b = list.offset, .c = list.length}, span);
}

TermId Elaborator::literal_term(const Literal& literal, Span span) {
  switch (literal.kind) {
    case LiteralKind::Nat: return add({.kind = TermKind::Nat, .a = literal.value}, span);
    case LiteralKind::U32: return add({.kind = TermKind::U32, .a = literal.value}, span);
    case LiteralKind::F32: return add({.kind = TermKind::F32, .a = literal.value}, span);
    case LiteralKind::Word: {
      TermId word = constructor(words_.wnil, {}, span);
      for (uint32_t bit = literal.bits; bit-- > 0;) {
        TermId fields[] = {constructor(((literal.value >> bit) & 1) != 0 ? words_.true_ : words_.false_, {}, span), word};
        word = constructor(words_.wcon, fields, span);
      }
      return word;
    }
  }
  return error_term(span);
}

TermId Elaborator::binder_term(BinderId id, Span span) {
  const Binder b = tree_.binder(id);
  switch (b.state) {
    case BinderState::Closed: return add({.kind = TermKind::Var, .name = b.name, .a = b.level}, span);
    case BinderState::Known: return literal_term(b.literal, span);
    case BinderState::Opened: {
      if (!nesting.enter()) {
        too_deep(span);
        return error_term(span);
      }
      SmallVector<TermId, 4> fields(b.field_count);
      for (uint32_t i = 0; i < b.field_count; ++i) {
        fields[i] = binder_term(BinderId(b.first_field.index + i), span);
        if (book.terms[fields[i]].kind == TermKind::Var) book.terms[fields[i]].flags |= core::kOfMatched;
      }
      Slice list = book.lists.add(fields);
      return add({.kind = TermKind::Ctr, .a = b.ctor.index, .b = list.offset, .c = list.length}, span);
    }
    case BinderState::Pending: break;
  }
  // Every pending binder is closed before a term starts; only after an error can one be left.
  reports.broken = true;
  return error_term(span);
}

// Names -----------------------------------------------------------------------------------------------------------------------------

bool Elaborator::ambiguous(const Lookup& found, Name written, Span span) {
  if (!found.rival.valid()) return false;
  Diagnostic& d = reports.add(Code::P27, span, fmt::format("`{}` is ambiguous: it is declared in more than one place", text(written)));
  d.notes.push_back(fmt::format("it can mean `{}` of the imported module, and `{}`", core::display_name(names.text(found.key)), core::display_name(names.text(found.rival))));
  d.fix = Symbols::fix_for(names.text(found.rival));
  return true;
}

namespace {

// The types of other languages that newcomers write.
std::string_view type_of_elsewhere(std::string_view name) {
  struct Entry { std::string_view theirs, ours; };
  constexpr Entry kEntries[] = {{"Int", "U32"}, {"int", "U32"}, {"Integer", "U32"}, {"i32", "U32"}, {"I32", "U32"}, {"u32", "U32"}, {"Float", "F32"}, {"float", "F32"},
                                {"f32", "F32"}, {"double", "F32"}, {"Double", "F32"}, {"str", "String"}, {"Str", "String"}, {"string", "String"}, {"bool", "Bool"},
                                {"Boolean", "Bool"}, {"nat", "Nat"}, {"void", "Unit"}, {"Void", "Unit"}, {"Option", "Maybe"}, {"Optional", "Maybe"}};
  for (const Entry& e : kEntries)
    if (e.theirs == name) return e.ours;
  return {};
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < names.size(); ++i) out += fmt::format("{}`{}`", i == 0 ? "" : i + 1 == names.size() ? " or " : ", ", names[i]);
  return out;
}

}  // namespace

TermId Elaborator::unknown(Name written, Span span, SymbolKind kind) {
  if (reports.quiet) return error_term(span);
  // Said once for a declaration: all uses have one cause.
  if (!unknown_.insert(written).second) {
    reports.broken = true;
    return error_term(span);
  }
  std::string_view name = names.text(written);
  std::string what = kind == SymbolKind::Ctor ? "constructor" : kind == SymbolKind::Data ? "datatype" : "name";
  Lookup term = symbols.term(written), ctor = symbols.ctor(written);
  if (kind == SymbolKind::Ctor && term.symbol.kind == SymbolKind::Data) {
    Diagnostic& d = reports.add(Code::C12, span, fmt::format("`{}` is a type, not a constructor", name));
    d.notes.push_back("braces build a value of a constructor; a type's arguments stand in `<>`");
    d.fix = fmt::format("write `{}<..>`", name);
    return error_term(span);
  }
  Diagnostic& d = reports.add(Code::C1, span, fmt::format("unknown {} `{}`", what, name));
  if (kind != SymbolKind::Ctor && ctor.symbol) {
    d.notes.push_back(fmt::format("`{}` is a constructor", name));
    d.fix = fmt::format("write `{}{{{}}}`", name, book.ctors[core::CtorId(ctor.symbol.id)].fields.empty() ? "" : "..");
  } else if (kind == SymbolKind::Data && term.symbol) {
    d.message = fmt::format("`{}` is not a datatype", name);
    d.notes.push_back(fmt::format("`{}` is a definition; its arguments stand in parentheses", name));
    d.fix = fmt::format("write `{}(..)`", name);
  } else if (written == words_.underscore) {
    d.message = "`_` is not a value";
    d.notes.push_back("`_` as a binder binds nothing; as a term it is meaningful only in the motive of a rewrite");
  } else if (suggestions_left_ > 0) {
    --suggestions_left_;
    const std::string aliased = symbols.behind_alias(name, kind == SymbolKind::Ctor ? kind : SymbolKind::Def);
    const size_t dot = name.find('.');
    const std::vector<Name> locals = scope.names();
    const bool of_local = dot != std::string_view::npos && std::any_of(locals.begin(), locals.end(), [&](Name local) { return names.text(local) == name.substr(0, dot); });
    const std::vector<std::string> members = symbols.members(of_local ? name.substr(dot + 1) : name, 3);
    const Symbol type = dot != std::string_view::npos ? symbols.term(names.intern(std::string(name.substr(0, dot)))).symbol : Symbol();
    // `Map.shw` is meant for Map: what another type has is no help.
    const std::string near = symbols.nearest(name, kind == SymbolKind::Ctor ? kind : SymbolKind::Def, kind == SymbolKind::None ? scope.names() : std::vector<Name>(), type ? name.substr(0, dot + 1) : std::string_view());
    const bool of_library = type && program_.modules[ModuleId(type.module)].base;
    const std::string converted = kind == SymbolKind::None ? the_other_way(name) : std::string();
    const std::string capital = near.empty() && kind == SymbolKind::None ? symbols.nearest(name, SymbolKind::Ctor, {}) : std::string();
    const Name last = dot != std::string_view::npos ? names.intern(std::string(name.substr(name.rfind('.') + 1))) : Name();
    if (of_local) {
      d.notes.push_back(fmt::format("a dot is a part of a name: it selects no field of `{}`", name.substr(0, dot)));
      if (!members.empty()) d.fix = fmt::format("call a definition of its type with it, such as {}", listed(members));
      else d.fix = fmt::format("take it apart where it is a parameter: `K{{x, y}} = {}` or `match {}: case K{{x, y}}: ..`", name.substr(0, dot), name.substr(0, dot));
    } else if (const std::string_view ours = type_of_elsewhere(name); kind != SymbolKind::Ctor && !ours.empty()) d.fix = fmt::format("the type is called `{}`", ours);
    else if (!aliased.empty()) {
      d.notes.push_back("what another file declares is written with the alias of its import");
      d.fix = fmt::format("write `{}`", aliased);
    } else if (kind == SymbolKind::Ctor && last.valid() && symbols.ctor(last).symbol) {
      d.notes.push_back("a constructor's name does not carry its type's");
      d.fix = fmt::format("write `{}{{..}}`", names.text(last));
    } else if (lower(capital) == lower(name)) d.fix = fmt::format("the constructor is `{}{{}}`", capital);
    else if (!converted.empty()) d.fix = fmt::format("the conversion is called `{}`", converted);
    else if (!near.empty()) d.fix = fmt::format("did you mean `{}`?", near);
    else if (!members.empty()) d.fix = fmt::format("did you mean {}?", listed(members));
    else if (!program_.modules[symbols.module()].uses_base) d.fix = "names such as `U32` are those of Base: add `import Base` at the top of the file";
    else if (of_library) d.fix = fmt::format("`bendc doc {}` lists what there is", name.substr(0, dot));
  }
  return error_term(span);
}

// `U32.to_f32` for `F32.from_u32`, which there is not, and the other way round.
std::string Elaborator::the_other_way(std::string_view written) {
  const size_t dot = written.rfind('.');
  if (dot == std::string_view::npos) return {};
  std::string_view rest = written.substr(dot + 1);
  const bool from = rest.starts_with("from_");
  if (!from && !rest.starts_with("to_")) return {};
  rest.remove_prefix(from ? 5 : 3);
  if (rest.empty() || rest[0] < 'a' || rest[0] > 'z') return {};
  std::string out = fmt::format("{}{}.{}{}", static_cast<char>(rest[0] - 'a' + 'A'), rest.substr(1), from ? "to_" : "from_", lower(written.substr(0, dot)));
  return symbols.term(names.intern(out)).symbol ? out : std::string();
}

std::string Elaborator::nearest_local(std::string_view written) {
  if (suggestions_left_ == 0) return {};
  --suggestions_left_;
  const std::vector<Name> locals = scope.names();
  std::string near = symbols.nearest(written, SymbolKind::Def, locals);
  const bool local = std::any_of(locals.begin(), locals.end(), [&](Name name) { return names.text(name) == near; });
  return local ? near : std::string();
}

TermId Elaborator::global(Name written, Span span) {
  const Lookup found = symbols.term(written);
  if (ambiguous(found, written, span)) return error_term(span);
  switch (found.symbol.kind) {
    case SymbolKind::Def: return add({.kind = TermKind::Ref, .a = found.symbol.id}, span);
    case SymbolKind::Data: return add({.kind = TermKind::Adt, .a = found.symbol.id, .b = 0, .c = 0}, span);
    case SymbolKind::Ctor:
    case SymbolKind::None: break;
  }
  return unknown(written, span, SymbolKind::None);
}

TermId Elaborator::name(const Node& n) {
  BinderId local = scope.find(n.name);
  if (local.valid()) return binder_term(local, n.span);
  return global(n.name, n.span);
}

// Calls -------------------------------------------------------------------------------------------------------------------------------

TermId Elaborator::call(const Node& n, const OperatorType& operators) {
  NodeId head_node = strip(NodeId(n.a));
  const Node& h = node(head_node);
  bool bang = (n.flags & ast::kFlagBang) != 0;
  if (bang && h.kind == Kind::Name && scope.find(h.name).valid()) {
    Diagnostic& d = reports.add(Code::P14, n.span, fmt::format("`!` after the local name `{}`", text(h.name)));
    d.notes.push_back("`!` marks a call of a definition");
    d.fix = fmt::format("write `{}(..)`", text(h.name));
  }
  TermId head = term(head_node);
  const core::Term& head_term = book.terms[head];
  if (bang && head_term.kind == TermKind::Ref) book.terms[head].flags |= core::kBang;
  // Only these three pass `( .. : T)` on to their arguments.
  bool spine = book.terms[head].kind == TermKind::Ref && operators.kind != OperatorType::Kind::None &&
               (book.terms[head].a == bool_and_.index || book.terms[head].a == bool_or_.index || book.terms[head].a == string_append_.index);
  uint32_t tildes = 0;
  std::span<const NodeId> list = ast_->list(n.b, n.c);
  SmallVector<TermId, 8> out(list.size());
  Span tilde_span;
  for (size_t i = 0; i < list.size(); ++i) {
    const Node& a = node(list[i]);
    if (a.kind == Kind::TildeArg) {
      if (++tildes == 1 || tildes != i + 1) tilde_span = a.span;
      out[i] = term(NodeId(a.a));
    } else {
      out[i] = term(list[i], spine ? operators : OperatorType{});
    }
  }
  if (tildes > 0) check_tildes(h, head, tildes, tilde_span);
  return apply(head, out, n.span, static_cast<uint8_t>(std::min(tildes, 255u)));
}

// `~` marks need a template above that has that many `~` parameters.
void Elaborator::check_tildes(const Node& h, TermId head, uint32_t tildes, Span first) {
  const core::Term& t = book.terms[head];
  if (t.kind == TermKind::Error) return;
  uint32_t has = 0;
  if (t.kind == TermKind::Ref) {
    const core::Def& d = book.defs[core::DefId(t.a)];
    Symbol symbol = symbols.term_at(d.name);
    if (!declared_above(symbol)) {
      Diagnostic& diagnostic = reports.add(Code::P23, first, fmt::format("`~` in a call of `{}`, which is declared below", text(h.name)));
      diagnostic.notes.push_back("a template is called below its declaration");
      return;
    }
    has = d.templates;
  }
  if (tildes <= has && tildes <= 255) return;
  std::string name = h.kind == Kind::Name ? fmt::format("`{}`", text(h.name)) : "this function";
  Diagnostic& d = reports.add(Code::P23, first, has == 0 ? fmt::format("`~` in a call of {}, which has no `~` parameters", name)
                                                         : fmt::format("{} `~` arguments in a call of {}, which has {}", tildes, name, has));
  d.fix = has == 0 ? "leave the `~` out" : "leave the `~` out of the others";
}

// Types -------------------------------------------------------------------------------------------------------------------------------

// D<args>, and +D<args> when `plus`: the leading Quant parameters are filled when exactly they are missing.
TermId Elaborator::family(const Node& n, bool plus) {
  SmallVector<TermId, 8> args;
  const Lookup found = symbols.term(n.name);
  uint32_t fill = 0;
  bool data = found.symbol.kind == SymbolKind::Data && !found.rival.valid();
  if (data && declared_above(found.symbol)) {
    const core::Datatype& d = book.datatypes[core::DataId(found.symbol.id)];
    // `Maybe<&1>` lacks the type, not the quantity.
    const bool quantity_first = n.b > 0 && node(strip(ast_->list(n.a, n.b)[0])).kind == Kind::QuantLit;
    if (d.leading_quants > 0 && n.b + d.leading_quants == d.params.size() && !quantity_first) fill = d.leading_quants;
    if (plus && d.leading_quants == 0) {
      Diagnostic& diagnostic = reports.add(Code::P15, n.span, fmt::format("`+` before `{}`, which has no quantity parameters", text(n.name)));
      diagnostic.notes.push_back("`+D<..>` fills the leading `Quant` parameters of D with `&2`");
      diagnostic.fix = "leave the `+` out";
    }
  } else if (plus) {
    Diagnostic& diagnostic = reports.add(Code::P15, n.span, fmt::format("`+` before `{}`, which is not a datatype declared above", text(n.name)));
    diagnostic.notes.push_back("`+D<..>` fills the leading `Quant` parameters of D with `&2`");
  }
  for (uint32_t i = 0; i < fill; ++i) args.push_back(quantity(plus ? 2 : 1, n.name_span));
  for (NodeId a : ast_->list(n.a, n.b)) args.push_back(term(a));
  if (ambiguous(found, n.name, n.name_span)) return error_term(n.span);
  if (!data) return unknown(n.name, n.name_span, SymbolKind::Data);
  Slice list = book.lists.add(args);
  return add({.kind = TermKind::Adt, .a = found.symbol.id, .b = list.offset, .c = list.length}, n.span);
}

TermId Elaborator::plus_mark(const Node& n) {
  const Node& inner = node(strip(NodeId(n.a)));
  if (inner.kind == Kind::TypeArgs) return family(inner, true);
  if (inner.kind == Kind::Error) {
    reports.broken = true;
    return error_term(n.span);
  }
  if (inner.kind == Kind::Name && !scope.find(inner.name).valid()) {
    const Lookup found = symbols.term(inner.name);
    if (ambiguous(found, inner.name, inner.span)) return error_term(n.span);
    if (found.symbol.kind == SymbolKind::Data && declared_above(found.symbol)) {
      const core::Datatype& d = book.datatypes[core::DataId(found.symbol.id)];
      if (!d.params.empty() && d.leading_quants == d.params.size()) {
        std::vector<TermId> args(d.params.size());
        for (TermId& a : args) a = quantity(2, n.span);
        Slice list = book.lists.add(args);
        return add({.kind = TermKind::Adt, .a = found.symbol.id, .b = list.offset, .c = list.length}, n.span);
      }
      Diagnostic& diagnostic = reports.add(Code::P15, n.span, d.leading_quants == 0 ? fmt::format("`+` before `{}`, which has no quantity parameters", text(inner.name))
                                                                                    : fmt::format("`+{}` leaves the parameters after the quantities open", text(inner.name)));
      diagnostic.notes.push_back("`+D<..>` fills the leading `Quant` parameters of D with `&2`");
      diagnostic.fix = d.leading_quants == 0 ? "leave the `+` out" : fmt::format("write `+{}<..>`", text(inner.name));
      return error_term(n.span);
    }
  }
  std::string what = inner.kind == Kind::Name ? fmt::format("`{}`", text(inner.name)) : "this term";
  Diagnostic& diagnostic = reports.add(Code::P15, n.span, fmt::format("`+` before {}, which is neither a binder nor a datatype with quantity parameters", what));
  diagnostic.notes.push_back("`+x` marks a binder where it is introduced; `+D<..>` fills quantities with `&2`");
  return error_term(n.span);
}

// `A -> B` and `@x: A -> B`, right nested: a loop down the codomains.
TermId Elaborator::function_type(NodeId id) {
  const size_t scope_mark = scope.size();
  const uint32_t outer = depth;
  TermId first, hole;
  for (;;) {
    const Node& n = node(id);
    bool arrow = n.kind == Kind::Binary && n.op == ast::Op::Arrow;
    if (!arrow && n.kind != Kind::All) break;
    const size_t reported = reports.check.size();
    TermId domain = term(NodeId(n.a));
    if (arrow && reports.check.size() == reported + 1 && node(NodeId(n.a)).kind == Kind::Name && reports.check.last().fix.empty()) {
      reports.check.last().notes.assign(1, "`A -> B` is the type of functions from A to B");
      reports.check.last().fix = fmt::format("for a function value write `{} => ..`", text(node(NodeId(n.a)).name));
    }
    Name name = arrow ? words_.underscore : n.name;
    TermId all = add({.kind = TermKind::All, .quantity = arrow ? Quantity::Lone : Quantity(n.mark), .name = name, .a = domain.index}, n.span);
    if (hole.valid()) book.terms[hole].b = all.index;
    else first = all;
    hole = all;
    if (!arrow && name.valid()) push_closed(name, n.name_span);
    ++depth;
    id = NodeId(n.b);
  }
  TermId last = term(id);
  book.terms[hole].b = last.index;
  depth = outer;
  scope.pop_to(scope_mark);
  return first;
}

// `&x: A -> B` is Exists(A, x => B).
TermId Elaborator::exists(const Node& n) {
  TermId domain = term(NodeId(n.a));
  size_t scope_mark = scope.size();
  push_closed(n.name, n.name_span);
  ++depth;
  TermId body = term(NodeId(n.b));
  --depth;
  scope.pop_to(scope_mark);
  TermId args[] = {domain, add({.kind = TermKind::Lam, .name = n.name, .a = body.index}, n.span)};
  return apply(global(words_.exists, n.span), args, n.span);
}

TermId Elaborator::equation(const Node& n) {
  TermId left = term(NodeId(n.a)), right = term(NodeId(n.b)), type = term(NodeId(n.c));
  TermId eql = add({.kind = TermKind::Eql, .a = left.index, .b = right.index, .c = type.index}, n.span);
  if (n.kind == Kind::Eql) return eql;
  TermId empty = global(words_.empty, n.span);
  return add({.kind = TermKind::All, .name = words_.underscore, .a = eql.index, .b = empty.index}, n.span);
}

// Values -------------------------------------------------------------------------------------------------------------------------------

TermId Elaborator::ctor(const Node& n) {
  std::span<const NodeId> list = ast_->list(n.a, n.b);
  SmallVector<TermId, 8> fields(list.size());
  for (size_t i = 0; i < list.size(); ++i) fields[i] = term(list[i]);
  const Lookup found = symbols.ctor(n.name);
  if (ambiguous(found, n.name, n.name_span)) return error_term(n.span);
  if (!found.symbol) return unknown(n.name, n.name_span, SymbolKind::Ctor);
  Slice slice = book.lists.add(fields);
  return add({.kind = TermKind::Ctr, .a = found.symbol.id, .b = slice.offset, .c = slice.length}, n.span);
}

// A constructor that sugar stands for.
TermId Elaborator::constructor(Name written, std::span<const TermId> fields, Span span) {
  const Lookup found = symbols.ctor(written);
  if (!found.symbol) return unknown(written, span, SymbolKind::Ctor);
  Slice slice = book.lists.add(fields);
  return add({.kind = TermKind::Ctr, .a = found.symbol.id, .b = slice.offset, .c = slice.length}, span);
}

TermId Elaborator::lambda(Name name, Quantity mark, NodeId body_node, Span span) {
  size_t scope_mark = scope.size();
  push_closed(name, span);
  ++depth;
  TermId inner = block(body_node);
  --depth;
  scope.pop_to(scope_mark);
  return add({.kind = TermKind::Lam, .quantity = mark, .name = name, .a = inner.index}, span);
}

void Elaborator::push_closed(Name name, Span span) {
  if (!name.valid() || name == words_.underscore) return;
  scope.push(name, tree_.add_binder({.name = name, .span = span, .state = BinderState::Closed, .level = depth}));
}

// `\{K: h; m}`
TermId Elaborator::raw_match(const Node& n) {
  struct Arm { core::CtorId ctor; TermId hit; Span span; };
  std::vector<Arm> arms;
  for (NodeId id : ast_->list(n.a, n.b)) {
    const Node& arm = node(id);
    if (arm.kind != Kind::RawArm) { reports.broken = true; continue; }
    TermId hit = term(NodeId(arm.a));
    const Lookup found = symbols.ctor(arm.name);
    if (ambiguous(found, arm.name, arm.name_span)) continue;
    if (!found.symbol) {
      (void)unknown(arm.name, arm.name_span, SymbolKind::Ctor);
      continue;
    }
    arms.push_back({core::CtorId(found.symbol.id), hit, arm.name_span});
  }
  TermId out = NodeId(n.c).valid() ? term(NodeId(n.c)) : add({.kind = TermKind::Efq}, n.span);
  for (size_t i = arms.size(); i-- > 0;) out = add({.kind = TermKind::Mat, .a = arms[i].ctor.index, .b = arms[i].hit.index, .c = out.index}, arms[i].span);
  return out;
}

// `( a : T)`: T only selects operators. Parens with statements are a body of their own.
TermId Elaborator::group(const Node& n, const OperatorType& outer) {
  OperatorType operators = NodeId(n.b).valid() ? operator_type(NodeId(n.b)) : outer;
  Kind inner = node(NodeId(n.a)).kind;
  if (inner == Kind::Let || inner == Kind::Match || inner == Kind::Rewrite) return block(NodeId(n.a), operators);
  return term(NodeId(n.a), operators);
}

TermId Elaborator::term(NodeId id, const OperatorType& operators) {
  const Node& n = node(id);
  // Leaves need no stack.
  switch (n.kind) {
    case Kind::Name: return name(n);
    case Kind::U32Lit: return add({.kind = TermKind::U32, .a = n.a}, n.span);
    case Kind::NatLit: return add({.kind = TermKind::Nat, .a = n.a}, n.span);
    case Kind::F32Lit: return add({.kind = TermKind::F32, .a = n.a}, n.span);
    case Kind::StringLit: return string_literal(n);
    case Kind::CharLit: return char_literal(n);
    case Kind::TypeKw: return add({.kind = TermKind::Kind, .a = quantity(1, n.span).index}, n.span);
    case Kind::DataKw: return add({.kind = TermKind::Kind, .a = quantity(2, n.span).index}, n.span);
    case Kind::QuantKw: return add({.kind = TermKind::Quant}, n.span);
    case Kind::QuantLit: return quantity(n.a, n.span);
    case Kind::Rfl: return add({.kind = TermKind::Rfl}, n.span);
    case Kind::Hole: return add({.kind = TermKind::Hole, .name = n.name}, n.span);
    case Kind::Error: reports.broken = true; return error_term(n.span);
    case Kind::KindOf: case Kind::NatPlus: case Kind::All: case Kind::Exists: case Kind::PlusMark: case Kind::Ctor: case Kind::Eql:
    case Kind::Neq: case Kind::Ann: case Kind::Group: case Kind::Tuple: case Kind::List: case Kind::Fill: case Kind::RawMatch:
    case Kind::RawArm: case Kind::Rewrite: case Kind::Do: case Kind::DoBind: case Kind::DoLet: case Kind::DoStep: case Kind::DoReturn:
    case Kind::Lambda: case Kind::Call: case Kind::TildeArg: case Kind::TypeArgs: case Kind::Index: case Kind::Write: case Kind::Binary:
    case Kind::Match: case Kind::Case: case Kind::Let: break;
  }
  if (!nesting.enter()) {
    too_deep(n.span);
    return error_term(n.span);
  }
  TermId out;
  switch (n.kind) {
    case Kind::KindOf: {
      TermId q = term(NodeId(n.a));
      out = add({.kind = TermKind::Kind, .a = q.index}, n.span);
      break;
    }
    case Kind::NatPlus: out = nat_plus(id, operators); break;
    case Kind::All: out = function_type(id); break;
    case Kind::Exists: out = exists(n); break;
    case Kind::PlusMark: out = plus_mark(n); break;
    case Kind::Ctor: out = ctor(n); break;
    case Kind::Eql:
    case Kind::Neq: out = equation(n); break;
    case Kind::Ann: {
      TermId value = term(NodeId(n.a)), type = term(NodeId(n.b));
      out = add({.kind = TermKind::Ann, .a = value.index, .b = type.index}, n.span);
      break;
    }
    case Kind::Group: out = group(n, operators); break;
    case Kind::Tuple: out = tuple(n); break;
    case Kind::List: out = list(n); break;
    case Kind::Fill: out = array_fill(n); break;
    case Kind::RawMatch: out = raw_match(n); break;
    case Kind::Rewrite:
    case Kind::Match:
    case Kind::Let: out = block(id, operators); break;
    case Kind::Do: out = do_block(n); break;
    case Kind::Lambda: out = lambda(n.name, Quantity(n.mark), NodeId(n.a), n.span); break;
    case Kind::Call: out = call(n, operators); break;
    case Kind::TypeArgs: out = family(n, false); break;
    case Kind::Index: out = array_index(n); break;
    case Kind::Write: out = array_write(n); break;
    case Kind::Binary: out = binary(id, operators); break;
    case Kind::TildeArg: {
      reports.add(Code::P23, n.span, "`~` outside of a template call");
      out = term(NodeId(n.a));
      break;
    }
    // Parts that only their own constructs read, and the leaves above.
    case Kind::RawArm: case Kind::DoBind: case Kind::DoLet: case Kind::DoStep: case Kind::DoReturn: case Kind::Case: case Kind::Name:
    case Kind::U32Lit: case Kind::NatLit: case Kind::F32Lit: case Kind::StringLit: case Kind::CharLit: case Kind::TypeKw: case Kind::DataKw:
    case Kind::QuantKw: case Kind::QuantLit: case Kind::Rfl: case Kind::Hole: case Kind::Error:
      reports.broken = true;
      out = error_term(n.span);
      break;
  }
  return out;
}

}  // namespace bendc::elab
