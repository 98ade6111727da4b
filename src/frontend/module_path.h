// Paths of imports, as text: what an import line may name, joining, and the namespace key of a file.
// Example: key_of("/p/lib/vec.bend", "/p") is "lib/vec".
#pragma once
#include <string>
#include <string_view>

namespace bendc {

enum class ImportPath { File, NoSuffix, OtherSuffix, Package, Malformed };

// `import "native:x.c"` as a foreign body: the runtime's effect x.
inline constexpr std::string_view kNativeScheme = "native:";

[[nodiscard]] ImportPath classify_import(std::string_view path);
// A path that names a file or folder below the folder it starts from.
[[nodiscard]] bool stays_inside(std::string_view path);
[[nodiscard]] std::string directory_of(std::string_view path);                      // "" when there is none, else ends in '/'
[[nodiscard]] std::string join_path(std::string_view directory, std::string_view path);  // `.` and `a/..` removed
[[nodiscard]] std::string key_of(std::string_view real_path, std::string_view entry_directory);

}  // namespace bendc
