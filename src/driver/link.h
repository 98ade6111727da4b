// link_executable: an object and the embedded runtime archive -> an executable, through the system's `cc`.
#pragma once
#include <string>
#include <string_view>

namespace bendc {

struct LinkResult {
  bool ok = false;
  std::string message;    // what failed, in one line
  std::string output;     // what `cc` said
};

[[nodiscard]] LinkResult link_executable(std::string_view object, const std::string& path);

}  // namespace bendc
