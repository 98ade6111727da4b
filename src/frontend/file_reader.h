// disk_reader: the FileReader of the command line. Gives a regular file's bytes and its real path, or the reason in words
// ("no such file", "is a directory", "permission denied", "is not a regular file", "is larger than 1 GiB"). Lists regular files and folders, without
// those whose name begins with a dot.
#pragma once
#include "frontend/module_loader.h"

namespace bendc {

[[nodiscard]] FileReader disk_reader(std::string packages = {});

}  // namespace bendc
