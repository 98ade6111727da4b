#!/usr/bin/env python3
"""Random well-typed programs: what the compiled program prints must be what the checker's evaluator normalises to.

programs.py --bendc BENDC [--count N] [--seed S] [--batch K] [--keep DIR] [-- flags for the compiled run]

Each file holds K independent programs (their types, functions and one value each); main is the tuple of their values, so one run compares
K programs. A difference is printed with the seed of the file; --keep saves such files. Exit status 1 when any differs.

Generated: enums, records, recursive types (monomorphic, one per program), functions by structural recursion on a Nat or on the
recursive type, affine and reusable parameters, nested matches with catch-alls and literals, lists, Maybe, copyable pairs, strings, arithmetic with
its edge cases (division by zero, shifts past 31, wrap-around), closures applied once, parallel lets, and templates of the library; what wide.py
adds to that; functions that hand arrays on (threaded.py). The compiled runs count their heap blocks: one that is still live at the end is a difference too.
"""
import argparse
import os
import random
import re
import subprocess
import sys
import tempfile

U32, NAT, BOOL, STR, LIST, MAYBE, PAIR, CHAR = "U32", "Nat", "Bool", "String", "List<&2, U32>", "Maybe<&2, Nat>", "Sigma<&2, &2, U32, _ => Bool>", "Char"
EDGES = [0, 1, 2, 3, 7, 31, 32, 33, 255, 256, 65535, 65536, 2147483647, 2147483648, 4294967294, 4294967295]


