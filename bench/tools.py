"""What the measurements share: running and timing commands, summaries, the machine's description, results."""
import datetime
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
BENDC = os.path.join(ROOT, "build", "release", "bendc")
WORK = os.path.join(ROOT, "build", "bench")
RESULTS = os.path.join(ROOT, "bench", "results")
CPU = "x86-64-v3"


def progress(text):
    if sys.stderr.isatty():
        print("\r\033[K" + text, end="", file=sys.stderr, flush=True)


def stop(text):
    progress("")
    sys.exit("bench: " + text)


def command(words, **options):
    """Runs a command that must succeed; its stdout."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, **options)
    if done.returncode != 0:
        stop(f"{' '.join(words)}: exit status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def timed(words, **options):
    """Wall seconds, processor seconds and stdout of a command that must succeed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    out = command(words, **options)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, out.strip()


def summary(samples):
    ordered = sorted(samples)
    quartiles = statistics.quantiles(ordered, n=4) if len(ordered) > 1 else [ordered[0]] * 3
    return {"median": statistics.median(ordered), "low": quartiles[0], "high": quartiles[2], "rounds": len(ordered)}


def first_line(words):
    try:
        return command(words).splitlines()[0]
    except FileNotFoundError:
        return None


def machine():
    model = platform.machine()
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        for line in info:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True, check=False).stdout.strip()
    return {
        "processor": model,
        "threads": os.cpu_count(),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit,
        "gcc": first_line(["gcc", "--version"]),
        "clang": first_line(["clang", "--version"]),
        "bendc": first_line([BENDC, "--version"]),
    }


def save(row, result):
    os.makedirs(RESULTS, exist_ok=True)
    path = os.path.join(RESULTS, row + ".json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
        file.write("\n")
    print(f"written to {os.path.relpath(path)}")


def build_bend(source, name):
    out = os.path.join(WORK, name)
    command([BENDC, "build", source, "-o", out, "-O3", "--cpu", CPU])
    return out


def measured(words, **options):
    """One run of a command that must succeed, by its own accounts: processor seconds, peak memory in KB, and stdout."""
    helper = os.path.join(WORK, "account")
    if not os.path.exists(helper):
        command(["cc", "-O2", "-o", helper, os.path.join(ROOT, "bench", "account.c")])
    done = subprocess.run([helper, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        stop(f"{' '.join(words)}: exit status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    micros, peak = done.stderr.splitlines()[-1].split()
    return int(micros) / 1e6, int(peak), done.stdout.strip()
