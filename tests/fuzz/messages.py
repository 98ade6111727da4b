#!/usr/bin/env python3
"""Messages for programs with one mistake: takes correct programs, changes one token of one of them, and looks at what `bendc check` says.

  messages.py --bendc PATH [--count N] [--seed S] [--show] FILE_OR_FOLDER...

Each mutant must be accepted or refused with exit status 1 within 10 s. A refused one must give a located error in its own file, few errors (one mistake
gives one report; a changed declaration may break its users), and, where the change lies in the body of a def, a first error inside that def.
--show prints every mutant's changed line and its report, to be read by people. The last line is `N passed, M failed`.
"""
import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

TOKEN = re.compile(r'#[^\n]*|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])+\'|[A-Za-z_][A-Za-z0-9_.]*|\d+\.\d+(?:e-?\d+)?|\d+n?\+?|<&>|->|=>|==|!=|<-|&&|\|\||<=|>=|<>|\+\+|<<|>>|\S')
HEAD = re.compile(r'^(?:@unsafe\s+)?(def|type|law)\b', re.M)
TYPES = ['U32', 'Nat', 'Bool', 'String', 'F32', 'Char', 'Type', 'Data']
WORDS = {'def', 'type', 'law', 'match', 'case', 'import', 'Base', 'do', 'for', 'exs', 'is', 'return', 'as', 'where'}
MAX_ERRORS_IN_BODY = 3    # a body's one mistake: the report, and at most two that a wrong name or a lost bracket makes
MAX_ERRORS = 12           # a declaration's: its users


def programs(paths):
    for path in paths:
        if os.path.isfile(path):
            yield path
            continue
        for folder, _, names in sorted(os.walk(path)):
            for name in sorted(names):
                if name.endswith('.bend'):
                    yield os.path.join(folder, name)


def tokens(text):
    return [(m.start(), m.end(), m.group()) for m in TOKEN.finditer(text) if not m.group().startswith('#')]


def mutate(text, rng):
    """(kind, offset, text with one change), or None where nothing can be changed."""
    found = tokens(text)
    found = [t for i, t in enumerate(found) if not (text.rfind('\n', 0, t[0]) < text.rfind('import', 0, t[0]) <= t[0] and '\n' not in text[text.rfind('import', 0, t[0]):t[0]])]
    if len(found) < 4:
        return None
    i = rng.randrange(len(found) - 1)
    start, end, token = found[i]
    kind = rng.choice(['rename', 'drop', 'duplicate', 'swap', 'type', 'literal'])
    if kind == 'rename':
        if not re.match(r'[A-Za-z_]', token) or token in WORDS:
            return None
        return kind, start, text[:end] + 'q' + text[end:]
    if kind == 'drop':
        return kind, start, text[:start] + text[end:]
    if kind == 'duplicate':
        return kind, start, text[:end] + ' ' + token + text[end:]
    if kind == 'swap':
        next_start, next_end, next_token = found[i + 1]
        if next_token == token:
            return None
        return kind, start, text[:start] + next_token + text[end:next_start] + token + text[next_end:]
    if kind == 'type':
        if token not in TYPES:
            return None
        return kind, start, text[:start] + rng.choice([t for t in TYPES if t != token]) + text[end:]
    if not token[0].isdigit() or not token.isdigit():
        return None
    return kind, start, text[:end] + 'n' + text[end:]


def region(text, offset):
    """(first line, last line, is a def, first line of its body) of the declaration around the offset; None outside of all."""
    heads = [m.start() for m in HEAD.finditer(text)]
    before = [h for h in heads if h <= offset]
    if not before:
        return None
    start = before[-1]
    after = [h for h in heads if h > offset]
    end = after[0] if after else len(text)
    line = lambda at: text.count('\n', 0, at) + 1
    is_def = 'def' in text[start:start + 12].split()
    header = re.compile(r':[ \t]*(?:#[^\n]*)?\n').search(text, start, end)
    return line(start), line(max(start, end - 1)), is_def, line(header.end()) if header else line(end)


