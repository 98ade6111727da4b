// Functions whose dead nodes nobody needs: while they run and after they have returned, no node is made, so the memory of those that they take apart is never
// taken again. It goes with the call. Giving it to a free list is a store into the node, which a device pays for with what its first cache held of the
// nodes around it: a fold of a tree reads each line several times over.
// In: a device module in cut form. Out: by function; none that was made for a perfect tree's grid, which no call names.
#pragma once
#include <vector>

#include "codegen/gpu/segments.h"

namespace bendc {

[[nodiscard]] std::vector<bool> find_last_frees(const DeviceModule& device);

}  // namespace bendc
