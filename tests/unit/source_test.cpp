#include <doctest/doctest.h>

#include "support/source.h"

using namespace bendc;

TEST_CASE("source: lines, columns and texts") {
  SourceMap sources;
  FileId file = sources.add("a.bend", "\xEF\xBB\xBFone\r\ntwo\n\nlast");
  CHECK(sources[file].text == "one\r\ntwo\n\nlast");
  CHECK(sources[file].line_starts.size() == 4);
  LineColumn at = sources.locate(file, 6);
  CHECK(at.line == 2);
  CHECK(at.column == 2);
  CHECK(sources.locate(file, 9999).line == 4);
  CHECK(sources.line_text(file, 1) == "one");
  CHECK(sources.line_text(file, 3) == "");
  CHECK(sources.line_text(file, 4) == "last");
  CHECK(sources.line_text(file, 5) == "");
  CHECK(sources.text({file, 5, 3}) == "two");
}

TEST_CASE("source: an empty file has one line") {
  SourceMap sources;
  FileId file = sources.add("e.bend", "");
  CHECK(sources.locate(file, 0).line == 1);
  CHECK(sources.line_text(file, 1) == "");
}

TEST_CASE("source: cover") {
  FileId file(0);
  Span both = cover({file, 4, 2}, {file, 1, 2});
  CHECK(both.offset == 1);
  CHECK(both.length == 5);
  CHECK(cover(Span{}, {file, 3, 1}).offset == 3);
  CHECK(cover({file, 3, 1}, Span{}).offset == 3);
}
