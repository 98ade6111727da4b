#!/usr/bin/env python3
"""Cases as shared objects that one process loads, runs and unloads in turn, and their check on another machine.

device_cases.py pack --bendc BENDC --runner RUNNER FOLDER DIR...
                                                      writes FOLDER/cases.tar.xz: each case of each DIR as it is, when it has a `!`, and with a `!` on each
                                                      call in main that may carry one (tests/tools/marked.py); manifest.json, what each must print; and the
                                                      runner (tests/tools/case_runner.cpp). Neither bendc nor a toolkit is needed to run them
device_cases.py run FOLDER [--gpu WHERE] [--forks W,..] [--processes N] [--jobs N] [--log FILE] [--seconds N]
                                                      runs them at each way of dealing out forks (`--gpu-fork`): a process a way, or N processes with a share of
                                                      the programs each, --jobs of them side by side; names what --seconds leaves out; ends with
                                                      `N passed, N failed`
device_cases.py emulate --bendc BENDC --runner RUNNER [--stand-in LIBRARY] [--forks W,..] [--match WORD,..] DIR...
                                                      both, on the emulated device, each way in an order of its own (BEND_SCHED_SEED), and then through the
                                                      stand-in for the driver; fails, too, when a program leaves threads, descriptors or something of the
                                                      driver's in the process, or cannot be unloaded

A program all of whose `!` ran on the emulated device must run on this machine's too (BEND_GPU=require); one with a `!` that can run on the host alone
is free to (auto). WHERE `emulate` runs programs that were packed with --emulator.

A program ends its process when its stack overflows or it faults; one that failed its check may have left something behind, and one that takes too long
is killed. A new process goes on with the next program in each case, and the number of processes is reported. The ways begin at different places of the
list: one of them has a module compiled by the driver, the others find it in the driver's cache.
"""
import argparse
import concurrent.futures
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

WAYS = ["auto", "host", "flat", "thread", "warp", "block", "sequential"]
LAUNCHED = ("thread", "warp", "block")   # their kernel's twin is no function of a thread, so the stand-in has none
PROGRAM_LIMIT = 120     # seconds of a program: one that runs in one thread of a device shares it with the other processes
START_LIMIT = 60        # of the driver's start and of the process's end
RUNNER_FAILED = 90      # exit status of case_runner when it, not a program, failed
HOLDINGS = ("threads", "descriptors", "mapped_kib", "driver")   # of the process, before the first program and after each
ANSWER_FIELDS = {"ready": 2 + len(HOLDINGS), "done": 5 + len(HOLDINGS)}
SLOW_MODULE = 0.2       # seconds: the driver compiled it; from its cache it takes some milliseconds


def packed(bendc, path, folder, emulator):
    """Builds the case's programs into folder; returns their entries of the manifest."""
    import marked   # not in a pack
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
            options = ["--shared", "--cpu", "x86-64-v3", "--gpu-fork=all", *(["--emulator", "--no-ptx"] if emulator else []), *[f for f in flags if f.startswith("-O")]]
            status, _, err = marked.run([bendc, "build", *options, os.path.basename(entry), "-o", program], sources, seconds=300)
            if status != 0:
                entries.append({"name": name, "problem": f"cannot be built: {err.decode(errors='replace')[:200]}"})
                return
            subprocess.run(["strip", program], check=True)
            _, _, stats = marked.run([bendc, "run", "--gpu", "emulate", "--stats", *flags, os.path.basename(entry), *case.args], sources)
            free = any(" runs on the CPU" in line or "cannot run" in line for line in stats.decode(errors="replace").split("\n"))
            entries.append({"name": name, "args": case.args, "status": case.status, "out": "".join(line + "\n" for line in case.out), "stderr": case.stderr, "files": case.files, "free": free})

        if "!(" in case.text:
            build(label)
        if case.candidates() and marked.marked(bendc, case, sources, entry):
            build(label + ".marked")
    return entries


