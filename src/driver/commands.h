// The commands of bendc. Each takes the options and gives the process's exit status.
#pragma once
#include <string>

#include "driver/options.h"

namespace bendc {

[[nodiscard]] int command_run(const Options& options);
[[nodiscard]] int command_build(const Options& options);
[[nodiscard]] int command_check(const Options& options);
[[nodiscard]] int command_explain(const Options& options, const std::string& code);
[[nodiscard]] int command_doctor(const Options& options);
[[nodiscard]] int command_doc(const std::string& name);

}  // namespace bendc
