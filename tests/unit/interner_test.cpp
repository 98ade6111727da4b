#include <doctest/doctest.h>

#include <string>

#include "support/interner.h"

using namespace bendc;

TEST_CASE("interner: one name per text, texts stay in place") {
  Interner names;
  Name empty = names.intern("");
  Name a = names.intern("alpha");
  std::string_view text = names.text(a);
  for (int i = 0; i < 50000; ++i) (void)names.intern("name" + std::to_string(i));
  CHECK(names.intern("alpha") == a);
  CHECK(names.intern("") == empty);
  CHECK(names.intern("name49999") == names.intern("name49999"));
  CHECK(names.intern("name1") != names.intern("name10"));
  CHECK(names.text(a).data() == text.data());
  CHECK(names.size() == 50002);
  std::string large(200000, 'x');
  CHECK(names.text(names.intern(large)) == large);
}
