// Parser: the recursive-descent parser behind parser.h, split by concept into parse_term.cpp, parse_primary.cpp, parse_body.cpp
// and parse_decl.cpp. Trees that nest to the right without brackets (operators, lets, lists, cases) are read by loops; whatever recurses
// counts towards kMaxNesting, so no input can exhaust the stack.
#pragma once
#include "frontend/ast.h"
#include "frontend/cursor.h"
#include "support/interner.h"

namespace bendc {

// 1000 nested parentheses take about 1 MB of stack in an unoptimised build; hand-written code stays below 50.
inline constexpr uint32_t kMaxNesting = 1000;

class Parser : public Cursor {
 public:
  Parser(FileId file, std::string_view text, Tokens tokens, const Interner& names) : Cursor(file, text, std::move(tokens)), names_(names) { ast.file = file; ast.strings = std::move(this->tokens().strings); }

  void file();   // all declarations up to the end

  ast::Ast ast;

 private:
  using NodeId = ast::NodeId;
  using Node = ast::Node;
  using Op = ast::Op;

  // An operator or prefix waiting for its right operand in term().
  struct Frame {
    enum class What : uint8_t { Binary, NatPlus, All, Exists, Plus } what = What::Binary;
    Op op = Op::None;
    ast::Mark mark = ast::Mark::Affine;
    uint8_t level = 0;        // the level to go back to
    bool glued = false;       // Less directly after its left operand
    bool counted = false;     // counts as one level of nesting
    bool compound = false;    // a P16 was reported: the operand is read at level 0
    uint32_t left = NodeId::kNone;  // left operand, domain, or Nat value
    Name name;
    Span start, name_span;
  };

  class Nesting {   // counts one level of recursion
   public:
    explicit Nesting(Parser& parser) : parser_(parser) { parser.enter(); }
    ~Nesting() { --parser_.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    Parser& parser_;
  };
  void enter();

  // parse_term.cpp: operators and postfix forms.
  NodeId term(uint8_t level);
  bool prefix(uint8_t& level);           // true: a frame was pushed, an operand follows
  bool quantity_or_exists(uint8_t& level);
  bool all(uint8_t& level);
  NodeId close_frame();
  NodeId close_less(NodeId right, bool& closed);
  struct OpToken {
    Op op = Op::None;
    uint32_t tokens = 0;
  };
  [[nodiscard]] OpToken peek_op() const;
  NodeId call(NodeId head, bool bang);
  NodeId index(NodeId array);
  NodeId lambda(NodeId binder);

  // parse_primary.cpp
  NodeId primary();
  NodeId braces();
  NodeId brackets();
  NodeId fill(uint32_t start, NodeId value);
  NodeId parens();
  NodeId raw_match();
  NodeId rewrite();
  NodeId rewrite_head();
  NodeId do_block();
  bool do_statement(uint32_t column, NodeId& statement);   // false: it was the last
  NodeId no_term();
  Slice items(TokenKind close, std::string_view what, Span open, bool tildes);

  // parse_body.cpp
  NodeId body(uint32_t column);
  NodeId block();                        // a body whose enclosing column is just left of its first token
  void no_result(const ast::Let& let);
  bool statement(uint32_t column, NodeId& out);   // true: a let whose body follows
  bool erased_let(NodeId& out);
  NodeId let(ast::Let let, uint32_t start);
  void let_values(ast::Let& let);
  NodeId match(uint32_t column);
  NodeId match_case(uint32_t scrutinees, uint32_t& wrong);
  void skip_to_case();
  [[nodiscard]] bool starts_name() const;

  // parse_decl.cpp
  void declaration();
  void type_decl();
  void law_decl();
  void def_decl(bool unsafe, uint32_t start);
  void def_body(ast::Decl& decl);
  bool clause(ast::Decl& decl);
  void check_params(ast::Decl& decl);
  std::vector<ast::Binder> binders(TokenKind close, std::string_view what, Span open, bool tildes);
  ast::Binder binder(bool tildes);
  void attribute();
  void stray();
  // parse_hints.cpp: adds to the first report since `first_report` what another language's habit explains about the tokens from `first_token` on.
  void hint(size_t first_report, uint32_t first_token);
  void skip_to_declaration();
  [[nodiscard]] bool starts_declaration() const;

  // helpers
  NodeId add(Node node) { return ast.nodes.add(std::move(node)); }
  NodeId error_node(Span span);
  bool expect(TokenKind kind, std::string_view why);
  bool close(TokenKind kind, std::string_view what, Span open);   // the closing bracket of `what`
  bool name(Name& name, Span& span, std::string_view what);
  [[nodiscard]] const Node& node(NodeId id) const { return ast.nodes[id]; }
  [[nodiscard]] NodeId strip_groups(NodeId id) const;
  [[nodiscard]] NodeId bare_name(NodeId id) const;                 // the Name under groups, or none
  [[nodiscard]] NodeId bare_binder(NodeId id) const;               // Name or PlusMark(Name) under groups, or none
  [[nodiscard]] Slice list_since(size_t mark);                     // scratch_ from mark on, as a list

  const Interner& names_;
  std::vector<NodeId> scratch_;          // items of the lists being read
  std::vector<Frame> frames_;
  uint32_t depth_ = 0;
  // The last `: T` that turned out not to start a typed let; the enclosing group takes it from here instead of reading it twice.
  struct {
    uint32_t colon = 0xFFFFFFFFu, end = 0;
    NodeId type;
  } group_type_;
  uint64_t reread_ = 0;                  // tokens read twice because an array fill could not use group_type_
};

}  // namespace bendc
