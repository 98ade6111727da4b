"""Programs without shared arrays, which the evaluator can run too: trees of nodes that are made, rebuilt and folded, sums that are carried along, chains, skewed recursion; functions as values."""
import re

from shape import Shape


class FoldProgram(Shape):
    """Trees of nodes that are made, rebuilt and folded; sums that are carried along; chains, skewed and mutual recursion. No arrays are shared, so the checker's evaluator can run it."""
    pure = True

    def make(self):
        {"nodes": self.nodes, "sums": self.sums, "turns": self.turns}[self.rng.choice(["nodes", "nodes", "sums", "turns"])]()

    def mix(self, *words):
        out = "0"
        for w in words:
            out = f"({out} * {self.rng.randrange(1, 1 << 32) | 1} + {w} : U32)"
        return out

    # Leaves make as many bytes each, or not; what folds them makes nodes after it, or not.
    def nodes(self):
        r = self.rng
        kind = r.choice(["Type", "Data"])
        leaves = [(f"$L{k}", r.randrange(4)) for k in range(r.randint(1, 3))]
        heavy = self.one_in(3)                                      # a leaf of several nodes
        mark = self.one_in(2)
        lists = kind == "Data" and self.one_in(3)
        self.decl(f"type $T is {kind}:\n" + "".join(f"  {c}{{{', '.join(f'x{i}: U32' for i in range(n))}}}\n" for c, n in leaves) + ("  $Ls{xs: List<&2, U32>, t: $T}\n" if lists else "") +
                  f"  $N{{{'m: U32, ' if mark else ''}l: $T, r: $T}}")
        made = lambda k, x: f"{leaves[k][0]}{{{', '.join(f'({x} * {r.randrange(1, 99)} : U32)' for _ in range(leaves[k][1]))}}}"
        node = lambda m, a, b: f"$N{{{m + ', ' if mark else ''}{a}, {b}}}"
        value = made(0, "i")
        if heavy:
            value = node("i", value, node("(i + 1 : U32)", made(len(leaves) - 1, "i"), made(0, "i")))
        if lists:
            value = f"$Ls{{[i, (i + 1 : U32){', 7' if self.one_in(2) else ''}], {value}}}"
        if len(leaves) > 1 and self.one_in(2):
            self.about.append("unequal")
            self.decl("def $pick(k: U32, +i: U32) -> $T:\n  match k:\n" + "".join(f"    case {k}:\n      {made(k, 'i')}\n" for k in range(len(leaves) - 1)) + f"    case _:\n      {value}")
            value = f"$pick((i .&. {r.choice([1, 3, 7])} : U32), i)"
        if self.one_in(6):
            self.about.append("error in a leaf")
            self.error = True
            bad = r.randrange(1 << 3)
            self.decl("def $sq(+n: Nat) -> Nat: Nat.mul(n, n)")
            self.decl(f"def $bad(k: U32, +i: U32) -> U32:\n  match k:\n    case {bad}:\n      U32.from_nat($sq(Nat.add(U32.to_nat(i), 16777216n)))\n    case _:\n      i")
            value = value if "$pick" in value else re.sub(r"\bi\b", "$bad(i, i)", value, count=1)
        d = r.choice([0, 1, 2, 4, 5, 6, 7, 9])
        order = r.choice([0, 1])
        children = ["$build(p, (i * 2 : U32))", r.choice(["$build(p, (i * 2 + 1 : U32))", "$build(p, (i * 3 : U32))"])]
        two = self.one_in(5)                                        # two levels less deep: no perfect tree
        deeper = "    case 1n:\n      " + made(0, "(i + 3 : U32)") + "\n    case 2n++p:\n" if two else "    case 1n++p:\n"
        self.decl(f"def $build(d: Nat, +i: U32) -> $T:\n  match d:\n    case 0n:\n      {value}\n{deeper}      x y = {children[0]} {children[1]}\n      {node('i', *(('x', 'y') if order else ('y', 'x')))}")
        sums = lambda xs: " + ".join(xs) or "1"
        ops = r.choice(["(a + b : U32)", "(a * 3 + b : U32)", "(a + b + 1 : U32)", "(a .^. b : U32)", "(a * b : U32)", "(b - a : U32)"])
        if mark:
            ops = ops.replace(": U32)", f"{r.choice(['+', '.^.'])} m : U32)")
        cases = "".join(f"    case {c}{{{', '.join(f'x{i}' for i in range(n))}}}:\n      ({sums([f'x{i}' for i in range(n)])} : U32)\n" for c, n in leaves)
        if lists:
            self.decl("def $lsum(xs: List<&2, U32>) -> U32:\n  match xs:\n    case []:\n      0\n    case x <> q:\n      (x + $lsum(q) * 3 : U32)")
            cases += "    case $Ls{xs, t}:\n      ($lsum(xs) * 5 + $sum(t) : U32)\n"
        m = "m, " if mark else ""
        self.decl(f"def $sum(t: $T) -> U32:\n  match t:\n{cases}    case $N{{{m}l, r}}:\n      a b = $sum(l) $sum(r)\n      {ops}")
        swapped = f"$N{{{'(m * 3 : U32), ' if mark else ''}{r.choice(['a, b', 'b, a'])}}}"
        cases = "".join(f"    case {c}{{{', '.join(f'x{i}' for i in range(n))}}}:\n      {c}{{{', '.join(f'(x{i} + 1 : U32)' for i in range(n))}}}\n" for c, n in leaves)
        if lists:
            cases += "    case $Ls{xs, t}:\n      $Ls{3 <> xs, $map(t)}\n"
        self.decl(f"def $map(t: $T) -> $T:\n  match t:\n{cases}    case $N{{{m}l, r}}:\n      a b = $map(l) $map(r)\n      {swapped}")
        self.decl("def $after(n: Nat, t: $T) -> U32:\n  match n:\n    case 0n:\n      $sum(t)\n    case 1n+p:\n      $after(p, $map(t))")
        self.decl("def $again(n: Nat, +d: Nat, +s: U32) -> U32:\n  match n:\n    case 0n:\n      s\n    case 1n++p:\n      $again(p, d, $sum($build(d, s)))")
        self.decl("def $twice(+d: Nat, +i: U32) -> U32:\n  x y = $sum($build(d, i)) $sum($map($build(d, (i + 1 : U32))))\n  (x * 7 + y : U32)")
        ways = [f"$sum!($build!({d}n, 1))", f"$sum!($build({d}n, 1))", f"$sum($build!({d}n, 1))", f"$sum!($map!($build!({d}n, 1)))", f"$after!(2n, $build({d}n, 1))", f"$again!(3n, {d}n, 1)", f"$twice!({d}n, 1)",
                f"$sum($map!($build({d}n, 1)))", f"$after!(1n, $build!({d}n, 2))"]
        if kind == "Data":
            self.decl("def $shared(+t: $T) -> U32:\n  x y = $sum(t) $sum($map(t))\n  (x * 7 + y : U32)")
            self.decl("def $kept(+t: $T) -> U32:\n  x y = $sum(t) $sum(t)\n  (x - y * 3 : U32)")
            ways += [f"$shared!($build({d}n, 1))", f"$shared!($build!({d}n, 1))", f"$kept!($map($build!({d}n, 1)))"]
        picks = r.sample(ways, r.randint(1, 3))
        self.about += [kind, f"depth {d}"] + picks
        self.value = ' ++ " " ++ '.join(f"U32.show({w})" for w in picks).replace("$", self.name)

    # f(n, x): forks that put their children together by one operation, or nearly.
    def sums(self):
        r = self.rng
        op = r.choice(["+", "+", "*", ".^.", ".&.", ".|.", "-"])
        width = r.choice([2, 2, 2, 3, 4])
        names = ["a", "b", "c", "e"][:width]
        extra = r.choice(["", "", str(r.randrange(1, 9)), "x", "w"])
        terms = names + ([extra] if extra else [])
        r.shuffle(terms)
        total = terms[0]
        for t in terms[1:]:
            total = f"{total} {op} {t}" if self.one_in(2) else f"({total} {op} {t} : U32)" if op != "-" else f"{total} {op} {t}"
        total = f"({total} : U32)" if op not in (".&.", ".|.", ".^.") else self.chain(op, terms)
        deep = self.one_in(3)
        args = [r.choice(["(x * 2 : U32)", "(x + 1 : U32)", "x", "w", "(x .^. 5 : U32)"]) for _ in names]
        fuel = [r.choice(["p", "p", "q"] if deep else ["p"]) for _ in names]
        if deep and "p" not in fuel:
            fuel[0] = "p"
        calls = " ".join(f"$f({n}, {a})" for n, a in zip(fuel, args))
        many = self.one_in(4)                                       # the value of a leaf takes a loop
        self.decl("def $many(n: Nat, x: U32) -> U32:\n  match n:\n    case 0n:\n      x\n    case 1n+p:\n      $many(p, (x * 1664525 + 1013904223 : U32))")
        leaf = r.choice(["x", "1", "(x * x + 3 : U32)", f"$many({r.randrange(20)}n, x)" if many else "(x .|. 1 : U32)"])
        rest = f"\n      +w = (x * {r.randrange(1, 99)} + 1 : U32)\n      {' '.join(names)} = {calls}\n      {total}"
        text = f"def $f(n: Nat, +x: U32) -> U32:\n  match n:\n    case 0n:\n      {leaf}\n"
        if deep:
            text += f"    case 1n:\n      {r.choice(['x', '2', '(x + 5 : U32)'])}\n    case 2n++q:\n      +p : Nat = 1n+q{rest}"
        else:
            text += f"    case 1n++p:{rest}"
        if self.one_in(3):                                          # whether it forks depends on a number too
            self.about.append("parity")
            text = "def $go(n: Nat, +k: U32, +x: U32) -> U32:\n  match n k:\n    case 0n, _:\n      " + leaf + "\n    case 1n++p, 0:\n      +w = (x + 3 : U32)\n" + \
                   f"      a b = $go(p, (x .&. 1 : U32), (x * 3 : U32)) $go(p, (w .&. {r.choice([1, 3])} : U32), w)\n      {self.chain(op, ['a', 'b'])}\n    case 1n++p, _:\n      {r.choice(['x', '$go(p, 0, x)', leaf])}\n\n" + \
                   "def $f(n: Nat, +x: U32) -> U32:\n  $go(n, 0, x)"
        self.decl(text)
        n = r.choice([0, 1, 2, 5, 6, 7]) if width > 2 else r.choice([0, 1, 2, 5, 8, 10])
        self.about += ["sums", op, f"width {width}", f"depth {n}"]
        self.decl("def $two(n: Nat, +x: U32) -> U32:\n  +m = Nat.min(n, 40n)\n  a b = $f(m, x) $f(m, (x + 1 : U32))\n  (a - b : U32)")
        self.value = r.choice([f"U32.show($f!({n}n, 3))", f"U32.show($two!({n}n, 3))", f"U32.show($f!({n}n, $f!({n}n, 3)))"]).replace("$", self.name)

    def chain(self, op, terms):
        out = terms[0]
        for t in terms[1:]:
            out = f"({out} {op} {t} : U32)"
        return out

    # One long branch beside short ones, and defs that call each other.
    def turns(self):
        r = self.rng
        n = r.choice([0, 1, 5, 40, 200])
        self.decl("def $small(n: Nat, +x: U32) -> U32:\n  match n:\n    case 0n:\n      x\n    case 1n++p:\n      a b = $small(p, (x * 3 : U32)) $small(p, (x + 1 : U32))\n      (a - b * 5 : U32)")
        first, second = r.sample(["$f(p, (x * 5 : U32))", f"$small({r.randrange(4)}n, x)"], 2)
        result = r.choice(["(a * 3 + b : U32)", "(a + b : U32)", "(a - b : U32)"])
        self.decl(f"def $f(n: Nat, +x: U32) -> U32:\n  match n:\n    case 0n:\n      x\n    case 1n++p:\n      a b = {first} {second}\n      {result}")
        self.decl("def $rows(n: Nat, +x: U32) -> List<&2, U32>:\n  match n:\n    case 0n:\n      []\n    case 1n++p:\n      a b = $f(Nat.mod(p, 7n), x) $rows(p, (x + 9 : U32))\n      a <> b")
        self.decl("def $fold(xs: List<&2, U32>) -> U32:\n  match xs:\n    case []:\n      1\n    case x <> q:\n      a b = $fold(q) $small(2n, x)\n      (a * 31 + b : U32)")
        m = min(n, 40)
        ways = [f"$f!({n}n, 1)", f"$fold!($rows!({m}n, 1))", f"$fold!($rows({m}n, 1))", f"$fold($rows!({m}n, 2))"]
        self.about += ["turns", f"{n}"]
        self.value = ' ++ " " ++ '.join(f"U32.show({w})" for w in r.sample(ways, 2)).replace("$", self.name)


