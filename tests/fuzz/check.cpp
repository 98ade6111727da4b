// Any bytes through the front end and the checker, as `bendc check` takes them: accepted, or refused with a diagnostic. The book of an accepted file
// prints. The limits are small, so that a run which reaches one is short.
#include "checker/book.h"
#include "checker/core.h"
#include "checker/elaborate.h"
#include "driver/stdlib_data.h"
#include "fuzz/targets.h"
#include "support/render.h"

namespace bendc::fuzz {

void check_input(std::string_view bytes) {
  FileReader reader;
  reader.read = [&](const std::string& path, std::string& reason) -> std::optional<LoadedFile> {
    if (path == "fuzz.bend") return LoadedFile{path, std::string(bytes)};
    reason = "no such file";
    return std::nullopt;
  };
  // The files of Base that most programs need: with all of it a run would mostly check Base.
  Stdlib stdlib = embedded_stdlib();
  constexpr size_t kBaseFiles = 6;
  if (stdlib.base.size() > kBaseFiles) stdlib.base.resize(kBaseFiles);
  SourceMap sources;
  Interner names;
  LoadResult loaded = load_program(sources, names, "fuzz.bend", reader, stdlib);
  auto render = [&](Diagnostics& diagnostics) {
    diagnostics.sort(sources);
    (void)render_text(diagnostics, sources, {});
  };
  render(loaded.diagnostics);
  if (loaded.diagnostics.has_errors()) return;
  ElaborateResult elaborated = elaborate(loaded.program, sources, names);
  render(elaborated.diagnostics);
  if (elaborated.diagnostics.has_errors()) return;
  CheckOptions options;
  options.stack = size_t{2} << 20;
  options.memory = size_t{1} << 26;
  CheckResult checked = check_book(elaborated.book, sources, names, options);
  render(checked.diagnostics);
  if (!checked.diagnostics.has_errors()) (void)core::print_book(elaborated.book, names);
}

}  // namespace bendc::fuzz
