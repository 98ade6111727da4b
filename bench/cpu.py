"""The row `cpu`: one thread of bendc against C.

Each program of bench/suite and of bench/twins is built by `bendc build -O3` and its twin by gcc and clang -O3, all for the same processor
level and without contraction of float operations. Contenders take turns (bendc, gcc, clang, bendc, ..) after a warm-up round; a time is the
processor time (user and system) of the whole process, the figure its median over the rounds, "C" the better of the two compilers. The checksum of
every run is compared. Sizes are such that a run takes some tenths of a second.
"""
import math
import os
import shutil

from tools import CPU, ROOT, WORK, build_bend, command, machine, measured, progress, save, stop, summary

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
# Rows that stand in the tables but not in the geometric mean, and why.
UNCOUNTED = {"fib": "the unrolled levels share their equal calls, so the program makes far fewer calls than its source and the twin"}
C_FLAGS = ["-O3", "-march=" + CPU, "-ffp-contract=off", "-w"]


def build(group, name, source):
    """contender -> executable; bendc first."""
    folder = os.path.join(WORK, group)
    os.makedirs(folder, exist_ok=True)
    out = os.path.join(folder, name)
    built = {"bendc": build_bend(os.path.join(ROOT, "bench", group, name + ".bend"), os.path.join(group, name))}
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


def chart(groups):
    """Bars of the ratios on a logarithmic scale around 1, as SVG."""
    left, width, step = 130, 520, 18
    span = 4.0  # from 1/4 to 4

    def place(ratio):
        return left + width * (math.log(min(max(ratio, 1 / span), span)) / math.log(span) + 1) / 2

    out, y = [], 24
    for group, rows in groups.items():
        out.append(f'<text x="8" y="{y}" font-weight="bold">{group}: processor time, bendc over C</text>')
        y += 8
        top = y
        for name, row in rows.items():
            y += step
            a, b = sorted((place(1), place(row["ratio"])))
            fill = "#2a7" if row["ratio"] <= 1.1 else "#c83"
            out.append(f'<text x="{left - 8}" y="{y}" text-anchor="end">{name}</text>')
            out.append(f'<rect x="{a:.1f}" y="{y - 11}" width="{max(b - a, 1):.1f}" height="13" fill="{fill}"/>')
            out.append(f'<text x="{left + width + 8}" y="{y}">{row["ratio"]:.2f}</text>')
        for mark in (0.25, 0.5, 1, 2, 4):
            out.append(f'<line x1="{place(mark):.1f}" x2="{place(mark):.1f}" y1="{top + 4}" y2="{y + 6}" stroke="#999" stroke-dasharray="{0 if mark == 1 else 2}"/>')
            out.append(f'<text x="{place(mark):.1f}" y="{y + 18}" text-anchor="middle">{mark:g}</text>')
        y += 50
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 60}" height="{y - 20}" font-family="sans-serif" font-size="12">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *out, "</svg>", ""])


def rewrite(path, mark, lines):
    """Puts lines between the marks `<!-- MARK -->` and `<!-- end of MARK -->` of a file."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    begin, end = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->\n"
    if begin not in text or end not in text:
        stop(f"{os.path.relpath(path)} lacks the marks of `{mark}`")
    head, tail = text.split(begin)[0], text.split(end)[1]
    with open(path, "w", encoding="utf-8") as file:
        file.write(head + begin + "\n".join(lines) + "\n" + end + tail)


def bench_cpu(options):
    groups = {"suite": {}, "twins": {}}
    sources = {"suite": lambda name: os.path.join("suite", "c", name + ".c"), "twins": lambda name: os.path.join("twins", name + ".c")}
    for group, programs in (("suite", SUITE), ("twins", TWINS)):
        built = {}
        for name in programs:
            progress(f"building {group}/{name}")
            built[name] = build(group, name, os.path.join(ROOT, "bench", sources[group](name)))
        for name, words in programs.items():
            groups[group][name] = measure_row(f"{group}/{name}", built[name], words, min(options.rounds, 5))
    progress("")
    about = machine()
    lines = [f"{about['processor']}, {about['threads']} threads, shared; {about['date']}; {about['gcc']}; {about['clang']}; commit {about['commit']}; {CPU}."]
    for group, rows in groups.items():
        lines += ["", f"### bench/{group}", "", *table(rows)]
    print("\n".join(lines))
    save("cpu", {"machine": about, "cpu": CPU, "groups": groups})
    for folder, name in (("bench/results", "cpu.svg"), ("docs", "performance-cpu.svg")):
        with open(os.path.join(ROOT, folder, name), "w", encoding="utf-8") as file:
            file.write(chart(groups))
    rewrite(os.path.join(ROOT, "docs", "performance.md"), "cpu", lines)
