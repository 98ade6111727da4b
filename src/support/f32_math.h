// The F32 functions that are no single IEEE instruction, written once for everyone who computes them: the evaluator runs them on doubles
// (NativeDoubles), code generation builds LLVM IR from the very same text (codegen/llvm/math.cpp), for hosts, devices and the emulator.
//
// In: f32 values widened to double. Out: a double that the caller rounds to f32, once. Only operations that IEEE fixes to the bit are used
// (+ - * / sqrt, comparisons, bits, conversions), never a fused multiply-add, so every target answers the same bits. Errors are below
// 2^-50 relative, so that the rounded result is the correct one but for about one argument in 2^26 (tests/unit/f32_math_test.cpp, docs/trust.md).
//
// Ops gives the types F (double), I (64-bit word) and B (truth), operators on F and I, and
//   f(double) i(uint64_t)        constants
//   bits(F) float_of(I)          the same 64 bits
//   to_float(I)                  a signed integer, rounded
//   sqrt(F), negated(F), select(B, x, y), both(B, B), either(B, B), not_(B)
//   shift_left, shift_right(I, I), shift_signed(I, n), remainder(I, I), greater_signed(I, I)
//   branch(B, f, g)              runs one of two; both return std::pair
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

namespace bendc::f32_math {

template <class Ops> class Functions {
 public:
  using F = typename Ops::F;
  using I = typename Ops::I;
  using B = typename Ops::B;
  explicit Functions(Ops& ops) : o(ops) {}

  F exp(F x) { return exp_of(clamp(x), o.f(0)); }
  F log(F x) {
    const Split s = split(x);
    // |k| <= 149, so k times the 32 upper bits of ln 2 is exact.
    return log_edges(x, s.k * kLn2High + (s.log + s.k * kLn2Low));
  }
  F log2(F x) {
    const Split s = split(x);
    return log_edges(x, s.k + s.log * kLog2E);
  }
  F log10(F x) {
    const Split s = split(x);
    return log_edges(x, s.k * kLog10Of2High + (s.k * kLog10Of2Low + s.log * kLog10E));
  }

  F sin(F x) {
    const Angle a = reduce(x);
    return o.select(x == 0.0, x, odd_sign(o.select(low_bit(a.quadrant), cos_of(a.r), sin_of(a.r)), second_bit(a.quadrant)));
  }
  F cos(F x) {
    const Angle a = reduce(x);
    return odd_sign(o.select(low_bit(a.quadrant), sin_of(a.r), cos_of(a.r)), second_bit(a.quadrant + o.i(1)));
  }
  F tan(F x) {
    const Angle a = reduce(x);
    const F s = sin_of(a.r), c = cos_of(a.r);
    const B odd = low_bit(a.quadrant);
    return o.select(x == 0.0, x, odd_sign(o.select(odd, c, s) / o.select(odd, s, c), odd));
  }

  // asin and acos: 1 - x and 1 + x lose nothing where it matters, so the sides of the triangle are as good as doubles are.
  F asin(F x) { return o.select(x == 0.0, x, with_sign(angle(magnitude(x), other_side(x)), x)); }
  F acos(F x) { return turned(angle(other_side(x), magnitude(x)), x); }
  F atan(F x) { return o.select(x == 0.0, x, with_sign(angle(magnitude(x), o.f(1)), x)); }
  F atan2(F y, F x) { return o.select(o.either(is_nan(x), is_nan(y)), x + y, with_sign(turned(angle(magnitude(y), magnitude(x)), x), y)); }

  F sinh(F x) { return o.select(x == 0.0, x, with_sign(sinh_of(clamp(magnitude(x))), x)); }
  F cosh(F x) {
    const F e = exp_of(clamp(magnitude(x)), o.f(0));
    return (e + o.f(1) / e) * 0.5;
  }
  F tanh(F x) {
    // From 20 on the answer rounds to 1.
    const F m = magnitude(x), a = o.select(m > 20.0, o.f(20), m);
    const F e = exp_of(a, o.f(0));
    return o.select(x == 0.0, x, with_sign(sinh_of(a) / ((e + o.f(1) / e) * 0.5), x));
  }

  // e^(y ln x), with ln x and the product in two doubles. C99's special values.
  F pow(F x, F y) {
    const F a = magnitude(x);
    const I raw = o.bits(a) - o.i(kSqrtHalfBits);
    const I k_bits = o.shift_signed(raw, 52);
    const F k = o.to_float(k_bits), m = o.float_of(o.bits(a) - o.shift_left(k_bits, o.i(52)));
    // ln m = 2 atanh(s): `high` has 28 bits of s, `rest` what the division left, so f - high * g is exact (m + 1 has 25 bits).
    const F f = m - 1.0, g = m + 1.0, s = f / g;
    const F high = o.float_of(o.bits(s) & o.i(~uint64_t{0} << 25)), rest = (f - high * g) / g;
    const F log_low = 2.0 * rest + atanh_tail(s);
    // y * k has 32 bits and the upper part of ln 2 here 21, y * 2 high has 52: both products are exact.
    const F yk = y * k, p = yk * kLn2Top, q = y * (2.0 * high);
    const F sum = p + q, back = sum - p, error = (p - (sum - back)) + (q - back);
    const F low = error + (yk * kLn2Rest + y * log_low);
    const B outside = magnitude(sum) > kExpLimit;
    F power = exp_of(clamp(sum), o.select(outside, o.f(0), low));
    // Exact powers, and those halfway between two f32, have at most 48 bits: take the neighbour of so few bits when it is within the error.
    const F t = power * 33.0, short_power = t - (t - power);
    power = o.select(magnitude(power - short_power) <= power * 0x1p-52, short_power, power);

    const B x_ends = o.either(a == 0.0, is_infinite(x)), y_ends = is_infinite(y);
    const B grows = o.either(o.both(a > 1.0, y > 0.0), o.both(a < 1.0, y < 0.0));
    power = o.select(o.either(x_ends, y_ends), o.select(a == 1.0, o.f(1), o.select(grows, o.f(kInfinity), o.f(0))), power);
    // From 2^24 on every f32 is an even integer.
    const F small_y = o.select(magnitude(y) < 0x1p24, y, o.f(0)), shifted = small_y + kRound;
    const B whole = shifted - kRound == small_y, odd = o.both(whole, low_bit(o.bits(shifted)));
    const B negative = o.not_(o.shift_right(o.bits(x), o.i(63)) == o.i(0));
    power = odd_sign(power, o.both(negative, odd));
    power = o.select(o.both(o.both(x < 0.0, o.not_(is_infinite(x))), o.both(o.not_(whole), o.not_(y_ends))), o.f(kNan), power);
    power = o.select(o.either(is_nan(x), is_nan(y)), x + y, power);
    return o.select(o.either(y == 0.0, x == 1.0), o.f(1), power);
  }

  // C's fmod: the remainder of the integers that are the mantissas, the larger one shifted left 40 bits at a time.
  F mod(F x, F y) {
    const I mx = mantissa(x), my = mantissa(y), ey = exponent(y), distance = exponent(x) - ey;
    std::pair<I, I> state{mx, distance};   // what remains, and by how many bits it is still to be shifted
    for (int step = 0; step < 8; ++step) {   // 149 + 127 + 23 < 7 * 40 bits, and a first remainder without a shift
      if (step == 0) {
        state.first = o.remainder(mx, my);
        continue;
      }
      state = o.branch(
          o.greater_signed(state.second, o.i(0)),
          [&] {
            const I by = o.select(o.greater_signed(state.second, o.i(40)), o.i(40), state.second);
            return std::pair<I, I>{o.remainder(o.shift_left(state.first, by), my), state.second - by};
          },
          [&] { return state; });
    }
    // The remainder counts units of 2^(ey - 23).
    F result = o.to_float(state.first) * o.float_of(o.shift_left(ey + o.i(1023 - 23), o.i(52)));
    result = o.select(magnitude(x) < magnitude(y), magnitude(x), result);
    result = with_sign(result, x);
    const B none = o.either(o.either(is_nan(x), is_nan(y)), o.either(is_infinite(x), y == 0.0));
    return o.select(none, o.f(kNan), result);
  }

  // a * b + c rounded once: the product of two f32 is exact in double, the sum is rounded to odd, which a second rounding cannot spoil.
  F fma(F a, F b, F c) {
    const F p = a * b, sum = p + c, back = sum - p, error = (p - (sum - back)) + (c - back);
    const I raw = o.bits(sum);
    const B inexact = o.either(error < 0.0, error > 0.0);
    const B away = o.not_(o.shift_right(raw ^ o.bits(error), o.i(63)) == o.i(1));   // the rest has the sum's sign
    const I odd = o.select(away, raw + o.i(1), raw - o.i(1));
    return o.select(o.both(inexact, o.not_(low_bit(raw))), o.float_of(odd), sum);
  }

  // Roundings to an integer, for CPUs without the instruction. From 2^23 on every f32 is one.
  F trunc(F x) {
    const F m = magnitude(x), near = (m + kRound) - kRound;
    return whole_or(x, o.select(near > m, near - 1.0, near));
  }
  F floor(F x) {
    const F near = (x + kRound) - kRound;
    return whole_or(x, o.select(near > x, near - 1.0, near));
  }
  F ceil(F x) {
    const F near = (x + kRound) - kRound;
    return whole_or(x, o.select(near < x, near + 1.0, near));
  }

 private:
  static constexpr double kInfinity = __builtin_inf(), kNan = __builtin_nan("");
  static constexpr double kRound = 0x1.8p52;                 // adding it rounds to an integer, which its low bits then hold
  static constexpr double kExpLimit = 200;                   // e^200 and e^-200 are past every f32 and far inside double
  static constexpr double kLog2E = 0x1.71547652b82fep+0, kLog10E = 0x1.bcb7b1526e50ep-2;
  static constexpr double kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33;       // 32 bits and the rest
  static constexpr double kLn2Top = 0x1.62e42p-1, kLn2Rest = 0x1.fdf473de6af28p-22;          // 21 bits and the rest
  static constexpr double kLog10Of2High = 0x1.34413508p-2, kLog10Of2Low = 0x1.f79fef311f12bp-34;
  static constexpr double kHalfPi1 = 0x1.921fb544p+0, kHalfPi2 = 0x1.0b4611a6p-34, kHalfPi3 = 0x1.3198a2e037073p-69;   // 33 bits, 33 bits, the rest
  static constexpr double kHalfPi = 0x1.921fb54442d18p+0, kHalfPiLow = 0x1.1a62633145c07p-54;
  static constexpr double kPi = 0x1.921fb54442d18p+1, kPiLow = 0x1.1a62633145c07p-53;
  static constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
  static constexpr uint64_t kSqrtHalfBits = 0x3fe6a09e667f3bcd;

  B is_nan(F x) { return o.not_(x == x); }
  B is_infinite(F x) { return magnitude(x) == kInfinity; }
  F magnitude(F x) { return o.float_of(o.bits(x) & o.i(~uint64_t{0} >> 1)); }
  F with_sign(F size, F sign) { return o.float_of((o.bits(size) & o.i(~uint64_t{0} >> 1)) | (o.bits(sign) & o.i(uint64_t{1} << 63))); }
  B low_bit(I x) { return o.not_((x & o.i(1)) == o.i(0)); }
  B second_bit(I x) { return o.not_((x & o.i(2)) == o.i(0)); }
  F odd_sign(F x, B negate) { return o.select(negate, o.negated(x), x); }
  F whole_or(F x, F rounded) { return o.select(magnitude(x) < 0x1p23, with_sign(rounded, x), x); }
  F clamp(F x) { return o.select(x > kExpLimit, o.f(kExpLimit), o.select(x < -kExpLimit, o.f(-kExpLimit), x)); }
  I exponent(F x) { return (o.shift_right(o.bits(x), o.i(52)) & o.i(0x7ff)) - o.i(1023); }
  I mantissa(F x) { return (o.shift_right(o.bits(x), o.i(29)) & o.i(0x7fffff)) | o.i(0x800000); }   // 24 bits: x is an f32

  // A polynomial in x by Horner's rule, the constant term first.
  template <size_t kTerms> F horner(F x, const double (&terms)[kTerms]) {
    F sum = o.f(terms[kTerms - 1]);
    for (size_t i = kTerms - 1; i-- > 0;) sum = sum * x + terms[i];
    return sum;
  }

  // e^(x + low), |x| <= 200, low tiny: 2^n e^r with |r| <= ln 2 / 2, e^r by Taylor up to r^13 / 13! (the next term is below 2^-57).
  F exp_of(F x, F low) {
    static constexpr double kTerms[] = {1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800,
                                        1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
    const F shifted = x * kLog2E + kRound, n = shifted - kRound;
    const F r = (x - n * kLn2High) + (low - n * kLn2Low);
    const F value = (r + r * r * horner(r, kTerms)) + 1.0;
    return value * o.float_of(o.shift_left(o.bits(shifted) + o.i(1023), o.i(52)));
  }

  // x = 2^k m with m in [sqrt 1/2, sqrt 2).
  struct Split {
    F k, log;   // log: of m
  };
  Split split(F x) {
    const I raw = o.bits(x) - o.i(kSqrtHalfBits), k = o.shift_signed(raw, 52);
    const F m = o.float_of(o.bits(x) - o.shift_left(k, o.i(52)));
    const F s = (m - 1.0) / (m + 1.0);
    return {o.to_float(k), 2.0 * s + atanh_tail(s)};
  }
  // 2 atanh(s) - 2 s for |s| <= 0.172, the series up to s^21 / 21.
  F atanh_tail(F s) {
    static constexpr double kTerms[] = {2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21};
    const F z = s * s;
    return s * z * horner(z, kTerms);
  }
  F log_edges(F x, F value) {
    value = o.select(x == 0.0, o.f(-kInfinity), value);
    value = o.select(x < 0.0, o.f(kNan), value);
    return o.select(o.either(is_nan(x), x == kInfinity), x, value);
  }

  // x = quadrant * pi/2 + r, |r| <= pi/4.
  struct Angle {
    F r;
    I quadrant;
  };
  Angle reduce(F x) {
    const F m = magnitude(x);
    const std::pair<F, I> parts = o.branch(
        m < 0x1p20,
        [&] {
          // The quadrant has 20 bits, so its product with 33 bits of pi/2 is exact, and so is the first difference.
          const F shifted = m * kTwoOverPi + kRound, n = shifted - kRound;
          return std::pair<F, I>{((m - n * kHalfPi1) - n * kHalfPi2) - n * kHalfPi3, o.bits(shifted)};
        },
        [&] { return reduce_far(m); });
    const B negative = o.not_(o.shift_right(o.bits(x), o.i(63)) == o.i(0));
    const F r = o.select(o.either(is_nan(x), is_infinite(x)), o.f(kNan), odd_sign(parts.first, negative));
    return {r, o.select(negative, o.i(0) - parts.second, parts.second)};
  }
  // x = M 2^E: of 2/pi * 2^E the bits from weight 2 downward matter, 128 of them, times M modulo 2^128; the upper two bits are the quadrant.
  std::pair<F, I> reduce_far(F x) {
    static constexpr uint64_t kBits[] = {0, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561};
    const I start = exponent(x) + o.i(62 - 23), word = o.shift_right(start, o.i(6)), by = start & o.i(63), rest = o.i(63) - by;
    auto at = [&](int i) { return o.select(word == o.i(0), o.i(kBits[i]), o.select(word == o.i(1), o.i(kBits[i + 1]), o.i(kBits[i + 2]))); };
    const I w0 = at(0), w1 = at(1), w2 = at(2);
    auto window = [&](I upper, I lower) { return o.shift_left(upper, by) | o.shift_right(o.shift_right(lower, o.i(1)), rest); };
    const I high = window(w0, w1), low = window(w1, w2), m = mantissa(x);
    const I p0 = m * (low & o.i(0xffffffff)), p1 = m * o.shift_right(low, o.i(32));
    const I bottom = p0 + o.shift_left(p1, o.i(32));
    const I carry = o.select(bottom < p0, o.i(1), o.i(0));
    const I top = m * high + o.shift_right(p1, o.i(32)) + carry;
    const I quadrant = o.shift_right(top + o.i(uint64_t{1} << 61), o.i(62));
    const F fraction = o.to_float(top - o.shift_left(quadrant, o.i(62))) * 0x1p-62 + o.to_float(o.shift_right(bottom, o.i(1))) * 0x1p-125;
    return {fraction * kHalfPi, quadrant};
  }
  F sin_of(F r) {   // Taylor up to r^17 / 17!
    static constexpr double kTerms[] = {-1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
    const F z = r * r;
    return r + r * z * horner(z, kTerms);
  }
  F cos_of(F r) {   // Taylor up to r^16 / 16!; 1 - z / 2 is split so that its rounding is not lost
    static constexpr double kTerms[] = {1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000};
    const F z = r * r, half = z * 0.5, first = o.f(1) - half;
    return first + ((o.f(1) - first) - half + z * z * horner(z, kTerms));
  }
  // sinh for 0 <= x <= 200: below 1, where the difference would cancel, by Taylor up to x^19 / 19!.
  F sinh_of(F x) {
    static constexpr double kTerms[] = {1.0 / 6, 1.0 / 120, 1.0 / 5040, 1.0 / 362880, 1.0 / 39916800, 1.0 / 6227020800, 1.0 / 1307674368000,
                                        1.0 / 355687428096000, 1.0 / 121645100408832000};
    const F e = exp_of(x, o.f(0)), z = x * x;
    return o.select(x < 1.0, x + x * z * horner(z, kTerms), (e - o.f(1) / e) * 0.5);
  }

  F other_side(F x) { return o.sqrt((o.f(1) - x) * (x + 1.0)); }
  // The angle in [0, pi/2] whose tangent is n / d, both >= 0: atan(c) + atan(t) with c the nearest quarter and |t| <= 1/8.
  F angle(F n, F d) {
    static constexpr double kTerms[] = {-1.0 / 3, 1.0 / 5, -1.0 / 7, 1.0 / 9, -1.0 / 11, 1.0 / 13, -1.0 / 15, 1.0 / 17};
    const B steep = n > d;
    F a = o.select(steep, d, n), b = o.select(steep, n, d);
    a = o.select(b == kInfinity, o.select(a == kInfinity, o.f(1), o.f(0)), a);
    b = o.select(o.either(b == kInfinity, b == 0.0), o.f(1), b);
    const F eight = a * 8.0;
    auto pick = [&](double c0, double c1, double c2, double c3, double c4) {
      return o.select(eight > b * 3.0, o.select(eight > b * 5.0, o.select(eight > b * 7.0, o.f(c4), o.f(c3)), o.f(c2)), o.select(eight > b, o.f(c1), o.f(c0)));
    };
    const F c = pick(0, 0.25, 0.5, 0.75, 1);
    const F t = (a - c * b) / (b + c * a), z = t * t;
    const F high = pick(0, 0x1.f5b75f92c80ddp-3, 0x1.dac670561bb4fp-2, 0x1.4978fa3269ee1p-1, 0x1.921fb54442d18p-1);
    const F low = pick(0, 0x1.8ab6e3cf7afbdp-57, 0x1.a2b7f222f65e2p-56, 0x1.2419a87f2a458p-56, 0x1.1a62633145c07p-55);
    const F tail = t * z * horner(z, kTerms) + low;
    return o.select(steep, (o.f(kHalfPi) - high) - (t + (tail - kHalfPiLow)), high + (t + tail));
  }
  // `x` negative: the other direction.
  F turned(F angle, F x) { return o.select(o.shift_right(o.bits(x), o.i(63)) == o.i(0), angle, o.f(kPi) - (angle - kPiLow)); }

  Ops& o;
};

// Computes. Its users are compiled without contraction.
struct NativeDoubles {
  using F = double;
  using I = uint64_t;
  using B = bool;
  F f(double x) const { return x; }
  I i(uint64_t x) const { return x; }
  I bits(F x) const { return std::bit_cast<uint64_t>(x); }
  F float_of(I x) const { return std::bit_cast<double>(x); }
  F to_float(I x) const { return static_cast<double>(static_cast<int64_t>(x)); }
  F sqrt(F x) const { return std::sqrt(x); }
  F negated(F x) const { return -x; }
  template <class T> T select(B c, T x, T y) const { return c ? x : y; }
  B both(B x, B y) const { return x && y; }
  B either(B x, B y) const { return x || y; }
  B not_(B x) const { return !x; }
  I shift_left(I x, I by) const { return x << (by & 63); }
  I shift_right(I x, I by) const { return x >> (by & 63); }
  I shift_signed(I x, int by) const { return static_cast<uint64_t>(static_cast<int64_t>(x) >> by); }
  I remainder(I x, I y) const { return x % y; }
  B greater_signed(I x, I y) const { return static_cast<int64_t>(x) > static_cast<int64_t>(y); }
  template <class Yes, class No> auto branch(B c, Yes yes, No no) const { return c ? yes() : no(); }
};

}  // namespace bendc::f32_math
