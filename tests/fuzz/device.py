#!/usr/bin/env python3
"""Random programs (programs.py) whose values are computed by `!` calls: what the emulated device prints must be what the CPU prints.

device.py --bendc BENDC [--count N] [--seed S] [--batch K] [--keep DIR]

Each file runs without a GPU and emulated, in an order of device threads that the seed picks. The last line says how many calls ran on the
device and how many were refused there. Exit status 1 when any output differs.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

import programs

sys.modules["programs"] = programs


def run(bendc, path, options, variables):
    try:
        done = subprocess.run([bendc, "run", *options, path], env=dict(os.environ, **variables), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        return done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        return "timeout", b"", b""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bendc", required=True)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--threaded", action="store_true", help="only functions that hand arrays on (threaded.py)")
    parser.add_argument("--keep")
    args = parser.parse_args()
    bad = on_device = on_cpu = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.bend")
        for seed in range(args.seed, args.seed + (args.count + args.batch - 1) // args.batch):
            text = re.sub(r"(P\d+main)\(\)(?=[,)])", r"\1!()", programs.file_of(seed, args.batch, args.threaded)[1])
            with open(path, "w") as f:
                f.write(text)
            want = run(args.bendc, path, ["--gpu", "off"], {})
            got = run(args.bendc, path, ["--verify", "--gpu", "emulate", "--stats"], {"BEND_SCHED_SEED": str(seed % 7)})
            calls = re.search(rb"emulated; (\d+) calls, (\d+) on the CPU", got[2])
            if calls:
                on_device += int(calls[1])
                on_cpu += int(calls[2])
            if want[:2] != got[:2]:
                bad += 1
                print(f"seed {seed}: CPU {want[0]} {want[1][:300]!r}, device {got[0]} {got[1][:300]!r} {got[2][:600].decode(errors='replace')}")
                if args.keep:
                    os.makedirs(args.keep, exist_ok=True)
                    with open(os.path.join(args.keep, f"seed_{seed}.bend"), "w") as f:
                        f.write(text)
    print(f"{on_device} calls on the device, {on_cpu} refused, {bad} files differ")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
