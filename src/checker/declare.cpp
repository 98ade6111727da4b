// A declaration that collides keeps its Book row, unregistered and marked broken, so that its own text is still read for errors.
#include "checker/declare.h"

#include <fmt/format.h>

#include <unordered_map>

namespace bendc::elab {

using core::DefId;
using core::Quantity;

namespace {

class Declare {
 public:
  Declare(const Program& program, Interner& names, Symbols& symbols, core::Book& book, Reports& reports)
      : program_(program), names_(names), symbols_(symbols), book_(book), reports_(reports) {}

  std::vector<Declared> run() {
    for (uint32_t m = 0; m < program_.modules.size(); ++m) {
      const Module& module = program_.modules[ModuleId(m)];
      book_.module_keys.push_back(module.key);
      book_.module_is_stdlib.push_back(module.stdlib || module.base);
      symbols_.enter(ModuleId(m));
      ast_ = &module.ast;
      for (uint32_t i = 0; i < module.ast.decls.size(); ++i) {
        const ast::Decl& decl = module.ast.decls[i];
        if (!decl.name.valid()) continue;  // the parser reported it
        reports_.def.assign(names_.text(decl.name));
        item_ = {.module = ModuleId(m), .decl = i, .position = static_cast<uint32_t>(out_.size())};
        switch (decl.kind) {
          case ast::DeclKind::Type: data(decl); break;
          case ast::DeclKind::Law: law(decl); break;
          case ast::DeclKind::Def:
            if (decl.type.valid() || !fill(decl)) def(decl);
            break;
        }
        out_.push_back(item_);
      }
    }
    reports_.def.clear();
    symbols_.enter(ModuleId());  // lookups made so far must not be remembered
    return std::move(out_);
  }

 private:
  std::string text(Name name) const { return std::string(names_.text(name)); }

  Diagnostic& duplicate(Span span, std::string message, Span earlier) {
    Diagnostic& d = reports_.add(Code::P20, span, std::move(message));
    if (earlier.valid()) d.labels.push_back({earlier, "first declared here"});
    return d;
  }

  Span span_of(const Symbol& symbol) const {
    switch (symbol.kind) {
      case SymbolKind::Def: return book_.defs[DefId(symbol.id)].name_span;
      case SymbolKind::Data: return book_.datatypes[core::DataId(symbol.id)].name_span;
      case SymbolKind::Ctor: return book_.ctors[core::CtorId(symbol.id)].name_span;
      case SymbolKind::None: break;
    }
    return {};
  }

  bool in_base(const Symbol& symbol) const { return program_.modules[ModuleId(symbol.module)].base; }

  // Is `key` (written `name`) free in its namespace and among the bare names? Reports P20 when not.
  bool free(Name key, Name name, Span span, Symbol same, Symbol bare, std::string_view what) {
    if (same) {
      bool base = in_base(same) && !program_.modules[item_.module].base;
      Diagnostic& d = duplicate(span, fmt::format("{} `{}` is already declared{}", what, text(name), base ? " by Base" : ""), base ? Span() : span_of(same));
      if (base) d.fix = "pick another name; Base's names are taken in every file";
      return false;
    }
    if (key != name && bare && symbols_.visible(bare)) {
      duplicate(span, fmt::format("{} `{}` is already declared by Base", what, text(name)), {}).fix = "pick another name; Base's names are taken in every file";
      return false;
    }
    return true;
  }

  bool alias_free(Name name, Span span) {
    std::string_view word = names_.text(name);
    word = word.substr(0, word.find('.'));
    if (symbols_.alias(word).empty()) return true;
    Diagnostic& d = reports_.add(Code::P20, span, fmt::format("`{}` would be a name of the imported module `{}`", text(name), word));
    d.notes.push_back("only `def` may name an imported law, to fill it; everything else a file declares is its own");
    d.fix = "rename the declaration or the import's alias";
    return false;
  }

  Name register_term(const ast::Decl& decl, Symbol symbol, bool& broken) {
    Name key = symbols_.own_key(decl.name);
    broken = !alias_free(decl.name, decl.name_span) || !free(key, decl.name, decl.name_span, symbols_.term_at(key), symbols_.term_at(decl.name), "the name");
    if (!broken) symbols_.add_term(key, symbol);
    return key;
  }

  void data(const ast::Decl& decl) {
    core::Datatype row;
    row.module = item_.module.index;
    row.span = decl.span;
    row.name_span = decl.name_span;
    row.order = item_.position;
    bool leading = true;
    for (const ast::Binder& p : decl.params) {
      bool quant = !p.type.valid() || ast_->nodes[p.type].kind == ast::Kind::QuantKw;
      leading = leading && quant;
      if (leading) ++row.leading_quants;
      row.params.push_back({p.name, p.type.valid() ? Quantity(p.mark) : Quantity::None, {}, p.name_span});
    }
    core::DataId id(book_.datatypes.size());
    bool broken = false;
    row.name = register_term(decl, {SymbolKind::Data, id.index, item_.module.index, item_.position}, broken);
    for (const ast::CtorDecl& c : decl.ctors) row.ctors.push_back(ctor(c, id, static_cast<uint32_t>(row.ctors.size())));
    if (!broken) book_.data_by_name.emplace(row.name, id);
    item_.kind = DeclaredKind::Data;
    item_.id = id.index;
    book_.datatypes.add(std::move(row));
    book_.events.push_back({core::EventKind::CheckData, id.index});
  }

