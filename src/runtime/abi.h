/* The contract between generated code and the runtime: plain C, shared by compiler, JIT and runtime archive.
   Struct offsets used by generated fast paths are checked by a unit test against offsetof.

   Words. A `ref D` word: bits 0..2 the constructor index when D has at most 8 constructors, bits 3..63 the node's address; a word with a
   null address is a nullary constructor; a packed constructor (BendCtorInfo.repr) holds its 32-bit field in bits 32..63.
   D with more than 8 constructors: bits 0..2 are 0 for nodes (u32 tag at offset 4), and nullary or packed constructors are
   (payload << 32) | (index << 3) | 7.
   An array word: block address (48 bits) | log2(slots) << 56. The block: { u32 handles; u32 reserved; u64 reserved } then the
   slots at offset 16, each BendLayout.size bytes (the alloc size of the element type).
   An object word (closure, any, request): address of { u32 count; u32 object id; payload }. An `any` word that is 0 or has bit 0 set is an
   immediate: never counted, never dereferenced. Handles of the runtime (Chan, File, Socket, Listener) are such immediates.
   Every node, object and block has at least 16 bytes and a multiple of 8; a BendLayout.size of 8 counts as 16.
   Nodes: { u32 count; u32 first u32-sized live field, tag, or padding; rest }. count = number of references; a new node has 1.
   Static (immortal) nodes have count >= 0x80000000 and are never counted nor freed.

   By value in memory: u32/f32/enum 4 bytes, nat/ref/array/fn/any 8 bytes, struct as the C struct of its fields, sum as
   { u32 tag; slots }: slot k is 8 bytes when any variant's k-th scalar leaf is 8 bytes wide, else 4 (leaves: fields flattened
   in order, nested sums as their tag and slots). */
#ifndef BEND_RUNTIME_ABI_H
#define BEND_RUNTIME_ABI_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BEND_ABI_VERSION 1u
#define BEND_CLASSES 64u                 /* class c holds nodes of 8*c bytes, c = 2..63 */
#define BEND_MAX_SMALL 504u
#define BEND_ARRAY_HEADER 16u
#define BEND_ARRAY_SHIFT 56u
#define BEND_ARRAY_ADDRESS 0x0000FFFFFFFFFFFFull
#define BEND_IMMORTAL 0x80000000u
#define BEND_NAT_MAX 0x0000FFFFFFFFFFFFull /* 2^48-1 */
#define BEND_MAX_ARRAY_CLASS 31u

typedef uint64_t BendWord;

/* The first fields are used by inline fast paths: pop free_lists[c], else bump up to limit, else bend_alloc_slow. */
typedef struct BendWorker {
  void* free_lists[BEND_CLASSES];        /* link in a free node's first 8 bytes */
  char* bump;
  char* limit;
  struct BendRuntime* runtime;
  uint32_t index;
  uint32_t fork_depth;
  void* private_state;
  uint32_t atomic;                       /* 1 once other workers may hold values: counts then change by atomic operations */
  uint32_t solo;                         /* 1: the only worker for good; forks run in order */
  char own_lines[64];                    /* other workers read and write what follows, never a line before it or past the struct */
  char* task_tail;                       /* where the next task goes */
  char* task_limit;                      /* others set it to null to be heard at the next fork */
  const uint32_t* task_head;             /* a popped task whose address's low half is above *task_head is the owner's, else ask bend_join */
  uint32_t tasks_wanted;                 /* 0: forks run in order without asking bend_fork; others set it when they set task_limit to null */
  char other_lines[64];
} BendWorker;

/* A call that a fork leaves to whoever comes first. Pushing sets `code` and the arguments; a result is delivered in `data`. More than
   BEND_TASK_SPACE bytes of either: data[0] points to them. */
#define BEND_WIDEST_FORK 65536u            /* calls; wider ones run in order */
/* What bend_fork answers, in the low bits of its token: the program has one worker; push; run in order. */
enum { BEND_FORK_SEQUENTIAL = 0, BEND_FORK_PUSH = 1, BEND_FORK_SMALL = 2, BEND_FORK_HOW = 3 };
#define BEND_TASK_BYTES 64u
#define BEND_TASK_SPACE 48u
typedef struct BendForkTask {
  void (*code)(BendWorker*, void* data); /* generated: loads the arguments, calls, stores the result */
  uint32_t state;
  uint32_t note;                         /* how deep it lies in forks; once taken: by whom */
  uint64_t data[6];
} BendForkTask;

