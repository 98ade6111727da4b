// What custom effects call (effect.h), over the same routines as the runtime's own effects.
#include <stdlib.h>
#include <string.h>

#include "runtime/effect.h"
#include "runtime/io/loop.h"
#include "runtime/runtime.h"
#include "runtime/strings.h"

using namespace bendc::rt;

namespace {

struct BackgroundJob : Job {
  void (*body)(void*);
  void (*end)(BendWorker*, void*, void*);
  void* data;
};

void run_background(Job* raw) {
  BackgroundJob* job = static_cast<BackgroundJob*>(raw);
  job->body(job->data);
}

void finish_background(BendWorker* worker, Job* raw, void* answer) {
  BackgroundJob* job = static_cast<BackgroundJob*>(raw);
  job->end(worker, job->data, answer);
  free(job);
}

}  // namespace

char* bend_text_take(BendWorker* worker, BendWord string, size_t* size) {
  Bytes bytes = string_encode(worker, string);
  *size = bytes.size;
  return bytes.data;
}

BendWord bend_text_make(BendWorker* worker, const char* utf8, size_t size) { return string_decode(worker, utf8, size); }

char* bend_bytes_take(BendWorker* worker, BendWord list, size_t* size) {
  Bytes bytes;
  *size = 0;
  if (!byte_list_take(worker, list, &bytes)) return nullptr;
  *size = bytes.size;
  return bytes.data;
}

BendWord bend_bytes_make(BendWorker* worker, const char* bytes, size_t size) { return byte_list(worker, bytes, size); }
BendWord bend_error_text(BendWorker* worker, int error) { return string_from(worker, strerror(error)); }

int bend_in_background(BendWorker* worker, BendTask* task, void (*run)(void*), void (*finish)(BendWorker*, void*, void*), void* data) {
  BackgroundJob* job = static_cast<BackgroundJob*>(system_alloc(worker, sizeof(BackgroundJob)));
  job->run = run_background;
  job->finish = finish_background;
  job->body = run;
  job->end = finish;
  job->data = data;
  return loop_submit(worker, task, job);
}
