// A picture of nine mirroring spheres, 2^R rows of W pixels, 2x2 samples a pixel, at most five bounces a ray, in binary32.
#include "suite.h"

typedef struct { float x, y, z; } Vec;
typedef struct { Vec centre; float radius, mirror; } Sphere;
typedef struct { float at; u32 sphere; } Hit;

static inline Vec add(Vec u, Vec v) { return (Vec){u.x + v.x, u.y + v.y, u.z + v.z}; }
static inline Vec sub(Vec u, Vec v) { return (Vec){u.x - v.x, u.y - v.y, u.z - v.z}; }
static inline Vec scale(float k, Vec u) { return (Vec){k * u.x, k * u.y, k * u.z}; }
static inline Vec over(Vec u, float k) { return (Vec){u.x / k, u.y / k, u.z / k}; }
static inline float dot(Vec u, Vec v) { return (u.x * v.x + u.y * v.y) + u.z * v.z; }
static inline float length(Vec u) { return sqrtf(dot(u, u)); }

static const Sphere spheres[9] = {
    {{0, -10001, 5}, 10000, 3.0f / 10.0f},
    {{0, 0, 5}, 1, 7.0f / 10.0f},
    {{2, 5.0f / 10.0f, 6}, 1, 4.0f / 10.0f},
    {{-2, 5.0f / 10.0f, 6}, 1, 4.0f / 10.0f},
    {{1, -(6.0f / 10.0f), 35.0f / 10.0f}, 4.0f / 10.0f, 9.0f / 10.0f},
    {{-1, -(6.0f / 10.0f), 35.0f / 10.0f}, 4.0f / 10.0f, 9.0f / 10.0f},
    {{0, 16.0f / 10.0f, 7}, 12.0f / 10.0f, 1.0f / 10.0f},
    {{35.0f / 10.0f, 2.0f / 10.0f, 8}, 1, 6.0f / 10.0f},
    {{-(35.0f / 10.0f), 2.0f / 10.0f, 8}, 1, 6.0f / 10.0f},
};
static const float far_away = 1e9f, bias = 1.0f / 1000.0f;

static inline float meet(const Sphere* s, Vec p, Vec d) {
  Vec o = sub(p, s->centre);
  float b = dot(o, d), disc = b * b - (dot(o, o) - s->radius * s->radius);
  if (disc < 0.0f) return far_away;
  float t = (0.0f - b) - sqrtf(disc);
  return t < bias ? far_away : t;
}

static Hit nearest(Vec p, Vec d) {
  Hit best = {far_away, 9};
  for (u32 k = 9; k--;) {
    float t = meet(&spheres[k], p, d);
    if (t < best.at) best = (Hit){t, k};
  }
  return best;
}

static float light(Vec point, Vec n, Vec start) {
  Vec l = sub((Vec){-3.0f, 8.0f, 1.0f}, point);
  float away = length(l);
  Vec u = over(l, away);
  float shade = dot(n, u);
  if (shade < 0.0f) shade = 0.0f;
  if (nearest(start, u).at < away) shade = 0.0f;
  return 1.0f / 10.0f + (85.0f / 100.0f) * shade;
}

static float shoot(Vec p, Vec d) {
  float sum = 0.0f, w = 1.0f;
  for (int n = 4;; n--) {
    Hit h = nearest(p, d);
    if (h.sphere == 9) return sum;
    const Sphere* s = &spheres[h.sphere];
    Vec point = add(p, scale(h.at, d)), normal = over(sub(point, s->centre), s->radius), start = add(point, scale(bias, normal));
    float lum = light(point, normal, start);
    if (n == 0) return sum + w * lum;
    d = sub(d, scale(2.0f * dot(d, normal), normal));
    sum = sum + (w * lum) * (1.0f - s->mirror);
    w = w * s->mirror;
    p = start;
  }
}

static float sample(float x, float y) {
  float away = sqrtf((x * x + y * y) + 1.0f);
  return shoot((Vec){0, 0, 0}, (Vec){x / away, y / away, 1.0f / away});
}

static u32 colour(float l) {
  l = l < 0.0f ? 0.0f : 1.0f < l ? 1.0f : l;
  l *= 255.0f;
  return l >= 0.0f && l < 4294967296.0f ? (u32)l : 0;
}

static u32 pixel(float x, float y, float hw, float hh) {
  float a = ((x + 0.25f) - hw) / hw, b = ((x + 0.75f) - hw) / hw, c = (hh - (y + 0.25f)) / hw, d = (hh - (y + 0.75f)) / hw;
  return colour(((sample(a, c) + sample(b, c)) + (sample(a, d) + sample(b, d))) * 0.25f);
}

static u32 columns(u32 d, u32 i, u32 y, u32 width, u32 height) {
  if (d) return columns(d - 1, i, y, width, height) + columns(d - 1, i + (1u << (d - 1)), y, width, height);
  u32 x = (i * K1) & 16383;
  return x < width ? pixel((float)x, (float)y, (float)(width >> 1), (float)(height >> 1)) : 0;
}

static u32 rows(u32 d, u32 i, u32 width, u32 height) {
  return d ? rows(d - 1, i, width, height) + rows(d - 1, i + (1u << (d - 1)), width, height)
           : columns(14, 0, (i * 1588635697u) & (height - 1), width, height);
}

int main(int count, char** words) {
  u32 n[2];
  sizes(count, words, 2, n, (u32[]){6, 80}, (u32[]){12, 6000});
  return answer(rows(n[0], 0, n[1], 1u << n[0]));
}
