// SHA-256 (FIPS 180-4) of a text, as 64 lower-case hexadecimal digits. Example: sha256_hex("") begins "e3b0c442".
#pragma once
#include <string>
#include <string_view>

namespace bendc {

[[nodiscard]] std::string sha256_hex(std::string_view text);

}  // namespace bendc
