#!/usr/bin/env python3
"""Every case with a `!` on each call in `main` that may carry one, run on the emulated device: the bytes must be those of the expectation.

marked.py --bendc BENDC [--jobs N] [--keep DIR] [-v] DIR... [-- FILTER...]

DIR holds cases as docs/testing.md describes them (cases/run, cases/reports); a call may carry a mark when `bendc check` accepts it. A mark is
tried on each name before a parenthesis in the body of main, and kept when the program still checks. -v lists what keeps a call off the device.
"""
import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

CALL = re.compile(r"(?<![\w.!/])([A-Za-z_][\w.]*)\((?!\))")


class Case:
    """A case's text and what it expects; `path` is the file or folder, `entry` the file with main."""

    def __init__(self, path):
        self.path = path
        self.entry = os.path.join(path, "main.bend") if os.path.isdir(path) else path
        with open(self.entry, newline="") as f:
            self.text = f.read()
        self.out, self.status, self.flags, self.args, self.lanes, self.files, self.stderr = [], 0, [], [], None, {}, []
        self.other = False
        name = None
        for line in self.text.split("\n"):
            if line.startswith("#|"):
                self.out.append(line[3:] if line.startswith("#| ") else line[2:])
            elif line.startswith("#>") and name:
                self.files[name].append(line[3:] if line.startswith("#> ") else line[2:])
            elif line.startswith("#! "):
                words = line[3:].split()
                if words[0] == "exit":
                    self.status = int(words[1])
                elif words[0] == "flags":
                    self.flags = words[1:]
                elif words[0] == "args":
                    self.args = words[1:]
                elif words[0] == "lanes":
                    self.lanes = words[1:]
                elif words[0] == "file":
                    name = words[1]
                    self.files[name] = []
                elif words[0] == "stderr":
                    self.stderr.append(line[len("#! stderr "):])
                else:
                    self.other = True

    def laid_out(self, scratch):
        """A copy of the case in scratch with its files beside it; modules in folders beside that of the cases are found there too: (folder, entry)"""
        folder = os.path.join(scratch, "case")
        if os.path.isdir(self.path):
            shutil.copytree(self.path, folder)
        else:
            os.mkdir(folder)
            shutil.copy(self.path, folder)
        above = os.path.dirname(os.path.dirname(os.path.abspath(self.path)))
        for name in os.listdir(above):
            if name != "case" and os.path.isdir(os.path.join(above, name)):
                os.symlink(os.path.join(above, name), os.path.join(scratch, name))
        for name, lines in self.files.items():
            os.makedirs(os.path.dirname(os.path.join(folder, name)) or folder, exist_ok=True)
            with open(os.path.join(folder, name), "w") as f:
                f.write("".join(line + "\n" for line in lines))
        return folder, os.path.join(folder, os.path.basename(self.entry))

    def candidates(self):
        """Positions just after the names that could carry a mark, in the body of main."""
        start = re.search(r"^def main\b", self.text, re.M)
        if not start:
            return []
        rest = re.compile(r"\n(?=[^\s#)\]}])").search(self.text, start.end())
        end = rest.start() if rest else len(self.text)
        places = []
        for line in re.finditer(r"[^\n]*\n?", self.text[start.end():end]):
            code = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])*\'', lambda m: " " * len(m.group()), line.group().split("#")[0])
            places += [start.end() + line.start() + m.end(1) for m in CALL.finditer(code)]
        return places


def run(command, cwd, env=None, seconds=60):
    try:
        result = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=seconds, env=env)
    except subprocess.TimeoutExpired:
        return 124, b"", b"time-out"
    return result.returncode, result.stdout, result.stderr


def marked(bendc, case, folder, entry):
    """The text with every mark that checks, and how many there are."""

    def accepts(places):
        text = case.text
        for place in sorted(places, reverse=True):
            text = text[:place] + "!" + text[place:]
        with open(entry, "w", newline="") as f:
            f.write(text)
        return run([bendc, "check", os.path.basename(entry)], folder)[0] == 0

    def keep(places, kept):
        """The places among these that can be marked beside `kept`: halves that fail are tried on their own."""
        if not places:
            return []
        if accepts(kept + places):
            return places
        if len(places) == 1:
            return []
        middle = len(places) // 2
        first = keep(places[:middle], kept)
        return first + keep(places[middle:], kept + first)

    kept = keep(case.candidates(), [])
    accepts(kept)
    return len(kept)


def one(bendc, path, keep_in):
    """(path, marks, complaint, reasons)"""
    case = Case(path)
    if case.other or (case.lanes and "emulated" not in case.lanes) or not (case.out or case.status or case.stderr):
        return path, 0, None, []
    with tempfile.TemporaryDirectory() as scratch:
        folder, entry = case.laid_out(scratch)
        marks = marked(bendc, case, folder, entry)
        if marks == 0:
            return path, 0, None, []
        flags = [word for word in case.flags if not word.startswith("--gpu")]
        command = [bendc, "run", "--verify", "--gpu", "emulate", *flags, os.path.basename(entry), *case.args]
        status, out, err = run(command, folder)
        want = "".join(line + "\n" for line in case.out).encode()
        reasons = []
        _, _, stats = run([bendc, "run", "--gpu", "emulate", "--stats", *flags, os.path.basename(entry), *case.args], folder)
        for line in stats.decode(errors="replace").split("\n"):
            if " runs on the CPU" in line or "cannot run" in line:
                reasons.append(line.strip())
        if status == case.status and out == want and all(text in err.decode(errors="replace") for text in case.stderr):
            return path, marks, None, reasons
        if keep_in:
            os.makedirs(keep_in, exist_ok=True)
            shutil.copy(entry, os.path.join(keep_in, os.path.basename(path).removesuffix(".bend") + ".bend"))
        return path, marks, f"status {status}, expected {case.status}; stdout {out[:300]!r}, expected {want[:300]!r}; stderr {err[:400].decode(errors='replace')}", reasons


def main():
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bendc", required=True)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep")
    parser.add_argument("-v", action="store_true")
    parser.add_argument("folders", nargs="+")
    args = parser.parse_args(sys.argv[1:split])
    filters = sys.argv[split + 1:]
    bendc = os.path.abspath(args.bendc)
    paths = []
    for folder in args.folders:
        for name in sorted(os.listdir(folder)):
            path = os.path.join(os.path.abspath(folder), name)
            is_case = name.endswith(".bend") or os.path.exists(os.path.join(path, "main.bend"))
            if is_case and (not filters or any(word in name for word in filters)):
                paths.append(path)
    passed = failed = marks = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for path, count, complaint, reasons in pool.map(lambda p: one(bendc, p, args.keep), paths):
            marks += count
            if complaint:
                failed += 1
                print(f"FAIL {path} ({count} marks): {complaint}")
            elif count:
                passed += 1
            if args.v:
                for reason in sorted(set(reasons)):
                    print(f"  {os.path.basename(path)}: {reason}")
    print(f"{marks} calls marked")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
