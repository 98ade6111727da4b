// Long lists, tuples, `<>` chains and `1n+` chains are read by loops; the rest recurses within the parser's nesting bound.
#include "checker/pattern.h"

#include <fmt/format.h>

namespace bendc::elab {

using ast::Kind;
using ast::NodeId;
using core::CtorId;
using core::Quantity;

Patterns::Patterns(Symbols& symbols, Interner& names, const core::Book& book, Scope& scope, Reports& reports)
    : symbols_(symbols), names_(names), book_(book), scope_(scope), reports_(reports) {
  underscore_ = names.intern("_");
  zero_ = names.intern("Zero");
  succ_ = names.intern("Succ");
  chr_ = names.intern("Chr");
  snil_ = names.intern("SNil");
  scon_ = names.intern("SCon");
  nil_ = names.intern("Nil");
  con_ = names.intern("Con");
  tuple_ = names.intern("Tuple");
  u32_ = names.intern("U32");
  f32_ = names.intern("F32");
  wnil_ = names.intern("WNil");
  wcon_ = names.intern("WCon");
  false_ = names.intern("False");
  true_ = names.intern("True");
}

PatternId Patterns::error(Code code, Span span, std::string message, std::string note, std::string fix) {
  Diagnostic& d = reports_.add(code, span, std::move(message));
  if (!note.empty()) d.notes.push_back(std::move(note));
  d.fix = std::move(fix);
  return any(span);
}

CtorId Patterns::builtin(Name name) {
  const Lookup& found = symbols_.ctor(name);
  return found.symbol && found.symbol.position < position_ ? CtorId(found.symbol.id) : CtorId();
}

CtorId Patterns::number_ctor(LiteralKind kind) { return builtin(kind == LiteralKind::F32 ? f32_ : u32_); }

CtorId Patterns::require(Name name, uint32_t fields, Span span) {
  CtorId id = builtin(name);
  if (id.valid() && book_.ctors[id].fields.size() == fields) return id;
  std::string_view text = names_.text(name);
  if (!id.valid()) {
    error(Code::P10, span, fmt::format("this pattern stands for the constructor `{}`, which is not declared above", text), "",
          "add `import Base`, or declare the type before this definition");
  } else {
    size_t count = book_.ctors[id].fields.size();
    error(Code::P10, span, fmt::format("this pattern stands for `{}` with {} field{}, but `{}` is declared with {}", text, fields, fields == 1 ? "" : "s", text, count), "", "");
  }
  return CtorId();
}

PatternId Patterns::ctor(CtorId id, std::span<const PatternId> fields, Span span) {
  Slice slice = subs_.add(fields);
  return table_.add(Pattern{.kind = PatternKind::Ctor, .a = id.index, .b = slice.offset, .count = slice.length, .span = span});
}

PatternId Patterns::convert(NodeId node) {
  const ast::Node& n = ast_->nodes[node];
  switch (n.kind) {
    case Kind::Name: return name(node, Quantity::Lone);
    case Kind::PlusMark: {
      NodeId inner(n.a);
      while (ast_->nodes[inner].kind == Kind::Group && ast_->nodes[inner].b == NodeId::kNone) inner = NodeId(ast_->nodes[inner].a);
      if (ast_->nodes[inner].kind == Kind::Name) return name(inner, Quantity::Many);
      return error(Code::P8, n.span, "`+` marks a pattern that is not a name", "in a pattern `+` stands before a binder that may be used many times", "");
    }
    case Kind::Ctor: return ctor_node(n);
    case Kind::U32Lit: return table_.add(Pattern{.kind = PatternKind::U32, .a = n.a, .span = n.span});
    case Kind::F32Lit: return table_.add(Pattern{.kind = PatternKind::F32, .a = n.a, .span = n.span});
    case Kind::NatLit:
      if (!require(zero_, 0, n.span).valid() || !require(succ_, 1, n.span).valid()) return any(n.span);
      return table_.add(Pattern{.kind = PatternKind::Nat, .a = n.a, .span = n.span});
    case Kind::CharLit: {
      CtorId chr = require(chr_, 1, n.span);
      if (!chr.valid()) return any(n.span);
      PatternId code = table_.add(Pattern{.kind = PatternKind::U32, .a = n.a, .span = n.span});
      return ctor(chr, {&code, 1}, n.span);
    }
    case Kind::StringLit:
      if (!require(snil_, 0, n.span).valid() || !require(scon_, 2, n.span).valid() || !require(chr_, 1, n.span).valid()) return any(n.span);
      return table_.add(Pattern{.kind = PatternKind::String, .a = n.a, .b = 0, .span = n.span});
    case Kind::NatPlus: return nat_plus(node);
    case Kind::Tuple: return tuple(n);
    case Kind::List: return list(n);
    case Kind::Binary:
      if (n.op == ast::Op::Cons) return chain(node);
      break;
    case Kind::Group:
      // `(p : T)` only selects operators, and a pattern has none.
      return convert(NodeId(n.a));
    case Kind::Error: reports_.broken = true; return any(n.span);
    case Kind::TypeKw: case Kind::DataKw: case Kind::QuantKw: case Kind::KindOf: case Kind::QuantLit: case Kind::All:
    case Kind::Exists: case Kind::Rfl: case Kind::Eql: case Kind::Neq: case Kind::Ann: case Kind::Fill: case Kind::RawMatch:
    case Kind::RawArm: case Kind::Rewrite: case Kind::Do: case Kind::DoBind: case Kind::DoLet: case Kind::DoStep:
    case Kind::DoReturn: case Kind::Hole: case Kind::Lambda: case Kind::Call: case Kind::TildeArg: case Kind::TypeArgs:
    case Kind::Index: case Kind::Write: case Kind::Match: case Kind::Case: case Kind::Let: break;
  }
  std::string fix;
  std::string what = "this";
  if (n.kind == Kind::Call && ast_->nodes[NodeId(n.a)].kind == Kind::Name) {
    std::string_view head = names_.text(ast_->nodes[NodeId(n.a)].name);
    what = fmt::format("a call of `{}`", head);
    const std::string near = symbols_.ctor(ast_->nodes[NodeId(n.a)].name).symbol ? std::string(head) : n.c > 1 ? symbols_.nearest(head, SymbolKind::Ctor, {}) : std::string();
    if (!near.empty()) fix = fmt::format("constructors take braces: write `{}{{..}}`", near);
    else if (n.c > 0) fix = fmt::format("if these are two patterns, put a comma after `{}`", head);
  } else if (n.kind == Kind::Index) {
    what = "an index";
    fix = "put a comma between two patterns; a slot of an array is written by `a[i] <- v`";
  } else if (n.kind == Kind::Binary) {
    what = fmt::format("the operator `{}`", ast::op_text(n.op));
    if (n.op == ast::Op::Add) fix = "the number stands first, without blanks: `1n+p`";
    else if (n.op == ast::Op::Or) fix = "write a case for each alternative";
    else if (n.op == ast::Op::Append) fix = "a string is matched as a whole or by its first character: `SCon{c, rest}`";
  }
  return error(Code::P8, n.span, what + " is not a pattern", "a pattern is a name, `_`, a constructor with braces, a literal, `1n+p`, `h <> t`, a list or a tuple", std::move(fix));
}

PatternId Patterns::name(NodeId node, Quantity mark) {
  const ast::Node& n = ast_->nodes[node];
  if (n.name == underscore_) return table_.add(Pattern{.mark = mark, .span = n.span});
  // Unreached rows are read without their scope, where a local cannot be told from a constructor.
  if (!reports_.quiet && !scope_.find(n.name).valid()) {
    // A name that is not a local is a constructor, or a dotted global, or a fresh binder.
    std::string_view text = names_.text(n.name);
    const Lookup found = symbols_.ctor(n.name);
    if (found.symbol && found.symbol.position < position_) {
      size_t count = book_.ctors[CtorId(found.symbol.id)].fields.size();
      return error(Code::P9, n.span, fmt::format("`{}` is a constructor, and a constructor pattern has braces", text), "",
                   fmt::format("write `{}{{{}}}`", text, count == 0 ? "" : ".."));
    }
    if (text.find('.') != std::string_view::npos) {
      return error(Code::P8, n.span, fmt::format("`{}` is not a pattern", text), "a binder's name has no dots", "");
    }
  }
  return table_.add(Pattern{.mark = mark, .name = n.name, .span = n.span});
}

PatternId Patterns::ctor_node(const ast::Node& n) {
  std::string_view text = names_.text(n.name);
  const Lookup found = symbols_.ctor(n.name);
  auto list = ast_->list(n.a, n.b);
  SmallVector<PatternId, 8> fields;
  for (NodeId field : list) fields.push_back(convert(field));
  if (found.rival.valid()) {
    return error(Code::P27, n.name_span, fmt::format("`{}` is ambiguous: it is declared in more than one place", text),
                 fmt::format("it can mean `{}` of the imported module, and `{}`", core::display_name(names_.text(found.key)), core::display_name(names_.text(found.rival))), std::string(Symbols::fix_for(names_.text(found.rival))));
  }
  if (!found.symbol) {
    std::string near = symbols_.behind_alias(text, SymbolKind::Ctor);
    if (near.empty()) near = symbols_.nearest(text, SymbolKind::Ctor, {});
    std::string fix = near.empty() ? "" : fmt::format("did you mean `{}`?", near);
    if (symbols_.term(n.name).symbol.kind == SymbolKind::Data) {
      return error(Code::P10, n.name_span, fmt::format("`{}` is a type, not a constructor", text), "a pattern names one of the type's constructors", std::move(fix));
    }
    return error(Code::P10, n.name_span, fmt::format("unknown constructor `{}` in a pattern", text), "", std::move(fix));
  }
  if (found.symbol.position >= position_) {
    return error(Code::P10, n.name_span, fmt::format("the constructor `{}` is declared below its use in a pattern", text), "constructor patterns need their type declared above", "move the type up");
  }
  CtorId id(found.symbol.id);
  const core::Ctor& c = book_.ctors[id];
  if (c.fields.size() != fields.size()) {
    std::string shape;
    for (const core::Telescope& f : c.fields) shape += (shape.empty() ? "" : ", ") + std::string(names_.text(f.name));
    return error(Code::P10, n.span, fmt::format("`{}` has {} field{}, but this pattern gives {}", text, c.fields.size(), c.fields.size() == 1 ? "" : "s", fields.size()), "",
                 fmt::format("its fields are `{}{{{}}}`; write `_` for one that is not needed", text, shape));
  }
  return ctor(id, fields, n.span);
}

PatternId Patterns::chain(NodeId node) {
  struct Head { PatternId pattern; Span span; };
  SmallVector<Head, 4> heads;
  Span whole = ast_->nodes[node].span;
  while (ast_->nodes[node].kind == Kind::Binary && ast_->nodes[node].op == ast::Op::Cons) {
    const ast::Node& n = ast_->nodes[node];
    heads.push_back({convert(NodeId(n.a)), n.span});
    node = NodeId(n.b);
  }
  PatternId rest = convert(node);
  CtorId con = require(con_, 2, whole);
  if (!con.valid()) return any(whole);
  for (size_t i = heads.size(); i-- > 0;) {
    PatternId fields[] = {heads[i].pattern, rest};
    rest = ctor(con, fields, heads[i].span);
  }
  return rest;
}

PatternId Patterns::list(const ast::Node& n) {
  SmallVector<PatternId, 8> items;
  for (NodeId item : ast_->list(n.a, n.b)) items.push_back(convert(item));
  CtorId nil = require(nil_, 0, n.span);
  CtorId con = items.empty() ? CtorId(0) : require(con_, 2, n.span);
  if (!nil.valid() || !con.valid()) return any(n.span);
  PatternId rest = ctor(nil, {}, n.span);
  for (size_t i = items.size(); i-- > 0;) {
    PatternId fields[] = {items[i], rest};
    rest = ctor(con, fields, n.span);
  }
  return rest;
}

PatternId Patterns::tuple(const ast::Node& n) {
  SmallVector<PatternId, 8> items;
  for (NodeId item : ast_->list(n.a, n.b)) items.push_back(convert(item));
  CtorId tuple = require(tuple_, 2, n.span);
  if (!tuple.valid() || items.empty()) return any(n.span);
  PatternId rest = items.back();
  for (size_t i = items.size() - 1; i-- > 0;) {
    PatternId fields[] = {items[i], rest};
    rest = ctor(tuple, fields, n.span);
  }
  return rest;
}

PatternId Patterns::nat_plus(NodeId node) {
  SmallVector<const ast::Node*, 4> layers;
  while (ast_->nodes[node].kind == Kind::NatPlus) {
    layers.push_back(&ast_->nodes[node]);
    node = NodeId(ast_->nodes[node].b);
  }
  PatternId rest = convert(node);
  CtorId succ = require(succ_, 1, layers[0]->span);
  if (!succ.valid()) return any(layers[0]->span);
  for (size_t i = layers.size(); i-- > 0;) {
    const ast::Node& n = *layers[i];
    const Pattern inner = table_[rest];
    if (inner.kind == PatternKind::Nat && uint64_t(inner.a) + n.a <= 0xFFFFFFFFu) {
      rest = table_.add(Pattern{.kind = PatternKind::Nat, .a = inner.a + n.a, .span = n.span});
      continue;
    }
    if (n.a > 256) {
      return error(Code::P8, n.span, fmt::format("`{}n+` is too large for a pattern", n.a), "up to `256n+p` is a pattern; beyond that it is a call of `Nat.add`", "match a smaller number and compare the rest");
    }
    for (uint32_t k = 0; k < n.a; ++k) rest = ctor(succ, {&rest, 1}, n.span);
  }
  return rest;
}

CtorId Patterns::head(const Pattern& p) {
  switch (p.kind) {
    case PatternKind::Any: return CtorId();
    case PatternKind::Ctor: return CtorId(p.a);
    case PatternKind::Nat: return nat_ctor(p.a == 0);
    case PatternKind::U32: return builtin(u32_);
    case PatternKind::F32: return builtin(f32_);
    case PatternKind::Word: return word_ctor(p.b == 0);
    case PatternKind::String: return builtin(p.b == ast_->strings[p.a].size() ? snil_ : scon_);
  }
  return CtorId();
}

PatternId Patterns::expand(PatternId id) {
  const Pattern p = table_[id];
  CtorId k = head(p);
  switch (p.kind) {
    case PatternKind::Any:
    case PatternKind::Ctor: return id;
    case PatternKind::Nat: {
      if (p.a == 0) return ctor(k, {}, p.span);
      PatternId pred = table_.add(Pattern{.kind = PatternKind::Nat, .a = p.a - 1, .span = p.span});
      return ctor(k, {&pred, 1}, p.span);
    }
    case PatternKind::U32:
    case PatternKind::F32: {
      if (!require(p.kind == PatternKind::U32 ? u32_ : f32_, 1, p.span).valid()) return any(p.span);
      PatternId word = table_.add(Pattern{.kind = PatternKind::Word, .a = p.a, .b = 32, .span = p.span});
      return ctor(k, {&word, 1}, p.span);
    }
    case PatternKind::Word: {
      if (p.b == 0) return require(wnil_, 0, p.span).valid() ? ctor(k, {}, p.span) : any(p.span);
      Name bit_name = (p.a & 1) != 0 ? true_ : false_;
      CtorId bit_ctor = require(bit_name, 0, p.span);
      if (!bit_ctor.valid() || !require(wcon_, 2, p.span).valid()) return any(p.span);
      PatternId fields[] = {ctor(bit_ctor, {}, p.span), table_.add(Pattern{.kind = PatternKind::Word, .a = p.a >> 1, .b = p.b - 1, .span = p.span})};
      return ctor(k, fields, p.span);
    }
    case PatternKind::String: {
      const std::u32string& text = ast_->strings[p.a];
      if (p.b == text.size()) return ctor(k, {}, p.span);
      PatternId code = table_.add(Pattern{.kind = PatternKind::U32, .a = static_cast<uint32_t>(text[p.b]), .span = p.span});
      PatternId fields[] = {ctor(builtin(chr_), {&code, 1}, p.span), table_.add(Pattern{.kind = PatternKind::String, .a = p.a, .b = p.b + 1, .span = p.span})};
      return ctor(k, fields, p.span);
    }
  }
  return id;
}

}  // namespace bendc::elab
