// F32 as text.
#include <string.h>

#include "runtime/runtime.h"
#include "runtime/strings.h"
#include "support/text.h"

using namespace bendc;
using namespace bendc::rt;

BendWord bend_f32_show(BendWorker* worker, float value) {
  char text[text::kF32Chars];
  return string_decode(worker, text, text::f32_show(value, text));
}

uint64_t bend_f32_read(BendWorker* worker, BendWord string) {
  Bytes bytes = string_encode(worker, string);
  float value;
  bool ok = text::f32_read(bytes.data, bytes.size, &value);
  bytes_free(&bytes);
  if (!ok) return 0;
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return 1ull << 32 | bits;
}
