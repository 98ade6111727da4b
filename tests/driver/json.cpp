#include "json.h"

#include <charconv>
#include <map>

#include "case.h"

namespace bendc::tests {
namespace {

// A scanner over one JSON text; every function returns false where the text is malformed.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool object(std::map<std::string, std::string>* members, int depth) {
    if (depth > kMaxDepth || !take('{')) return false;
    if (take('}')) return true;
    do {
      std::string key, value;
      if (!string(key) || !take(':') || !any(value, depth + 1)) return false;
      if (members != nullptr) (*members)[key] = value;
    } while (take(','));
    return take('}');
  }
  bool at_end() {
    blanks();
    return rest_.empty();
  }

 private:
  static constexpr int kMaxDepth = 32;

  void blanks() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t')) rest_.remove_prefix(1);
  }
  bool take(char c) {
    blanks();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool string(std::string& out) {
    if (!take('"')) return false;
    while (!rest_.empty() && rest_.front() != '"') {
      char c = rest_.front();
      rest_.remove_prefix(1);
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c == '\\') {
        if (rest_.empty()) return false;
        c = rest_.front();
        rest_.remove_prefix(1);
        switch (c) {
          case 'n': c = '\n'; break;
          case 't': c = '\t'; break;
          case 'r': c = '\r'; break;
          case 'b': c = '\b'; break;
          case 'f': c = '\f'; break;
          case 'u':  // control characters only need it; the driver compares none of them
            if (rest_.size() < 4) return false;
            rest_.remove_prefix(4);
            c = '?';
            break;
          case '"':
          case '\\':
          case '/': break;
          default: return false;
        }
      }
      out.push_back(c);
    }
    return take('"');
  }
  bool array(int depth) {
    if (depth > kMaxDepth || !take('[')) return false;
    if (take(']')) return true;
    do {
      std::string ignored;
      if (!any(ignored, depth + 1)) return false;
    } while (take(','));
    return take(']');
  }
  bool any(std::string& out, int depth) {
    blanks();
    if (rest_.empty()) return false;
    if (rest_.front() == '"') return string(out);
    if (rest_.front() == '{') return object(nullptr, depth);
    if (rest_.front() == '[') return array(depth);
    size_t end = rest_.find_first_of(",]} \t");
    out = rest_.substr(0, end);
    rest_.remove_prefix(out.size());
    if (out == "true" || out == "false" || out == "null") return true;
    double value = 0;
    auto [stop, error] = std::from_chars(out.data(), out.data() + out.size(), value);
    return error == std::errc() && stop == out.data() + out.size();
  }

  std::string_view rest_;
};

}  // namespace

std::optional<std::vector<ReportedDiagnostic>> read_diagnostics(std::string_view text, std::string& bad_line) {
  std::vector<ReportedDiagnostic> all;
  for (const std::string& line : split_lines(text)) {
    if (line.empty()) continue;
    std::map<std::string, std::string> members;
    Scanner scanner(line);
    if (!scanner.object(&members, 0) || !scanner.at_end()) {
      bad_line = line;
      return std::nullopt;
    }
    ReportedDiagnostic d{members["code"], members["severity"], members["file"], members["message"], 0};
    const std::string& number = members["line"];
    std::from_chars(number.data(), number.data() + number.size(), d.line);
    all.push_back(std::move(d));
  }
  return all;
}

}  // namespace bendc::tests
