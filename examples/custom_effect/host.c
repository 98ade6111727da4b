#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "effect.h"

/* def Host.name() -> IO(Result<&1, &1, U32 & String, String>) */
BEND_EFFECT(host_name) {
  char name[256];
  BendResultWord* result = answer;
  (void)task, (void)payload;
  if (gethostname(name, sizeof name) == 0) *result = (BendResultWord){1, bend_text_make(worker, name, strlen(name)), 0};
  else *result = (BendResultWord){0, errno, bend_error_text(worker, errno)};
  return BEND_DONE;
}

/* def Host.sum(path: String, start: U32) -> IO(Result<&1, &1, U32 & String, U32>): reading may block, so a helper thread does it. */
struct sum {
  char* path;
  uint32_t total;
  int error;
};

static void sum_run(void* data) {
  struct sum* sum = data;
  FILE* file = fopen(sum->path, "rb");
  int byte;
  if (file == NULL) {
    sum->error = errno;
    return;
  }
  while ((byte = getc(file)) != EOF) sum->total += (unsigned)byte;
  if (ferror(file)) sum->error = errno;
  fclose(file);
}

static void sum_finish(BendWorker* worker, void* data, void* answer) {
  struct sum* sum = data;
  BendResultU32* result = answer;
  if (sum->error == 0) *result = (BendResultU32){1, sum->total, 0};
  else *result = (BendResultU32){0, (uint32_t)sum->error, bend_error_text(worker, sum->error)};
  free(sum->path);
  free(sum);
}

BEND_EFFECT(host_sum) {
  struct { BendWord continuation; BendWord path; uint32_t start; }* arguments = payload;
  size_t size;
  struct sum* sum = calloc(1, sizeof *sum);
  (void)answer;
  sum->path = bend_text_take(worker, arguments->path, &size);
  sum->total = arguments->start;
  return bend_in_background(worker, task, sum_run, sum_finish, sum);
}
