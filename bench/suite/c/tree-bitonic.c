// Bitonic sort of 2^D keys in the leaves of a tree, and a fold that verifies it. A leaf is its key, shifted and marked by the lowest bit.
#include "suite.h"

typedef u64 Tree;
typedef struct { Tree l, r; } Node;
typedef struct { u32 lo, hi, ok, mix; } Scan;
static Pool nodes;

#define NODE(t) ((Node*)(t))
static inline bool is_leaf(Tree t) { return t & 1; }
static inline Tree leaf(u32 x) { return (u64)x << 1 | 1; }

static Tree make(u32 d, u32 i) {
  if (d == 0) return leaf(prng((i + 1) * K1));
  Node* n = pool_take(&nodes, sizeof *n);
  n->l = make(d - 1, i);
  n->r = make(d - 1, i + (1u << (d - 1)));
  return (Tree)n;
}

static void warp(u32 down, Tree* a, Tree* b) {
  if (is_leaf(*a)) {
    if (down ^ (*a > *b)) {
      Tree t = *a;
      *a = *b;
      *b = t;
    }
    return;
  }
  Node *x = NODE(*a), *y = NODE(*b);
  warp(down, &x->l, &y->l);
  warp(down, &x->r, &y->r);
}

static void merge(u32 down, Tree t) {
  if (is_leaf(t)) return;
  Node* n = NODE(t);
  warp(down, &n->l, &n->r);
  merge(down, n->l);
  merge(down, n->r);
}

static void sort(u32 down, Tree t) {
  if (is_leaf(t)) return;
  Node* n = NODE(t);
  sort(0, n->l);
  sort(1, n->r);
  merge(down, t);
}

static Scan scan(Tree t) {
  if (is_leaf(t)) {
    u32 x = (u32)(t >> 1);
    return (Scan){x, x, 1, x};
  }
  Node n = *NODE(t);
  pool_give(&nodes, NODE(t));
  Scan a = scan(n.l), b = scan(n.r);
  return (Scan){a.lo, b.hi, a.ok & b.ok & (a.hi <= b.lo), a.mix * K1 + b.mix};
}

int main(int count, char** words) {
  u32 n[1];
  sizes(count, words, 1, n, (u32[]){8}, (u32[]){23});
  Tree t = make(n[0], 0);
  sort(0, t);
  Scan s = scan(t);
  return answer(((s.mix * K1) ^ (s.hi + s.lo * K2)) + s.ok * K3);
}
