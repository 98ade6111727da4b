"""Arrays of all sizes that go from host to device and back, several MiB too (src/runtime/gpu/residency.h)."""
from shape import Shape


class MovesProgram(Shape):
    """Arrays of all sizes that go from host to device and back: steps on either side change some slots, look at some, copy, exchange, replace or scan them."""

    def make(self):
        r = self.rng
        self.common()
        pick = lambda: r.choice([18, 19, 20, 18, 14, 15, 16, 4, 0])
        la, lb = pick(), pick()
        self.decl("type $S is Type:\n  $S{a: Array<U32>, b: Array<U32>, h: U32}")
        self.decl("def $set(n: Nat, +i: U32, +by: U32, +v: U32, a: Array<U32>) -> Array<U32>:\n  match n:\n    case 0n:\n      a\n    case 1n+p:\n      $set(p, (i + by : U32), by, (v * 5 + 1 : U32), a[i] <- v)")
        self.decl("def $get(n: Nat, +i: U32, +by: U32, h: U32, r: Array<U32> & U32) -> Array<U32> & U32:\n  match n r:\n    case 0n, (a, x):\n      (a, (h * 31 + x : U32))\n"
                  "    case 1n+p, (a, x):\n      +j = (i + by : U32)\n      $get(p, j, by, (h * 31 + x : U32), a[j])")
        self.decl("def $seen(b: Array<U32>, r: Array<U32> & U32) -> $S:\n  (a, h) = r\n  $S{a, b, h}")
        self.decl("def $hset(n: Nat, +i: U32, +by: U32, s: $S) -> $S:\n  $S{a, b, +h} = s\n  $S{$set(n, i, by, h, a), b, (h + 1 : U32)}")
        self.decl("def $hget(n: Nat, +i: U32, +by: U32, s: $S) -> $S:\n  $S{a, b, h} = s\n  $seen(b, $get(n, i, by, h, a[i]))")
        self.decl("def $swap(s: $S) -> $S:\n  $S{a, b, h} = s\n  $S{b, a, h}")
        self.decl("def $new(+d: Nat, s: $S) -> $S:\n  $S{a, b, +h} = s\n  $S{Array.new(U32, d, h), a, (h * 3 : U32)}")
        self.decl("def $pairs(h: U32, r: Array<U32> & Array<U32>) -> $S:\n  (a, b) = r\n  $S{a, b, h}")
        self.decl("def $clone(s: $S) -> $S:\n  $S{a, b, h} = s\n  $pairs(h, Array.clone(U32, a))")
        self.decl("def $grid(d: Nat, +i: U32, +e: Nat, +v: U32, r: Array<U32> & Array<U32>) -> Array<U32>:\n  match d r:\n    case 0n, (a, b):\n      $set(U32.to_nat(U32.shln(1, e)), U32.shln(i, e), 1, (v + i : U32), Array.join(U32, a, b))\n"
                  "    case 1n++p, (a, b):\n      x y = $grid(p, (i * 2 : U32), e, v, Array.fork(U32, a)) $grid(p, (i * 2 + 1 : U32), e, v, Array.fork(U32, b))\n      Array.join(U32, x, y)")
        self.decl("def $write(+d: Nat, +e: Nat, +i: U32, s: $S) -> $S:\n  $S{a, b, +h} = s\n  $S{$grid(d, i, e, h, Array.fork(U32, a)), b, (h .^. 5 : U32)}")
        self.decl("def $both(x: Array<U32> & U32, y: Array<U32> & U32) -> Array<U32> & U32:\n  match x y:\n    case (a, s), (b, t):\n      (Array.join(U32, a, b), (s * 7 + t : U32))")
        self.decl("def $look(d: Nat, +i: U32, +n: Nat, r: Array<U32> & Array<U32>) -> Array<U32> & U32:\n  match d r:\n    case 0n, (a, b):\n      $get(n, i, 1, 0, Array.get(U32, Array.join(U32, a, b), i))\n"
                  "    case 1n++p, (a, b):\n      x y = $look(p, (i * 2 : U32), n, Array.fork(U32, a)) $look(p, (i * 2 + 1 : U32), n, Array.fork(U32, b))\n      $both(x, y)")
        self.decl("def $read(d: Nat, +n: Nat, +i: U32, s: $S) -> $S:\n  $S{a, b, h} = s\n  $seen(b, $look(d, i, n, Array.fork(U32, a)))")
        self.decl("def $scanned(b: Array<U32>, h: U32, r: Array<U32> & U32) -> $S:\n  (a, t) = r\n  $S{a, b, (h * 3 + t : U32)}")
        self.decl("def $scan(+d: Nat, s: $S) -> $S:\n  $S{a, b, h} = s\n  $scanned(b, h, Scan." + r.choice(["inclusive", "exclusive"]) + "(d, a))")
        self.decl("def $drop(s: $S) -> $S:\n  $S{a, b, +h} = s\n  $S{a, Array.new(U32, 1n, h), h}")
        self.decl("def $copy.go(n: Nat, +i: U32, b: Array<U32>, r: Array<U32> & U32) -> Array<U32> & Array<U32>:\n  match n r:\n    case 0n, (a, x):\n      (a, b[i] <- x)\n    case 1n+p, (a, x):\n      +j = (i + 1 : U32)\n      $copy.go(p, j, b[i] <- x, a[j])")
        self.decl("def $copy(n: Nat, +i: U32, s: $S) -> $S:\n  $S{a, b, h} = s\n  $pairs(h, $copy.go(n, i, b, a[i]))")
        value, steps = f"$S{{$made({la}n), Array.new(U32, {lb}n, {r.choice([0, 7])}), 1}}", []
        first, second = la, lb                                     # log2 of the slots of a and b
        for _ in range(r.randint(3, 9)):
            at = r.choice([0, 1, 5, 16383, 16384, 65535, 262143, 131072, r.randrange(1 << 20)])
            mark = "!" if r.random() < 0.65 else ""
            step = r.choice(["hset", "hset", "hget", "hget", "swap", "new", "clone", "write", "write", "read", "read", "scan", "drop", "copy"])
            made, depth = pick(), r.choice([0, 2, 5, 6, 8])
            if step == "write" and depth + 7 > first:              # blocks would meet
                step = "hset"
            args = {"hset": f"{r.choice([0, 1, 3, 40])}n, {at}, {r.choice([1, 4096, 16384, 77777])}", "hget": f"{r.choice([0, 1, 3, 40])}n, {at}, {r.choice([1, 4096, 16384, 77777])}", "swap": "", "drop": "", "clone": "",
                    "new": f"{made}n", "write": f"{depth}n, {r.choice([0, 0, 3, 7, max(first - depth, 0)])}n, {r.choice([0, 0, 1, 3])}", "read": f"{r.choice([0, 2, 5, 8])}n, {r.choice([0, 1, 9])}n, {r.choice([0, 1, 5])}",
                    "scan": f"{r.choice([0, 3, 6, 8])}n", "copy": f"{r.choice([0, 1, 100, 5000])}n, {at}"}[step]
            value = f"${step}{mark}({args}{', ' if args else ''}{value})"
            steps.append(step + mark)
            first, second = {"swap": (second, first), "new": (made, first), "clone": (first, first), "drop": (first, 1)}.get(step, (first, second))
        self.about = [f"2^{la}, 2^{lb}"] + steps
        self.decl("def $told(s: $S) -> String:\n  $S{a, b, h} = s\n  U32.show(h) ++ \" \" ++ U32.show($hash(20n, a)) ++ \" \" ++ U32.show($hash(20n, b))")
        self.value = f"$told({value})".replace("$", self.name)
