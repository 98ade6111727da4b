#!/usr/bin/env python3
"""Random leaves of one loop with several ways round, on a device: their grid's PTX, run on the CPU (tests/tools/tree_grid.py), against the program on one thread.

  loops.py --bendc BENDC [--count N] [--seed S] [--keep FOLDER]    ends with `N passed, N failed`

A def has fuel, two selectors and up to four variables. Each way leaves some as they are, shares terms with others, and may end the loop. KEEP gets programs that differ.
"""
import argparse
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'tools'))
import ptx  # noqa: E402
import tree_grid  # noqa: E402

DEPTH, FUEL = 5, 40


class Program:
    def __init__(self, seed):
        r = self.random = random.Random(seed)
        self.variables = [f'v{i}' for i in range(r.randint(1, 4))]
        self.pool = [self.term(self.variables, 2) for _ in range(4)]   # terms that ways share
        first = [str(n) for n in range(r.randint(1, 3))] + ['_']
        arms = [f'    case 0n, _, _:\n      {self.end()}\n']
        for one in first:
            for other in [str(n) for n in range(r.randint(0, 2))] + ['_']:
                arms.append(f'    case 1n+p, {one}, {other}:\n      {self.way()}\n')
        parameters = ''.join(f', +{name}: U32' for name in self.variables)
        starts = ''.join(f', ((i * {r.randrange(1, 1000)}) .^. {r.randrange(1 << 20)} : U32)' for _ in self.variables)
        self.text = f'''import Base

def turn(fuel: Nat, a: U32, b: U32{parameters}) -> U32:
  match fuel a b:
{"".join(arms)}
def tree(d: Nat, +i: U32, +n: Nat) -> U32:
  match d:
    case 0n:
      turn(n, (i % 3 : U32), (i .&. 1 : U32){starts})
    case 1n++p:
      x y = tree(p, (i * 2 : U32), n) tree(p, (i * 2 + 1 : U32), n)
      (x + y : U32)

def main() -> IO(Unit):
  IO.print(U32.show(tree!({DEPTH}n, 3, {FUEL}n)))
'''

    def term(self, names, depth):
        r = self.random
        if depth == 0 or r.random() < 0.2:
            return r.choice(names) if r.random() < 0.7 else str(r.randrange(1 << r.choice((3, 16, 31))))
        kind = r.randrange(6)
        if kind == 0:
            return f'({self.term(names, depth - 1)} >> {r.randrange(1, 31)}n)'
        if kind == 1:
            return f'({self.term(names, depth - 1)} % {r.randrange(1, 50)})'
        return f'({self.term(names, depth - 1)} {r.choice(("+", "-", "*", ".^.", ".&."))} {self.term(names, depth - 1)})'

    def shared(self):
        return self.random.choice(self.pool) if self.random.random() < 0.6 else self.term(self.variables, 2)

    def end(self):
        return f'({self.shared()} + {" .^. ".join(self.variables)} : U32)'

    def way(self):
        r = self.random
        if r.random() < 0.1:
            return self.end()
        selectors = [f'({self.shared()} % {r.randint(1, 4)} : U32)' for _ in range(2)]
        after = [name if r.random() < 0.45 else f'({self.shared()} : U32)' for name in self.variables]
        return f'turn(p, {", ".join(selectors + after)})'


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--bendc', required=True)
    parser.add_argument('--count', type=int, default=8)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--keep')
    options = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'main.bend')
        for seed in range(options.seed, options.seed + options.count):
            program = Program(seed)
            with open(path, 'w') as out:
                out.write(program.text)

            def bendc(*words):
                return subprocess.run([options.bendc, *words, path], capture_output=True, text=True, timeout=60)

            host, device = bendc('run', '--gpu', 'off', '--threads', '1'), bendc('build', '--dump', 'ptx')
            why = host.stderr or device.stderr
            if not why:
                try:
                    value = tree_grid.value(ptx.Kernel(device.stdout, 'bend_flat'), DEPTH, [(0, 8, DEPTH), (8, 4, 3), (16, 8, FUEL)], seed)
                    why = '' if str(value) == host.stdout.strip() else f'{value} in place of {host.stdout.strip()}'
                except ptx.PtxError as e:
                    why = str(e)
            if not why:
                passed += 1
                continue
            failed += 1
            print(f'FAIL loops, seed {seed}: {why[:400]}')
            if options.keep:
                with open(os.path.join(options.keep, f'loops{seed}.bend'), 'w') as out:
                    out.write(program.text)
    print(f'{passed} passed, {failed} failed')
    return failed != 0


sys.exit(main())
