// Fuzz target: any bytes through the lexer and the parser, their diagnostics through both renderers. Nothing may crash, hang or eat memory.
#include "frontend/parser.h"
#include "support/render.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace bendc;
  SourceMap sources;
  Interner names;
  FileId file = sources.add("fuzz.bend", std::string(reinterpret_cast<const char*>(data), size));
  ParseResult result = parse(sources, file, names);
  result.diagnostics.sort(sources);
  (void)render_text(result.diagnostics, sources, RenderOptions{});
  (void)render_json(result.diagnostics, sources);
  return 0;
}
