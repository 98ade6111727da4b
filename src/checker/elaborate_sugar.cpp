// Sugar: operators and the type that selects them, literals, lists, tuples, arrays, do blocks. Chains of one associativity are loops, since
// generated programs nest them thousands deep.
#include <bit>

#include <fmt/format.h>

#include "checker/elaborator.h"

namespace bendc::elab {

using ast::Kind;
using ast::NodeId;
using ast::Op;
using core::Quantity;
using core::TermId;
using core::TermKind;

namespace {

// The name an operator has in the family of its type; empty for operators that mean one thing.
std::string_view operator_suffix(Op op) {
  switch (op) {
    case Op::Less: return ".is_lt";
    case Op::LessEq: return ".is_le";
    case Op::Greater: return ".is_gt";
    case Op::GreaterEq: return ".is_ge";
    case Op::BitOr: return ".or";
    case Op::BitXor: return ".xor";
    case Op::BitAnd: return ".and";
    case Op::Shl: return ".shln";
    case Op::Shr: return ".shrn";
    case Op::Add: return ".add";
    case Op::Sub: return ".sub";
    case Op::Mul: return ".mul";
    case Op::Div: return ".div";
    case Op::Mod: return ".mod";
    case Op::None: case Op::Arrow: case Op::Pair: case Op::Or: case Op::OrElse: case Op::AndAlso: case Op::Cons: case Op::Append: case Op::Meet: break;
  }
  return {};
}

bool is_left_chain(Op op) { return op == Op::OrElse || op == Op::AndAlso || !operator_suffix(op).empty(); }
bool is_right_chain(Op op) { return op == Op::Cons || op == Op::Append || op == Op::Meet || op == Op::Pair || op == Op::Or; }

}  // namespace

// Operators ---------------------------------------------------------------------------------------------------------------------------

// The name at the head of a type, past its arguments; none when it has no name there.
Name Elaborator::head_name(NodeId type) const {
  for (;;) {
    const Node& n = node(type);
    switch (n.kind) {
      case Kind::Name:
      case Kind::TypeArgs: return n.name;
      case Kind::Exists: return words_.exists;
      case Kind::Binary:
        if (n.op == Op::Pair) return words_.pair;
        if (n.op == Op::Or) return words_.either;
        return Name();
      case Kind::Group:
      case Kind::Call:
      case Kind::PlusMark: type = NodeId(n.a); break;
      case Kind::TypeKw: case Kind::DataKw: case Kind::QuantKw: case Kind::KindOf: case Kind::QuantLit: case Kind::U32Lit:
      case Kind::NatLit: case Kind::F32Lit: case Kind::CharLit: case Kind::StringLit: case Kind::NatPlus: case Kind::All:
      case Kind::Ctor: case Kind::Rfl: case Kind::Eql: case Kind::Neq: case Kind::Ann: case Kind::Tuple: case Kind::List:
      case Kind::Fill: case Kind::RawMatch: case Kind::RawArm: case Kind::Rewrite: case Kind::Do: case Kind::DoBind: case Kind::DoLet:
      case Kind::DoStep: case Kind::DoReturn: case Kind::Hole: case Kind::Lambda: case Kind::TildeArg: case Kind::Index:
      case Kind::Write: case Kind::Match: case Kind::Case: case Kind::Let: case Kind::Error: return Name();
    }
  }
}

OperatorType Elaborator::operator_type(NodeId type) {
  Name head = head_name(type);
  return {head.valid() ? OperatorType::Kind::Named : OperatorType::Kind::Headless, head, node(type).span};
}

// The type of an operand that is a literal; else U32, the most usual one.
std::string_view Elaborator::operand_type(const Node& n) {
  for (const uint32_t operand : {n.a, n.b}) {
    const Kind kind = node(NodeId(operand)).kind;
    if (kind == Kind::StringLit) return "String";
    if (kind == Kind::F32Lit) return "F32";
    if (kind == Kind::NatLit || kind == Kind::NatPlus) return "Nat";
    if (kind == Kind::CharLit) return "Char";
  }
  return "U32";
}

TermId Elaborator::operator_ref(const Node& n, const OperatorType& operators) {
  switch (operators.kind) {
    case OperatorType::Kind::None: {
      Diagnostic& d = reports.add(Code::P18, n.name_span, fmt::format("the operator `{}` has no type", ast::op_text(n.op)));
      d.notes.push_back("an operator means the one of the type that the nearest `( .. : T)` around it names; calls, lambdas, fields and braces stop the search");
      const std::string_view type = operand_type(n);
      if (n.op == Op::Add && type == "String") d.fix = "`++` joins two strings";
      else d.fix = fmt::format("write `( .. : T)` around the expression, with the type of its operands: `( .. : {})`", type);
      return error_term(n.name_span);
    }
    case OperatorType::Kind::Headless: {
      Diagnostic& d = reports.add(Code::P19, operators.span, fmt::format("this type has no operator `{}`, since no name heads it", ast::op_text(n.op)));
      d.notes.push_back("`( .. : T)` selects operators by the name at the head of T");
      return error_term(n.name_span);
    }
    case OperatorType::Kind::Named: break;
  }
  OperatorName& cached = operator_names_[(operators.head.index * 31 + static_cast<uint32_t>(n.op)) % 64];
  if (cached.head != operators.head || cached.op != n.op) {
    Name made = joined(names.text(operators.head), operator_suffix(n.op));
    cached = {operators.head, n.op, made};
  }
  if (!symbols.term(cached.name).symbol && unknown_.insert(cached.name).second) {
    const std::string head(text(operators.head)), op(ast::op_text(n.op));
    Diagnostic& d = reports.add(Code::C1, n.name_span, fmt::format("`{}` has no operator `{}`: there is no `{}`", head, op, text(cached.name)));
    d.labels.push_back({operators.span, "this type selects the operators"});
    d.notes.push_back(fmt::format("in `( .. : {})` the operator `{}` is a call of `{}`", head, op, text(cached.name)));
    if (n.op == Op::Add && head == "String") d.fix = "`++` joins two strings";
    return error_term(n.name_span);
  }
  return global(cached.name, n.name_span);
}

TermId Elaborator::binary(NodeId id, const OperatorType& operators) {
  Op op = node(id).op;
  if (op == Op::Arrow) return function_type(id);
  if (is_right_chain(op)) return right_chain(id, operators);
  return left_chain(id, operators);
}

TermId Elaborator::left_chain(NodeId id, const OperatorType& operators) {
  SmallVector<const Node*, 8> chain;
  while (node(id).kind == Kind::Binary && is_left_chain(node(id).op)) {
    chain.push_back(&node(id));
    id = NodeId(node(id).a);
  }
  TermId out = term(id, operators);
  for (size_t i = chain.size(); i-- > 0;) {
    const Node& n = *chain[i];
    TermId right = term(NodeId(n.b), operators);
    TermId head = n.op == Op::AndAlso ? global(words_.bool_and, n.name_span) : n.op == Op::OrElse ? global(words_.bool_or, n.name_span) : operator_ref(n, operators);
    TermId args[] = {out, right};
    out = apply(head, args, n.span);
    if (book.terms[out].kind == TermKind::App) book.terms[out].flags |= core::kOperator;
  }
  return out;
}

TermId Elaborator::right_chain(NodeId id, const OperatorType& operators) {
  struct Link { const Node* node; TermId left; };
  SmallVector<Link, 8> chain;
  OperatorType inside = operators;
  while (node(id).kind == Kind::Binary && is_right_chain(node(id).op)) {
    const Node& n = node(id);
    // `++` is a call that passes `( .. : T)` on; constructors and types do not.
    if (n.op != Op::Append) inside = {};
    TermId left = term(NodeId(n.a), inside);
    chain.push_back({&n, left});
    id = NodeId(n.b);
  }
  TermId out = term(id, inside);
  for (size_t i = chain.size(); i-- > 0;) {
    const Node& n = *chain[i].node;
    TermId args[] = {chain[i].left, out};
    if (n.op == Op::Cons) out = constructor(words_.con, args, n.span);
    else if (n.op == Op::Meet) out = add({.kind = TermKind::Meet, .a = args[0].index, .b = args[1].index}, n.span);
    else out = apply(global(n.op == Op::Append ? words_.string_append : n.op == Op::Pair ? words_.pair : words_.either, n.name_span), args, n.span);
  }
  return out;
}

// Literals ----------------------------------------------------------------------------------------------------------------------------

// `k n+ t`: a literal when t is one, k constructors up to 256, else a call.
// It passes `( .. : T)` on, so that `(1n+a + b : Nat)` means what it looks like.
TermId Elaborator::nat_plus(NodeId id, const OperatorType& operators) {
  SmallVector<const Node*, 4> layers;
  while (node(id).kind == Kind::NatPlus) {
    layers.push_back(&node(id));
    id = NodeId(node(id).b);
  }
  TermId out = term(id, operators);
  for (size_t i = layers.size(); i-- > 0;) {
    const Node& n = *layers[i];
    const core::Term inner = book.terms[out];
    if (inner.kind == TermKind::Nat && uint64_t(inner.a) + n.a <= 0xFFFFFFFFu) {
      out = add({.kind = TermKind::Nat, .a = inner.a + n.a}, n.span);
    } else if (n.a <= 256) {
      for (uint32_t k = 0; k < n.a; ++k) out = constructor(words_.succ, {&out, 1}, n.span);
    } else {
      TermId args[] = {add({.kind = TermKind::Nat, .a = n.a}, n.span), out};
      out = apply(global(words_.nat_add, n.span), args, n.span);
    }
  }
  return out;
}

TermId Elaborator::char_literal(const Node& n) {
  TermId code = add({.kind = TermKind::U32, .a = n.a}, n.span);
  return constructor(words_.chr, {&code, 1}, n.span);
}

// A string with a surrogate or a code point past U+10FFFF stays a constructor chain: no compact form can hold it.
TermId Elaborator::string_literal(const Node& n) {
  const std::u32string& chars = ast_->strings[n.a];
  bool scalars = true;
  for (char32_t c : chars) scalars = scalars && c <= 0x10FFFF && (c < 0xD800 || c > 0xDFFF);
  if (scalars) {
    book.strings.push_back(chars);
    return add({.kind = TermKind::Str, .a = static_cast<uint32_t>(book.strings.size() - 1)}, n.span);
  }
  TermId out = constructor(words_.snil, {}, n.span);
  for (size_t i = chars.size(); i-- > 0;) {
    TermId code = add({.kind = TermKind::U32, .a = static_cast<uint32_t>(chars[i])}, n.span);
    TermId fields[] = {constructor(words_.chr, {&code, 1}, n.span), out};
    out = constructor(words_.scon, fields, n.span);
  }
  return out;
}

TermId Elaborator::list(const Node& n) {
  SmallVector<TermId, 8> items;
  std::span<const NodeId> list = ast_->list(n.a, n.b);
  for (NodeId item : list) items.push_back(term(item));
  TermId out = constructor(words_.nil, {}, n.span);
  for (size_t i = items.size(); i-- > 0;) {
    TermId fields[] = {items[i], out};
    out = constructor(words_.con, fields, cover(node(list[i]).span, n.span));
  }
  return out;
}

TermId Elaborator::tuple(const Node& n) {
  SmallVector<TermId, 8> items;
  for (NodeId item : ast_->list(n.a, n.b)) items.push_back(term(item));
  if (items.empty()) return error_term(n.span);
  TermId out = items.back();
  for (size_t i = items.size() - 1; i-- > 0;) {
    TermId fields[] = {items[i], out};
    out = constructor(words_.tuple, fields, n.span);
  }
  return out;
}

// Arrays ------------------------------------------------------------------------------------------------------------------------------

TermId Elaborator::array_fill(const Node& n) {
  TermId value = term(NodeId(n.a), operator_type(NodeId(n.b)));
  TermId type = term(NodeId(n.b));
  TermId levels;
  if ((n.flags & ast::kFlagPower) != 0) {
    levels = term(NodeId(n.c));
  } else {
    const Node& count = node(strip(NodeId(n.c)));
    if (count.kind == Kind::NatLit && std::has_single_bit(count.a)) {
      levels = add({.kind = TermKind::Nat, .a = static_cast<uint32_t>(std::countr_zero(count.a))}, count.span);
    } else {
      if (count.kind != Kind::Error) {
        Diagnostic& d = reports.add(Code::P17, count.span, "the count of an array fill is not a literal power of two");
        d.fix = "write `[v : T^d]` for 2^d slots, with any Nat d";
      }
      reports.broken = true;
      levels = error_term(count.span);
    }
  }
  TermId args[] = {type, levels, value};
  return apply(global(words_.array_new, n.span), args, n.span);
}

TermId Elaborator::array_index(const Node& n) {
  if (const Node& head = node(strip(NodeId(n.a))); head.kind == Kind::Name && !scope.find(head.name).valid()) {
    const Lookup type = symbols.term(head.name);
    if (type.symbol.kind == SymbolKind::Data && !book.datatypes[core::DataId(type.symbol.id)].params.empty()) {
      Diagnostic& d = reports.add(Code::C2, n.span, fmt::format("`{}` is a type, and brackets are an index into an array", text(head.name)));
      d.notes.push_back("a type's arguments stand in `<>`");
      d.fix = fmt::format("write `{}<..>`", text(head.name));
      return error_term(n.span);
    }
  }
  TermId array = term(NodeId(n.a));
  TermId index = term(NodeId(n.b), {OperatorType::Kind::Named, words_.u32, n.span});
  TermId args[] = {global(words_.u32, n.span), array, index};
  return apply(global(words_.array_get, n.span), args, n.span);
}

TermId Elaborator::array_write(const Node& n) {
  TermId array = term(NodeId(n.a));
  TermId index = term(NodeId(n.b), {OperatorType::Kind::Named, words_.u32, n.span});
  TermId value = term(NodeId(n.c));
  TermId args[] = {global(words_.u32, n.span), array, index, value};
  return apply(global(words_.array_set, n.span), args, n.span);
}

// Do blocks ---------------------------------------------------------------------------------------------------------------------------

// Does `do M<args>` give as many arguments as M takes? Each statement's call would complain otherwise.
bool Elaborator::header_fits(const Node& n, const Lookup& header) {
  size_t takes = n.b, quantities = 0;
  Span declared;
  if (header.symbol.kind == SymbolKind::Data) {
    const core::Datatype& d = book.datatypes[core::DataId(header.symbol.id)];
    takes = d.params.size();
    quantities = d.leading_quants;
    declared = d.name_span;
  } else if (header.symbol.kind == SymbolKind::Def) {
    const core::Def& d = book.defs[core::DefId(header.symbol.id)];
    if (d.arity > 0) takes = d.arity;
    declared = d.name_span;
  }
  if (n.b == takes || n.b + quantities == takes) return true;
  Diagnostic& d = reports.add(Code::C2, n.name_span, fmt::format("`{}` takes {} type {}, `do {}<..>` gives {}", text(n.name), takes, takes == 1 ? "argument" : "arguments", text(n.name), n.b));
  d.labels.push_back({declared, fmt::format("`{}` is declared here", text(n.name))});
  d.notes.push_back("the last argument is the type of the block's result; leading quantities may be left out");
  return false;
}

std::vector<TermId> Elaborator::do_header(const Node& n, core::DataId family) {
  std::vector<TermId> args;
  if (family.valid()) {
    const core::Datatype& d = book.datatypes[family];
    if (d.leading_quants > 0 && n.b + d.leading_quants == d.params.size()) {
      for (uint32_t i = 0; i < d.leading_quants; ++i) args.push_back(quantity(1, n.name_span));
    }
  }
  for (NodeId a : ast_->list(n.a, n.b)) args.push_back(term(a));
  return args;
}

TermId Elaborator::data_or_call(Name written, std::span<const TermId> args, Span span) {
  TermId head = global(written, span);
  if (book.terms[head].kind != TermKind::Adt) return apply(head, args, span);
  Slice list = book.lists.add(args);
  return add({.kind = TermKind::Adt, .a = book.terms[head].a, .b = list.offset, .c = list.length}, span);
}

// Each bind is M.bind(ls.., A, R, v, x => rest); the rest is filled in by the next turn of the loop. The header's arguments are elaborated
// at every statement, since a term is valid at one depth only.
TermId Elaborator::do_block(const Node& n) {
  const Lookup header = symbols.term(n.name);
  if (!header_fits(n, header)) return error_term(n.span);
  core::DataId family;
  if (header.symbol.kind == SymbolKind::Data && declared_above(header.symbol)) family = core::DataId(header.symbol.id);
  const Name bind = joined(names.text(n.name), ".bind"), pure = joined(names.text(n.name), ".pure");
  const size_t scope_mark = scope.size();
  const uint32_t outer = depth;
  const CaseTree::LetBound let_bound = tree_.let_bound;
  tree_.let_bound = {};

  TermId first, hole, out;
  auto attach_do = [&](TermId id) {
    if (!hole.valid()) first = id;
    else if (book.terms[hole].kind == TermKind::Let) book.terms[hole].c = id.index;
    else book.terms[hole].a = id.index;
  };
  for (NodeId id : ast_->list(n.c, n.d)) {
    const Node& s = node(id);
    if (s.kind == Kind::DoBind || s.kind == Kind::DoStep) {
      bool step = s.kind == Kind::DoStep;
      std::vector<TermId> args = do_header(n, family);
      const size_t reported = reports.check.size();
      TermId type = step ? global(words_.unit, s.span) : term(NodeId(s.a));
      if (!step && !s.name.valid() && reports.check.size() == reported + 1 && node(NodeId(s.a)).kind == Kind::Name) {
        const std::string written(text(node(NodeId(s.a)).name));
        reports.check.last().notes.assign(1, "what stands alone before `<-` is the type of a value that gets no name");
        reports.check.last().fix = fmt::format("to name the value, state its type: `{} : T <- ..`", written);
      }
      TermId value = term(NodeId(step ? s.a : s.b));
      args.insert(args.empty() ? args.end() : args.end() - 1, type);
      Name name = step || !s.name.valid() ? words_.underscore : s.name;
      TermId rest = add({.kind = TermKind::Lam, .quantity = step ? Quantity::Lone : Quantity(s.mark), .name = name}, s.name_span.valid() ? s.name_span : s.span);
      args.push_back(value);
      args.push_back(rest);
      attach_do(apply(global(bind, n.name_span), args, s.span));
      hole = rest;
      push_closed(name, s.name_span);
      ++depth;
    } else if (s.kind == Kind::DoLet) {
      TermId type = term(NodeId(s.a)), value = term(NodeId(s.b));
      value = add({.kind = TermKind::Ann, .a = value.index, .b = type.index}, node(NodeId(s.b)).span);
      book.let_rows.push_back({s.name, Quantity(s.mark), value, s.name_span});
      TermId let = add({.kind = TermKind::Let, .a = static_cast<uint32_t>(book.let_rows.size() - 1), .b = 1}, s.span);
      attach_do(let);
      hole = let;
      push_closed(s.name, s.name_span);
      ++depth;
    } else if (s.kind == Kind::DoReturn) {
      TermId value = term(NodeId(s.a));
      std::vector<TermId> args = do_header(n, family);
      args.push_back(value);
      out = apply(global(pure, n.name_span), args, s.span);
      break;
    } else {
      TermId value = term(id);
      std::vector<TermId> args = do_header(n, family);
      TermId type = data_or_call(n.name, args, n.name_span);
      out = add({.kind = TermKind::Ann, .a = value.index, .b = type.index}, s.span);
      break;
    }
  }
  if (!out.valid()) {
    reports.broken = true;  // the parser saw no final statement
    out = error_term(n.span);
  }
  attach_do(out);
  depth = outer;
  scope.pop_to(scope_mark);
  tree_.let_bound = let_bound;
  return first;
}

}  // namespace bendc::elab
