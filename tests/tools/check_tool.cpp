// bendc-check-tool: the front end and the checker alone, on many files; a developer's tool.
//   bendc-check-tool STDLIB_DIR [--safe] [--time] [--text] [--diagnostics=json] [--normalise] [--cases] FILE...
// With --cases the first error must be what the file's `#! error CODE LINE` says, and a file without one must have none.
#include <pthread.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <sstream>

#include "checker/book.h"
#include "checker/elaborate.h"
#include "checker/normalise.h"
#include "frontend/file_reader.h"
#include "support/render.h"

namespace {

constexpr size_t kStack = size_t{512} << 20;

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

double milliseconds() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Job {
  int argc;
  char** argv;
  int status = 0;
};

void run(Job& job) {
  const std::string dir = job.argv[1];
  std::deque<std::string> texts;
  bendc::Stdlib stdlib;
  std::istringstream order(read(dir + "/base/ORDER"));
  for (std::string name; order >> name;) {
    texts.push_back(read(dir + "/base/" + name));
    stdlib.base.push_back({"base/" + name, texts.back()});
  }
  for (const char* name : {"Scan.bend"}) {
    texts.push_back(read(dir + "/" + name));
    if (!texts.back().empty()) stdlib.modules.push_back({name, texts.back()});
  }
  bool safe = false, time = false, cases = false, text = false, normal = false, json = false;
  int passed = 0, failed = 0;
  for (int i = 2; i < job.argc; ++i) {
    const std::string arg = job.argv[i];
    if (arg == "--safe") { safe = true; continue; }
    if (arg == "--time") { time = true; continue; }
    if (arg == "--cases") { cases = true; continue; }
    if (arg == "--diagnostics=json") { json = true; continue; }
    if (arg == "--text") { text = true; continue; }
    if (arg == "--normalise") { normal = true; continue; }
    bendc::SourceMap sources;
    bendc::Interner names;
    const double t0 = milliseconds();
    bendc::LoadResult loaded = bendc::load_program(sources, names, arg, bendc::disk_reader(), stdlib);
    const double t1 = milliseconds();
    bendc::Diagnostics all = std::move(loaded.diagnostics);
    bendc::ElaborateResult elaborated;
    const bool parsed = !all.has_errors();
    if (parsed && loaded.entry_readable) elaborated = bendc::elaborate(loaded.program, sources, names);
    if (parsed) all.append(std::move(elaborated.diagnostics));
    const double t2 = milliseconds();
    const bool b3 = arg.find("/b3_") != std::string::npos;
    if (!all.has_errors() && loaded.entry_readable) {
      bendc::CheckOptions options;
      options.safe = safe || b3;
      options.stack = kStack - (size_t{16} << 20);
      bendc::CheckResult result = bendc::check_book(elaborated.book, sources, names, options);
      if (normal && result.verdict.clean && elaborated.book.main.valid()) {
        bendc::NormaliseResult n = bendc::normalise(elaborated.book, names, elaborated.book.main, {.stack = options.stack});
        std::printf("%s\n", n.text.c_str());
      }
      if (!cases && !result.verdict.relies_on_unsafe.empty()) {
        std::printf("relies on unsafe:");
        for (bendc::core::DefId d : result.verdict.relies_on_unsafe) std::printf(" %s", std::string(names.text(elaborated.book.defs[d].name)).c_str());
        std::printf("\n");
      }
      all.append(std::move(result.diagnostics));
    }
    const double t3 = milliseconds();
    all.sort(sources);
    if (time) {
      size_t lines = 0;
      for (uint32_t f = 0; f < sources.size(); ++f) lines += sources[bendc::FileId(f)].line_starts.size();
      std::printf("%s: %zu lines, load %.1f ms, elaborate %.1f ms, check %.1f ms (%.0f lines/s), %u terms\n", arg.c_str(), lines, t1 - t0, t2 - t1, t3 - t2,
                  static_cast<double>(lines) / (t3 - t2) * 1e3, elaborated.book.terms.size());
    }
    if (cases) {
      std::string code, want;
      std::istringstream in(read(arg));
      for (std::string line; std::getline(in, line);) {
        if (line.rfind("#! error ", 0) == 0) want = line.substr(9);
      }
      std::string got;
      for (const bendc::Diagnostic& d : all.all()) {
        if (bendc::severity_of(d.code) != bendc::Severity::Error) continue;
        got = std::string(bendc::code_text(d.code)) + " " + (d.span.valid() ? std::to_string(sources.locate(d.span.file, d.span.offset).line) : std::string("-"));
        break;
      }
      if (got == want) {
        ++passed;
        continue;
      }
      ++failed;
      std::printf("FAIL %s: want [%s] got [%s]\n", arg.c_str(), want.c_str(), got.c_str());
    }
    if (json) std::fputs(bendc::render_json(all, sources).c_str(), stderr);
    else if (!cases || text) std::fputs(bendc::render_text(all, sources, {}).c_str(), stdout);
    if (all.has_errors()) job.status = 1;
  }
  if (cases) {
    std::printf("%d passed, %d failed\n", passed, failed);
    job.status = failed != 0;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  Job job{argc, argv};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStack);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, [](void* p) -> void* { run(*static_cast<Job*>(p)); return nullptr; }, &job) != 0) return 2;
  pthread_join(thread, nullptr);
  return job.status;
}
