#include "support/render.h"

#include <algorithm>

#include <fmt/format.h>

#include "support/text.h"

namespace bendc {

namespace {

constexpr uint32_t kWindowBytes = 4096;
constexpr uint32_t kShownColumns = 120;   // a longer line is shown as a window around the span

struct Palette {
  const char *error, *warning, *note, *frame, *bold, *off;
};
constexpr Palette kPlain{"", "", "", "", "", ""};
constexpr Palette kColored{"\x1b[1;31m", "\x1b[1;33m", "\x1b[1;36m", "\x1b[34m", "\x1b[1m", "\x1b[0m"};

std::string_view severity_word(Severity severity) {
  switch (severity) {
    case Severity::Error: return "error";
    case Severity::Warning: return "warning";
    case Severity::Note: return "note";
  }
  return "";
}

const char* severity_color(const Palette& palette, Severity severity) {
  switch (severity) {
    case Severity::Error: return palette.error;
    case Severity::Warning: return palette.warning;
    case Severity::Note: return palette.note;
  }
  return "";
}

// One source line as display cells: one per code point, control characters and bad bytes replaced, so that a caret
// stands under its character and no byte of the input reaches the terminal raw.
struct ShownLine {
  std::vector<std::string> cells;
  std::vector<uint32_t> offsets;  // byte offset of each cell in the line
};

ShownLine shown_line(std::string_view text) {
  ShownLine line;
  for (size_t i = 0; i < text.size();) {
    size_t used;
    uint32_t c = text::utf8_decode(text.data() + i, text.size() - i, &used);
    line.offsets.push_back(static_cast<uint32_t>(i));
    if (c == '\t') line.cells.emplace_back(" ");
    else if (c == text::kBadCodePoint || c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069)) line.cells.emplace_back("\xEF\xBF\xBD");
    else line.cells.emplace_back(text.substr(i, used));
    i += used;
  }
  return line;
}

size_t cell_at(const ShownLine& line, uint32_t byte) {
  return static_cast<size_t>(std::lower_bound(line.offsets.begin(), line.offsets.end(), byte) - line.offsets.begin());
}

// Messages quote program text; keep them on one line and free of control characters.
std::string clean(std::string_view text) {
  std::string out;
  for (const std::string& cell : shown_line(text).cells) out += cell;
  return out;
}

class TextRenderer {
 public:
  TextRenderer(const SourceMap& sources, bool color) : sources_(sources), palette_(color ? kColored : kPlain) {}

  void diagnostic(const Diagnostic& d) {
    Severity severity = severity_of(d.code);
    out_ += fmt::format("{}{}[{}]{}: {}{}{}\n", severity_color(palette_, severity), severity_word(severity), code_text(d.code), palette_.off, palette_.bold, clean(d.message), palette_.off);
    if (d.span.valid()) {
      LineColumn at = sources_.locate(d.span.file, d.span.offset);
      gutter_ = std::max<size_t>(2, std::to_string(at.line + 1).size());
      LineColumn shown = shown_position(d.span);
      out_ += fmt::format("{}{:>{}}{} {}:{}:{}", palette_.frame, "-->", gutter_ + 3, palette_.off, clean(sources_[d.span.file].path), shown.line, shown.column);
      if (!d.def.empty()) out_ += fmt::format(" in `{}`", clean(d.def));
      out_ += '\n';
      excerpt(d.span, "", severity_color(palette_, severity), true);
    } else {
      gutter_ = 2;
      if (!d.def.empty()) tail("in", fmt::format("`{}`", d.def));
    }
    for (const Label& label : d.labels) {
      if (!label.span.valid()) continue;
      LineColumn shown = shown_position(label.span);
      out_ += fmt::format("{}{:>{}}{} {}:{}:{}\n", palette_.frame, "-->", gutter_ + 3, palette_.off, clean(sources_[label.span.file].path), shown.line, shown.column);
      excerpt(label.span, label.text, palette_.note, false);
    }
    if (!d.expected.empty()) tail("expected", d.expected);
    if (!d.observed.empty()) tail("observed", d.observed);
    for (const std::string& note : d.notes) tail("note", note);
    if (!d.fix.empty()) tail("fix", d.fix);
  }

