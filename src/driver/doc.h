// What the library's comments say: a library name -> the comment above its declaration and its signature, out of the embedded sources; then the
// names that start with it and a dot.
#pragma once
#include <optional>
#include <string>

#include "frontend/module_loader.h"

namespace bendc {

// Every declaration of the library with the first sentence of its comment, or `(no comment)`.
[[nodiscard]] std::string list_documentation(const Stdlib& stdlib);
[[nodiscard]] std::optional<std::string> find_documentation(const Stdlib& stdlib, std::string_view name);

}  // namespace bendc
