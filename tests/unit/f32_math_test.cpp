// The F32 functions against libm's double functions rounded to f32.
#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "support/f32_math.h"

using namespace bendc::f32_math;

namespace {

NativeDoubles ops;
Functions<NativeDoubles> functions(ops);

bool same(float a, float b) { return std::isnan(a) || std::isnan(b) ? std::isnan(a) && std::isnan(b) : std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }
float real(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }

template <class Ours, class Theirs> int differences(Ours ours, Theirs theirs) {
  int count = 0;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 40009) {
    const double x = real(bits);
    if (!same(static_cast<float>(ours(x)), static_cast<float>(theirs(x)))) ++count;
  }
  return count;
}

template <class Ours, class Theirs> int differences_of_pairs(Ours ours, Theirs theirs) {
  static const float kEdges[] = {0.0f, -0.0f, 1.0f, -1.0f, INFINITY, -INFINITY, NAN, 2.0f, -2.0f, 0.5f, -0.5f, 3.0f, -3.0f, 0x1p-149f, 0x1.fffffep127f, 16777215.0f, -16777215.0f, 16777216.0f, 2.5f};
  int count = 0;
  auto compare = [&](double x, double y) { count += !same(static_cast<float>(ours(x, y)), static_cast<float>(theirs(x, y))); };
  for (float x : kEdges)
    for (float y : kEdges) compare(x, y);
  std::mt19937_64 random(1);
  for (int i = 0; i < 50000; ++i) {
    const uint64_t bits = random();
    compare(real(bits), real(bits >> 32));
    compare(static_cast<float>(bits & 0xffffff) / 65536, static_cast<float>(static_cast<int>(bits >> 40 & 0xffff) - 32768) / 1024);
    compare(static_cast<float>(bits & 0x3fff), static_cast<float>(bits >> 32 & 15) / 2);   // exact powers and their halves
  }
  return count;
}

}  // namespace

TEST_CASE("F32 functions of one argument are libm's, rounded") {
  CHECK(differences([](double x) { return functions.exp(x); }, [](double x) { return std::exp(x); }) == 0);
  CHECK(differences([](double x) { return functions.log(x); }, [](double x) { return std::log(x); }) == 0);
  CHECK(differences([](double x) { return functions.log2(x); }, [](double x) { return std::log2(x); }) == 0);
  CHECK(differences([](double x) { return functions.log10(x); }, [](double x) { return std::log10(x); }) == 0);
  CHECK(differences([](double x) { return functions.sin(x); }, [](double x) { return std::sin(x); }) == 0);
  CHECK(differences([](double x) { return functions.cos(x); }, [](double x) { return std::cos(x); }) == 0);
  CHECK(differences([](double x) { return functions.tan(x); }, [](double x) { return std::tan(x); }) == 0);
  CHECK(differences([](double x) { return functions.asin(x); }, [](double x) { return std::asin(x); }) == 0);
  CHECK(differences([](double x) { return functions.acos(x); }, [](double x) { return std::acos(x); }) == 0);
  CHECK(differences([](double x) { return functions.atan(x); }, [](double x) { return std::atan(x); }) == 0);
  CHECK(differences([](double x) { return functions.sinh(x); }, [](double x) { return std::sinh(x); }) == 0);
  CHECK(differences([](double x) { return functions.cosh(x); }, [](double x) { return std::cosh(x); }) == 0);
  CHECK(differences([](double x) { return functions.tanh(x); }, [](double x) { return std::tanh(x); }) == 0);
  CHECK(differences([](double x) { return functions.floor(x); }, [](double x) { return std::floor(x); }) == 0);
  CHECK(differences([](double x) { return functions.ceil(x); }, [](double x) { return std::ceil(x); }) == 0);
  CHECK(differences([](double x) { return functions.trunc(x); }, [](double x) { return std::trunc(x); }) == 0);
}

TEST_CASE("F32 functions of two and three arguments are libm's, rounded") {
  CHECK(differences_of_pairs([](double x, double y) { return functions.pow(x, y); }, [](double x, double y) { return std::pow(x, y); }) == 0);
  CHECK(differences_of_pairs([](double x, double y) { return functions.atan2(x, y); }, [](double x, double y) { return std::atan2(x, y); }) == 0);
  CHECK(differences_of_pairs([](double x, double y) { return functions.mod(x, y); }, [](double x, double y) { return std::fmod(x, y); }) == 0);
  auto fma_of = [](float x, float y, float z) { return std::fma(x, y, z); };
  std::mt19937_64 random(2);
  int count = 0;
  for (int i = 0; i < 100000; ++i) {
    const uint64_t bits = random();
    const float x = real(bits), y = real(bits >> 32), near = -x * y;
    for (float z : {real(random()), near, std::nextafter(near, 0.0f), near * 0x1p-24f, near * 0x1p24f}) count += !same(static_cast<float>(functions.fma(x, y, z)), fma_of(x, y, z));
  }
  CHECK(count == 0);
}
