#!/usr/bin/env python3
"""Cases as executables that need neither bendc nor a toolkit, and their check on another machine.

device_cases.py pack --bendc BENDC FOLDER DIR...      writes FOLDER/cases.tar.xz: each case of each DIR as it is, when it has a `!`, and with a `!` on each
                                                      call in main that may carry one (tests/tools/marked.py); and manifest.json, what each must print
device_cases.py run FOLDER [--gpu WHERE] [--forks W,..] [--jobs N] [--log FILE] [--seconds N]
                                                      runs them at each way of dealing out forks (`--gpu-fork`), a program at all ways before the next one, so
                                                      that what --seconds leaves out is whole programs, and names them; ends with `N passed, N failed`
device_cases.py emulate --bendc BENDC DIR...          both, on the emulated device, at every way, each in an order of its own (BEND_SCHED_SEED)

A program all of whose `!` ran on the emulated device must run on this machine's too (BEND_GPU=require); one with a `!` that can run on the host alone
is free to (auto). WHERE `emulate` runs programs that were packed with --emulator.
"""
import argparse
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

WAYS = ["auto", "host", "flat", "thread", "warp", "block", "sequential"]


def packed(bendc, path, folder, emulator):
    """Builds the case's programs into folder; returns their entries of the manifest."""
    import marked
    case = marked.Case(path)
    label = os.path.basename(path).removesuffix(".bend")
    if case.other or (case.lanes and "emulated" not in case.lanes) or not (case.out or case.status or case.stderr):
        return []
    entries = []
    with tempfile.TemporaryDirectory() as scratch:
        sources, entry = case.laid_out(scratch)
        flags = [word for word in case.flags if not word.startswith("--gpu") and not word.startswith("--threads")]

        def build(name):
            program = os.path.join(folder, name)
            options = ["--cpu", "x86-64-v3", "--gpu-fork=all", *(["--emulator"] if emulator else []), *[f for f in flags if f.startswith("-O")]]
            status, _, err = marked.run([bendc, "build", *options, os.path.basename(entry), "-o", program], sources)
            if status != 0:
                entries.append({"name": name, "problem": f"cannot be built: {err.decode(errors='replace')[:200]}"})
                return
            subprocess.run(["strip", program], check=True)
            _, _, stats = marked.run([bendc, "run", "--gpu", "emulate", "--stats", *flags, os.path.basename(entry), *case.args], sources)
            free = any(" on the CPU" in line or "cannot run" in line for line in stats.decode(errors="replace").split("\n"))
            entries.append({"name": name, "args": case.args, "status": case.status, "out": "".join(line + "\n" for line in case.out), "stderr": case.stderr, "files": case.files, "free": free})

        if "!(" in case.text:
            build(label)
        if case.candidates() and marked.marked(bendc, case, sources, entry):
            build(label + ".marked")
    return entries


def pack(args):
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    bendc = os.path.abspath(args.bendc)
    paths, seen = [], set()
    for folder in args.folders:
        if not os.path.isdir(folder):
            continue
        for name in sorted(os.listdir(folder)):
            path = os.path.join(os.path.abspath(folder), name)
            if name not in seen and (name.endswith(".bend") or os.path.exists(os.path.join(path, "main.bend"))):
                seen.add(name)
                paths.append(path)
    os.makedirs(args.folder, exist_ok=True)
    manifest = []
    with tempfile.TemporaryDirectory() as programs:
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            for entries in pool.map(lambda p: packed(bendc, p, programs, args.emulator), paths):
                manifest += entries
        # Programs of one runtime archive repeat it: a dictionary that spans many of them makes an archive of a hundredth.
        with tarfile.open(os.path.join(args.folder, "cases.tar.xz"), "w:xz", preset=3) as archive:
            for entry in manifest:
                if "problem" in entry:
                    continue
                archive.add(os.path.join(programs, entry["name"]), entry["name"])
    with open(os.path.join(args.folder, "manifest.json"), "w") as f:
        json.dump(manifest, f, indent=0)
    left_out = [entry for entry in manifest if "problem" in entry]
    for entry in left_out:
        print(f"{entry['name']} {entry['problem']}")
    size = os.path.getsize(os.path.join(args.folder, "cases.tar.xz"))
    print(f"{len(manifest)} programs of {len(paths)} cases, {size / 1e6:.1f} MB, {len(left_out)} left out")
    return 1 if left_out else 0


