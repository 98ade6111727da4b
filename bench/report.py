"""`scripts/bench gpu FOLDER` (and `report FOLDER`): merges what run-gpu.sh left on a GPU machine (doctor.txt, checks.txt, times.tsv, twins.txt) into bench/results/gpu.json
and the table `gpu` of docs/performance.md. A row whose result differs from the CPU's stops the report."""
import collections
import math
import os
import statistics
import subprocess

from tools import ROOT, bars, command, progress, rewrite, save, stop

# The twin a row is compared with, where it is not the first line of the same name: programs with a cell a word, and the same search as a tree of forks.
TWIN = {"life": "life.u32", "twins.queens": "queens", "scan": None, "scan_whole": None, "scan_repeat": None}


def read(folder, name):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        stop(f"{folder} has no {name}: it is no folder of results of run-gpu.sh")
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read().splitlines()


def twins_of(lines):
    """name -> (size, seconds) of the twin's first line."""
    twins = {}
    for line in lines:
        words = line.split()
        if len(words) >= 4 and words[0] != "bench":
            try:
                twins.setdefault(words[0], (words[1], float(words[3])))
            except ValueError:
                continue
    return twins


def gpu_present():
    """Is there an NVIDIA driver's device?"""
    return os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/nvidia0")


def run_pack():
    """Makes the pack, runs it here; the folder of its results."""
    pack, results = os.path.join(ROOT, "build", "gpu-pack"), os.path.join(ROOT, "build", "gpu-results")
    progress("making the pack")
    command([os.path.join(ROOT, "scripts", "gpu-pack"), pack])
    progress("running the pack (up to 8 minutes)")
    done = subprocess.run([os.path.join(pack, "run-gpu.sh"), results], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    progress("")
    if not os.path.exists(os.path.join(results, "times.tsv")):
        stop(f"run-gpu.sh left no results\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return results


def bench_gpu(options):
    if not options.folder and not gpu_present():
        stop("there is no NVIDIA driver here. On a machine with a GPU: copy the folder that scripts/gpu-pack makes there and run run-gpu.sh in it; then "
             "`scripts/bench gpu FOLDER` here with the folder of its results")
    folder = options.folder or run_pack()
    doctor, checks = read(folder, "doctor.txt"), read(folder, "checks.txt")
    twins = twins_of(read(folder, "twins.txt")) if os.path.exists(os.path.join(folder, "twins.txt")) else {}
    runs = collections.OrderedDict()
    head = None
    for line in read(folder, "times.tsv"):
        cells = line.split("\t")
        if head is None:
            head = cells
            continue
        run = dict(zip(head, cells))
        if run["result"] != run["cpu_result"]:
            stop(f"{run['program']}: the device's result is {run['result']}, the CPU's {run['cpu_result']}")
        runs.setdefault((run["program"], run["words"]), []).append(run)
    rows, lines = {}, []
    for (name, words), samples in runs.items():
        device = statistics.median(float(s["device_us"]) for s in samples) / 1000
        call = statistics.median(float(s["call_us"]) for s in samples) / 1000
        twin = twins.get(TWIN.get(name, name)) if TWIN.get(name, name) else None
        kernels = statistics.median(float(s["kernels_us"]) for s in samples) / 1000
        copies = statistics.median(float(s["copies_us"]) for s in samples) / 1000
        ratio = kernels / 1000 / twin[1] if twin else None
        rows[name] = {"words": words, "kernels_ms": kernels, "copies_ms": copies, "device_ms": device, "call_ms": call, "rounds": int(samples[0]["rounds"]), "tasks": int(samples[0]["tasks"]),
                      "twin_ms": twin[1] * 1000 if twin else None, "ratio": ratio, "result": samples[0]["result"]}
        lines.append(f"| {name} | {words} | {kernels:.3g} | {copies:.3g} | {device:.3g} | {call:.3g} | {rows[name]['rounds']} | {rows[name]['tasks']} | "
                     + (f"{twin[1] * 1000:.3g} | **{ratio:.1f}** |" if twin else "- | - |"))
    compared = [row["ratio"] for row in rows.values() if row["ratio"]]
    if compared:
        mean = math.exp(sum(map(math.log, compared)) / len(compared))
        lines.append(f"| geometric mean | | | | | | | | | **{mean:.1f}** |")
    about = "; ".join(line.strip() for line in (doctor[0], doctor[2], doctor[3]) if line.strip())
    passed = next((line for line in reversed(checks) if line.startswith("checks:")), "checks: none")
    save("gpu", {"machine": about, "checks": passed, "rows": rows})
    table = [about + ". " + passed.capitalize() + ".", "",
             "| program | words | kernels ms | copies ms | all device ms | all calls ms | rounds | tasks | CUDA twin ms | ratio |", "|---|---|---|---|---|---|---|---|---|---|", *lines]
    rewrite(os.path.join(ROOT, "docs", "performance.md"), "gpu", table)
    with open(os.path.join(ROOT, "docs", "performance-gpu.svg"), "w", encoding="utf-8") as file:
        file.write(bars({"kernel time over the CUDA twin's": {name: row["ratio"] for name, row in rows.items() if row["ratio"]}}, 3.0))
    print("\n".join(table))
