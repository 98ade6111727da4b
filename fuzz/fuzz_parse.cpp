// libFuzzer target: any bytes must parse, print and render without a crash, and every span must lie inside the text.
// clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -Isrc fuzz/fuzz_parse.cpp src/support/*.cpp <frontend parser files> -lfmt
#include <cstdlib>

#include "frontend/ast_print.h"
#include "frontend/parser.h"
#include "support/render.h"

using namespace bendc;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  SourceMap sources;
  Interner names;
  FileId file = sources.add("fuzz.bend", std::string(reinterpret_cast<const char*>(data), size));
  ParseResult result = parse(sources, file, names);
  size_t length = sources[file].text.size();
  auto inside = [&](Span span) {
    if (span.valid() && span.end() > length) std::abort();
  };
  for (const ast::Node& node : result.ast.nodes) {
    inside(node.span);
    inside(node.name_span);
  }
  for (const Diagnostic& d : result.diagnostics.all()) inside(d.span);
  // Without diagnostics no part may be missing.
  if (result.diagnostics.size() == 0)
    for (const ast::Node& node : result.ast.nodes)
      if (node.kind == ast::Kind::Error) std::abort();
  (void)print_ast(result.ast, names);
  (void)render_text(result.diagnostics, sources, {});
  (void)render_json(result.diagnostics, sources);
  return 0;
}
