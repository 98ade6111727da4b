/* The contract between the runtime's executor and generated device code: plain C, addresses as u64 so that both sides see one layout.

   A device program is a machine of segments. A task is { segment, parent, arguments }; one device thread runs it as a loop over segments,
   without native recursion. The executor launches rounds over a queue of tasks until no task is left and the root has returned.

     bend_round(BendDeviceControl*, steps)      the kernel: 1-D grid, BEND_BLOCK_THREADS threads a block; steps BEND_STEP_NONE: a round
     emulated_round(control, thread, threads)   the same machine compiled for the host; runs what `thread` of `threads` would do, to its end.
                                                Call it through bend_emulated_thread (emulated_exit.h): an error leaves it by longjmp

   The grid is fixed and knows nothing of the number of tasks. A thread that gets none leaves its BendDeviceThread as it is (the executor clears only
   the records that the widest round may have reached). Where segments loop, and in the emulator, threads whose number is a multiple of 2^spread begin with IN task
   i = thread >> spread; elsewhere each warp begins with as many tasks as make all warps about equally full. Where segments loop the thread goes on by stride
   (i += threads >> spread); elsewhere whose task has ended takes the next one of its block's share, by a counter of the block (of the round, `next_task`, in the
   emulator). Between rounds the kernel bend_flip (the runtime's own)
   makes OUT the next IN and chooses the mode, so that many rounds are enqueued without the host in between.
   Steps: while a call has at most BEND_STEP_TASKS tasks at a time, bend_round is launched as one block, with BEND_STEP_FIRST after a bend_flip and BEND_STEP_NEXT instead of
   one: it then ends the round before itself. Where such a round has more tasks, nothing runs: `waits` is 1 until the bend_flip at the end of the steps, and the host goes on with rounds.

   Rules of a task
     tail g(args)         the same thread goes on with segment g.
     call, or a fork while it runs sequentially: a frame on the thread's own stack holds the continuation's segment and payload; the children
                          run in this thread one after another. `ret v` goes on with the topmost frame; a full stack is moved to the heap, a
                          BendFrame for each frame, and what they wait for comes with such a frame as parent.
     a fork in parallel:  a BendJoin from the heap; k children appended to OUT (one atomic a warp or block). `ret v` with a join as parent
                          stores v into its slot of the join's payload, then counts `remaining` down (acquire and release at device scope); the
                          last arriver goes on with the join's segment in the same thread.
     ret v, parent 0:     stores v as a value in memory (BendGpuEntry.result) at control->result, then finished = 1.
   A fork is parallel when mode is BEND_MODE_PARALLEL, or when the thread has gone through more than `budget` segments since it took its
   IN task (0: no budget) and there is no task left to take: a skewed tree is so dealt out again instead of being finished by one thread. It is sequential when the forking
   def has a size measure below `threshold`, and when OUT is full. With the children of a parallel fork all children go to OUT that have not begun and
   wait on the thread's stack; the frames there become joins, or BendFrames when no child waits.
   OUT overflow: a thread that gets out positions p..p+k-1 with p + k > queue_capacity runs the fork sequentially and writes a record with
   segment BEND_SEGMENT_NONE into each of its positions below queue_capacity; out_count may end above the capacity, the reader takes the smaller.

   Perfect trees: a task of a def whose forks make a perfect tree (codegen/gpu/perfect_trees.h) may append a *group* instead of forking: the whole
   tree below it, as one grid. The kernel bend_flat, launched after bend_round in the same round, runs all groups. Its unit is a warp-task: 2^wide
   chunks of 32 neighbouring subtrees of the depth that a thread computes at once (the tree's grain), combined in the warp. A group of height h has
   2^(h - grain - 5 - wide) of them; `groups` hands out places for both the group and its warp-tasks by one atomic, so the bases of a round's groups
   ascend. Above a warp, results lie in `results`, one place a warp-task, and every 32 siblings have a counter in `counters`: the warp that arrives
   last combines their results and goes on. Counters are zero between groups. The group's result goes to its parent, a join, as that of a task; a join
   that can go on then is appended to `resumes`, and is the next round's first work: its segment runs with the record itself.
     emulated_flat(control, warp, warps)        the same for the host
   Scans (codegen/gpu/scan_trees.h) are groups of two trees of one depth in one pass. Their warp-tasks are of 32 leaves of either tree, and what one knows of
   its own leaves the later ones need: so warps take them in order, by the counter behind `scans` at the group's base, and none waits for one that nobody has
   begun. A warp-task leaves a word at its place in `scans`, and so do two of a family of 64 for them all, a line for each family (emit_scan_grid.cpp): number of the scan
   << 33 | the value is that of all leaves so far << 32 | value, in one store; the number tells the words of this scan from older ones. A family's line also has its total so far, where values are
   added: members << 40 | their sum, zero between groups. The counter is zero between groups, too: each warp that works on a group asks it once too often, and the last to do so clears it. In a round of this group alone each warp's first warp-task is the one of its own number, and the counter tells those beyond.
   A group for which there is no place is written with tree BEND_TREE_NONE if its index has one, and the task forks.

   Heap: threads take chunks of chunk_bytes (or a larger size at once) from heap_cursor by one atomic and cut them in their
   BendDeviceThread, which lives through all rounds of a call: at most resident_threads threads run at a time and each owns the record of its global
   thread index. Freed nodes of 16..BEND_DEVICE_SMALL bytes go to the thread's free_lists (link in the first 8 bytes), larger ones are left.
   So a block above BEND_DEVICE_SMALL is memory that no other node of the call had: one that lies between zero_from and zero_to is zero already.
   A cursor past heap_limit is error 3; the thread that sees it posts and ends its task (and every other thread soon, see `error`).

   Errors: the first one wins: compare-exchange of `error` from 0 to number | site << 32 (site: index into BendGpuProgram.sites, or
   BEND_NO_SITE); then error_detail may be set by the winner (a depth, a size). A thread that has posted, or sees error != 0 when it takes a task,
   ends. Loops without calls need not look: a round that never ends is the program's own.

   Words are those of abi.h with device addresses. Counts of values that come from the host are the references inside the arguments; nothing
   of a call stays on the device after it, so counts of the result need not be exact: the host counts the references that it finds. Immortal
   nodes (static strings) may be in the result. Arrays of the arguments keep their block: handles to one block arrive as handles to one. */
