// What happens between two rounds, on the control block: the C++ twin of the kernel bend_flip.
#pragma once
#include "runtime/gpu/device_abi.h"

namespace bendc::rt::gpu {

// The mode and the spread of the round of in_count tasks that follows one of `before`, and of perfect trees where `trees`. What the choice weighs
// (docs/gpu.md, "What a round costs"): below the device's width a round costs the same with one task or thousands, and the longest path of a fork tree
// shrinks by one fork a round, whether its tasks go on in their threads or not; so every fork is dealt out. Above it tasks go on for a budget, and so they
// do where a few tasks stay a few: a chain. A round of trees is none, since leaves are tasks, too: what goes on after a tree begins as other roots do.
inline void choose_mode(BendDeviceControl* c, uint32_t before, bool trees) {
  const bool again = c->mode == BEND_MODE_SEQUENTIAL;
  const uint32_t next = c->in_count;
  const bool wide = next >= c->target, grew = next > before + (before >> 2), few = next <= c->middle && before <= c->middle && !trees, parallel = grew || !few;
  c->mode = wide ? BEND_MODE_SEQUENTIAL : parallel ? BEND_MODE_PARALLEL : BEND_MODE_MIDDLE;
  c->budget = wide ? (again ? c->again_budget : c->sequential_budget) : parallel ? 0 : c->middle_budget;
  c->groups_wanted = !wide || next < c->resident_threads || c->wide_trees != 0;
  uint32_t spread = 0;
  while (spread < c->most_spread && uint64_t{next} << (spread + 1) <= c->resident_threads) ++spread;
  c->spread = spread;
}

inline void flip(BendDeviceControl* c) {
  if (c->waits) {
    c->waits = 0;   // steps have ended their last round
    return;
  }
  if (c->in_count == 0) return;
  c->rounds += 1;
  c->tasks += c->in_count;
  const uint32_t before = c->in_count;
  if (c->in_count > c->widest) c->widest = c->in_count;
  uint32_t next = c->out_count < c->queue_capacity ? c->out_count : c->queue_capacity;
  uint64_t groups = c->groups >> BEND_GROUP_SHIFT, warps = c->groups & ((1ull << BEND_GROUP_SHIFT) - 1);
  c->tree_groups += groups < c->group_capacity ? groups : c->group_capacity;
  c->tree_warps += warps < c->warp_capacity ? warps : c->warp_capacity;
  c->groups = 0;
  c->in_resume_count = c->out_resume_count;
  c->out_resume_count = 0;
  uint64_t resumes = c->in_resumes;
  c->in_resumes = c->out_resumes;
  c->out_resumes = resumes;
  c->in_count = c->error ? 0 : next + c->in_resume_count;
  c->out_count = 0;
  c->next_task = 0;
  uint64_t in = c->in_queue;
  c->in_queue = c->out_queue;
  c->out_queue = in;
  choose_mode(c, before, warps != 0);
}

// What a step does before its tasks; the twin of bend.step (codegen/llvm/emit_step.cpp).
inline void step(BendDeviceControl* c, bool flips) {
  if (flips) {
    if (c->in_count == 0 || c->waits) return;
    flip(c);
  }
  c->waits = c->in_count > BEND_STEP_TASKS;
}

}  // namespace bendc::rt::gpu
