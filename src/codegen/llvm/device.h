// Inside the back end: what device code keeps of its thread. The worker argument of device functions points to this record, which lives in
// the thread's registers or local memory; the machine's own state (emit_machine.cpp) is apart from it.
//   { control block, BendDeviceThread, bump, limit: addresses; where code with nested launches puts the address of what its thread goes on with, or 0 }
#pragma once
#include <cstdint>

namespace bendc::codegen {

inline constexpr uint32_t kDeviceWorkerControl = 0, kDeviceWorkerThread = 8, kDeviceWorkerBump = 16, kDeviceWorkerLimit = 24, kDeviceWorkerGoesOn = 32, kDeviceWorkerBytes = 40;

// Fields of the machine's state. Pending: children in the pool of nested launches (runtime/gpu/launch_abi.h) that the task's thread is to launch.
enum StateField : unsigned { kStateParent, kStateRecord, kStateSegment, kStateSteps, kStateParallel, kStateBudget, kStatePendingFirst, kStatePendingCount, kStatePendingTree, kStateWords32, kStateWords64 };

}  // namespace bendc::codegen
