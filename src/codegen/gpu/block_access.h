// block_access: whether a leaf of a perfect tree touches an array only within a block of its own, so that the leaves of two trees can take turns.
//
//   leaf(i, e, a)   slots [i << e, (i + 1) << e) of a, i the leaf's number: by a[i << e], and by loops that count 2^e, or 2^e - 1 after the first slot, down to 0
//                   while an index goes up from i << e by one
//
// In: a function and terms for its parameters. Out: the arrays touched and the block's first slot as terms, or why that is not known.
#pragma once
#include <functional>
#include <set>
#include <string>

#include "codegen/gpu/symbolic_terms.h"

namespace bendc {

struct BlockRules {
  bool may_write = false;                           // within the block; otherwise what is read lies there, and nothing is written
  std::function<bool(uint32_t)> is_number;          // terms that are a leaf's number
  std::function<bool(uint32_t)> is_fixed;           // terms that are the same in every leaf
  std::function<bool(uint32_t)> is_array;           // arrays that may be touched
};

struct BlockAccess {
  std::string why;                                  // empty: it does
  std::optional<uint32_t> first;                    // the block's first slot, a shift of the number by `log2`; none: nothing touched
  uint32_t log2 = 0;                                // of the block's slots: a term
  std::set<uint32_t> arrays;                        // terms: those of the block
  std::set<uint32_t> touched;                       // all arrays, by terms
  bool strict = true;                               // all accesses are gets, sets and swaps within the block, those that may lie elsewhere too
};

[[nodiscard]] BlockAccess block_access(const flow::Module& module, Terms& terms, flow::FuncId leaf, const BlockRules& rules);

}  // namespace bendc
