"""Floors of the row `cpu`: what a program takes at least on this processor, and how far bendc's is from it.

operations  the fewer instructions of the two contenders, counted by valgrind, at the rate of independent adds
bytes       everything the thriftier contender holds, written once and read once, at the rates of writing and reading in order
The floor is the larger one; the gap is bendc's time over it. Instructions that depend on each other, mispredicted jumps and cache misses are not in
the floor, so no gap is 1; REASONS says what stands between bendc and C where the ratio of times is above 1.1."""
import concurrent.futures
import os

import counts
from tools import CPU, ROOT, WORK, command, progress

EMPTY_KB = 1400  # peak of a process that does nothing
REASONS = {
    "suite/hashmap": "each lookup counts its chain up and down; a fresh table of counted chains is filled and walked once more",
    "suite/kmeans": "24 sums in registers: the vectoriser interleaves four times and spills, C keeps three arrays",
    "suite/bfs": "three fresh arrays a maze are filled (C: none), and masked indices",
    "suite/queens": "a fuel and a free-column test for every candidate, which C does not make",
    "suite/tree-matmul": "counts: each factor is used twice, so every opening tests the count",
    "suite/lexer": "as many instructions as gcc's within an eighth",
    "suite/tree-bitonic": "nodes are opened and built again in place",
    "twins/mandel": "the vectoriser pairs x and y: shuffles lie on the chain of dependent operations",
    "twins/bitonic": "C's loop runs over two pointers and is vectorised, ours over masked indices",
    "twins/queens": "a fuel test and a second recursion for every candidate; C loops over them",
    "twins/scan": "Array.new fills 128 MB that C leaves to its first loop; system time for clearing huge pages swings from 10 to 170 ms under load",
    "twins/fib-O2": "gcc returns from n < 2, most calls, before it saves a register; ours saves three first: 11.5 instructions a call against 8.1",
    "twins/treesort": "nodes are opened and built again in place",
}


def ceilings():
    out = os.path.join(WORK, "ceilings")
    command(["gcc", "-O3", "-march=" + CPU, "-o", out, os.path.join(ROOT, "bench", "ceilings.c")])
    adds, read, write = map(float, command([out]).split())
    return {"instructions": adds, "read": read, "write": write}


def count_rows(groups, programs):
    """(group, name) -> contender -> instructions of bendc and of the better C, two programs at a time."""
    wanted = [(group, name, contender) for group, rows in groups.items() for name, row in rows.items() for contender in ("bendc", row["c"])]

    def one(key):
        group, name, contender = key
        progress(f"{group}/{name} counting: {contender}")
        return counts.of_program([programs[group, name][contender], *groups[group][name]["words"]])[0]

    found = {}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for (group, name, contender), number in zip(wanted, pool.map(one, wanted)):
            found.setdefault((group, name), {})[contender] = number
    return found


def add_floors(groups, programs):
    """Puts `instructions` and `floor` into the rows; the ceilings."""
    limits = ceilings()
    for (group, name), numbers in count_rows(groups, programs).items():
        row = groups[group][name]
        held = min(row["contenders"][c]["peak_kb"] for c in ("bendc", row["c"])) - EMPTY_KB
        operations = min(numbers.values()) / limits["instructions"]
        moved = max(held, 0) * 1024 * (1 / limits["read"] + 1 / limits["write"])
        row["instructions"] = numbers
        row["floor"] = {"operations": operations, "bytes": moved, "gap": row["contenders"]["bendc"]["median"] / max(operations, moved)}
    return limits


def table(rows, group):
    lines = ["| program | bendc M instructions | C | ratio | floor ms: operations | bytes | bendc ms | gap | above C because |", "|---|---|---|---|---|---|---|---|---|"]
    for name, row in rows.items():
        own, c, floor = row["instructions"]["bendc"], row["instructions"][row["c"]], row["floor"]
        reason = REASONS.get(f"{group}/{name}", "") if row["ratio"] > 1.1 else ""
        lines.append(f"| {name} | {own / 1e6:.0f} | {c / 1e6:.0f} | {own / c:.2f} | {floor['operations'] * 1e3:.0f} | {floor['bytes'] * 1e3:.0f} "
                     f"| {row['contenders']['bendc']['median'] * 1e3:.0f} | {floor['gap']:.1f} | {reason or '-'} |")
    return lines
