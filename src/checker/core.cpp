// Core tables' lookups and name display.
#include "checker/core.h"

#include <algorithm>

namespace bendc::core {

namespace {

template <class IdT> IdT find(const std::unordered_map<Name, IdT>& map, Name key) {
  auto it = map.find(key);
  return it == map.end() ? IdT() : it->second;
}

}  // namespace

DefId Book::find_def(Name key) const { return find(def_by_name, key); }
DataId Book::find_data(Name key) const { return find(data_by_name, key); }
CtorId Book::find_ctor(Name key) const { return find(ctor_by_name, key); }

Span Book::scrutinee_span(TermId id) const {
  auto it = std::lower_bound(match_sites.begin(), match_sites.end(), id, [](const MatchSite& site, TermId term) { return site.term < term; });
  return it != match_sites.end() && it->term == id ? it->scrutinee : span(id);
}

std::string display_name(std::string_view key) {
  // Only the namespace part may hold '/'; the name after the last ':' never does.
  if (key.starts_with("std/")) key.remove_prefix(4);
  std::string out(key);
  for (char& c : out) {
    if (c == ':') c = '.';
  }
  return out;
}

std::string_view kind_name(TermKind kind) {
  switch (kind) {
#define BENDC_CORE(kind, payload) \
  case TermKind::kind: return #kind;
#include "checker/core.def"
#undef BENDC_CORE
  }
  return "?";
}

}  // namespace bendc::core
