// Which block the array handles of a function name: a parameter's, or one that appears here. Operations that give their handle back, Array.fork,
// Array.join and calls whose result is known to be an argument keep the block; whatever else makes an array makes another one.
// In: a module before ownership. Out, for every function: which array leaves of its result are which leaf of its parameters on every path; and, for
// one function at a time, where the leaves of its variables first appeared.
//
// Leaves: a struct that holds an array, at any depth of structs, counts as its parts, everything else as one leaf.
//   fn fill(n, r: struct{array u32, u32}) -> struct{array u32, u32}    leaf 1 of its parameters is the array, leaf 0 of its result is that one
#pragma once
#include <unordered_map>
#include <vector>

#include "codegen/flow.h"

namespace bendc::flow {

class LeafTypes {
 public:
  explicit LeafTypes(const Module& module) : m_(module) {}
  [[nodiscard]] const std::vector<TypeId>& of(TypeId type);
  // Is the type a struct that counts as its parts?
  [[nodiscard]] bool splits(TypeId type);

 private:
  struct Row {
    std::vector<TypeId> leaves;
    bool splits = false;
  };
  const Row& row(TypeId type);
  const Module& m_;
  std::unordered_map<uint32_t, Row> rows_;
};

// Leaf `leaf` of variable `var`. Without a variable: of a call that has not been seen to return.
struct Place {
  VarId var;
  uint32_t leaf = 0;
  friend bool operator==(const Place&, const Place&) = default;
};
using Places = std::vector<Place>;

class HandleIdentity {
 public:
  static constexpr int32_t kUnseen = -1, kOther = -2;   // no return seen yet; not a parameter's

  HandleIdentity(const Module& module, LeafTypes& leaves) : m_(module), leaves_(leaves) {}

  // Finds `results` of all functions.
  void solve();
  // By leaf of the function's result: the number of the parameters' leaf that it always is, or kOther.
  [[nodiscard]] const std::vector<int32_t>& results(FuncId func) const { return results_[func.index]; }
  // For a function made since, of which nothing is known.
  void add_unknown(FuncId func);
  // The places of the variables of one function, as long as its body is what it was; variables that are not there are their own places.
  [[nodiscard]] std::unordered_map<uint32_t, Places> places(FuncId func);

 private:
  struct Walk;
  bool update(FuncId func);

  const Module& m_;
  LeafTypes& leaves_;
  std::vector<std::vector<int32_t>> results_;
};

}  // namespace bendc::flow
