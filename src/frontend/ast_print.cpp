#include "frontend/ast_print.h"

#include <cstring>

#include <fmt/format.h>

#include "support/text.h"

namespace bendc {

namespace ast {

std::string_view kind_name(Kind kind) {
  static constexpr std::string_view kNames[] = {
#define BENDC_AST(kind, payload) #kind,
#include "frontend/ast.def"
#undef BENDC_AST
  };
  return kNames[static_cast<size_t>(kind)];
}

std::string_view op_text(Op op) {
  switch (op) {
    case Op::None: return "";
    case Op::Arrow: return "->";
    case Op::Pair: return "&";
    case Op::Or: return "|";
    case Op::OrElse: return "||";
    case Op::AndAlso: return "&&";
    case Op::Less: return "<";
    case Op::LessEq: return "<=";
    case Op::Greater: return ">";
    case Op::GreaterEq: return ">=";
    case Op::Cons: return "<>";
    case Op::Append: return "++";
    case Op::Meet: return "<&>";
    case Op::BitOr: return ".|.";
    case Op::BitXor: return ".^.";
    case Op::BitAnd: return ".&.";
    case Op::Shl: return "<<";
    case Op::Shr: return ">>";
    case Op::Add: return "+";
    case Op::Sub: return "-";
    case Op::Mul: return "*";
    case Op::Div: return "/";
    case Op::Mod: return "%";
  }
  return "";
}

}  // namespace ast

namespace {

using ast::Kind;
using ast::Mark;
using ast::NodeId;

std::string_view mark_text(Mark mark) {
  switch (mark) {
    case Mark::Erased: return "-";
    case Mark::Affine: return "";
    case Mark::Reusable: return "+";
  }
  return "";
}

// Trees may be as deep as the source is long, so the printer keeps its own stack: a piece is text or a node to print.
class Printer {
 public:
  Printer(const ast::Ast& tree, const Interner& names) : tree_(tree), names_(names) {}

  void decl(const ast::Decl& decl) {
    switch (decl.kind) {
      case ast::DeclKind::Type:
        out_ += fmt::format("(type {} (", text(decl.name));
        binders(decl.params);
        out_ += ") is ";
        tree(decl.type, 2);
        for (const ast::CtorDecl& ctor : decl.ctors) {
          out_ += fmt::format("\n  ({} ", text(ctor.name));
          binders(ctor.fields);
          out_ += ')';
        }
        break;
      case ast::DeclKind::Law:
        out_ += fmt::format("(law {}", text(decl.name));
        for (const ast::Clause& clause : decl.clauses) {
          out_ += clause.exists ? "\n  (exs " : "\n  (for ";
          binder(clause.binder);
          if (clause.where.valid()) {
            out_ += " where ";
            tree(clause.where, 2);
          }
          out_ += ')';
        }
        out_ += "\n  ";
        tree(decl.body, 2);
        break;
      case ast::DeclKind::Def:
        out_ += fmt::format("({} {} (", decl.unsafe ? "unsafe-def" : "def", text(decl.name));
        binders(decl.params);
        out_ += ')';
        if (decl.type.valid()) {
          out_ += " -> ";
          tree(decl.type, 2);
        }
        for (const std::string& path : decl.foreign) out_ += fmt::format("\n  (foreign {})", path);
        if (decl.body.valid()) {
          out_ += "\n  ";
          tree(decl.body, 2);
        }
        break;
    }
    out_ += ")\n";
  }

  void import(const ast::Import& import) {
    if (import.base) out_ += "(import Base)\n";
    else if (import.stdlib) out_ += fmt::format("(import {})\n", text(import.alias));
    else out_ += fmt::format("(import {} as {})\n", import.path, text(import.alias));
  }

  void tree(NodeId id, uint32_t indent) {
    push(id, indent);
    while (!work_.empty()) {
      Piece piece = std::move(work_.back());
      work_.pop_back();
      if (piece.node.valid()) expand(piece.node, piece.indent);
      else out_ += piece.text;
    }
  }

  std::string take() { return std::move(out_); }

 private:
  struct Piece {
    std::string text;
    NodeId node;
    uint32_t indent = 0;
  };

