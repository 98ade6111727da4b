// find_documentation: a library name -> the comment above its declaration and its signature, out of the embedded sources.
#pragma once
#include <optional>
#include <string>

#include "frontend/module_loader.h"

namespace bendc {

[[nodiscard]] std::optional<std::string> find_documentation(const Stdlib& stdlib, std::string_view name);

}  // namespace bendc
