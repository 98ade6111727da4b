// array_effects: which of a function's arguments may lead to one array, and which lead to arrays that the function writes.
//
//   fn f(a: array u32, b: array u32, c: array u32) { .. array.set(a, i, x) .. f(b, b, c) .. }     a and b are one group, written; c is another
//
// In: an owned module. Out: a group for each parameter that holds counted values. Whether two arguments are one block is the caller's to know:
// groups say only what the function itself may mix up. A function on a call cycle or below a long chain of calls, and what cannot be looked into, is taken to mix up and write all.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "codegen/flow.h"

namespace bendc {

struct ArrayEffects {
  static constexpr uint32_t kNone = 0xFFFFFFFFu;
  std::vector<uint32_t> group;   // by parameter; kNone: nothing counted
  std::vector<bool> written;     // by group
  uint32_t result = kNone;       // the group that the result may come from
};

class ArrayEffectsFinder {
 public:
  explicit ArrayEffectsFinder(const flow::Module& module) : m_(module) {}
  // Of `f` as a whole: its calls of itself hand their arguments to its parameters.
  [[nodiscard]] const ArrayEffects& of(flow::FuncId f);
  // The group of a variable of f.
  [[nodiscard]] uint32_t group_in(flow::FuncId f, flow::VarId var);

 private:
  [[nodiscard]] ArrayEffects find(flow::FuncId f);
  const flow::Module& m_;
  std::map<uint32_t, ArrayEffects> done_;
  std::map<uint32_t, std::map<uint32_t, uint32_t>> groups_;   // by function and variable
  std::map<uint32_t, bool> active_;
  uint32_t depth_ = 0;
};

}  // namespace bendc
