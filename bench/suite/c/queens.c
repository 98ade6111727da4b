// Solutions and search nodes of n queens over the prefixes of four rows, counted with bit masks.
#include "suite.h"

typedef struct { u32 sols, nodes; } Found;

static void search(u32 left, u32 cand, u32 l, u32 r, Found* found) {
  while (cand) {
    u32 bit = cand & -cand, free = left ^ bit, nl = (l | bit) << 1, nr = (r | bit) >> 1;
    cand ^= bit;
    found->nodes++;
    if (free == 0) found->sols++;
    else search(free, free & ~(nl | nr), nl, nr, found);
  }
}

static Found place(u32 i, u32 n) {
  u32 cols = 0, l = 0, r = 0, full = (1u << n) - 1;
  for (u32 row = 0, unit = n * n * n; row < 4; row++, unit /= n) {
    u32 bit = 1u << (i / unit % n);
    if (bit & (cols | l | r)) return (Found){0, 0};
    cols |= bit;
    l = (l | bit) << 1;
    r = (r | bit) >> 1;
  }
  Found found = {0, 0};
  u32 left = full & ~cols;
  if (left == 0) return (Found){1, 0};
  search(left, left & ~(l | r), l, r, &found);
  return found;
}

static Found leaf(u32 j, u32 mask, u32 n, u32 bound) {
  u32 i = (j * K1) & mask;
  return i < bound ? place(i, n) : (Found){0, 0};
}

static Found batch(u32 d, u32 j, u32 mask, u32 n, u32 bound) {
  if (d == 0) return leaf(j, mask, n, bound);
  Found a = batch(d - 1, j, mask, n, bound), b = batch(d - 1, j + (1u << (d - 1)), mask, n, bound);
  return (Found){a.sols + b.sols, a.nodes + b.nodes};
}

int main(int count, char** words) {
  u32 n[3];
  sizes(count, words, 3, n, (u32[]){10, 5, 625}, (u32[]){17, 17, 11730});
  u32 all = n[1] * n[1] * n[1] * n[1], bound = n[2] < all ? n[2] : all;
  Found f = batch(n[0], 0, (1u << n[0]) - 1, n[1], bound);
  return answer((f.sols * K1) ^ f.nodes);
}
