// The short sequences of codegen/llvm/straight_roots.cpp against the hardware's exact square root and reciprocal, for every ordinary operand. Ends with 0 when all are equal.
// nvcc -O3 -arch=sm_90 -o roots roots.cu && ./roots
#include <cstdint>
#include <cstdio>

__device__ unsigned long long tried[2], wrong[2];
__device__ unsigned example[2];

__device__ float root(float x) {
  float guess;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(guess) : "f"(x));
  const float root = __fmul_rn(x, guess), half = __fmul_rn(guess, 0.5f);
  return __fmaf_rn(__fmaf_rn(-root, root, x), half, root);
}

__device__ float reciprocal(float x) {
  float guess;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(guess) : "f"(x));
  return __fmaf_rn(guess, -__fmaf_rn(guess, x, -1.0f), guess);
}

__global__ void compare() {
  unsigned long long counts[2] = {0, 0}, bad[2] = {0, 0};
  for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < 1ull << 32; i += gridDim.x * blockDim.x) {
    const unsigned bits = static_cast<unsigned>(i);
    const float x = __uint_as_float(bits);
    const bool ordinary[2] = {bits - 0x0D000000u <= 0x727FFFFFu, ((bits + 0x01800000u) & 0x7F800000u) > 0x01FFFFFFu};
    const float shorter[2] = {root(x), reciprocal(x)}, exact[2] = {__fsqrt_rn(x), __frcp_rn(x)};
    for (int k = 0; k < 2; ++k) {
      if (!ordinary[k]) continue;
      ++counts[k];
      if (__float_as_uint(shorter[k]) == __float_as_uint(exact[k])) continue;
      ++bad[k];
      example[k] = bits;
    }
  }
  for (int k = 0; k < 2; ++k) {
    atomicAdd(&tried[k], counts[k]);
    atomicAdd(&wrong[k], bad[k]);
  }
}

int main() {
  compare<<<1056, 256>>>();
  unsigned long long n[2], bad[2];
  unsigned bits[2];
  if (cudaMemcpyFromSymbol(n, tried, sizeof n) != cudaSuccess || cudaMemcpyFromSymbol(bad, wrong, sizeof bad) != cudaSuccess || cudaMemcpyFromSymbol(bits, example, sizeof bits) != cudaSuccess) return 2;
  const char* names[2] = {"square root", "reciprocal"};
  for (int k = 0; k < 2; ++k) std::printf("%s: %llu operands, %llu other than the exact one%s%08x\n", names[k], n[k], bad[k], bad[k] ? ", as of " : "", bad[k] ? bits[k] : 0);
  return bad[0] || bad[1] || !n[0] || !n[1];
}
