#!/usr/bin/env python3
"""Programs with a few tokens, lines or groups changed, cut into each other, or declared side by side: `bendc check` refuses them with a report or accepts them, within
ten seconds of processor time and 2 GiB; what is accepted means the same to the evaluator, to one thread, to eight, and to the emulated device at every --gpu-fork.

Half of the mutants begin as refused programs (folders `reject`), several in one file and calls of one in arguments of another, since a report that
comes after another one is what those cases alone do not show. Programs that share an array (Array.fork, @unsafe) or use the system are only checked."""

import argparse
import os
import random
import re
import resource
import subprocess
import sys
import tempfile

TOKEN = re.compile(r"""\#[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\d+\.\d+(?:e-?\d+)?|\d+n\+|\d+n?|[A-Za-z_][A-Za-z0-9_.]*|<&>|\.[|^&]\.|->|=>|\|\||&&|<=|>=|<>|\+\+|<<|>>|<-|==|!=|\s+|.""", re.S)
CALL = re.compile(r"(?<![\w.])[A-Za-z][\w.]*\((?:[^()\n]|\([^()\n]*\))*\)")
DECL = re.compile(r"(?m)^(?=(?:def|type|law|import|@unsafe)\b|@unsafe)")
SYSTEM = re.compile(r"\b(?:Process|File|TCP|UDP|Listener|Socket|Chan|Window|Audio|App)\b|IO\.(?:random|now|sleep|get_env|args|thread_count|spawn|fork|within)|import (?!Base|Scan)")
SHARED = re.compile(r"Array\.fork|Array\.atomic|@unsafe|def \w+\?|import Scan")
WORDS = ["0", "1", "2", "31", "32", "255", "2147483648", "4294967295"]
NATS = ["0n", "1n", "2n", "3n", "5n", "8n", "32n", "33n", "300n", "65536n"]
TYPES = ["U32", "Nat", "F32", "Bool", "String", "Char", "Unit", "Type", "Data"]
OPERATORS = ["+", "-", "*", "/", "%", "<<", ">>", ".&.", ".|.", ".^.", "<", "<=", ">", ">="]
WAYS = ["auto", "thread", "warp", "block", "host", "flat", "sequential"]


def group(tokens, r):
    """The range of a random group in brackets."""
    opens = [i for i, t in enumerate(tokens) if t in ("(", "[")]
    if not opens:
        return None
    first, depth = r.choice(opens), 0
    for i in range(first, len(tokens)):
        depth += (tokens[i] in ("(", "[", "{")) - (tokens[i] in (")", "]", "}"))
        if depth == 0:
            return first, i + 1
    return None


def change_tokens(r, text, other):
    tokens = TOKEN.findall(text)
    solid = [i for i, t in enumerate(tokens) if not t.isspace()]
    names = [i for i in solid if re.match(r"[A-Za-z_]", tokens[i])]
    if not names:
        return text

    def replace(pattern, choices):
        found = [i for i in solid if re.fullmatch(pattern, tokens[i])]
        if found:
            tokens[r.choice(found)] = r.choice(choices)

    kind = r.randrange(10)
    if kind == 0:
        replace(r"\d+", WORDS)
    elif kind == 1:
        replace(r"\d+n", NATS)
    elif kind == 2:
        replace("|".join(TYPES), TYPES)
    elif kind == 3:
        replace("|".join(map(re.escape, OPERATORS)), OPERATORS)
    elif kind == 4:   # a mark more, another one, none
        i = r.choice(names)
        if i and tokens[i - 1] in ("+", "-", "~"):
            tokens[i - 1] = r.choice(["", "+", "-", "~"])
        else:
            tokens[i] = r.choice("+-~") + tokens[i]
    elif kind == 5:   # a `!` more, or one less
        calls = [i for i in range(1, len(tokens)) if tokens[i] == "!" or tokens[i] == "(" and re.match(r"[a-z]", tokens[i - 1])]
        if calls:
            i = r.choice(calls)
            tokens[i] = "" if tokens[i] == "!" else "!("
    elif kind == 6:   # a name for another
        tokens[r.choice(names)] = tokens[r.choice(names)]
    elif kind == 7:   # a library function for another
        found = [i for i in solid if re.fullmatch(r"(U32|Nat|F32|Bool|List|String|Array)\.\w+", tokens[i])]
        if found:
            tokens[r.choice(found)] = tokens[r.choice(found)]
    elif kind == 8:   # a group of another place, or of another program
        source = tokens if r.random() < 0.7 else TOKEN.findall(other)
        to, of = group(tokens, r), group(source, r)
        if to and of:
            tokens[to[0]:to[1]] = source[of[0]:of[1]]
    else:
        tokens[r.choice(solid)] = tokens[r.choice(solid)]
    return "".join(tokens)


