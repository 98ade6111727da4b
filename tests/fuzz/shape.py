"""What a generator of trees.py makes: declarations, and one value that main prints."""
import re


class Shape:
    """Declarations with names prefixed by `name`; `value`: an expression of type String. `about`: what was drawn."""

    def __init__(self, rng, name):
        self.rng, self.name, self.decls, self.about = rng, name, [], []
        self.make()

    def decl(self, text):
        self.decls.append(re.sub(r"\$", self.name, text))

    def one_in(self, n):
        return self.rng.randrange(n) == 0

    def common(self, mask=""):
        """Arrays of numbers, each through `mask`, and what is told of them."""
        r = self.rng
        self.decl("def $fill(n: Nat, +i: U32, a: Array<U32>) -> Array<U32>:\n  match n:\n    case 0n:\n      a\n    case 1n+p:\n"
                  f"      $fill(p, (i + 1 : U32), a[i] <- (i * {r.randrange(1, 1 << 32) | 1} + {r.randrange(1, 1 << 32)} .^. (i >> {r.randrange(8)}n){mask} : U32))")
        self.decl("def $hash.go(n: Nat, +i: U32, +h: U32, r: Array<U32> & U32) -> U32:\n  match n r:\n    case 0n, (_, x):\n      (h * 31 + x : U32)\n"
                  "    case 1n+p, (a, x):\n      +j = (i + 1 : U32)\n      $hash.go(p, j, (h * 31 + x : U32), a[j])")
        self.decl("def $hash(lg: Nat, a: Array<U32>) -> U32:\n  $hash.go(U32.to_nat((U32.shln(1, lg) - 1 : U32)), 0, 7, a[0])")
        self.decl("def $made(+lg: Nat) -> Array<U32>:\n  $fill(U32.to_nat(U32.shln(1, lg)), 0, Array.new(U32, lg, 0))")
