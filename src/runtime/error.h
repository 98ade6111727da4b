// Ends of the program that are not its own: the numbered run-time errors 1 to 9 of the language and errors of the surroundings.
// All of them write buffered output first, then `bend: <text>` to stderr, and leave with exit status 1.
#pragma once
#include "runtime/abi.h"
#include "runtime/message.h"

namespace bendc::rt {

enum ErrorNumber : uint32_t {
  kErrorTasks = 1,
  kErrorMatch = 2,
  kErrorMemory = 3,
  kErrorDeviceCode = 4,
  kErrorNat = 5,
  kErrorShare = 6,
  kErrorStack = 7,
  kErrorArray = 8,
  kErrorCopies = 9,
};

// The number's standing text, then `detail` (may be empty) and the place in the source when known.
[[noreturn]] void fail(BendWorker* worker, uint32_t number, const char* site, const Message& detail);
[[noreturn]] void fail_plain(BendWorker* worker, const Message& text);

}  // namespace bendc::rt
