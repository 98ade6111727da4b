// Conversion of values (language.md 5.8): equality `==` and the subtype direction `<=` (kinds, residual types, function domains), and
// the kind of a type as written. Calls are compared folded before they are unfolded; pairs found equal are remembered for the query.
// In: two values valid at `depth`. Out: a truth value; running out of fuel answers yes and leaves the machine halted.
#pragma once
#include <vector>

#include "checker/machine.h"

namespace bendc {

class Converter {
 public:
  explicit Converter(Machine& machine) : m_(machine) {}

  [[nodiscard]] bool equal(const Value* a, const Value* b, uint32_t depth) { return start(a, b, depth, false); }
  [[nodiscard]] bool fits(const Value* a, const Value* b, uint32_t depth) {   // a <= b
    a = m_.force(a);
    b = m_.force(b);
    return a == b || start(a, b, depth, true);
  }
  // Quantities: Kind(g) <= Kind(h), by the table of 5.6.
  [[nodiscard]] bool quantity_fits(const Value* g, const Value* h, uint32_t depth);
  // The kind a type has as it is written: a call has its def's declared codomain, whatever it reduces to. Null: not a type.
  [[nodiscard]] const Value* kind_quantity(const Value* type, uint32_t depth);

 private:
  [[nodiscard]] bool start(const Value* a, const Value* b, uint32_t depth, bool subtype);
  [[nodiscard]] bool convert(const Value* a, const Value* b, uint32_t depth, bool subtype, bool unfold);
  [[nodiscard]] bool structure(const Value*& a, const Value*& b, uint32_t depth, bool subtype, bool unfold, bool& more);
  [[nodiscard]] bool lists(const Value* const* a, const Value* const* b, uint32_t count, uint32_t depth, bool unfold);
  [[nodiscard]] bool closures(const ClosureValue* a, const ClosureValue* b, uint32_t depth, bool unfold);
  [[nodiscard]] bool known_equal(const Value* a, const Value* b) const;
  void remember(const Value* a, const Value* b);

  Machine& m_;
  struct Pair {
    const Value* a;
    const Value* b;
  };
  std::vector<Pair> seen_;        // open addressing, power of two
  uint32_t seen_count_ = 0;
  uint64_t steps_ = 0;
  uint64_t probe_left_ = 0;       // steps a folded comparison may still take
  bool probing_ = false;
};

}  // namespace bendc