class ClosureProgram(Shape):
    """Functions as values: with captures of every kind, of each other, in lists and records, from partial calls, through forks and `!`."""
    pure = True

    def make(self):
        r = self.rng
        self.about = ["closures"]
        self.decl("def $ap(f: U32 -> U32, x: U32) -> U32: f(x)")
        self.decl("def $comp(f: U32 -> U32, g: U32 -> U32, x: U32) -> U32: f(g(x))")
        self.decl("def $three(a: U32, b: U32, c: U32) -> U32: (a * 7 + b * 3 - c : U32)")
        self.decl("def $lsum(xs: List<&2, U32>, s: U32) -> U32:\n  match xs:\n    case []: s\n    case x <> q: $lsum(q, (s * 31 + x : U32))")
        self.decl("type $Box is Type:\n  $Box{f: U32 -> U32, k: U32}\n  $Two{f: U32 -> U32, g: U32 -> U32}\n  $Nil{}")
        self.decl("def $open(b: $Box, x: U32) -> U32:\n  match b:\n    case $Box{f, k}: f((x + k : U32))\n    case $Two{f, g}: g(f(x))\n    case $Nil{}: x")
        # A function out of the kinds that there are so far; `env`: names of U32 values that may be used any number of times.
        self.makers = []

        def function(env, depth):
            c = lambda: r.choice(env + [str(r.randrange(9))])
            self.fresh = getattr(self, "fresh", 0) + 1
            v = f"v{self.fresh}"
            ways = [lambda: f"({v} => ({v} {r.choice(['+', '*', '-', '.^.'])} {c()} : U32))", lambda: f"({v} => ({c()} - {v} : U32))",
                    lambda: f"({v} => $lsum([{c()}, {v}, {c()}], {c()}))", lambda: f"({v} => $three({c()}, {v}, {c()}))"]
            if depth > 0:
                inner = lambda: function(env, depth - 1)
                ways += [lambda: f"({v} => $comp({inner()}, {inner()}, {v}))", lambda: f"({v} => $ap({inner()}, ({v} + {c()} : U32)))", lambda: f"({v} => $open($Two{{{inner()}, {inner()}}}, {v}))",
                         lambda: f"({v} => $open($Box{{{inner()}, {c()}}}, {v}))"]
                ways += [lambda m=m: f"{m}({r.randrange(4)}n, {c()})" for m in self.makers] * 2
                ways += [lambda: f"({v} => (a b = $ap({inner()}, {c()}) $ap({inner()}, {c()}); (a * b + {v} : U32)))"]
            return r.choice(ways)()

        for k in range(r.randint(1, 3)):
            base = function(["x"], 2)
            step = r.choice([lambda: f"(y => $ap($mk{k}(p, (x * 3 : U32)), (y + x : U32)))", lambda: f"(y => $comp($mk{k}(p, x), {function(['x'], 1)}, y))", lambda: function(["x"], 2)])()
            self.decl(f"def $mk{k}(n: Nat, +x: U32) -> U32 -> U32:\n  match n:\n    case 0n:\n      {base}\n    case 1n++p:\n      {step}")
            self.makers.append(f"$mk{k}")
        self.decl("def $tree(n: Nat, f: U32 -> U32) -> U32:\n  match n:\n    case 0n:\n      f(1)\n    case 1n++p:\n" +
                  f"      a b = $tree(p, {function([], 2)}) $tree(p, {function([], 1)})\n      (f(a) * 3 + b : U32)")
        self.decl(f"def $list(n: Nat, +x: U32) -> List<(U32 -> U32)>:\n  match n:\n    case 0n:\n      [{function(['x'], 1)}]\n    case 1n++p:\n      {function(['x'], 2)} <> $list(p, (x + 1 : U32))")
        self.decl("def $each(fs: List<(U32 -> U32)>, +x: U32) -> U32:\n  match fs:\n    case []:\n      x\n    case f <> q:\n      a b = $ap(f, x) $each(q, (x + 1 : U32))\n      (a * 31 + b : U32)")
        self.decl(f"def $boxes(n: Nat, +x: U32) -> List<$Box>:\n  match n:\n    case 0n:\n      [$Nil{{}}]\n    case 1n++p:\n      a b = $boxes(p, (x * 2 : U32)) $boxes(p, (x * 2 + 1 : U32))\n      "
                  + r.choice([f"$Box{{{function(['x'], 2)}, x}}", f"$Two{{{function(['x'], 1)}, {function(['x'], 2)}}}"]) + " <> List.append(&1, $Box, a, b)")
        self.decl("def $all(bs: List<$Box>, +x: U32) -> U32:\n  match bs:\n    case []:\n      x\n    case b <> q:\n      a c = $open(b, x) $all(q, (x + 3 : U32))\n      (a - c * 5 : U32)")
        self.decl("def $made(n: Nat, f: U32 -> U32, g: U32 -> U32) -> U32 -> U32:\n  match n:\n    case 0n: f\n    case 1n: g\n    case _: (x => f(g(x)))")
        n = r.choice([0, 1, 3, 5])
        f = lambda: function([], 2)
        ways = [lambda: f"$ap!({f()}, 4)", lambda: f"$ap($made!({r.randrange(3)}n, {f()}, {f()}), 4)", lambda: f"$ap!($made!({r.randrange(3)}n, {f()}, {f()}), 4)", lambda: f"$tree!({n}n, {f()})",
                lambda: f"$each!($list({n}n, 2), 3)", lambda: f"$each!($list!({n}n, 2), 3)", lambda: f"$each($list!({n}n, 2), 3)", lambda: f"$all!($boxes!({n}n, 1), 2)", lambda: f"$all!($boxes({n}n, 1), 2)",
                lambda: f"$all($boxes!({n}n, 1), 2)", lambda: f"$open!($Two{{{f()}, {f()}}}, 3)"] + [lambda m=m: f"$ap!({m}!({n}n, 5), 6)" for m in self.makers] + [lambda m=m: f"$ap({m}!({n}n, 5), 6)" for m in self.makers]
        self.value = ' ++ " " ++ '.join(f"U32.show({r.choice(ways)()})" for _ in range(r.randint(2, 4))).replace("$", self.name)
