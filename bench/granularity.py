"""`scripts/bench granularity FOLDER`: what run-granularity.sh of a GPU pack left (granularity.tsv, granularity-checks.txt, doctor.txt) as the table
`granularity` of docs/performance.md, its picture and bench/results/granularity.json. A result that differs from the CPU's stops it."""
import collections
import math
import os
import statistics
import sys

from tools import ROOT, rewrite, save, stop

WAYS = ["thread", "warp", "block", "host", "flat", "auto"]
# A program with fewer grids at `thread` reaches only large perfect trees, each of which is one grid whoever launches it: nothing is to be aggregated.
FORKS = 1000
COLOURS = {"thread": "#999999", "warp": "#e8a33d", "block": "#d9603b", "host": "#4a7fc1", "flat": "#4caf6a", "auto": "#7a4fa3", "KLAP": "#222222"}
# KLAP (MICRO 2016), geometric means over its programs: times plain dynamic parallelism.
KLAP = {"warp": 3.98, "block": 4.94, "host": 6.58}


def read(folder, name):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        stop(f"{folder} has no {name}: it is no folder of results of run-granularity.sh")
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read().splitlines()


def bar_chart(rows, means):
    """Speed relative to `thread`, logarithmic, one group of bars a program; KLAP's published means last."""
    left, width, bar, gap = 130, 620, 9, 12
    most = max(10, max(v for row in list(rows.values()) + [means] for v in row.values()))
    least = min(1, min(v for row in list(rows.values()) + [means] for v in row.values()))
    low, high = math.floor(math.log10(least)), math.ceil(math.log10(most))
    x = lambda v: left + width * (math.log10(v) - low) / (high - low)
    groups = list(rows.items()) + [("geometric mean", means), ("KLAP, published", KLAP)]
    out, y = [], 30
    for name, row in groups:
        ways = [way for way in WAYS[1:] if way in row]
        out.append(f'<text x="{left - 8}" y="{y + len(ways) * bar / 2 + 4}" text-anchor="end">{name}</text>')
        for way in ways:
            start, end = sorted((x(1), x(row[way])))
            out.append(f'<rect x="{start:.1f}" y="{y}" width="{max(end - start, 0.5):.1f}" height="{bar - 1}" fill="{COLOURS[way]}"><title>{name} {way}: {row[way]:.2f}</title></rect>')
            y += bar
        y += gap
    marks = [f'<line x1="{x(10 ** e):.1f}" y1="24" x2="{x(10 ** e):.1f}" y2="{y}" stroke="#ccc"/><text x="{x(10 ** e):.1f}" y="18" text-anchor="middle">{10 ** e:g}</text>'
             for e in range(low, high + 1)]
    legend = "".join(f'<rect x="{left + i * 90}" y="{y + 4}" width="10" height="10" fill="{COLOURS[way]}"/><text x="{left + i * 90 + 14}" y="{y + 13}">{way}</text>' for i, way in enumerate(WAYS[1:]))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 40}" height="{y + 26}" font-family="sans-serif" font-size="12">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *marks, *out, legend, "</svg>", ""])


def main(folder):
    doctor = read(folder, "doctor.txt")
    checks = read(folder, "granularity-checks.txt")
    lines = read(folder, "granularity.tsv")
    head = lines[0].split("\t")
    runs = collections.OrderedDict()
    failed = []
    for line in lines[1:]:
        run = dict(zip(head, line.split("\t")))
        if run["result"].startswith("status "):
            failed.append(f"{run['program']} {run['way']}: {run['result']}")
            continue
        if run["result"] != run["cpu_result"]:
            stop(f"{run['program']} ({run['way']}): the device's result is {run['result']}, the CPU's {run['cpu_result']}")
        runs.setdefault((run["program"], run["words"]), {}).setdefault(run["way"], []).append(run)
    table, rows, ratios, forking = [], {}, collections.defaultdict(list), collections.defaultdict(list)
    picture = {}
    for (name, words), ways in runs.items():
        times = {way: statistics.median(float(r["device_us"]) for r in samples) / 1000 for way, samples in ways.items()}
        grids = {way: int(samples[0]["grids"] or 0) for way, samples in ways.items()}
        base = times.get("thread")
        cells = []
        for way in WAYS:
            if way not in times:
                cells.append("-")
                continue
            cells.append(f"{times[way]:.3g}" + (f" (**{base / times[way]:.3g}**)" if base and way != "thread" else ""))
            if base and way != "thread":
                ratios[way].append(base / times[way])
                if grids["thread"] >= FORKS:
                    forking[way].append(base / times[way])
                picture.setdefault(name.removeprefix("nested."), {})[way] = base / times[way]
        # Copies are the same at every way, and scatter by more than the ways differ: where kernels were timed alone, they tell which is best.
        compared = times
        if all(r.get("kernels_us") for samples in ways.values() for r in samples):
            compared = {way: statistics.median(float(r["kernels_us"]) for r in samples) for way, samples in ways.items()}
        best = min(t for way, t in compared.items() if way != "auto")
        over = f"{compared['auto'] / best:.2f}" + (" k" if compared is not times else "") if "auto" in compared else "-"
        table.append(f"| {name} | {words} | " + " | ".join(cells) + f" | {over} | " + " / ".join(str(grids.get(way, "-")) for way in WAYS[:3]) + " |")
        rows[name] = {"words": words, "ms": times, "grids": grids}
    means = {way: math.exp(statistics.mean(map(math.log, values))) for way, values in ratios.items()}
    forking = {way: math.exp(statistics.mean(map(math.log, values))) for way, values in forking.items()}
    about = "; ".join(line.strip() for line in (doctor[0], doctor[2], doctor[3]) if line.strip())
    passed = next((line for line in reversed(checks) if line.startswith("granularity:")), "granularity: none")
    save("granularity", {"machine": about, "checks": passed, "rows": rows, "means": means, "means_of_forking": forking, "failed": failed})
    svg = bar_chart(picture, means)
    with open(os.path.join(ROOT, "docs", "performance-granularity.svg"), "w", encoding="utf-8") as file:
        file.write(svg)
    text = [about + ". " + passed.capitalize() + ".", "",
            "| program | words | " + " | ".join(f"{way} ms" for way in WAYS) + " | auto / best | grids: thread / warp / block |", "|" + "---|" * (len(WAYS) + 4), *table,
            "| geometric mean, times `thread` | | 1 | " + " | ".join(f"**{means[way]:.3g}**" if way in means else "-" for way in WAYS[1:]) + " | | |",
            f"| the same, programs with {FORKS} grids and more at `thread` | | 1 | " + " | ".join(f"**{forking[way]:.3g}**" if way in forking else "-" for way in WAYS[1:]) + " | | |",
            "| KLAP, published | | 1 | 3.98 | 4.94 | 6.58 | - | - | | |", "", *[f"Did not end: {line}" for line in failed]]
    rewrite(os.path.join(ROOT, "docs", "performance.md"), "granularity", text)
    print("\n".join(text))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: scripts/bench granularity FOLDER    (results of run-granularity.sh in a pack made by scripts/gpu-pack)")
    main(sys.argv[1])