  [[nodiscard]] std::string text(Name name) const { return name.valid() ? std::string(names_.text(name)) : "_"; }
  void push(NodeId id, uint32_t indent) {
    if (id.valid()) work_.push_back({{}, id, indent});
    else work_.push_back({"none", {}, 0});
  }

  void binder(const ast::Binder& binder) {
    out_ += fmt::format("{}{}{}", binder.tilde ? "~" : "", mark_text(binder.mark), text(binder.name));
    if (!binder.type.valid()) return;
    out_ += " : ";
    tree(binder.type, 2);
  }
  void binders(const std::vector<ast::Binder>& list) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (i) out_ += ", ";
      binder(list[i]);
    }
  }

  // Collects the pieces of one node in order, then puts them on the stack in reverse.
  struct Parts {
    std::vector<Piece> pieces;
    uint32_t indent;
    Parts& operator<<(std::string text) {
      pieces.push_back({std::move(text), {}, 0});
      return *this;
    }
    Parts& operator<<(NodeId id) {
      if (id.valid()) pieces.push_back({{}, id, indent});
      else pieces.push_back({"none", {}, 0});
      return *this;
    }
    Parts& sub(uint32_t id) { return *this << NodeId(id); }
    Parts& each(std::span<const NodeId> list, std::string_view before = " ") {
      for (NodeId id : list) (*this << std::string(before)) << id;
      return *this;
    }
    Parts& line(uint32_t more = 0) { return *this << "\n" + std::string(std::min<uint32_t>(indent + more, 200), ' '); }
  };

