#include "case.h"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <set>
#include <sstream>

namespace bendc::tests {
namespace {

const std::set<std::string, std::less<>>& known_codes() {
  static const std::set<std::string, std::less<>> codes = {
#define BENDC_DIAGNOSTIC(code, severity, summary) #code,
#include "support/diagnostic_codes.def"
#undef BENDC_DIAGNOSTIC
  };
  return codes;
}

std::optional<int> read_int(std::string_view text) {
  int value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_expectation(std::string_view line) { return line.starts_with("#|") || line.starts_with("#! exit ") || line.starts_with("#! error "); }

// The text after a marker such as `#|`: nothing, or one blank and the text.
std::optional<std::string_view> marked_text(std::string_view line, size_t marker) {
  line.remove_prefix(marker);
  if (line.empty()) return line;
  if (line.front() != ' ') return std::nullopt;
  return line.substr(1);
}

class Reader {
 public:
  explicit Reader(Case& out) : case_(out) {}

  void read(std::string_view text) {
    for (const std::string& line : split_lines(text)) {
      ++line_;
      if (line.starts_with("#|")) {
        output(line);
      } else if (line.starts_with("#!")) {
        directive(line);
      } else if (line.starts_with("#?")) {
        dump_line(line);
      } else if (line.starts_with("#>")) {
        file_line(line);
      }
    }
    finish();
  }

 private:
  void problem(std::string text) { case_.problems.push_back(fmt::format("line {}: {}", line_, text)); }

  void output(std::string_view line) {
    auto text = marked_text(line, 2);
    if (!text) return problem("write `#| text`, with one blank after `#|`");
    case_.expects_output = true;
    case_.output.emplace_back(*text);
  }

  void dump_line(std::string_view line) {
    bool absent = line.starts_with("#?!");
    auto text = marked_text(line, absent ? 3 : 2);
    if (!text || text->empty()) return problem("write `#? text` or `#?! text`");
    if (case_.dumps.empty()) return problem("`#?` before any `#! dump`");
    case_.dumps.back().lines.push_back({absent, std::string(*text), line_});
  }

  void file_line(std::string_view line) {
    auto text = marked_text(line, 2);
    if (!text) return problem("write `#> text`, with one blank after `#>`");
    if (case_.files.empty()) return problem("`#>` before any `#! file`");
    case_.files.back().text.append(*text).push_back('\n');
  }

  std::optional<CodeAt> code_at(const std::vector<std::string>& words) {
    if (words.size() != 3) return problem(fmt::format("write `#! {} CODE LINE`", words[0])), std::nullopt;
    if (!known_codes().contains(words[1])) return problem(fmt::format("`{}` is no diagnostic code", words[1])), std::nullopt;
    auto line = read_int(words[2]);
    if (!line || *line < 0) return problem(fmt::format("`{}` is no line number", words[2])), std::nullopt;
    return CodeAt{words[1], *line};
  }

  void directive(std::string_view line) {
    std::vector<std::string> words = split_words(line.substr(2));
    if (words.empty()) return problem("empty directive");
    const std::string& name = words[0];
    std::vector<std::string> rest(words.begin() + 1, words.end());
    auto append = [&](std::vector<std::string>& list) { list.insert(list.end(), rest.begin(), rest.end()); };
    if (name == "exit") {
      auto status = rest.size() == 1 ? read_int(rest[0]) : std::nullopt;
      if (!status || *status < 0 || *status > 255) return problem("write `#! exit N`, N from 0 to 255");
      case_.exit_status = *status;
      case_.expects_output = true;
    } else if (name == "error") {
      if (case_.error) return problem("a second `#! error`");
      case_.error = code_at(words);
    } else if (name == "warning") {
      if (auto warning = code_at(words)) case_.warnings.push_back(*warning);
    } else if (name == "check") {
      case_.check = true;
    } else if (name == "stderr") {
      size_t start = line.find("stderr") + 6;
      if (rest.empty()) return problem("write `#! stderr TEXT`");
      case_.error_texts.emplace_back(line.substr(start + 1));
    } else if (name == "flags") {
      append(case_.flags);
    } else if (name == "args") {
      append(case_.args);
    } else if (name == "lanes") {
      append(case_.lanes);
    } else if (name == "file") {
      if (rest.size() != 1 || rest[0].find("..") != std::string::npos || rest[0].front() == '/') {
        return problem("write `#! file NAME`, NAME below the case's folder");
      }
      case_.files.push_back({rest[0], ""});
    } else if (name == "dump") {
      if (rest.size() != 1) return problem("write `#! dump WHAT`");
      case_.dumps.push_back({rest[0], {}});
    } else {
      problem(fmt::format("unknown directive `{}`", name));
    }
  }

  void finish() {
    line_ = 0;
    bool refused = case_.error.has_value();
    if (refused && (case_.check || case_.expects_output || !case_.warnings.empty())) problem("`#! error` stands alone: nothing runs");
    if (case_.check && case_.expects_output) problem("`#! check` and expected output exclude each other");
    if (!refused && !case_.check && !case_.expects_output && case_.dumps.empty() && case_.warnings.empty()) {
      problem("no expectation: nothing here can fail (a program that prints nothing says `#! exit 0`)");
    }
    for (const DumpCheck& dump : case_.dumps) {
      if (dump.lines.empty()) problem(fmt::format("`#! dump {}` without `#?` lines", dump.what));
    }
  }

  Case& case_;
  int line_ = 0;
};

Command command_of(std::string_view folder, std::string_view name, const Case& c) {
  if (folder == "run" || folder == "reports") return Command::Run;
  if (folder == "reject") {
    if (name.starts_with("b3_")) return Command::CheckSafe;
    if (name.starts_with("b5_")) return Command::Build;
    return Command::Check;
  }
  if (folder == "check") return Command::Check;
  return c.expects_output ? Command::Run : Command::Check;
}

}  // namespace

Case read_case(const std::filesystem::path& file, std::string id, std::string_view folder) {
  Case c;
  c.id = std::move(id);
  c.file = file;
  auto text = read_file(file);
  if (!text) {
    c.problems.emplace_back("cannot be read");
    return c;
  }
  Reader(c).read(*text);
  std::string name = c.id.substr(c.id.rfind('/') + 1);
  c.command = command_of(folder, name, c);
  return c;
}

std::string with_expectation(std::string_view source, const std::vector<std::string>& lines) {
  std::string out;
  bool placed = false;
  auto place = [&] {
    for (const std::string& line : lines) out.append(line).push_back('\n');
    placed = true;
  };
  for (const std::string& line : split_lines(source)) {
    if (!is_expectation(line)) {
      out.append(line).push_back('\n');
    } else if (!placed) {
      place();
    }
  }
  if (!placed) place();
  return out;
}

std::optional<std::string> read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    size_t end = text.find('\n');
    if (end == std::string_view::npos) {
      lines.emplace_back(text);
      break;
    }
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::istringstream in{std::string(text)};
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

}  // namespace bendc::tests
