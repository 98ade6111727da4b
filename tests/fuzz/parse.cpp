// Any bytes must parse, print and render; every span lies inside the text, and without diagnostics no part of the tree is missing.
#include "frontend/parser.h"

#include <cstdlib>

#include "frontend/ast_print.h"
#include "fuzz/targets.h"
#include "support/render.h"

namespace bendc::fuzz {

void parse_input(std::string_view bytes) {
  SourceMap sources;
  Interner names;
  const FileId file = sources.add("fuzz.bend", std::string(bytes));
  ParseResult result = parse(sources, file, names);
  const size_t length = sources[file].text.size();
  auto inside = [&](Span span) {
    if (span.valid() && span.end() > length) std::abort();
  };
  for (const ast::Node& node : result.ast.nodes) {
    inside(node.span);
    inside(node.name_span);
    if (result.diagnostics.size() == 0 && node.kind == ast::Kind::Error) std::abort();
  }
  for (const Diagnostic& d : result.diagnostics.all()) inside(d.span);
  (void)print_ast(result.ast, names);
  result.diagnostics.sort(sources);
  (void)render_text(result.diagnostics, sources, {});
  (void)render_json(result.diagnostics, sources);
}

}  // namespace bendc::fuzz
