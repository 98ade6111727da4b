#!/usr/bin/env python3
"""Measures forks: python3 bench/threads.py [--threads N] [--rounds N] [--programs DIR] [--only ROW,ROW] [--output FILE]

a  fib, a fork in every call: nanoseconds a call at one thread beside the same def without forks, and with 2 to N threads
b  the suite of bench/suite at N threads
c  skew: one amount of work divided evenly, 90 to 10, as a spine of 99 to 1, and into leaves whose costs differ 1000 to 1
d  a fork tree of 8 leaves of 4 microseconds entered 20,000 times from sequential code
e  fork-free programs at 1 and at 64 threads: instructions (valgrind) and wall time

Rows b and c compare rates: N copies of the program with one thread each run together and take C seconds; one with N threads takes T. The
efficiency is C / (N T): what the threads reach of what N independent copies reach on the same cores, with the same memory. Runs alternate
(copies, threads, copies, threads, ..); medians. Row a has the contenders of fork libraries that this machine has a compiler and headers for.
--programs DIR: executables are there (or are put there by --build); needed where bendc does not run.
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
SUITE = {
    "bfs": ["17"], "gameoflife": ["15", "64"], "hashmap": ["11", "16384"], "kmeans": ["17"], "lexer": ["22"], "mandelbrot": ["16", "51"],
    "merkle": ["20", "1337"], "nbody": ["15", "300"], "queens": ["17", "16", "11730"], "raytrace": ["11", "2400"], "tree-bitonic": ["21"],
    "tree-matmul": ["6", "10", "768"],
}
SHAPES = ("balanced", "tenth", "hundredth", "costs")
OWN = ("fib", "fib_plain", "skew", "regions")
CONTENDERS = {"plain": [], "openmp": ["-DOPENMP", "-fopenmp"], "tbb": ["-DTBB", "-ltbb"]}
FIB_CALLS = {n: 2 * f - 1 for n, f in ((30, 1346269), (34, 9227465), (38, 63245986), (40, 165580141), (42, 433494437))}


def environment(threads):
    return dict(os.environ, BEND_THREADS=str(threads), BEND_GPU="off")


def run(words, threads, copies=1):
    """Wall seconds until all copies have ended, and their one output."""
    start = time.perf_counter()
    children = [subprocess.Popen(words, env=environment(threads), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) for _ in range(copies)]
    outputs = {child.communicate(timeout=60)[0] for child in children}
    wall = time.perf_counter() - start
    if any(child.returncode for child in children) or len(outputs) != 1:
        sys.exit(f"threads: {' '.join(words)}: failed, or copies differ")
    return wall, outputs.pop().decode().strip()


def alternate(rounds, contenders):
    """name -> (words, threads, copies); name -> median seconds. One checksum a words."""
    walls = {name: [] for name in contenders}
    seen = {}
    for turn in range(rounds + 1 if rounds > 1 else 1):  # the first of several warms up
        for name, (words, threads, copies) in contenders.items():
            wall, out = run(words, threads, copies)
            if seen.setdefault(tuple(words), out) != out:
                sys.exit(f"threads: {name}: printed {out}, before {seen[tuple(words)]}")
            if turn > 0 or rounds == 1:
                walls[name].append(wall)
    return {name: (statistics.median(values), min(values), max(values)) for name, values in walls.items()}


def counts(threads):
    out, n = [], 2
    while n < threads:
        out.append(n)
        n *= 2
    return out + [threads] if threads > 1 else []


class Bench:
    def __init__(self, options):
        self.options = options
        self.folder = options.programs
        self.result = {}

    def program(self, name):
        return os.path.join(self.folder, name)

    def row_a(self):
        n = self.options.fib
        calls = FIB_CALLS[n]
        fib, plain = [self.program("fib"), str(n)], [self.program("fib_plain"), str(n)]
        contenders = {"plain, 1 thread": (plain, 1, 1), "forks, 1 thread": (fib, 1, 1)}
        for t in counts(self.options.threads):
            contenders[f"copies, {t}"] = (fib, 1, t)
            contenders[f"forks, {t} threads"] = (fib, t, 1)
        medians = alternate(self.options.rounds, contenders)
        base = medians["plain, 1 thread"][0]
        print(f"(a) naive fib({n}), a fork in every call; ns a call = time / {calls} calls")
        rows = {}
        for name, (median, low, high) in medians.items():
            rows[name] = {"seconds": median, "low": low, "high": high, "ns": median * 1e9 / calls}
            note = ""
            if name.endswith(" threads"):
                t = int(name.split()[1])
                rows[name]["efficiency"] = medians[f"copies, {t}"][0] / (t * median)
                note = f"  {base / median:6.2f} times the plain def; efficiency {rows[name]['efficiency']:.3f}"
            print(f"    {name:18}{median:9.4f} s {median * 1e9 / calls:8.3f} ns a call{note}")
        self.result["a"] = rows
        for name in CONTENDERS:
            program = self.program("contender_" + name)
            if not os.path.exists(program):
                continue
            small = 34 if name == "plain" else 30   # the libraries take up to 500 ns a call
            row = {}
            for t in sorted({1, 2, self.options.threads}):
                median = alternate(3, {name: ([program, str(small), str(t)], t, 1)})[name][0]
                row[t] = median * 1e9 / FIB_CALLS[small]
            print(f"    {'C++ ' + name:18}{'':13}{row[1]:8.2f} ns a call" + "".join(f", {t} threads {ns:8.2f} ({row[1] / ns:.2f} times one)" for t, ns in row.items() if t > 1))
            rows["C++ " + name] = {f"ns {t} threads": ns for t, ns in row.items()}

    def efficiencies(self, key, title, programs):
        t = self.options.threads
        print(title)
        rows = {}
        for name, words in programs.items():
            contenders = {"one": (words, 1, 1), "copies": (words, 1, t), "threads": (words, t, 1)}
            medians = alternate(self.options.rounds, contenders)
            one, copies, threads = (medians[c][0] for c in ("one", "copies", "threads"))
            rows[name] = {"one": one, "copies": copies, "threads": threads, "speedup": one / threads, "efficiency": copies / (t * threads)}
            print(
                f"    {name:14} one thread {one:8.3f} s   {t} copies {copies:8.3f} s   {t} threads {threads:8.3f} s"
                f"   speedup {one / threads:6.2f}   efficiency {rows[name]['efficiency']:.3f}"
            )
        self.result[key] = rows

    def row_b(self):
        programs = {name: [self.program(name), *words] for name, words in SUITE.items() if name in self.options.suite.split(",")}
        self.efficiencies("b", f"(b) suite, {self.options.threads} threads", programs)

    def row_c(self):
        programs = {shape: [self.program("skew"), shape, str(self.options.work)] for shape in SHAPES}
        self.efficiencies("c", f"(c) {self.options.work} steps of 1.6 ns divided in four ways, {self.options.threads} threads", programs)
        balanced = self.result["c"]["balanced"]["threads"]
        for shape in SHAPES[1:]:
            share = balanced / self.result["c"][shape]["threads"]
            self.result["c"][shape]["of_balanced"] = share
            print(f"    {shape:14} {share:.3f} of the balanced rate")

    def row_d(self):
        words = [self.program("regions"), "20000"]
        contenders = {"1 thread": (words, 1, 1), "2 threads": (words, 2, 1)}
        contenders.update({f"{t} threads": (words, t, 1) for t in counts(self.options.threads)})
        medians = alternate(self.options.rounds, contenders)
        print("(d) 20,000 entries of a fork tree of 8 leaves of 4 us")
        for name, (median, _, _) in medians.items():
            print(f"    {name:14}{median:9.4f} s{median / 20000 * 1e6:9.2f} us an entry   {medians['1 thread'][0] / median:6.2f} times one thread")
        self.result["d"] = {name: median for name, (median, _, _) in medians.items()}

    def row_e(self):
        print("(e) fork-free programs, 1 and 64 threads")
        rows = {}
        for name, words in (("fib_plain", [str(min(self.options.fib, 34))]), ("e_lists", []), ("e_map", []), ("e_tail", [])):
            words = [self.program(name), *words]
            row = {}
            if shutil.which("valgrind"):
                count = {threads: instructions(words, threads) for threads in (1, 64)}
                row = {"instructions 1": count[1], "instructions 64": count[64], "instructions": count[64] / count[1] - 1}
            medians = alternate(2 * self.options.rounds, {"1": (words, 1, 1), "64": (words, 64, 1)})
            row.update({threads: dict(zip(("median", "low", "high"), values)) for threads, values in medians.items()})
            rows[name] = row
            more = f"  instructions {count[1]:12,} {count[64]:12,}  {100 * row['instructions']:+.3f} %" if "instructions" in row else "  (no valgrind)"
            walls = "".join(f"  {t} threads {median:.4f} s ({low:.4f} - {high:.4f})" for t, (median, low, high) in medians.items())
            print(f"    {name:10}{more}{walls}")
        self.result["e"] = rows


def instructions(words, threads):
    """Instructions of a whole process, by valgrind."""
    words = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", *words]
    done = subprocess.run(words, env=environment(threads), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    return int(re.search(r"I\s+refs:\s+([\d,]+)", done.stderr).group(1).replace(",", ""))


def build(folder):
    os.makedirs(folder, exist_ok=True)
    bendc = os.environ.get("BENDC", os.path.join(ROOT, "build", "release", "bendc"))
    sources = {name: os.path.join(ROOT, "bench", "threads", name + ".bend") for name in OWN}
    sources.update({name: os.path.join(ROOT, "bench", "suite", name + ".bend") for name in SUITE})
    cases = os.path.join(ROOT, "tests", "cases", "run")
    sources.update({"e_lists": os.path.join(cases, "list_kit.bend"), "e_map": os.path.join(cases, "map_words.bend"), "e_tail": os.path.join(cases, "tail_loop_ten_million.bend")})
    for name, source in sources.items():
        # Unrolled, naive fib computes equal calls once; without, it makes the calls that row a counts.
        level = "-O2" if name.startswith("fib") else "-O3"
        subprocess.run([bendc, "build", level, "--cpu", "x86-64-v3", source, "-o", os.path.join(folder, name)], check=True, stdout=subprocess.DEVNULL)
    for name, flags in CONTENDERS.items():
        words = ["g++", "-O3", "-o", os.path.join(folder, "contender_" + name), os.path.join(ROOT, "bench", "threads", "contenders.cpp"), *flags]
        # Debian has oneTBB as a shared library only; beside the program it is found on another machine too.
        kinds = (["-static"], ["-static-libgcc", "-static-libstdc++", "-Wl,-rpath,$ORIGIN"])
        if not any(subprocess.run(words + kind, stderr=subprocess.DEVNULL, check=False).returncode == 0 for kind in kinds):
            print(f"    (no {name})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--fib", type=int, choices=FIB_CALLS, default=38)
    parser.add_argument("--work", type=int, default=1_000_000_000)
    parser.add_argument("--programs", default=os.path.join(ROOT, "build", "bench", "threads"))
    parser.add_argument("--no-build", action="store_true", help="the programs are built")
    parser.add_argument("--suite", default=",".join(SUITE), help="the programs of row b")
    parser.add_argument("--only", default="a,b,c,d,e")
    parser.add_argument("--output", default=os.path.join(ROOT, "bench", "results", "threads.json"))
    options = parser.parse_args()
    if not options.no_build:
        build(options.programs)
    bench = Bench(options)
    for row in options.only.split(","):
        getattr(bench, "row_" + row)()
        sys.stdout.flush()
    with open(options.output, "w", encoding="utf-8") as file:
        json.dump({"threads": options.threads, "rounds": options.rounds, "rows": bench.result}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
