"""The row `stdlib`: functions of Base against C that does the same (bench/stdlib/main.bend and twin.c): one thread, processor time, better of gcc and
clang, medians of runs in turn, the same checksum. C has Base's algorithm where one would write it so (lists, sort), else C's own way: byte strings,
printf, a crit-bit tree of byte keys, the mathematics library in double precision."""
import os

from cpu import build, geometric_mean, measure_row
from tools import ROOT, bars, described, machine, progress, rewrite, save

SIZES = {"sort": 300_000, "lists": 1_000_000, "array": 1_048_576, "text": 1_000_000, "join": 200_000, "map": 100_000, "math": 1_000_000}
WHAT = {
    "sort": "List.sort",
    "lists": "List.filter, reverse, append, take, drop, foldl",
    "array": "Array.set, map, to_list, List.map",
    "text": "U32.show, U32.read",
    "join": "U32.show, String.join, split, length",
    "map": "Map.set, get, size; keys by U32.show",
    "math": "F32.sin, cos, exp, log, pow, sqrt",
}


def bench_stdlib(options):
    built = build("stdlib", "main", os.path.join(ROOT, "bench", "stdlib", "twin.c"))
    rows = {name: measure_row(f"stdlib/{name}", built, [name, str(size)], min(options.rounds, 5)) for name, size in SIZES.items()}
    progress("")
    about = machine()
    lines = [described(about), "", "| row | functions | elements | bendc ns an element | C | compiler | ratio | peak MB, ratio |", "|---|---|---|---|---|---|---|---|"]
    for name, row in rows.items():
        own, c, size = row["contenders"]["bendc"], row["contenders"][row["c"]], SIZES[name]
        lines.append(f"| {name} | {WHAT[name]} | {size} | {own['median'] / size * 1e9:.1f} | {c['median'] / size * 1e9:.1f} | {row['c']} | **{row['ratio']:.2f}** "
                     f"| {own['peak_kb'] / 1024:.1f}, {row['memory_ratio']:.2f} |")
    lines.append(f"| geometric mean | | | | | | **{geometric_mean([row['ratio'] for row in rows.values()]):.2f}** | |")
    print("\n".join(lines))
    save("stdlib", {"machine": about, "rows": rows})
    with open(os.path.join(ROOT, "docs", "performance-stdlib.svg"), "w", encoding="utf-8") as file:
        file.write(bars({"functions of Base: processor time, bendc over C": {name: row["ratio"] for name, row in rows.items()}}, 1.1))
    rewrite(os.path.join(ROOT, "docs", "performance.md"), "stdlib", lines)
