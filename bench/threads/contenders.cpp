// Naive Fibonacci with a task in every call, by the libraries at hand: -DOPENMP (with -fopenmp), -DTBB (with -ltbb), or neither: plain calls.
// Usage: contenders N THREADS. Prints the result.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#if defined(OPENMP)
static uint64_t fib(int n) {
  if (n < 2) return static_cast<uint64_t>(n);
  uint64_t a, b;
#pragma omp task shared(a)
  a = fib(n - 1);
  b = fib(n - 2);
#pragma omp taskwait
  return a + b;
}
static uint64_t run(int n, int threads) {
  uint64_t result = 0;
#pragma omp parallel num_threads(threads)
#pragma omp single
  result = fib(n);
  return result;
}
#elif defined(TBB)
#include <tbb/global_control.h>
#include <tbb/parallel_invoke.h>
static uint64_t fib(int n) {
  if (n < 2) return static_cast<uint64_t>(n);
  uint64_t a, b;
  tbb::parallel_invoke([&] { a = fib(n - 1); }, [&] { b = fib(n - 2); });
  return a + b;
}
static uint64_t run(int n, int threads) {
  tbb::global_control control(tbb::global_control::max_allowed_parallelism, static_cast<size_t>(threads));
  return fib(n);
}
#else
__attribute__((noinline)) static uint64_t fib(int n) {
  if (n < 2) return static_cast<uint64_t>(n);
  const uint64_t a = fib(n - 1);
  const uint64_t b = fib(n - 2);
  return a + b;
}
static uint64_t run(int n, int) { return fib(n); }
#endif

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::printf("%llu\n", static_cast<unsigned long long>(run(std::atoi(argv[1]), std::atoi(argv[2]))));
}
