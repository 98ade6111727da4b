// F32 functions that generated code does not compute itself: in double precision, rounded once to f32, as the language states for the host.
#include <math.h>
#include <string.h>

#include "runtime/runtime.h"
#include "runtime/strings.h"
#include "support/text.h"

using namespace bendc;
using namespace bendc::rt;

namespace {

template <double (*kFunction)(double)>
float rounded(float a) { return static_cast<float>(kFunction(static_cast<double>(a))); }


}  // namespace

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

// fmod is exact in every precision.
float bend_f32_mod(float a, float b) { return fmodf(a, b); }
float bend_f32_exp(float a) { return rounded<exp>(a); }
float bend_f32_log(float a) { return rounded<log>(a); }
float bend_f32_log2(float a) { return rounded<log2>(a); }
float bend_f32_log10(float a) { return rounded<log10>(a); }
float bend_f32_sin(float a) { return rounded<sin>(a); }
float bend_f32_cos(float a) { return rounded<cos>(a); }
float bend_f32_tan(float a) { return rounded<tan>(a); }
float bend_f32_asin(float a) { return rounded<asin>(a); }
float bend_f32_acos(float a) { return rounded<acos>(a); }
float bend_f32_atan(float a) { return rounded<atan>(a); }
float bend_f32_sinh(float a) { return rounded<sinh>(a); }
float bend_f32_cosh(float a) { return rounded<cosh>(a); }
float bend_f32_tanh(float a) { return rounded<tanh>(a); }
float bend_f32_pow(float a, float b) { return static_cast<float>(pow(static_cast<double>(a), static_cast<double>(b))); }
float bend_f32_atan2(float a, float b) { return static_cast<float>(atan2(static_cast<double>(a), static_cast<double>(b))); }
float bend_f32_fma(float a, float b, float c) { return fmaf(a, b, c); }
