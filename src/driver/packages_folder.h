// Where packages lie on this machine: BEND_LIB, else .bend/lib in the user's home. Empty when neither is set.
#pragma once
#include <string>

namespace bendc {

[[nodiscard]] std::string packages_folder();

}  // namespace bendc
