// run_tool: a program and its arguments -> its exit and its output. run_c_compiler: that of the system's C compiler, which is the one named in CC, or `cc`.
#pragma once
#include <string>
#include <vector>

namespace bendc {

struct ToolResult {
  bool ok = false;
  bool started = false;
  std::string output;      // its stdout and stderr
  std::string message;     // why it did not start
};

[[nodiscard]] ToolResult run_tool(const std::vector<std::string>& words);

[[nodiscard]] std::string c_compiler();
[[nodiscard]] ToolResult run_c_compiler(std::vector<std::string> words);

}  // namespace bendc
