#include "support/internal.h"

#include <cstdio>
#include <cstdlib>

namespace bendc {

void internal_error(std::string_view where, std::string_view what) {
  std::fprintf(stderr, "bendc: internal error in %.*s: %.*s\n", static_cast<int>(where.size()), where.data(), static_cast<int>(what.size()), what.data());
  std::fflush(nullptr);
  std::_Exit(70);
}

}  // namespace bendc