  core::CtorId ctor(const ast::CtorDecl& decl, core::DataId data, uint32_t index) {
    core::Ctor row;
    row.data = data;
    row.index = index;
    row.span = decl.span;
    row.name_span = decl.name_span;
    row.name = symbols_.own_key(decl.name);
    std::unordered_map<Name, Span> fields;
    for (const ast::Binder& f : decl.fields) {
      const auto [before, fresh] = fields.emplace(f.name, f.name_span);
      if (!fresh && names_.text(f.name) != "_") {
        duplicate(f.name_span, fmt::format("the constructor `{}` has two fields named `{}`", text(decl.name), text(f.name)), before->second);
      }
      row.fields.push_back({f.name, f.type.valid() ? Quantity(f.mark) : Quantity::None, {}, f.name_span});
    }
    core::CtorId id(book_.ctors.size());
    if (decl.name.valid() && alias_free(decl.name, decl.name_span) &&
        free(row.name, decl.name, decl.name_span, symbols_.ctor_at(row.name), symbols_.ctor_at(decl.name), "the constructor")) {
      symbols_.add_ctor(row.name, {SymbolKind::Ctor, id.index, item_.module.index, item_.position});
      book_.ctor_by_name.emplace(row.name, id);
    }
    return book_.ctors.add(std::move(row));
  }

  core::Def def_row(const ast::Decl& decl) {
    core::Def row;
    row.module = item_.module.index;
    row.span = decl.span;
    row.name_span = decl.name_span;
    row.order = item_.position;
    return row;
  }

  void set_code(core::Def& row, const ast::Decl& decl) {
    row.unsafe = decl.unsafe;
    row.foreign = !decl.foreign.empty();
    row.foreign_paths = decl.foreign;
  }

  void def(const ast::Decl& decl) {
    core::Def row = def_row(decl);
    set_code(row, decl);
    row.arity = static_cast<uint32_t>(decl.params.size());
    row.templates = tildes(decl.params);
    DefId id(book_.defs.size());
    Symbol law = symbols_.term_at(symbols_.own_key(decl.name));
    bool broken = !decl.type.valid();
    if (law.kind == SymbolKind::Def && decl.type.valid() && is_open(law)) {
      Diagnostic& d = reports_.add(Code::P22, decl.name_span, fmt::format("`{}` fills a law, and a fill carries no types", text(decl.name)));
      d.labels.push_back({span_of(law), "the law"});
      d.fix = fmt::format("write `def {}({}):`", text(decl.name), names(decl.params));
      broken = true;
      row.name = law_key(law);
    } else if (decl.type.valid()) {
      row.name = register_term(decl, {SymbolKind::Def, id.index, item_.module.index, item_.position}, broken);
    } else {
      row.name = symbols_.own_key(decl.name);
    }
    row.broken = broken;
    if (!broken) {
      book_.def_by_name.emplace(row.name, id);
      if (item_.module == program_.entry && names_.text(decl.name) == "main") book_.main = id;
    }
    item_.kind = DeclaredKind::Def;
    item_.id = id.index;
    book_.defs.add(std::move(row));
    book_.events.push_back({core::EventKind::CheckDef, id.index});
  }

  void law(const ast::Decl& decl) {
    core::Def row = def_row(decl);
    row.kind = core::DefKind::Law;
    bool prefix = true, counting = true;
    for (const ast::Clause& c : decl.clauses) {
      if (c.exists) counting = false;
      if (counting) ++row.arity;
      prefix = prefix && c.binder.tilde && !c.exists;
      if (prefix) ++row.templates;
    }
    DefId id(book_.defs.size());
    bool broken = false;
    row.name = register_term(decl, {SymbolKind::Def, id.index, item_.module.index, item_.position}, broken);
    row.broken = broken;
    if (!broken) {
      book_.def_by_name.emplace(row.name, id);
      if (item_.module == program_.entry && names_.text(decl.name) == "main") book_.main = id;
    }
    item_.kind = DeclaredKind::Law;
    item_.id = id.index;
    book_.defs.add(std::move(row));
    filled_.resize(book_.defs.size());
    book_.events.push_back({core::EventKind::CheckLawType, id.index});
  }

