// A Merkle tree of 2^D leaves, each the Speck32/64 hash of 30 counter blocks: built, audited, and one leaf proved.
#include "suite.h"

typedef struct Tree { u32 hash; struct Tree *l, *r; } Tree;  // a leaf has no children
static Pool nodes;

static const u32 round_key[22] = {256,   5394,  24957, 5208,  26905, 30690, 3209,  52443, 61418, 20019, 30452,
                                  22902, 61067, 56068, 17943, 62334, 34740, 36554, 60827, 14930, 33321, 60772};

static inline u32 rounds(u32 x, u32 y) {
  for (int r = 0; r < 22; r++) {
    x = (((((x >> 7) | (x << 9)) & 65535) + y) & 65535) ^ round_key[r];
    y = (((y << 2) | (y >> 14)) & 65535) ^ x;
  }
  return x | (y << 16);
}

static u32 leaf(u32 i) {
  u32 acc = i + 1, block = i * 30;
  for (int k = 0; k < 30; k++, block++) acc = acc * K1 + rounds(block & 65535, block >> 16);
  return acc;
}

static inline u32 mark(u32 a, u32 b) {
  u32 h = (a * K1) ^ b, g = ((h + K3) * K3) ^ (h >> 13);
  return g ^ (g >> 16);
}

static Tree* build(u32 d, u32 i) {
  Tree* t = pool_take(&nodes, sizeof *t);
  if (d == 0) {
    *t = (Tree){leaf(i), 0, 0};
  } else {
    Tree *l = build(d - 1, i), *r = build(d - 1, i + (1u << (d - 1)));
    *t = (Tree){mark(l->hash, r->hash), l, r};
  }
  return t;
}

static u32 audit(Tree* t) {
  Tree here = *t;
  pool_give(&nodes, t);
  if (!here.l) return here.hash;
  u32 a = audit(here.l), b = audit(here.r);
  return mark(a, b) == here.hash ? here.hash : 0;
}

static u32 subtree(u32 d, u32 i) { return d == 0 ? leaf(i) : mark(subtree(d - 1, i), subtree(d - 1, i + (1u << (d - 1)))); }

static u32 prove(u32 depth, u32 k) {
  u32 h = leaf(k);
  for (u32 d = 0; d < depth; d++, k >>= 1) {
    u32 sibling = subtree(d, (k ^ 1) << d);
    h = k & 1 ? mark(sibling, h) : mark(h, sibling);
  }
  return h;
}

int main(int count, char** words) {
  u32 n[2];
  sizes(count, words, 2, n, (u32[]){4, 13}, (u32[]){22, 1337});
  u32 root = audit(build(n[0], 0));
  return answer(mark(root, prove(n[0], n[1])));
}
