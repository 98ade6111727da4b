// Exclusive prefix sums of 2^k U32 in place by CUB's DeviceScan, the yardstick of run-scan.sh. The checksum is that of bench/gpu/scan_repeat.bend with one scan.
#include <cub/cub.cuh>
#include "bench.cuh"
__global__ void fill(u32* a, u64 n) { for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x) a[i] = mix32((u32)i); }
int main(int c, char** v) {
  for (int k = 20; k <= 30; k += 2) {
    if (c > 1) k = atoi(v[1]);
    const u64 n = 1ull << k; u32* a; void* space = nullptr; size_t bytes = 0;
    CK(cudaMalloc(&a, n * 4)); CK(cub::DeviceScan::ExclusiveSum(space, bytes, a, a, n)); CK(cudaMalloc(&space, bytes));
    auto scan = [&] { CK(cub::DeviceScan::ExclusiveSum(space, bytes, a, a, n)); };
    const double t = timed(scan, nullptr, 20);
    fill<<<1024, 256>>>(a, n); scan();
    const u32 h = dsum(n, [=] __device__(u64 i) { return a[i] * (2 * (u32)i + 1); });
    char s[32]; snprintf(s, 32, "2^%d", k); line("scan", s, "cub", h, t);
    CK(cudaFree(a)); CK(cudaFree(space)); if (c > 1) break;
  }
  return 0;
}
