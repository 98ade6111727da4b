// tree_paths: what the levels of a perfect tree (perfect_trees.h) do to its arguments and results, where that has a closed form, so that a thread knows the
// arguments of its leaf without going down to it.
//
//   step of f(d, i, s) with the children f(d - 1, i * 2, s) and f(d - 1, i * 2 + 1, s):  after `steps` levels along `path`: d - steps, (i << steps) + path, s
//
// In: f@step, f@post. Out: a form for each word of f's parameters; whether a node's result is its left child's.
#pragma once
#include <optional>
#include <vector>

#include "codegen/flow.h"
#include "codegen/gpu/symbolic_terms.h"

namespace bendc {

struct PathForm {
  enum class Kind : uint8_t {
    Copy,      // the parameter word `left` after a first step to the left, `right` after one to the right; later steps change nothing
    Depth,     // less `steps`
    Number,    // * 2^steps + path
    Spread,    // + path * factor * 2^(depth - steps)
  } kind = Kind::Copy;
  uint32_t left = 0, right = 0;
  uint32_t factor = 1;
};

// What step gives its left and its right child, by word. The parameters but the last one have terms already.
struct StepWords {
  Terms::Words left, right;
};
[[nodiscard]] std::optional<StepWords> step_words(const flow::Module& module, Terms& terms, flow::FuncId step);

// By word of the parameters, without the last one (which child); none: no closed form. `measure`: the depth's parameter.
[[nodiscard]] std::vector<std::optional<PathForm>> word_forms(const flow::Module& module, flow::FuncId step, uint32_t measure);
// Of all words; empty: some word has none.
[[nodiscard]] std::vector<PathForm> path_forms(const flow::Module& module, flow::FuncId step, uint32_t measure);

// post(left, right) is `left`, and what it does with `right` is at most to count an array handle down.
[[nodiscard]] bool gives_left(const flow::Module& module, flow::FuncId post);

}  // namespace bendc
