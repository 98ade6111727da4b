#!/usr/bin/env python3
"""Runs forking programs under stress: python3 tests/threads/stress.py --bendc FILE [--seconds N] [--jobs N] [--seed N]

Each run has 64 threads (now and then another number) and its own BEND_SCHED_SEED, which puts random sleeps into stealing; BEND_WATCHDOG ends one that
stands still, and a limit of time one that hangs otherwise. A third of the runs get a heap (BEND_HEAP) around what the program needs: they print the
answer or end with run-time error 3. A third run with BEND_DEBUG_HEAP=1 and must end with no live word. The answers are those of one thread.
Ends with `N passed, N failed`; a failure prints its command.
"""
import argparse
import concurrent.futures
import os
import random
import re
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
# Words that make a run take some hundredths of a second on one core.
SUITE = {
    "bfs": ["12"], "gameoflife": ["10", "8"], "hashmap": ["7", "1024"], "kmeans": ["11"], "lexer": ["15"], "merkle": ["13", "1337"],
    "nbody": ["9", "20"], "queens": ["9", "9", "1"], "raytrace": ["6", "60"], "tree-bitonic": ["13"], "tree-matmul": ["3", "3", "8"],
}
CASES = ("fork_builds_trees", "par_unbalanced", "queens_fork", "par_widths", "forks_first_error", "forks_wide_frames", "par_results")
TIMEOUT = 120
WATCHDOG = 30
MEGABYTE = 1 << 20


def environment(**settings):
    return dict(os.environ, BEND_GPU="off", **settings)


def run(words, env):
    try:
        done = subprocess.run(words, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        return None, b"", b"no end"
    return done.returncode, done.stdout, done.stderr


def attempt(number, programs, seed):
    """One run; what went wrong, or None."""
    rng = random.Random(seed * 1_000_003 + number)
    words, status, answer, peak = rng.choice(programs)
    settings = {"BEND_THREADS": "64" if rng.random() < 0.8 else rng.choice(["2", "3", "5", "17", "128"]), "BEND_SCHED_SEED": str(rng.randrange(1, 1 << 32))}
    settings["BEND_WATCHDOG"] = str(WATCHDOG)
    mode = rng.choice(["plain", "tight", "debug"])
    if mode == "tight":
        settings["BEND_HEAP"] = str(int(peak * rng.uniform(0.5, 2.0)) + MEGABYTE)
        settings["BEND_STACK"] = str(rng.choice([16, 64, 256]) * MEGABYTE)
    if mode == "debug":
        settings["BEND_DEBUG_HEAP"] = "1"
    code, out, err = run(words, environment(**settings))
    good = code == status and out == answer
    if mode == "debug" and status == 0:
        good = good and b"bend: heap: 0 live words in 0 nodes" in err
    if mode == "tight" and not good:
        good = code == 1 and b"bend: error 3:" in err and answer.startswith(out)
    if good:
        return None
    text = err.decode(errors="replace").strip()
    return f"FAIL {' '.join(f'{k}={v}' for k, v in settings.items())} {' '.join(words)}\n    exit status {code}, expected {status}; stdout {out[:200]!r}\n    {text[:1500]}"


def prepare(bendc, folder):
    """(words, exit status, stdout, peak bytes) a program, with one thread."""
    sources = {name: (os.path.join(ROOT, "bench", "suite", name + ".bend"), words) for name, words in SUITE.items()}
    sources.update({name: (os.path.join(ROOT, "tests", "cases", "run", name + ".bend"), []) for name in CASES})
    programs = []
    for name, (source, words) in sources.items():
        program = os.path.join(folder, name)
        subprocess.run([bendc, "build", source, "-o", program], check=True, stdout=subprocess.DEVNULL)
        status, out, _ = run([program, *words], environment(BEND_THREADS="1"))
        if status is None:
            sys.exit(f"stress: {name}: no end with one thread")
        peak = MEGABYTE
        while peak < 1 << 34 and run([program, *words], environment(BEND_THREADS="1", BEND_HEAP=str(peak)))[:2] != (status, out):
            peak *= 2
        programs.append(([program, *words], status, out, peak))
    return programs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bendc", required=True)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        programs = prepare(os.path.abspath(options.bendc), folder)
        end = time.monotonic() + options.seconds
        passed = failed = 0
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            waiting, number = set(), 0
            while waiting or time.monotonic() < end:
                while len(waiting) < options.jobs and time.monotonic() < end:
                    waiting.add(pool.submit(attempt, number, programs, options.seed))
                    number += 1
                done, waiting = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
                for run_ in done:
                    wrong = run_.result()
                    passed, failed = passed + (wrong is None), failed + (wrong is not None)
                    if wrong:
                        print(wrong, flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
