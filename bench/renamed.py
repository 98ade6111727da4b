#!/usr/bin/env python3
"""A program under other names: every def, type and constructor of a file, and of the library modules that it imports by name, gets a name without
meaning; a library module becomes a file beside the program, under a meaningless alias. Base, main, fields and variables keep their names (those that are
spelt as a def are renamed with it, which changes nothing). Nothing else of the text changes but comments, which go.

usage: renamed.py [--seed N] FILE FOLDER     writes FOLDER/main.bend and the modules; FOLDER/names.txt has a line `module OLD NEW` or `FILE OLD NEW` for each
"""
import argparse
import hashlib
import os
import re
import sys

LIBRARY = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "stdlib")
TOKEN = re.compile(r"""(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.[^'\n]*)')|(?P<comment>\#[^\n]*)|(?P<number>[0-9][A-Za-z0-9_.]*)|(?P<name>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)|(?P<other>\s+|.)""", re.S)
IMPORT = re.compile(r"^import +([A-Za-z_][A-Za-z0-9_]*) *(?:#.*)?$", re.M)
DEF = re.compile(r"^(?:@[a-z]+ +)*(?:def|law) +([A-Za-z_][A-Za-z0-9_.]*)", re.M)
TYPE = re.compile(r"^type +([A-Za-z_][A-Za-z0-9_.]*)[^\n]*\n((?:[ \t]+[^\n]*\n|[ \t]*\n|#[^\n]*\n)*)", re.M)
CONSTRUCTOR = re.compile(r"^[ \t]+([A-Za-z_][A-Za-z0-9_.]*)\{", re.M)


class Names:
    """Fresh names: their order says nothing about the order of the old ones."""

    def __init__(self, seed):
        self.seed, self.count, self.used = seed, 0, set()

    def fresh(self, first):
        while True:
            self.count += 1
            name = first + hashlib.sha256(f"{self.seed} {self.count}".encode()).hexdigest()[:7]
            if name not in self.used:
                self.used.add(name)
                return name


def own_names(text, names, keep):
    """Old to new name of what a file declares."""
    text += "\n"
    found = {}
    for match in DEF.finditer(text):
        found.setdefault(match.group(1), "d")
    for match in TYPE.finditer(text):
        found.setdefault(match.group(1), "T")
        for constructor in CONSTRUCTOR.finditer(match.group(2)):
            found.setdefault(constructor.group(1), "C")
    return {old: names.fresh(first) for old, first in found.items() if old not in keep}


def rename(text, own, modules):
    """`modules`: library name -> (new alias, its names)."""
    out = []
    for match in TOKEN.finditer(text):
        token = match.group()
        if match.lastgroup == "comment":
            continue
        if match.lastgroup == "name":
            head, _, rest = token.partition(".")
            if token in own:
                token = own[token]
            elif head in modules and rest in modules[head][1]:
                token = f"{modules[head][0]}.{modules[head][1][rest]}"
        out.append(token)
    return "".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("file")
    parser.add_argument("folder")
    options = parser.parse_args()
    names = Names(options.seed)
    os.makedirs(options.folder, exist_ok=True)
    modules, texts = {}, {}

    def take(path, keep):
        text = open(path, encoding="utf-8").read()
        for name in IMPORT.findall(text):
            if name == "Base" or name in modules:
                continue
            modules[name] = (names.fresh("M"), take(os.path.join(LIBRARY, name + ".bend"), ()))
        texts[path] = (text, own_names(text, names, keep))
        return texts[path][1]

    take(options.file, ("main",))
    listed = [f"module {old} {new}\n" for old, (new, _) in modules.items()]
    for path, (text, own) in texts.items():
        module = next((m for m in modules if os.path.join(LIBRARY, m + ".bend") == path), None)
        body = rename(IMPORT.sub(lambda m: m.group() if m.group(1) == "Base" else f"import ./{modules[m.group(1)][0]}.bend as {modules[m.group(1)][0]}", text), own, modules)
        name = modules[module][0] if module else "main"
        with open(os.path.join(options.folder, name + ".bend"), "w", encoding="utf-8") as out:
            out.write(body)
        listed += [f"{module or 'main'} {old} {new}\n" for old, new in own.items()]
    with open(os.path.join(options.folder, "names.txt"), "w", encoding="utf-8") as out:
        out.writelines(listed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
