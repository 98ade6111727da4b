// normalise: main's value in strong normal form as text (language.md section 11), for mains whose type has no run-time form and for
// `--normalise`. Natives compute on literals, F32 included; a Nat past 2^48-1 stops with run-time error 5 as compiled code would.
// In: a checked Book (quoting adds terms). Out: the text, or why there is none.
#pragma once
#include <string>

#include "checker/core.h"

namespace bendc {

struct NormaliseOptions {
  uint64_t fuel = 0;                 // steps; 0 = unlimited
  size_t memory = size_t{4} << 30;
  size_t stack = size_t{6} << 20;
};

enum class NormaliseStatus : uint8_t {
  Ok,
  NatOverflow,                       // run-time error 5
  OutOfFuel, OutOfMemory, OutOfStack,
  NoBody,                            // an open law or foreign main
};

struct NormaliseResult {
  NormaliseStatus status = NormaliseStatus::Ok;
  std::string text;
};

[[nodiscard]] NormaliseResult normalise(core::Book& book, const Interner& names, core::DefId main, const NormaliseOptions& options);

}  // namespace bendc
