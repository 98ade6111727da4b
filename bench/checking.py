"""The row `check` of scripts/bench: lines a second that `bendc check` takes on one thread, on a generated program."""
import os
import resource

from generated import TREE
from tools import BENDC, WORK, command, machine, progress, save, summary

LINES = 200_000
# Data types, recursive functions with a fork, and proofs by induction and by computation, in turn; {i} numbers the copy, {{ }} are braces.
PART = TREE + """
def add{i}(n: Nat, m: Nat) -> Nat:
  match n:
    case 0n:
      m
    case 1n+p:
      1n+add{i}(p, m)

def zero{i}(n: Nat) -> {{n == add{i}(n, 0n) : Nat}}:
  match n:
    case 0n:
      {{==}}
    case 1n+p:
      %zero{i}(p) : {{1n+p == 1n+_ : Nat}}
      {{==}}

def same{i}() -> {{add{i}({k}n, 7n) == {k7}n : Nat}}:
  {{==}}

"""


def program():
    lines, i = ["import Base", ""], 0
    while len(lines) < LINES:
        lines += PART.format(i=i, k=i % 50, k7=i % 50 + 7).splitlines()
        i += 1
    return lines


def bench_check(options):
    os.makedirs(WORK, exist_ok=True)
    path = os.path.join(WORK, "check.bend")
    lines = program()
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    samples = []
    for turn in range(options.rounds + 1):  # the first round warms up
        progress(f"round {turn}/{options.rounds}")
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        command([BENDC, "check", path])
        if turn > 0:
            samples.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
    progress("")
    row = summary(samples)
    speed = len(lines) / row["median"]
    print(f"bendc check, {len(lines)} lines: {row['median']:.3f} s user time ({row['low']:.3f}-{row['high']:.3f}), {speed:,.0f} lines a second")
    save("check", {"machine": machine(), "lines": len(lines), "rows": {"user time": row}, "lines_per_second": speed})