#ifndef BEND_RUNTIME_GPU_DEVICE_ABI_H
#define BEND_RUNTIME_GPU_DEVICE_ABI_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BEND_BLOCK_THREADS 128u
#define BEND_SEGMENT_NONE 0xFFFFFFFFu
#define BEND_NO_SITE 0xFFFFFFFFu
#define BEND_DEVICE_SMALL 128u           /* largest node kept in a thread's free lists */
#define BEND_DEVICE_CLASSES 17u          /* class c holds nodes of 8*c bytes, c = 2..16 */
#define BEND_TASK_HEADER 16u             /* bytes before a task's payload */
#define BEND_JOIN_HEADER 16u
#define BEND_JOIN_LEVELS 24u
#define BEND_PARENT_ADDRESS 0x0000FFFFFFFFFFF8ull /* of a parent word that is a join */
#define BEND_PARENT_ALONE 2u             /* bit of a join's parent word: it waits for this child alone, and nobody counts */
#define BEND_PARENT_SLOT 48u             /* bits 48..63 of a join's parent word: byte offset of the child's result in the join */
/* Places in a parent word that are no multiples of 4: the value is combined with the U32 at BEND_JOIN_HEADER by an atomic, for all children of the join.
   ADD: there lie one word, the count of children that have not returned in its lower half, in place of `remaining`, and the sum in its upper half; one atomic
   changes both. The last child stores the whole sum there as a U32. */
#define BEND_SUM_ADD (BEND_JOIN_HEADER + 1u)
#define BEND_SUM_OR (BEND_JOIN_HEADER + 2u)
#define BEND_SUM_XOR (BEND_JOIN_HEADER + 3u)
#define BEND_SUM_AND (BEND_JOIN_HEADER + 5u)
#define BEND_STEP_TASKS 4u               /* a warp of the block each */
#define BEND_KERNEL_NAME "bend_round"
#define BEND_FLAT_KERNEL_NAME "bend_flat"
/* What kernels of a round begin with: comments, which overlap.h makes instructions for devices that have them. */
#define BEND_OVERLAP_WAIT "// griddepcontrol.wait;"
#define BEND_OVERLAP_START "// griddepcontrol.launch_dependents;"
#define BEND_TREE_NONE 0xFFFFFFFFu
#define BEND_GROUP_HEADER 32u            /* bytes before a group's payload */
#define BEND_GROUP_TASK 16u              /* where a group's record continues as a task's record */
#define BEND_GROUP_SHIFT 40u             /* groups: bits 40..63 count groups, the others warp-tasks */
#define BEND_LANES 32u
#define BEND_LANE_BITS 5u
#define BEND_WIDE_MOST 5u                /* most chunks a warp-task has: 2^5, one a lane */

