#include "frontend/module_loader.h"

#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "frontend/module_path.h"
#include "frontend/packages.h"
#include "frontend/parser.h"
#include "support/text.h"

namespace bendc {

namespace {

constexpr uint32_t kNoFile = 0xFFFFFFFFu;

// A file to import, and the line that asks for it.
struct Place {
  ast::Import import;
  std::string shown;                                        // path for messages, and to read
  std::string package, inside;                              // "0x.." and the path in it; empty: the program's own file
};

struct File {
  Module module;
  std::string shown;                                        // path for messages
  std::vector<std::pair<Name, uint32_t>> targets;           // alias -> file index
  std::unordered_map<Name, Span> aliases;                   // every alias met so far
  std::string package, inside;                              // as in Place
  std::vector<Place> places;                                // what the import line in progress names
  size_t next_import = 0, next_place = 0;                   // walk position
  enum class State : uint8_t { Open, Done } state = State::Open;
};

class Loader {
 public:
  Loader(SourceMap& sources, Interner& names, const FileReader& reader, const Stdlib& stdlib) : sources_(sources), names_(names), reader_(reader), stdlib_(stdlib) {}

  LoadResult run(const std::string& path) {
    LoadResult result;
    if (!path.ends_with(".bend")) {
      std::string reason;
      // A wrong name is the lesser problem when there is nothing to read at all.
      if (reader_.read(path, reason) || reason == "is not a regular file") refuse_entry("`{}` is not a .bend file", path);
      else refuse_entry("cannot read `{}`: {}", path, reason);
    } else {
      std::string reason;
      std::optional<LoadedFile> loaded = read(path, reason);
      if (!loaded) {
        refuse_entry("cannot read `{}`: {}", path, reason);
      } else {
        result.entry_readable = true;
        entry_directory_ = directory_of(loaded->real_path);
        walk(add_file(path, std::move(loaded->text), loaded->real_path, ""));
        result.program = assemble();
      }
    }
    diagnostics_.sort(sources_);
    result.diagnostics = std::move(diagnostics_);
    return result;
  }

 private:
  template <class... Args> void refuse_entry(fmt::format_string<Args...> format, Args&&... args) { diagnostics_.add(Code::I1, Span{}, fmt::format(format, std::forward<Args>(args)...)); }

  std::optional<LoadedFile> read(const std::string& path, std::string& reason) const {
    std::optional<LoadedFile> loaded = reader_.read(path, reason);
    if (!loaded) return std::nullopt;
    size_t bad = text::utf8_validate(loaded->text.data(), loaded->text.size());
    if (bad == loaded->text.size()) return loaded;
    reason = fmt::format("not UTF-8 at byte {}", bad);
    return std::nullopt;
  }

  uint32_t add_file(const std::string& shown, std::string text, const std::string& identity, std::string key) {
    uint32_t index = static_cast<uint32_t>(files_.size());
    by_identity_[identity] = index;
    File file;
    file.shown = shown;
    file.module.key = key;
    file.module.display = std::move(key);
    ParseResult parsed = parse(sources_, sources_.add(shown, std::move(text)), names_);
    diagnostics_.append(std::move(parsed.diagnostics));
    file.module.ast = std::move(parsed.ast);
    if (!identity.starts_with("std:")) refuse_native_bodies(file.module.ast);
    files_.push_back(std::move(file));
    return index;
  }

  // Names of the runtime's own effects: their arguments and answers are known for the library's signatures alone.
  void refuse_native_bodies(const ast::Ast& ast) {
    for (const ast::Decl& decl : ast.decls) {
      for (size_t i = 0; i < decl.foreign.size(); ++i) {
        if (!decl.foreign[i].starts_with(kNativeScheme)) continue;
        Diagnostic& d = diagnostics_.add(Code::P24, decl.foreign_spans[i], fmt::format("`{}` is an effect of the runtime, which only the standard library may name", decl.foreign[i]));
        d.notes.push_back("the runtime trusts the library's signatures: another one would read arguments that are not there");
        d.fix = "call the library's definition, or name a C file of your own: `import \"./x.c\"`";
      }
    }
  }

