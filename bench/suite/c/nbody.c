// 2^(S+3) independent systems of three bodies, T steps each, in binary32; a digest and a histogram of the energies.
#include "suite.h"

typedef struct { float x, y, z; } Vec;
typedef struct { Vec pos, vel; float mass; } Body;
typedef struct { Body a, b, c; } System;
typedef struct { u32 n[8], sum; } Stats;

static inline Vec add(Vec u, Vec v) { return (Vec){u.x + v.x, u.y + v.y, u.z + v.z}; }
static inline Vec sub(Vec u, Vec v) { return (Vec){u.x - v.x, u.y - v.y, u.z - v.z}; }
static inline Vec scale(Vec u, float k) { return (Vec){u.x * k, u.y * k, u.z * k}; }
static inline float norm2(Vec u) { return u.x * u.x + (u.y * u.y + u.z * u.z); }
static inline float soft(Vec u) { return norm2(u) + 5.0f / 100.0f; }

static inline Vec pull(Vec d) {
  float i = 1.0f / sqrtf(soft(d));
  return scale(d, (i * i) * i);
}

static const float dt = 1.0f / 1000.0f;

static inline void step(System* s) {
  Vec p = pull(sub(s->b.pos, s->a.pos)), q = pull(sub(s->c.pos, s->a.pos)), r = pull(sub(s->c.pos, s->b.pos));
  float m = s->a.mass, n = s->b.mass, o = s->c.mass;
  s->a.vel = add(s->a.vel, scale(add(scale(p, n), scale(q, o)), dt));
  s->b.vel = add(s->b.vel, scale(sub(scale(r, o), scale(p, m)), dt));
  s->c.vel = sub(s->c.vel, scale(add(scale(q, m), scale(r, n)), dt));
  s->a.pos = add(s->a.pos, scale(s->a.vel, dt));
  s->b.pos = add(s->b.pos, scale(s->b.vel, dt));
  s->c.pos = add(s->c.pos, scale(s->c.vel, dt));
}

static System steps(u32 n, System s) {
  while (n--) step(&s);
  return s;
}

static inline float kinetic(Body b) { return (0.5f * b.mass) * norm2(b.vel); }
static inline float potential(Body a, Body b) { return (a.mass * b.mass) / sqrtf(soft(sub(b.pos, a.pos))); }

static float energy(const System* s) {
  float ke = kinetic(s->a) + (kinetic(s->b) + kinetic(s->c));
  float pe = potential(s->a, s->b) + (potential(s->a, s->c) + potential(s->b, s->c));
  return ke - pe;
}

static inline u32 to_u32(float x) { return x >= 0.0f && x < 4294967296.0f ? (u32)x : 0; }
static inline u32 fixed(float x) { return to_u32((x + 8.0f) * 65536.0f); }
static inline u32 two(float x, float y) { return fixed(x) * 31 + fixed(y); }

static u32 digest(const System* s) {
  Vec a = s->a.pos, b = s->b.pos, c = s->c.pos;
  return (((two(a.x, a.y) * K1 + two(b.x, b.y)) * K1 + two(c.x, c.y)) * K1 + two(a.z, b.z)) * K1 + fixed(c.z);
}

static u32 bucket(const System* s) {
  u32 k = to_u32(0.0f - energy(s));
  return k < 7 ? k : 7;
}

static inline u32 seed(u32 id, u32 k) { return prng((id * 12 + k) * K1); }
static inline float coordinate(u32 r) { return (float)(r & 65535) / 32768.0f - 1.0f; }
static inline float weight(u32 r) { return (float)(r & 65535) / 65536.0f + 0.5f; }

static Body body(u32 id, u32 k) {
  Vec p = {coordinate(seed(id, k + 1)), coordinate(seed(id, k + 2)), coordinate(seed(id, k + 3))};
  float tenth = 1.0f / 10.0f;
  return (Body){p, {p.y * tenth, 0.0f - p.x * tenth, 0.0f}, weight(seed(id, k + 4))};
}

static Stats eight(u32 id, u32 t) {
  Stats s = {{0}, 0};
  for (u32 i = id; i < id + 8; i++) {
    System end = steps(t, (System){body(i, 0), body(i, 4), body(i, 8)});
    s.n[bucket(&end)]++;
    s.sum += digest(&end) * (i * K1 + 1);
  }
  return s;
}

static inline Stats join(Stats a, Stats b) {
  for (int k = 0; k < 8; k++) a.n[k] += b.n[k];
  a.sum += b.sum;
  return a;
}

static Stats batch(u32 d, u32 id, u32 t) { return d == 0 ? eight(id, t) : join(batch(d - 1, id, t), batch(d - 1, id + (8u << (d - 1)), t)); }

int main(int count, char** words) {
  u32 n[2];
  sizes(count, words, 2, n, (u32[]){7, 300}, (u32[]){17, 300});
  Stats s = batch(n[0], 0, n[1]);
  u32 m = s.n[0];
  for (int k = 1; k < 8; k++) m = m * K1 + s.n[k];
  return answer(m * K1 + s.sum);
}
