/* For the author of a custom effect: what the C file behind a definition's `import "./x.c"` may use. The file defines
     BEND_EFFECT(x) { .. }
   which gets the effect's live arguments, in declared order, after the continuation word in `payload`, owns them, writes its answer by the
   rules of abi.h, and returns BEND_DONE. Calls that may block go through bend_in_background. Plain C; see docs/effects.md. */
#ifndef BEND_RUNTIME_EFFECT_H
#define BEND_RUNTIME_EFFECT_H
#include "abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The compiler sets the prefix, another one for each file: names need to differ within a file only. */
#ifndef BEND_EFFECT_PREFIX
#define BEND_EFFECT_PREFIX
#endif
#define BEND_EFFECT(name) BEND_EFFECT_AS(BEND_EFFECT_PREFIX, name)
#define BEND_EFFECT_AS(prefix, name) BEND_EFFECT_PASTE(prefix, name)
#define BEND_EFFECT_PASTE(prefix, name) int bend_eff_##prefix##name(BendWorker* worker, struct BendTask* task, void* payload, void* answer)

/* Answers of type Result<&1, &1, U32 & String, A>: Fail is tag 0 with errno in slot0 and bend_error_text in slot1; Done is tag 1. */
typedef struct BendResultU32 {    /* A = U32, a type of nullary constructors, or Unit */
  uint32_t tag;
  uint32_t slot0;
  BendWord slot1;
} BendResultU32;
typedef struct BendResultWord {   /* A = String, a list, a Nat or a handle */
  uint32_t tag;
  BendWord slot0;
  BendWord slot1;
} BendResultWord;

/* A String as UTF-8 with a terminating zero, to be given to free(); uses the String up. */
char* bend_text_take(BendWorker* worker, BendWord string, size_t* size);
BendWord bend_text_make(BendWorker* worker, const char* utf8, size_t size);
/* A List<&2, U32> of bytes, to be given to free(); uses the list up. Null when an element is above 255. */
char* bend_bytes_take(BendWorker* worker, BendWord list, size_t* size);
BendWord bend_bytes_make(BendWorker* worker, const char* bytes, size_t size);
BendWord bend_error_text(BendWorker* worker, int error);
/* Runs run(data) on a helper thread, where nothing of the program may be touched, then finish(worker, data, answer) on the program's thread.
   The handler returns what this returns. */
int bend_in_background(BendWorker* worker, struct BendTask* task, void (*run)(void* data), void (*finish)(BendWorker* worker, void* data, void* answer),
                       void* data);

#ifdef __cplusplus
}
#endif
#endif