def pack(args):
    bendc = os.path.abspath(args.bendc)
    paths, seen = [], set()
    for folder in args.folders:
        if not os.path.isdir(folder):
            continue
        for name in sorted(os.listdir(folder)):
            path = os.path.join(os.path.abspath(folder), name)
            if name not in seen and (not args.match or any(word in name for word in args.match.split(","))) and (name.endswith(".bend") or os.path.exists(os.path.join(path, "main.bend"))):
                seen.add(name)
                paths.append(path)
    os.makedirs(args.folder, exist_ok=True)
    manifest = []
    with tempfile.TemporaryDirectory() as programs:
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            for entries in pool.map(lambda p: packed(bendc, p, programs, args.emulator), paths):
                manifest += entries
        with tarfile.open(os.path.join(args.folder, "cases.tar.xz"), "w:xz", preset=3) as archive:
            for entry in manifest:
                if "problem" in entry:
                    continue
                archive.add(os.path.join(programs, entry["name"]), entry["name"])
    shutil.copy(args.runner, os.path.join(args.folder, "case_runner"))
    with open(os.path.join(args.folder, "manifest.json"), "w") as f:
        json.dump(manifest, f, indent=0)
    left_out = [entry for entry in manifest if "problem" in entry]
    for entry in left_out:
        print(f"{entry['name']} {entry['problem']}")
    size = os.path.getsize(os.path.join(args.folder, "cases.tar.xz"))
    print(f"{len(manifest)} programs of {len(paths)} cases, {size / 1e6:.1f} MB, {len(left_out)} left out")
    return 1 if left_out else 0


