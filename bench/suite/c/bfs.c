// Breadth-first search in 2^S independent 32x32 grid mazes.
#include "suite.h"

typedef struct { u32 *grid, *queue, *dist, head, left; } Maze;

static inline u32 open_cell(u32 s, u32 c) { return c == 0 || prng(s ^ ((c + 1) * K2)) % 100 >= 30; }

static void dig(u32 s, u32* grid) {
  for (u32 c = 0; c < 1024; c++) grid[c] = open_cell(s, c);
}

static inline void look(bool inside, u32 n, u32 v, Maze* m) {
  if (inside && m->grid[n] && m->dist[n] == ~0u) {
    m->queue[m->head + m->left] = n;
    m->dist[n] = v;
    m->left++;
  }
}

static inline void visit(Maze* m) {
  u32 c = m->queue[m->head++], v = m->dist[c] + 1, x = c & 31, y = c >> 5;
  m->left--;
  look(x > 0, c - 1, v, m);
  look(x < 31, c + 1, v, m);
  look(y > 0, c - 32, v, m);
  look(y < 31, c + 32, v, m);
}

static void search(Maze* m) {
  for (int fuel = 1024; fuel && m->left; fuel--) visit(m);
}

static u32 sum(const u32* dist) {
  u32 acc = 0, count = 0;
  for (u32 c = 0; c < 1024; c++) {
    u32 hit = dist[c] != ~0u;
    acc = (acc * K1) ^ (hit ? dist[c] * (c + 1) : 0);
    count += hit;
  }
  return acc ^ (count * K3);
}

static u32 maze(u32 i) {
  static u32 grid[1024], queue[1024], dist[1024];
  dig((i + 1) * K1, grid);
  memset(dist, 255, sizeof dist);
  dist[0] = queue[0] = 0;
  Maze m = {grid, queue, dist, 0, 1};
  search(&m);
  return sum(dist);
}

static u32 batch(u32 d, u32 i) { return d == 0 ? maze(i) : batch(d - 1, i) + batch(d - 1, i + (1u << (d - 1))); }

int main(int count, char** words) {
  u32 n[1];
  sizes(count, words, 1, n, (u32[]){4}, (u32[]){19});
  return answer(batch(n[0], 0));
}
