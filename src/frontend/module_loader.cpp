#include "frontend/module_loader.h"

#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "frontend/module_path.h"
#include "frontend/parser.h"
#include "support/text.h"

namespace bendc {

namespace {

constexpr uint32_t kNoFile = 0xFFFFFFFFu;

struct File {
  Module module;
  std::string shown;                                        // path for messages
  std::vector<std::pair<Name, uint32_t>> targets;           // alias -> file index
  std::unordered_map<Name, Span> aliases;                   // every alias met so far
  size_t next_import = 0;                                   // walk position
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
      uint32_t index = stack_.back();
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
      bool fresh = false;
      uint32_t target = import.stdlib ? stdlib_module(import, fresh) : file_module(index, import, fresh);
      if (target == kNoFile) continue;
      files_[index].targets.emplace_back(import.alias, target);
      if (fresh) stack_.push_back(target);
      else if (files_[target].state == File::State::Open) report_cycle(import, target);
    }
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
    d.fix = fmt::format("a file of yours is imported by its path: `import ./{}.bend as {}`", name, name);
    return kNoFile;
  }

  uint32_t file_module(uint32_t importer, const ast::Import& import, bool& fresh) {
    const std::string& path = import.path;
    auto refuse = [&](std::string message, std::string fix) {
      Diagnostic& d = diagnostics_.add(Code::P26, import.path_span, std::move(message));
      d.fix = std::move(fix);
      return kNoFile;
    };
    std::string shown = join_path(directory_of(files_[importer].shown), path);
    std::string reason;
    switch (classify_import(path)) {
      case ImportPath::File: break;
      case ImportPath::Package:
        diagnostics_.add(Code::U1, import.path_span, fmt::format("package imports are not supported yet: `{}`", path)).fix = "put the package's files beside the program and import them by path";
        return kNoFile;
      case ImportPath::NoSuffix:
        if (!reader_.read(shown, reason) && reason == "is a directory") {
          diagnostics_.add(Code::U1, import.path_span, fmt::format("folder imports are not supported yet: `{}`", path)).fix = "import the folder's files one by one";
          return kNoFile;
        }
        return refuse(fmt::format("the import path `{}` does not end in .bend", path), fmt::format("write `{}.bend`", path));
      case ImportPath::OtherSuffix: return refuse(fmt::format("the import path `{}` does not end in .bend", path), "only .bend files can be imported");
      case ImportPath::Malformed:
        return refuse(fmt::format("malformed import path `{}`", path), "a path is `./`, any number of `../`, or `/`, then names of letters, digits, `_` and `-` separated by `/`, ending in .bend");
    }
    if (files_[importer].module.stdlib) return refuse("a standard library module imports by name only", "write `import Name`");
    std::optional<LoadedFile> loaded = read(shown, reason);
    if (!loaded) {
      Diagnostic& d = diagnostics_.add(Code::P26, import.path_span, fmt::format("cannot import `{}`: {}", path, reason));
      d.notes.push_back(fmt::format("looked for `{}`: paths are relative to the importing file's folder", shown));
      return kNoFile;
    }
    if (auto known = by_identity_.find(loaded->real_path); known != by_identity_.end()) return known->second;
    fresh = true;
    std::string key = key_of(loaded->real_path, entry_directory_);
    // `std/Name` is the namespace of a standard library module.
    if (key.starts_with("std/")) key.insert(0, "./");
    return add_file(shown, std::move(loaded->text), loaded->real_path, std::move(key));
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
  std::vector<uint32_t> stack_, order_;
  std::string entry_directory_;
  bool needs_base_ = false;
};

}  // namespace

LoadResult load_program(SourceMap& sources, Interner& names, const std::string& path, const FileReader& reader, const Stdlib& stdlib) {
  return Loader(sources, names, reader, stdlib).run(path);
}

}  // namespace bendc
