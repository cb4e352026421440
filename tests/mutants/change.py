# SPDX-License-Identifier: MIT
"""Mutants of the lines that a change touches: a negated condition, an off-by-one error, a removed
call, a swapped constant."""

import collections
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("spec", "backend", "fs")
COMMITS = 20  # number of commits to check if none is named

# In line NUMBER of FILE, the text is replaced by NEW. WHAT describes the mutation.
Mutant = collections.namedtuple("Mutant", "file number what new")

SWAPS = [  # (what, pattern, replacement)
    ("off by one", r"(?<= )<(?= )", "<="), ("off by one", r"(?<= )<=(?= )", "<"),
    ("off by one", r"(?<= )>(?= )", ">="), ("off by one", r"(?<= )>=(?= )", ">"),
    ("off by one", r" [+-] 1\b", ""),
    ("other condition", r"(?<= )==(?= )", "!="), ("other condition", r"(?<= )!=(?= )", "=="),
    ("other condition", r"(?<= )&&(?= )", "||"), ("other condition", r"(?<= )\|\|(?= )", "&&"),
    ("other constant", r"\btrue\b", "false"), ("other constant", r"\bfalse\b", "true"),
    ("other constant", r"(?<![\w.\"'])0(?![\w.])", "1"), ("other constant", r"(?<![\w.\"'])1(?![\w.])", "0"),
    ("other constant", r"-E(?!AGAIN\b)[A-Z]+\b", "-EAGAIN"),
]
CALL = re.compile(r"(\t+)[a-z_]\w*\(.*\);$")
IF = re.compile(r"(\t+(?:\} else )?if )\((.*)\)( \{)?$")


def base_of(root=ROOT):
    """Return the commit before the last COMMITS, or the oldest one available."""
    said = subprocess.run(["git", "-C", root, "rev-list", f"--max-count={COMMITS + 1}", "--first-parent", "HEAD"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    return said.split()[-1]


def touched(base, root=ROOT):
    """Return [(file, number)] of the C lines that differ from BASE."""
    said = subprocess.run(["git", "-C", root, "diff", "-U0", "--no-renames", base, "--", *(f":(glob){f}/**/*.c" for f in FOLDERS)],
                          check=True, stdout=subprocess.PIPE, text=True).stdout
    found, file = [], None
    for line in said.splitlines():
        if line.startswith("+++ "):
            file = line[6:] if line.startswith("+++ b/") else None
        elif file and (match := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line)):
            first, count = int(match[1]), int(match[2] or 1)
            found += [(file, number) for number in range(first, first + count)]
    return found


def blank(line):
    """Return LINE with quoted text and comments replaced by as many spaces."""
    return re.sub(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|/\*.*?(?:\*/|$)|//.*', lambda m: " " * len(m[0]), line)


def mutants_of_line(line):
    """Return [(what, new line)]."""
    plain = blank(line)
    if not line.startswith("\t") or plain.lstrip().startswith(("*", "#", "assert", "static const", "case ")) or not plain.strip():
        return []
    found = [(what, line[:m.start()] + to + line[m.end():]) for what, pattern, to in SWAPS for m in re.finditer(pattern, plain)]
    if (match := IF.match(line)) and plain.count("(") == plain.count(")"):
        found.append(("condition negated", f"{match[1]}(!({match[2]})){match[3] or ''}"))
    if (match := CALL.match(line)) and plain.count("(") == plain.count(")"):
        found.append(("call removed", f"{match[1]};"))
    return found


def mutants(lines, root=ROOT):
    """Return the mutants of all LINES, in the format of touched()."""
    texts = {file: (root / file).read_text().split("\n") for file in {file for file, _ in lines}}
    return [Mutant(file, number, what, new) for file, number in lines
            for what, new in mutants_of_line(texts[file][number - 1])]


def tests_for(file, names):
    """Return those of NAMES (meson's names of unit tests) that test FILE: first those of its
    module, then those of its folder, or of the next higher folder that has tests."""
    folder, module = str(pathlib.PurePath(file).parent), pathlib.PurePath(file).stem
    while folder != ".":
        prefix = folder.replace("/", "_") + "_"
        found = [name for name in names if name.startswith(prefix)]
        if found:
            return sorted(found, key=lambda name: (not name[len(prefix):].startswith(module), name))
        folder = str(pathlib.PurePath(folder).parent)
    return []