def change_lines(r, text, other):
    lines = text.splitlines(True)
    if not lines:
        return text
    at = r.randrange(len(lines))
    kind = r.randrange(7)
    if kind == 0:
        lines.insert(at, r.choice(lines))
    elif kind == 1:
        del lines[at]
    elif kind == 2:
        lines[at:at + r.randrange(2)] = [r.choice(other.splitlines(True) or ["\n"])]
    elif kind == 3:   # two cases change places
        cases = [i for i, line in enumerate(lines) if line.lstrip().startswith("case ")]
        if len(cases) > 1:
            a, b = r.sample(cases, 2)
            lines[a], lines[b] = lines[b], lines[a]
    elif kind == 4:   # declarations change places
        decls = DECL.split(text)
        if len(decls) > 3:
            a, b = r.sample(range(2, len(decls)), 2)
            decls[a], decls[b] = decls[b], decls[a]
            return "".join(decls)
    else:   # a fork gets a branch more, or becomes lets in a row; lets in a row become a fork
        forks = [i for i, line in enumerate(lines) if re.match(r" +\+?\w+ \+?\w+ = [\w.]+!?\(", line)]
        pair = re.search(r"^( +)(\+?\w+) = ([\w.]+\(.*\))\n\1(\+?\w+) = ([\w.]+\(.*\))\n", text, re.M)
        if pair and r.random() < 0.5:
            return text[:pair.start()] + f"{pair[1]}{pair[2]} {pair[4]} = {pair[3]} {pair[5]}\n" + text[pair.end():]
        if forks:
            i = r.choice(forks)
            names, values = lines[i].rstrip("\n").split(" = ", 1)
            calls = CALL.findall(values)
            if calls and kind == 5:
                lines[i] = f"{names} more = {values} {r.choice(calls)}\n"
            elif len(calls) == len(names.split()):
                lines[i] = "".join(f"{re.match(' *', names)[0]}{n} = {v}\n" for n, v in zip(names.split(), calls))
    return "".join(lines)


def side_by_side(r, programs):
    """Declarations of several programs, and calls of the one among the arguments of the other."""
    decls = [d if d.endswith("\n") else d + "\n" for p in programs for d in DECL.split(p) if d and not d.startswith("import")]
    if r.random() < 0.5:
        r.shuffle(decls)
    text = "import Base\n" + "".join(decls)
    calls = CALL.findall(text)
    for _ in range(r.randrange(4) if calls else 0):
        outer, inner = r.choice(calls), r.choice(calls)
        name, arguments = outer[:-1].split("(", 1)
        arguments = arguments.split(",")
        arguments[r.randrange(len(arguments))] = " " + inner
        text = text.replace(outer, f"{name}({','.join(arguments)})", 1)
    return text


def both_mains(r, first, second):
    """Two programs in one file, the names of the second prefixed: main is the pair of their values, one after the other, at once, or on the device."""
    mains = [re.search(r"^def main\(\) -> (.*?):", p, re.M) for p in (first, second)]
    if not all(mains) or any("IO" in m[1] for m in mains):
        return None
    own = set(re.findall(r"^(?:def|law|type) ([\w.]+)", second, re.M) + re.findall(r"(?:^ +|: |\} )([A-Z]\w*)\{", second, re.M))
    second = re.sub(r"(?<![\w.])[A-Za-z_][\w.]*", lambda m: "other_" + m[0] if m[0] in own else m[0], second)
    kind = f"({mains[0][1]}) & ({mains[1][1]})"
    pair = ["x y = first_main() other_main()\n  (x, y)", "(first_main(), other_main())"][r.randrange(2)]
    text = re.sub(r"^def main\(", "def first_main(", first, flags=re.M) + "\n" + re.sub(r"^import .*\n", "", second, flags=re.M)
    if r.random() < 0.5:
        return text + f"\ndef both(u: Unit) -> {kind}:\n  {pair}\n\ndef main() -> {kind}: both!(Unit{{}})\n"
    return text + f"\ndef main() -> {kind}:\n  {pair}\n"


def mutant(seed, accepted, refused):
    r = random.Random(seed)
    choose = lambda: r.choice(refused if refused and r.random() < 0.5 else accepted)
    text = None
    kind = r.random()
    if kind < 0.15:
        text = both_mains(r, r.choice(accepted), r.choice(accepted))
    elif kind < 0.4:
        text = side_by_side(r, [choose() for _ in range(r.choice([1, 2, 3]))])
    text = text or r.choice(accepted)
    for _ in range(r.choice([0, 1, 1, 1, 2, 2, 3, 5])):
        text = (change_tokens if r.random() < 0.7 else change_lines)(r, text, choose())
    return text


