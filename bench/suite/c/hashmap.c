// 2^S hash tables of 4096 chains: D keys put in, D others looked up, then all chains measured.
#include "suite.h"

typedef struct Chain { u32 key; struct Chain* next; } Chain;
static Pool chains;

static inline u32 key(u32 s, u32 j) { return prng(((j + 1) * K1) ^ (s * K2)) & 1048575; }

static inline bool has(const Chain* c, u32 k) {
  for (; c; c = c->next)
    if (c->key == k) return true;
  return false;
}

static void put(u32 n, u32 s, Chain** table) {
  for (u32 j = 0; j < n; j++) {
    u32 k = key(s, j);
    Chain** bucket = &table[k & 4095];
    if (has(*bucket, k)) continue;
    Chain* c = pool_take(&chains, sizeof *c);
    c->key = k;
    c->next = *bucket;
    *bucket = c;
  }
}

static u32 look(u32 n, u32 s, Chain** table) {
  u32 hits = 0;
  for (u32 j = 0; j < n; j++) {
    u32 k = key(s, j);
    hits += has(table[k & 4095], k);
  }
  return hits;
}

static inline u32 length(Chain* c) {
  u32 n = 0;
  for (; c; c = c->next) n++;
  return n;
}

static u32 sweep(u32 hits, Chain** table) {
  u32 acc = 0, distinct = 0;
  for (u32 i = 0; i < 4096; i++) {
    u32 len = length(table[i]);
    acc = (acc * K1) ^ (len * (i + 3));
    distinct += len;
  }
  return (acc ^ (hits * K1)) + distinct * K2;
}

static void drop(Chain** table) {
  for (u32 i = 0; i < 4096; i++)
    for (Chain* c = table[i]; c;) {
      Chain* next = c->next;
      pool_give(&chains, c);
      c = next;
    }
}

static u32 one(u32 keys, u32 t) {
  static Chain* table[4096];
  memset(table, 0, sizeof table);
  u32 s = (t + 1) * K1;
  put(keys, s, table);
  u32 result = sweep(look(keys, prng(s), table), table);
  drop(table);
  return result;
}

static u32 batch(u32 d, u32 i, u32 keys) { return d == 0 ? one(keys, i) : batch(d - 1, i, keys) + batch(d - 1, i + (1u << (d - 1)), keys); }

int main(int count, char** words) {
  u32 n[2];
  sizes(count, words, 2, n, (u32[]){2, 256}, (u32[]){11, 16384});
  return answer(batch(n[0], 0, n[1]));
}
