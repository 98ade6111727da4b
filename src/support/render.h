// Diagnostics as text for a terminal (three-line excerpt with carets, UTF-8 aware columns) and as JSON (one object a line).
#pragma once
#include <string>

#include "support/diagnostic.h"

namespace bendc {

struct RenderOptions {
  bool color = false;
  size_t max_shown = 20;   // then one line says how many more there are
};

[[nodiscard]] std::string render_text(const Diagnostics& bag, const SourceMap& sources, const RenderOptions& options);
[[nodiscard]] std::string render_json(const Diagnostics& bag, const SourceMap& sources);

}  // namespace bendc
