// Declarations: telescopes become nested function types or datatype rows, bodies start with their parameters pending.
#include <fmt/format.h>

#include "checker/elaborator.h"

namespace bendc::elab {

using ast::NodeId;
using core::DefId;
using core::Quantity;
using core::TermId;
using core::TermKind;

Elaborator::Elaborator(const Program& program, Interner& names_in, Symbols& symbols_in, core::Book& book_in, Reports& reports_in, size_t stack)
    : book(book_in), names(names_in), symbols(symbols_in), reports(reports_in), nesting(stack), program_(program),
      patterns_(symbols_in, names_in, book_in, scope, reports_in), tree_(*this, patterns_) {
  words_.underscore = names.intern("_");
  words_.pair = names.intern("Pair");
  words_.either = names.intern("Or");
  words_.exists = names.intern("Exists");
  words_.empty = names.intern("Empty");
  words_.unit = names.intern("Unit");
  words_.con = names.intern("Con");
  words_.nil = names.intern("Nil");
  words_.tuple = names.intern("Tuple");
  words_.chr = names.intern("Chr");
  words_.zero = names.intern("Zero");
  words_.succ = names.intern("Succ");
  words_.snil = names.intern("SNil");
  words_.scon = names.intern("SCon");
  words_.u32 = names.intern("U32");
  words_.nat_add = names.intern("Nat.add");
  words_.string_append = names.intern("String.append");
  words_.bool_and = names.intern("Bool.and");
  words_.bool_or = names.intern("Bool.or");
  words_.array_new = names.intern("Array.new");
  words_.array_get = names.intern("Array.get");
  words_.array_set = names.intern("Array.set");
  words_.wnil = names.intern("WNil");
  words_.wcon = names.intern("WCon");
  words_.false_ = names.intern("False");
  words_.true_ = names.intern("True");
  auto def_id = [&](Name name) {
    Symbol s = symbols.term_at(name);
    return s.kind == SymbolKind::Def ? DefId(s.id) : DefId();
  };
  bool_and_ = def_id(words_.bool_and);
  bool_or_ = def_id(words_.bool_or);
  string_append_ = def_id(words_.string_append);
}

void Elaborator::declaration(const Declared& declared) {
  const Module& module = program_.modules[declared.module];
  if (symbols.module() != declared.module) {
    symbols.enter(declared.module);
    ast_ = &module.ast;
    tree_.enter(ast_);
  }
  const ast::Decl& decl = ast_->decls[declared.decl];
  position_ = declared.position;
  patterns_.enter(ast_, position_);
  reports.def.assign(names.text(decl.name));
  reports.broken = false;
  depth = 0;
  tree_.begin(decl.span);
  unknown_.clear();
  switch (declared.kind) {
    case DeclaredKind::Data: data(decl, declared); break;
    case DeclaredKind::Def: def(decl, declared); break;
    case DeclaredKind::Law: law(decl, declared); break;
    case DeclaredKind::Fill: fill(decl, declared); break;
  }
  scope.pop_to(0);
  depth = 0;
  read_unreached();
  scope.pop_to(0);
  tree_.clear();
  patterns_.clear();
}

TermId Elaborator::binder_type(const ast::Binder& binder) {
  if (binder.type.valid()) return term(binder.type);
  if (symbols.term(binder.name).symbol.kind == SymbolKind::Data) {
    Diagnostic& d = reports.add(Code::W3, binder.name_span, fmt::format("`{}` declares an erased parameter of type `Quant` here, not a value of the type `{}`", text(binder.name), text(binder.name)));
    d.notes.push_back("a parameter or field without a type is an erased quantity, and the comma before it is optional");
    d.fix = fmt::format("write `x: {}`", text(binder.name));
  }
  return add({.kind = TermKind::Quant}, binder.name_span);  // a bare name
}

void Elaborator::data(const ast::Decl& decl, const Declared& declared) {
  core::DataId id(declared.id);
  for (size_t i = 0; i < decl.params.size(); ++i) {
    book.datatypes[id].params[i].type = binder_type(decl.params[i]);
    push_closed(decl.params[i].name, decl.params[i].name_span);
    ++depth;
  }
  book.datatypes[id].kind = decl.type.valid() ? term(decl.type) : error_term(decl.span);
  const size_t scope_mark = scope.size();
  const uint32_t params = depth;
  for (size_t c = 0; c < decl.ctors.size(); ++c) {
    core::CtorId ctor = book.datatypes[id].ctors[c];
    const std::vector<ast::Binder>& fields = decl.ctors[c].fields;
    for (size_t i = 0; i < fields.size(); ++i) {
      book.ctors[ctor].fields[i].type = binder_type(fields[i]);
      push_closed(fields[i].name, fields[i].name_span);
      ++depth;
    }
    depth = params;
    scope.pop_to(scope_mark);
  }
}

void Elaborator::def(const ast::Decl& decl, const Declared& declared) {
  DefId id(declared.id);
  SmallVector<TermId, 8> domains;
  book.defs[id].param_spans.reserve(decl.params.size());
  for (const ast::Binder& p : decl.params) {
    domains.push_back(binder_type(p));
    book.defs[id].param_spans.push_back(p.name_span);
    push_closed(p.name, p.name_span);
    ++depth;
  }
  TermId type = decl.type.valid() ? term(decl.type) : error_term(decl.name_span);
  if (decl.type.valid()) book.defs[id].result_span = node(decl.type).span;
  for (size_t i = domains.size(); i-- > 0;) {
    const ast::Binder& p = decl.params[i];
    Quantity q = p.tilde || !p.type.valid() ? Quantity::None : Quantity(p.mark);
    type = add({.kind = TermKind::All, .quantity = q, .name = p.name, .a = domains[i].index, .b = type.index}, p.span);
  }
  book.defs[id].type = type;
  depth = 0;
  scope.pop_to(0);
  function_body(decl, id);
}

// The parameters are pending, in order; the body takes them.
void Elaborator::function_body(const ast::Decl& decl, DefId id) {
  if (decl.body.valid()) {
    uint32_t pending = kNil;
    SmallVector<BinderId, 8> binders;
    for (const ast::Binder& p : decl.params) {
      Binder b{.name = p.name, .span = p.name_span, .state = BinderState::Pending};
      if (p.mark == ast::Mark::Reusable && !p.tilde) b.mark = Quantity::Many;
      binders.push_back(tree_.add_binder(b));
      if (p.name != words_.underscore) scope.push(p.name, binders.back());
    }
    for (size_t i = binders.size(); i-- > 0;) pending = tree_.cons_pending(binders[i], pending);
    book.defs[id].body = body(decl.body, pending);
  } else if (decl.foreign.empty()) {
    reports.broken = true;
  }
  if (reports.broken) {
    book.defs[id].broken = true;
    book.defs[id].body = TermId();
  }
}

void Elaborator::law(const ast::Decl& decl, const Declared& declared) {
  DefId id(declared.id);
  std::vector<TermId> domains;
  for (const ast::Clause& c : decl.clauses) {
    const ast::Binder& b = c.binder;
    TermId domain = binder_type(b);
    if (c.where.valid()) {
      // `x: A where P`: x names the pair of a value and its evidence; in P it is the value.
      const size_t scope_mark = scope.size();
      push_closed(b.name, b.name_span);
      ++depth;
      TermId condition = term(c.where);
      --depth;
      scope.pop_to(scope_mark);
      TermId args[] = {domain, add({.kind = TermKind::Lam, .name = b.name, .a = condition.index}, b.span)};
      domain = apply(global(words_.exists, b.span), args, b.span);
    }
    domains.push_back(domain);
    book.defs[id].param_spans.push_back(b.name_span);
    push_closed(b.name, b.name_span);
    ++depth;
  }
  TermId type = decl.body.valid() ? block(decl.body) : error_term(decl.span);
  if (!decl.body.valid()) reports.broken = true;
  if (decl.body.valid()) book.defs[id].result_span = node(decl.body).span;
  for (size_t i = domains.size(); i-- > 0;) {
    const ast::Clause& c = decl.clauses[i];
    const ast::Binder& b = c.binder;
    if (c.exists) {
      TermId args[] = {domains[i], add({.kind = TermKind::Lam, .name = b.name, .a = type.index}, b.span)};
      depth = static_cast<uint32_t>(i);
      type = apply(global(words_.exists, b.span), args, b.span);
    } else {
      Quantity q = b.tilde || !b.type.valid() ? Quantity::None : Quantity(b.mark);
      type = add({.kind = TermKind::All, .quantity = q, .name = b.name, .a = domains[i].index, .b = type.index}, b.span);
    }
  }
  book.defs[id].type = type;
  if (reports.broken) book.defs[id].broken = true;
}

void Elaborator::fill(const ast::Decl& decl, const Declared& declared) {
  DefId id(declared.id);
  book.defs[id].param_spans.clear();
  for (const ast::Binder& p : decl.params) book.defs[id].param_spans.push_back(p.name_span);
  function_body(decl, id);
}

// A case before `origin` that matches all by a name which reads like a constructor's.
void Elaborator::note_names_of_constructors(Diagnostic& d, size_t origin) {
  if (origin == 0) return;
  const Node& before = node(tree_.origins()[origin - 1].node);
  if (before.kind != ast::Kind::Case) return;
  for (const NodeId pattern : program_.modules[symbols.module()].ast.list(before.a, before.b)) {
    const Node& p = node(pattern);
    if (p.kind != ast::Kind::Name) continue;
    std::string written(text(p.name));
    if (written.empty() || written[0] < 'a' || written[0] > 'z') continue;
    written[0] = static_cast<char>(written[0] - 'a' + 'A');
    const Symbol found = symbols.ctor(names.intern(written)).symbol;
    if (!found) continue;
    d.labels.push_back({p.span, fmt::format("`{}` is a new name, which matches every value", text(p.name))});
    d.notes.push_back(fmt::format("a constructor has its name and braces: `{}{{{}}}`", written, book.ctors[core::CtorId(found.id)].fields.empty() ? "" : ".."));
  }
}

// Rows that no path elaborates are still read once, quietly, so that what the parser could not judge (P codes) is reported there too.
void Elaborator::read_unreached() {
  const Module& module = program_.modules[symbols.module()];
  const bool warn = !reports.broken && !module.base && !module.stdlib;
  const size_t known = tree_.origins().size();
  const bool broken = reports.broken;
  reports.quiet = true;
  for (size_t i = 0; i < tree_.origins().size(); ++i) {
    const CaseTree::Origin o = tree_.origins()[i];
    if (o.copies > 0) continue;
    if (warn && i < known) {
      const Node& n = node(o.node);
      Span span = n.name_span.valid() ? n.name_span : n.span;
      if (o.dead) reports.add(Code::W2, span, "this case is never checked: every constructor has a case before it");
      else note_names_of_constructors(reports.add(Code::W1, span, "no value reaches this case: the cases before it match all that it does"), i);
    }
    (void)block(o.body);
    scope.pop_to(0);
    depth = 0;
  }
  reports.quiet = false;
  reports.broken = broken;
}

}  // namespace bendc::elab