class Program:
    """One program: declarations with names prefixed by `name`, and `value`, an expression of type `result`."""

    def __init__(self, rng, name):
        self.rng, self.name, self.decls, self.funcs, self.fresh = rng, name, [], [], 0
        self.enum = [f"{name}E{i}" for i in range(rng.randint(2, 5))]
        self.decls.append(f"type {name}Enum is Data:\n" + "".join(f"  {c}{{}}\n" for c in self.enum))
        self.record = [self.pick_scalar() for _ in range(rng.randint(1, 6))]
        fields = ", ".join(f"f{i}: {t}" for i, t in enumerate(self.record))
        self.decls.append(f"type {name}Rec is Data:\n  {name}Mk{{{fields}}}\n")
        self.tree = [("Tip", [self.pick_scalar() for _ in range(rng.randint(0, 2))])]
        for i in range(rng.randint(1, 3)):
            kinds = [self.pick_scalar() for _ in range(rng.randint(0, 2))] + [self.T] * rng.randint(1, 2)
            rng.shuffle(kinds)
            self.tree.append((f"Bin{i}", kinds))
        self.decls.append(f"type {self.T} is Data:\n" + "".join(f"  {name}{c}{{{', '.join(f'x{i}: {t}' for i, t in enumerate(ts))}}}\n" for c, ts in self.tree))
        for i in range(rng.randint(2, 6)):
            self.function(i)
        self.result = rng.choice(self.types())
        self.value = self.expr(self.result, [], 4)
        self.decls.append(f"def {name}main() -> {self.result}:\n  {self.value}\n")

    @property
    def T(self):
        return self.name + "Tree"

    def pick_scalar(self):
        return self.rng.choice([U32, NAT, BOOL, U32, self.name + "Enum"])

    def types(self):
        return [U32, NAT, BOOL, STR, LIST, MAYBE, PAIR, CHAR, self.name + "Enum", self.name + "Rec", self.T]

    def var(self):
        self.fresh += 1
        return f"v{self.fresh}"

    # An environment is a list of [name, type, uses left (None: reusable)]. Expressions spend uses.
    def spend(self, env, want):
        ready = [v for v in env if v[1] == want and v[2] != 0]
        if not ready or self.rng.random() < 0.25:
            return None
        v = self.rng.choice(ready)
        if v[2] is not None:
            v[2] -= 1
        return v[0]

    def literal(self, t):
        r = self.rng
        if t == U32:
            return str(r.choice(EDGES) if r.random() < 0.5 else r.randrange(1000))
        if t == NAT:
            return f"{r.choice([0, 1, 2, 3, 5, 300, 70000])}n"
        if t == BOOL:
            return r.choice(["True{}", "False{}"])
        if t == STR:
            return '"' + "".join(r.choice(["a", "b", "z", " ", "\\n", "\\u{3bb}", "7"]) for _ in range(r.randrange(5))) + '"'
        if t == CHAR:
            return r.choice(["'a'", "'\\n'", "'\\u{1F600}'", "'Z'"])
        if t == LIST:
            return "[" + ", ".join(str(r.choice(EDGES)) for _ in range(r.randrange(4))) + "]"
        if t == MAYBE:
            return r.choice(["None{}", "Some{4n}", "Some{0n}"])
        if t == PAIR:
            return f"({r.choice(EDGES)}, {r.choice(['True{}', 'False{}'])})"
        if t.endswith("Enum"):
            return r.choice(self.enum) + "{}"
        if t.endswith("Rec"):
            return f"{self.name}Mk{{{', '.join(self.literal(f) for f in self.record)}}}"
        return f"{self.name}Tip{{{', '.join(self.literal(f) for f in self.tree[0][1])}}}"

    def expr(self, t, env, depth):
        r = self.rng
        got = self.spend(env, t)
        if got is not None:
            return got
        if depth <= 0:
            return self.literal(t)
        sub = lambda u: self.expr(u, env, depth - 1)
        calls = [f for f in self.funcs if f[2] == t]
        if calls and r.random() < 0.4:
            name, params, _ = r.choice(calls)
            return f"{name}({', '.join(self.fuel() if p == 'fuel' else sub(p) for p in params)})"
        if r.random() < 0.12:
            u = r.choice([U32, NAT, BOOL])
            v = self.var()
            body = self.expr(t, env + [[v, u, 1]], depth - 2)
            return f"{{({v} => {body}) : {u} -> {t}}}({sub(u)})"
        if t == U32:
            op = r.choice(["+", "-", "*", "/", "%", ".&.", ".|.", ".^."])
            return r.choice([
                lambda: f"({sub(U32)} {op} {sub(U32)} : U32)",
                lambda: f"({sub(U32)} {r.choice(['<<', '>>'])} {r.choice([0, 1, 31, 32, 40])}n : U32)",
                lambda: f"U32.from_nat({sub(NAT)})", lambda: f"U32.not({sub(U32)})", lambda: f"U32.min({sub(U32)}, {sub(U32)})",
                lambda: f"Char.to_u32({sub(CHAR)})", lambda: f"Bool.to_u32({sub(BOOL)})",
                lambda: f"Maybe.default(&2, U32, List.head(&2, U32, {sub(LIST)}), {sub(U32)})",
                lambda: f"List.foldl(~&2, ~U32, ~U32, ~(a => x => (a * 31 + x : U32)), {sub(LIST)}, {sub(U32)})"])()
        if t == NAT:
            return r.choice([
                lambda: f"({sub(NAT)} {r.choice(['+', '-'])} {sub(NAT)} : Nat)", lambda: f"U32.to_nat({sub(U32)})", lambda: f"(1n+{sub(NAT)})",
                lambda: f"Nat.{r.choice(['div', 'mod', 'min', 'max'])}({sub(NAT)}, {sub(NAT)})", lambda: f"List.length(&2, U32, {sub(LIST)})",
                lambda: f"String.length({sub(STR)})", lambda: f"Maybe.default(&2, Nat, {sub(MAYBE)}, {sub(NAT)})"])()
        if t == BOOL:
            return r.choice([
                lambda: f"({sub(U32)} {r.choice(['<', '<=', '>', '>='])} {sub(U32)} : U32)", lambda: f"({sub(NAT)} {r.choice(['<', '<=', '>'])} {sub(NAT)} : Nat)",
                lambda: f"Bool.not({sub(BOOL)})", lambda: f"({sub(BOOL)} {r.choice(['&&', '||'])} {sub(BOOL)})", lambda: f"String.eq({sub(STR)}, {sub(STR)})",
                lambda: f"Maybe.is_some(&2, Nat, {sub(MAYBE)})", lambda: f"U32.is_even({sub(U32)})"])()
        if t == STR:
            return r.choice([
                lambda: f"({sub(STR)} ++ {sub(STR)})", lambda: f"U32.show({sub(U32)})", lambda: f"Nat.show({sub(NAT)})", lambda: f"Bool.show({sub(BOOL)})",
                lambda: f"String.take({sub(STR)}, {r.randrange(4)}n)", lambda: f"String.reverse({sub(STR)})", lambda: f"Char.show({sub(CHAR)})"])()
        if t == CHAR:
            return r.choice([lambda: f"Char.to_upper({sub(CHAR)})", lambda: self.literal(CHAR)])()
        if t == LIST:
            return r.choice([
                lambda: f"{sub(U32)} <> {sub(LIST)}", lambda: f"List.append(&2, U32, {sub(LIST)}, {sub(LIST)})", lambda: f"List.reverse(&2, U32, {sub(LIST)})",
                lambda: f"List.take(&2, U32, {sub(LIST)}, {r.randrange(4)}n)", lambda: f"List.sort(~U32, ~(a => b => (a <= b : U32)), {sub(LIST)})",
                lambda: f"List.filter(~U32, ~(x => U32.is_even(x)), {sub(LIST)})"])()
        if t == MAYBE:
            return r.choice([lambda: f"Some{{{sub(NAT)}}}", lambda: f"Nat.read({sub(STR)})", lambda: f"Maybe.map(&2, Nat, Nat, n => 1n+n, {sub(MAYBE)})",
                             lambda: f"Maybe.or(&2, Nat, {sub(MAYBE)}, {sub(MAYBE)})"])()
        if t == PAIR:
            return f"({sub(U32)}, {sub(BOOL)})"
        if t.endswith("Rec"):
            return f"{self.name}Mk{{{', '.join(sub(f) for f in self.record)}}}"
        if t == self.T:
            ctor, kinds = r.choice(self.tree)
            return f"{self.name}{ctor}{{{', '.join(sub(k) for k in kinds)}}}"
        return self.literal(t)

    def affine(self):
        """Types whose values are used once."""
        return []

    def data(self, t):
        return True

    def fuel(self):
        return f"{self.rng.randrange(6)}n"

    def params(self):
        out = []
        for _ in range(self.rng.randrange(4)):
            t = self.rng.choice(self.types())
            out.append((self.var(), t, self.rng.random() < 0.6))
        return out

    def header(self, name, first, params, result):
        text = [first] if first else []
        text += [("+" if many else "") + f"{v}: {t}" for v, t, many in params]
        return f"def {name}({', '.join(text)}) -> {result}:\n"

    def env_of(self, params):
        return [[v, t, None if many else 1] for v, t, many in params]

    def body(self, t, env, indent, depth):
        """Statements: lets, then a value. Matches come first in a body, so functions make them."""
        r, lines = self.rng, []
        for _ in range(r.randrange(3)):
            if r.random() < 0.3:
                if self.funcs:
                    picks = [r.choice(self.funcs) for _ in range(r.randint(2, 4))]
                    names = [self.var() for _ in picks]
                    values = [f"{f[0]}({', '.join(self.fuel() if p == 'fuel' else self.expr(p, env, depth - 2) for p in f[1])})" for f in picks]
                    marks = ["+" if self.data(f[2]) else "" for f in picks]
                    lines.append(f"{indent}{' '.join(m + n for m, n in zip(marks, names))} = {' '.join(values)}")
                    env = env + [[n, f[2], None if m else 1] for n, f, m in zip(names, picks, marks)]
                    continue
            v, u = self.var(), r.choice(self.types() + self.affine())
            many = self.data(u) and r.random() < 0.5
            lines.append(f"{indent}{'+' if many else ''}{v} : {u} = {self.expr(u, env, depth - 1)}")
            env = env + [[v, u, None if many else 1]]
        lines.append(indent + self.expr(t, env, depth))
        return "\n".join(lines) + "\n"

    def copy(self, env):
        return [list(v) for v in env]

    def function(self, i):
        r = self.rng
        name, params, result = f"{self.name}f{i}", self.params(), r.choice(self.types())
        kind = r.choice(["plain", "nat", "tree", "enum", "u32", "list", "maybe", "record", "bool2"])
        env = self.env_of(params)
        plain = [t for _, t, _ in params]
        if kind == "plain":
            self.decls.append(self.header(name, None, params, result) + self.body(result, env, "  ", 3))
            self.funcs.append((name, plain, result))
            return
        if kind in ("nat", "tree"):
            # Recursion: the recursive result is bound in each arm; arguments of the call are fresh literals or reusable parameters.
            again = lambda p: f"{name}({', '.join([p] + [v if many and r.random() < 0.7 else self.literal(t) for v, t, many in params])})"
            if kind == "nat":
                first, want = "+n: Nat", "fuel"
                text = self.header(name, first, params, result) + "  match n:\n    case 0n:\n" + self.body(result, self.copy(env), "      ", 2)
                if r.random() < 0.3:
                    text += "    case 1n:\n" + self.body(result, self.copy(env), "      ", 2)
                e = self.copy(env) + [["p", NAT, None], ["rec", result, None]]
                text += "    case 1n+p:\n" + f"      +rec = {again('p')}\n" + self.body(result, e, "      ", 2)
            else:
                first, want = f"t: {self.T}", self.T
                text = self.header(name, first, params, result) + "  match t:\n"
                for ctor, kinds in self.tree:
                    names = [self.var() for _ in kinds]
                    e, recs = self.copy(env), []
                    for v, k in zip(names, kinds):
                        if k == self.T:
                            recs.append((self.var(), v))
                        else:
                            e.append([v, k, 1])
                    text += f"    case {self.name}{ctor}{{{', '.join(names)}}}:\n"
                    for rec, v in recs:
                        text += f"      +{rec} = {again(v)}\n"
                        e.append([rec, result, None])
                    text += self.body(result, e, "      ", 2)
            self.decls.append(text)
            self.funcs.append((name, [want] + plain, result))
            return
        if kind == "enum":
            t, arms = self.name + "Enum", [(c + "{}", []) for c in self.enum]
            if r.random() < 0.4:
                keep = r.randrange(1, len(arms))
                arms = arms[:keep] + [("other", [["other", t, 1]])]
        elif kind == "u32":
            t = U32
            arms = [(str(x), []) for x in r.sample(EDGES, r.randint(1, 4))] + [("k", [["k", U32, 1]])]
        elif kind == "list":
            t, arms = LIST, [("[]", []), ("h <> tl", [["h", U32, 1], ["tl", LIST, 1]])]
            if r.random() < 0.4:
                arms = [("[]", []), ("[x]", [["x", U32, 1]]), ("x <> (y <> z)", [["x", U32, 1], ["y", U32, 1], ["z", LIST, 1]])]
        elif kind == "maybe":
            t, arms = MAYBE, [("Some{x}", [["x", NAT, 1]]), ("None{}", [])]
        elif kind == "record":
            t = self.name + "Rec"
            names = [self.var() for _ in self.record]
            arms = [(f"{self.name}Mk{{{', '.join(names)}}}", [[v, k, 1] for v, k in zip(names, self.record)])]
        else:
            t, arms = PAIR, [("(x, True{})", [["x", U32, 1]]), ("(x, False{})", [["x", U32, 1]])]
        text = self.header(name, f"s: {t}", params, result) + "  match s:\n"
        for pattern, bound in arms:
            text += f"    case {pattern}:\n" + self.body(result, self.copy(env) + [list(b) for b in bound], "      ", 2)
        self.decls.append(text)
        self.funcs.append((name, [t] + plain, result))


