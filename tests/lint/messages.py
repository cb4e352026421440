#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Every sentence of the sources that a user may read: `why`, NAME.error, doctor, .kxfs/help,
--help, .kxfs/log, errors at the start.

`tests/lint/messages.py --write` writes the list to tests/golden/messages.txt. A test compares the
list, so that a new or changed sentence is visible in review."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from files import C_FILES, ROOT, name_of  # noqa: E402

LIST = ROOT / "tests/golden/messages.txt"
TOKEN = re.compile(r"""/\*.*?\*/|//[^\n]*|'(?:\\.|[^'\\])'|"((?:\\.|[^"\\])*)"|^[ \t]*\#[ \t]*include[^\n]*|\\\n|\w+|\s+|.""", re.S | re.M)
SENTENCE = re.compile(r"[A-Za-z]{2,}['a-z]* .*[A-Za-z]{2,}")
# The texts of assertions are for developers.
ASSERTION = re.compile(r"\b_?[Ss]tatic_assert\(.*?\);", re.S)
# Names of macros between the parts of a literal, such as PRIu64.
MACRO = re.compile(r"PRI\w+|[A-Z][A-Z0-9_]+$")


def literals(text):
    """Yield the string literals of a C source, with adjacent parts joined. A macro between two
    parts is shown by its name."""
    parts, pending = [], []
    for match in TOKEN.finditer(text):
        token, string = match[0], match[1]
        if string is not None:
            parts += [*pending, string]
            pending = []
        elif token.isspace() or token.startswith(("/*", "//", "\\\n")):
            continue
        elif parts and not pending and MACRO.match(token):
            pending = [f"<{token}>"]
        else:
            if parts:
                yield "".join(parts)
            parts, pending = [], []


def messages():
    """Return lines of the form FILE: TEXT."""
    found = set()
    for path in C_FILES:
        for text in literals(ASSERTION.sub("", path.read_text())):
            if SENTENCE.search(text) and "%s:%s" not in text:
                found.add(f"{name_of(path)}: {text}")
    return "".join(f"{line}\n" for line in sorted(found))


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        LIST.write_text(messages())
    else:
        print(messages(), end="")
