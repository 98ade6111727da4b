// The C form of effect answers, by the layout rules of abi.h: Result<&1, &1, U32 & String, A> is { tag; slot 0; slot 1; .. }, where a slot
// has 8 bytes when a leaf of either side at that place has; Fail is tag 0 with errno in slot 0 and its text in slot 1, Done is tag 1.
#pragma once
#include <string.h>

#include "runtime/strings.h"

namespace bendc::rt {

struct ResultU32 {          // A = U32 or Unit
  uint32_t tag;
  uint32_t slot0;
  BendWord slot1;
};
struct ResultWord {         // A = String, a list or a handle
  uint32_t tag;
  BendWord slot0;
  BendWord slot1;
};
struct ResultMaybe {        // A = Maybe<String>: slot 0 its tag, slot 1 the text
  uint32_t tag;
  uint32_t slot0;
  BendWord slot1;
};
struct ResultU32Texts {     // A = U32 & (String & String)
  uint32_t tag;
  uint32_t slot0;
  BendWord slot1;
  BendWord slot2;
};
struct ResultDatagram {     // A = String & (U32 & String)
  uint32_t tag;
  BendWord slot0;
  BendWord slot1;
  BendWord slot2;
};
struct ResultMaybeDatagram {
  uint32_t tag;
  uint32_t slot0;
  BendWord slot1;
  uint32_t slot2;
  BendWord slot3;
};

// Descriptors travel as immediates: fd << 1 | 1.
inline BendWord handle_of_fd(int fd) { return static_cast<BendWord>(fd) << 1 | 1; }
inline int fd_of_handle(BendWord handle) { return static_cast<int>(handle >> 1); }

// An effect on a handle answers it beside the result.
template <class Result>
struct Beside {
  BendWord handle;
  Result result;
};

template <class Result>
void answer_fail(BendWorker* worker, Result* result, int error) {
  *result = {};
  result->slot0 = static_cast<uint32_t>(error);
  result->slot1 = string_from(worker, strerror(error));
}
inline void answer_done(ResultWord* result, BendWord value) { *result = {1, value, 0}; }
inline void answer_done(ResultU32* result, uint32_t value) { *result = {1, value, 0}; }

}  // namespace bendc::rt
