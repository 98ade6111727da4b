// Text on plain character buffers: UTF-8, number reading, the shortest text of an F32.
// Compiled into the compiler and into the runtime archive, so that both print the same bytes: C types only, no
// libstdc++ symbols, no allocation. Example: f32_show(0.1f, buffer) writes "0.1".
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace bendc::text {

inline constexpr uint32_t kBadCodePoint = 0xFFFFFFFFu;
inline constexpr size_t kF32Chars = 32;      // enough for every f32_show text
inline constexpr size_t kUtf8Chars = 4;

// Decodes one scalar at `text`, sets `*used` to its bytes (>= 1). Overlong forms, surrogates and values past U+10FFFF are bad.
[[nodiscard]] uint32_t utf8_decode(const char* text, size_t size, size_t* used);
// Writes a scalar's 1..4 bytes; a surrogate or a value past U+10FFFF writes U+FFFD.
[[nodiscard]] size_t utf8_encode(uint32_t code_point, char* out);
// The offset of the first byte that is not UTF-8, or `size`.
[[nodiscard]] size_t utf8_validate(const char* text, size_t size);
[[nodiscard]] bool is_scalar(uint32_t code_point);

// Decimal digits only; false when empty, not digits, or above `max`.
[[nodiscard]] bool read_decimal(const char* text, size_t size, uint64_t max, uint64_t* value);
// The f32 nearest to decimal text (ties to even, rounded once). Accepts what C strtof accepts in the C locale except hexadecimal
// and nan(..) forms; leading ASCII blanks allowed, the whole text must be used. Any length.
[[nodiscard]] bool f32_read(const char* text, size_t size, float* value);
// Fewest digits that read back: `1`, `0.1`, `-0`, `1e+21`, `nan`, `-inf`. Returns the length; writes no terminator.
[[nodiscard]] size_t f32_show(float value, char* out);
// f32_show with a point always: `1.0`, `1.0e21`; how values and literals are printed.
[[nodiscard]] size_t f32_show_point(float value, char* out);
[[nodiscard]] size_t u64_show(uint64_t value, char* out);   // at most 20 characters

// One code point as inside a literal quoted by `quote`: itself, an escape, or \u{hex}. At most 12 characters.
[[nodiscard]] size_t escape_show(uint32_t code_point, char quote, char* out);

}  // namespace bendc::text
