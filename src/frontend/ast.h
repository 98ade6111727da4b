// The syntax tree of one file, as written: sugar included, names unresolved. Nodes are plain values in one table, addressed by id.
// In: tokens. Out: Ast. Example: `(a + 1 : U32)` is Group{Binary{Name a, U32Lit 1}, Name U32}.
#pragma once
#include <string>
#include <vector>

#include "support/interner.h"
#include "support/source.h"
#include "support/table.h"

namespace bendc::ast {

enum class Kind : uint8_t {
#define BENDC_AST(kind, payload) kind,
#include "frontend/ast.def"
#undef BENDC_AST
};

enum class Op : uint8_t {
  None, Arrow, Pair, Or, OrElse, AndAlso, Less, LessEq, Greater, GreaterEq, Cons, Append, Meet,
  BitOr, BitXor, BitAnd, Shl, Shr, Add, Sub, Mul, Div, Mod,
};

// How a binder is marked in the source. Erased is `-x`, Affine is plain, Reusable is `+x`.
enum class Mark : uint8_t { Erased = 0, Affine = 1, Reusable = 2 };

inline constexpr uint8_t kFlagBang = 1;        // Call: f!(..)
inline constexpr uint8_t kFlagPower = 2;       // Fill: [v : T^d]
inline constexpr uint8_t kFlagTypedGroup = 4;  // reserved for the resolver

struct NodeTag;
using NodeId = Id<NodeTag>;

struct Node {
  Kind kind = Kind::Error;
  Op op = Op::None;         // Binary
  Mark mark = Mark::Affine; // All, Lambda, DoBind, DoLet
  uint8_t flags = 0;
  Name name;
  uint32_t a = NodeId::kNone, b = NodeId::kNone, c = NodeId::kNone, d = NodeId::kNone;
  Span span;                // the whole construct
  Span name_span;           // the name's own text, where there is one; Binary: the operator; Match: the word `match`; Let: its `=` statement head
};

// `pats = values; body`. More than one pattern means a parallel let (or several erased lets).
struct Let {
  std::vector<NodeId> patterns;   // Name or PlusMark(Name) when parallel; any pattern when single
  std::vector<NodeId> values;     // same length as patterns
  NodeId type;                    // `x : T = v`, else none
  bool erased = false;            // `-x y = ..`
  bool write = false;             // `a[i] <- v` statement: pattern is Name a, value is the Write node
  NodeId body;
  Span statement;                 // the let statement without its body
};

// A declared binder: parameter, field, law clause.
struct Binder {
  Mark mark = Mark::Affine;
  bool tilde = false;             // `~x: T`
  Name name;
  NodeId type;                    // none: bare name (an erased Quant parameter), or an untyped law-fill name
  Span span;                      // the whole binder
  Span name_span;
};

struct CtorDecl {
  Name name;
  std::vector<Binder> fields;
  Span span, name_span;
};

struct Clause {                   // of a law
  bool exists = false;            // `exs`, else `for`
  Binder binder;
  NodeId where;                   // none when absent
};

enum class DeclKind : uint8_t { Type, Def, Law };

struct Decl {
  DeclKind kind = DeclKind::Def;
  Name name;
  Span span, name_span;
  // Type
  std::vector<Binder> params;     // Type: parameters; Def: parameters (tilde ones first)
  NodeId type;                    // Type: its kind; Def: result type (none: fills a law); Law: none
  std::vector<CtorDecl> ctors;
  // Def
  bool unsafe = false;
  NodeId body;                    // Def body, Law claim; none when foreign or broken
  std::vector<std::string> foreign;      // paths of a foreign body, in order
  std::vector<Span> foreign_spans;
  // Law
  std::vector<Clause> clauses;
};

struct Import {
  bool base = false;              // import Base
  bool stdlib = false;            // import Name (a stdlib module)
  std::string path;               // import path as alias
  Name alias;                     // also set for stdlib
  Span span, path_span, alias_span;
};

struct Ast {
  FileId file;
  Table<NodeId, Node> nodes;
  ListPool<NodeId> lists;
  std::vector<Let> lets;
  std::vector<std::u32string> strings;   // code points; may hold surrogates and values past U+10FFFF (kept as written)
  std::vector<Import> imports;
  std::vector<Decl> decls;

  [[nodiscard]] std::span<const NodeId> list(uint32_t offset, uint32_t length) const { return lists[Slice{offset, length}]; }
};

[[nodiscard]] std::string_view kind_name(Kind kind);
[[nodiscard]] std::string_view op_text(Op op);

}  // namespace bendc::ast