  void expand(NodeId id, uint32_t indent) {
    const ast::Node& n = tree_.nodes[id];
    Parts p{{}, indent};
    switch (n.kind) {
      case Kind::Name: p << text(n.name); break;
      case Kind::TypeKw: p << "Type"; break;
      case Kind::DataKw: p << "Data"; break;
      case Kind::QuantKw: p << "Quant"; break;
      case Kind::KindOf: (p << "(Kind ").sub(n.a) << ")"; break;
      case Kind::QuantLit: p << fmt::format("&{}", n.a); break;
      case Kind::U32Lit: p << fmt::format("{}", n.a); break;
      case Kind::NatLit: p << fmt::format("{}n", n.a); break;
      case Kind::F32Lit: {
        float value;
        std::memcpy(&value, &n.a, sizeof value);
        char chars[text::kF32Chars];
        p << std::string(chars, text::f32_show_point(value, chars));
        break;
      }
      case Kind::CharLit: p << quoted(std::u32string(1, static_cast<char32_t>(n.a)), '\''); break;
      case Kind::StringLit: p << quoted(tree_.strings[n.a], '"'); break;
      case Kind::NatPlus: (p << fmt::format("({}n+ ", n.a)).sub(n.b) << ")"; break;
      case Kind::All: ((p << fmt::format("(@ {}{} : ", mark_text(n.mark), text(n.name))).sub(n.a) << " -> ").sub(n.b) << ")"; break;
      case Kind::Exists: ((p << fmt::format("(& {} : ", text(n.name))).sub(n.a) << " -> ").sub(n.b) << ")"; break;
      case Kind::PlusMark: (p << "(+ ").sub(n.a) << ")"; break;
      case Kind::Ctor: (p << fmt::format("({}{{}}", text(n.name))).each(tree_.list(n.a, n.b)) << ")"; break;
      case Kind::Rfl: p << "{==}"; break;
      case Kind::Eql: (((p << "(== ").sub(n.a) << " ").sub(n.b) << " : ").sub(n.c) << ")"; break;
      case Kind::Neq: (((p << "(!= ").sub(n.a) << " ").sub(n.b) << " : ").sub(n.c) << ")"; break;
      case Kind::Ann: ((p << "(ann ").sub(n.a) << " : ").sub(n.b) << ")"; break;
      case Kind::Group:
        (p << "(group ").sub(n.a);
        if (NodeId(n.b).valid()) (p << " : ").sub(n.b);
        p << ")";
        break;
      case Kind::Tuple: (p << "(tuple").each(tree_.list(n.a, n.b)) << ")"; break;
      case Kind::List: (p << "(list").each(tree_.list(n.a, n.b)) << ")"; break;
      case Kind::Fill: (((p << "(fill ").sub(n.a) << " : ").sub(n.b) << (n.flags & ast::kFlagPower ? " ^ " : " * ")).sub(n.c) << ")"; break;
      case Kind::RawMatch:
        (p << "(raw-match").each(tree_.list(n.a, n.b));
        if (NodeId(n.c).valid()) (p << " else ").sub(n.c);
        p << ")";
        break;
      case Kind::RawArm: (p << fmt::format("({} : ", text(n.name))).sub(n.a) << ")"; break;
      case Kind::Rewrite:
        ((p << (n.name.valid() ? fmt::format("(rewrite {}@", text(n.name)) : "(rewrite ")).sub(n.a) << " : ").sub(n.b) << ")";
        p.line().sub(n.c);
        break;
      case Kind::Do:
        (p << fmt::format("(do {}<", text(n.name))).each(tree_.list(n.a, n.b), " ") << " >";
        p.indent += 2;
        for (NodeId s : tree_.list(n.c, n.d)) p.line() << s;
        p << ")";
        break;
      case Kind::DoBind: ((p << fmt::format("({}{} : ", mark_text(n.mark), text(n.name))).sub(n.a) << " <- ").sub(n.b) << ")"; break;
      case Kind::DoLet: ((p << fmt::format("({}{} : ", mark_text(n.mark), text(n.name))).sub(n.a) << " = ").sub(n.b) << ")"; break;
      case Kind::DoStep: (p << "(step ").sub(n.a) << ")"; break;
      case Kind::DoReturn: (p << "(return ").sub(n.a) << ")"; break;
      case Kind::Hole: p << fmt::format("?{}", text(n.name)); break;
      case Kind::Lambda: (p << fmt::format("({}{} => ", mark_text(n.mark), text(n.name))).sub(n.a) << ")"; break;
      case Kind::Call: ((p << (n.flags & ast::kFlagBang ? "(call! " : "(call ")).sub(n.a)).each(tree_.list(n.b, n.c)) << ")"; break;
      case Kind::TildeArg: (p << "~").sub(n.a); break;
      case Kind::TypeArgs: (p << fmt::format("({}<>", text(n.name))).each(tree_.list(n.a, n.b)) << ")"; break;
      case Kind::Index: ((p << "(index ").sub(n.a) << " ").sub(n.b) << ")"; break;
      case Kind::Write: (((p << "(write ").sub(n.a) << " ").sub(n.b) << " ").sub(n.c) << ")"; break;
      case Kind::Binary: ((p << fmt::format("({} ", op_text(n.op))).sub(n.a) << " ").sub(n.b) << ")"; break;
      case Kind::Match:
        (p << "(match").each(tree_.list(n.a, n.b));
        p.indent += 2;
        for (NodeId c : tree_.list(n.c, n.d)) p.line() << c;
        p << ")";
        break;
      case Kind::Case:
        (p << "(case").each(tree_.list(n.a, n.b));
        p.indent += 2;
        p.line().sub(n.c) << ")";
        break;
      case Kind::Let: {
        const ast::Let& let = tree_.lets[n.a];
        p << (let.erased ? "(let -" : let.write ? "(write-let" : "(let");
        p.each(let.patterns);
        if (let.type.valid()) (p << " : ") << let.type;
        (p << " =").each(let.values) << ")";
        p.line() << let.body;
        break;
      }
      case Kind::Error: p << "<error>"; break;
    }
    for (size_t i = p.pieces.size(); i-- > 0;) work_.push_back(std::move(p.pieces[i]));
  }

  static std::string quoted(const std::u32string& value, char quote) {
    std::string out(1, quote);
    for (char32_t c : value) {
      char chars[16];
      out.append(chars, text::escape_show(c, quote, chars));
    }
    return out + quote;
  }

  const ast::Ast& tree_;
  const Interner& names_;
  std::vector<Piece> work_;
  std::string out_;
};

}  // namespace

std::string print_ast(const ast::Ast& tree, const Interner& names) {
  Printer printer(tree, names);
  for (const ast::Import& import : tree.imports) printer.import(import);
  for (const ast::Decl& decl : tree.decls) printer.decl(decl);
  return printer.take();
}

std::string print_ast_node(const ast::Ast& tree, const Interner& names, NodeId id) {
  Printer printer(tree, names);
  printer.tree(id, 0);
  return printer.take();
}

}  // namespace bendc
