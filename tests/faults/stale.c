#include <stdlib.h>
#include <string.h>

#include "effect.h"

static BendResultWord answer_text(BendWorker* worker, int used_up) {
  const char* text = "a text of some nodes";
  size_t size;
  BendWord word = bend_text_make(worker, text, strlen(text));
  if (used_up) free(bend_text_take(worker, word, &size));
  return (BendResultWord){1, word, 0};
}

/* The fault: a text whose nodes are freed. */
BEND_EFFECT(text_stale) {
  (void)task, (void)payload;
  *(BendResultWord*)answer = answer_text(worker, 1);
  return BEND_DONE;
}

BEND_EFFECT(text_fresh) {
  (void)task, (void)payload;
  *(BendResultWord*)answer = answer_text(worker, 0);
  return BEND_DONE;
}
