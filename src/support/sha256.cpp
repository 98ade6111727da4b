#include "support/sha256.h"

#include <array>
#include <bit>
#include <cstdint>

namespace bendc {

namespace {

constexpr bool is_prime(uint32_t n) {
  for (uint32_t d = 2; d * d <= n; ++d)
    if (n % d == 0) return false;
  return true;
}

// The first 32 bits of the fraction of p^(1/k), by integer search: floor(p^(1/k) * 2^32) is the largest r with r^k <= p * 2^(32k).
constexpr uint32_t root_fraction(uint32_t p, int k) {
  using Wide = unsigned __int128;
  uint64_t r = 0;
  for (int bit = 36; bit >= 0; --bit) {   // 2^36 > 409^(1/2) * 2^32 and > 311^(1/3) * 2^32
    const uint64_t t = r | (uint64_t{1} << bit);
    const bool fits = k == 2 ? Wide{t} * t <= Wide{p} << 64 : Wide{t} * t <= (Wide{p} << 96) / t;
    if (fits) r = t;
  }
  return static_cast<uint32_t>(r);
}

template <size_t N> constexpr std::array<uint32_t, N> prime_roots(int k) {
  std::array<uint32_t, N> out{};
  size_t have = 0;
  for (uint32_t n = 2; have < N; ++n)
    if (is_prime(n)) out[have++] = root_fraction(n, k);
  return out;
}

constexpr std::array<uint32_t, 64> kRound = prime_roots<64>(3);
constexpr std::array<uint32_t, 8> kStart = prime_roots<8>(2);
static_assert(kRound[0] == 0x428a2f98 && kRound[63] == 0xc67178f2 && kStart[0] == 0x6a09e667 && kStart[7] == 0x5be0cd19);

void absorb(std::array<uint32_t, 8>& state, const uint8_t* block) {
  std::array<uint32_t, 64> w;
  for (int i = 0; i < 16; ++i) w[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 | uint32_t{block[4 * i + 2]} << 8 | block[4 * i + 3];
  for (int i = 16; i < 64; ++i) {
    const uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + w[i - 7] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) + (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (int i = 0; i < 64; ++i) {
    const uint32_t up = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
    const uint32_t down = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + up, d = c, c = b, b = a, a = up + down;
  }
  const std::array<uint32_t, 8> add{a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i) state[i] += add[i];
}

}  // namespace

std::string sha256_hex(std::string_view text) {
  std::array<uint32_t, 8> state = kStart;
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  size_t at = 0;
  for (; at + 64 <= text.size(); at += 64) absorb(state, bytes + at);
  // The end: a one bit, zeros, and the length in bits in the last 8 bytes.
  std::array<uint8_t, 128> tail{};
  const size_t rest = text.size() - at, total = rest + 9 <= 64 ? 64 : 128;
  for (size_t i = 0; i < rest; ++i) tail[i] = bytes[at + i];
  tail[rest] = 0x80;
  const uint64_t bits = uint64_t{text.size()} * 8;
  for (size_t i = 0; i < 8; ++i) tail[total - 1 - i] = static_cast<uint8_t>(bits >> (8 * i));
  for (size_t i = 0; i < total; i += 64) absorb(state, tail.data() + i);
  std::string out;
  for (uint32_t word : state)
    for (int shift = 28; shift >= 0; shift -= 4) out += "0123456789abcdef"[(word >> shift) & 15];
  return out;
}

}  // namespace bendc
