// Symbols: what a program declares, by key (`ns:name` or `name`), and how a written name finds it (language.md section 9):
// an alias picks the namespace, else the file's own namespace, else the bare names of Base.
// Example: in lib/a.bend, which imports words.bend as W, `W.join` finds "lib/words:join", `go` finds "lib/a:go" or Base's `go`.
#pragma once
#include <string>
#include <vector>

#include "frontend/module_loader.h"

namespace bendc::elab {

enum class SymbolKind : uint8_t { None, Def, Data, Ctor };

struct Symbol {
  SymbolKind kind = SymbolKind::None;
  uint32_t id = 0xFFFFFFFFu;  // DefId, DataId or CtorId index
  uint32_t module = 0;
  uint32_t position = 0;      // of its declaration in checking order
  [[nodiscard]] explicit operator bool() const { return kind != SymbolKind::None; }
};

struct Lookup {
  Symbol symbol;
  Name key;        // the key found; when nothing was found, the key it would have
  Name rival;      // P27: a second declaration the written name could mean
};

class Symbols {
 public:
  Symbols(const Program& program, Interner& names);

  // Selects the module whose view the lookups below take.
  void enter(ModuleId module);
  [[nodiscard]] ModuleId module() const { return module_; }

  // Types and defs share a table, constructors have their own.
  [[nodiscard]] Symbol term_at(Name key) const { return at(terms_, key); }
  [[nodiscard]] Symbol ctor_at(Name key) const { return at(ctors_, key); }
  void add_term(Name key, Symbol symbol) { add(terms_, key, symbol); }
  void add_ctor(Name key, Symbol symbol) { add(ctors_, key, symbol); }

  [[nodiscard]] Name own_key(Name written);                            // in the current module's namespace
  [[nodiscard]] Name key_in(ModuleId module, std::string_view rest);
  // The modules an alias of the current file names (several for a folder); empty when `text` is no alias.
  [[nodiscard]] std::vector<ModuleId> alias(std::string_view text) const;
  [[nodiscard]] const Lookup& term(Name written);
  [[nodiscard]] const Lookup& ctor(Name written);

  // What tells two declarations of one written name apart: both in the files of a folder, or one in a module and one bare.
  [[nodiscard]] static std::string_view fix_for(std::string_view rival) {
    return rival.find(':') != std::string_view::npos ? "import the folder's files one by one, under an alias each" : "rename the import's alias";
  }
  // A key as the current module would write it.
  [[nodiscard]] std::string show(Name key) const;
  // Is the bare key's declaration (in Base or the entry) in sight of the current module?
  [[nodiscard]] bool visible(const Symbol& symbol) const;
  // The name behind an alias of the file, such as `A.K` for `K`; empty when no aliased module declares it.
  [[nodiscard]] std::string behind_alias(std::string_view written, SymbolKind kind);
  // Names of Base that end in `.written`, such as `U32.show` for `show`: at most `limit`, in the order of the library.
  [[nodiscard]] std::vector<std::string> members(std::string_view written, size_t limit) const;
  // The closest declared name to a mistyped one, as the current module writes it; empty when none is close. Both begin with `within`, which is right.
  [[nodiscard]] std::string nearest(std::string_view written, SymbolKind kind, const std::vector<Name>& locals, std::string_view within = {}) const;

 private:
  struct Cached {
    uint32_t epoch = 0;
    Lookup lookup;
  };
  [[nodiscard]] Symbol at(const std::vector<Symbol>& table, Name key) const {
    return key.index < table.size() ? table[key.index] : Symbol();
  }
  static void add(std::vector<Symbol>& table, Name key, Symbol symbol);
  const Lookup& find(std::vector<Cached>& cache, const std::vector<Symbol>& table, Name written);
  [[nodiscard]] Lookup resolve(const std::vector<Symbol>& table, Name written);

  const Program& program_;
  Interner& names_;
  std::vector<bool> sees_base_;            // by module
  std::vector<Symbol> terms_, ctors_;      // by key index
  std::vector<Cached> term_cache_, ctor_cache_;  // by written name, valid while epoch matches
  ModuleId module_;
  uint32_t epoch_ = 0;
};

}  // namespace bendc::elab
