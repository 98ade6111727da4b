// What main.bend does with functions of Base, in C as one writes it: linked lists from a pool where Base has lists, strings of bytes, the C library's
// printf and strtoul, a crit-bit tree for the map. Words: ROW N.
#include "../suite/c/suite.h"

typedef struct List {
  u32 head;
  struct List* tail;
} List;
static Pool lists;

static inline u32 hash(u32 h, u32 x) { return (h * K1) ^ x; }

static inline List* cons(u32 head, List* tail) {
  List* l = pool_take(&lists, sizeof *l);
  l->head = head;
  l->tail = tail;
  return l;
}

static List* numbers(u32 n) {
  List* l = 0;
  for (u32 x = 1; n; n--, x = prng(x)) l = cons(x, l);
  return l;
}

static u32 digest(List* l) {
  u32 h = 0;
  while (l) {
    List* tail = l->tail;
    h = hash(h, l->head);
    pool_give(&lists, l);
    l = tail;
  }
  return h;
}

// The same bottom-up merge sort, in place.
static List* merge(List* a, List* b) {
  List *first, **at = &first;
  while (a && b) {
    List** least = a->head <= b->head ? &a : &b;
    *at = *least;
    at = &(*at)->tail;
    *least = *at;
  }
  *at = a ? a : b;
  return first;
}

static u32 sort(u32 n) {
  List *slots[32] = {0}, *l = numbers(n), *run;
  while (l) {
    run = l;
    l = l->tail;
    run->tail = 0;
    u32 i = 0;
    for (; slots[i]; i++) {
      run = merge(slots[i], run);
      slots[i] = 0;
    }
    slots[i] = run;
  }
  run = 0;
  for (u32 i = 0; i < 32; i++)
    if (slots[i]) run = merge(slots[i], run);
  return digest(run);
}

static List* reversed(const List* l) {
  List* out = 0;
  for (; l; l = l->tail) out = cons(l->head, out);
  return out;
}

static u32 list_row(u32 n) {
  List *l = numbers(n), *kept, **at = &kept;
  for (List* i = l; i; i = i->tail)
    if (i->head & 1) {
      *at = cons(i->head, 0);
      at = &(*at)->tail;
    }
  *at = 0;
  List *both = reversed(kept), *end = both;
  if (end) {
    while (end->tail) end = end->tail;
    end->tail = l;
  } else {
    both = l;
  }
  u32 half = n / 4;
  List* rest = both;
  for (u32 i = 0; i < half && rest; i++) {
    List* tail = rest->tail;
    pool_give(&lists, rest);
    rest = tail;
  }
  List** cut = &kept;
  for (u32 i = 0; i < half && *cut; i++) cut = &(*cut)->tail;
  for (List* dead = *cut; dead;) {
    List* tail = dead->tail;
    pool_give(&lists, dead);
    dead = tail;
  }
  *cut = rest;
  return digest(kept);
}

static u32 text(u32 n) {
  u32 h = 0;
  char word[16];
  for (u32 x = 1; n; n--, x = prng(x)) {
    snprintf(word, sizeof word, "%u", x);
    h = hash(h, (u32)strtoul(word, 0, 10));
  }
  return h;
}

static u32 join(u32 n) {
  char** words = malloc(n * sizeof *words);
  size_t total = 0;
  u32 x = 1, h = 0;
  for (u32 i = 0; i < n; i++, x = prng(x)) {
    char word[16];
    total += (size_t)snprintf(word, sizeof word, "%u", x) + 1;
    words[n - 1 - i] = strdup(word);
  }
  char *all = malloc(total), *at = all;
  for (u32 i = 0; i < n; i++) {
    size_t length = strlen(words[i]);
    memcpy(at, words[i], length);
    at += length;
    *at++ = i + 1 < n ? ',' : 0;
    free(words[i]);
  }
  u32 count = 0;
  for (char *from = all, *to;; from = to + 1) {
    to = strchr(from, ',');
    size_t length = to ? (size_t)(to - from) : strlen(from);
    words[count++] = strndup(from, length);
    if (!to) break;
  }
  for (u32 i = 0; i < count; i++) {
    h = hash(h, (u32)strlen(words[i]));
    free(words[i]);
  }
  free(all);
  free(words);
  return h;
}

// Crit-bit tree. A branch is marked by the lowest bit of its pointer.
typedef struct { u32 value; char key[12]; } Leaf;
typedef struct { void* side[2]; u32 byte; unsigned char others; } Branch;
static Pool leaves, branches;
#define IS_BRANCH(p) ((uintptr_t)(p) & 1)
#define BRANCH(p) ((Branch*)((uintptr_t)(p) - 1))

