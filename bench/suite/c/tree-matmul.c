// Products of matrices of 2^S rows held in quad-trees, each checked against a vector: 2^B slots of which N are live.
// A cell is its number, shifted and marked by the lowest bit.
#include "suite.h"

typedef u64 Tree;
typedef struct { Tree a, b, c, d; } Quad;
typedef struct { Tree a, b; } Pair;
static Pool quads, pairs;

#define QUAD(t) ((Quad*)(t))
#define PAIR(t) ((Pair*)(t))
static inline bool is_cell(Tree t) { return t & 1; }
static inline Tree cell(u32 x) { return (u64)x << 1 | 1; }
static inline u32 value(Tree t) { return (u32)(t >> 1); }

static inline Tree quad(Tree a, Tree b, Tree c, Tree d) {
  Quad* q = pool_take(&quads, sizeof *q);
  *q = (Quad){a, b, c, d};
  return (Tree)q;
}

static inline Tree pair(Tree a, Tree b) {
  Pair* p = pool_take(&pairs, sizeof *p);
  *p = (Pair){a, b};
  return (Tree)p;
}

static Tree matrix(u32 d, u32 s) {
  if (d == 0) return cell(s % 100);
  return quad(matrix(d - 1, s * 1664525u + 1), matrix(d - 1, s * 214013u + 3), matrix(d - 1, s * 16843009u + 5), matrix(d - 1, s * 48271u + 7));
}

static Tree vector(u32 d, u32 s) { return d == 0 ? cell(s % 100) : pair(vector(d - 1, s * 1664525u + 1), vector(d - 1, s * 214013u + 3)); }

static void drop(Tree m) {
  if (is_cell(m)) return;
  Quad* q = QUAD(m);
  drop(q->a), drop(q->b), drop(q->c), drop(q->d);
  pool_give(&quads, q);
}

static void drop_vector(Tree v) {
  if (is_cell(v)) return;
  Pair* p = PAIR(v);
  drop_vector(p->a), drop_vector(p->b);
  pool_give(&pairs, p);
}

// Adds y to x in place; y is used up.
static Tree plus(Tree x, Tree y) {
  if (is_cell(x)) return cell(value(x) + value(y));
  Quad *p = QUAD(x), *q = QUAD(y);
  p->a = plus(p->a, q->a);
  p->b = plus(p->b, q->b);
  p->c = plus(p->c, q->c);
  p->d = plus(p->d, q->d);
  pool_give(&quads, q);
  return x;
}

static Tree times(Tree x, Tree y) {
  if (is_cell(x)) return cell(value(x) * value(y));
  Quad *p = QUAD(x), *q = QUAD(y);
  Tree i = times(p->a, q->a), j = times(p->b, q->c), k = times(p->a, q->b), l = times(p->b, q->d);
  Tree m = times(p->c, q->a), n = times(p->d, q->c), o = times(p->c, q->b), r = times(p->d, q->d);
  Tree a = plus(i, j), b = plus(k, l), c = plus(m, n), d = plus(o, r);
  return quad(a, b, c, d);
}

static Tree plus_vector(Tree x, Tree y) {
  if (is_cell(x)) return cell(value(x) + value(y));
  Pair *p = PAIR(x), *q = PAIR(y);
  p->a = plus_vector(p->a, q->a);
  p->b = plus_vector(p->b, q->b);
  pool_give(&pairs, q);
  return x;
}

static Tree apply(Tree m, Tree v) {
  if (is_cell(m)) return cell(value(m) * value(v));
  Quad* q = QUAD(m);
  Pair* p = PAIR(v);
  Tree a = apply(q->a, p->a), b = apply(q->b, p->b), c = apply(q->c, p->a), d = apply(q->d, p->b);
  Tree low = plus_vector(a, b), high = plus_vector(c, d);
  return pair(low, high);
}

static u32 same(Tree x, Tree y) {
  if (is_cell(x)) return x == y;
  Pair *p = PAIR(x), *q = PAIR(y);
  return same(p->a, q->a) & same(p->b, q->b);
}

static u32 sum(Tree m) {
  if (is_cell(m)) return value(m);
  Quad* q = QUAD(m);
  return sum(q->a) + sum(q->b) + sum(q->c) + sum(q->d);
}

static u32 round_of(u32 d, u32 s) {
  Tree a = matrix(d, s + 1), b = matrix(d, s + 2), r = vector(d, s + 3), c = times(a, b);
  Tree left = apply(c, r), inner = apply(b, r), right = apply(a, inner);
  u32 result = (sum(c) ^ (s * K1)) + same(left, right);
  drop(a), drop(b), drop(c), drop_vector(r), drop_vector(left), drop_vector(inner), drop_vector(right);
  return result;
}

static u32 slot(u32 i, u32 mask, u32 live, u32 d) {
  u32 p = (i * K1) & mask;
  return p < live ? round_of(d, p * K1) : 0;
}

static u32 batch(u32 b, u32 i, u32 mask, u32 live, u32 d) {
  return b == 0 ? slot(i, mask, live, d) : batch(b - 1, i, mask, live, d) + batch(b - 1, i + (1u << (b - 1)), mask, live, d);
}

int main(int count, char** words) {
  u32 n[3];
  sizes(count, words, 3, n, (u32[]){3, 2, 3}, (u32[]){7, 9, 384});
  return answer(batch(n[1], 0, (1u << n[1]) - 1, n[2], n[0]));
}
