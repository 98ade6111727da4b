"""The row `compile`: how long bendc takes, by phase.

suite      `bendc run` of each program of bench/suite at its small size: milliseconds until the program starts.
scaling    generated programs of growing size, each shape stressing one thing, built at -O1: milliseconds by phase, and how the time grows when
           the source doubles (1.0: linearly).
"""
import math
import os
import re
import statistics
import subprocess

from generated import TREE
from tools import BENDC, ROOT, WORK, described, machine, progress, rewrite, save, stop

SUITE = ("bfs", "gameoflife", "hashmap", "kmeans", "lexer", "mandelbrot", "merkle", "nbody", "queens", "raytrace", "tree-bitonic", "tree-matmul")
MAIN = """def main() -> IO(Unit):
  IO.print(U32.show({value}))
"""


def chain(calls):
    """Defs that add up all calls, a hundred at a time, so that no expression grows with the program; the name of the last."""
    defs, level = [], list(calls)
    number = 0
    while len(level) > 1:
        above = []
        for i in range(0, len(level), 100):
            name = f"total{number}"
            number += 1
            defs.append(f"def {name}() -> U32:\n  (" + " + ".join(level[i:i + 100]) + " : U32)\n")
            above.append(name + "()")
        level = above
    return "\n".join(defs), level[0]


def defs(n):
    """n copies of a data type, a function that rebuilds it, a fold with a fork and a list function."""
    part = TREE + """
def grow{i}(n: Nat, +x: U32, t: T{i}) -> T{i}:
  match n:
    case 0n:
      t
    case 1n+p:
      grow{i}(p, (x + 1 : U32), insert{i}(t, x))

def use{i}(+x: U32) -> U32:
  sum{i}(grow{i}(10n, x, Leaf{i}{{}}))
"""
    total, last = chain([f"use{i}({i})" for i in range(n)])
    return "\n".join(part.format(i=i) for i in range(n)) + "\n" + total + "\n" + MAIN.format(value=last)


def constructors(n):
    """One type of n constructors, a match with an arm for each, and a walk over all of them."""
    lines = ["type Shape is Data:"]
    lines += [f"  Shape{i}{{x: U32, y: U32}}" for i in range(n)]
    lines += ["", "def area(s: Shape) -> U32:", "  match s:"]
    for i in range(n):
        lines += [f"    case Shape{i}{{x, y}}:", f"      (x * {i} + y : U32)"]
    total, last = chain([f"area(Shape{i}{{{i}, 1}})" for i in range(n)])
    return "\n".join(lines) + "\n\n" + total + "\n" + MAIN.format(value=last)


def lets(n):
    """One body of n lets."""
    lines = ["def long(+x0: U32) -> U32:"]
    lines += [f"  +x{i + 1} = ((x{i} .^. {i}) * 2654435761 : U32)" for i in range(n)]
    lines += [f"  x{n}", "", ""]
    return "\n".join(lines) + MAIN.format(value="long(1)")


def instances(n):
    """A polymorphic function used at n types."""
    lines = []
    for i in range(n):
        lines += [f"type E{i} is Data:", f"  E{i}{{x: U32, y: F32, z: Nat}}", f"  Gap{i}{{}}", "",
                  f"def weigh{i}(e: E{i}) -> U32:", "  match e:", f"    case E{i}{{x, y, z}}:", "      x", f"    case Gap{i}{{}}:", f"      {i}", "",
                  f"def count{i}() -> U32:",
                  f"  (U32.from_nat(List.length(&2, E{i}, List.reverse(&2, E{i}, [E{i}{{1, 2.0, 3n}}, Gap{i}{{}}]))) + weigh{i}(Gap{i}{{}}) : U32)", ""]
    total, last = chain([f"count{i}()" for i in range(n)])
    return "\n".join(lines) + "\n" + total + "\n" + MAIN.format(value=last)


def literals(n):
    """A match on n numbers and a list of n elements."""
    lines = ["def name(n: U32) -> U32:", "  match n:"]
    for i in range(n):
        lines += [f"    case {i * 7}:", f"      {(i * 2654435761) % 4294967296}"]
    lines += ["    case _:", "      0", "", "def add(l: List<&2, U32>, acc: U32) -> U32:", "  match l:", "    case []:", "      acc", "    case h <> t:",
              "      add(t, (acc + name(h) : U32))", "", "def all() -> List<&2, U32>:", "  [" + ", ".join(str(i * 7) for i in range(n)) + "]", "", ""]
    return "\n".join(lines) + MAIN.format(value="add(all(), 0)")


SHAPES = {"defs": (defs, (50, 100, 200, 400)), "constructors": (constructors, (100, 200, 400, 800)), "lets": (lets, (500, 1000, 2000, 4000)),
          "instances": (instances, (25, 50, 100, 200)), "literals": (literals, (500, 1000, 2000, 4000))}
PHASES = ("load", "elaborate", "check", "lower", "passes", "emit", "optimize", "object", "total")


def generate(shape, size):
    """Writes a program; its path and lines."""
    folder = os.path.join(WORK, "compile")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{shape}-{size}.bend")
    text = "import Base\n\n" + SHAPES[shape][0](size)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path, text.count("\n")


