// Inside the back end: what device code keeps of its thread. The worker argument of device functions points to this record, which lives in
// the thread's registers or local memory; the machine's own state (emit_machine.cpp) is apart from it.
//   { control block, BendDeviceThread, bump, limit: addresses; where code with nested launches puts the address of what its thread goes on with, or 0; mode of
//     the round, budget of its tasks; levels of the task that runs: how many levels of forks from here on are dealt out at once; where the thread's next
//     task is, by index and distance, and the end of what it can ask for (emit_rounds.cpp); the stack's new top, from bend.thin; whether
//     the task has dealt out most of its stack before; where the
//     leaf's nodes will lie, how many bytes of them there are, and in the emulator where they are made (emit_stage.cpp); a record that a kept stack has come
//     back from, or 0, and its bytes (emit_kept.cpp) }
#pragma once
#include <cstdint>

namespace bendc::codegen {

inline constexpr uint32_t kDeviceWorkerControl = 0, kDeviceWorkerThread = 8, kDeviceWorkerBump = 16, kDeviceWorkerLimit = 24, kDeviceWorkerGoesOn = 32, kDeviceWorkerMode = 40, kDeviceWorkerBudget = 44,
                          kDeviceWorkerLevels = 48, kDeviceWorkerIndex = 52, kDeviceWorkerStride = 56, kDeviceWorkerEnd = 60, kDeviceWorkerTop = 64, kDeviceWorkerStage = 72, kDeviceWorkerStageOffset = 80, kDeviceWorkerStageAt = 88,
                          kDeviceWorkerThinned = 96, kDeviceWorkerSpare = 104, kDeviceWorkerSpareBytes = 112, kDeviceWorkerBytes = 120;

// A budget without end; a task whose forks are dealt out at once has kForksAtOnce less than it has.
inline constexpr uint32_t kNoBudget = 1u << 29, kForksAtOnce = 1u << 30;

// Of the stack of frames: its words, and the part of a frame's header that tells how many of them it takes (machine_plan.h).
inline constexpr uint32_t kStackWord = 8;
inline constexpr uint64_t kFrameWords = 0xFFFF;

// Fields of the machine's state. Left: turns of the machine before the task's forks are dealt out, signed. Stack, top: the thread's stack of frames and the offset of its end (emit_stack.cpp). Pending: children in the pool of nested launches (runtime/gpu/launch_abi.h) that the task's thread is to launch.
enum StateField : unsigned { kStateParent, kStateRecord, kStateStack, kStateTop, kStateSegment, kStateLeft, kStatePendingFirst, kStatePendingCount, kStatePendingTree, kStateWords32, kStateWords64 };

}  // namespace bendc::codegen
