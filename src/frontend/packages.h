// Packages: folders of files that are named by their content, so that a program that imports one always gets the same files. They lie in one folder
// on this machine (FileReader::packages); nothing is fetched. A package is `0x` and the first 32 hexadecimal digits of the SHA-256 of its manifest:
// a line `<sha256 of the file> <path>` for each of its files, sorted, each ended by a newline.
// Example: in the folder /lib, `import 0x5f..e1/list.bend as L` is the file /lib/0x5f..e1/list.bend; `import sort@1.0.0.0/list.bend as L` first reads the
// package's name from the file /lib/sort@1.0.0.0.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "frontend/module_loader.h"

namespace bendc {

struct PackagePath {
  std::string package;   // "0x.." or "name@1.0.0.0"
  std::string inside;    // the path in it
};

// None: the text names no package in either form.
[[nodiscard]] std::optional<PackagePath> split_package_path(std::string_view import);
[[nodiscard]] bool is_package_hash(std::string_view text);

struct PackageHash {
  std::string hash;      // "0x.."; empty: it cannot be made
  std::string problem;   // why not
};
[[nodiscard]] PackageHash package_hash(const FileReader& reader, const std::string& folder);

}  // namespace bendc
