// What happens between two rounds, on the control block: the C++ twin of the kernel bend_flip.
#pragma once
#include "runtime/gpu/device_abi.h"

namespace bendc::rt::gpu {

inline void choose_mode(BendDeviceControl* c) {
  bool wide = c->in_count >= c->target, middle = c->in_count >= c->middle;
  c->mode = wide ? BEND_MODE_SEQUENTIAL : middle ? BEND_MODE_MIDDLE : BEND_MODE_PARALLEL;
  c->budget = wide ? c->sequential_budget : middle ? c->middle_budget : 0;
}

inline void flip(BendDeviceControl* c) {
  if (c->in_count == 0) return;
  c->rounds += 1;
  c->tasks += c->in_count;
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
  choose_mode(c);
}

}  // namespace bendc::rt::gpu