enum BendStep { BEND_STEP_NONE = 0, BEND_STEP_FIRST = 1, BEND_STEP_NEXT = 2 };

/* PARALLEL: every fork is. MIDDLE: a small budget; before it is spent, the first levels of forks of some tasks are parallel, and all forks that loop.
   SEQUENTIAL: a larger budget, and when all threads have tasks perfect trees stay in their thread. rounds.h chooses between rounds. */
enum BendMode { BEND_MODE_PARALLEL = 0, BEND_MODE_SEQUENTIAL = 1, BEND_MODE_MIDDLE = 2 };

/* One record of a queue: task_stride bytes (a multiple of 16), the payload is the C struct of the segment's parameters at offset 16. */
typedef struct BendTaskRecord {
  uint32_t segment;                      /* BEND_SEGMENT_NONE: skip */
  uint32_t levels;                       /* of forks below it that are dealt out at once in mode MIDDLE; 0 or more */
  uint64_t parent;                       /* 0 root; bit 0 set: join address | 1 | slot << 48; else a frame's address. slot: byte offset of the result's place */
} BendTaskRecord;

/* Both are followed by the payload: the C struct of the continuation segment's parameters (results first, then live values), and in a frame
   by what generated code needs besides (arguments of children that have not run). At least 8-byte aligned. */
typedef struct BendJoin {
  uint64_t parent;                       /* of the forking task */
  uint32_t remaining;                    /* atomic: children that have not returned; from bit BEND_JOIN_LEVELS on the levels of what goes on here */
  uint32_t segment;                      /* the continuation */
} BendJoin;

typedef struct BendFrame {
  uint64_t parent;
  uint32_t shape;                        /* generated code's own: how large, and where its value goes */
  uint32_t segment;                      /* takes the value that the frame waits for */
} BendFrame;

/* A perfect tree to run; followed by the payload: the C struct of the def's parameters. */
typedef struct BendGroup {
  uint32_t tree;                         /* index of the tree in the program; BEND_TREE_NONE: skip */
  uint32_t height;                       /* the depth argument */
  uint32_t base;                         /* number of its first warp-task in the round */
  uint32_t wide;                         /* of a scan: its number, from 1 on, that of its round */
  uint32_t segment, flags;               /* in a pool of launches, with what follows: the record of the task that the tree is without groups */
  uint64_t parent;                       /* of the task that appended it */
} BendGroup;

/* One per thread, zeroed at the start of a call; 160 bytes. Rounds of a device interleave the records of a warp's 32 threads, so that lanes that
   allocate together touch neighbouring words: word w of lane l is word 32 * w + l of the 32 records. The emulator, and threads launched from the
   device, have them as they stand here. */
typedef struct BendDeviceThread {
  uint64_t bump;
  uint64_t limit;
  uint64_t free_lists[BEND_DEVICE_CLASSES];
  uint64_t reserved;                     /* free for generated code */
} BendDeviceThread;