  std::string take() { return std::move(out_); }

 private:
  // Columns are shown in characters.
  LineColumn shown_position(Span span) const {
    LineColumn at = sources_.locate(span.file, span.offset);
    std::string_view before = sources_.line_text(span.file, at.line).substr(0, at.column - 1);
    auto characters = std::count_if(before.begin(), before.end(), [](char c) { return (c & 0xC0) != 0x80; });
    return {at.line, static_cast<uint32_t>(characters + 1)};
  }

  // The part of a line that can be shown: lines may be as long as the file.
  std::string_view window(FileId file, uint32_t number, uint32_t from_byte) const {
    std::string_view text = sources_.line_text(file, number);
    return from_byte < text.size() ? text.substr(from_byte, kWindowBytes) : std::string_view();
  }

  void tail(std::string_view head, std::string_view text) {
    bool first = true;
    while (first || !text.empty()) {
      size_t end = std::min(text.find('\n'), text.size());
      std::string line = clean(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      if (first) out_ += fmt::format("{}{:>{}}{} {}{}{}: {}\n", palette_.frame, "=", gutter_ + 3, palette_.off, palette_.bold, head, palette_.off, line);
      else out_ += fmt::format("{:>{}}{}\n", "", gutter_ + 6 + head.size(), line);
      first = false;
    }
  }

  // The span's first line with carets below it and, for the primary span, one line of context on each side.
  void excerpt(Span span, std::string_view text, const char* color, bool context) {
    LineColumn at = sources_.locate(span.file, span.offset);
    uint32_t lines = static_cast<uint32_t>(sources_[span.file].line_starts.size());
    uint32_t from_byte = at.column - 1 > kWindowBytes / 2 ? at.column - 1 - kWindowBytes / 4 : 0;
    ShownLine line = shown_line(window(span.file, at.line, from_byte));
    size_t begin = cell_at(line, at.column - 1 - from_byte);
    size_t end = cell_at(line, at.column - 1 - from_byte + span.length);
    bool runs_on = sources_.locate(span.file, span.end() > span.offset ? span.end() - 1 : span.offset).line > at.line;
    end = std::max(end, begin + 1);
    clipped_ = from_byte > 0;
    from_byte_ = from_byte;
    size_t from = begin > kShownColumns * 2 / 3 && line.cells.size() > kShownColumns ? begin - kShownColumns / 3 : 0;
    frame("");
    if (context && at.line > 1) source_line(span.file, at.line - 1, from);
    source_line(span.file, at.line, from);
    size_t lead = from > 0 || clipped_ ? 3 : 0;
    size_t width = std::min(end, from + kShownColumns) - begin;
    std::string carets(begin - from + lead, ' ');
    carets += color;
    carets.append(width, '^');
    if (runs_on || end > from + kShownColumns) carets += "...";
    if (!text.empty()) carets += " " + clean(text);
    carets += palette_.off;
    frame(carets);
    if (context && at.line < lines && !sources_.line_text(span.file, at.line + 1).empty()) source_line(span.file, at.line + 1, from);
  }

  void frame(std::string_view text) {
    out_ += fmt::format("{}{:>{}}{}", palette_.frame, "|", gutter_ + 3, palette_.off);
    if (!text.empty()) out_ += fmt::format(" {}", text);
    out_ += '\n';
  }

  void source_line(FileId file, uint32_t number, size_t from) {
    ShownLine line = shown_line(window(file, number, from_byte_));
    std::string text;
    size_t end = std::min(line.cells.size(), from + kShownColumns);
    if ((from > 0 || clipped_) && from < line.cells.size()) text += "...";
    for (size_t i = from; i < end; ++i) text += line.cells[i];
    if (end < line.cells.size()) text += "...";
    out_ += fmt::format("{}{:>{}} |{}", palette_.frame, number, gutter_ + 1, palette_.off);
    if (!text.empty()) out_ += fmt::format(" {}", text);
    out_ += '\n';
  }

  const SourceMap& sources_;
  Palette palette_;
  size_t gutter_ = 2;
  bool clipped_ = false;       // the excerpt starts inside its lines, at from_byte_
  uint32_t from_byte_ = 0;
  std::string out_;
};

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size();) {
    size_t used;
    uint32_t c = text::utf8_decode(text.data() + i, text.size() - i, &used);
    if (c == text::kBadCodePoint) out += "\\ufffd";
    else if (c == '"' || c == '\\') (out += '\\') += static_cast<char>(c);
    else if (c == '\n') out += "\\n";
    else if (c == '\t') out += "\\t";
    else if (c == '\r') out += "\\r";
    else if (c < 0x20 || c == 0x7F) out += fmt::format("\\u{:04x}", c);
    else out += text.substr(i, used);
    i += used;
  }
  return out + '"';
}

