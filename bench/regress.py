"""scripts/bench regress BASE [--rounds N] [--only ROW,..] [--counts] [--tolerance PERCENT]: the rows of `cpu` and the compiler's phases, for the working
tree and for BASE. Exit status 1 when a row is worse, 0 when none is.

BASE is a commit, which is checked out and built under build/bench/base, or the folder of a checkout that has been built. Both compilers build the same sources, the working tree's; every checksum must be the same.

Programs. Time: processor time, runs in turn (new, base, new, base, ..); a row's figure is the median of the rounds' ratios new / base, its spread half
the distance between the quartiles of these ratios, at least half a percent. Count: instructions of one run under valgrind, new / base.
Phases and passes of the compiler: instructions inside each phase's function while a generated program of each shape of the row `compile` is compiled.

A program is worse when its time ratio lies above 1 by more than its spread and by more than the tolerance, or when its time does not tell (1 lies within
the spread, or the change is below the tolerance) and it takes more instructions than the tolerance allows. A phase is worse when it takes more instructions
than the tolerance allows and is not a trifle (a fiftieth of a percent of the process).
--counts leaves the times out: all is decided by instructions, which other work on the machine does not change.
"""
import os
import shutil
import statistics
import subprocess

import compiling
import counts
from cpu import SUITE, TWINS, checksum, source_and_level
from tools import BENDC, CPU, ROOT, WORK, command, described, machine, measured, progress, save, stop, summary

GROUPS = {"suite": SUITE, "twins": TWINS}
# Sizes of the programs that are compiled to count.
SHAPES = {"defs": 50, "constructors": 200, "lets": 500, "instances": 50, "literals": 500}
PHASES = ("load_program", "elaborate", "check_book", "lower", "run_passes")


def passes_of(tree):
    """The names of a tree's Flow passes, which are those of their functions."""
    with open(os.path.join(tree, "src", "codegen", "passes.cpp"), encoding="utf-8") as file:
        return [line.split('"')[1] for line in file if line.lstrip().startswith('{"')]


def base_compiler(commit):
    """Checks out and builds a commit, or takes a built checkout; its folder, compiler and name."""
    if os.path.isdir(commit):
        compiler = os.path.join(commit, "build", "release", "bendc")
        if not os.path.exists(compiler):
            stop(f"{commit} has no build/release/bendc")
        return commit, compiler, os.path.abspath(commit)
    found = subprocess.run(["git", "-C", ROOT, "rev-parse", "--verify", "--quiet", commit + "^{commit}"], capture_output=True, text=True, check=False).stdout.strip()
    if not found:
        stop(f"there is no commit `{commit}`")
    tree = os.path.join(WORK, "base")
    mark = os.path.join(tree, ".git")
    if not os.path.exists(mark):
        shutil.rmtree(tree, ignore_errors=True)
        command(["git", "clone", "--quiet", "--shared", "--no-checkout", ROOT, tree])
    command(["git", "-C", tree, "fetch", "--quiet", "origin", found])
    command(["git", "-C", tree, "checkout", "--quiet", "--force", "--detach", found])
    progress(f"building {found[:12]}")
    environment = dict(os.environ)
    if shutil.which("ccache"):  # most files are those of the working tree
        environment.update(CMAKE_C_COMPILER_LAUNCHER="ccache", CMAKE_CXX_COMPILER_LAUNCHER="ccache")
    command([os.path.join(tree, "scripts", "bendc"), "--version"], env=environment)
    return tree, os.path.join(tree, "build", "release", "bendc"), found


def build_programs(compiler, side, wanted):
    """(group, name) -> executable."""
    built = {}
    for group, name in wanted:
        out = os.path.join(WORK, "regress", side, f"{group}-{name}")
        os.makedirs(os.path.dirname(out), exist_ok=True)
        progress(f"{side}: building {group}/{name}")
        source, level = source_and_level(name)
        command([compiler, "build", os.path.join(ROOT, "bench", group, source + ".bend"), "-o", out, level, "--cpu", CPU])
        built[group, name] = out
    return built


def quartile_spread(ratios):
    found = summary(ratios)
    return max((found["high"] - found["low"]) / 2, 0.005)


def judge_program(row, tolerance):
    """worse, better or same, and what told."""
    time, count = row.get("time"), row.get("count")
    if time is not None and abs(time - 1) > max(row["spread"], tolerance):
        return ("worse" if time > 1 else "better"), "time"
    if count is not None and abs(count - 1) > tolerance:
        return ("worse" if count > 1 else "better"), "instructions"
    return "same", "-"


