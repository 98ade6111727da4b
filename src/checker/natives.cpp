// Arithmetic of Base on literals.
#include "checker/natives.h"

#include <bit>
#include <cmath>
#include <string>

#include "support/f32_math.h"
#include "support/text.h"

namespace bendc {

namespace {

struct Row {
  std::string_view name;
  uint8_t arity;
  bool floats;
};

constexpr Row kRows[] = {
    {"", 0, false},
#define BENDC_NATIVE(id, name, arity, floats) {name, arity, floats},
#include "checker/natives.def"
#undef BENDC_NATIVE
};

constexpr uint64_t kNatMax = (uint64_t{1} << 48) - 1;

// A Nat in normal form, also one built of Succ cells over a literal; bounded so that a long chain does not cost more than it saves.
bool read_nat(Machine& m, const Value* arg, uint64_t& n) {
  uint64_t above = 0;
  const Value* v = m.whnf(arg);
  for (int layers = 0; layers < 64; ++layers) {
    if (v->tag == Tag::Nat) {
      n = as<NumberValue>(v)->number + above;
      return true;
    }
    if (v->tag != Tag::Ctr) return false;
    if (as<CtrValue>(v)->count == 0) {
      n = above;
      return true;
    }
    ++above;
    v = m.whnf(as<CtrValue>(v)->fields[0]);
  }
  return false;
}

bool read_word(Machine& m, const Value* arg, Tag tag, uint32_t& n) {
  const Value* v = m.whnf(arg);
  if (v->tag == tag) {
    n = static_cast<uint32_t>(as<NumberValue>(v)->number);
    return true;
  }
  if (v->tag != Tag::Ctr || as<CtrValue>(v)->count != 1) return false;
  const Value* bits = as<CtrValue>(v)->fields[0];
  n = 0;
  for (uint32_t i = 0; i < 32; ++i) {
    bits = m.whnf(bits);
    if (bits->tag != Tag::Ctr || as<CtrValue>(bits)->count != 2) return false;
    const Value* bit = m.whnf(as<CtrValue>(bits)->fields[0]);
    if (bit->tag != Tag::Ctr) return false;
    if (bit->a == m.known().true_.index) n |= 1u << i;
    bits = as<CtrValue>(bits)->fields[1];
  }
  return true;
}

// A String in normal form. Characters outside of ASCII become `?`: no number has one.
bool read_ascii(Machine& m, const Value* arg, std::string& out) {
  for (const Value* v = m.whnf(arg);;) {
    if (v->tag == Tag::Str) v = m.step(v);
    if (v == nullptr || v->tag != Tag::Ctr) return false;
    if (as<CtrValue>(v)->count == 0) return true;
    if (as<CtrValue>(v)->count != 2) return false;
    const Value* character = m.whnf(as<CtrValue>(v)->fields[0]);
    uint32_t code = 0;
    if (character->tag != Tag::Ctr || as<CtrValue>(character)->count != 1 || !read_word(m, as<CtrValue>(character)->fields[0], Tag::U32, code)) return false;
    out.push_back(code < 128 ? static_cast<char>(code) : '?');
    v = m.whnf(as<CtrValue>(v)->fields[1]);
  }
}

const Value* string(Machine& m, std::string_view ascii) {
  const KnownNames& k = m.known();
  if (!k.snil.valid() || !k.scon.valid() || !k.chr.valid()) return nullptr;
  const Value* out = m.ctor(k.snil, {});
  for (size_t i = ascii.size(); i-- > 0;) out = m.ctor(k.scon, {m.ctor(k.chr, {m.number(Tag::U32, static_cast<unsigned char>(ascii[i]))}), out});
  return out;
}

const Value* boolean(Machine& m, bool b) {
  const core::CtorId id = b ? m.known().true_ : m.known().false_;
  return id.valid() ? m.ctor(id, {}) : nullptr;
}

template <class T> const Value* order(Machine& m, T a, T b) {
  const core::CtorId id = a < b ? m.known().lt : a == b ? m.known().eq : m.known().gt;
  return id.valid() ? m.ctor(id, {}) : nullptr;
}

// With floats (normalising a main) a Nat past the machine's limit stops as compiled code would; in conversion it is left to unfold.
const Value* nat(Machine& m, uint64_t n) {
  if (n <= kNatMax) return m.number(Tag::Nat, n);
  if (!m.floats()) return nullptr;
  m.stop(Halt::NatOverflow);
  return m.error();
}

const Value* f32(Machine& m, float x) { return m.number(Tag::F32, std::bit_cast<uint32_t>(x)); }

uint32_t f32_to_u32(float x) { return x >= 0.0f && x < 4294967296.0f ? static_cast<uint32_t>(x) : 0; }

// The very functions that compiled code runs.
using Functions = f32_math::Functions<f32_math::NativeDoubles>;
float one_rounded(double (Functions::*function)(double), float x) {
  f32_math::NativeDoubles ops;
  return static_cast<float>((Functions(ops).*function)(static_cast<double>(x)));
}
float two_rounded(double (Functions::*function)(double, double), float x, float y) {
  f32_math::NativeDoubles ops;
  return static_cast<float>((Functions(ops).*function)(static_cast<double>(x), static_cast<double>(y)));
}

const Value* one_float(Machine& m, Native native, float x) {
  switch (native) {
    case Native::F32Neg: return m.number(Tag::F32, std::bit_cast<uint32_t>(x) ^ 0x80000000u);
    case Native::F32Abs: return m.number(Tag::F32, std::bit_cast<uint32_t>(x) & 0x7FFFFFFFu);
    case Native::F32Sqrt: return f32(m, std::sqrt(x));
    case Native::F32Floor: return f32(m, std::floor(x));
    case Native::F32Ceil: return f32(m, std::ceil(x));
    case Native::F32Trunc: return f32(m, std::trunc(x));
    case Native::F32Exp: return f32(m, one_rounded(&Functions::exp, x));
    case Native::F32Log: return f32(m, one_rounded(&Functions::log, x));
    case Native::F32Log2: return f32(m, one_rounded(&Functions::log2, x));
    case Native::F32Log10: return f32(m, one_rounded(&Functions::log10, x));
    case Native::F32Sin: return f32(m, one_rounded(&Functions::sin, x));
    case Native::F32Cos: return f32(m, one_rounded(&Functions::cos, x));
    case Native::F32Tan: return f32(m, one_rounded(&Functions::tan, x));
    case Native::F32Asin: return f32(m, one_rounded(&Functions::asin, x));
    case Native::F32Acos: return f32(m, one_rounded(&Functions::acos, x));
    case Native::F32Atan: return f32(m, one_rounded(&Functions::atan, x));
    case Native::F32Sinh: return f32(m, one_rounded(&Functions::sinh, x));
    case Native::F32Cosh: return f32(m, one_rounded(&Functions::cosh, x));
    case Native::F32Tanh: return f32(m, one_rounded(&Functions::tanh, x));
    case Native::F32ToU32: return m.number(Tag::U32, f32_to_u32(x));
    case Native::F32Bits: return m.number(Tag::U32, std::isnan(x) ? 0x7FC00000u : std::bit_cast<uint32_t>(x));
    default: return nullptr;  // an open set: only the natives of one F32 reach this function
  }
}

const Value* two_floats(Machine& m, Native native, float a, float b) {
  switch (native) {
    case Native::F32Add: return f32(m, a + b);
    case Native::F32Sub: return f32(m, a - b);
    case Native::F32Mul: return f32(m, a * b);
    case Native::F32Div: return f32(m, a / b);
    case Native::F32Mod: return f32(m, two_rounded(&Functions::mod, a, b));
    case Native::F32Pow: return f32(m, two_rounded(&Functions::pow, a, b));
    case Native::F32Atan2: return f32(m, two_rounded(&Functions::atan2, a, b));
    case Native::F32IsEq: return boolean(m, a == b);
    case Native::F32IsNe: return boolean(m, a != b);
    case Native::F32IsLt: return boolean(m, a < b);
    case Native::F32IsLe: return boolean(m, a <= b);
    case Native::F32IsGt: return boolean(m, a > b);
    case Native::F32IsGe: return boolean(m, a >= b);
    default: return nullptr;
  }
}

const Value* one_word(Machine& m, Native native, uint32_t x) {
  switch (native) {
    case Native::U32Not: return m.number(Tag::U32, ~x);
    case Native::U32Inc: return m.number(Tag::U32, x + 1);
    case Native::U32Shl: return m.number(Tag::U32, x << 1);
    case Native::U32Shr: return m.number(Tag::U32, x >> 1);
    case Native::U32IsZero: return boolean(m, x == 0);
    case Native::U32IsEven: return boolean(m, (x & 1) == 0);
    case Native::U32ToNat: return m.number(Tag::Nat, x);
    case Native::F32FromU32: return f32(m, static_cast<float>(x));
    default: return nullptr;
  }
}

const Value* two_words(Machine& m, Native native, uint32_t a, uint32_t b) {
  switch (native) {
    case Native::U32Add: return m.number(Tag::U32, a + b);
    case Native::U32Sub: return m.number(Tag::U32, a - b);
    case Native::U32Mul: return m.number(Tag::U32, a * b);
    case Native::U32Div: return m.number(Tag::U32, b == 0 ? 0 : a / b);
    case Native::U32Mod: return m.number(Tag::U32, b == 0 ? a : a % b);
    case Native::U32And: return m.number(Tag::U32, a & b);
    case Native::U32Or: return m.number(Tag::U32, a | b);
    case Native::U32Xor: return m.number(Tag::U32, a ^ b);
    case Native::U32Min: return m.number(Tag::U32, a < b ? a : b);
    case Native::U32Max: return m.number(Tag::U32, a > b ? a : b);
    case Native::U32Cmp: return order(m, a, b);
    case Native::U32IsEq: return boolean(m, a == b);
    case Native::U32IsNe: return boolean(m, a != b);
    case Native::U32IsLt: return boolean(m, a < b);
    case Native::U32IsLe: return boolean(m, a <= b);
    case Native::U32IsGt: return boolean(m, a > b);
    case Native::U32IsGe: return boolean(m, a >= b);
    default: return nullptr;
  }
}

const Value* two_nats(Machine& m, Native native, uint64_t a, uint64_t b) {
  switch (native) {
    case Native::NatAdd: return nat(m, a + b);
    case Native::NatSub: return nat(m, a > b ? a - b : 0);
    case Native::NatMul: {
      uint64_t product = 0;
      return nat(m, __builtin_mul_overflow(a, b, &product) ? ~uint64_t{0} : product);
    }
    case Native::NatDiv: return nat(m, b == 0 ? 0 : a / b);
    case Native::NatMod: return nat(m, b == 0 ? a : a % b);
    case Native::NatDivmod: {
      if (!m.known().tuple.valid()) return nullptr;
      return m.ctor(m.known().tuple, {m.number(Tag::Nat, b == 0 ? 0 : a / b), m.number(Tag::Nat, b == 0 ? a : a % b)});
    }
    case Native::NatMin: return nat(m, a < b ? a : b);
    case Native::NatMax: return nat(m, a > b ? a : b);
    case Native::NatCmp: return order(m, a, b);
    case Native::NatIsEq: return boolean(m, a == b);
    case Native::NatIsNe: return boolean(m, a != b);
    case Native::NatIsLt: return boolean(m, a < b);
    case Native::NatIsLe: return boolean(m, a <= b);
    case Native::NatIsGt: return boolean(m, a > b);
    case Native::NatIsGe: return boolean(m, a >= b);
    default: return nullptr;
  }
}

}  // namespace

Native find_native(std::string_view name) {
  if (name.size() < 6 || name[3] != '.') return Native::None;
  for (size_t i = 1; i < std::size(kRows); ++i) {
    if (kRows[i].name == name) return static_cast<Native>(i);
  }
  return Native::None;
}

uint32_t native_arity(Native native) { return kRows[static_cast<size_t>(native)].arity; }
bool native_uses_floats(Native native) { return kRows[static_cast<size_t>(native)].floats; }

const Value* run_native(Machine& m, Native native, const Value* const* args) {
  uint32_t a = 0, b = 0;
  uint64_t x = 0, y = 0;
  switch (native) {
    case Native::None:
      return nullptr;
    case Native::U32Add: case Native::U32Sub: case Native::U32Mul: case Native::U32Div: case Native::U32Mod: case Native::U32And:
    case Native::U32Or: case Native::U32Xor: case Native::U32Min: case Native::U32Max: case Native::U32Cmp: case Native::U32IsEq:
    case Native::U32IsNe: case Native::U32IsLt: case Native::U32IsLe: case Native::U32IsGt: case Native::U32IsGe:
      return read_word(m, args[0], Tag::U32, a) && read_word(m, args[1], Tag::U32, b) ? two_words(m, native, a, b) : nullptr;
    case Native::U32Not: case Native::U32Inc: case Native::U32Shl: case Native::U32Shr: case Native::U32IsZero: case Native::U32IsEven:
    case Native::U32ToNat: case Native::F32FromU32:
      return read_word(m, args[0], Tag::U32, a) ? one_word(m, native, a) : nullptr;
    case Native::U32Shln: case Native::U32Shrn:
      if (!read_word(m, args[0], Tag::U32, a) || !read_nat(m, args[1], y)) return nullptr;
      if (y >= 32) return m.number(Tag::U32, 0);
      return m.number(Tag::U32, native == Native::U32Shln ? a << y : a >> y);
    case Native::U32FromNat:
      return read_nat(m, args[0], x) ? m.number(Tag::U32, static_cast<uint32_t>(x)) : nullptr;
    case Native::NatDouble:
      return read_nat(m, args[0], x) ? nat(m, 2 * x) : nullptr;
    case Native::NatAdd: case Native::NatSub: case Native::NatMul: case Native::NatDivmod: case Native::NatDiv: case Native::NatMod:
    case Native::NatCmp: case Native::NatIsEq: case Native::NatIsNe: case Native::NatIsLt: case Native::NatIsLe: case Native::NatIsGt:
    case Native::NatIsGe: case Native::NatMin: case Native::NatMax:
      return read_nat(m, args[0], x) && read_nat(m, args[1], y) ? two_nats(m, native, x, y) : nullptr;
    case Native::F32Add: case Native::F32Sub: case Native::F32Mul: case Native::F32Div: case Native::F32Mod: case Native::F32Pow:
    case Native::F32Atan2: case Native::F32IsEq: case Native::F32IsNe: case Native::F32IsLt: case Native::F32IsLe: case Native::F32IsGt:
    case Native::F32IsGe:
      if (!read_word(m, args[0], Tag::F32, a) || !read_word(m, args[1], Tag::F32, b)) return nullptr;
      return two_floats(m, native, std::bit_cast<float>(a), std::bit_cast<float>(b));
    case Native::F32Fma: {
      uint32_t c = 0;
      if (!read_word(m, args[0], Tag::F32, a) || !read_word(m, args[1], Tag::F32, b) || !read_word(m, args[2], Tag::F32, c)) return nullptr;
      return f32(m, std::fma(std::bit_cast<float>(a), std::bit_cast<float>(b), std::bit_cast<float>(c)));
    }
    case Native::F32Neg: case Native::F32Abs: case Native::F32Sqrt: case Native::F32Floor: case Native::F32Ceil: case Native::F32Trunc:
    case Native::F32Exp: case Native::F32Log: case Native::F32Log2: case Native::F32Log10: case Native::F32Sin: case Native::F32Cos:
    case Native::F32Tan: case Native::F32Asin: case Native::F32Acos: case Native::F32Atan: case Native::F32Sinh: case Native::F32Cosh:
    case Native::F32Tanh: case Native::F32ToU32: case Native::F32Bits:
      return read_word(m, args[0], Tag::F32, a) ? one_float(m, native, std::bit_cast<float>(a)) : nullptr;
    case Native::F32Show: {
      char shown[text::kF32Chars];
      return read_word(m, args[0], Tag::F32, a) ? string(m, {shown, text::f32_show(std::bit_cast<float>(a), shown)}) : nullptr;
    }
    case Native::F32Read: {
      std::string written;
      float value = 0;
      if (!m.known().none.valid() || !m.known().some.valid() || !read_ascii(m, args[0], written)) return nullptr;
      return text::f32_read(written.data(), written.size(), &value) ? m.ctor(m.known().some, {f32(m, value)}) : m.ctor(m.known().none, {});
    }
  }
  return nullptr;
}

}  // namespace bendc