static inline u32 side_of(const Branch* b, const char* key, u32 length) {
  unsigned char c = b->byte < length ? (unsigned char)key[b->byte] : 0;
  return (1u + (b->others | c)) >> 8;
}

static void map_set(void** root, const char* key, u32 value) {
  u32 length = (u32)strlen(key);
  void* at = *root;
  if (at) {
    while (IS_BRANCH(at)) at = BRANCH(at)->side[side_of(BRANCH(at), key, length)];
    Leaf* found = at;
    u32 byte = 0;
    while (byte <= length && found->key[byte] == key[byte]) byte++;
    if (byte > length) {
      found->value = value;
      return;
    }
    u32 bits = (unsigned char)(found->key[byte] ^ key[byte]);
    while (bits & (bits - 1)) bits &= bits - 1;
    Branch* b = pool_take(&branches, sizeof *b);
    b->byte = byte;
    b->others = (unsigned char)(bits ^ 255);
    u32 other = (1u + (b->others | (unsigned char)found->key[byte])) >> 8;
    Leaf* leaf = pool_take(&leaves, sizeof *leaf);
    leaf->value = value;
    memcpy(leaf->key, key, length + 1);
    b->side[1 - other] = leaf;
    void** place = root;
    while (IS_BRANCH(*place)) {
      Branch* q = BRANCH(*place);
      if (q->byte > byte || (q->byte == byte && q->others > b->others)) break;
      place = &q->side[side_of(q, key, length)];
    }
    b->side[other] = *place;
    *place = (void*)((uintptr_t)b + 1);
    return;
  }
  Leaf* leaf = pool_take(&leaves, sizeof *leaf);
  leaf->value = value;
  memcpy(leaf->key, key, length + 1);
  *root = leaf;
}

static u32 map_get(void* at, const char* key) {
  u32 length = (u32)strlen(key);
  if (!at) return 0;
  while (IS_BRANCH(at)) at = BRANCH(at)->side[side_of(BRANCH(at), key, length)];
  return strcmp(((Leaf*)at)->key, key) == 0 ? ((Leaf*)at)->value : 0;
}

static u32 map_size(void* at) { return !at ? 0 : IS_BRANCH(at) ? map_size(BRANCH(at)->side[0]) + map_size(BRANCH(at)->side[1]) : 1; }

static void map_drop(void* at) {
  if (!at) return;
  if (!IS_BRANCH(at)) {
    pool_give(&leaves, at);
    return;
  }
  Branch* b = BRANCH(at);
  map_drop(b->side[0]);
  map_drop(b->side[1]);
  pool_give(&branches, b);
}

static u32 map_row(u32 n) {
  void* root = 0;
  char key[12];
  u32 h = 0, x = 1, last = 0;
  for (u32 i = 0; i < n; i++, x = prng(x)) {
    snprintf(key, sizeof key, "%u", x);
    map_set(&root, key, x);
  }
  x = 1;
  for (u32 i = 0; i < n; i++, x = prng(x)) {
    h = hash(h, last);
    snprintf(key, sizeof key, "%u", x);
    last = map_get(root, key);
  }
  h = hash(hash(h, last), map_size(root));
  map_drop(root);
  return h;
}

static u32 array(u32 n) {
  u32* a = malloc(n * sizeof *a);
  for (u32 i = 0; i < n; i++) a[i] = i;
  for (u32 i = 0; i < n; i++) a[i] += 1;
  List* l = 0;
  for (u32 i = n; i-- > 0;) l = cons(a[i], l);
  free(a);
  for (List* i = l; i; i = i->tail) i->head *= 3;
  return digest(l);
}

// Base's functions are computed in double and rounded once; so are these.
static u32 math(u32 n) {
  float h = 0;
  for (u32 i = 0; i < n; i++) {
    float x = (float)(i % 1024) / 128.0f;
    h = h * 0.5f + (float)sin(x) + (float)cos(x) + (float)exp(x) + (float)log(x + 1.0f) + (float)pow(x, 1.5) + sqrtf(x);
  }
  return (u32)(h * 1000.0f);
}

int main(int count, char** words) {
  if (count != 3) return 2;
  const char* row = words[1];
  u32 n = (u32)strtoul(words[2], 0, 10);
  u32 (*run)(u32) = !strcmp(row, "sort") ? sort : !strcmp(row, "lists") ? list_row : !strcmp(row, "text") ? text : !strcmp(row, "join") ? join : !strcmp(row, "map") ? map_row
                    : !strcmp(row, "array") ? array : math;
  return answer(run(n));
}