def judge(bendc, path, text, changed, offset, kind, folder, number):
    name = os.path.join(os.path.dirname(os.path.abspath(path)), f'.mutant{number}.bend') if re.search(r'^import\s+\.', text, re.M) else os.path.join(folder, f'm{number}.bend')
    with open(name, 'w') as out:
        out.write(changed)
    try:
        run = subprocess.run([bendc, 'check', '--diagnostics=json', name], capture_output=True, text=True, timeout=10)
    except subprocess.TimeoutExpired:
        return 'hangs', [], ''
    finally:
        if '.mutant' in name:
            os.remove(name)
    if run.returncode not in (0, 1):
        return f'exit status {run.returncode}', [], run.stderr
    if run.returncode == 0:
        return None, [], ''
    try:
        reports = [json.loads(line) for line in run.stderr.splitlines() if line.startswith('{')]
    except ValueError:
        return 'a report that is no JSON', [], run.stderr
    errors = [r for r in reports if r['severity'] == 'error']
    own = [r for r in errors if os.path.basename(r.get('file', '')) == os.path.basename(name)]
    if not own:
        return 'no located error', errors, run.stderr
    if len(errors) > MAX_ERRORS:
        return f'{len(errors)} errors', errors, run.stderr
    where = region(text, offset)
    line = text.count('\n', 0, offset) + 1
    if where and where[2] and line >= where[3] and not HEAD.match(changed[offset:offset + 12]):
        # A lost bracket or quote can only be noticed at the next declaration.
        last = where[1] + 1 if kind in ('drop', 'duplicate', 'swap') else where[1]
        if not any(where[0] <= r['line'] <= last for r in own):
            return 'no error inside the changed def', errors, run.stderr
        if len(errors) > MAX_ERRORS_IN_BODY:
            return f'{len(errors)} errors for one change in a body', errors, run.stderr
    return None, errors, run.stderr


def main():
    options = argparse.ArgumentParser()
    options.add_argument('--bendc', required=True)
    options.add_argument('--count', type=int, default=200)
    options.add_argument('--seed', type=int, default=1)
    options.add_argument('--jobs', type=int, default=2)
    options.add_argument('--show', action='store_true')
    options.add_argument('paths', nargs='+')
    options = options.parse_args()
    rng = random.Random(options.seed)
    texts = []
    for path in programs(options.paths):
        text = open(path, errors='replace').read()
        if len(text) < 20000 and '.mutant' not in path:
            texts.append((path, text))
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        jobs = []
        accepted = {}
        while len(jobs) < options.count:
            path, text = rng.choice(texts)
            if path not in accepted:
                accepted[path] = subprocess.run([options.bendc, 'check', path], capture_output=True, timeout=60).returncode == 0
            made = mutate(text, rng) if accepted[path] else None
            if made:
                jobs.append((path, text, made))
        work = lambda n: judge(options.bendc, jobs[n][0], jobs[n][1], jobs[n][2][2], jobs[n][2][1], jobs[n][2][0], folder, n)
        with ThreadPoolExecutor(options.jobs) as pool:
            for n, (problem, errors, raw) in enumerate(pool.map(work, range(len(jobs)))):
                path, text, (kind, offset, changed) = jobs[n]
                line = text.count('\n', 0, offset)
                if problem is None:
                    passed += 1
                else:
                    failed += 1
                    print(f'FAIL {path}:{line + 1}, {kind} (seed {options.seed}, number {n}): {problem}')
                if problem or (options.show and errors):
                    print(f'  {path}:{line + 1} {kind}: {changed.splitlines()[line] if line < len(changed.splitlines()) else ""}')
                    for r in errors[:6]:
                        print(f'    {r["code"]} {r.get("line")}:{r.get("column")}-{r.get("end_column")} {r["message"]}' + ''.join(f' | expected {r["expected"]} observed {r["observed"]}' for _ in [0] if r.get('expected'))
                              + ''.join(f' | note: {x}' for x in r.get('notes', [])) + (f' | fix: {r["fix"]}' if r.get('fix') else ''))
                    if not errors:
                        print('    ' + raw[:500])
    print(f'{passed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
