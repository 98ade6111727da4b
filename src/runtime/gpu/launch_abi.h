/* Forks as nested launches: the contract between the runtime and the kernel bend_children of a program's launch module. Plain C.

   The launch module holds the same machine of segments as the program's other module. Its one kernel gives every thread one task at most; a fork that
   runs in parallel writes its children's records into a pool and ends the task as always, and what then starts the children is a grid of the same
   kernel, launched from the device:

     thread   each forking thread launches a grid of one block, a thread a child
     warp     the lanes of a warp meet when their tasks have ended; one launches a grid for all of them
     block    the threads of a block meet, and one launches a grid for all of them

   A task that reaches a perfect tree (device_abi.h) leaves the whole tree as one child grid of its own size: a group record in the pool, with the
   arguments once, and 32 threads for each of its warp-tasks. Trees and tasks never share a grid. What a warp does with its share of a tree is what
   bend_flat does; the warp that completes the tree goes on with the join or frame that waits for it, in its first lane.

   An aggregated grid carries an argument array per parent and, for parent p, the grid gD[p] x bD[p] that it would have launched alone: gD as its running
   sum. Virtual block v belongs to the parent p with sum[p-1] <= v < sum[p]; there its blockIdx is v - sum[p-1], its blockDim bD[p] = min(count[p], 128),
   and threads from bD[p] on have no task. For a tree bD is 32, 64 or 128, so that its warps are whole. `share` virtual blocks lie in one real block, so that small children fill it (coarsening); 1 is a block each.

     bend_children(control, launch, records, count)
        launch 0: thread t of the grid runs records[t], t < count, or warp t / 32 of count / 32 has its share of the tree at records
        else the address of a BendLaunch
        count also says whether the grid was launched from the device, and whether its tasks are trees (BEND_COUNT_*). The host's grids run a round's
        IN: resumes first (device_abi.h), then records

   Nothing waits for a child: a join's last arriver goes on with it, whichever grid it is in, and the grid of the round ends when all its
   descendants have. When the pool is full, or the driver refuses a launch, the children run one after another in their parent's thread; a thread
   that has gone through more than `sequential_budget` segments so appends its forks to OUT, for the next round, in which the pool is empty again.
   A tree that is refused, or reached in such a thread, becomes a group of the round: bend_flat runs it when all grids have ended. */
#ifndef BEND_RUNTIME_GPU_LAUNCH_ABI_H
#define BEND_RUNTIME_GPU_LAUNCH_ABI_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BEND_CHILDREN_KERNEL_NAME "bend_children"
#define BEND_LAUNCH_HEADER 16u

#define BEND_COUNT_FROM_DEVICE (1ull << 32)
#define BEND_COUNT_TREES (1ull << 33)

enum BendLaunchWay { BEND_LAUNCH_THREAD = 1, BEND_LAUNCH_WARP = 2, BEND_LAUNCH_BLOCK = 3 };

/* In device memory, at BendDeviceControl.launches. */
typedef struct BendLaunchPool {
  uint64_t records;                      /* address of capacity task records */
  uint32_t capacity;
  uint32_t way;                          /* BendLaunchWay */
  uint64_t warps;                        /* atomic: warp-tasks of the trees launched in this round; may end above the capacity */
  uint32_t cursor;                       /* atomic: records taken in this round; may end above the capacity */
  uint32_t first_warp;                   /* launched trees have the results and counters from here on, */
  uint32_t warp_capacity;                /* so many; groups of the round those below */
  uint32_t refused;                      /* atomic: forks and trees that found no grid, for a full pool or a refused launch */
  uint64_t grids;                        /* atomic: child grids launched, of all rounds */
  uint64_t begun;                        /* atomic: of them, those that have begun */
  uint64_t trees;                        /* atomic: trees with a place in the pool */
  uint32_t most_waiting;                 /* launches are refused while so many have not begun: the driver's own list never runs full */
  uint32_t reserved;
} BendLaunchPool;

/* In the pool, followed by three arrays of `parents` u32: sum, first, count. gD[p] = ceil(count / 128) blocks of bD[p] = min(count, 128) threads. Parents
   without children have count 0 and gD 0. */
typedef struct BendLaunch {
  uint32_t parents;
  uint32_t blocks;                       /* virtual: sum[parents - 1] */
  uint32_t share;
  uint32_t threads;                      /* the largest bD */
} BendLaunch;

/* How an emulated task begins. */
#define BEND_TASK_PARALLEL 1u            /* its forks are launched */
#define BEND_TASK_RESUME 2u              /* the record is a frame or join that goes on */

/* What a task leaves behind that ended with a parallel fork or a tree: a grid to be launched. */
typedef struct BendPending {
  uint32_t first;                        /* record of the pool */
  uint32_t count;                        /* threads of the grid, for children that is records; 0: none */
  uint32_t tree;                         /* 1: `first` is a group, 32 threads for each of its warp-tasks */
} BendPending;

#ifdef __cplusplus
}
static_assert(sizeof(BendLaunch) == BEND_LAUNCH_HEADER && sizeof(BendLaunchPool) == 72);
#endif
#endif
