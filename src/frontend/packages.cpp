#include "frontend/packages.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "frontend/module_path.h"
#include "support/sha256.h"

namespace bendc {

namespace {

constexpr size_t kHashDigits = 32;
constexpr size_t kMaxFiles = 65536;   // a folder that is no package must not keep the compiler busy
constexpr size_t kMaxNameLength = 64;

bool lower(char c) { return c >= 'a' && c <= 'z'; }
bool digit(char c) { return c >= '0' && c <= '9'; }

// `[a-z][a-z0-9-]{0,63}@n.n.n.n`
bool is_named(std::string_view text) {
  const size_t at = text.find('@');
  if (at == std::string_view::npos || at == 0 || at > kMaxNameLength || !lower(text[0])) return false;
  if (!std::all_of(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), [](char c) { return lower(c) || digit(c) || c == '-'; })) return false;
  std::string_view version = text.substr(at + 1);
  for (int part = 0; part < 4; ++part) {
    size_t digits = 0;
    while (digits < version.size() && digit(version[digits])) ++digits;
    if (digits == 0 || digits > 9) return false;
    version.remove_prefix(digits);
    if (part == 3) break;
    if (!version.starts_with('.')) return false;
    version.remove_prefix(1);
  }
  return version.empty();
}

}  // namespace

bool is_package_hash(std::string_view text) {
  if (text.size() != 2 + kHashDigits || !text.starts_with("0x")) return false;
  return std::all_of(text.begin() + 2, text.end(), [](char c) { return digit(c) || (c >= 'a' && c <= 'f'); });
}

std::optional<PackagePath> split_package_path(std::string_view import) {
  const size_t slash = import.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view package = import.substr(0, slash);
  if (!is_package_hash(package) && !is_named(package)) return std::nullopt;
  return PackagePath{std::string(package), std::string(import.substr(slash + 1))};
}

PackageHash package_hash(const FileReader& reader, const std::string& folder) {
  std::vector<std::string> lines, folders{""};
  auto failed = [](std::string problem) { return PackageHash{"", std::move(problem)}; };
  while (!folders.empty()) {
    const std::string inside = folders.back();
    folders.pop_back();
    std::string reason;
    const auto entries = reader.list ? reader.list(join_path(folder + "/", inside), reason) : std::nullopt;
    if (!entries) return failed(reason.empty() ? "its folder cannot be listed" : fmt::format("`{}` cannot be listed: {}", join_path(folder + "/", inside), reason));
    for (const FolderEntry& entry : *entries) {
      if (lines.size() + folders.size() >= kMaxFiles) return failed(fmt::format("it has more than {} files", kMaxFiles));
      const std::string path = inside + entry.name;
      if (entry.folder) {
        folders.push_back(path + "/");
        continue;
      }
      const std::optional<LoadedFile> file = reader.read(join_path(folder + "/", path), reason);
      if (!file) return failed(fmt::format("its file `{}` cannot be read: {}", path, reason));
      lines.push_back(fmt::format("{} {}\n", sha256_hex(file->text), path));
    }
  }
  std::sort(lines.begin(), lines.end());
  std::string manifest;
  for (const std::string& line : lines) manifest += line;
  return {"0x" + sha256_hex(manifest).substr(0, kHashDigits), ""};
}

}  // namespace bendc
