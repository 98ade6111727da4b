// CaseTree: rows of patterns over pending binders -> nested single-constructor tests (Mat, MatLit, Efq) and lambdas, in binder order
// (language.md section 6). Rows share their right-hand sides with every arm they can reach; each arm elaborates its own copy, in which the
// matched variables stand for what the path knows of them. Reports F1-F4, and C15 where a folded match leaves no row.
// Example: `match n: case 0n: a; case 1n+p: b` over the pending binders n, m becomes Mat(Zero, m. a; Mat(Succ, p. m. b; Efq)).
#pragma once
#include "checker/pattern.h"

namespace bendc::elab {

class Elaborator;

class CaseTree {
 public:
  CaseTree(Elaborator& elab, Patterns& patterns);

  void enter(const ast::Ast* ast) { ast_ = ast; origin_of_.assign(ast->nodes.size(), kNil); }
  void begin(Span declaration);                        // sets the work that its text allows
  void clear();                                        // between declarations

  // Binders of the declaration being elaborated.
  [[nodiscard]] Binder& binder(BinderId id) { return binders_[id]; }
  BinderId add_binder(Binder binder) { return binders_.add(std::move(binder)); }
  [[nodiscard]] uint32_t cons_pending(BinderId binder, uint32_t rest);
  // Closes every pending binder as a lambda around what follows. end_lambdas wraps it; restore puts the binders back.
  [[nodiscard]] size_t lambda_mark() const { return closed_.size(); }
  void close_all(uint32_t pending);
  [[nodiscard]] core::TermId end_lambdas(size_t mark, core::TermId inner);
  [[nodiscard]] size_t trail_mark() const { return trail_.size(); }
  void restore(size_t mark);

  // A match statement, or a destructuring let (one row). `pending` is the list of pending binders.
  [[nodiscard]] core::TermId match(ast::NodeId statement, uint32_t pending);
  [[nodiscard]] core::TermId destructure(ast::NodeId let, uint32_t pending);

  // The let-bound binders that directly precede: matching one is F4 rather than F1. Set by the let, cleared by what closes them.
  struct LetBound { uint32_t from = 0, to = 0; };
  LetBound let_bound;
  // The binders that the row being elaborated has opened by its own constructor patterns (a list).
  uint32_t opened = kNil;

  // Rows that no path reached: their patterns' match statement has been elaborated at least once.
  struct Origin {
    ast::NodeId node;        // the Case, or the destructuring Let
    ast::NodeId body;
    uint32_t copies = 0;     // paths that elaborate it
    bool dead = false;       // some path stops at it because every constructor was taken before
  };
  [[nodiscard]] const std::vector<Origin>& origins() const { return origins_; }

 private:
  struct Scrutinee {
    BinderId binder;
    ast::NodeId node;
    bool folded = false;       // a field of a folded constructor
    bool foldable = false;     // stood for a constructor or literal before this statement, and not by its own row's pattern
    uint32_t next = kNil;
  };
  struct Row {
    uint32_t columns = kNil;   // list of patterns
    uint32_t names = kNil;     // list of (name, binder), latest first
    uint32_t opened = kNil;    // list of binders
    uint32_t origin = 0;
  };
  struct Rows { uint32_t begin = 0, count = 0; };
  struct Site { Span span; };  // the match statement's head
  struct Column { PatternId pattern; uint32_t next; };
  struct NameCell { Name name; BinderId binder; uint32_t next; };
  struct BinderCell { BinderId binder; uint32_t next; };
  struct TakenCell { core::CtorId ctor; Literal literal; uint32_t next; };  // a constructor, or (ctor none) a literal
  struct Link { core::CtorId ctor; core::TermId literal; core::TermId hit; Span span; };
  struct Entry { uint32_t value, row; };          // a row and what its pattern tests: a constructor's id or a literal's value
  struct Group { uint32_t first, begin, end; };   // entries that test the same, and their first row
  struct Saved { BinderId id; Binder binder; };

