// link_program: an object and the program's own effects -> an executable with the embedded runtime archive, or a shared object that takes the runtime's
// functions from the process that loads it; through the system's `cc`.
#pragma once
#include <cstdint>
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

enum class Linked : uint8_t { Executable, SharedObject };

[[nodiscard]] LinkResult link_program(std::string_view object, const std::vector<EffectFile>& effects, Linked as, const std::string& path);

}  // namespace bendc