enum BendSlotKind { BEND_SLOT_DATA = 0, BEND_SLOT_ARRAY = 1, BEND_SLOT_OBJECT = 2, BEND_SLOT_SUM = 3 };

/* One counted word (or inline sum) at a byte offset of a value in memory. */
typedef struct BendSlot {
  uint32_t offset;
  uint32_t kind;
  const void* info;                      /* DATA: BendDataInfo; ARRAY: BendLayout of the element; SUM: BendSumInfo; OBJECT: null */
} BendSlot;

/* What a value in memory holds that must be counted. */
typedef struct BendLayout {
  uint32_t size;                         /* bytes, alloc size; 0 for the empty struct */
  uint32_t words_log2;                   /* ceil(log2(max(1, 8-byte or 4-byte cells))) for the array class limit */
  uint32_t slot_count;
  uint32_t reserved;
  const BendSlot* slots;
} BendLayout;

typedef struct BendSumInfo {             /* offsets in the variants are relative to the sum's start; tag at offset 0 */
  uint32_t variant_count;
  uint32_t reserved;
  const BendLayout* variants;
} BendSumInfo;

enum BendCtorRepr { BEND_CTOR_NULLARY = 0, BEND_CTOR_PACKED = 1, BEND_CTOR_NODE = 2 };

typedef struct BendCtorInfo {
  uint32_t repr;
  uint32_t reserved;
  BendLayout layout;                     /* of the node, header included; slot offsets from the node's start */
  const char* name;
} BendCtorInfo;

typedef struct BendDataInfo {
  uint32_t ctor_count;
  uint32_t tagged;                       /* 1: index in bits 0..2 */
  const BendCtorInfo* ctors;
  const char* name;
} BendDataInfo;

enum BendObjectKind { BEND_OBJECT_CLOSURE = 0, BEND_OBJECT_BOX = 1, BEND_OBJECT_REQUEST = 2 };

struct BendTask;
/* An IO.OP Request word is a node { count, padding, object word }: the runtime frees that node and hands the object to handler and resume.
   An effect: reads its arguments (owned) from the request's payload { BendWord continuation; args.. } and writes its answer.
   Returns BEND_DONE, or BEND_PARKED when the runtime will write the answer and resume later. */
enum { BEND_DONE = 0, BEND_PARKED = 1 };
typedef int (*BendHandler)(BendWorker*, struct BendTask*, void* payload, void* answer);
/* Generated: loads the answer, frees the request object, applies the continuation; returns the next IO.OP word. */
typedef BendWord (*BendResume)(BendWorker*, BendWord request, const void* answer);

typedef struct BendObjectInfo {          /* indexed by object id */
  uint32_t kind;
  uint32_t reserved;
  BendLayout layout;                     /* whole object, header included; request: the continuation is a slot too */
  void* code;                            /* closure: generated function; host only */
  BendHandler handler;                   /* request */
  BendResume resume;                     /* request */
  uint32_t answer_size, answer_align;    /* request */
  const char* name;                      /* effect or def name */
  const void* instance;                  /* closure without captures: the only object of its kind, immortal; else null */
} BendObjectInfo;

/* What the program can run on a device; gpu/device_abi.h has the machine. */
#define BEND_GPU_READS_ONLY 1u           /* flags: nothing that the entry reaches writes to an array */

typedef struct BendGpuEntry {            /* one `!` target */
  const char* name;                      /* of the def */
  const char* site;                      /* where it is defined, file:line */
  const char* refusal;                   /* why it cannot run there ("`show` uses F32.show, ..."), or null */
  uint32_t segment;
  uint32_t flags;
  BendLayout args;                       /* payload: the C struct of the def's parameters; size may be 0 */
  BendLayout owned;                      /* the same struct with the slots of the parameters that the call consumes (not borrowed) */
  BendLayout result;
} BendGpuEntry;