  // The row source of both statement forms.
  uint32_t origin(ast::NodeId node, ast::NodeId body);
  [[nodiscard]] Scrutinee scrutinee(ast::NodeId node);
  [[nodiscard]] bool foldable(BinderId id) const;
  [[nodiscard]] core::TermId tree(uint32_t scrutinees, Rows rows, uint32_t pending, const Site& site);
  [[nodiscard]] core::TermId split(uint32_t scrutinees, Rows rows, uint32_t pending, const Site& site);
  [[nodiscard]] core::TermId row_body(Row row, uint32_t pending);
  [[nodiscard]] core::TermId refuse(const Scrutinee& s, const Site& site);
  [[nodiscard]] core::TermId too_large(const Site& site);
  [[nodiscard]] core::TermId too_deep(const Site& site);

  // Column operations.
  [[nodiscard]] const Pattern& first(const Row& row) const { return patterns_[columns_[row.columns].pattern]; }
  [[nodiscard]] bool has_constructor(Rows rows) const;
  [[nodiscard]] bool takes_all(const Row& row) const;
  void rename(Rows rows, BinderId binder);
  void drop_taken(Rows& rows, BinderId binder);
  [[nodiscard]] bool is_taken(const Pattern& p, uint32_t taken);
  [[nodiscard]] Row open_row(const Row& row, PatternId pattern, BinderId binder);           // hit by constructor
  [[nodiscard]] Row pass_row(const Row& row, BinderId binder, uint32_t fields);             // hit by variable
  [[nodiscard]] bool fold(Scrutinee& s, uint32_t& scrutinees, Rows& rows, const Site& site);
  static void group(std::span<Entry> entries, SmallVector<Group, 8>& groups);
  static void merge(std::span<const Entry> group, std::span<const uint32_t> variables, SmallVector<uint32_t, 16>& out);
  void split_constructor_column(uint32_t scrutinees, Rows& rows, uint32_t pending, const Site& site);
  [[nodiscard]] bool split_constructor(uint32_t scrutinees, Rows rows, std::span<const uint32_t> hit_rows, core::Quantity mark, uint32_t pending, const Site& site, core::CtorId k, uint32_t chosen);
  void split_literal(uint32_t scrutinees, Rows& rows, uint32_t pending, const Site& site, const Pattern& chosen);
  void split_literal_column(uint32_t scrutinees, Rows& rows, uint32_t pending, const Site& site);
  void literal_hit(uint32_t scrutinees, Rows hits, uint32_t pending, const Site& site, const Literal& literal, Span span);
  [[nodiscard]] bool known_match(PatternId pattern, Literal literal, Row& row);
  [[nodiscard]] bool is_test(const Pattern& p, Rows rows) const;   // matched by an equality test
  [[nodiscard]] bool long_nat_column(Rows rows) const;
  [[nodiscard]] static Literal literal_of(const Pattern& p);
  [[nodiscard]] bool covered(const Binder& b) const;
  void take(BinderId binder, core::CtorId ctor, const Literal& literal);

  [[nodiscard]] bool in_list(uint32_t list, BinderId binder) const;
  [[nodiscard]] bool is_let_bound(BinderId id) const { return id.index >= let_bound.from && id.index < let_bound.to; }
  [[nodiscard]] bool work(uint64_t amount);
  void save(BinderId id) { trail_.push_back({id, binders_[id]}); }
  uint32_t add_name(uint32_t names, Name name, BinderId binder);
  Rows push_rows(std::span<const Row> rows);
  [[nodiscard]] core::TermId add_test(core::Term term, Span span, const Scrutinee& s);

  Elaborator& elab_;
  Patterns& patterns_;
  const ast::Ast* ast_ = nullptr;
  Table<BinderId, Binder> binders_;
  std::vector<Row> rows_;                 // a stack: each split pushes its hit and miss rows
  std::vector<Scrutinee> scrutinees_;     // list cells
  std::vector<Column> columns_;
  std::vector<NameCell> names_;
  std::vector<BinderCell> binders_lists_; // pending and opened lists
  std::vector<TakenCell> taken_;
  std::vector<Link> links_;               // the tests of the splits in progress
  std::vector<Saved> trail_;              // binder states to put back
  std::vector<BinderId> closed_;          // binders closed as lambdas, innermost last
  std::vector<Origin> origins_;
  std::vector<uint32_t> origin_of_;       // by syntax node
  uint64_t work_ = 0;                     // rows looked at and terms copied
  uint64_t max_work_ = 0;
  bool stopped_ = false;                  // the budget ran out (reported)
};

}  // namespace bendc::elab
