// Which values can be reached by two workers at once, so that their counts must change atomically while others run: everything reachable
// from the arguments and results of forks. In: a Flow module. Out: a mark per type and datatype, and one for all objects (closures and
// any-boxes), since what an object holds is known only at run time. Also which functions reach a fork: only those have a sequential clone.
#pragma once
#include <vector>

#include "codegen/flow.h"

namespace bendc::flow {

struct Crossing {
  std::vector<bool> types, datas;
  bool objects = false;
};
[[nodiscard]] Crossing find_crossing(const Module& module);

// Functions that contain a fork or call one that does, by direct calls.
[[nodiscard]] std::vector<bool> find_forking(const Module& module);

}  // namespace bendc::flow
