#include <doctest/doctest.h>

#include <map>

#include "frontend/module_loader.h"
#include "frontend/module_path.h"
#include "frontend/packages.h"
#include "support/sha256.h"

using namespace bendc;

namespace {

// Folders are what the paths of the files imply; packages lie in /lib.
FileReader virtual_reader(const std::map<std::string, std::string>& files) {
  FileReader reader;
  reader.packages = "/lib";
  reader.read = [files](const std::string& path, std::string& reason) -> std::optional<LoadedFile> {
    if (auto found = files.find(path); found != files.end()) return LoadedFile{path, found->second};
    auto inside = files.lower_bound(path + "/");
    reason = inside != files.end() && inside->first.starts_with(path + "/") ? "is a directory" : "no such file";
    return std::nullopt;
  };
  reader.list = [files](const std::string& path, std::string&) -> std::optional<std::vector<FolderEntry>> {
    std::vector<FolderEntry> out;
    for (auto file = files.lower_bound(path + "/"); file != files.end() && file->first.starts_with(path + "/"); ++file) {
      const std::string rest = file->first.substr(path.size() + 1);
      const std::string name = rest.substr(0, rest.find('/'));
      if (out.empty() || out.back().name != name) out.push_back({name, name != rest});
    }
    return out;
  };
  return reader;
}

struct Loaded {
  SourceMap sources;
  Interner names;
  LoadResult result;
  explicit Loaded(const std::map<std::string, std::string>& files, const std::string& entry = "/p/main.bend") {
    Stdlib stdlib;
    stdlib.base.push_back({"base/one.bend", "type U32 is Data: U32{}\n"});
    stdlib.base.push_back({"base/two.bend", "def two() -> U32: U32{}\n"});
    stdlib.modules.push_back({"Scan.bend", "import Base\ndef run() -> U32: two()\n"});
    result = load_program(sources, names, entry, virtual_reader(files), stdlib);
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
  CHECK(entry("import ./folder as F\n", {{"/p/folder/x.txt", ""}}) == "P26: the folder `./folder` has no .bend file directly inside");
  CHECK(entry("import ./folder as F\n", {{"/p/folder/deep/x.bend", ""}}) == "P26: the folder `./folder` has no .bend file directly inside");
  CHECK(entry("import ./none as F\n") == "P26: the import path `./none` does not end in .bend");
  CHECK(entry("import 0x12/x.bend as F\n") == "P26: malformed package import `0x12/x.bend`");
  CHECK(entry("import Name@1.0.0.0/x.bend as F\n") == "P26: malformed package import `Name@1.0.0.0/x.bend`");
  CHECK(entry("import name@1.0.0/x.bend as F\n") == "P26: malformed package import `name@1.0.0/x.bend`");
  CHECK(entry("import name@1.0.0.0/../x.bend as F\n") == "P26: malformed package import `name@1.0.0.0/../x.bend`");
  CHECK(entry("import name@1.0.0.0/x.bend as F\n") == "P26: the package `name@1.0.0.0` is not known here");
  CHECK(entry("import name@1.0.0.0/x.bend as F\n", {{"/lib/name@1.0.0.0", "0xnothing\n"}}) == "P26: the file `/lib/name@1.0.0.0` does not hold a package's name");
  CHECK(entry("import 0x00000000000000000000000000000000/x.bend as F\n") == "P26: the package `0x00000000000000000000000000000000` is not in the folder of packages");
}

TEST_CASE("module loader: a folder is all of its files under one alias") {
  Loaded p({{"/p/main.bend", "import ./lib as L\nimport ./lib/b.bend as B\n"},
            {"/p/lib/b.bend", "import ./a.bend as A\n"},
            {"/p/lib/a.bend", ""},
            {"/p/lib/notes.txt", "not a program"},
            {"/p/lib/deep/c.bend", "neither is this: it is not directly inside"}});
  CHECK(p.first() == "");
  CHECK(p.keys() == "lib/a lib/b entry ");
  const Module& entry = p.result.program.modules[p.result.program.entry];
  REQUIRE(entry.aliases.size() == 3);
  CHECK(entry.aliases[0].alias == entry.aliases[1].alias);
  const std::map<std::string, std::string> cycle{{"/p/main.bend", "import ./lib as L\n"}, {"/p/lib/a.bend", "import ../lib as All\n"}};
  CHECK(Loaded(cycle).first() == "P26: import cycle: `/p/lib/a.bend` -> `/p/lib/a.bend`");
}

TEST_CASE("module loader: packages are verified and stay inside") {
  const std::map<std::string, std::string> package{{"/q/list.bend", "import ./sub/one.bend as One\n"}, {"/q/sub/one.bend", "# one\n"}};
  const std::string hash = package_hash(virtual_reader(package), "/q").hash;
  REQUIRE(is_package_hash(hash));
  auto with = [&](std::string main, std::map<std::string, std::string> more = {}) {
    std::map<std::string, std::string> files = std::move(more);
    files.emplace("/p/main.bend", std::move(main));
    for (const auto& [path, text] : package) files.emplace("/lib/" + hash + path.substr(2), text);
    return Loaded(files);
  };
  Loaded p = with("import " + hash + "/list.bend as L\nimport sort@1.0.0.0/list.bend as M\n", {{"/lib/sort@1.0.0.0", hash + "\n"}});
  CHECK(p.first() == "");
  CHECK(p.keys() == hash + "/sub/one " + hash + "/list entry ");
  CHECK(with("import " + hash + "/none.bend as L\n").first() == "P26: cannot import `" + hash + "/none.bend`: no such file");
  CHECK(with("import " + hash + "/list.bend as L\n", {{"/lib/" + hash + "/more.bend", ""}}).first() == "P26: the files of the package `" + hash + "` are not the ones it is named after");

  const std::map<std::string, std::string> leaving{{"/q/a.bend", "import ../out.bend as Out\n"}};
  const std::string leaves = package_hash(virtual_reader(leaving), "/q").hash;
  const std::map<std::string, std::string> outside{{"/p/main.bend", "import " + leaves + "/a.bend as A\n"}, {"/lib/" + leaves + "/a.bend", leaving.at("/q/a.bend")}, {"/lib/out.bend", ""}};
  Loaded out(outside);
  CHECK(out.first() == "P26: `../out.bend` lies outside the package `" + leaves + "`");
}

TEST_CASE("sha256 of known texts") {
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_hex(std::string(119, 'b')) == "68297a9eb141ce16bbc0847da1c0c48e2858704feaa13993bde29f87a198a6e1");
  CHECK(sha256_hex(std::string(200, 'a')) == "c2a908d98f5df987ade41b5fce213067efbcc21ef2240212a41e54b5e7c28ae5");
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
