#include "driver/big_stack.h"

#include <pthread.h>

namespace bendc {

namespace {
struct Job {
  const std::function<void(size_t)>* work;
  size_t stack;
};
void* start(void* raw) {
  const Job* job = static_cast<Job*>(raw);
  (*job->work)(job->stack);
  return nullptr;
}
}  // namespace

size_t run_on_big_stack(const std::function<void(size_t)>& work) {
  constexpr size_t kSmallest = size_t{8} << 20;
  for (size_t stack = kCompilerStack; stack >= kSmallest; stack /= 2) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack);
    Job job{&work, stack};
    pthread_t thread;
    const int failed = pthread_create(&thread, &attributes, start, &job);
    pthread_attr_destroy(&attributes);
    if (failed != 0) continue;
    pthread_join(thread, nullptr);
    return stack;
  }
  return 0;
}

}  // namespace bendc
