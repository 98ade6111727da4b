#!/usr/bin/env python3
"""Measures bendc: scripts/bench [cpu|scan|start|check|compile|stdlib|gpu|all] [--size N] [--rounds N]
                scripts/bench gpu FOLDER            (also: report FOLDER)
                scripts/bench regress BASE [--only ROW,..] [--counts] [--tolerance PERCENT] [--rounds N]
                scripts/bench threads --help        (bench/threads.py)

cpu      the twelve programs of bench/suite and the twelve of bench/twins on one thread, against their C twins (bench/cpu.py): processor time,
         peak memory, ratios, geometric means; also a chart, and the tables of docs/performance.md.
scan     exclusive prefix sum of 2^26 U32 on one thread: stdlib Scan and, where ../shared/cases/seed is there, the seed module, at depths 0, 8 and 12,
         against the kernel of bench/twins/scan.c (gcc and clang -O3; the better is "C"). A scan's time is the difference of two runs that differ by
         eight scans, so that start, fill and checksum drop out. Contenders take turns; medians and quartiles over the rounds. Processor time stands
         beside wall time: on a machine that others use it is the steadier of the two.
start    wall time of `bendc run` and `bendc build` of a hello program, with the phases.
check    lines a second of `bendc check`, user time on one thread, on a generated program of 200,000 lines: data types, recursive functions, proofs.
compile  time by phase: the suite under `bendc run`, and generated programs of growing size (bench/compiling.py); a chart.
stdlib   functions of Base against C functions that do the same (bench/stdlib.py).
gpu      the programs of scripts/gpu-pack on a GPU: makes the pack and runs it where there is one, or merges a FOLDER of results of run-gpu.sh into
         bench/results/gpu.json and docs/performance.md.
all      every row above; gpu only where there is a GPU.
regress  the programs of cpu, and the compiler's phases, for the working tree and for the commit BASE; exit status 1 when a row is worse (bench/regress.py).

Every run's checksum is compared; a wrong one stops the measurement. Results go to bench/results/ROW.json.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys

from checking import bench_check
from compiling import bench_compile
from cpu import bench_cpu
from regress import bench_regress
from report import bench_gpu, gpu_present
from stdlib import bench_stdlib
from tools import BENDC, CPU, ROOT, WORK, build_bend, command, described, machine, progress, rewrite, save, stop, summary, timed

DEPTHS = (0, 8, 12)
EXTRA_SCANS = 8


def scan_contenders(size):
    """name -> the words of a run, up to the number of scans; C compilers first."""
    contenders = {}
    folder = os.path.join(WORK, "scan")
    os.makedirs(folder, exist_ok=True)
    for cc in ("gcc", "clang"):
        if shutil.which(cc):
            out = os.path.join(folder, "twin_" + cc)
            command([cc, "-O3", "-march=" + CPU, "-w", "-o", out, os.path.join(ROOT, "bench", "scan", "twin.c"), "-lm"])
            contenders["C " + cc] = [out, str(size)]
    if not contenders:
        stop("neither gcc nor clang is there")
    main = os.path.join(ROOT, "bench", "scan", "main.bend")
    programs = {"Scan": build_bend(main, "scan/stdlib")}
    seed = os.path.join(ROOT, "..", "shared", "cases", "seed", "scan.bend")
    if os.path.exists(seed):
        # The same program over the seed module: only the import differs.
        shutil.copyfile(seed, os.path.join(folder, "scan.bend"))
        with open(main, encoding="utf-8") as file:
            text = file.read().replace("import Scan\n", "import ./scan.bend as Scan\n")
        seeded = os.path.join(folder, "seed_main.bend")
        with open(seeded, "w", encoding="utf-8") as file:
            file.write(text)
        programs["seed"] = build_bend(seeded, "scan/seed")
    for name, program in programs.items():
        for depth in DEPTHS:
            contenders[f"{name} depth {depth}"] = [program, str(size), str(depth)]
    return contenders


def bench_scan(options):
    contenders = scan_contenders(options.size)
    # The runtime asks for huge pages; this makes malloc do so too, so that both sides run on the same kind of pages.
    environment = dict(os.environ, BEND_THREADS="1", BEND_GPU="off", GLIBC_TUNABLES="glibc.malloc.hugetlb=1")
    few, many = 1, 1 + EXTRA_SCANS
    walls = {name: [] for name in contenders}
    processor = {name: [] for name in contenders}
    checksums = {}
    for turn in range(options.rounds + 1):  # the first round warms up
        for name, words in contenders.items():
            progress(f"round {turn}/{options.rounds}: {name}")
            wall, cpu = {}, {}
            timed(words + ["0"], env=environment)  # settles the memory that the contender before gave back
            for count in (few, many):
                wall[count], cpu[count], seen = timed(words + [str(count)], env=environment)
                expected = checksums.setdefault(count, seen)
                if seen != expected:
                    stop(f"{name}: checksum after {count} scans is {seen}, C's is {expected}")
            if turn > 0:
                walls[name].append((wall[many] - wall[few]) / EXTRA_SCANS)
                processor[name].append((cpu[many] - cpu[few]) / EXTRA_SCANS)
    progress("")
    rows = {name: {**summary(values), "processor": statistics.median(processor[name])} for name, values in walls.items()}
    best = min((name for name in rows if name.startswith("C ")), key=lambda name: rows[name]["median"])
    base = rows[best]["median"]
    print(f"exclusive scan of 2^{options.size} U32, one thread, {CPU}; checksums {' '.join(checksums.values())}")
    print(f"{'contender':18}{'median ms':>11}{'quartiles ms':>20}{'ratio to C':>12}{'processor ms':>14}{'ratio':>7}")
    processor_base = min(rows[name]["processor"] for name in rows if name.startswith("C "))
    for name, row in rows.items():
        row["ratio"] = row["median"] / base
        row["processor_ratio"] = row["processor"] / processor_base
        print(
            f"{name:18}{row['median'] * 1e3:11.2f}{row['low'] * 1e3:11.2f} -{row['high'] * 1e3:7.2f}{row['ratio']:12.2f}"
            f"{row['processor'] * 1e3:14.2f}{row['processor_ratio']:7.2f}"
        )
    lines = [described(machine()), "", "| contender | median ms | quartiles ms | ratio | processor ms | ratio |", "|---|---|---|---|---|---|"]
    for name, row in rows.items():
        lines.append(
            f"| {name} | {row['median'] * 1e3:.1f} | {row['low'] * 1e3:.1f}-{row['high'] * 1e3:.1f} | {row['ratio']:.2f} "
            f"| {row['processor'] * 1e3:.1f} | **{row['processor_ratio']:.2f}** |"
        )
    rewrite(os.path.join(ROOT, "docs", "performance.md"), "scan", lines)
    save("scan", {"machine": machine(), "size": options.size, "cpu": CPU, "c": best, "checksums": checksums, "rows": rows})


def bench_start(options):
    os.makedirs(WORK, exist_ok=True)
    hello = os.path.join(ROOT, "bench", "start", "hello.bend")
    contenders = {
        "bendc run": [BENDC, "run", hello],
        "bendc build": [BENDC, "build", hello, "-o", os.path.join(WORK, "hello")],
        "the built program": [os.path.join(WORK, "hello")],
    }
    command(contenders["bendc build"])
    samples = {name: [] for name in contenders}
    for turn in range(3 * options.rounds + 1):
        for name, words in contenders.items():
            progress(f"round {turn}/{3 * options.rounds}: {name}")
            seconds, _, seen = timed(words)
            if name != "bendc build" and seen != "hello":
                stop(f"{name} printed {seen!r}")
            if turn > 0:
                samples[name].append(seconds)
    progress("")
    rows = {name: summary(values) for name, values in samples.items()}
    print("a hello program, wall time")
    for name, row in rows.items():
        print(f"{name:18}{row['median'] * 1e3:11.1f} ms{row['low'] * 1e3:11.1f} -{row['high'] * 1e3:7.1f}")
    phases = subprocess.run([BENDC, "run", "--time-phases", hello], capture_output=True, text=True, check=False)
    print(phases.stderr.rstrip())
    lines = [described(machine()), "", "| command | median ms | quartiles ms |", "|---|---|---|"]
    lines += [f"| {name} | {row['median'] * 1e3:.1f} | {row['low'] * 1e3:.1f}-{row['high'] * 1e3:.1f} |" for name, row in rows.items()]
    rewrite(os.path.join(ROOT, "docs", "performance.md"), "start", lines)
    save("start", {"machine": machine(), "rows": rows, "phases": phases.stderr.splitlines()})


ROWS = {"cpu": bench_cpu, "scan": bench_scan, "start": bench_start, "check": bench_check, "compile": bench_compile, "stdlib": bench_stdlib, "gpu": bench_gpu}


def percent(text):
    return float(text.rstrip("%")) / 100


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(ROWS) + " or all (the default); regress BASE; gpu FOLDER")
    parser.add_argument("--size", type=int, default=26, help="log2 of the scan's entries (26)")
    parser.add_argument("--rounds", type=int, default=7, help="measured rounds (7)")
    parser.add_argument("--only", help="regress: these rows only, as suite/bfs,phases")
    parser.add_argument("--counts", action="store_true", help="regress: by instructions alone, without times")
    parser.add_argument("--tolerance", type=percent, default=0.01, help="regress: changes below it are none (1%%)")
    options = parser.parse_args()
    first, rest = options.rows[:1], options.rows[1:]
    if first == ["regress"]:
        if len(rest) != 1:
            parser.error("regress takes one commit")
        options.base = rest[0]
        sys.exit(bench_regress(options))
    options.folder = None
    if first in (["report"], ["gpu"]) and len(rest) == 1 and rest[0] not in ROWS:
        options.folder = rest[0]
        bench_gpu(options)
        return
    for row in options.rows:
        if row not in ROWS and row != "all":
            parser.error(f"there is no row `{row}`; rows are {', '.join(ROWS)} and all")
    chosen = options.rows if options.rows and "all" not in options.rows else list(ROWS)
    for row in chosen:
        if row == "gpu" and row not in options.rows and not gpu_present():
            print("gpu: left out, there is no NVIDIA driver here")
            continue
        ROWS[row](options)


if __name__ == "__main__":
    main()
