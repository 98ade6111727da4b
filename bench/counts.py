"""Instructions of a process, counted by valgrind: the same command gives the same count to a few thousandths of a percent, however busy the machine
is. programs() counts whole processes (cachegrind without its caches), functions() a process by function, callees included (callgrind).
Needs processors that valgrind knows: programs built for x86-64-v3 run, AVX-512 does not."""
import os
import re
import shutil
import subprocess
import tempfile

from tools import stop

# Time and cycles are not what is counted, so the runtime's watchers and timers stay out of the way.
ENVIRONMENT = dict(os.environ, BEND_THREADS="1", BEND_GPU="off")


def available():
    return shutil.which("valgrind") is not None


def run(words):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=ENVIRONMENT)
    if done.returncode != 0:
        stop(f"{' '.join(words)}: exit status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done


def of_program(words):
    """Instructions and stdout of a command that must succeed."""
    done = run(["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", *words])
    found = re.search(r"I\s+refs:\s+([0-9,]+)", done.stderr)
    if not found:
        stop(f"valgrind counted nothing for {' '.join(words)}:\n{done.stderr[-2000:]}")
    return int(found.group(1).replace(",", "")), done.stdout.strip()


def of_functions(words, names):
    """name -> instructions inside the function of that name and all that it calls; `total` is the process. Names are qualified, without parameters."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "callgrind.out")
        run(["valgrind", "--tool=callgrind", "--callgrind-out-file=" + out, *words])
        lines = run(["callgrind_annotate", "--inclusive=yes", "--threshold=100", out]).stdout.splitlines()
    counts = {}
    for line in lines:
        found = re.match(r"\s*([0-9,]+) \([ 0-9.]+%\)\s+(.*)", line)
        if not found:
            continue
        count, text = int(found.group(1).replace(",", "")), found.group(2)
        if text.startswith("PROGRAM TOTALS"):
            counts["total"] = count
        # The first line of a name is its largest: lambdas inside it and outlined cold parts come later.
        name = text.split(":", 1)[-1].split("(", 1)[0]
        if name in names:
            counts.setdefault(name, count)
    return counts
