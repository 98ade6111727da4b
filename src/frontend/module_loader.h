// load_program: the entry path -> every file of the program parsed, in checking order (Base first, then imports before importers).
// The only frontend piece that reads files; it does so through FileReader so that tests can give virtual files.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "frontend/ast.h"
#include "support/diagnostic.h"

namespace bendc {

struct ModuleTag;
using ModuleId = Id<ModuleTag>;

struct AliasTarget {
  Name alias;
  ModuleId module;
};

struct Module {
  std::string key;                 // namespace: "" for the entry file and Base, "std/Scan" for a stdlib module, "0x../path" in a package, else path relative to the entry, no suffix
  std::string display;             // how the namespace is shown before a name ("Scan" style path with '.'), "" for entry and Base
  bool base = false;               // a file of Base (all share the empty namespace)
  bool stdlib = false;             // Base or another embedded module: left out of the reliance report
  bool uses_base = false;          // has `import Base`
  ast::Ast ast;
  std::vector<AliasTarget> aliases;
};

struct Program {
  Table<ModuleId, Module> modules; // checking order
  ModuleId entry;
};

struct LoadedFile {
  std::string real_path;           // identity of the file
  std::string text;
};

struct FolderEntry {
  std::string name;
  bool folder = false;
};

// Reads files and lists folders; a failure is the reason in words ("no such file", "is a directory", "not UTF-8 at byte 12").
struct FileReader {
  std::function<std::optional<LoadedFile>(const std::string& path, std::string& reason)> read;
  std::function<std::optional<std::vector<FolderEntry>>(const std::string& path, std::string& reason)> list;   // sorted by name; may be absent
  std::string packages;            // the folder of packages, see packages.h; empty: there is none
};

// The embedded standard library: ordered Base files and the named modules.
struct StdlibFile {
  std::string name;                // "base/nat.bend", "Scan.bend"
  std::string_view text;
};
struct Stdlib {
  std::vector<StdlibFile> base;    // in order
  std::vector<StdlibFile> modules; // `import Name`
};

struct LoadResult {
  Program program;
  Diagnostics diagnostics;
  bool entry_readable = false;
};

[[nodiscard]] LoadResult load_program(SourceMap& sources, Interner& names, const std::string& path, const FileReader& reader, const Stdlib& stdlib);

}  // namespace bendc
