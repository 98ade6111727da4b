// 2^S chunks of 64 random 4x4 boards on a torus, G generations of life each, then counted and classed.
#include "suite.h"

typedef struct { u32 pop, still, osc, mix; } Stats;

static inline u32 cell(u32 board, u32 row, u32 col) { return (board >> ((row & 3) * 4 + (col & 3))) & 1; }

static inline u32 around(u32 board, u32 row, u32 col) {
  return cell(board, row - 1, col - 1) + cell(board, row - 1, col) + cell(board, row - 1, col + 1) + cell(board, row, col - 1) +
         cell(board, row, col + 1) + cell(board, row + 1, col - 1) + cell(board, row + 1, col) + cell(board, row + 1, col + 1);
}

static inline u32 lives(u32 alive, u32 n) { return (n | alive) == 3; }

static u32 step(u32 board) {
  u32 next = 0;
  for (u32 p = 0; p < 16; p++) next |= lives(cell(board, p >> 2, p), around(board, p >> 2, p)) << p;
  return next;
}

static inline u32 steps(u32 n, u32 board) {
  while (n--) board = step(board);
  return board;
}

static inline u32 count(u32 board) { return (u32)__builtin_popcount(board); }

static inline void probe(u32 board, Stats* s) {
  u32 one = step(board), two = step(one);
  s->pop += count(board);
  if (one == board) s->still++;
  else if (two == board) s->osc++;
  s->mix = (s->mix * K1) ^ board;
}

static Stats chunk(u32 base, u32 gens) {
  Stats s = {0, 0, 0, 0};
  for (u32 k = 64; k--;) probe(steps(gens, ((base + k) * K1) & 65535), &s);
  return s;
}

static inline Stats join(Stats a, Stats b) { return (Stats){a.pop + b.pop, a.still + b.still, a.osc + b.osc, a.mix * K1 + b.mix}; }

static Stats batch(u32 d, u32 i, u32 gens) {
  return d == 0 ? chunk(i, gens) : join(batch(d - 1, i, gens), batch(d - 1, i + (64u << (d - 1)), gens));
}

static u32 digest(Stats s) { return ((s.pop * K1 + s.still) * K1 + s.osc) * K1 + s.mix; }

int main(int count, char** words) {
  u32 n[2];
  sizes(count, words, 2, n, (u32[]){1, 2}, (u32[]){18, 32});
  return answer(digest(batch(n[0], 0, n[1])));
}