def phases_of(words):
    """phase -> milliseconds, of one run of bendc with --time-phases."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=dict(os.environ, BEND_GPU="off"))
    if done.returncode != 0:
        stop(f"{' '.join(words)}: exit status {done.returncode}\n{done.stderr[-2000:]}")
    return {name: float(value) for name, value in re.findall(r"^ *([a-z_ ]+?) +([0-9.]+) ms$", done.stderr, re.M)}


def medians(words, rounds):
    runs = [phases_of(words) for _ in range(rounds)]
    return {phase: statistics.median(run.get(phase, 0.0) for run in runs) for phase in {name for run in runs for name in run}}


def growth(sizes, values):
    """The exponent of a power law between the two largest sizes; None where the time is too short to tell."""
    if values[-1] < 5 or values[-2] <= 0:
        return None
    return math.log(values[-1] / values[-2]) / math.log(sizes[-1] / sizes[-2])


def chart(shapes):
    """Milliseconds over lines, both logarithmic, a line a shape."""
    left, top, width, height = 60, 24, 460, 300
    points = [(row["lines"], row["phases"]["total"]) for rows in shapes.values() for row in rows]
    low_x, high_x = math.log10(min(x for x, _ in points)), math.log10(max(x for x, _ in points))
    low_y, high_y = math.floor(math.log10(min(y for _, y in points))), math.ceil(math.log10(max(y for _, y in points)))
    colours = ("#2a7", "#c83", "#36c", "#a3a", "#777")

    def place(x, y):
        return (left + width * (math.log10(x) - low_x) / (high_x - low_x), top + height * (high_y - math.log10(y)) / (high_y - low_y))

    out = [f'<text x="8" y="16" font-weight="bold">bendc build -O1: milliseconds over lines of source</text>']
    for decade in range(low_y, high_y + 1):
        _, y = place(10 ** low_x, 10 ** decade)
        out.append(f'<line x1="{left}" x2="{left + width}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ccc"/>')
        out.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{10 ** decade:g}</text>')
    for colour, (shape, rows) in zip(colours, shapes.items()):
        path = [place(row["lines"], row["phases"]["total"]) for row in rows]
        out.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in path)}"/>')
        out.append(f'<text x="{path[-1][0] + 6:.1f}" y="{path[-1][1] + 4:.1f}" fill="{colour}">{shape}</text>')
        for (x, _), row in zip(path, rows):
            out.append(f'<text x="{x:.1f}" y="{top + height + 16}" text-anchor="middle" font-size="9">{row["lines"]}</text>' if shape == "defs" else "")
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 100}" height="{top + height + 30}" font-family="sans-serif" font-size="12">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *(line for line in out if line), "</svg>", ""])


def bench_compile(options):
    rounds = min(options.rounds, 3)
    suite = {}
    for name in SUITE:
        progress(f"suite/{name}")
        found = medians([BENDC, "run", "--time-phases", os.path.join(ROOT, "bench", "suite", name + ".bend")], rounds)
        suite[name] = found
    shapes = {}
    for shape, (_, sizes) in SHAPES.items():
        shapes[shape] = []
        for size in sizes:
            progress(f"{shape} {size}")
            path, lines = generate(shape, size)
            found = medians([BENDC, "build", "-O1", "--time-phases", path, "-o", path + ".out"], rounds)
            shapes[shape].append({"size": size, "lines": lines, "phases": found})
    progress("")
    about = machine()
    lines = [described(about), "", "`bendc run` of the suite, milliseconds until the program starts:", "",
             "| program | load, elaborate, check | lower, passes | emit | optimize | object | total |", "|---|---|---|---|---|---|---|"]
    for name, found in suite.items():
        first, second = found["load"] + found["elaborate"] + found["check"], found["lower"] + found["passes"]
        lines.append(f"| {name} | {first:.0f} | {second:.0f} | {found['emit']:.0f} | {found['optimize']:.0f} | {found['object']:.0f} | **{found['total']:.0f}** |")
    lines += ["", "Generated programs, `bendc build -O1`, the largest of four sizes (each twice the last) in milliseconds, and the exponent of the growth between",
              "the two largest (1: linear; - where under 5 ms):", "", "| shape | lines | " + " | ".join(PHASES) + " |", "|---" * (len(PHASES) + 2) + "|"]
    for shape, rows in shapes.items():
        cells = []
        for phase in PHASES:
            values = [row["phases"].get(phase, 0.0) for row in rows]
            slope = growth([row["lines"] for row in rows], values)
            cells.append(f"{values[-1]:.0f}, " + ("-" if slope is None else f"{slope:.2f}"))
        lines.append(f"| {shape} | {rows[-1]['lines']} | " + " | ".join(cells) + " |")
    print("\n".join(lines))
    save("compile", {"machine": about, "suite": suite, "shapes": shapes})
    with open(os.path.join(ROOT, "docs", "performance-compile.svg"), "w", encoding="utf-8") as file:
        file.write(chart(shapes))
    rewrite(os.path.join(ROOT, "docs", "performance.md"), "compile", lines)
