// Fixed-point escape times of a 4096 x 4096 picture: a histogram of the first 2^(HD+6) pixels, then each pixel through its table.
#include "suite.h"

typedef struct { u32 n[8]; } Eight;

static inline u32 asr8(u32 x) { return (u32)((int32_t)x >> 8); }

static inline u32 iterate(u32 n, u32 cr, u32 ci) {
  u32 zr = 0, zi = 0, escaped = 0, it = 0;
  for (u32 i = 0; i < n; i++) {
    u32 r2 = asr8(zr * zr), i2 = asr8(zi * zi);
    escaped |= r2 + i2 > 1024;
    u32 keep = 0 - escaped, go = ~keep;
    u32 re = r2 - i2 + cr, im = asr8(2 * (zr * zi)) + ci;
    zr = (re & go) | (zr & keep);
    zi = (im & go) | (zi & keep);
    it += 1 - escaped;
  }
  return it;
}

static inline u32 pixel(u32 id, u32 iters) { return iterate(iters, (id & 4095) * 768 / 4096 - 512, (id >> 12) * 768 / 4096 - 384); }

static inline u32 bucket(u32 it, u32 iters) {
  u32 k = it * 8 / iters;
  return k < 7 ? k : 7;
}

static Eight count(u32 id, u32 iters) {
  Eight s = {{0}};
  for (u32 i = 0; i < 64; i++) s.n[bucket(pixel(id + i, iters), iters)]++;
  return s;
}

static inline Eight join(Eight a, Eight b) {
  for (int k = 0; k < 8; k++) a.n[k] += b.n[k];
  return a;
}

static Eight histogram(u32 d, u32 id, u32 iters) {
  return d == 0 ? count(id, iters) : join(histogram(d - 1, id, iters), histogram(d - 1, id + (64u << (d - 1)), iters));
}

static Eight levels(Eight s) {
  u32 total = 0, sum = 0;
  Eight l;
  for (int k = 0; k < 8; k++) total += s.n[k];
  for (int k = 0; k < 8; k++) {
    sum += s.n[k];
    l.n[k] = sum * 255 / total;
  }
  return l;
}

static inline u32 shade(u32 id, u32 iters, const Eight* lut) {
  u32 it = pixel(id, iters);
  return lut->n[bucket(it, iters)] * (id * K1 + 1) + it;
}

static u32 paint(u32 d, u32 id, u32 iters, const Eight* lut) {
  return d == 0 ? shade(id, iters, lut) : paint(d - 1, id, iters, lut) + paint(d - 1, id + (1u << (d - 1)), iters, lut);
}

static u32 digest(const Eight* s, u32 sum) {
  u32 m = s->n[0];
  for (int k = 1; k < 8; k++) m = m * K1 + s->n[k];
  return m * K1 + sum;
}

int main(int words_count, char** words) {
  u32 n[2];
  sizes(words_count, words, 2, n, (u32[]){2, 7}, (u32[]){18, 51});
  Eight lut = levels(histogram(n[0], 0, n[1]));
  return answer(digest(&lut, paint(n[0] + 6, 0, n[1], &lut)));
}
