#!/usr/bin/env python3
"""Random programs of the shapes that the device runs in ways of their own, and of shapes that differ from these in one thing: what the emulated device prints at
every way of dealing out forks, and eight threads, must be what one thread prints.

trees.py --bendc BENDC [--count N] [--seed S] [--batch K] [--kinds A,B] [--keep DIR] [--evaluate] [--memory]

Each file holds K independent programs; the executable runs on one thread, on eight with a random schedule, and emulated at auto, host, flat, thread, warp, block,
sequential in a random order each. Heap blocks are counted: one that is still live at the end is a difference too. --evaluate compares with the checker's evaluator as
well, for programs without shared arrays. With --memory the device has 1 to 33 MB: what fits prints the same, the rest says that its heap is used up.
Every program is deterministic: no leaf writes what another one reads or writes beside it.

Kinds: scan (scan_shapes.py), tree (tree_shapes.py), fold and closures (fold_shapes.py), moves (move_shapes.py), walks (walk_shapes.py). A kind's first comment says what it draws.
"""
import argparse
import os
import random
import re
import subprocess
import sys
import tempfile

from fold_shapes import ClosureProgram, FoldProgram
from move_shapes import MovesProgram
from scan_shapes import ScanProgram
from tree_shapes import TreeProgram
from walk_shapes import WalkProgram

KINDS = {"scan": ScanProgram, "tree": TreeProgram, "fold": FoldProgram, "closures": ClosureProgram, "moves": MovesProgram, "walks": WalkProgram}
WAYS = ["auto", "host", "flat", "thread", "warp", "block", "sequential"]


def shapes_of(kinds, seed, batch):
    rng = random.Random(seed)
    out = []
    while len(out) < batch:
        kind = rng.choice(kinds)
        shape = kind(rng, f"P{len(out)}")
        if getattr(shape, "unfit", False) or getattr(shape, "error", False) and any(getattr(s, "error", False) for s in out):
            continue
        out.append(shape)
    # A program that ends with an error comes last.
    return sorted(out, key=lambda s: getattr(s, "error", False))


def assemble(shapes, seed):
    text = f"# seed {seed}\n" + "".join(f"# P{i}: {' '.join(s.about)}\n" for i, s in enumerate(shapes)) + "import Base\nimport Scan\n\n"
    text += "\n\n".join(d for s in shapes for d in s.decls)
    return text + "\n\ndef main() -> IO(Unit):\n  do IO<Unit>:\n" + "".join(f"    IO.print(\"P{i} \" ++ {s.value})\n" for i, s in enumerate(shapes))


def run(command, limit=120, **variables):
    try:
        done = subprocess.run(command, env=dict(os.environ, BEND_DEBUG_HEAP="1", **variables), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=limit)
        return done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        return "timeout", b"", b""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bendc", required=True)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--changes", help="of scans: only these")
    parser.add_argument("--keep")
    parser.add_argument("--scans", action="store_true", help="say how many pairs of trees are scans")
    parser.add_argument("--memory", action="store_true", help="with little memory for the device")
    parser.add_argument("--evaluate", action="store_true", help="compare with the evaluator, where no arrays are shared")
    parser.add_argument("--print", action="store_true", help="print the first file and stop")
    args = parser.parse_args()
    if args.changes:
        ScanProgram.CHANGES = args.changes.split(",") * 3
    some = [KINDS[k] for k in args.kinds.split(",")]
    bad = compared = scans = 0
    if args.print:
        print(assemble(shapes_of(some, args.seed, args.batch), args.seed), end="")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path, program = os.path.join(folder, "program.bend"), os.path.join(folder, "program")
        for seed in range(args.seed, args.seed + (args.count + args.batch - 1) // args.batch):
            shapes = shapes_of(some, seed, args.batch)
            with open(path, "w") as f:
                f.write(assemble(shapes, seed))
            problems = []
            built = run([args.bendc, "build", "--verify", "-O1", "--emulator", "--no-ptx", "--gpu-fork=all", path, "-o", program])
            if built[0] != 0:
                problems.append(("build", built))
            else:
                want = run([program], BEND_GPU="off", BEND_THREADS="1")
                if args.scans:
                    scans += run([args.bendc, "explain", path])[1].count(b"a scan, in one pass")
                pure = [i for i, shape in enumerate(shapes) if getattr(shape, "pure", False)]
                if args.evaluate and want[0] == 0 and pure:
                    with open(path, "w") as f:
                        f.write(assemble(shapes, seed).split("def main()")[0] + "def main() -> String:\n  " + " ++ \"|\" ++ ".join(shapes[i].value for i in pure) + "\n")
                    got = run([args.bendc, "run", "--normalise", path])
                    if got[1].decode().strip() != '"' + "|".join(line.split(" ", 1)[1] for i, line in enumerate(want[1].decode().splitlines()) if i in pure) + '"':
                        problems.append(("evaluator", got))
                if want[0] not in (0, 1) or want[0] == 1 and not any(getattr(s, "error", False) for s in shapes):
                    problems.append(("one thread", want))
                runs = [("8 threads", dict(BEND_GPU="off", BEND_THREADS="8"))] + [(way, dict(BEND_GPU="emulate", BEND_GPU_FORK=way)) for way in WAYS]
                runs += [(way + " 0", dict(BEND_GPU="emulate", BEND_GPU_FORK=way, BEND_GPU_THRESHOLD="0")) for way in ("thread", "block")]
                for k, (label, variables) in enumerate(runs):
                    if args.memory:
                        variables = dict(variables, BEND_GPU_MEMORY=["1MB", "2MB", "5MB", "17MB", "33MB"][(seed + k) % 5])
                    got = run([program], BEND_SCHED_SEED=str((seed * 7 + k) % 11), **variables)
                    if args.memory and got[0] == 1 and b"error 3: out of memory: the device" in got[2]:
                        continue
                    if got[:2] != want[:2] or want[0] == 0 and not re.search(rb"\b0 live words", got[2]):
                        problems.append((f"{label}, seed {(seed * 7 + k) % 11}", got))
            compared += args.batch
            if problems:
                bad += 1
                print(f"seed {seed}: {' | '.join(' '.join(s.about) for s in shapes)}")
                for label, got in ([("one thread", want)] if built[0] == 0 else []) + problems[:4]:
                    print(f"  {label}: {got[0]} {got[1][:300]!r} {got[2][:600].decode(errors='replace')}", flush=True)
                if args.keep:
                    os.makedirs(args.keep, exist_ok=True)
                    with open(os.path.join(args.keep, f"seed_{seed}.bend"), "w") as f:
                        f.write(assemble(shapes, seed))
    if args.scans:
        print(f"{scans} scans in one pass")
    print(f"{compared} programs compared, {bad} files differ")
    print(f"{compared // args.batch - bad} passed, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
