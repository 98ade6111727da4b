// Symbolic runs of straight-line Flow: what every word of a value is made of, by terms that are equal exactly when their numbers are.
// In: bodies without choices, and terms for the variables that come from outside. Out: terms.
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "codegen/flow.h"
#include "codegen/memory_layout.h"

namespace bendc {

struct Term {
  // Param, Unknown and Given are told apart by `number` and, Given, by `operands` too: what they stand for is the maker's.
  enum class Kind : uint8_t { Param, Const, Prim, Given, Unknown } kind = Kind::Unknown;
  uint64_t number = 0;               // of the parameter word, the constant's bits, ..
  flow::Prim prim{};
  std::vector<uint32_t> operands;    // terms
  auto operator<=>(const Term&) const = default;
};

class Terms {
 public:
  explicit Terms(const flow::Module& module) : m_(module), layouts_(module) {}

  using Words = std::vector<uint32_t>;   // a value: the term of each word

  // The first `count` parameters of f become Param terms.
  void params(flow::FuncId f, size_t count);
  void bind(flow::VarId var, Words words) { values_[var.index] = std::move(words); }
  void bind(std::span<const flow::VarId> vars, const Words& words);   // one after the other
  [[nodiscard]] Words value(flow::VarId var);
  // Binds a Let's variable.
  void let(const flow::Node& n) { values_[n.var.index] = value_of(n); }
  // Binds the fields of a struct; false: of something else.
  [[nodiscard]] bool open(const flow::Node& n);

  // What a body without choices returns; nothing when it has any. Stops at a Case on `choice`, which is then `at`.
  [[nodiscard]] std::optional<Words> run(flow::NodeId& at, flow::VarId choice);

  [[nodiscard]] uint32_t term(Term t);
  [[nodiscard]] uint32_t given(uint64_t number, std::vector<uint32_t> operands) { return term({Term::Kind::Given, number, {}, std::move(operands)}); }
  [[nodiscard]] uint32_t constant(uint64_t bits) { return term({Term::Kind::Const, bits, {}, {}}); }
  [[nodiscard]] uint32_t prim(flow::Prim p, std::vector<uint32_t> operands) { return term({Term::Kind::Prim, 0, p, std::move(operands)}); }
  [[nodiscard]] Words unknown(flow::TypeId type);

  const Term& operator[](uint32_t id) const { return terms_[id]; }
  [[nodiscard]] bool is_param(uint32_t id, uint64_t number) const { return terms_[id].kind == Term::Kind::Param && terms_[id].number == number; }
  [[nodiscard]] bool is_const(uint32_t id, uint64_t number) const { return terms_[id].kind == Term::Kind::Const && terms_[id].number == number; }
  [[nodiscard]] bool is_prim(uint32_t id, flow::Prim prim) const { return terms_[id].kind == Term::Kind::Prim && terms_[id].prim == prim; }
  // The operand of a two-operand term beside `one`.
  [[nodiscard]] std::optional<uint32_t> beside(uint32_t id, uint32_t one) const;
  [[nodiscard]] size_t leaves(flow::TypeId type) { return layouts_.of(type).leaves.size(); }

 private:
  [[nodiscard]] Words value_of(const flow::Node& n);

  const flow::Module& m_;
  flow::Layouts layouts_;
  std::vector<Term> terms_;
  std::map<Term, uint32_t> ids_;
  std::map<uint32_t, Words> values_;   // by variable
};

}  // namespace bendc
