#include "frontend/parse_imports.h"

#include <fmt/format.h>

#include "frontend/lexer.h"

namespace bendc {

namespace {

constexpr std::string_view kReserved[] = {
#define BENDC_TOKEN(kind, text)
#define BENDC_KEYWORD(kind, text) text,
#include "frontend/token.def"
#undef BENDC_KEYWORD
#undef BENDC_TOKEN
};

bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

bool plain_name(std::string_view word) {
  if (word.empty() || !is_name_head(word[0])) return false;
  for (char c : word)
    if (!is_name_char(c) || c == '.') return false;
  for (std::string_view reserved : kReserved)
    if (word == reserved) return false;
  return true;
}

struct Word {
  std::string_view text;
  Span span;
};

}  // namespace

uint32_t parse_imports(const SourceMap& sources, FileId file, Interner& names, std::vector<ast::Import>& imports, Diagnostics& diagnostics) {
  const Source& source = sources[file];
  std::string_view text = source.text;
  std::vector<Word> words;
  for (uint32_t line = 1; line <= source.line_starts.size(); ++line) {
    uint32_t start = source.line_starts[line - 1];
    std::string_view line_text = sources.line_text(file, line);
    line_text = line_text.substr(0, line_text.find('#'));
    words.clear();
    for (size_t i = 0; i < line_text.size();) {
      if (blank(line_text[i])) {
        ++i;
        continue;
      }
      size_t begin = i;
      while (i < line_text.size() && !blank(line_text[i])) ++i;
      words.push_back({line_text.substr(begin, i - begin), {file, static_cast<uint32_t>(start + begin), static_cast<uint32_t>(i - begin)}});
    }
    if (words.empty()) continue;
    if (words[0].text != "import") return start;
    ast::Import made;
    made.span = cover(words.front().span, words.back().span);
    if (words.size() == 2 && words[1].text == "Base") {
      made.base = true;
    } else if (words.size() == 2 && plain_name(words[1].text)) {
      made.stdlib = true;
      made.alias = names.intern(words[1].text);
      made.alias_span = words[1].span;
    } else if (words.size() == 4 && words[2].text == "as" && words[1].text == "Base") {
      diagnostics.add(Code::P26, words[3].span, "an alias for `Base`").fix = "write `import Base`: its names are used as they are, and it takes no alias";
      continue;
    } else if (words.size() == 4 && words[2].text == "as" && plain_name(words[3].text)) {
      made.path = std::string(words[1].text);
      made.alias = names.intern(words[3].text);
      made.alias_span = words[3].span;
    } else {
      Diagnostic& d = words.size() == 4 && words[2].text == "as" ? diagnostics.add(Code::P26, words[3].span, fmt::format("the alias `{}` is not a plain name", words[3].text.substr(0, 60)))
                                                                  : diagnostics.add(Code::P26, made.span, "malformed import line");
      d.fix = "write `import Base`, `import Name` or `import ./path.bend as Alias`, one a line; an alias is one name without dots";
      continue;
    }
    made.path_span = words[1].span;
    imports.push_back(std::move(made));
  }
  return static_cast<uint32_t>(text.size());
}

}  // namespace bendc
