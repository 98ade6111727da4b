/* Forks as nested launches: the contract between the runtime and the kernel bend_children of a program's launch module. Plain C.

   The launch module holds the same machine of segments as the program's other module. Its one kernel gives every thread one task at most; a fork that
   runs in parallel writes its children's records into a pool and ends the task as always, and what then starts the children is a grid of the same
   kernel, launched from the device:

     thread   each forking thread launches a grid of one block, a thread a child
     warp     the lanes of a warp meet when their tasks have ended; one launches a grid for all of them
     block    the threads of a block meet, and one launches a grid for all of them

   An aggregated grid carries an argument array per parent and, for parent p, the grid gD[p] x bD[p] that it would have launched alone: gD as its running
   sum. Virtual block v belongs to the parent p with sum[p-1] <= v < sum[p]; there its blockIdx is v - sum[p-1], its blockDim bD[p] = min(count[p], 128),
   and threads from bD[p] on have no task. `share` virtual blocks lie in one real block, so that small children fill it (coarsening); 1 is a block each.

     bend_children(control, launch, records, count)
        launch 0: thread t of the grid runs records[t], t < count; bit 32 of count: launched from the device
        else the address of a BendLaunch

   Nothing waits for a child: a join's last arriver goes on with it, whichever grid it is in, and the grid of the round ends when all its
   descendants have. When the pool is full, or the driver refuses a launch, the children run one after another in their parent's thread; a thread
   that has gone through more than `sequential_budget` segments so appends its forks to OUT, for the next round, in which the pool is empty again. */
#ifndef BEND_RUNTIME_GPU_LAUNCH_ABI_H
#define BEND_RUNTIME_GPU_LAUNCH_ABI_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BEND_CHILDREN_KERNEL_NAME "bend_children"
#define BEND_LAUNCH_HEADER 16u

enum BendLaunchWay { BEND_LAUNCH_THREAD = 1, BEND_LAUNCH_WARP = 2, BEND_LAUNCH_BLOCK = 3 };

/* In device memory, at BendDeviceControl.launches. */
typedef struct BendLaunchPool {
  uint64_t records;                      /* address of capacity task records */
  uint32_t capacity;
  uint32_t way;                          /* BendLaunchWay */
  uint32_t cursor;                       /* atomic: records taken in this round; may end above the capacity */
  uint32_t refused;                      /* atomic: forks whose children ran in their thread, for a full pool or a refused launch */
  uint64_t grids;                        /* atomic: child grids launched, of all rounds */
  uint64_t begun;                        /* atomic: of them, those that have begun */
  uint32_t most_waiting;                 /* launches are refused while so many have not begun: the driver's own list never runs full */
  uint32_t reserved;
} BendLaunchPool;

/* In the pool, followed by three arrays of `parents` u32: sum, first, count. Parents without children have count 0 and gD 0. */
typedef struct BendLaunch {
  uint32_t parents;
  uint32_t blocks;                       /* virtual: sum[parents - 1] */
  uint32_t share;
  uint32_t threads;                      /* the largest bD */
} BendLaunch;

/* What a task leaves behind that ended with a parallel fork: records of the pool. */
typedef struct BendPending {
  uint32_t first;
  uint32_t count;                        /* 0: none */
} BendPending;

#ifdef __cplusplus
}
static_assert(sizeof(BendLaunch) == BEND_LAUNCH_HEADER && sizeof(BendLaunchPool) == 48);
#endif
#endif