  // `def L(names): body`, or a foreign body of that form. False when there is no law to fill and the error was reported.
  bool fill(const ast::Decl& decl) {
    Name key;
    std::string_view word = names_.text(decl.name);
    size_t dot = word.find('.');
    std::vector<ModuleId> targets;
    if (dot != std::string_view::npos) targets = symbols_.alias(word.substr(0, dot));
    Symbol found;
    if (targets.empty()) {
      key = symbols_.own_key(decl.name);
      found = symbols_.term_at(key);
    } else {
      std::string rest(word.substr(dot + 1));
      for (ModuleId target : targets) {
        Name candidate = symbols_.key_in(target, rest);
        if (symbols_.term_at(candidate)) {
          key = candidate;
          found = symbols_.term_at(candidate);
        }
      }
    }
    bool foreign_law = found && program_.modules[ModuleId(found.module)].stdlib && !program_.modules[item_.module].stdlib;
    if (found.kind != SymbolKind::Def || book_.defs[DefId(found.id)].kind != core::DefKind::Law) {
      if (found) {
        duplicate(decl.name_span, fmt::format("`{}` is already declared{}, and it is not a law to be filled", text(decl.name), foreign_law ? " by the library" : ""), span_of(found));
      } else {
        Diagnostic& d = reports_.add(Code::P21, decl.name_span, fmt::format("`{}` has no result type, and there is no law `{}` above to fill", text(decl.name), text(decl.name)));
        d.notes.push_back("every def states its parameters' types and its result's, except one that fills a law");
        const bool named = std::all_of(decl.params.begin(), decl.params.end(), [](const ast::Binder& b) { return !b.type.valid(); });
        const std::string near = named && !decl.params.empty() ? symbols_.nearest(text(decl.name), SymbolKind::Def, {}) : std::string();
        const Symbol law = near.empty() ? Symbol() : symbols_.term_at(symbols_.own_key(names_.intern(near)));
        const bool is_law = law.kind == SymbolKind::Def && book_.defs[DefId(law.id)].kind == core::DefKind::Law;
        d.fix = is_law ? fmt::format("did you mean the law `{}`?", near) : std::string("add `-> T` before the `:`");
      }
      return false;
    }
    DefId id(found.id);
    if (!is_open(found)) {
      duplicate(decl.name_span, fmt::format("the law `{}` is filled twice", text(decl.name)), book_.defs[id].fill_span);
      return false;
    }
    if (foreign_law) {
      duplicate(decl.name_span, fmt::format("the law `{}` belongs to the library", text(decl.name)), {});
      return false;
    }
    core::Def& law = book_.defs[id];
    if (!check_fill(decl, law)) law.broken = true;
    set_code(law, decl);
    law.arity = static_cast<uint32_t>(decl.params.size());
    law.fill_span = decl.name_span;
    law.order = item_.position;
    filled_.resize(book_.defs.size());
    filled_[id.index] = true;
    item_.kind = DeclaredKind::Fill;
    item_.id = id.index;
    book_.events.push_back({core::EventKind::CheckDef, id.index});
    return true;
  }

  bool check_fill(const ast::Decl& decl, const core::Def& law) {
    bool ok = true;
    for (const ast::Binder& p : decl.params) {
      if (p.tilde) {
        reports_.add(Code::P23, p.span, fmt::format("`~` on `{}` in the fill of a law", text(p.name))).notes.push_back("the law itself says which of its clauses are templates");
        ok = false;
      } else if (p.type.valid() || p.mark != ast::Mark::Affine) {
        Diagnostic& d = reports_.add(Code::P22, p.span, fmt::format("`{}` carries a {} in the fill of a law", text(p.name), p.type.valid() ? "type" : "mark"));
        d.notes.push_back("types and marks stand in the law; a fill gives just names");
        d.fix = fmt::format("write `def {}({}):`", text(decl.name), names(decl.params));
        ok = false;
      }
      if (!ok) return false;
    }
    if (decl.params.size() < law.templates) {
      reports_.add(Code::P22, decl.name_span, fmt::format("the fill of `{}` gives {} names, but the law has {} `~` clauses", text(decl.name), decl.params.size(), law.templates));
      return false;
    }
    return true;
  }

  std::string names(const std::vector<ast::Binder>& params) const {
    std::string out;
    for (const ast::Binder& p : params) {
      if (!out.empty()) out += ", ";
      out += names_.text(p.name);
    }
    return out;
  }

  bool is_open(const Symbol& symbol) const {
    const core::Def& d = book_.defs[DefId(symbol.id)];
    return d.kind == core::DefKind::Law && (symbol.id >= filled_.size() || !filled_[symbol.id]);
  }
  Name law_key(const Symbol& symbol) const { return book_.defs[DefId(symbol.id)].name; }

  // The `~` parameters; they come first (P23 otherwise, reported by the parser).
  static uint32_t tildes(const std::vector<ast::Binder>& params) {
    uint32_t n = 0;
    while (n < params.size() && params[n].tilde) ++n;
    return n;
  }

  const Program& program_;
  Interner& names_;
  Symbols& symbols_;
  core::Book& book_;
  Reports& reports_;
  const ast::Ast* ast_ = nullptr;
  Declared item_;
  std::vector<Declared> out_;
  std::vector<bool> filled_;   // by DefId
};

}  // namespace

std::vector<Declared> declare(const Program& program, Interner& names, Symbols& symbols, core::Book& book, Reports& reports) {
  return Declare(program, names, symbols, book, reports).run();
}

}  // namespace bendc::elab