def run(command, limit, memory=None, **variables):
    def limits():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 26, 1 << 26))
        if memory:
            resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
    try:
        done = subprocess.run(command, env=dict(os.environ, BEND_DEBUG_HEAP="1", **variables), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=limit * (6 if memory else 1), preexec_fn=limits)
        return done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        return "timeout", b"", b""


def leaks(got):
    return got[0] == 0 and not re.search(rb"\b0 live words", got[2])


def problems_of(bendc, path, program, text, seed):
    """(what, result) of each way that the program fails, and whether it ran."""
    checked = run([bendc, "check", "--verify", path], 10, 2 << 30)
    if checked[0] not in (0, 1) or checked[0] == 1 and b"error[" not in checked[2]:
        return [("check", checked)], False
    if checked[0] == 1 or SYSTEM.search(text) or not re.search(r"^def main\(", text, re.M):
        return [], False
    built = run([bendc, "build", "--verify", "-O1", "--emulator", "--no-ptx", "--gpu-fork=all", path, "-o", program], 60)
    if built[0] != 0:
        return [] if built[0] == 1 and b"error[" in built[2] else [("build", built)], False
    want = run([program], 3, BEND_GPU="off", BEND_THREADS="1")
    if want[0] == "timeout":
        return [], False   # a number was made large
    found = []
    if not isinstance(want[0], int) or want[0] < 0 or leaks(want):
        found.append(("one thread", want))
    if SHARED.search(text):
        return found, True
    main = re.search(r"^def main\((.*?)\)(.*)", text, re.M)
    if want[0] == 0 and not main[1] and "IO" not in main[2]:
        got = run([bendc, "run", "--normalise", path], 10)
        if got[0] == 0 and got[1] != want[1] or got[0] not in (0, 1, "timeout"):
            found.append(("evaluator", got))
    runs = [("8 threads", dict(BEND_GPU="off", BEND_THREADS="8"))]
    if "!" in text:
        runs += [(way, dict(BEND_GPU="emulate", BEND_GPU_FORK=way)) for way in WAYS] + [("thread 0", dict(BEND_GPU="emulate", BEND_GPU_FORK="thread", BEND_GPU_THRESHOLD="0"))]
    for label, variables in runs:
        got = run([program], 40, BEND_SCHED_SEED=str(seed % 11), **variables)
        # Threads and a device have other stacks and heaps: what runs out of one is no difference.
        if want[0] == 1 and re.search(rb"stack|memory", want[2]) and got[0] != "timeout" or b"error 3" in got[2]:
            continue
        if got[:2] != want[:2] or leaks(got):
            found.append((label, got))
    return found + [("one thread was", want)] if found else found, True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bendc", required=True)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep")
    parser.add_argument("--print", action="store_true", help="print the first mutant and stop")
    parser.add_argument("folders", nargs="+")
    args = parser.parse_args()
    accepted, refused = [], []
    for folder in args.folders:
        for place, _, files in sorted(os.walk(folder)):
            for name in sorted(files):
                if name.endswith(".bend") and os.path.getsize(os.path.join(place, name)) < 9000:
                    with open(os.path.join(place, name), encoding="utf-8") as f:
                        text = "".join(line for line in f if not line.startswith("#"))
                    (refused if f"{os.sep}reject" in place else accepted).append(text)
    if args.print:
        print(mutant(args.seed, accepted, refused), end="")
        return 0
    ran = bad = 0
    with tempfile.TemporaryDirectory() as folder:
        path, program = os.path.join(folder, "mutant.bend"), os.path.join(folder, "mutant")
        for seed in range(args.seed, args.seed + args.count):
            text = mutant(seed, accepted, refused)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            problems, did_run = problems_of(args.bendc, path, program, text, seed)
            ran += did_run
            if problems:
                bad += 1
                print(f"seed {seed}:")
                for label, got in problems[:5]:
                    print(f"  {label}: {got[0]} {got[1][-200:]!r} {got[2][-400:].decode(errors='replace')}", flush=True)
                if args.keep:
                    os.makedirs(args.keep, exist_ok=True)
                    with open(os.path.join(args.keep, f"seed_{seed}.bend"), "w", encoding="utf-8") as f:
                        f.write(text)
    print(f"{args.count} mutants checked, {ran} of them run")
    if ran == 0 and args.count >= 100:   # about one in seven does
        bad = bad or 1
        print("none of them ran")
    print(f"{args.count - bad} passed, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
