#include "driver/packages_folder.h"

#include <cstdlib>

namespace bendc {

std::string packages_folder() {
  if (const char* chosen = std::getenv("BEND_LIB"); chosen != nullptr && *chosen != '\0') return chosen;
  const char* home = std::getenv("HOME");
  return home != nullptr && *home != '\0' ? std::string(home) + "/.bend/lib" : std::string();
}

}  // namespace bendc
