// Descent (language.md 7): a live self-call must pass each argument unchanged until one is strictly smaller than the pattern that the
// def's own left-hand side has there. In: patterns and arguments as values. Out: the order, and hints for the report.
// Example: under `case 1n+p` of `f(n, acc)`, the call f(p, ..) descends; f(1n+p, acc) does not.
#pragma once
#include <span>
#include <vector>

#include "checker/machine.h"

namespace bendc {

enum class Order : uint8_t { Less, Equal, Greater };

class Descent {
 public:
  explicit Descent(Machine& machine) : m_(machine) {}

  // Compares one argument with one pattern. Defs are not unfolded.
  [[nodiscard]] Order compare(const Value* arg, const Value* pattern);

  struct Result {
    bool descends = false;
    uint32_t failing = 0;            // the position that is neither unchanged nor smaller; count when every one was unchanged
    std::vector<Order> orders;       // of every compared position (erased ones are Equal)
  };
  [[nodiscard]] Result lexicographic(std::span<const Value* const> args, std::span<const Value* const> patterns, const std::vector<bool>& erased);

 private:
  struct Known {
    const Value* arg;
    const Value* pattern;
    Order order;
  };
  Machine& m_;
  std::vector<Known> known_;         // results for pairs of constructors, within one compare
  uint32_t depth_ = 0;
};

}  // namespace bendc
