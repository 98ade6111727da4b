"""Programs beyond the core of programs.py: wide records with boxed fields, closures and records in data, arrays, user templates, forks that recurse,
deep patterns, raw lambda-matches, and mutual @unsafe functions (the evaluator gets the same two functions behind a selector)."""
import programs
from programs import BOOL, CHAR, LIST, NAT, PAIR, STR, U32, Program

CLO = "U32 -> U32"
ARR = "Array<U32>"
CLOS = f"List<({CLO})>"


class WideProgram(Program):
    def __init__(self, rng, name):
        self.late = []
        self.NEST = f"List<&2, Maybe<&2, Sigma<&2, &2, {name}Wide, _ => String>>>"
        self.NATS = "List<&2, List<&2, Nat>>"
        self.wide = None
        self.templates = []
        super().__init__(rng, name)

    # Called by the base class once its own types are declared.
    def more_types(self):
        r, n = self.rng, self.name
        fields = [r.choice([U32, NAT, BOOL, STR, LIST, CHAR, PAIR, n + "Enum", n + "Rec", self.T]) for _ in range(r.choice([3, 7, 9, 17, 24]))]
        self.wide = fields
        self.decls.append(f"type {n}Wide is Data:\n  {n}Wd{{{', '.join(f'w{i}: {t}' for i, t in enumerate(fields))}}}\n  {n}Wz{{}}\n  {n}Wn{{w: {n}Wide, k: U32}}\n")
        self.decls.append(f"type {n}Box is Type:\n  {n}Bx{{f: {CLO}, k: U32, a: {ARR}}}\n  {n}Bn{{b: {n}Box, c: {CLO}}}\n")
        self.decls.append(f"def {n}get(r: {ARR} & U32) -> U32:\n  (a, x) = r\n  (x + {r.randrange(9)} : U32)\n")
        self.decls.append(f"def {n}size(r: {ARR} & U32) -> {ARR}:\n  (a, +x) = r\n  a[(x - 1 : U32)] <- x\n")
        self.decls.append(f"def {n}swap(r: {ARR} & U32) -> {ARR}:\n  (a, x) = r\n  a[x] <- 77\n")
        self.decls.append(f"def {n}unbox(b: {n}Box, x: U32) -> U32:\n  match b:\n    case {n}Bx{{f, k, a}}:\n      (f(x) + (k + {n}get(a[2]) : U32) : U32)\n"
                          f"    case {n}Bn{{b, c}}:\n      {n}unbox(b, c(x))\n")
        self.decls.append(f"def {n}each(fs: {CLOS}, x: U32) -> U32:\n  match fs:\n    case []:\n      x\n    case f <> t:\n      {n}each(t, f(x))\n")
        self.decls.append(f"def {n}mapt(~g: {CLO}, xs: {LIST}) -> {LIST}:\n  match xs:\n    case []:\n      []\n    case h <> t:\n      g(g(h)) <> {n}mapt(~g, t)\n")
        self.decls.append(f"def {n}foldt(~A: Data, ~g: U32 -> A -> A, z: A, xs: {LIST}) -> A:\n  match xs:\n    case []:\n      z\n    case h <> t:\n      g(h, {n}foldt(~A, ~g, z, t))\n")

    def types(self):
        more = [self.NEST, self.NATS, self.name + "Wide"] if self.wide else []
        return super().types() + more

    def affine(self):
        return [CLO, ARR, CLOS, self.name + "Box"] if self.wide else []

    def literal(self, t):
        r, n = self.rng, self.name
        if t == CLO:
            return r.choice(["(q => q)", f"(q => (q * {r.randrange(99)} : U32))", "(q => U32.not(q))"])
        if t == ARR:
            return r.choice([f"[{r.randrange(9)} : U32*{r.choice([1, 2, 4, 8])}n]", "Array.new(U32, 3n, 5)"])
        if t == CLOS:
            return r.choice(["[]", "[(q => (q + 3 : U32))]"])
        if t == self.NATS:
            return r.choice(["[]", "[[]]", "[[1n, 500n], [], [0n]]"])
        if t == self.NEST:
            return r.choice(["[]", "[None{}]", f'[Some{{({n}Wz{{}}, "ab")}}, None{{}}]'])
        if t == n + "Wide":
            return f"{n}Wz{{}}"
        if t == n + "Box":
            return f"{n}Bx{{{self.literal(CLO)}, {r.randrange(99)}, {self.literal(ARR)}}}"
        return super().literal(t)

    def expr(self, t, env, depth):
        r, n = self.rng, self.name
        if not self.wide or depth <= 0 or r.random() < 0.5:
            own = (CLO, ARR, CLOS, self.NATS, self.NEST, n + "Wide", n + "Box")
            if t not in own or depth <= 0:
                return super().expr(t, env, depth)
        got = self.spend(env, t)
        if got is not None:
            return got
        calls = [f for f in self.funcs if f[2] == t]
        sub = lambda u: self.expr(u, env, depth - 1)
        if calls and r.random() < 0.25:
            name, params, _ = r.choice(calls)
            return f"{name}({', '.join(self.fuel() if p == 'fuel' else sub(p) for p in params)})"
        if t == CLO:
            def lam():
                v = self.var()
                inner = env + [[v, U32, 1]]
                return f"({v} => {self.expr(U32, inner, depth - 1)})"
            return r.choice([lam, lam, lambda: f"(q => {n}each({sub(CLOS)}, q))", lambda: f"(q => {n}unbox({sub(n + 'Box')}, q))"])()
        if t == ARR:
            return r.choice([lambda: f"Array.new(U32, {r.randrange(5)}n, {sub(U32)})", lambda: f"Array.set(U32, {sub(ARR)}, {sub(U32)}, {sub(U32)})",
                             lambda: f"{n}size(Array.size(U32, {sub(ARR)}))", lambda: f"{n}swap(Array.swap(U32, {sub(ARR)}, {sub(U32)}, {sub(U32)}))",
                             lambda: f"ANode{{{self.literal('Array<U32>').replace('U32*1n', 'U32*4n').replace('U32*2n', 'U32*4n').replace('U32*8n', 'U32*4n').replace('3n, 5', '2n, 5')}, [{sub(U32)} : U32*4n]}}"])()
        if t == CLOS:
            return r.choice([lambda: f"{sub(CLO)} <> {sub(CLOS)}", lambda: f"[{sub(CLO)}, {sub(CLO)}]"])()
        if t == n + "Box":
            return r.choice([lambda: f"{n}Bx{{{sub(CLO)}, {sub(U32)}, {sub(ARR)}}}", lambda: f"{n}Bn{{{sub(n + 'Box')}, {sub(CLO)}}}"])()
        if t == self.NATS:
            return r.choice([lambda: f"[{sub(NAT)}, {sub(NAT)}] <> {sub(self.NATS)}", lambda: f"[] <> {sub(self.NATS)}"])()
        if t == self.NEST:
            return r.choice([lambda: f"Some{{({sub(n + 'Wide')}, {sub(STR)})}} <> {sub(self.NEST)}", lambda: f"None{{}} <> {sub(self.NEST)}",
                             lambda: f"List.append(&2, Maybe<&2, Sigma<&2, &2, {n}Wide, _ => String>>, {sub(self.NEST)}, {sub(self.NEST)})"])()
        if t == n + "Wide":
            return r.choice([lambda: f"{n}Wd{{{', '.join(self.expr(f, env, min(depth - 2, 1)) for f in self.wide)}}}", lambda: f"{n}Wn{{{sub(n + 'Wide')}, {sub(U32)}}}"])()
        if t == U32:
            return r.choice([lambda: f"{n}get({sub(ARR)}[{sub(U32)}])", lambda: f"{n}unbox({sub(n + 'Box')}, {sub(U32)})", lambda: f"{n}each({sub(CLOS)}, {sub(U32)})",
                             lambda: f"{{{sub(CLO)} : {CLO}}}({sub(U32)})"])()
        if t == LIST and r.random() < 0.5:
            return f"{n}mapt(~(z => (z {r.choice('+-*')} {r.randrange(50)} : U32)), {sub(LIST)})"
        if t == NAT and r.random() < 0.5:
            return f"{n}foldt(~Nat, ~(h => z => (z + U32.to_nat(h) : Nat)), {sub(NAT)}, {sub(LIST)})"
        if t in (NAT, STR, BOOL) and r.random() < 0.5:
            still = [v for v in env if v[2] is None]
            arm = lambda: self.expr(t, self.copy(still), depth - 2)
            return f"{{\\{{True: {arm()}; False: {arm()}}} : Bool -> {t}}}({sub(BOOL)})"
        return super().expr(t, env, depth)

    def params(self):
        out = super().params()
        if self.wide and self.rng.random() < 0.4:
            out.insert(self.rng.randrange(len(out) + 1), (self.var(), self.rng.choice(self.affine()), False))
        return out

    def data(self, t):
        return t not in (CLO, ARR, CLOS, self.name + "Box")

    def function(self, i):
        if not self.wide:
            self.more_types()
        r, n = self.rng, self.name
        kind = r.choice(["base", "base", "nest", "nats", "widem", "box", "mutual", "treefork", "make", "text", "deepnat", "two"])
        if kind == "base":
            return super().function(i)
        name, params, result = f"{n}f{i}", self.params(), r.choice(self.types())
        env, plain = self.env_of(params), [t for _, t, _ in params]
        match = lambda t, arms: self.matching(name, t, arms, params, result)
        if kind == "make":
            result = r.choice(self.affine())
            self.decls.append(self.header(name, None, params, result) + self.body(result, env, "  ", 3))
            self.funcs.append((name, plain, result))
        elif kind == "nest":
            w, s = n + "Wide", STR
            rest = [("[]", []), (f"None{{}} <> t", [["t", self.NEST, 1]]), (f'Some{{(w, "ab")}} <> t', [["w", w, 1], ["t", self.NEST, 1]]),
                    (f"Some{{({n}Wn{{w, 3}}, s)}} <> t", [["w", w, 1], ["s", s, 1], ["t", self.NEST, 1]]), ("o", [["o", self.NEST, 1]])]
            match(self.NEST, self.some(rest))
        elif kind == "nats":
            rest = [("[]", []), ("[[0n, x], y]", [["x", NAT, 1], ["y", "List<&2, Nat>", 1]]), ("((3n+x) <> y) <> z", [["x", NAT, 1], ["z", self.NATS, 1]]),
                    ("(2n <> y) <> z", [["z", self.NATS, 1]]), ("[] <> t", [["t", self.NATS, 1]]), ("o", [["o", self.NATS, 1]])]
            match(self.NATS, self.some(rest))
        elif kind == "text":
            rest = [('""', []), ('"ab"', []), ("'a' <> t", None), ('"ba"', []), ("o", [["o", STR, 1]])]
            match(STR, self.some([x for x in rest if x[1] is not None]))
        elif kind == "deepnat":
            rest = [("0n", []), ("7n", []), ("300n", []), ("2n+x", [["x", NAT, 1]]), ("70000n", []), ("o", [["o", NAT, 1]])]
            match(NAT, self.some(rest))
        elif kind == "widem":
            names = [self.var() for _ in self.wide]
            rest = [(f"{n}Wz{{}}", []), (f"{n}Wd{{{', '.join(names)}}}", [[v, k, 1] for v, k in zip(names, self.wide)]),
                    (f"{n}Wn{{{n}Wn{{w, k}}, 5}}", [["w", n + "Wide", 1], ["k", U32, 1]]), (f"{n}Wn{{w, k}}", [["w", n + "Wide", 1], ["k", U32, 1]]), ("o", [["o", n + "Wide", 1]])]
            match(n + "Wide", self.some(rest))
        elif kind == "box":
            box = n + "Box"
            rest = [(f"{n}Bx{{f, k, a}}", [["f", CLO, 1], ["k", U32, 1], ["a", ARR, 1]]), (f"{n}Bn{{{n}Bx{{f, k, a}}, c}}", [["f", CLO, 1], ["c", CLO, 1], ["a", ARR, 1]]),
                    ("o", [["o", box, 1]])]
            match(box, self.some(rest))
        elif kind == "two":
            a, b = r.choice([NAT, BOOL, LIST]), r.choice([NAT, BOOL, LIST])
            pats = {NAT: [("0n", []), ("1n+x", NAT)], BOOL: [("True{}", []), ("False{}", [])], LIST: [("[]", []), ("5 <> x", LIST), ("h <> x", LIST)]}
            text = self.header(name, f"s: {a}, u: {b}", params, result) + "  match s, u:\n"
            for _ in range(r.randint(1, 4)):
                bound, words = [], []
                for t, suffix in ((a, "1"), (b, "2")):
                    if r.random() < 0.25:
                        words.append("_")
                        continue
                    p, x = r.choice(pats[t])
                    if x:
                        p = p.replace("x", "x" + suffix).replace("h", "h" + suffix)
                        bound.append(["x" + suffix, x, 1])
                    words.append(p)
                text += f"    case {words[0]}, {words[1]}:\n" + self.body(result, self.copy(env) + bound, "      ", 2)
            text += "    case s, u:\n" + self.body(result, self.copy(env) + [["s", a, 1], ["u", b, 1]], "      ", 2)
            self.decls.append(text)
            self.funcs.append((name, [a, b] + plain, result))
        elif kind == "treefork":
            many = [(v, t, True) for v, t, _ in params if self.data(t)]
            env = self.env_of(many)
            args = "".join(", " + v for v, _, _ in many)
            k = r.randint(2, 3)
            names = [self.var() for _ in range(k)]
            calls = " ".join(f"{name}(p{args})" for _ in names)
            text = self.header(name, "+n: Nat", many, result) + "  match n:\n    case 0n:\n" + self.body(result, self.copy(env), "      ", 2)
            text += f"    case 1n+p:\n      {' '.join('+' + v for v in names)} = {calls}\n" + self.body(result, env + [[v, result, None] for v in names] + [["p", NAT, None]], "      ", 2)
            self.decls.append(text)
            self.funcs.append((name, ["fuel"] + [t for _, t, _ in many], result))
        elif kind == "mutual":
            many = [(v, t, True) for v, t, _ in params if self.data(t)]
            env = self.env_of(many)
            vs = "".join(", " + v for v, _, _ in many)
            base = self.body(result, self.copy(env), "      ", 2)
            steps = [self.body(result, env + [["rec", result, None], ["p", NAT, None]], "      ", 2) for _ in range(2)]
            tail = r.random() < 0.4   # a tail call, or the recursive result used further
            arm = lambda call, step: f"      {call}\n" if tail else f"      +rec = {call}\n" + step
            real = ""
            for me, other, step in ((name, name + "o", steps[0]), (name + "o", name, steps[1])):
                real += "@unsafe " + self.header(me, "+n: Nat", many, result) + f"  match n:\n    case 0n:\n{base}    case 1n+p:\n" + arm(f"{other}(p{vs})", step) + "\n"
            model = self.header(name + "m", "+n: Nat, sel: Bool", many, result) + f"  match n, sel:\n    case 0n, _:\n{base}"
            for sel, other, step in (("True{}", "False{}", steps[0]), ("False{}", "True{}", steps[1])):
                model += f"    case 1n+p, {sel}:\n" + arm(f"{name}m(p, {other}{vs})", step)
            for me, sel in ((name, "True{}"), (name + "o", "False{}")):
                model += "\n" + self.header(me, "+n: Nat", many, result) + f"  {name}m(n, {sel}{vs})\n"
            self.decls.append((model, real))
            self.funcs.append((name, ["fuel"] + [t for _, t, _ in many], result))

    def some(self, rows):
        """Some of the rows in any order; the last, a variable, stays."""
        r = self.rng
        first = [x for x in rows[:-1] if r.random() < 0.7]
        if r.random() < 0.3:
            r.shuffle(first)
        return first + rows[-1:]

    def matching(self, name, t, arms, params, result):
        text = self.header(name, f"{'+' if self.data(t) and self.rng.random() < 0.3 else ''}s: {t}", params, result) + "  match s:\n"
        for pattern, bound in arms:
            text += f"    case {pattern}:\n" + self.body(result, self.copy(self.env_of(params)) + [list(b) for b in bound], "      ", 2)
        self.decls.append(text)
        self.funcs.append((name, [t] + [x for _, x, _ in params], result))