def file_of(seed, batch, threaded=False):
    """The evaluator's and the compiled text; they differ where the evaluator refuses or does not share what is compiled (wide.py, threaded.py)."""
    from threaded import ThreadedProgram
    from wide import WideProgram
    rng = random.Random(seed)
    programs = [rng.choice([ThreadedProgram] if threaded else [Program, WideProgram, WideProgram, ThreadedProgram])(rng, f"P{i}") for i in range(batch)]
    return [assemble(seed, batch, programs, which) for which in (0, 1)]


def assemble(seed, batch, programs, which):
    decls = [[d if isinstance(d, str) else d[which] for d in p.decls] for p in programs]
    text = f"# seed {seed}\nimport Base\n\n" + "\n".join("\n".join(d) for d in decls)
    show = " & (".join(p.result for p in programs) + ")" * (batch - 1)
    return text + f"\ndef main() -> {show}:\n  ({', '.join(p.name + 'main()' for p in programs)})\n"


def run(command, limit=60):
    try:
        done = subprocess.run(command, env=dict(os.environ, BEND_DEBUG_HEAP="1"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=limit)
        return done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        return "timeout", b"", b""


def main():
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bendc", required=True)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=10)
    parser.add_argument("--threaded", action="store_true", help="only functions that hand arrays on (threaded.py)")
    parser.add_argument("--keep")
    parser.add_argument("--print", action="store_true", help="print the first file and stop")
    args = parser.parse_args(sys.argv[1:split])
    flags = sys.argv[split + 1:]
    if args.print:
        print(file_of(args.seed, args.batch, args.threaded)[1], end="")
        return 0
    bad = compared = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.bend")
        for i in range((args.count + args.batch - 1) // args.batch):
            seed = args.seed + i
            model, text = file_of(seed, args.batch, args.threaded)
            with open(path, "w") as f:
                f.write(model)
            want = run([args.bendc, "run", "--normalise", path])
            with open(path, "w") as f:
                f.write(text)
            got = run([args.bendc, "run", *flags, path])
            compared += args.batch
            leaks = not re.search(rb"\b0 live words", got[2])
            if want[:2] != got[:2] or want[0] != 0 or leaks:
                bad += 1
                print(f"seed {seed}: evaluator {want[0]}, compiled {got[0]}")
                for label, result in (("evaluator", want), ("compiled", got)):
                    print(f"  {label}: {result[1][:300]!r} {result[2][:600].decode(errors='replace')}")
                if args.keep:
                    os.makedirs(args.keep, exist_ok=True)
                    with open(os.path.join(args.keep, f"seed_{seed}.bend"), "w") as f:
                        f.write(text)
    print(f"{compared} programs compared, {bad} files differ")
    print(f"{compared // args.batch - bad} passed, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.modules["programs"] = sys.modules["__main__"]  # wide.py builds on these very classes
    sys.exit(main())
