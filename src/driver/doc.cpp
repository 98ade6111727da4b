// Declarations start a line with `def`, `law` or `type`; comments above them (`#`, with examples `#>` and `#=`) belong to them. A def is shown
// up to its body, a type and a law whole.
#include "driver/doc.h"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace bendc {

namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return out;
}

// The declared name of a line at the left margin, and its keyword.
std::string_view declared(std::string_view line, std::string_view& keyword) {
  if (line.starts_with("@unsafe ")) line.remove_prefix(8);
  for (std::string_view word : {"def ", "law ", "type "}) {
    if (!line.starts_with(word)) continue;
    keyword = word;
    line.remove_prefix(word.size());
    return line.substr(0, line.find_first_of(" (<:?!"));
  }
  return {};
}

// The first sentence of the comment above a declaration, without examples.
std::string summary(const std::vector<std::string_view>& lines, size_t at) {
  size_t first = at;
  while (first > 0 && lines[first - 1].starts_with("#")) --first;
  std::string text;
  for (size_t i = first; i < at && !lines[i].starts_with("#>") && !lines[i].starts_with("#="); ++i) {
    std::string_view line = lines[i].substr(1);
    while (line.starts_with(" ")) line.remove_prefix(1);
    if (!text.empty()) text += ' ';
    text += line;
  }
  for (size_t end = text.find(". "); end != std::string::npos; end = text.find(". ", end + 1)) {
    // `0 .. 255` goes on.
    if (end > 0 && (text[end - 1] == '.' || text[end - 1] == ' ')) continue;
    text.resize(end + 1);
    break;
  }
  return text;
}

std::string describe(const std::vector<std::string_view>& lines, size_t at, std::string_view keyword, std::string_view file) {
  size_t first = at;
  while (first > 0 && lines[first - 1].starts_with("#")) --first;
  std::string out;
  for (size_t i = first; i < at; ++i) out += fmt::format("{}\n", lines[i]);
  out += fmt::format("{}\n", lines[at]);
  const bool whole = keyword != "def ";
  for (size_t i = at + 1; i < lines.size(); ++i) {
    // A def's head may go on over lines until the one that ends in `:`; a type's constructors and a law's claim are indented.
    if (whole ? !lines[i].starts_with(" ") : lines[i - 1].ends_with(":") || lines[i].empty()) break;
    out += fmt::format("{}\n", lines[i]);
  }
  return out + fmt::format("({})\n", file);
}

// `visit(name, lines, index, keyword)` for each declaration of the library, under the name that a program writes.
void visit_declarations(const Stdlib& stdlib, const auto& visit) {
  auto walk = [&visit](const StdlibFile& file, std::string_view prefix) {
    const std::vector<std::string_view> lines = lines_of(file.text);
    std::string_view law;   // the law whose proof, a def of the same name, is expected next
    for (size_t i = 0; i < lines.size(); ++i) {
      std::string_view keyword;
      const std::string_view name = declared(lines[i], keyword);
      if (name.empty() || name == law) continue;
      if (keyword == "law ") law = name;
      visit(fmt::format("{}{}", prefix, name), lines, i);
    }
  };
  for (const StdlibFile& file : stdlib.base) walk(file, "");
  for (const StdlibFile& file : stdlib.modules) walk(file, std::string_view(file.name).substr(0, file.name.find('.') + 1));
}

std::string row(std::string_view name, const std::vector<std::string_view>& lines, size_t at) {
  const std::string text = summary(lines, at);
  return fmt::format("{:<28}  {}\n", name, text.empty() ? "(no comment)" : text);
}

// `IO.print` and the like for `IO`; what serves one of them, such as `Map.get.go`, is left out.
std::string members_of(const Stdlib& stdlib, std::string_view name) {
  std::string out;
  visit_declarations(stdlib, [&](std::string_view declared, const std::vector<std::string_view>& lines, size_t at) {
    if (declared.size() > name.size() + 1 && declared.starts_with(name) && declared[name.size()] == '.' && declared.find('.', name.size() + 1) == std::string_view::npos) {
      out += row(declared, lines, at);
    }
  });
  return out;
}

std::optional<std::string> find_declaration(const Stdlib& stdlib, std::string_view name) {
  auto search = [](const StdlibFile& file, std::string_view wanted) -> std::optional<std::string> {
    const std::vector<std::string_view> lines = lines_of(file.text);
    for (size_t i = 0; i < lines.size(); ++i) {
      std::string_view keyword;
      if (declared(lines[i], keyword) == wanted) return describe(lines, i, keyword, file.name);
    }
    return std::nullopt;
  };
  for (const StdlibFile& file : stdlib.base)
    if (auto found = search(file, name)) return found;
  // A module's own names are shown and found under its name: Scan.exclusive.
  for (const StdlibFile& file : stdlib.modules) {
    const std::string_view module = std::string_view(file.name).substr(0, file.name.find('.'));
    if (!name.starts_with(module) || name.size() <= module.size() + 1 || name[module.size()] != '.') continue;
    if (auto found = search(file, name.substr(module.size() + 1))) return found;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> find_documentation(const Stdlib& stdlib, std::string_view name) {
  std::optional<std::string> found = find_declaration(stdlib, name);
  if (name.find('.') != std::string_view::npos) return found;   // below a function lies what serves it
  const std::string members = members_of(stdlib, name);
  if (members.empty()) return found;
  return found ? fmt::format("{}\n{}", *found, members) : members;
}

std::string list_documentation(const Stdlib& stdlib) {
  std::string out;
  visit_declarations(stdlib, [&out](std::string_view name, const std::vector<std::string_view>& lines, size_t at) { out += row(name, lines, at); });
  return out;
}

}  // namespace bendc
