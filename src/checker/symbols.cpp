// Lookups are cached per module in tables indexed by the interned name: after the first use of a name in a file, finding it again is
// one load. The order rule of section 9 ("declared at this point") needs no care here: a module's own name and a bare name it could
// shadow never coexist (P20), and imports are complete before their importer starts.
#include "checker/symbols.h"

#include <algorithm>

#include "checker/core.h"

namespace bendc::elab {

namespace {

// Edits (insert, delete, change, swap of neighbours) between a and b, or limit + 1.
uint32_t edit_distance(std::string_view a, std::string_view b, uint32_t limit) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > limit || b.size() > 64) return limit + 1;
  uint32_t rows[3][65];
  for (uint32_t j = 0; j <= a.size(); ++j) rows[0][j] = j;
  for (uint32_t i = 1; i <= b.size(); ++i) {
    uint32_t* row = rows[i % 3];
    const uint32_t* above = rows[(i - 1) % 3];
    const uint32_t* above2 = rows[(i + 1) % 3];
    row[0] = i;
    uint32_t best = i;
    for (uint32_t j = 1; j <= a.size(); ++j) {
      uint32_t cost = above[j - 1] + (a[j - 1] == b[i - 1] ? 0 : 1);
      cost = std::min({cost, above[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[j - 1] == b[i - 2] && a[j - 2] == b[i - 1]) cost = std::min(cost, above2[j - 2] + 1);
      row[j] = cost;
      best = std::min(best, cost);
    }
    if (best > limit) return limit + 1;
  }
  return rows[b.size() % 3][a.size()];
}

}  // namespace

Symbols::Symbols(const Program& program, Interner& names) : program_(program), names_(names) {
  // Base is loaded into the empty namespace by the first file that imports it; the files after that one see it too. The embedded
  // modules import Base for themselves alone.
  bool loaded = false;
  for (const Module& m : program.modules) {
    if (m.uses_base && !m.stdlib) loaded = true;
    sees_base_.push_back(m.base || m.uses_base || loaded);
  }
}

void Symbols::enter(ModuleId module) {
  if (module_ == module) return;
  module_ = module;
  ++epoch_;
}

void Symbols::add(std::vector<Symbol>& table, Name key, Symbol symbol) {
  if (key.index >= table.size()) table.resize(std::max<size_t>(key.index + 1, table.size() * 2));
  table[key.index] = symbol;
}

Name Symbols::key_in(ModuleId module, std::string_view rest) {
  const std::string& ns = program_.modules[module].key;
  if (ns.empty()) return names_.intern(rest);
  std::string key;
  key.reserve(ns.size() + 1 + rest.size());
  key.append(ns).append(1, ':').append(rest);
  return names_.intern(key);
}

Name Symbols::own_key(Name written) {
  if (program_.modules[module_].key.empty()) return written;
  return key_in(module_, names_.text(written));
}

std::vector<ModuleId> Symbols::alias(std::string_view text) const {
  std::vector<ModuleId> found;
  for (const AliasTarget& a : program_.modules[module_].aliases) {
    if (names_.text(a.alias) == text) found.push_back(a.module);
  }
  return found;
}

bool Symbols::visible(const Symbol& symbol) const {
  if (!symbol) return false;
  if (symbol.module == module_.index) return true;
  const Module& owner = program_.modules[ModuleId(symbol.module)];
  return owner.base && sees_base_[module_.index];
}

Lookup Symbols::resolve(const std::vector<Symbol>& table, Name written) {
  Lookup out;
  std::string_view text = names_.text(written);
  const Module& self = program_.modules[module_];
  Symbol bare = at(table, written);
  if (!visible(bare)) bare = Symbol();

  size_t dot = self.aliases.empty() ? std::string_view::npos : text.find('.');
  if (dot != std::string_view::npos) {
    std::vector<ModuleId> targets = alias(text.substr(0, dot));
    std::string rest(text.substr(dot + 1));
    for (ModuleId target : targets) {
      Name key = key_in(target, rest);
      Symbol symbol = at(table, key);
      if (symbol && out.symbol) {
        out.rival = key;
        return out;
      }
      if (symbol) {
        out.symbol = symbol;
        out.key = key;
      } else if (!out.key.valid()) {
        out.key = key;
      }
    }
    if (!targets.empty()) {
      if (out.symbol && bare) out.rival = written;
      if (!out.symbol && bare) {
        out.symbol = bare;
        out.key = written;
      }
      return out;
    }
  }

  out.key = own_key(written);
  if (out.key != written) out.symbol = at(table, out.key);
  if (!out.symbol && bare) {
    out.symbol = bare;
    out.key = written;
  }
  return out;
}

const Lookup& Symbols::find(std::vector<Cached>& cache, const std::vector<Symbol>& table, Name written) {
  if (written.index >= cache.size()) cache.resize(std::max<size_t>(names_.size(), written.index + 1));
  if (cache[written.index].epoch != epoch_) {
    Lookup lookup = resolve(table, written);
    cache[written.index] = {epoch_, lookup};
  }
  return cache[written.index].lookup;
}

const Lookup& Symbols::term(Name written) { return find(term_cache_, terms_, written); }
const Lookup& Symbols::ctor(Name written) { return find(ctor_cache_, ctors_, written); }

std::string Symbols::show(Name key) const {
  std::string_view text = names_.text(key);
  const Module& self = program_.modules[module_];
  size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::string(text);
  std::string_view ns = text.substr(0, colon), rest = text.substr(colon + 1);
  if (ns == self.key) return std::string(rest);
  for (const AliasTarget& a : self.aliases) {
    if (program_.modules[a.module].key == ns) return std::string(names_.text(a.alias)) + "." + std::string(rest);
  }
  return core::display_name(text);
}

std::string Symbols::behind_alias(std::string_view written, SymbolKind kind) {
  for (const AliasTarget& a : program_.modules[module_].aliases) {
    const Name key = key_in(a.module, written);
    if (kind == SymbolKind::Ctor ? static_cast<bool>(ctor_at(key)) : static_cast<bool>(term_at(key))) return std::string(names_.text(a.alias)) + "." + std::string(written);
  }
  return {};
}

std::vector<std::string> Symbols::members(std::string_view written, size_t limit) const {
  std::vector<std::string> out;
  for (uint32_t i = 0; i < terms_.size() && out.size() < limit; ++i) {
    const Symbol& symbol = terms_[i];
    if (!symbol || !program_.modules[ModuleId(symbol.module)].base || !visible(symbol)) continue;
    const std::string_view key = names_.text(Name(i));
    if (key.size() > written.size() + 1 && key.ends_with(written) && key[key.size() - written.size() - 1] == '.') out.emplace_back(key);
  }
  return out;
}

std::string Symbols::nearest(std::string_view written, SymbolKind kind, const std::vector<Name>& locals, std::string_view within) const {
  const std::string_view own = written.substr(within.size());
  uint32_t limit = own.size() <= 2 ? 1 : own.size() <= 5 ? 2 : 3;
  std::string best;
  auto consider = [&](std::string_view candidate) {
    if (candidate == written || !candidate.starts_with(within)) return;
    const std::string_view other = candidate.substr(within.size());
    uint32_t d = edit_distance(own, other, limit);
    // A rewrite of most of the word is no help.
    if (d > limit || d * 2 > std::max(own.size(), other.size())) return;
    if (!best.empty() && d == limit) return;
    best = std::string(candidate);
    limit = d;
  };
  for (Name local : locals) consider(names_.text(local));
  const std::vector<Symbol>& table = kind == SymbolKind::Ctor ? ctors_ : terms_;
  const Module& self = program_.modules[module_];
  for (uint32_t i = 0; i < table.size(); ++i) {
    const Symbol& symbol = table[i];
    if (!symbol) continue;
    const Module& owner = program_.modules[ModuleId(symbol.module)];
    std::string_view key = names_.text(Name(i));
    if (symbol.module == module_.index) {
      consider(self.key.empty() ? key : key.substr(self.key.size() + 1));
    } else if (owner.base) {
      if (visible(symbol)) consider(key);
    } else {
      for (const AliasTarget& a : self.aliases) {
        if (a.module.index == symbol.module) consider(std::string(names_.text(a.alias)) + "." + std::string(key.substr(owner.key.size() + 1)));
      }
    }
  }
  return best;
}

}  // namespace bendc::elab
