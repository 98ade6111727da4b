"""One perfect tree over arrays and numbers: arguments with closed forms and without, nodes that read arrays before they fork, leaves that write slots of their own, results of any width."""
import re

from shape import Shape


class TreeProgram(Shape):
    """f(d, i, ..): both children one level less deep; leaves write slots of their own in one array and read others, nodes may read those too."""

    def make(self):
        r = self.rng
        self.common()
        d = r.choice([0, 1, 2, 3, 5, 6, 7, 9, 10, 11])
        read, write = self.one_in(2), self.one_in(2)
        node_reads = read and self.one_in(2)
        blocks = r.choice([0, 0, 1, 3, 4]) if write else 0          # log2 of the slots that a leaf writes
        alias = node_reads and write and self.one_in(2)             # one block; what is read lies behind what is written
        result = r.choice(["U32", "U32", "F32", "Nat", "Bool", "rec", "pair", "none"] if write else ["U32", "U32", "F32", "Nat", "Bool", "rec", "pair"])
        self.about = [f"depth {d}", f"result {result}"] + [w for w, on in (("reads", read), ("writes", write), ("nodes read", node_reads), ("alias", alias), (f"blocks of {1 << blocks}", blocks)) if on]
        params, left, right, root = ["+d: Nat", "+i: U32"], ["p", "(i * 2 : U32)"], ["p", r.choice(["(i * 2 + 1 : U32)", "(1 + 2 * i : U32)", "U32.inc((i * 2 : U32))"])], [f"{d}n", "0"]
        words = ["i"]
        top = self.one_in(3)                                        # numbers from 2^d on, as in a heap
        if top:
            root[1] = "1"
        more = []
        if self.one_in(3):
            k = r.choice([1, 1, 3, 5])
            more.append(("+lo: U32", "lo", f"(lo + U32.shln({k}, p) : U32)", str(r.choice([0, 7, 4294967290]))))
        if self.one_in(3):
            more.append(("+f: U32", "g0", "f", "11"))
            more.append(("+g0: U32", "f", r.choice(["g0", "f"]), "12"))
        if self.one_in(3):
            more.append(("+c: U32", "c", "c", str(r.randrange(99))))
        if self.one_in(4):
            more.append(("+z: U32", r.choice(["(z * 5 : U32)", "z", "(z + i : U32)"]), "(z .^. 3 : U32)", "1"))
        if self.one_in(5):
            more.append(("+n: Nat", "Nat.double(n)", r.choice(["Nat.add(Nat.double(n), 1n)", "n", "(1n+n)"]), "0n"))
        if self.one_in(5):
            more.append(("+x: F32", "(x / 2.0 : F32)", "(x / 2.0 + 0.5 : F32)", "0.75"))
        if node_reads:
            more.append(("+y: U32", r.choice(["y", "(y + i : U32)"]), "(y + q : U32)", "2"))
        if self.one_in(6):                                          # the depth is not the first argument, and a second Nat goes down too
            more.append(("+e: Nat", "p", "p", f"{d}n"))
        for param, l, g, start in more:
            params.append(param)
            left.append(l)
            right.append(g)
            root.append(start)
            name, kind = re.match(r"\+(\w+): (\w+)", param).groups()
            words.append({"U32": name, "Nat": f"U32.from_nat({name})", "F32": f"F32.to_u32(({name} * 4096.0 : F32))"}[kind])
        mix = "0"
        for w in words:
            mix = f"({mix} * {r.randrange(1, 1 << 32) | 1} + {w} : U32)"
        # The read array has 2^5 slots, or is the end of the written one.
        behind = f"{1 << (d + blocks + (1 if top else 0))}"
        lg = d + blocks + (2 if alias else 0) + (1 if top else 0)
        # A node may read what a leaf below it writes, and nobody else: in order, and on any number of threads, it reads first.
        below = alias and self.one_in(2)
        at = lambda x: f"({behind} + ({x} .&. {behind} - 1) : U32)" if alias else x
        self.decl("def $val(x: U32, r: Array<U32> & U32) -> U32:\n  (_, y) = r\n  (x * 3 + y : U32)")
        leaf = f"$many(13n, {mix})" if self.one_in(8) else mix
        self.decl(f"def $many(n: Nat, x: U32) -> U32:\n  match n:\n    case 0n:\n      x\n    case 1n+p:\n      $many(p, (x * 1664525 + 1013904223 : U32))")
        # U32 to the result, and two results to one.
        parts = {"U32": ("U32", "m", r.choice(["(x + y : U32)", "(x * 3 + y : U32)", "(x - y : U32)", "(x .^. y : U32)", "U32.max(x, y)", "x", "y", "(x + y + 1 : U32)"]), "r"),
                 "F32": ("F32", "U32.to_f32((m >> 8n : U32))", r.choice(["(x + y : F32)", "(x * 0.5 - y : F32)", "(y / (x + 1.0 : F32) : F32)"]), "F32.to_u32(r)"),
                 "Nat": ("Nat", "Nat.mod(U32.to_nat(m), 1000n)", r.choice(["Nat.add(x, y)", "Nat.sub(x, y)", "Nat.add(x, (1n+y))"]), "U32.from_nat(r)"),
                 "Bool": ("Bool", "U32.is_even(m)", r.choice(["Bool.and(x, y)", "Bool.xor(x, y)", "Bool.or(Bool.not(x), y)"]), "Bool.to_u32(r)"),
                 "rec": ("$Rec", "$Rec{m, (m >> 3n : U32), U32.to_nat((m .&. 7 : U32)), U32.is_even(m)}", "$recs(x, y)", "$rec.u32(r)"),
                 "pair": ("U32 & U32", "(m, (m >> 7n : U32))", "$pairs(x, y)", "$pair.u32(r)"),
                 "none": ("Unit", "Unit{}", "x", "0")}[result]
        kind, value, post, shown = parts
        if result == "rec":
            self.decl("type $Rec is Data:\n  $Rec{a: U32, b: U32, c: Nat, e: Bool}")
            self.decl("def $recs(x: $Rec, y: $Rec) -> $Rec:\n  match x y:\n    case $Rec{a, b, c, e}, $Rec{f, g, h, k}:\n      $Rec{" + r.choice(["(a + f : U32), (b .^. g : U32)", "(b - f : U32), (a * g : U32)"]) + ", Nat.max(c, h), Bool.xor(e, k)}")
            self.decl("def $rec.u32(x: $Rec) -> U32:\n  match x:\n    case $Rec{a, b, c, e}: (a * 7 + b * 5 + U32.from_nat(c) * 3 + Bool.to_u32(e) : U32)")
        if result == "pair":
            self.decl("def $pairs(x: U32 & U32, y: U32 & U32) -> U32 & U32:\n  match x y:\n    case (a, b), (c, e): " + r.choice(["((a + c : U32), (b * e : U32))", "(b, c)", "(a, b)", "((a - e : U32), c)"]))
            self.decl("def $pair.u32(x: U32 & U32) -> U32:\n  (a, b) = x\n  (a * 3 + b : U32)")
        if result not in ("none",) and self.one_in(4):
            self.about.append("post looks at its arguments")
            pick = {"U32": "(i + d.u : U32)", "F32": "U32.to_f32(i)", "Nat": "Nat.mod(U32.to_nat(i), 5n)", "Bool": "U32.is_even(i)"}.get(kind)
            if pick:
                post = re.sub(r"\b" + r.choice("xy") + r"\b", pick.replace("d.u", "U32.from_nat(p)"), post, count=1)
        self.decl(f"def $leaf(m: U32) -> {kind}:\n  " + value if value.count("m") == 1 and result not in ("rec", "pair", "none") else f"def $leaf(+m: U32) -> {kind}:\n  {value}")
        if not write:
            arrays = ["r: Array<U32> & Array<U32> & Array<U32>"] if read else []
            matched, pattern = ("d r", ", (t, u, v)") if read else ("d", "")
            if read:
                self.decl("def $three(r: Array<U32> & Array<U32>) -> Array<U32> & Array<U32> & Array<U32>:\n  (t, u) = r\n  (t, Array.fork(U32, u))")
                leaf = f"$val({leaf}, t[{r.choice(['i', '(i * 7 + 1 : U32)', '3'])}])"
            children = [", ".join(left), ", ".join(right)]
            if read:
                children = [children[0] + ", $three(Array.fork(U32, u))", children[1] + ", $three(Array.fork(U32, v))"]
            if node_reads:
                children = [c.replace("(y + q : U32)", f"$val(y, t[{r.choice(['i', 'c0', '(i + 1 : U32)']).replace('c0', '5')}])") for c in children]
            self.decl(f"def $tree({', '.join(params + arrays)}) -> {kind}:\n  match {matched}:\n    case 0n{pattern}:\n      $leaf({leaf})\n    case 1n+p{pattern}:\n"
                      f"      x y = $tree({children[0]}) $tree({children[1]})\n      {post}")
            self.decl(f"def $run(n: Nat{', a: Array<U32>' if read else ''}) -> {kind}:\n  $tree({', '.join(root)}{', $three(Array.fork(U32, a))' if read else ''})")
            call = f"$run!(0n{', $made(5n)' if read else ''})"
            self.decl(f"def $told(r: {kind}) -> String:\n  U32.show({shown})")
            self.value = f"$told({call})".replace("$", self.name)
            return
        # With an array that is written: handles go down and come back.
        self.decl(f"type $Out is Type:\n  $Out{{w: Array<U32>, x: {kind}}}")
        self.decl(f"def $outs(x: $Out, y: $Out) -> $Out:\n  match x y:\n    case $Out{{a, x}}, $Out{{b, y}}:\n      $Out{{Array.join(U32, a, b), {post if 'U32.from_nat(p)' not in post and '(i' not in post else 'x' }}}")
        self.decl("def $write(n: Nat, +j: U32, +m: U32, a: Array<U32>) -> Array<U32>:\n  match n:\n    case 0n:\n      a\n    case 1n+p:\n      $write(p, (j + 1 : U32), (m * 5 + 1 : U32), a[j] <- m)")
        arrays = ["w: Array<U32> & Array<U32>"] + (["r: Array<U32> & Array<U32> & Array<U32>"] if read else [])
        matched, pattern = ("d w r", ", (g, h), (t, u, v)") if read else ("d w", ", (g, h)")
        if read:
            self.decl("def $three(r: Array<U32> & Array<U32>) -> Array<U32> & Array<U32> & Array<U32>:\n  (t, u) = r\n  (t, Array.fork(U32, u))")
            leaf = f"$val({leaf}, t[{at(r.choice(['i', '(i * 7 + 1 : U32)', '3']))}])"
        stored = f"$write({1 << blocks}n, U32.shln(i, {blocks}n), m, a)" if blocks else "a[i] <- m"
        if self.one_in(3):
            stored = f"Array.set(U32, {'a' if not blocks else stored}, {'i' if not blocks else f'U32.shln(i, {blocks}n)'}, m)"
        self.decl(f"def $end(+i: U32, +m: U32, a: Array<U32>) -> $Out:\n  $Out{{{stored}, $leaf(m)}}")
        children = [", ".join(left) + ", Array.fork(U32, g)", ", ".join(right) + ", Array.fork(U32, h)"]
        if read:
            children = [children[0] + ", $three(Array.fork(U32, u))", children[1] + ", $three(Array.fork(U32, v))"]
        if node_reads:
            children = [c.replace("(y + q : U32)", f"$val(y, t[{f'U32.shln(i, Nat.add(d, {blocks}n))' if below else at(r.choice(['i', '5', '(i + 1 : U32)']))}])") for c in children]
        handles = result == "none" and self.one_in(2)
        if handles:                                                 # nothing comes back but the array
            self.decl(f"def $tree({', '.join(params + arrays)}) -> Array<U32>:\n  match {matched}:\n    case 0n{pattern}:\n      $only($end(i, {leaf}, Array.join(U32, g, h)))\n    case 1n+p{pattern}:\n"
                      f"      x y = $tree({children[0]}) $tree({children[1]})\n      Array.join(U32, x, y)")
            self.decls.insert(-1, f"def {self.name}only(o: {self.name}Out) -> Array<U32>:\n  {self.name}Out{{a, _}} = o\n  a")
        else:
            self.decl(f"def $tree({', '.join(params + arrays)}) -> $Out:\n  match {matched}:\n    case 0n{pattern}:\n      $end(i, {leaf}, Array.join(U32, g, h))\n    case 1n+p{pattern}:\n"
                      f"      x y = $tree({children[0]}) $tree({children[1]})\n      $outs(x, y)")
        out = "Array<U32>" if handles else "$Out"
        if read:
            self.decl(f"def $run(n: Nat, w: Array<U32>, a: Array<U32>) -> {out}:\n  $tree({', '.join(root)}, Array.fork(U32, w), $three(Array.fork(U32, a)))")
            call = f"$run!(0n, $made({lg}n), $made(5n))"
            if alias:
                self.decl(f"def $one(n: Nat, r: Array<U32> & Array<U32>) -> {out}:\n  (w, a) = r\n  $run(n, w, a)")
                call = f"$one!(0n, Array.fork(U32, $made({lg}n)))"
        else:
            self.decl(f"def $run(n: Nat, w: Array<U32>) -> {out}:\n  $tree({', '.join(root)}, Array.fork(U32, w))")
            call = f"$run!(0n, $made({lg}n))"
        if handles:
            self.value = f"U32.show($hash({lg}n, {call}))".replace("$", self.name)
        else:
            self.decl(f"def $res(r: {kind}) -> U32:\n  {shown}")
            self.decl(f"def $told(+lg: Nat, o: $Out) -> String:\n  $Out{{a, x}} = o\n  U32.show($hash(lg, a)) ++ \" \" ++ U32.show($res(x))")
            self.value = f"$told({lg}n, {call})".replace("$", self.name)
