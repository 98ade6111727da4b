// Internal errors: a broken invariant of the compiler itself, never the user's fault. Says what broke and ends the process with status 70.
#pragma once
#include <string_view>

namespace bendc {
[[noreturn]] void internal_error(std::string_view where, std::string_view what);
}  // namespace bendc
