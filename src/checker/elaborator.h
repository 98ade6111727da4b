// Elaborator: one declaration after another from syntax to Core (elaborate.h is the entry). Split by concept: elaborate_decl.cpp
// (telescopes and declarations), elaborate_body.cpp (statements), elaborate_term.cpp (terms), elaborate_sugar.cpp (literals, operators,
// arrays, do blocks); case trees are case_tree.h's.
#pragma once
#include "checker/case_tree.h"
#include "checker/declare.h"

namespace bendc::elab {

// What `( .. : T)` says about the operators inside (language.md 2.2): the name that heads T, that T has none, or that there is no `: T`.
struct OperatorType {
  enum class Kind : uint8_t { None, Named, Headless } kind = Kind::None;
  Name head;
  Span span;   // of T
};

class Elaborator {
 public:
  Elaborator(const Program& program, Interner& names, Symbols& symbols, core::Book& book, Reports& reports, size_t stack);

  void declaration(const Declared& declared);

  // For the case trees: a row's right-hand side, with `pending` binders still to take.
  [[nodiscard]] core::TermId body(ast::NodeId node, uint32_t pending, const OperatorType& operators = {});

  // State shared with CaseTree.
  core::Book& book;
  Interner& names;
  Symbols& symbols;
  Reports& reports;
  Scope scope;
  Nesting nesting;
  uint32_t depth = 0;      // enclosing binders at this point
  OperatorType body_operators;

  [[nodiscard]] core::TermId add(core::Term term, Span span) { return book.add(term, span); }
  [[nodiscard]] core::TermId error_term(Span span) { return add(core::Term{}, span); }
  [[nodiscard]] core::TermId binder_term(BinderId id, Span span);   // a local variable as it stands on this path
  [[nodiscard]] core::TermId literal_term(const Literal& literal, Span span);
  void too_deep(Span span);
  [[nodiscard]] std::string the_other_way(std::string_view written);   // the name of a conversion that is a def of the other type; empty when there is none
  [[nodiscard]] std::string nearest_local(std::string_view written);   // a mistyped local's name; empty when none is close

 private:
  using TermId = core::TermId;
  using NodeId = ast::NodeId;
  using Node = ast::Node;

  // elaborate_decl.cpp
  void data(const ast::Decl& decl, const Declared& declared);
  void def(const ast::Decl& decl, const Declared& declared);
  void law(const ast::Decl& decl, const Declared& declared);
  void fill(const ast::Decl& decl, const Declared& declared);
  TermId binder_type(const ast::Binder& binder);
  void function_body(const ast::Decl& decl, core::DefId id);
  void push_closed(Name name, Span span);
  void note_names_of_constructors(Diagnostic& d, size_t origin);
  void read_unreached();                     // parse-time errors of rows that no path elaborates

  // elaborate_body.cpp
  [[nodiscard]] bool is_pattern_let(const ast::Let& let) const;
  void plain_let(const ast::Let& let, const Node& n, TermId& id);
  void rewrite_head(const Node& n, TermId& id);
  void attach(TermId id, TermId& first, TermId& hole);
  void let_name(NodeId pattern, bool erased, core::LetRow& row);

  // elaborate_term.cpp
  TermId term(NodeId node, const OperatorType& operators = {});
  TermId block(NodeId node, const OperatorType& operators = {});   // a body with no pending binders
  TermId name(const Node& n);
  TermId global(Name written, Span span);
  TermId unknown(Name written, Span span, SymbolKind kind);
  bool ambiguous(const Lookup& found, Name written, Span span);
  TermId call(const Node& n, const OperatorType& operators);
  void check_tildes(const Node& n, TermId head, uint32_t tildes, Span first);
  TermId family(const Node& n, bool plus);
  TermId plus_mark(const Node& n);
  TermId ctor(const Node& n);
  TermId lambda(Name name, core::Quantity mark, NodeId body, Span span);
  TermId function_type(NodeId node);
  TermId exists(const Node& n);
  TermId raw_match(const Node& n);
  TermId group(const Node& n, const OperatorType& operators);
  TermId equation(const Node& n);

  // elaborate_sugar.cpp
  TermId binary(NodeId node, const OperatorType& operators);
  TermId left_chain(NodeId node, const OperatorType& operators);
  TermId right_chain(NodeId node, const OperatorType& operators);
  std::string_view operand_type(const Node& n);
  TermId operator_ref(const Node& n, const OperatorType& operators);
  OperatorType operator_type(NodeId type);
  Name head_name(NodeId type) const;
  TermId nat_plus(NodeId node, const OperatorType& operators);
  TermId list(const Node& n);
  TermId tuple(const Node& n);
  TermId char_literal(const Node& n);
  TermId string_literal(const Node& n);
  TermId array_fill(const Node& n);
  TermId array_index(const Node& n);
  TermId array_write(const Node& n);
  TermId do_block(const Node& n);
  [[nodiscard]] bool header_fits(const Node& n, const Lookup& header);
  std::vector<TermId> do_header(const Node& n, core::DataId family);
  TermId constructor(Name written, std::span<const TermId> fields, Span span);
  TermId quantity(uint32_t q, Span span) { return add({.kind = core::TermKind::Qua, .a = q}, span); }
  TermId apply(TermId head, std::span<const TermId> args, Span span, uint8_t tildes = 0);
  TermId data_or_call(Name written, std::span<const TermId> args, Span span);

  [[nodiscard]] const Node& node(NodeId id) const { return ast_->nodes[id]; }
  [[nodiscard]] NodeId strip(NodeId id) const;      // without `( )` that hold just a term
  [[nodiscard]] std::string text(Name name) const { return std::string(names.text(name)); }
  [[nodiscard]] bool declared_above(const Symbol& symbol) const { return symbol && symbol.position <= position_; }
  Name joined(std::string_view left, std::string_view right);   // the name left + right

  const Program& program_;
  Patterns patterns_;
  CaseTree tree_;
  const ast::Ast* ast_ = nullptr;
  uint32_t position_ = 0;
  std::unordered_set<Name> unknown_;  // names reported in this declaration
  uint32_t suggestions_left_ = 50;   // a search of all names takes 0.1 ms; more than these no one reads
  core::DefId bool_and_, bool_or_, string_append_;   // calls of these pass `( : T)` on to their arguments
  struct OperatorName { Name head; ast::Op op = ast::Op::None; Name name; };
  OperatorName operator_names_[64];
  struct Words {
    Name underscore, pair, either, exists, empty, unit, con, nil, tuple, chr, zero, succ, snil, scon, u32, nat_add, string_append, bool_and,
        bool_or, array_new, array_get, array_set, wnil, wcon, false_, true_;
  } words_;
};

}  // namespace bendc::elab
