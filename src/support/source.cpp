#include "support/source.h"

#include <algorithm>
#include <cstring>

namespace bendc {

Span cover(Span a, Span b) {
  if (!a.valid()) return b;
  if (!b.valid() || a.file != b.file) return a;
  uint32_t offset = std::min(a.offset, b.offset);
  return {a.file, offset, std::max(a.end(), b.end()) - offset};
}

FileId SourceMap::add(std::string path, std::string text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  Source source{std::move(path), std::move(text), {0}};
  const char* begin = source.text.data();
  const char* end = begin + source.text.size();
  for (const char* p = begin; p < end;) {
    p = static_cast<const char*>(std::memchr(p, '\n', static_cast<size_t>(end - p)));
    if (!p) break;
    ++p;
    source.line_starts.push_back(static_cast<uint32_t>(p - begin));
  }
  return files_.add(std::move(source));
}

LineColumn SourceMap::locate(FileId file, uint32_t offset) const {
  const Source& source = files_[file];
  offset = std::min(offset, static_cast<uint32_t>(source.text.size()));
  auto after = std::upper_bound(source.line_starts.begin(), source.line_starts.end(), offset);
  uint32_t line = static_cast<uint32_t>(after - source.line_starts.begin());
  return {line, offset - source.line_starts[line - 1] + 1};
}

std::string_view SourceMap::line_text(FileId file, uint32_t line) const {
  const Source& source = files_[file];
  if (line == 0 || line > source.line_starts.size()) return {};
  uint32_t begin = source.line_starts[line - 1];
  uint32_t end = line < source.line_starts.size() ? source.line_starts[line] - 1 : static_cast<uint32_t>(source.text.size());
  if (end > begin && source.text[end - 1] == '\r') --end;
  return std::string_view(source.text).substr(begin, end - begin);
}

std::string_view SourceMap::text(Span span) const {
  const std::string& text = files_[span.file].text;
  if (span.offset >= text.size()) return {};
  return std::string_view(text).substr(span.offset, span.length);
}

}  // namespace bendc