def compare_program(key, programs, options):
    group, name = key
    words = GROUPS[group][name]
    environment = dict(os.environ, BEND_THREADS="1", BEND_GPU="off")
    row, seen = {"words": words}, {}
    if not options.counts:
        ratios = []
        for turn in range(options.rounds + 1):  # the first round warms up
            seconds = {}
            for side, built in programs.items():
                progress(f"{group}/{name} round {turn}/{options.rounds}: {side}")
                seconds[side], _, out = measured([built[key], *words], env=environment)
                seen[side] = checksum(out)
            if turn > 0:
                ratios.append(seconds["new"] / seconds["base"])
        row.update(time=statistics.median(ratios), spread=quartile_spread(ratios))
    if counts.available():
        numbers = {}
        for side, built in programs.items():
            progress(f"{group}/{name} counting: {side}")
            numbers[side], out = counts.of_program([built[key], *words])
            seen[side] = checksum(out)
        row.update(count=numbers["new"] / numbers["base"], instructions=numbers)
    if len(set(seen.values())) > 1:
        stop(f"{group}/{name}: the checksum is {seen['new']}, that of the base {seen['base']}")
    row["verdict"], row["by"] = judge_program(row, options.tolerance)
    return row


def compare_phases(compilers, trees, options):
    """name -> row, for the compiler's phases and passes."""
    common = [name for name in passes_of(trees["new"]) if name in passes_of(trees["base"])]
    names = {"bendc::" + name: name for name in (*PHASES, *common)}
    rows = {}
    for shape, size in SHAPES.items():
        path, _ = compiling.generate(shape, size)
        found = {}
        for side, compiler in compilers.items():
            progress(f"{shape}: counting the compiler, {side}")
            found[side] = counts.of_functions([compiler, "build", "--stop-after=" + passes_of(trees[side])[-1], path, "-o", path + ".out"], names)
        for full, name in names.items():
            new, base = found["new"].get(full), found["base"].get(full)
            if not new or not base:
                continue
            ratio = new / base
            worse = ratio > 1 + options.tolerance and new - base > found["base"]["total"] / 5000
            better = ratio < 1 - options.tolerance
            rows[f"{name} ({shape})"] = {"count": ratio, "instructions": {"new": new, "base": base}, "by": "instructions" if worse or better else "-",
                                         "verdict": "worse" if worse else "better" if better else "same"}
    return rows


def table(rows):
    lines = [f"{'row':36}{'time':>8}{'spread':>8}{'instructions':>14}  verdict"]
    for name, row in rows.items():
        time = f"{row['time']:8.3f}{row['spread']:8.3f}" if "time" in row else f"{'-':>8}{'-':>8}"
        count = f"{row['count']:14.4f}" if "count" in row else f"{'-':>14}"
        lines.append(f"{name:36}{time}{count}  {row['verdict']}" + (f" by {row['by']}" if row["by"] != "-" else ""))
    return lines


def bench_regress(options):
    wanted = [(group, name) for group, programs in GROUPS.items() for name in programs]
    with_phases = counts.available()
    if options.only:
        chosen = options.only.split(",")
        known = {f"{group}/{name}" for group, name in wanted} | {"phases"}
        for name in chosen:
            if name not in known:
                stop(f"there is no row `{name}`; rows are {', '.join(sorted(known))}")
        wanted = [key for key in wanted if "/".join(key) in chosen]
        with_phases = with_phases and "phases" in chosen
    if options.counts and not counts.available():
        stop("--counts needs valgrind")
    tree, base, commit = base_compiler(options.base)
    compilers, trees = {"new": BENDC, "base": base}, {"new": ROOT, "base": tree}
    programs = {side: build_programs(compiler, side, wanted) for side, compiler in compilers.items()}
    rows = {f"{group}/{name}": compare_program((group, name), programs, options) for group, name in wanted}
    if with_phases:
        rows.update(compare_phases(compilers, trees, options))
    progress("")
    about = machine()
    worse = [name for name, row in rows.items() if row["verdict"] == "worse"]
    print(described(about))
    print(f"base {commit if os.path.isdir(commit) else commit[:12]}; ratios new / base; tolerance {options.tolerance:.1%}" + ("" if counts.available() else "; no valgrind, so no instruction counts"))
    print("\n".join(table(rows)))
    save("regress", {"machine": about, "base": commit, "tolerance": options.tolerance, "rows": rows})
    if worse:
        print(f"worse: {', '.join(worse)}")
        return 1
    print("no row is worse")
    return 0
