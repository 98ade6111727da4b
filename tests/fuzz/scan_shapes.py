"""Two perfect trees with a table between them (src/codegen/gpu/scan_trees.h), right or with up to three things changed: blocks, slots, operations, operands, depths, sizes,
counts, roots, where a leaf writes, what an error in one leaf ends."""
from shape import Shape

NEUTRAL = {"+": 0, ".^.": 0, ".|.": 0, "*": 1, ".&.": 4294967295, "-": 0}


class ScanProgram(Shape):
    CHANGES = ["left_stored", "stored_plus", "swapped_sum", "sum_plus", "other_sum", "subtract", "base_swapped", "base_other", "base_plus", "left_base", "read_slot", "heap_slots", "read_heap",
               "root", "low", "table_size", "table_full", "table_lives", "count_less", "count_more", "count_fixed", "start_plus", "start_next", "step", "up_reads_table", "up_writes",
               "down_count", "down_start", "down_block", "down_reversed", "down_backwards", "down_strided", "reads_far", "reads_value", "alias", "larger", "depth", "log2", "extra", "error", "base_as_index",
               "twice", "between", "value_needed", "leaf_ignores", "keeps_loop", "steps_by_two", "two_writes", "own_log2"] + ["reads_ahead"] * 5

    def make(self):
        r = self.rng
        changes = set(r.sample(self.CHANGES, r.choice([0, 0, 1, 1, 1, 2, 3])))
        if "up_writes" in changes:                                 # what one leaf writes no other one reads
            changes -= {"reads_ahead", "start_plus", "start_next", "count_more", "count_fixed", "step"}
        self.about = sorted(changes)
        c = lambda name: name in changes
        op = r.choice(["+"] * 4 + [".^."] * 3 + ["*"] * 3 + [".&.", ".|."])   # the last two soon give one value for all
        if c("subtract"):
            op = "-"
        other = r.choice([o for o in NEUTRAL if o != op])
        inplace = self.one_in(2) and not (changes & {"reads_far", "alias", "reads_value"})
        spread = self.one_in(3)                                   # table slots by an argument of their own
        const_log2 = self.one_in(3)
        d, e = r.choice([0, 1, 2, 3, 5, 5, 6, 7, 8]), r.choice([0, 1, 2, 3, 3, 4, 5, 6])
        e = e if not c("depth") else max(e, 1)
        lg = d + e + (r.randrange(1, 3) if c("larger") or c("reads_far") and inplace else 0)
        root = r.choice([1, 3, 4294967295]) if c("root") else 1 if c("heap_slots") or c("read_heap") else 0
        low = r.choice([1, 5, 4294967290]) if c("low") else 0
        late = self.one_in(3)                                     # the loops count past a first slot
        exact = f"U32.shln(1, {f'{e}n' if const_log2 else 'e'})"
        slots = f"U32.to_nat({exact})"
        less = f"U32.to_nat(({exact} - 1 : U32))"
        if const_log2 and self.one_in(2):
            slots, less = f"{1 << e}n", f"{(1 << e) - 1}n"
        if c("own_log2"):
            slots, less = f"U32.to_nat(U32.shln(1, Nat.add(e, 0n)))", f"U32.to_nat((U32.shln(1, Nat.add(e, 0n)) - 1 : U32))"
        begin = f"U32.shln(i, {f'{e}n' if const_log2 else 'e'})"
        first_count = less if late else slots
        if c("count_less"):
            first_count = f"Nat.sub({slots}, 1n)" if self.one_in(2) else less
        if c("count_more"):
            first_count = f"(1n+{slots})" if self.one_in(2) else slots
        if c("count_fixed"):
            first_count = f"{r.randrange(1, 40)}n"
        first_begin = f"({begin} + 1 : U32)" if c("start_plus") else f"U32.shln((i + 1 : U32), e)" if c("start_next") else begin
        step = r.choice(["(j + 2 : U32)", "(j - 1 : U32)", "(1 + j : U32)", "U32.inc(j)"]) if c("step") else "(j + 1 : U32)"
        ahead = r.choice(["({} + 1 : U32)", "({} + 1 : U32)", "({} + 2 : U32)", "({} - 1 : U32)"]) if c("reads_ahead") else "{}"
        if c("reads_ahead") and not const_log2:                   # the last block's neighbour is the first one, in another warp
            d, lg = max(d, 6), max(d, 6) + lg - d
        self.common({"*": " .|. 1", ".&.": " .|. 4026531839", ".|.": " .&. 8"}.get(op, ""))
        self.decl("type $Up is Type:\n  $Up{src: Array<U32>, keep: Array<U32>, value: U32}")
        sub = lambda a, b, o=op: f"({a} {o} {b} : U32)"
        sw = lambda a, b, o=op: sub(*r.sample([a, b], 2), o) if o != "-" else sub(a, b, o)
        # ---- the way up ----
        self.decl(f"def $plus(s: U32, r: Array<U32> & U32) -> Array<U32> & U32:\n  (a, x) = r\n  (a, {sw('s', 'x')})")
        if late:
            self.decl(f"def $gather(n: Nat, +j: U32, s: U32, r: Array<U32> & U32) -> Array<U32> & U32:\n  match n r:\n    case 0n, (a, x):\n      (a, {sw('s', 'x')})\n"
                      f"    case 1n+p, (a, x):\n      +k = {step}\n      $gather(p, k, {sw('s', 'x')}, a[{ahead.format('k')}])")
            gather = lambda a: f"$gather({first_count}, j, {NEUTRAL[op]}, Array.get(U32, {a}, j))"
        else:
            turn = f"$gather(p, {step}, $plus(s, a[{ahead.format('j')}]))"
            deep = ""
            if c("steps_by_two"):
                deep = f"    case 1n+(1n+p), (a, s):\n      $gather(p, (j + 2 : U32), $plus2(s, {'(j + 1 : U32)' if self.one_in(2) else 'j'}, a[j]))\n"
                self.decl("def $plus2(s: U32, +k: U32, r: Array<U32> & U32) -> Array<U32> & U32:\n  (a, x) = r\n  $plus(" + sw("s", "x") + ", a[k])")
            self.decl(f"def $gather(n: Nat, +j: U32, r: Array<U32> & U32) -> Array<U32> & U32:\n  match n r:\n    case 0n, q:\n      q\n{deep}" +
                      (f"    case 1n, (a, s):\n      $plus(s, a[j])" if deep else f"    case 1n+p, (a, s):\n      {turn}"))
            gather = lambda a: f"$gather({first_count}, j, ({a}, {NEUTRAL[op]}))"
        if c("error"):
            bad = r.randrange(1 << d)
            self.decl(f"def $fails(+n: Nat) -> Nat:\n  Nat.mul(n, n)")
            self.decl(f"def $check(i: U32, x: U32) -> U32:\n  match i:\n    case {bad}:\n      U32.from_nat($fails(Nat.add(U32.to_nat(x), 16777216n)))\n    case _:\n      x")
            self.error = True
        fails = (lambda x: f"$check(i, {x})") if c("error") else (lambda x: x)
        self.decl(f"def $kept(+i: U32, keep: Array<U32>, r: Array<U32> & U32) -> $Up:\n  (a, x) = r\n  $Up{{a, keep, {fails('x')}}}")
        if c("up_reads_table"):
            self.decl("def $peek(s: U32, r: Array<U32> & U32) -> Array<U32> & U32:\n  (t, x) = r\n  (t, (s + x : U32))")
            self.decl("def $look(a: Array<U32>, r: Array<U32> & U32) -> $Up:\n  (t, x) = r\n  $Up{a, t, x}")
            self.decl("def $kept2(+i: U32, keep: Array<U32>, r: Array<U32> & U32) -> $Up:\n  (a, x) = r\n  $look(a, $peek(x, keep[0]))")
        leaf_keep = "$kept2" if c("up_reads_table") else "$kept"
        leaf_src = "Array.join(U32, a, b)"
        if c("up_writes"):
            leaf_src = f"Array.set(U32, {leaf_src}, {begin}, (i * 7 + 3 : U32))"
        stored = "u" if not c("left_stored") else "w"
        total = sw("u", "w")
        if c("swapped_sum"):
            total = sub("w", "u")
        if c("other_sum"):
            total = sub("u", "w", other)
        if c("sum_plus"):
            total = sub(total, str(r.randrange(1, 9)))
        if c("stored_plus"):
            stored = sub(stored, str(r.randrange(1, 9)))
        self.decl(f"def $joined(+m: U32, x: $Up, y: $Up) -> $Up:\n  match x y:\n    case $Up{{a, t, +u}}, $Up{{b, v, +w}}:\n"
                  f"      $Up{{Array.join(U32, a, b), Array.set(U32, Array.join(U32, t, v), m, {stored}), {total}}}")
        number = r.choice(["(k + 1 : U32)", "(1 + k : U32)"])
        path = f"U32.shln({number}, p)"
        along = r.choice(["(lo + U32.shln(1, p) : U32)", "(U32.shln(1, p) + lo : U32)"])
        slot = "i" if c("heap_slots") else along if spread else path
        double = r.choice(["(i * 2 : U32)", "(2 * i : U32)"])
        self.decl("def $up(+d: Nat, +i: U32, +lo: U32, +e: Nat, src: Array<U32> & Array<U32>, keep: Array<U32> & Array<U32>) -> $Up:\n  match d src keep:\n    case 0n, (a, b), (s, t):\n"
                  f"      +j = {first_begin}\n      {leaf_keep}(i, Array.join(U32, s, t), {gather(leaf_src)})\n"
                  f"    case 1n+p, (a, b), (s, t):\n      +k = {double}\n      +h = {along}\n"
                  f"      x y = $up(p, k, lo, e, Array.fork(U32, a), Array.fork(U32, s)) $up(p, {number}, h, e, Array.fork(U32, b), Array.fork(U32, t))\n      $joined({slot}, x, y)")
        # ---- the way down ----
        second = slot
        if c("read_slot"):
            second = f"({slot} + 1 : U32)"
        if c("read_heap"):
            second = "i" if slot != "i" else path
        if not (changes & {"heap_slots", "read_heap", "read_slot"}) and self.one_in(6):
            second = path if spread else along                   # the same numbers from other arguments
        down_begin, down_slots = begin, slots
        shift = f"{e}n" if const_log2 else "e"
        if c("down_block"):
            down_begin = f"U32.shln((i + 1 : U32), {shift})"
        if c("down_start"):
            down_begin = f"({begin} + 1 : U32)"
        if c("down_reversed"):
            down_begin = f"U32.shln(({(1 << d) - 1} - i : U32), {shift})"
        down_step = "(j + 1 : U32)"
        if c("down_backwards"):
            down_begin, down_step = f"(U32.shln((i + 1 : U32), {shift}) - 1 : U32)", "(j - 1 : U32)"
        if c("down_strided"):
            down_begin, down_step = "i", f"(j + {1 << d} : U32)"
        if c("down_count"):
            down_slots = r.choice([f"Nat.sub({slots}, 1n)", "1n", "0n"])
        writes = "a[j] <- t" if inplace else "o[j] <- t"
        put = r.choice(["t", "s"])
        if c("two_writes"):
            writes = f"({writes})[j] <- {put}"
        writes = writes.replace("<- t", f"<- {put}", 1)
        reads = "a[j]"
        if c("reads_far"):
            reads = "a[(j * 3 + 5 : U32)]" if not inplace else f"a[(j + {1 << (d + e)} : U32)]"
        elif not inplace and self.one_in(4):
            reads = "a[(j + 1 : U32)]"
        if inplace:
            self.decl(f"def $put(+j: U32, +s: U32, r: Array<U32> & U32) -> Array<U32> & U32:\n  (a, x) = r\n  +t = {sw('s', 'x')}\n  ({writes}, t)")
            self.decl(f"def $spread(n: Nat, +j: U32, r: Array<U32> & U32) -> Array<U32> & U32:\n  match n r:\n    case 0n, q:\n      q\n    case 1n+p, (a, s):\n      $spread(p, {down_step}, $put(j, s, {reads}))")
            self.decl("def $out(r: Array<U32> & U32) -> Array<U32>:\n  (a, _) = r\n  a")
            leaf = f"$out($spread({down_slots}, {down_begin}, (Array.join(U32, a, b), {fails('s') if c('error') and self.one_in(2) else 's'})))"
            outs, out_args, result = "", "", "Array<U32>"
            post = "Array.join(U32, x, y)"
        else:
            self.decl(f"def $put(+j: U32, +s: U32, o: Array<U32>, r: Array<U32> & U32) -> (Array<U32> & Array<U32>) & U32:\n  (a, x) = r\n  +t = {sw('s', 'x')}\n  ((a, {writes}), t)")
            self.decl(f"def $spread(n: Nat, +j: U32, r: (Array<U32> & Array<U32>) & U32) -> (Array<U32> & Array<U32>) & U32:\n  match n r:\n    case 0n, q:\n      q\n"
                      f"    case 1n+p, ((a, o), s):\n      $spread(p, {down_step}, $put(j, s, o, {reads}))")
            self.decl("def $out(r: (Array<U32> & Array<U32>) & U32) -> Array<U32> & Array<U32>:\n  (a, _) = r\n  a")
            leaf = f"$out($spread({down_slots}, {down_begin}, ((Array.join(U32, a, b), Array.join(U32, o, q)), s)))"
            result = "Array<U32> & Array<U32>"
            self.decl("def $both(x: Array<U32> & Array<U32>, y: Array<U32> & Array<U32>) -> Array<U32> & Array<U32>:\n  match x y:\n    case (a, b), (c, d):\n      (Array.join(U32, a, c), Array.join(U32, b, d))")
            post = "$both(x, y)"
        self.decl("def $three(r: Array<U32> & Array<U32>) -> Array<U32> & Array<U32> & Array<U32>:\n  (t, u) = r\n  (t, Array.fork(U32, u))")
        base = sw("s", "x")
        if c("base_swapped"):
            base = sub("x", "s")
        if c("base_other"):
            base = sub("s", "x", other)
        if c("base_plus"):
            base = sub(base, str(r.randrange(1, 9)))
        self.decl(f"def $beyond(s: U32, r: Array<U32> & U32) -> U32:\n  (_, x) = r\n  {base}")
        left_base = sub("s", "1") if c("left_base") else "s"
        extra = ", +z: U32" if c("extra") else ""
        extra_left, extra_right, extra_root = (", (z * 5 : U32)", ", (z + 3 : U32)", ", 1") if c("extra") else ("", "", "")
        outs = "" if inplace else "out: Array<U32> & Array<U32>, "
        o0, o1 = ("", "") if inplace else ("Array.fork(U32, o), ", "Array.fork(U32, q), ")
        match_out, pat_out = ("", "") if inplace else (" out", ", (o, q)")
        if c("leaf_ignores"):
            leaf = "Array.join(U32, a, b)" if inplace else "(Array.join(U32, a, b), Array.join(U32, o, q))"
        if c("base_as_index") and inplace:
            leaf = f"Array.set(U32, Array.join(U32, a, b), {begin}, s)"
        self.decl(f"def $down(+d: Nat, +i: U32, +lo: U32, +e: Nat, +s: U32{extra}, src: Array<U32> & Array<U32>, {outs}keep: Array<U32> & Array<U32> & Array<U32>) -> {result}:\n"
                  f"  match d src{match_out} keep:\n    case 0n, (a, b){pat_out}, _:\n      {leaf}\n    case 1n+p, (a, b){pat_out}, (t, u, v):\n      +k = {double}\n      +h = {along}\n"
                  f"      x y = $down(p, k, lo, e, {left_base}{extra_left}, Array.fork(U32, a), {o0}$three(Array.fork(U32, u))) "
                  f"$down(p, {number}, h, e, $beyond(s, t[{second}]){extra_right}, Array.fork(U32, b), {o1}$three(Array.fork(U32, v)))\n      {post}")
        # ---- both ----
        d2, e2 = "d", "e"
        if c("depth"):
            d2 = r.choice(["Nat.sub(d, 1n)", "Nat.min(d, 2n)"])
        if c("log2") and not const_log2:
            e2 = "Nat.sub(e, 1n)"
        start = str(r.choice([0, 3, NEUTRAL[op]]))
        if c("value_needed"):
            start = "total"
        more = "(Array<U32> & Array<U32>) & U32" if not inplace else "Array<U32> & U32"
        if c("table_lives"):
            self.decl("def $last(s: U32, r: Array<U32> & U32) -> U32:\n  (_, x) = r\n  (s * 3 + x : U32)")
        outp = "" if inplace else "out: Array<U32>, "
        outc = "" if inplace else "Array.fork(U32, out), "
        keep_arg = "$three(Array.fork(U32, keep))"
        told = "total"
        if c("between"):
            told = f"(total .^. {r.randrange(99)} : U32)"
        self.decl(f"def $then(+d: Nat, +e: Nat, {outp}w: $Up) -> {more}:\n  $Up{{a, keep, +total}} = w\n  ($down({d2}, {root}, {low}, {e2}, {start}{extra_root}, Array.fork(U32, a), {outc}{keep_arg}), {told})"
                  if not c("table_lives") else
                  f"def $then.go(+d: Nat, +e: Nat, {outp}total: U32, a: Array<U32>, r: Array<U32> & Array<U32>) -> {more}:\n  (t, u) = r\n"
                  f"  ($down({d2}, {root}, {low}, {e2}, {start if start != 'total' else '0'}{extra_root}, Array.fork(U32, a), {outc}$three(Array.fork(U32, t))), $last(total, u[1]))\n\n"
                  f"def $then(+d: Nat, +e: Nat, {outp}w: $Up) -> {more}:\n  $Up{{a, keep, total}} = w\n  $then.go(d, e, {'' if inplace else 'out, '}total, a, Array.fork(U32, keep))")
        table = f"Array.new(U32, {'(1n+d)' if c('table_size') else 'd'}, {r.randrange(1, 99) if c('table_full') else 0})"
        out_of = "" if inplace else ", out: Array<U32>"
        self.decl(f"def $scan(+d: Nat, +e: Nat, a: Array<U32>{out_of}) -> {more}:\n  $then(d, e, {'' if inplace else 'out, '}$up(d, {root}, {low}, e, Array.fork(U32, a), Array.fork(U32, {table})))")
        call = f"$scan!({d}n, {e}n, $made({lg}n)" + ("" if inplace else f", Array.new(U32, {lg}n, 9)") + ")"
        if not inplace and c("alias"):
            self.decl(f"def $shared(+d: Nat, +e: Nat, r: Array<U32> & Array<U32>) -> {more}:\n  (a, b) = r\n  $scan(d, e, a, b)")
            call = f"$shared!({d}n, {e}n, Array.fork(U32, $made({lg}n)))"
        if inplace and c("twice"):
            self.decl(f"def $again(+d: Nat, +e: Nat, r: Array<U32> & U32) -> Array<U32> & U32:\n  (a, _) = r\n  $scan(d, e, a)")
            call = f"$again!({d}n, {e}n, {call.replace('!(', '(' if self.one_in(2) else '!(')})"
        if inplace:
            self.decl("def $told(+lg: Nat, r: Array<U32> & U32) -> String:\n  (a, total) = r\n  U32.show($hash(lg, a)) ++ \" \" ++ U32.show(total)")
        else:
            self.decl("def $told(+lg: Nat, r: (Array<U32> & Array<U32>) & U32) -> String:\n  match r:\n    case ((a, b), total):\n"
                      "      U32.show($hash(lg, a)) ++ \" \" ++ U32.show($hash(lg, b)) ++ \" \" ++ U32.show(total)")
        self.value = f"$told({lg}n, {call})".replace("$", self.name)
        if not inplace and c("alias") and reads != "a[j]" or not inplace and c("alias") and c("two_writes"):
            self.unfit = True                                    # a leaf would read what its neighbour writes
