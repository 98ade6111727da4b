"""The row `cpu`: one thread of bendc against C.

Each program of bench/suite and of bench/twins is built by `bendc build -O3` and its twin by gcc and clang -O3, all for the same processor
level and without contraction of float operations. Contenders take turns (bendc, gcc, clang, bendc, ..) after a warm-up round; a time is the
processor time (user and system) of the whole process, the figure its median over the rounds, "C" the better of the two compilers. The checksum of
every run is compared. Sizes are such that a run takes some tenths of a second.
"""
import math
import os
import shutil

import counts
import floors
from tools import CPU, ROOT, WORK, bars, build_bend, command, described, machine, measured, progress, rewrite, save, stop, summary

SUITE = {
    "bfs": ["15"],
    "gameoflife": ["14", "32"],
    "hashmap": ["9", "16384"],
    "kmeans": ["16"],
    "lexer": ["20"],
    "mandelbrot": ["14", "51"],
    "merkle": ["18", "1337"],
    "nbody": ["13", "300"],
    "queens": ["17", "16", "11730"],
    "raytrace": ["10", "1200"],
    "tree-bitonic": ["19"],
    "tree-matmul": ["7", "5", "32"],
}
TWINS = {
    "fib": ["40"],
    "fib-O2": ["40"],
    "tree": ["22"],
    "treesort": ["19"],
    "mandel": ["512", "512"],
    "life": ["1024", "64"],
    "nbody": ["8192", "2"],
    "matmul": ["1024"],
    "merkle": ["25"],
    "queens": ["14"],
    "bitonic": ["20"],
    "radix": ["23"],
    "scan": ["25"],
}
# -O3 unrolls the recursion of fib until equal calls meet in one body; at -O2 every call of the source is made, as in the twin.
VARIANTS = {"fib-O2": ("fib", "-O2")}
# Rows that stand in the tables but not in the geometric mean, and why.
UNCOUNTED = {"fib": "the unrolled levels share their equal calls, so the program makes far fewer calls than its source and the twin"}
C_FLAGS = ["-O3", "-march=" + CPU, "-ffp-contract=off", "-w"]


def source_and_level(name):
    return VARIANTS.get(name, (name, "-O3"))


def build(group, name, source):
    """contender -> executable of bench/GROUP/NAME.bend and its twin's source; bendc first."""
    program, level = source_and_level(name)
    folder = os.path.join(WORK, group)
    os.makedirs(folder, exist_ok=True)
    out = os.path.join(folder, name)
    built = {"bendc": build_bend(os.path.join(ROOT, "bench", group, program + ".bend"), os.path.join(group, name), level)}
    for cc in ("gcc", "clang"):
        if shutil.which(cc):
            command([cc, *C_FLAGS, "-DONCE", "-o", f"{out}.{cc}", source, "-lm"])
            built[cc] = f"{out}.{cc}"
    if len(built) == 1:
        stop("neither gcc nor clang is there")
    return built


def checksum(out):
    """The twins print `BENCH name size variant checksum seconds` with a hexadecimal checksum, all others the number alone."""
    words = out.split()
    return int(words[4], 16) if words and words[0] == "BENCH" else int(out)


def measure_row(name, programs, words, rounds):
    environment = dict(os.environ, BEND_THREADS="1", BEND_GPU="off")
    times = {contender: [] for contender in programs}
    memory = {contender: 0 for contender in programs}
    expected = None
    for turn in range(rounds + 1):  # the first round warms up
        for contender, program in programs.items():
            progress(f"{name} round {turn}/{rounds}: {contender}")
            seconds, peak, out = measured([program, *words], env=environment)
            seen = checksum(out)
            if expected is None:
                expected = seen
            if seen != expected:
                stop(f"{name}: the checksum of {contender} is {seen}, that of {next(iter(programs))} is {expected}")
            if turn > 0:
                times[contender].append(seconds)
            memory[contender] = max(memory[contender], peak)
    contenders = {contender: {**summary(times[contender]), "peak_kb": memory[contender]} for contender in programs}
    best = min((c for c in contenders if c != "bendc"), key=lambda c: contenders[c]["median"])
    return {
        "words": words,
        "checksum": expected,
        "contenders": contenders,
        "c": best,
        "ratio": contenders["bendc"]["median"] / contenders[best]["median"],
        "memory_ratio": memory["bendc"] / memory[best],
    }


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def mean_ratio(rows):
    return geometric_mean([row["ratio"] for name, row in rows.items() if name not in UNCOUNTED])


def table(rows):
    lines = ["| program | words | bendc ms | quartiles | C ms | compiler | ratio | peak MB, ratio |", "|---|---|---|---|---|---|---|---|"]
    for name, row in rows.items():
        own, c = row["contenders"]["bendc"], row["contenders"][row["c"]]
        lines.append(
            f"| {name} | {' '.join(row['words'])} | {own['median'] * 1e3:.0f} | {own['low'] * 1e3:.0f}-{own['high'] * 1e3:.0f} | {c['median'] * 1e3:.0f} "
            f"| {row['c']} | **{row['ratio']:.2f}** | {own['peak_kb'] / 1024:.1f}, {row['memory_ratio']:.2f} |"
        )
    lines.append(f"| geometric mean | | | | | | **{mean_ratio(rows):.2f}** | |")
    lines += [f"\n`{name}` is not in the mean: {why}." for name, why in UNCOUNTED.items() if name in rows]
    return lines


def publish(groups, limits):
    """Prints and writes the tables: the times, and the floors once they are known."""
    about = machine()
    lines = [described(about)]
    for group, rows in groups.items():
        lines += ["", f"### bench/{group}", "", *table(rows)]
    if limits:
        counted = ["", "### floors", "", f"Ceilings of this processor, one thread (bench/ceilings.c): {limits['instructions'] / 1e9:.1f} G independent instructions, "
                   f"{limits['read'] / 1e9:.1f} GB read, {limits['write'] / 1e9:.1f} GB written a second."]
        for group, rows in groups.items():
            counted += ["", *floors.table(rows, group)]
        print("\n".join(counted))
        lines += counted
    else:
        print("\n".join(lines))
    save("cpu", {"machine": about, "cpu": CPU, "ceilings": limits, "groups": groups})
    for folder, name in (("bench/results", "cpu.svg"), ("docs", "performance-cpu.svg")):
        with open(os.path.join(ROOT, folder, name), "w", encoding="utf-8") as file:
            file.write(bars({f"{group}: processor time, bendc over C": {name: row["ratio"] for name, row in rows.items()} for group, rows in groups.items()}, 1.1))
    rewrite(os.path.join(ROOT, "docs", "performance.md"), "cpu", lines)


def bench_cpu(options):
    groups, programs_of = {"suite": {}, "twins": {}}, {}
    sources = {"suite": lambda name: os.path.join("suite", "c", name + ".c"), "twins": lambda name: os.path.join("twins", name + ".c")}
    for group, programs in (("suite", SUITE), ("twins", TWINS)):
        built = {}
        for name in programs:
            progress(f"building {group}/{name}")
            built[name] = build(group, name, os.path.join(ROOT, "bench", sources[group](source_and_level(name)[0])))
        for name, words in programs.items():
            groups[group][name] = measure_row(f"{group}/{name}", built[name], words, min(options.rounds, 5))
            programs_of[group, name] = built[name]
    progress("")
    publish(groups, None)
    if counts.available():
        publish(groups, floors.add_floors(groups, programs_of))
        progress("")
