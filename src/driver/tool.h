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
// A path as a word of a command that takes it for a file whatever its first character is: `-e.c` is `./-e.c`, `@e.c` is `./@e.c`.
[[nodiscard]] std::string path_word(const std::string& path);
[[nodiscard]] ToolResult run_c_compiler(std::vector<std::string> words);

}  // namespace bendc
