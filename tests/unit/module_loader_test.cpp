#include <doctest/doctest.h>

#include <map>

#include "frontend/module_loader.h"
#include "frontend/module_path.h"

using namespace bendc;

namespace {

struct Loaded {
  SourceMap sources;
  Interner names;
  LoadResult result;
  explicit Loaded(const std::map<std::string, std::string>& files, const std::string& entry = "/p/main.bend") {
    Stdlib stdlib;
    stdlib.base.push_back({"base/one.bend", "type U32 is Data: U32{}\n"});
    stdlib.base.push_back({"base/two.bend", "def two() -> U32: U32{}\n"});
    stdlib.modules.push_back({"Scan.bend", "import Base\ndef run() -> U32: two()\n"});
    FileReader reader{[&](const std::string& path, std::string& reason) -> std::optional<LoadedFile> {
      auto found = files.find(path);
      if (found == files.end()) {
        reason = path.ends_with("folder") ? "is a directory" : "no such file";
        return std::nullopt;
      }
      return LoadedFile{path, found->second};
    }};
    result = load_program(sources, names, entry, reader, stdlib);
  }
  std::string keys() const {
    std::string out;
    for (const Module& m : result.program.modules) out += (m.base ? "Base" : m.key.empty() ? "entry" : m.key) + " ";
    return out;
  }
  std::string first() const {
    if (result.diagnostics.size() == 0) return "";
    const Diagnostic& d = result.diagnostics.all()[0];
    return std::string(code_text(d.code)) + ": " + d.message;
  }
};

}  // namespace

TEST_CASE("module loader: Base first, imports before importers") {
  Loaded p({{"/p/main.bend", "import Base\nimport ./lib/a.bend as A\nimport Scan\nimport ../up.bend as Up\n"},
            {"/p/lib/a.bend", "import ../b.bend as B\nimport ../../up.bend as U\n"},
            {"/p/b.bend", ""},
            {"/up.bend", ""}});
  CHECK(p.first() == "");
  CHECK(p.keys() == "Base Base b ../up lib/a std/Scan entry ");
  const Module& entry = p.result.program.modules[p.result.program.entry];
  CHECK(entry.uses_base);
  REQUIRE(entry.aliases.size() == 3);
  CHECK(p.names.text(entry.aliases[1].alias) == "Scan");
  const Module& scan = p.result.program.modules[entry.aliases[1].module];
  CHECK(scan.display == "Scan");
  CHECK(scan.stdlib);
  CHECK(p.result.program.modules[entry.aliases[2].module].key == "../up");
}

TEST_CASE("module loader: P26 with its reason") {
  auto entry = [](const std::string& text, std::map<std::string, std::string> more = {}) {
    more["/p/main.bend"] = text;
    return Loaded(more).first();
  };
  CHECK(entry("import ./no.bend as N\n") == "P26: cannot import `./no.bend`: no such file");
  CHECK(entry("import ./no.txt as N\n") == "P26: the import path `./no.txt` does not end in .bend");
  CHECK(entry("import ./no as N\n") == "P26: the import path `./no` does not end in .bend");
  CHECK(entry("import ./a/../no.bend as N\n") == "P26: malformed import path `./a/../no.bend`");
  CHECK(entry("import Nope\n") == "P26: there is no standard library module `Nope`");
  CHECK(entry("import ./a.bend as A\nimport ./a.bend as A\n", {{"/p/a.bend", ""}}) == "P26: the alias `A` is taken by an import above");
  CHECK(entry("import ./a.bend as A\n", {{"/p/a.bend", "\xFF"}}) == "P26: cannot import `./a.bend`: not UTF-8 at byte 0");
  CHECK(entry("import ./a.bend as A\n", {{"/p/a.bend", "import ./b.bend as B\n"}, {"/p/b.bend", "import ./a.bend as A\n"}}) == "P26: import cycle: `/p/a.bend` -> `/p/b.bend` -> `/p/a.bend`");
  CHECK(entry("import ./main.bend as A\n") == "P26: import cycle: `/p/main.bend` -> `/p/main.bend`");
  CHECK(entry("import ./folder as F\n") == "U1: folder imports are not supported yet: `./folder`");
  CHECK(entry("import 0x12/x.bend as F\n") == "U1: package imports are not supported yet: `0x12/x.bend`");
  CHECK(entry("import name@1.0.0.0/x.bend as F\n") == "U1: package imports are not supported yet: `name@1.0.0.0/x.bend`");
}

TEST_CASE("module loader: an unreadable entry is one I1") {
  CHECK(Loaded({}).first() == "I1: cannot read `/p/main.bend`: no such file");
  CHECK(Loaded({{"/p/x.txt", ""}}, "/p/x.txt").first() == "I1: `/p/x.txt` is not a .bend file");
  Loaded bad(std::map<std::string, std::string>{{"/p/main.bend", "abc\xC3("}});
  CHECK(bad.first() == "I1: cannot read `/p/main.bend`: not UTF-8 at byte 3");
  CHECK_FALSE(bad.result.entry_readable);
}

TEST_CASE("module loader: a long chain of imports needs no stack") {
  std::map<std::string, std::string> files;
  for (int i = 0; i < 20000; ++i) files["/p/m" + std::to_string(i) + ".bend"] = "import ./m" + std::to_string(i + 1) + ".bend as N\n";
  files["/p/m20000.bend"] = "";
  Loaded p(files, "/p/m0.bend");
  CHECK(p.first() == "");
  CHECK(p.result.program.modules.size() == 20001);
}

TEST_CASE("module paths") {
  CHECK(classify_import("./a/b-c.bend") == ImportPath::File);
  CHECK(classify_import("../../a.bend") == ImportPath::File);
  CHECK(classify_import("/abs/a.bend") == ImportPath::File);
  CHECK(classify_import("a.bend") == ImportPath::File);
  CHECK(classify_import("./a.b.bend") == ImportPath::OtherSuffix);
  CHECK(classify_import("./1a.bend") == ImportPath::Malformed);
  CHECK(classify_import("./a//b.bend") == ImportPath::Malformed);
  CHECK(classify_import("./") == ImportPath::Malformed);
  CHECK(join_path("a/b/", "../c.bend") == "a/c.bend");
  CHECK(join_path("", "../../c.bend") == "../../c.bend");
  CHECK(join_path("/a/", "/x/y.bend") == "/x/y.bend");
  CHECK(join_path("/", "../y.bend") == "/y.bend");
  CHECK(key_of("/p/lib/vec.bend", "/p/") == "lib/vec");
  CHECK(key_of("/q/vec.bend", "/p/r/") == "../../q/vec");
}
