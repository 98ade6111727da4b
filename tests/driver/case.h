// A test case: one `.bend` file (or a folder's main.bend / PROOF.bend) with its expectation in comment lines.
// In: the file's text. Out: a Case, or a list of what is wrong with it (an unknown directive is never ignored).
//   #| text            one line of stdout                    #! error CODE LINE   refused, nothing runs
//   #! exit N          exit status                           #! check             accepted by `bendc check`
//   #! stderr TEXT     stderr contains TEXT                  #! warning CODE LINE accepted, with this warning
//   #! flags WORDS     options before FILE                   #! args WORDS        words after FILE
//   #! lanes NAMES     only these lanes                      #! file NAME, #> text  a virtual file beside the case
//   #! dump WHAT, #? text, #?! text   lines the dump has, in order, and lines it has not between them
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace bendc::tests {

enum class Command { Run, Check, CheckSafe, Build };

struct CodeAt {
  std::string code;
  int line = 0;
  friend bool operator==(const CodeAt&, const CodeAt&) = default;
};

struct DumpLine {
  bool absent = false;  // `#?!`
  std::string text;
  int source_line = 0;
};

struct DumpCheck {
  std::string what;  // a pass name, or one of ast, core, flow, device, llvm, llvm-opt, device-llvm, ptx, asm
  std::vector<DumpLine> lines;
};

struct VirtualFile {
  std::string name;
  std::string text;
};

struct Case {
  std::string id;              // "run/scan_small", "shared/run/scan_small"
  std::filesystem::path file;  // absolute path of the case's file
  bool writable = false;       // our own: --update may rewrite it
  Command command = Command::Run;
  bool expects_output = false;      // has `#|` lines or `#! exit`
  std::vector<std::string> output;  // expected lines of stdout
  int exit_status = 0;
  std::optional<CodeAt> error;
  std::vector<CodeAt> warnings;
  bool check = false;
  std::vector<std::string> error_texts;  // `#! stderr`
  std::vector<std::string> flags, args, lanes;
  std::vector<VirtualFile> files;
  std::vector<DumpCheck> dumps;
  std::vector<std::string> problems;  // malformed: why; such a case fails without running
};

// `folder` is the category the case lies in ("run", "check", ...); it and the file's name choose the command.
[[nodiscard]] Case read_case(const std::filesystem::path& file, std::string id, std::string_view folder);

// The text of `source` with its expectation lines replaced by the given ones (kept where the old ones began, else appended).
[[nodiscard]] std::string with_expectation(std::string_view source, const std::vector<std::string>& lines);

[[nodiscard]] std::optional<std::string> read_file(const std::filesystem::path& path);
[[nodiscard]] std::vector<std::string> split_lines(std::string_view text);
[[nodiscard]] std::vector<std::string> split_words(std::string_view text);

}  // namespace bendc::tests
