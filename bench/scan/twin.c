// The kernel of twins/scan.c, run TIMES times in a row over one fill: words SIZE TIMES. Prints the last array's checksum in decimal, as main.bend does.
#define main twin_main
#include "../twins/scan.c"
#undef main

int main(int count, char** words) {
  if (count != 3) return 2;
  K = atoi(words[1]);
  a = malloc(4ull << K);
  fill();
  for (int r = atoi(words[2]); r > 0; r--) {
    doit();
    __asm__ volatile("" : : "r"(a) : "memory");  // one scan is not fused into the next
  }
  u32 h = 0;
  for (u32 i = 0; i < 1u << K; i++) h += a[i] * (2 * i + 1);
  printf("%u\n", h);
  return 0;
}