/* Atomics that many threads hit have a 128-byte line of their own. */
typedef struct BendDeviceControl {
  /* line 0: read by everybody, written between rounds only */
  uint64_t in_queue;                     /* address of in_count - in_resume_count records */
  uint64_t out_queue;
  uint64_t heap_limit;
  uint64_t threads;                      /* address of the BendDeviceThread of all threads */
  uint64_t result;                       /* address of the result value, 16-byte aligned */
  uint64_t threshold;                    /* a size measure below this runs sequentially */
  uint32_t in_count;
  uint32_t queue_capacity;               /* records a queue */
  uint32_t task_stride;
  uint32_t mode;                         /* BendMode */
  uint32_t budget;                       /* segments a task may run sequentially before its forks are parallel; 0: no limit */
  uint32_t chunk_bytes;                  /* heap chunk, a power of two, at least 256 */
  uint32_t resident_threads;             /* threads of the grid */
  uint32_t entry;                        /* index of the BendGpuEntry, for messages */
  uint64_t emulated_exit;                /* emulator: where a thread that has posted an error goes (emulated_exit.h) */
  uint64_t launches;                     /* address of a BendLaunchPool (launch_abi.h), 0: forks are not launched from the device */
  uint64_t zero_from, zero_to;           /* fresh heap memory between these addresses holds zeros (zeros.h) */
  uint32_t spread;                       /* one of 2^spread threads takes tasks: those of a narrow round have a warp each, or share it with few */
  uint32_t wide_trees;                   /* 1: perfect trees always become groups */
  uint32_t groups_wanted;                /* 1: they do in this round */
  uint32_t waits;                        /* 1: a step has found more tasks than it runs */
  /* line 1 */
  uint64_t heap_cursor;                  /* atomic */
  uint64_t reserved1[15];
  /* line 2 */
  uint32_t out_count;                    /* atomic */
  uint32_t reserved2[31];
  /* line 3 */
  uint32_t next_task;                    /* 0 at the start of a round; for dealing out tasks by an atomic, later */
  uint32_t reserved3[31];
  /* line 4 */
  uint64_t error;                        /* atomic: 0, or number | site << 32 */
  uint64_t error_detail;
  uint32_t finished;                     /* 1: the root has returned */
  uint32_t rounds;                       /* counted by bend_flip, with tasks and the rest below */
  uint32_t target;                       /* IN counts from this on run in mode sequential */
  uint32_t sequential_budget;            /* `budget` of sequential rounds */
  uint64_t tasks;                        /* sum of in_count */
  uint64_t widest;                       /* largest in_count */
  uint64_t tree_groups;                  /* groups and warp-tasks of all rounds */
  uint64_t tree_warps;
  uint64_t statistics[8];                /* free for generated code */
  /* line 5: read by everybody, written between rounds only */
  uint64_t group_queue;                  /* address of group_capacity BendGroup, group_stride bytes each */
  uint64_t results;                      /* warp_capacity results, result_stride bytes each */
  uint64_t counters;                     /* warp_capacity u32 */
  uint64_t in_resumes;                   /* addresses of joins to go on with: the first in_resume_count works of a round */
  uint64_t out_resumes;
  uint32_t in_resume_count;
  uint32_t group_capacity;               /* 0: no groups */
  uint32_t warp_capacity;                /* below 2^31 */
  uint32_t warps_log2;                   /* a group has at most so many warp-tasks while `wide` can be raised */
  uint32_t middle;                       /* IN counts up to this that follow such a count and have not grown run in mode middle; 0: none do */
  uint32_t middle_budget;                /* `budget` of middle rounds */
  uint32_t most_spread;
  uint32_t again_budget;                 /* `budget` of a sequential round that follows another one */
  uint64_t scans;                        /* warp_capacity u64: sums of warp-tasks of scans; as many for families, lines of 16; as many u32: numbers given out */
  uint32_t reserved5[12];
  /* line 6 */
  uint64_t groups;                       /* atomic: see BEND_GROUP_SHIFT */
  uint64_t reserved6[15];
  /* line 7 */
  uint32_t out_resume_count;             /* atomic */
  uint32_t scan_number;                  /* of the last scan before this call; those of round `rounds` have `rounds` + 1 more */
  uint64_t reserved7[3];
  uint64_t first_resumes[BEND_STEP_TASKS];   /* the first of out_resumes once more: a step has them with their count, without a load that waits for another */
  uint64_t reserved8[8];
} BendDeviceControl;

#ifdef __cplusplus
}
static_assert(sizeof(BendTaskRecord) == 16 && sizeof(BendJoin) == 16 && sizeof(BendFrame) == 16 && sizeof(BendDeviceThread) == 160);
static_assert(sizeof(BendDeviceControl) == 1024 && sizeof(BendGroup) == BEND_GROUP_HEADER);
static_assert(offsetof(BendGroup, segment) == BEND_GROUP_TASK + offsetof(BendTaskRecord, segment) && offsetof(BendGroup, parent) == BEND_GROUP_TASK + offsetof(BendTaskRecord, parent));
static_assert(BEND_GROUP_HEADER == BEND_GROUP_TASK + BEND_TASK_HEADER);
#endif
#endif