// Columns count characters, as in the text form.
LineColumn json_position(FileId file, uint32_t offset, const SourceMap& sources) {
  LineColumn at = sources.locate(file, offset);
  std::string_view before = sources.line_text(file, at.line).substr(0, at.column - 1);
  at.column = static_cast<uint32_t>(std::count_if(before.begin(), before.end(), [](char c) { return (c & 0xC0) != 0x80; }) + 1);
  return at;
}

std::string json_place(Span span, const SourceMap& sources) {
  LineColumn from = json_position(span.file, span.offset, sources), to = json_position(span.file, span.end(), sources);
  return fmt::format("\"file\":{},\"line\":{},\"column\":{},\"end_line\":{},\"end_column\":{},\"offset\":{},\"length\":{}", json_string(sources[span.file].path), from.line, from.column, to.line,
                     to.column, span.offset, span.length);
}

}  // namespace

std::string render_text(const Diagnostics& bag, const SourceMap& sources, const RenderOptions& options) {
  TextRenderer renderer(sources, options.color);
  size_t shown = std::min(bag.size(), options.max_shown);
  std::string out;
  for (size_t i = 0; i < shown; ++i) {
    if (i > 0) out += '\n';
    renderer.diagnostic(bag.all()[i]);
    out += renderer.take();
  }
  if (shown < bag.size()) out += fmt::format("\n... and {} more\n", bag.size() - shown);
  return out;
}

std::string render_json(const Diagnostics& bag, const SourceMap& sources) {
  std::string out;
  for (const Diagnostic& d : bag.all()) {
    out += fmt::format("{{\"severity\":\"{}\",\"code\":\"{}\",\"message\":{}", severity_word(severity_of(d.code)), code_text(d.code), json_string(d.message));
    if (d.span.valid()) out += "," + json_place(d.span, sources);
    if (!d.def.empty()) out += ",\"def\":" + json_string(d.def);
    if (!d.expected.empty()) out += ",\"expected\":" + json_string(d.expected);
    if (!d.observed.empty()) out += ",\"observed\":" + json_string(d.observed);
    if (!d.labels.empty()) {
      out += ",\"labels\":[";
      bool first = true;
      for (const Label& label : d.labels) {
        if (!label.span.valid()) continue;
        out += fmt::format("{}{{{},\"text\":{}}}", first ? "" : ",", json_place(label.span, sources), json_string(label.text));
        first = false;
      }
      out += "]";
    }
    if (!d.notes.empty()) {
      out += ",\"notes\":[";
      for (size_t i = 0; i < d.notes.size(); ++i) out += (i ? "," : "") + json_string(d.notes[i]);
      out += "]";
    }
    if (!d.fix.empty()) out += ",\"fix\":" + json_string(d.fix);
    out += "}\n";
  }
  return out;
}

}  // namespace bendc
