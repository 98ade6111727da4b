// Compares a dump with a case's `#?` lines: each `#?` text must be part of a line, in order; a `#?!` text must be in no line between its neighbours.
#pragma once
#include "case.h"

namespace bendc::tests {

[[nodiscard]] std::vector<std::string> match_dump(const DumpCheck& check, std::string_view dump);

}  // namespace bendc::tests