  // Depth-first with an explicit stack: a chain of imports may be as long as there are files.
  void walk(uint32_t entry) {
    stack_.push_back(entry);
    while (!stack_.empty()) {
      const uint32_t index = stack_.back();
      if (files_[index].next_place < files_[index].places.size()) {
        const Place place = files_[index].places[files_[index].next_place++];
        bool fresh = false;
        const uint32_t target = place_module(place, fresh);
        attach(index, place.import, target, fresh);
        continue;
      }
      if (files_[index].next_import == files_[index].module.ast.imports.size()) {
        files_[index].state = File::State::Done;
        order_.push_back(index);
        stack_.pop_back();
        continue;
      }
      const ast::Import import = files_[index].module.ast.imports[files_[index].next_import++];
      if (import.base) {
        files_[index].module.uses_base = needs_base_ = true;
        continue;
      }
      if (alias_taken(index, import)) continue;
      if (import.stdlib) {
        bool fresh = false;
        const uint32_t target = stdlib_module(import, fresh);
        attach(index, import, target, fresh);
      } else {
        files_[index].next_place = 0;
        files_[index].places = places(index, import);
      }
    }
  }

  void attach(uint32_t importer, const ast::Import& import, uint32_t target, bool fresh) {
    if (target == kNoFile) return;
    files_[importer].targets.emplace_back(import.alias, target);
    if (fresh) stack_.push_back(target);
    else if (files_[target].state == File::State::Open) report_cycle(import, target);
  }

  bool alias_taken(uint32_t index, const ast::Import& import) {
    auto [first, fresh] = files_[index].aliases.emplace(import.alias, import.alias_span);
    if (!fresh) {
      Diagnostic& d = diagnostics_.add(Code::P26, import.alias_span, fmt::format("the alias `{}` is taken by an import above", names_.text(import.alias)));
      d.labels.push_back({first->second, "first used here"});
      d.fix = "choose another alias: `import .. as Other`";
      return true;
    }
    return false;
  }

  uint32_t stdlib_module(const ast::Import& import, bool& fresh) {
    std::string name(names_.text(import.alias));
    std::string identity = "std:" + name;
    if (auto known = by_identity_.find(identity); known != by_identity_.end()) return known->second;
    std::vector<std::string> have;
    for (const StdlibFile& file : stdlib_.modules) {
      std::string module = file.name.ends_with(".bend") ? file.name.substr(0, file.name.size() - 5) : file.name;
      if (module == name) {
        fresh = true;
        uint32_t index = add_file("stdlib/" + file.name, std::string(file.text), identity, "std/" + name);
        files_[index].module.display = name;
        files_[index].module.stdlib = true;
        return index;
      }
      have.push_back("`" + module + "`");
    }
    Diagnostic& d = diagnostics_.add(Code::P26, import.path_span, fmt::format("there is no standard library module `{}`", name));
    d.notes.push_back(have.empty() ? "there are no standard library modules besides Base" : fmt::format("the modules are `Base`, {}", fmt::join(have, ", ")));
    d.notes.push_back("lists, maps, text, numbers, arrays and effects are all in Base");
    d.fix = fmt::format("a file of yours is imported by its path: `import ./{}.bend as {}`", name, name);
    return kNoFile;
  }

  Diagnostic& refuse(const ast::Import& import, std::string message, std::string fix) {
    Diagnostic& d = diagnostics_.add(Code::P26, import.path_span, std::move(message));
    d.fix = std::move(fix);
    return d;
  }

