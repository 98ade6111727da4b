// bendc-lower: load, elaborate, check and lower each file given; verify the Flow module, and its form after every pass with --passes.
// Prints one line a file, the Flow text with --print. The library is read from --stdlib DIR. Exit status 1 when any file fails.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "checker/book.h"
#include "checker/elaborate.h"
#include "codegen/flow_text.h"
#include "codegen/flow_verify.h"
#include "codegen/from_core.h"
#include "codegen/passes.h"
#include "frontend/file_reader.h"
#include "frontend/module_loader.h"

namespace {

std::string read(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

}  // namespace

int main(int argc, char** argv) {
  using namespace bendc;
  std::string stdlib_dir = "stdlib";
  bool print = false, passes = false;
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--stdlib" && i + 1 < argc) stdlib_dir = argv[++i];
    else if (arg == "--print") print = true;
    else if (arg == "--passes") passes = true;
    else files.push_back(arg);
  }
  std::vector<std::pair<std::string, std::string>> texts;
  std::istringstream order(read(stdlib_dir + "/base/ORDER"));
  for (std::string line; std::getline(order, line);)
    if (!line.empty() && line[0] != '#') texts.emplace_back("base/" + line, read(stdlib_dir + "/base/" + line));
  Stdlib stdlib;
  for (const auto& [name, text] : texts) stdlib.base.push_back({name, text});
  bool failed = false;
  for (const std::string& file : files) {
    SourceMap sources;
    Interner names;
    std::string verdict = "ok";
    auto report = [&](const Diagnostics& diagnostics, std::string_view phase) {
      for (const Diagnostic& d : diagnostics.all()) {
        if (severity_of(d.code) != Severity::Error) continue;
        verdict = fmt::format("{}: {} {}", phase, code_text(d.code), d.message);
        if (d.span.valid()) verdict += fmt::format(" at {}:{}", sources[d.span.file].path, sources.locate(d.span.file, d.span.offset).line);
        return true;
      }
      return false;
    };
    std::string text;
    do {
      LoadResult loaded = load_program(sources, names, file, disk_reader(), stdlib);
      if (report(loaded.diagnostics, "load")) break;
      ElaborateResult elaborated = elaborate(loaded.program, sources, names);
      if (report(elaborated.diagnostics, "elaborate")) break;
      CheckResult checked = check_book(elaborated.book, sources, names, CheckOptions{});
      if (report(checked.diagnostics, "check")) break;
      LowerResult lowered = lower(elaborated.book, sources, names);
      if (report(lowered.diagnostics, "lower")) break;
      if (lowered.needs_normalise) { verdict = "needs normalise"; break; }
      if (print && !passes) text = flow::print_module(lowered.module);
      if (std::string bad = flow::verify(lowered.module); !bad.empty()) { verdict = "verify: " + bad; break; }
      if (passes) {
        PassReport ran = run_passes(lowered.module, PassOptions{});
        if (!ran.internal_error.empty()) verdict = "passes: " + ran.internal_error;
        if (print) text = flow::print_module(lowered.module);
      }
      if (verdict == "ok") verdict = fmt::format("ok ({} functions, {} nodes)", lowered.module.funcs.size(), lowered.module.nodes.size());
    } while (false);
    failed |= !verdict.starts_with("ok");
    fmt::print("{}{}: {}\n", text, file, verdict);
    std::fflush(stdout);
  }
  return failed ? 1 : 0;
}
