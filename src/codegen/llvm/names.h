// Symbol names: only [A-Za-z0-9_$], because the GPU's assembler refuses anything else. Other bytes become $hh; `.` becomes `_`.
// Example: "List.map~3" -> "List_map$7e3".
#pragma once
#include <string>
#include <string_view>

namespace bendc::codegen {
[[nodiscard]] std::string mangle(std::string_view name);
// The C name of an effect's handler: "file_open" and "File.open" -> "bend_eff_file_open".
[[nodiscard]] std::string handler_symbol(std::string_view effect);
}  // namespace bendc::codegen
