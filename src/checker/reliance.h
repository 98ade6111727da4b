// Reliance on unsafe code (language.md 7): which user declarations are @unsafe or foreign, or name one that is, directly or through
// others. Modules of the standard library are trusted: only Base's own @unsafe defs count, where a user names them.
// In: the checked Book. Out: user defs in declaration order.
#pragma once
#include <vector>

#include "checker/core.h"

namespace bendc {

[[nodiscard]] std::vector<core::DefId> relies_on_unsafe(const core::Book& book);

}  // namespace bendc
