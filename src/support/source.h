// Source files and spans. A Span is 12 bytes: file, byte offset, byte length. Lines and columns are computed only when rendering.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "support/id.h"
#include "support/table.h"

namespace bendc {

struct FileTag;
using FileId = Id<FileTag>;

struct Span {
  FileId file;
  uint32_t offset = 0;
  uint32_t length = 0;
  [[nodiscard]] bool valid() const { return file.valid(); }
  [[nodiscard]] uint32_t end() const { return offset + length; }
};

// The smallest span covering both (same file).
[[nodiscard]] Span cover(Span a, Span b);

struct LineColumn {
  uint32_t line = 1;    // 1-based
  uint32_t column = 1;  // 1-based, in bytes (a tab counts as one)
};

struct Source {
  std::string path;     // as shown to the user
  std::string text;     // UTF-8, without a BOM
  std::vector<uint32_t> line_starts;  // byte offset of each line's first byte
};

class SourceMap {
 public:
  FileId add(std::string path, std::string text);
  [[nodiscard]] const Source& operator[](FileId id) const { return files_[id]; }
  [[nodiscard]] LineColumn locate(FileId file, uint32_t offset) const;
  [[nodiscard]] std::string_view line_text(FileId file, uint32_t line) const;  // without the newline
  [[nodiscard]] std::string_view text(Span span) const;
  [[nodiscard]] uint32_t size() const { return files_.size(); }

 private:
  Table<FileId, Source> files_;
};

}  // namespace bendc
