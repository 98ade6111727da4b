#include "codegen/llvm/names.h"

namespace bendc::codegen {

std::string mangle(std::string_view name) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  out.reserve(name.size());
  for (char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (plain) {
      out += c;
    } else if (c == '.') {
      out += '_';
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '$';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

std::string handler_symbol(std::string_view effect) {
  std::string lower;
  for (char c : effect) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return "bend_eff_" + mangle(lower);
}

}  // namespace bendc::codegen