def ran(programs, entry, way, where):
    """What is wrong with this run, or None; and whether a device took a call."""
    if "problem" in entry:
        return entry["problem"], False
    with tempfile.TemporaryDirectory() as folder:
        for name, lines in entry["files"].items():
            os.makedirs(os.path.dirname(os.path.join(folder, name)) or folder, exist_ok=True)
            with open(os.path.join(folder, name), "w") as f:
                f.write("".join(line + "\n" for line in lines))
        gpu = where if where == "emulate" else "auto" if entry["free"] else "require"
        # Programs run side by side: none may take half of the device's memory.
        env = {"BEND_GPU_MEMORY": "1GB", "BEND_SCHED_SEED": str(WAYS.index(way)), **os.environ, "BEND_GPU": gpu, "BEND_GPU_FORK": way, "BEND_STATS": "1"}
        try:
            result = subprocess.run([os.path.join(programs, entry["name"]), *entry["args"]], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=90)
        except subprocess.TimeoutExpired:
            return "time-out", False
        err = result.stderr.decode(errors="replace")
        on_device = "bend: gpu: " in err
        if result.returncode != entry["status"]:
            return f"status {result.returncode}, expected {entry['status']}: {err[:400]}", on_device
        if result.stdout != entry["out"].encode():
            return f"stdout {result.stdout[:300]!r}, expected {entry['out'][:300]!r}", on_device
        for text in entry["stderr"]:
            if text not in err:
                return f"stderr lacks {text!r}: {err[:400]}", on_device
        return None, on_device


def check(args):
    with open(os.path.join(args.folder, "manifest.json")) as f:
        manifest = json.load(f)
    passed = failed = device = 0
    log = open(args.log, "w") if args.log else sys.stdout
    with tempfile.TemporaryDirectory() as programs:
        with tarfile.open(os.path.join(args.folder, "cases.tar.xz")) as archive:
            archive.extractall(programs)
        work = [(entry, way) for entry in manifest for way in args.forks.split(",")]
        start = time.monotonic()

        def one(item):
            if args.seconds and time.monotonic() - start > args.seconds:
                return None
            return ran(programs, item[0], item[1], args.gpu)

        left_out = []
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            for (entry, way), result in zip(work, pool.map(one, work)):
                if result is None:
                    left_out.append(f"{entry['name']} ({way})")
                    continue
                problem, on_device = result
                device += on_device
                if problem:
                    failed += 1
                    print(f"FAIL {entry['name']} ({way}): {problem}", file=log, flush=True)
                else:
                    passed += 1
    print(f"{device} of {len(work) - len(left_out)} runs called the device, in {time.monotonic() - start:.0f} s")
    if left_out:
        print(f"{len(left_out)} runs left out for lack of time, from {left_out[0]} on")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or left_out else 0


def emulate(args):
    with tempfile.TemporaryDirectory() as folder:
        args.folder, args.emulator, args.gpu, args.forks, args.log, args.seconds = folder, True, "emulate", ",".join(WAYS), None, None
        pack(args)
        return check(args)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    packing = commands.add_parser("pack")
    packing.add_argument("--bendc", required=True)
    packing.add_argument("--emulator", action="store_true")
    packing.add_argument("--jobs", type=int, default=2)
    packing.add_argument("folder")
    packing.add_argument("folders", nargs="+")
    packing.set_defaults(run=pack)
    running = commands.add_parser("run")
    running.add_argument("--gpu", default="require", choices=["require", "emulate"])
    running.add_argument("--forks", default="auto", help=",".join(WAYS))
    running.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    running.add_argument("--log")
    running.add_argument("--seconds", type=float, help="begin no run after so many seconds")
    running.add_argument("folder")
    running.set_defaults(run=check)
    emulating = commands.add_parser("emulate")
    emulating.add_argument("--bendc", required=True)
    emulating.add_argument("--jobs", type=int, default=2)
    emulating.add_argument("folders", nargs="+")
    emulating.set_defaults(run=emulate)
    args = parser.parse_args()
    return args.run(args)


if __name__ == "__main__":
    sys.exit(main())
