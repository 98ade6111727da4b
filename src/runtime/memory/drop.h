// Giving up and sharing references from inside the runtime, by the layouts of abi.h. Drops use no stack: however long the list or deep the
// tree, the links of the walk stand in the dying nodes themselves.
#pragma once
#include "runtime/abi.h"

namespace bendc::rt {

// One more reference to every counted word of the value at `place`.
void dup_value(BendWorker* worker, const BendLayout* layout, char* place);
// Gives up every counted word of the value at `place`; its own memory stays.
void drop_value(BendWorker* worker, const BendLayout* layout, char* place);

[[nodiscard]] uint64_t array_bytes(uint32_t log2, const BendLayout* element);

}  // namespace bendc::rt