  // The file that an import line names, or the files of the folder that it names; none after a report.
  std::vector<Place> places(uint32_t importer, const ast::Import& import) {
    const std::string& path = import.path;
    const File& from = files_[importer];
    if (from.module.stdlib) {
      refuse(import, "a standard library module imports by name only", "write `import Name`");
      return {};
    }
    Place place;
    place.import = import;
    ImportPath kind = classify_import(path);
    if (kind == ImportPath::Package) {
      const std::optional<PackagePath> named = split_package_path(path);
      kind = named ? classify_import(named->inside) : ImportPath::Malformed;
      if (!named || kind == ImportPath::Package || !stays_inside(named->inside)) {
        refuse(import, fmt::format("malformed package import `{}`", path),
               "write `0x` and the 32 hexadecimal digits of a package, or `name@1.0.0.0`, then `/` and the path of a file in it");
        return {};
      }
      place.package = open_package(import, named->package);
      if (place.package.empty()) return {};
      place.inside = join_path("", named->inside);
    } else if (!from.package.empty()) {
      place.package = from.package;
      place.inside = join_path(directory_of(from.inside), path);
      if (path.starts_with('/') || !stays_inside(place.inside)) {
        refuse(import, fmt::format("`{}` lies outside the package `{}`", path, from.package), "a file of a package imports files of packages alone");
        return {};
      }
    }
    place.shown = place.package.empty() ? join_path(directory_of(from.shown), path) : package_folder(place.package) + "/" + place.inside;
    switch (kind) {
      case ImportPath::File: return {place};
      case ImportPath::NoSuffix: {
        std::string reason;
        if (!reader_.read(place.shown, reason) && reason == "is a directory") return folder_places(place);
        refuse(import, fmt::format("the import path `{}` does not end in .bend", path), fmt::format("write `{}.bend`, or the name of a folder to import all files in it", path));
        return {};
      }
      case ImportPath::OtherSuffix: refuse(import, fmt::format("the import path `{}` does not end in .bend", path), "only .bend files can be imported"); return {};
      case ImportPath::Package:
      case ImportPath::Malformed:
        refuse(import, fmt::format("malformed import path `{}`", path),
               path.find('"') != std::string::npos ? "write the path without quotes" :
               "a path is `./`, any number of `../`, or `/`, then names of letters, digits, `_` and `-` separated by `/`, ending in .bend or naming a folder");
        return {};
    }
    return {};
  }

  // Every .bend file directly inside; folders in it are not looked into.
  std::vector<Place> folder_places(const Place& folder) {
    std::string reason;
    const auto entries = reader_.list ? reader_.list(folder.shown, reason) : std::nullopt;
    if (!entries) {
      refuse(folder.import, fmt::format("cannot list the folder `{}`: {}", folder.import.path, reason.empty() ? "there is no way to" : reason), "import its files one by one");
      return {};
    }
    std::vector<Place> out;
    for (const FolderEntry& entry : *entries) {
      if (entry.folder || !entry.name.ends_with(".bend")) continue;
      Place place = folder;
      place.shown += "/" + entry.name;
      if (!place.package.empty()) place.inside += "/" + entry.name;
      out.push_back(std::move(place));
    }
    if (out.empty()) refuse(folder.import, fmt::format("the folder `{}` has no .bend file directly inside", folder.import.path), "import the folder or the file that holds the code");
    return out;
  }

  uint32_t place_module(const Place& place, bool& fresh) {
    const std::string in_package = place.package.empty() ? "" : "package:" + place.package + "/" + place.inside;
    if (auto known = by_identity_.find(in_package); !in_package.empty() && known != by_identity_.end()) return known->second;
    std::string reason;
    std::optional<LoadedFile> loaded = read(place.shown, reason);
    if (!loaded) {
      Diagnostic& d = refuse(place.import, fmt::format("cannot import `{}`: {}", place.import.path, reason), "");
      d.notes.push_back(fmt::format("looked for `{}`{}", place.shown, place.package.empty() ? ": paths are relative to the importing file's folder" : ""));
      return kNoFile;
    }
    const std::string identity = in_package.empty() ? loaded->real_path : in_package;
    if (auto known = by_identity_.find(identity); known != by_identity_.end()) return known->second;
    fresh = true;
    std::string key = in_package.empty() ? key_of(loaded->real_path, entry_directory_) : place.package + "/" + place.inside.substr(0, place.inside.rfind('.'));
    // `std/Name` is the namespace of a standard library module, `0x..` that of a package.
    if (in_package.empty() && (key.starts_with("std/") || key.starts_with("0x"))) key.insert(0, "./");
    const uint32_t index = add_file(place.shown, std::move(loaded->text), identity, std::move(key));
    files_[index].package = place.package;
    files_[index].inside = place.inside;
    return index;
  }

  [[nodiscard]] std::string package_folder(const std::string& package) const { return join_path(reader_.packages + "/", package); }

