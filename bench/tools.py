"""What the measurements share: running and timing commands, summaries, the machine's description, results."""
import datetime
import json
import math
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


def build_bend(source, name, level="-O3"):
    out = os.path.join(WORK, name)
    command([BENDC, "build", source, "-o", out, level, "--cpu", CPU])
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


def described(about):
    """The line above a table: where, when and with what its times were taken."""
    return f"{about['processor']}, {about['threads']} threads, shared; {about['date']}; {about['gcc']}; {about['clang']}; commit {about['commit']}; {CPU}."


def rewrite(path, mark, lines):
    """Puts lines between the marks `<!-- MARK -->` and `<!-- end of MARK -->` of a file."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    begin, end = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->\n"
    if begin not in text or end not in text:
        stop(f"{os.path.relpath(path)} lacks the marks of `{mark}`")
    head, tail = text.split(begin)[0], text.split(end)[1]
    with open(path, "w", encoding="utf-8") as file:
        file.write(head + begin + "\n".join(lines) + "\n" + end + tail)


def bars(groups, good):
    """Bars of ratios on a logarithmic scale around 1, as SVG: title -> name -> ratio; green up to `good`."""
    left, width, step = 130, 520, 18
    span = 4.0  # from 1/span to span
    while any(ratio > span for rows in groups.values() for ratio in rows.values()):
        span *= 4

    def place(ratio):
        return left + width * (math.log(min(max(ratio, 1 / span), span)) / math.log(span) + 1) / 2

    marks = [span ** (k / 2) for k in range(-2, 3)]
    out, y = [], 24
    for title, rows in groups.items():
        out.append(f'<text x="8" y="{y}" font-weight="bold">{title}</text>')
        y += 8
        top = y
        for name, ratio in rows.items():
            y += step
            a, b = sorted((place(1), place(ratio)))
            fill = "#2a7" if ratio <= good else "#c83"
            out.append(f'<text x="{left - 8}" y="{y}" text-anchor="end">{name}</text>')
            out.append(f'<rect x="{a:.1f}" y="{y - 11}" width="{max(b - a, 1):.1f}" height="13" fill="{fill}"/>')
            out.append(f'<text x="{left + width + 8}" y="{y}">{ratio:.3g}</text>')
        for mark in marks:
            out.append(f'<line x1="{place(mark):.1f}" x2="{place(mark):.1f}" y1="{top + 4}" y2="{y + 6}" stroke="#999" stroke-dasharray="{0 if mark == 1 else 2}"/>')
            out.append(f'<text x="{place(mark):.1f}" y="{y + 18}" text-anchor="middle">{mark:.3g}</text>')
        y += 50
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 60}" height="{y - 20}" font-family="sans-serif" font-size="12">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *out, "</svg>", ""])
