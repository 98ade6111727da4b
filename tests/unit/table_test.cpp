#include <doctest/doctest.h>

#include "support/table.h"

using namespace bendc;

namespace {
struct RowTag;
using RowId = Id<RowTag>;
}  // namespace

TEST_CASE("a table in blocks: rows stay where they are, across blocks and after clear") {
  BlockTable<RowId, uint32_t> table;
  const RowId first = table.add(7);
  const uint32_t* row = &table[first];
  for (uint32_t i = 1; i < 10000; ++i) CHECK(table.add(3 * i).index == i);
  CHECK(&table[first] == row);
  for (uint32_t i = 1; i < 10000; ++i) REQUIRE(table[RowId(i)] == 3 * i);
  CHECK(table.size() == 10000);
  table.clear();
  CHECK(table.size() == 0);
  for (uint32_t i = 0; i < 5000; ++i) CHECK(table.add(i + 1).index == i);
  CHECK(table[RowId(4999)] == 5000);
}