  // The hash of a package whose files are here and unchanged; empty after a report.
  std::string open_package(const ast::Import& import, const std::string& written) {
    constexpr std::string_view kNoNetwork = "bendc looks in that folder alone and fetches nothing";
    if (reader_.packages.empty()) {
      refuse(import, fmt::format("there is no folder of packages to find `{}` in", written), "set the variable BEND_LIB to the folder that holds them");
      return {};
    }
    std::string hash = written;
    if (!is_package_hash(written)) {
      std::string reason;
      const std::string file = package_folder(written);
      const std::optional<LoadedFile> loaded = reader_.read(file, reason);
      if (!loaded) {
        refuse(import, fmt::format("the package `{}` is not known here", written), fmt::format("write the package's `0x..` name into the file `{}`, and put its files into the folder of that name beside it", file))
            .notes.push_back(fmt::format("cannot read `{}`: {}; {}", file, reason, kNoNetwork));
        return {};
      }
      hash = loaded->text.substr(0, loaded->text.find_last_not_of(" \t\r\n") + 1);
      if (!is_package_hash(hash)) {
        refuse(import, fmt::format("the file `{}` does not hold a package's name", file), "a name is `0x` and 32 hexadecimal digits, with nothing else in the file");
        return {};
      }
    }
    auto [state, fresh] = packages_.emplace(hash, false);
    if (!fresh) return state->second ? hash : std::string();   // reported before
    const std::string folder = package_folder(hash);
    std::string reason;
    if (reader_.read(folder, reason) || reason != "is a directory") {
      refuse(import, fmt::format("the package `{}` is not in the folder of packages", written), "put the package's files there, or set BEND_LIB to the folder that has them")
          .notes.push_back(fmt::format("looked for the folder `{}`; {}", folder, kNoNetwork));
      return {};
    }
    const PackageHash actual = package_hash(reader_, folder);
    if (actual.hash.empty()) {
      refuse(import, fmt::format("the package `{}` cannot be verified: {}", written, actual.problem), "");
      return {};
    }
    if (actual.hash != hash) {
      refuse(import, fmt::format("the files of the package `{}` are not the ones it is named after", written), "restore them, or import what they are now by its own name")
          .notes.push_back(fmt::format("the files in `{}` make the package `{}`", folder, actual.hash));
      return {};
    }
    state->second = true;
    return hash;
  }

  void report_cycle(const ast::Import& import, uint32_t target) {
    std::string chain;
    bool inside = false;
    for (uint32_t index : stack_) {
      inside |= index == target;
      if (inside) chain += fmt::format("`{}` -> ", files_[index].shown);
    }
    Diagnostic& d = diagnostics_.add(Code::P26, import.path_span, fmt::format("import cycle: {}`{}`", chain, files_[target].shown));
    d.fix = "move what both files need into a third file";
  }

  Program assemble() {
    Program program;
    if (needs_base_) {
      for (const StdlibFile& file : stdlib_.base) {
        uint32_t index = add_file("stdlib/" + file.name, std::string(file.text), "std:" + file.name, "");
        files_[index].module.base = files_[index].module.stdlib = true;
        (void)program.modules.add(std::move(files_[index].module));
      }
    }
    std::vector<ModuleId> ids(files_.size());
    for (uint32_t index : order_) {
      Module& module = files_[index].module;
      for (auto [alias, target] : files_[index].targets)
        if (ids[target].valid()) module.aliases.push_back({alias, ids[target]});   // invalid: the back edge of a cycle
      ids[index] = program.modules.add(std::move(module));
    }
    program.entry = ids[order_.back()];
    return program;
  }

  SourceMap& sources_;
  Interner& names_;
  const FileReader& reader_;
  const Stdlib& stdlib_;
  Diagnostics diagnostics_;
  std::vector<File> files_;
  std::unordered_map<std::string, uint32_t> by_identity_;
  std::unordered_map<std::string, bool> packages_;   // by hash: present and unchanged
  std::vector<uint32_t> stack_, order_;
  std::string entry_directory_;
  bool needs_base_ = false;
};

}  // namespace

LoadResult load_program(SourceMap& sources, Interner& names, const std::string& path, const FileReader& reader, const Stdlib& stdlib) {
  return Loader(sources, names, reader, stdlib).run(path);
}

}  // namespace bendc