enum BendGpuCodeKind { BEND_GPU_PTX = 0, BEND_GPU_CUBIN = 1, BEND_GPU_LAUNCH_PTX = 2 }; /* the last: gpu/launch_abi.h, to be linked with libcudadevrt */

typedef struct BendGpuCode {             /* one compiled form of the device module */
  uint32_t kind;
  uint32_t arch;                         /* 70: runs on compute capability 7.0; PTX on all later ones too, a cubin on later minors of its major */
  const void* bytes;                     /* PTX: zero-terminated */
  uint64_t size;                         /* PTX: with the terminating zero */
} BendGpuCode;

typedef struct BendGpuProgram {
  uint32_t task_stride;                  /* bytes of a task record: a multiple of 16, room for the largest payload */
  uint32_t entry_count;
  uint32_t site_count;
  uint32_t code_count;
  const BendGpuEntry* entries;
  const char* const* sites;              /* texts of run-time error places, as bend_fail gets them */
  const BendGpuCode* codes;              /* none: nothing runs on a device */
  const char* statics;                   /* name of the device global that holds all immortal nodes, or null */
  void (*emulated_round)(void* control, uint32_t thread, uint32_t threads); /* or null */
  void (*emulated_task)(void* control, const void* record, uint32_t parallel, void* pending); /* or null: gpu/launch_abi.h */
  void (*emulated_flat)(void* control, uint32_t warp, uint32_t warps); /* or null */
  void (*emulated_tree)(void* control, const void* group, uint32_t number, uint32_t warps, void* pending); /* or null: gpu/launch_abi.h */
  void (*emulated_step)(void* control, uint32_t flips); /* or null */
  uint32_t group_stride;                 /* bytes of a BendGroup with its payload, a multiple of 16; 0: the program has no perfect trees */
  uint32_t result_stride;                /* bytes of a warp's result, a multiple of 8 */
  uint32_t makes_arrays;                 /* 1: device code has an Array.new, so memory that is zero already saves time (gpu/zeros.h) */
  uint32_t reserved;
} BendGpuProgram;

enum BendMainKind { BEND_MAIN_IO = 1, BEND_MAIN_VALUE = 2 };

typedef struct BendProgram {
  uint32_t abi_version;
  uint32_t main_kind;
  void* entry;                           /* IO: BendWord (*)(BendWorker*) -> IO.OP; value: void (*)(BendWorker*): shows the value without a newline, the runtime adds it */
  BendWord (*apply_unit)(BendWorker*, BendWord closure); /* applies a fn(struct{}) -> ref IO.OP closure (IO.spawn); may be null */
  const BendObjectInfo* objects;
  uint32_t object_count;
  uint32_t reserved;
  const BendDataInfo* string_info;       /* String, null when unused */
  const BendDataInfo* op_info;           /* IO.OP: 0 Emit{any}, 1 Halt{u32, String}, 2 Request{any: object} */
  const char* name;
  const BendGpuProgram* gpu;             /* null: the program has no `!` */
} BendProgram;

/* Runs a program to its end. argv[0] is the executable, or the file as written under `bendc run`. Returns the exit status. */
typedef struct BendOptions {             /* 0 / null: take the environment's or the default */
  uint32_t threads;
  const char* gpu;                       /* auto, off, require, emulate */
  const char* file;                      /* `run`: argv[0] as IO.args shows it */
  const char* gpu_device;                /* index or UUID */
  const char* gpu_memory;                /* 8GB */
  const char* gpu_fork;
  const char* gpu_threshold;
  uint32_t stats;                        /* 1: counters on stderr at the end */
  uint32_t returns_errors;               /* 1: a run-time error makes bend_start return, where else it ends the process (docs/abi.md) */
} BendOptions;
int bend_start(const BendProgram* program, const BendOptions* options, int argc, char** argv);
/* Describes and tests the GPU on stdout; 0: one can be used, 1: none, 2: bad options. */
int bend_gpu_doctor(const BendOptions* options);

#define BENDC_RT_v void
#define BENDC_RT_p void*
#define BENDC_RT_i uint32_t
#define BENDC_RT_l uint64_t
#define BENDC_RT_f float

#ifdef __cplusplus
}
#endif
#endif
