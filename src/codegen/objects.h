// The self-describing objects of a program, numbered: closures by function and number of captures, boxes by type. The number is in the
// object's header; it indexes the table that generated code gives the runtime, and it is the constructor index that device code sees
// (gpu/defunctionalise.h), so both sides must number alike. Requests come after these and exist on the host only.
#pragma once
#include <map>
#include <vector>

#include "codegen/flow.h"

namespace bendc::flow {

struct ObjectShape {
  FuncId func;                     // closure: its function; a box has none
  uint32_t captures = 0;
  TypeId content;                  // box
};

struct ObjectTable {
  std::vector<ObjectShape> shapes;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> closures;   // by function and captures
  std::map<uint32_t, uint32_t> boxes;                           // by type
};

[[nodiscard]] ObjectTable number_objects(const Module& module);

}  // namespace bendc::flow
