// link_executable: an object, the program's own effects and the embedded runtime archive -> an executable, through the system's `cc`.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "driver/custom_effects.h"

namespace bendc {

struct LinkResult {
  bool ok = false;
  std::string message;    // what failed, in one line
  std::string output;     // what `cc` said
};

[[nodiscard]] LinkResult link_executable(std::string_view object, const std::vector<EffectFile>& effects, const std::string& path);

}  // namespace bendc
