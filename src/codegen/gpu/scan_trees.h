// find_scan_trees: two perfect trees (perfect_trees.h) one after the other that are a scan, so that one grid can run both in one pass over memory.
//
//   table = array.new(d, 0)
//   total = sums(d, i, .., table)         a node: table[m] = the left half's value, and gives left + right
//   scan(d, i, base, .., table)           a node: the left half gets base, the right one base + table[m]
//
// Leaf k of the second tree needs the value of all leaves before k of the first, which a grid finds out as it goes along; then no table is needed. + is any
// operation on U32 that is exact, associative and commutative. Two leaves of different numbers must not meet in any other way: those of the first tree only
// read, those of the second write only slots that no other leaf of the first reads (block_access.h).
//
// In: a device module before any cut, and its perfect trees. Out: a function of both calls in place of the two, with a body of the two calls as they stood, so that it
// may still run any other way; and what the grid needs. A pair that is none has a reason.
#pragma once
#include <string>
#include <vector>

#include "codegen/flow.h"
#include "codegen/gpu/perfect_trees.h"

namespace bendc {

struct ScanTree {
  static constexpr uint32_t kTable = 0xFFFFFFFFu;
  std::string why;                        // when it is none; only the trees are known then
  uint32_t first = 0, second = 0;         // indices of perfect trees
  flow::FuncId func;                      // of both calls; gives the first tree's value
  flow::Prim op{};
  uint32_t identity = 0;                  // of op
  uint32_t base = 0;                      // word of the second tree's arguments
  std::vector<PathForm> second_paths;     // of its other words; base's own: stays as it is
  // By word of a tree's arguments: the word of func's arguments that it starts from, or kTable.
  std::vector<uint32_t> first_words, second_words;
  // Leaves take turns in blocks of 2^log2 slots of these arrays, words of func's arguments: 2^(depth + log2) slots at least.
  std::vector<uint32_t> arrays;
  uint32_t log2_word = kTable;            // word of func's arguments; kTable: a constant
  uint32_t log2 = 0;
  // The word of the one array that both trees' leaves touch, nowhere but in their blocks, and the word of the first tree's arguments that is a leaf's number there.
  // Such blocks may lie elsewhere while a leaf of either tree runs. kTable: there is none, or its slots are not of four bytes.
  uint32_t kept = kTable, number_word = kTable;
};

[[nodiscard]] std::vector<ScanTree> find_scan_trees(flow::Module& module, const std::vector<PerfectTree>& trees, const std::vector<bool>& reachable);

}  // namespace bendc
