// bendc-elab: runs the front end up to elaboration on files and prints what it says, one diagnostic a line; a developer's tool.
//   bendc-elab STDLIB_DIR [--dump] [--time] FILE...
// Exit status 1 when a file has errors.
#include <ctime>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <sstream>

#include "checker/elaborate.h"
#include "frontend/file_reader.h"

namespace {

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// CPU time: the machine may be busy with other work.
double seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  std::string dir = argv[1];
  std::deque<std::string> texts;
  bendc::Stdlib stdlib;
  std::istringstream order(read(dir + "/base/ORDER"));
  for (std::string name; order >> name;) {
    texts.push_back(read(dir + "/base/" + name));
    stdlib.base.push_back({"base/" + name, texts.back()});
  }
  bool dump = false, time = false;
  int status = 0;
  for (int i = 2; i < argc; ++i) {
    if (std::strcmp(argv[i], "--dump") == 0) { dump = true; continue; }
    if (std::strcmp(argv[i], "--time") == 0) { time = true; continue; }
    bendc::SourceMap sources;
    bendc::Interner names;
    double t0 = seconds();
    bendc::LoadResult loaded = bendc::load_program(sources, names, argv[i], bendc::disk_reader(), stdlib);
    double t1 = seconds();
    bendc::Diagnostics all = loaded.diagnostics;
    bool parsed = !all.has_errors();
    bendc::ElaborateResult result;
    if (loaded.entry_readable) result = bendc::elaborate(loaded.program, sources, names);
    double t2 = seconds();
    for (const bendc::Diagnostic& d : result.diagnostics.all()) {
      if (parsed || bendc::code_text(d.code)[0] == 'P') all.add(d.code, d.span, d.message).fix = d.fix;
    }
    if (time) {
      size_t lines = 0;
      for (uint32_t f = 0; f < sources.size(); ++f) lines += sources[bendc::FileId(f)].line_starts.size();
      std::printf("%s: %zu lines, load %.1f ms, elaborate %.1f ms, %u terms\n", argv[i], lines, (t1 - t0) * 1e3, (t2 - t1) * 1e3, result.book.terms.size());
    }
    for (const bendc::Diagnostic& d : all.all()) {
      std::string where = argv[i];
      if (d.span.valid()) where = sources[d.span.file].path + ":" + std::to_string(sources.locate(d.span.file, d.span.offset).line) + ":" + std::to_string(sources.locate(d.span.file, d.span.offset).column);
      std::printf("%s: %s %s%s%s\n", where.c_str(), std::string(bendc::code_text(d.code)).c_str(), d.message.c_str(), d.fix.empty() ? "" : "; ", d.fix.c_str());
    }
    if (dump) std::fputs(bendc::core::print_book(result.book, names).c_str(), stdout);
    if (all.has_errors()) status = 1;
  }
  return status;
}