class Ended(Exception):
    """The process has ended: its exit status, or why it was killed."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class Process:
    """A case_runner that runs the programs of one way."""

    def __init__(self, runner, way, where, folder):
        # Programs run side by side: none may take half of the device's memory, or all processors.
        env = {"BEND_GPU_MEMORY": "256MB" if where == "stand-in" else "1GB", "BEND_THREADS": "2", "BEND_SCHED_SEED": str(WAYS.index(way)), **os.environ, "BEND_GPU_FORK": way, "BEND_STATS": "1"}
        self.folder = folder
        self.errors = open(os.path.join(folder, "runner.txt"), "w")
        command = [runner, *{"emulate": [], "require": ["--device"], "stand-in": ["--stand-in"]}[where]]
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors)
        ready = [int(value) for value in self.answer("ready", START_LIMIT)]
        self.driver_us, self.first = ready[0], dict(zip(HOLDINGS, ready[1:]))

    def answer(self, word, seconds):
        """The fields after `word` of the runner's next line."""
        line, until = b"", time.monotonic() + seconds
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, until - time.monotonic()))
            if not ready:
                self.process.kill()
                self.process.wait()
                raise Ended(None, f"time-out after {seconds} s")
            part = os.read(self.process.stdout.fileno(), 4096)
            if not part:
                status = self.process.wait()
                with open(os.path.join(self.folder, "runner.txt"), errors="replace") as f:
                    raise Ended(status, f.read()[-400:].strip())
            line += part
        fields = line.decode().split()
        if fields[0] != word or len(fields) != ANSWER_FIELDS[word]:
            self.process.kill()
            self.process.wait()
            raise Ended(None, f"unexpected answer {line!r}: the runner is of another version")
        return fields[1:]

    def run(self, program, gpu, words, folder):
        """(status, answer): of a program that ended the process, its status and None."""
        fields = [program, folder, os.path.join(self.folder, "out"), os.path.join(self.folder, "err"), gpu, *words]
        for path in fields[2:4]:
            if os.path.exists(path):
                os.remove(path)
        try:
            self.process.stdin.write(("\t".join(fields) + "\n").encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            pass   # its end is read next
        try:
            values = [int(value) for value in self.answer("done", PROGRAM_LIMIT)]
        except Ended as end:
            if end.status is None or end.status == RUNNER_FAILED:
                raise
            return end.status, None
        return values[0], dict(zip(("load_us", "run_us", "unloaded", *HOLDINGS), values[1:]))

    def output(self, name):
        try:
            with open(os.path.join(self.folder, name), "rb") as f:
                return f.read()
        except FileNotFoundError:
            return b""

    def close(self):
        """Ends the process; what is wrong with its end."""
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(START_LIMIT)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                return f"the process did not end within {START_LIMIT} s"
        self.errors.close()
        return None if self.process.returncode == 0 else f"the process ended with status {self.process.returncode}"


def first_difference(got, want):
    got, want = got.decode(errors="replace").split("\n"), want.split("\n")
    for i in range(max(len(got), len(want))):
        a, b = (lines[i] if i < len(lines) else None for lines in (got, want))
        if a != b:
            show = lambda line: "nothing" if line is None else repr(line[:200])
            return f"line {i + 1} is {show(a)}, expected {show(b)}"
    return "none"


def verdict(entry, status, out, err):
    """What is wrong with the run, or None."""
    text = err.decode(errors="replace")
    told = "; ".join(line for line in text.split("\n") if line and not re.match(r"bend: (gpu|worker)", line))[:400]
    if status != entry["status"]:
        ended = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
        return f"{ended}, expected {entry['status']}: {told}"
    if out != entry["out"].encode():
        return f"stdout: {first_difference(out, entry['out'])}; stderr: {told}"
    for wanted in entry["stderr"]:
        if wanted not in text:
            return f"stderr lacks {wanted!r}: {told}"
    return None


class Lane:
    """One way's share of the programs, in as few processes as its programs allow."""

    def __init__(self, programs, runner, way, where, entries, until):
        self.programs, self.runner, self.way, self.where, self.entries, self.until = programs, runner, way, where, entries, until
        self.passed, self.device, self.processes = 0, 0, 0
        self.failed, self.left_out, self.ends = [], [], []
        self.seconds = self.driver = self.modules = self.linking = self.memory = self.waited = self.loading = self.running = 0.0
        self.slow_modules = 0
        self.longest = (0.0, "")
        self.more = dict.fromkeys(HOLDINGS, 0)

    def run(self):
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            process = None
            for number, entry in enumerate(self.entries):
                if self.until and time.monotonic() > self.until:
                    self.left_out = [other["name"] for other in self.entries[number:]]
                    break
                process = self.one(process, entry, folder)
            if process and (problem := process.close()):
                self.failed.append(("the last process", problem))
        self.seconds = time.monotonic() - begin
        return self

    def one(self, process, entry, folder):
        """Runs a program; the process for the next one, or None."""
        if "problem" in entry:
            self.failed.append((entry["name"], entry["problem"]))
            return process
        try:
            if not process:
                self.processes += 1
                process = Process(self.runner, self.way, self.where, folder)
                self.driver += process.driver_us / 1e6
            with tempfile.TemporaryDirectory() as place:
                for name, lines in entry["files"].items():
                    os.makedirs(os.path.dirname(os.path.join(place, name)) or place, exist_ok=True)
                    with open(os.path.join(place, name), "w") as f:
                        f.write("".join(line + "\n" for line in lines))
                gpu = "emulate" if self.where == "emulate" else "auto" if entry["free"] else "require"
                begin = time.monotonic()
                status, answer = process.run(os.path.join(self.programs, entry["name"]), gpu, entry["args"], place)
                took = time.monotonic() - begin
        except Ended as end:
            self.failed.append((entry["name"], f"{end} (status {end.status})"))
            if process:
                process.errors.close()
            return None
        out, err = process.output("out"), process.output("err")
        if took > self.longest[0]:
            self.longest = (took, entry["name"])
        self.count(err.decode(errors="replace"), answer)
        problem = verdict(entry, status, out, err) or self.left_behind(process, answer)
        if problem:
            self.failed.append((entry["name"], problem))
        else:
            self.passed += 1
        if not answer:
            self.ends.append(entry["name"])
            process.errors.close()
            return None
        if problem:
            process.close()
            return None
        return process

    def left_behind(self, process, answer):
        """What of the program is left in the process, or None."""
        if not answer:
            return None
        if not answer["unloaded"]:
            return "the program stays loaded"
        more = {name: answer[name] - process.first[name] for name in HOLDINGS}
        self.more = {name: max(more[name], self.more[name]) for name in HOLDINGS}
        # A driver has threads and descriptors of its own, which come and go.
        if self.where != "require" and (more["threads"], more["descriptors"], more["driver"]) != (0, 0, 0):
            return f"left behind in the process: {more['threads']} threads, {more['descriptors']} descriptors, {more['driver']} of the driver's"
        return None

    def count(self, stats, answer):
        calls = re.search(r"^bend: gpu: .*; (\d+) calls,", stats, re.M)
        self.device += bool(calls and int(calls.group(1)))
        if start := re.search(r"start: driver (\d+) us, context (\d+) us, module (\d+) us, memory (\d+) us, waited for (\d+) us", stats):
            driver, context, module, memory, waited = (int(text) / 1e6 for text in start.groups())
            self.driver += driver + context
            self.modules += module
            self.slow_modules += module > SLOW_MODULE
            self.memory += memory
            self.waited += waited
        if linked := re.search(r"linked in (\d+) us", stats):
            self.linking += int(linked.group(1)) / 1e6
        if answer:
            self.loading += answer["load_us"] / 1e6
            self.running += answer["run_us"] / 1e6

    def line(self):
        text = f"{self.way}: {self.passed} passed, {len(self.failed)} failed, {self.processes} processes, {self.seconds:.1f} s"
        if self.where != "emulate":
            text += f": driver and context {self.driver:.2f}, modules {self.modules:.2f} ({self.slow_modules} above {SLOW_MODULE} s), linking {self.linking:.2f}, memory {self.memory:.2f}"
        text += f"; objects {self.loading:.2f}, bend_start {self.running:.2f}; longest {self.longest[1]} {self.longest[0]:.2f}"
        text += f"; at most {self.more['mapped_kib'] // 1024} MiB mapped, {self.more['threads']} threads and {self.more['descriptors']} descriptors more than before the first"
        return text


def run_all(args, where, ways):
    """Runs the folder's programs at the ways; (passed, failed, left out)."""
    with open(os.path.join(args.folder, "manifest.json")) as f:
        manifest = json.load(f)
    log = open(args.log, "w") if args.log else sys.stdout
    start = time.monotonic()
    runner = os.path.join(os.path.abspath(args.folder), "case_runner")
    with tempfile.TemporaryDirectory() as programs:
        with tarfile.open(os.path.join(args.folder, "cases.tar.xz")) as archive:
            archive.extractall(programs)
        os.chmod(runner, 0o755)
        until = start + args.seconds if args.seconds else None
        lanes = []
        for number, way in enumerate(ways):
            turn = len(manifest) * number // len(ways)
            turned = manifest[turn:] + manifest[:turn]
            lanes += [Lane(programs, runner, way, where, turned[share::args.processes], until) for share in range(args.processes)]
        with concurrent.futures.ThreadPoolExecutor(args.jobs or len(lanes)) as pool:
            for lane in pool.map(Lane.run, lanes):
                for name, problem in lane.failed:
                    print(f"FAIL {name} ({lane.way}): {problem}", file=log, flush=True)
    for lane in lanes:
        print(lane.line())
        if lane.ends:
            print(f"  ended their process: {', '.join(lane.ends)}")
        if lane.left_out:
            print(f"  {len(lane.left_out)} left out for lack of time, from {lane.left_out[0]} on")
    counts = [sum(each) for each in zip(*((lane.passed, len(lane.failed), len(lane.left_out)) for lane in lanes))]
    print(f"{sum(lane.device for lane in lanes)} of {counts[0] + counts[1]} runs called the device, in {sum(lane.processes for lane in lanes)} processes and {time.monotonic() - start:.0f} s")
    return counts


def finish(passed, failed, left_out):
    if left_out:
        print(f"{left_out} runs left out for lack of time")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or left_out else 0


def check(args):
    return finish(*run_all(args, args.gpu, args.forks.split(",")))


def emulate(args):
    with tempfile.TemporaryDirectory() as folder:
        args.folder, args.emulator, args.log, args.seconds, args.processes = folder, True, None, None, 1
        pack(args)
        ways = args.forks.split(",")
        counts = run_all(args, "emulate", ways)
        if args.stand_in:
            os.environ["BEND_CUDA_LIBRARY"] = os.path.abspath(args.stand_in)
            print("through the stand-in for the driver:")
            more = run_all(args, "stand-in", [way for way in ways if way not in LAUNCHED])
            counts = [a + b for a, b in zip(counts, more)]
        return finish(*counts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    packing = commands.add_parser("pack")
    packing.add_argument("--emulator", action="store_true")
    packing.add_argument("folder")
    packing.set_defaults(run=pack)
    running = commands.add_parser("run")
    running.add_argument("--gpu", default="require", choices=["require", "emulate", "stand-in"])
    running.add_argument("--forks", default="auto", help=",".join(WAYS))
    running.add_argument("--processes", type=int, default=1, help="processes a way, each with a share of the programs")
    running.add_argument("--jobs", type=int, help="processes side by side; default: all")
    running.add_argument("--log")
    running.add_argument("--seconds", type=float, help="begin no run after so many seconds")
    running.add_argument("folder")
    running.set_defaults(run=check)
    emulating = commands.add_parser("emulate")
    emulating.add_argument("--forks", default=",".join(WAYS))
    emulating.add_argument("--stand-in", help="the library made of tests/fake_cuda")
    emulating.set_defaults(run=emulate)
    for command in packing, emulating:
        command.add_argument("--bendc", required=True)
        command.add_argument("--runner", required=True, help="the executable made of tests/tools/case_runner.cpp")
        command.add_argument("--jobs", type=int, default=2)
        command.add_argument("--match", help="only cases whose name has one of these words")
        command.add_argument("folders", nargs="+")
    args = parser.parse_args()
    return args.run(args)


if __name__ == "__main__":
    sys.exit(main())
