"""Programs whose functions hand arrays on and get them back: alone, with an element, in records of two, through recursion of every shape, closures, clones,
matches on ALeaf and ANode, and trees of forks over handles, whose leaves write slots of their own: every array has four or more. Where a fork shares a block the evaluator gets the same tree one branch after the other, since
Array.fork's definition copies."""
from programs import U32, Program

ARR = "Array<U32>"
DEAREST = 300   # steps of a function that others still call


class ThreadedProgram(Program):
    def __init__(self, rng, name):
        self.rng, self.name, self.decls, self.funcs, self.fresh = rng, name, [], [], 0
        n, self.pair, self.two = name, f"{ARR} & U32", name + "Two"
        self.result = U32
        self.states = {ARR: "Array.new(U32, 3n, 5)", self.pair: "(Array.new(U32, 2n, 3))[1]", self.two: f"{n}Mk{{Array.new(U32, 2n, 8), Array.new(U32, 3n, 1), 4}}"}
        self.decls.append(f"type {self.two} is Type:\n  {n}Mk{{a: {ARR}, b: {ARR}, k: U32}}\n")
        self.decls.append(f"def {n}put(r: {self.pair}) -> {ARR}:\n  (a, +x) = r\n  a[(x + {rng.randrange(5)} : U32)] <- (x * 5 + 1 : U32)\n")
        self.decls.append(f"def {n}fst(r: {self.pair}) -> {ARR}:\n  (a, _) = r\n  a\n")
        self.decls.append(f"def {n}second(r: {ARR} & {ARR}) -> {ARR}:\n  (a, b) = r\n  b\n")
        self.decls.append(f"def {n}sum(n: Nat, +i: U32, s: U32, r: {self.pair}) -> U32:\n  match n r:\n    case 0n, (_, x):\n      (s * 31 + x : U32)\n"
                          f"    case 1n+p, (a, x):\n      +j = (i + 1 : U32)\n      {n}sum(p, j, (s * 31 + x : U32), a[j])\n")
        self.decls.append(f"def {n}hash(a: {ARR}) -> U32:\n  {n}sum(7n, 0, 0, a[0])\n")
        self.decls.append(f"def {n}hash2(t: {self.two}) -> U32:\n  {n}Mk{{a, b, k}} = t\n  ({n}hash(a) + {n}hash(b) * 7 + k : U32)\n")
        for i in range(rng.randint(3, 7)):
            self.threaded(i)
        parts = []
        for f in self.funcs:
            call = self.call(f, [], self.states[f["in"]])
            parts.append({ARR: f"{n}hash({call})", self.pair: f"{n}hash({n}put({call}))", self.two: f"{n}hash2({call})"}[f["out"]])
        self.decls.append(f"def {n}main() -> U32:\n  ({' + '.join(parts)} : U32)\n")

    def scalar(self, scalars):
        r = self.rng
        v = r.choice(scalars) if scalars and r.random() < 0.7 else str(r.randrange(9))
        return r.choice([lambda: v, lambda: f"({v} {r.choice(['+', '*', '.^.'])} {r.randrange(1, 9)} : U32)"])()

    def call(self, f, scalars, state):
        return f"{f['name']}({', '.join([f'{self.rng.randrange(4)}n'] + [self.scalar(scalars) for _ in range(f['scalars'])] + [state])})"

    def callable(self, into, out):
        return [f for f in self.funcs if f["in"] == into and f["out"] == out and f["cost"] < DEAREST]

    # An array made of `a`, which is spent: mostly the same block.
    def array(self, a, scalars, budget=3):
        r, n = self.rng, self.name
        for _ in range(r.randrange(budget)):
            i, x = self.scalar(scalars), self.scalar(scalars)
            ways = [lambda: f"Array.set(U32, {a}, {i}, {x})", lambda: f"({a}[{i}] <- {x})", lambda: f"{n}put({a}[{i}])" if a.isidentifier() else f"{n}put(Array.get(U32, {a}, {i}))",
                    lambda: f"{n}put(Array.swap(U32, {a}, {i}, {x}))", lambda: f"{n}put(Array.size(U32, {a}))", lambda: f"{n}put(Array.atomic.add({a}, {i}, {x}))",
                    lambda: f"{n}fst(Array.swap(U32, {a}, {i}, {x}))"]
            if r.random() < 0.12:
                ways = [lambda: f"{n}second(Array.clone(U32, {a}))", lambda: f"Array.set(U32, Array.new(U32, 2n, {n}hash({a})), {i}, {x})",
                        lambda: f"{{(q => Array.set(U32, q, {i}, {x})) : {ARR} -> {ARR}}}({a})"]
            near = self.callable(ARR, ARR)
            if near and r.random() < 0.4:
                f = r.choice(near)
                self.spent += f["cost"]
                ways = [lambda: self.call(f, scalars, a)]
                if r.random() < 0.15:
                    some = [self.scalar(scalars) for _ in range(f["scalars"])]
                    ways = [lambda: f"{{(q => {f['name']}({', '.join([f'{r.randrange(4)}n'] + some + ['q'])})) : {ARR} -> {ARR}}}({a})"]
            a = r.choice(ways)()
        return a

    def with_element(self, a, scalars):
        a = self.array(a, scalars, 2)
        return self.rng.choice([lambda: f"Array.get(U32, {a}, {self.scalar(scalars)})", lambda: f"Array.swap(U32, {a}, {self.scalar(scalars)}, {self.scalar(scalars)})",
                                lambda: f"Array.size(U32, {a})"])()

    def both(self, a, b, k, scalars):
        r = self.rng
        if r.random() < 0.15:
            a, b = b, a
        if r.random() < 0.1:
            b = f"Array.set(U32, Array.new(U32, 2n, 6), 0, {self.name}hash({b}))"
        made = f"{self.name}Mk{{{self.array(a, scalars, 2)}, {self.array(b, scalars, 2)}, {self.scalar(scalars + ([k] if k else []))}}}"
        near = self.callable(self.two, self.two)
        if near and r.random() < 0.3:
            f = r.choice(near)
            self.spent += f["cost"]
            return self.call(f, scalars, made)
        return made

    def threaded(self, i):
        r, n = self.rng, self.name
        name, count = f"{n}f{i}", r.randrange(3)
        scalars = [f"s{k}" for k in range(count)]
        more = "".join(f", +{s}: U32" for s in scalars)
        self.spent = 4
        again = lambda state, fuel="p": f"{name}({', '.join([fuel] + [self.scalar(scalars) for _ in scalars] + [state])})"
        kind = r.choice(["array", "array", "nested", "pair", "two", "two", "leaves", "fork", "mutual"])
        into = out = {"pair": self.pair, "two": self.two}.get(kind, ARR)
        header = f"def {name}(n: Nat{more}, a: {into}) -> {out}:\n"
        turns = 4
        if kind in ("array", "nested"):
            text = header.replace("n: Nat", "+n: Nat" if kind == "nested" else "n: Nat") + f"  match n:\n    case 0n:\n      {self.array('a', scalars)}\n"
            if kind == "array":
                step = again(self.array("a", scalars))
                step = step if r.random() < 0.6 else self.array(step, scalars, 2)
                text += f"    case 1n+p:\n      {step}\n"
            else:
                turns = 16
                text += f"    case 1n++p:\n      {again(self.array(again(self.array('a', scalars, 2)), scalars, 2))}\n"
        elif kind == "pair":
            text = header + f"  match n a:\n    case 0n, (b, x):\n      (b, {r.choice(['x', '(x + 1 : U32)'])})\n"
            text += f"    case 1n+p, (b, x):\n      {again(self.with_element(r.choice(['b', 'Array.set(U32, b, 1, x)']), scalars))}\n"
        elif kind == "two":
            text = header + f"  match n a:\n    case 0n, t:\n      t\n    case 1n+p, {n}Mk{{x, y, +k}}:\n      {again(self.both('x', 'y', 'k', scalars))}\n"
        elif kind == "leaves":
            text = header + f"  match n a:\n    case 0n, ALeaf{{x}}:\n      ALeaf{{(x + 1 : U32)}}\n    case 0n, b:\n      b\n    case 1n++p, ALeaf{{x}}:\n      ALeaf{{(x * 3 : U32)}}\n"
            text += f"    case 1n++p, ANode{{xs, ys}}:\n      ANode{{{again('xs')}, {again('ys')}}}\n"
            turns = 16
        elif kind == "fork":
            put = f"Array.set(U32, b, i, (i * {r.randrange(1, 9)} + d : U32))"
            left, right = f"{name}t(p, (i * 2 : U32), d", f"{name}t(p, (i * 2 + 1 : U32), d"
            top = f"def {name}(n: Nat{more}, a: {ARR}) -> {ARR}:\n  {name}t(Nat.min(n, 2n), 0, {self.scalar(scalars)}, "
            model = f"def {name}t(d0: Nat, +i: U32, +d: U32, b: {ARR}) -> {ARR}:\n  match d0:\n    case 0n:\n      {put}\n    case 1n++p:\n      {right}, {left}, b))\n\n" + top + "a)\n"
            real = (f"def {name}t(d0: Nat, +i: U32, +d: U32, r: {ARR} & {ARR}) -> {ARR}:\n  match d0 r:\n    case 0n, (x, y):\n      {put.replace('U32, b', 'U32, Array.join(U32, x, y)')}\n"
                    f"    case 1n++p, (x, y):\n      v w = {left}, Array.fork(U32, x)) {right}, Array.fork(U32, y))\n      Array.join(U32, v, w)\n\n" + top + "Array.fork(U32, a))\n")
            self.decls.append((model, real))
            text, turns = None, 16
        else:
            bases, steps = [self.array("a", scalars, 2) for _ in range(2)], [self.array("a", scalars, 2) for _ in range(2)]
            given = ", ".join([self.scalar(scalars) for _ in scalars])
            given = given + ", " if given else ""
            real = model = ""
            for me, other, base, step in ((name, name + "o", bases[0], steps[0]), (name + "o", name, bases[1], steps[1])):
                real += f"@unsafe def {me}(n: Nat{more}, a: {ARR}) -> {ARR}:\n  match n:\n    case 0n:\n      {base}\n    case 1n+p:\n      {other}(p, {given}{step})\n\n"
            model = f"def {name}m(n: Nat, sel: Bool{more}, a: {ARR}) -> {ARR}:\n  match n sel:\n"
            for sel, base in zip(("True{}", "False{}"), bases):
                model += f"    case 0n, {sel}:\n      {base}\n"
            for sel, other, step in (("True{}", "False{}", steps[0]), ("False{}", "True{}", steps[1])):
                model += f"    case 1n+p, {sel}:\n      {name}m(p, {other}, {given}{step})\n"
            model += f"\ndef {name}(n: Nat{more}, a: {ARR}) -> {ARR}:\n  {name}m(n, True{{}}, {', '.join(scalars + ['a'])})\n"
            self.decls.append((model, real))
            text = None
        if text:
            self.decls.append(text)
        self.funcs.append({"name": name, "scalars": count, "in": into, "out": out, "cost": turns * self.spent})
