// 2^S source lines, each made as a linked string and read back by a lexer of three states.
#include "suite.h"

typedef struct String { u32 c; struct String* next; } String;
typedef struct { u32 mode, x; } State;  // 0 between tokens, 1 in a name (hash), 2 in a number (value)
static Pool cells;

static inline String* cons(u32 c, String* next) {
  String* s = pool_take(&cells, sizeof *s);
  s->c = c;
  s->next = next;
  return s;
}

static String* run_of(u32 n, u32 x, u32 base, u32 mod, String* rest) {
  String *first = 0, **end = &first;
  while (n--) {
    x = prng(x);
    *end = cons(base + x % mod, 0);
    end = &(*end)->next;
  }
  *end = rest;
  return first;
}

static inline String* letters(u32 n, u32 x, String* rest) { return run_of(n, x, 97, 26, rest); }
static inline String* digits(u32 n, u32 x, String* rest) { return run_of(n, x, 48, 10, rest); }

static String* line(u32 s) {
  static const char text[] = "i = ( n o i ) o ( n o i ) o ( n o i ) ;";
  String* rest = 0;
  for (u32 k = sizeof text - 1; k--;) {
    u32 x = prng(s ^ (k * K1));
    switch (text[k]) {
      case 'i': rest = letters(1 + (x & 7), x, rest); break;
      case 'n': rest = digits(1 + x % 6, x, rest); break;
      case 'o': rest = cons((u32)"+-*/"[x & 3], rest); break;
      default: rest = cons((u32)text[k], rest);
    }
  }
  return rest;
}

static inline u32 fold(u32 acc, u32 kind, u32 payload) { return (acc * K1) ^ (kind * 40503 + payload); }
static inline u32 close_token(State s, u32 acc) { return s.mode == 0 ? acc : fold(acc, s.mode, s.x); }

static inline State step(u32 c, State s, u32* acc) {
  if (c - 97 < 26) {
    if (s.mode == 1) return (State){1, (s.x ^ c) * 16777619u};
    *acc = close_token(s, *acc);
    return (State){1, (2166136261u ^ c) * 16777619u};
  }
  if (c - 48 < 10) {
    if (s.mode == 2) return (State){2, s.x * 10 + (c - 48)};
    *acc = close_token(s, *acc);
    return (State){2, c - 48};
  }
  *acc = close_token(s, *acc);
  if (c != 32) *acc = fold(*acc, 3, c);
  return (State){0, 0};
}

static u32 lex(String* text) {
  State s = {0, 0};
  u32 acc = 0;
  while (text) {
    String* next = text->next;
    s = step(text->c, s, &acc);
    pool_give(&cells, text);
    text = next;
  }
  return close_token(s, acc);
}

static u32 leaf(u32 i) { return lex(line(prng((i + 1) * K1))); }
static u32 batch(u32 d, u32 i) { return d == 0 ? leaf(i) : batch(d - 1, i) + batch(d - 1, i + (1u << (d - 1))); }

int main(int count, char** words) {
  u32 n[1];
  sizes(count, words, 1, n, (u32[]){8}, (u32[]){23});
  return answer(batch(n[0], 0));
}
