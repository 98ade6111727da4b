"""Walks of shared trees by children that functions choose (src/codegen/selectors.h), and walks that store, return or use again what was chosen."""
from shape import Shape


class WalkProgram(Shape):
    """Walks of a shared tree whose next node a function chooses, by a Bool, a number, a Cmp or another tree, bare or in a Maybe, a fresh leaf for a default; what is chosen is
    gone on with, hashed too, handed to both calls of a fork, stored in a new node, returned, or handed to another walk; a second tree goes along; the root is marked or not."""

    pure = True

    def make(self):
        r = self.rng
        self.ctors = [("Tip", ["U32"] if self.one_in(2) else [])]
        for i in range(r.randint(1, 3)):
            fields = ["$T"] * r.randint(1, 4) + ["U32"] * r.randint(0, 2)
            r.shuffle(fields)
            self.ctors.append((f"Bin{i}", fields))
        if self.one_in(3):
            self.ctors.append(("Nul", []))
        self.tip = "$Tip{3}" if self.ctors[0][1] else "$Tip{}"
        self.decl("type $T is Data:\n" + "\n".join(f"  ${c}{{{', '.join(f'x{i}: {t}' for i, t in enumerate(fields))}}}" for c, fields in self.ctors))
        self.trees()
        self.selectors = [self.selector(i) for i in range(r.randint(2, 5))]
        self.walks = []
        for i in range(r.randint(2, 4)):
            self.walk(i)
        self.ask()

    def built(self, ctor, tree, word):
        """A constructor with what the two functions give for its fields, by place."""
        name, fields = ctor
        return f"${name}{{{', '.join(tree(i) if t == '$T' else word(i) for i, t in enumerate(fields))}}}"

    def trees(self):
        r = self.rng
        arms = []
        for at, (c, fields) in enumerate(self.ctors):
            value = str(at + 1)
            for i, t in enumerate(fields):
                value = f"({value} * 31 + {f'$hash(x{i})' if t == '$T' else f'x{i}'} : U32)"
            arms.append(f"    case ${c}{{{', '.join(f'x{i}' for i in range(len(fields)))}}}: {value}")
        self.decl("def $hash(t: $T) -> U32:\n  match t:\n" + "\n".join(arms))
        bins = [c for c in self.ctors if "$T" in c[1]]
        arms = ["    case 0n: " + self.tip.replace("3", "x")]
        for d in range(r.randint(0, 2)):
            arms.append(f"    case {d + 1}n: " + self.built(r.choice(bins), lambda i: f"$make(0n, (x * 5 + {i} : U32))", lambda i: f"(x + {i} : U32)"))
        arms.append("    case 1n++p: " + self.built(r.choice(bins), lambda i: f"$make(p, (x * 7 + {i} : U32))", lambda i: f"(x + {i} : U32)"))
        self.decl("def $make(n: Nat, +x: U32) -> $T:\n  match n:\n" + "\n".join(arms))

    def selector(self, i):
        r = self.rng
        count, by, wrapped = r.randint(2, 4), r.choice(["Bool", "U32", "Cmp", "$T"]), self.one_in(3)
        names = [f"a{j}" for j in range(count)]

        def value():
            inner = r.choice(names) if r.random() < 0.8 else "$Nul{}" if ("Nul", []) in self.ctors and self.one_in(2) else self.tip
            return inner if not wrapped else "None{}" if self.one_in(5) else f"Some{{{inner}}}"

        cases = {"Bool": ["True{}", "False{}"], "U32": ["0", "1", "2", "_"], "Cmp": ["LT{}", "EQ{}", "_"], "$T": [f"${c}{{{', '.join('_' for _ in fields)}}}" for c, fields in self.ctors]}[by]
        self.decl(f"def $pick{i}(c: {by}, {', '.join(n + ': $T' for n in names)}) -> {'Maybe<&2, $T>' if wrapped else '$T'}:\n  match c:\n" + "\n".join(f"    case {c}: {value()}" for c in cases))
        return f"$pick{i}", by, count, wrapped

    def walk(self, i):
        r = self.rng
        name, (pick, by, count, wrapped), result, second = f"$walk{i}", r.choice(self.selectors), r.choice(["U32", "U32", "$T"]), self.one_in(2)
        end = {"U32": lambda t: r.choice([f"$hash({t})", "x", "7"]), "$T": lambda t: t}[result]
        nothing = {"U32": "x", "$T": self.tip}[result]
        arms = [f"    case _, None{{}}: {nothing}", f"    case 0n, Some{{t}}: {end('t')}"] if wrapped else [f"    case 0n, t: {end('t')}"]
        for c, fields in self.ctors:
            names = [f"x{j}" for j in range(len(fields))]
            pattern = f"${c}{{{', '.join('+' + n for n in names)}}}"
            trees = [n for n, t in zip(names, fields) if t == "$T"] + (["u"] if second else [])
            arms.append(f"    case 1n++p, {f'Some{{{pattern}}}' if wrapped else pattern}:")
            if not trees:
                arms.append("      " + r.choice([nothing, end(f"${c}{{{', '.join(names)}}}")]))
                continue
            word = r.choice([n for n, t in zip(names, fields) if t == "U32"] + ["x"])
            choice = {"Bool": f"U32.is_even({word})", "U32": f"({word} % 4 : U32)", "Cmp": f"U32.cmp(({word} % 8 : U32), 4)", "$T": r.choice(trees)}[by]
            arms.append(f"      +s = {pick}({', '.join([choice] + [r.choice(trees) if r.random() < 0.9 else self.tip for _ in range(count)])})")
            along = r.choice(trees) + ", " if second else ""
            again = lambda x: f"{name}(p, s, {along}{x})"
            on = again(f"(x * 3 + {r.randrange(10)} : U32)")
            ways = [on, on]
            if result == "U32":
                ways.append(f"U32.add({on}, $hash({r.choice(trees)}))")
                if not wrapped:
                    ways += [f"U32.add($hash(s), {on})", f"y z = {on} {again('(x + 1 : U32)')}\n      (y * 3 + z : U32)"]
                ways += [f"U32.add({other}(3n, s, {along}5), 1)" for other, w, res, sec in self.walks if w == wrapped and res == "U32" and sec == second]
            else:
                ways += [] if wrapped else ["s"]
                into = r.choice([c for c in self.ctors if "$T" in c[1]])
                first = into[1].index("$T")
                ways.append(self.built(into, lambda j: on if j == first else r.choice(trees), lambda j: "x"))
            arms.append("      " + r.choice(ways))
        self.decl(f"def {name}(+n: Nat, t: {'Maybe<&2, $T>' if wrapped else '$T'}, {'+u: $T, ' if second else ''}+x: U32) -> {result}:\n  match n t:\n" + "\n".join(arms))
        self.walks.append((name, wrapped, result, second))

    def ask(self):
        r = self.rng
        calls = []
        for name, wrapped, result, second in self.walks:
            call = f"{name}({r.randint(1, 9)}n, {'Some{t}' if wrapped else 't'}, {'t, ' if second else ''}{r.randrange(100)})"
            calls += [f"$hash({call})" if result == "$T" else call] * r.randint(1, 2)
        value = calls[0]
        for call in calls[1:]:
            value = f"U32.add(U32.mul({value}, 31), {call})"
        self.decl(f"def $all(+t: $T) -> U32:\n  {value}")
        mark, depth = r.choice(["", "!"]), r.randint(1, 4)
        self.about = [f"walks, depth {depth}"] + [f"{p}:{b}{'?' if w else ''}" for p, b, _, w in self.selectors] + [mark]
        self.value = f"U32.show($all{mark}($make({depth}n, {r.randrange(50)})))".replace("$", self.name)
        self.about = [a.replace("$", "") for a in self.about]
