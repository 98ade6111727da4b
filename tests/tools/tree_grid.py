"""The grid of a perfect tree, run on the CPU from its PTX (ptx.py): what the device makes of a leaf, since the emulator's code is optimised in another way.

  value(kernel, depth, words, seed)    of the program's first tree, whose nodes add up U32; kernel: ptx.Kernel(text, 'bend_flat'); words: (offset, bytes, value) of its arguments
"""
import ptx

BASE = 0x7F0000000000
# Places in BendDeviceControl (runtime/gpu/device_abi.h).
HEAP_LIMIT, THREADS, RESULT, HEAP, ERROR, FINISHED, GROUP_QUEUE, RESULTS, COUNTERS, IN_RESUMES, OUT_RESUMES = 16, 24, 32, 128, 512, 528, 640, 648, 656, 664, 672
GROUP_CAPACITY, WARP_CAPACITY, GROUPS, GROUP_SHIFT = 684, 688, 768, 40
GROUP_HEAD = 32   # bytes of BendGroup


def value(kernel, depth, words, seed):
    at, size = {}, 0
    for name, bytes_ in (('control', 1024), ('records', 160 * 128), ('group', 256), ('results', 1024), ('counters', 1024), ('resumes', 1024), ('result', 64), ('heap', 4096)):
        at[name], size = BASE + size, size + -(-bytes_ // 128) * 128
    memory = ptx.Memory(BASE, size)
    for place, what, bytes_ in ((THREADS, at['records'], 8), (HEAP, at['heap'], 8), (HEAP_LIMIT, at['heap'] + 4096, 8), (RESULT, at['result'], 8), (GROUP_QUEUE, at['group'], 8),
                                (RESULTS, at['results'], 8), (COUNTERS, at['counters'], 8), (IN_RESUMES, at['resumes'], 8), (OUT_RESUMES, at['resumes'], 8), (GROUP_CAPACITY, 1, 4),
                                (WARP_CAPACITY, 128, 4), (GROUPS, 1 << GROUP_SHIFT | 1 << max(0, depth - 5), 8)):
        memory.store(at['control'] + place, bytes_, what)
    # Tree, height, base, number, parent; then the arguments.
    for place, bytes_, what in [(0, 4, 0), (4, 4, depth), (8, 4, 0), (12, 4, 0), (24, 8, 0)] + [(GROUP_HEAD + offset, bytes_, what) for offset, bytes_, what in words]:
        memory.store(at['group'] + place, bytes_, what)

    def post(where, registers):
        where.store(at['control'] + ERROR, 8, registers['param1'] | registers['param2'] << 32)

    kernel.launch(memory, 1, 128, [at['control']], seed, calls={'bend_$_post': post})
    if memory.load(at['control'] + ERROR, 8) or memory.load(at['control'] + FINISHED, 4) != 1:
        raise ptx.PtxError('an error, or no end')
    return memory.load(at['result'], 4)
