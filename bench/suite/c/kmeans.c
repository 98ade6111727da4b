// 64 restarts of 20 rounds of Lloyd's k-means over 2^S points, 8 clusters.
#include "suite.h"

typedef struct { u32 c[8]; } Centres;
typedef struct Stats { struct Stats *l, *r; } Stats;  // a node; a leaf is a Leaf
typedef struct { u32 x, y, n; } Leaf;
static Pool cells;

static inline u32 distance(u32 x, u32 y, u32 c, u32 k) {
  u32 dx = x - (c & 65535), dy = y - (c >> 16);
  return ((dx * dx + dy * dy) << 3) | k;
}

static inline u32 min(u32 a, u32 b) { return a < b ? a : b; }

static inline u32 nearest(u32 x, u32 y, const Centres* c) {
  u32 best = ~0u;
  for (u32 k = 0; k < 8; k++) best = min(best, distance(x, y, c->c[k], k));
  return best & 7;
}

static Stats* leaf(u32 x, u32 y, u32 n) {
  Leaf* s = pool_take(&cells, 16);
  *s = (Leaf){x, y, n};
  return (Stats*)s;
}

static Stats* node(Stats* l, Stats* r) {
  Stats* s = pool_take(&cells, 16);
  *s = (Stats){l, r};
  return s;
}

static Stats* points(u32 i, Centres c) {
  u32 x[8] = {0}, y[8] = {0}, n[8] = {0};
  for (u32 j = i; j < i + 64; j++) {
    u32 h = prng((j + 1) * K1), px = h & 1023, py = (h >> 16) & 1023, near = nearest(px, py, &c);
    for (u32 k = 0; k < 8; k++) {
      u32 hit = near == k;
      x[k] += hit * px;
      y[k] += hit * py;
      n[k] += hit;
    }
  }
  Stats* s[8];
  for (u32 k = 0; k < 8; k++) s[k] = leaf(x[k], y[k], n[k]);
  return node(node(node(s[0], s[1]), node(s[2], s[3])), node(node(s[4], s[5]), node(s[6], s[7])));
}

static Stats* merge(u32 depth, Stats* a, Stats* b) {
  if (depth == 0) {
    Leaf *p = (Leaf*)a, *q = (Leaf*)b;
    *p = (Leaf){p->x + q->x, p->y + q->y, p->n + q->n};
  } else {
    a->l = merge(depth - 1, a->l, b->l);
    a->r = merge(depth - 1, a->r, b->r);
  }
  pool_give(&cells, b);
  return a;
}

static Stats* total(u32 d, u32 i, Centres c) {
  if (d == 0) return points(i, c);
  Stats *a = total(d - 1, i, c), *b = total(d - 1, i + (64u << (d - 1)), c);
  return merge(3, a, b);
}

static void update(u32 depth, Stats* s, u32* c) {
  if (depth == 0) {
    Leaf* p = (Leaf*)s;
    if (p->n) *c = (p->x / p->n) | ((p->y / p->n) << 16);
  } else {
    update(depth - 1, s->l, c);
    update(depth - 1, s->r, c + (1 << (depth - 1)));
  }
  pool_give(&cells, s);
}

static u32 initial(u32 r, u32 k) {
  u32 h = prng(12346 + 8 * r + k);
  return (h & 1023) | (((h >> 16) & 1023) << 16);
}

static u32 restart(u32 r, u32 depth) {
  Centres c;
  for (u32 k = 0; k < 8; k++) c.c[k] = initial(r, k);
  for (int round = 0; round < 20; round++) update(3, total(depth, 0, c), c.c);
  u32 m = c.c[0];
  for (u32 k = 1; k < 8; k++) m = m * K1 + c.c[k];
  return m;
}

static u32 batch(u32 d, u32 r, u32 depth) { return d == 0 ? restart(r, depth) : batch(d - 1, r, depth) + batch(d - 1, r + (1u << (d - 1)), depth); }

int main(int count, char** words) {
  u32 n[1];
  sizes(count, words, 1, n, (u32[]){7}, (u32[]){19});
  return answer(batch(6, 0, n[0] - 6));
}
