#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Faults that the tests must notice: patches in tests/sim/faults.patch and
tests/mutants/faults.patch.

	tests/patches.py list sim|mutants         print the names of all
	tests/patches.py show sim|mutants NAME    print the patch of one, in the format of `patch -p1`
	tests/patches.py put sim|mutants NAME     read a new fault's patch, or another patch of an existing fault,
	                                          from standard input; a diff alone keeps the old description
	tests/patches.py remove sim|mutants NAME

Each fault starts with a line "=== NAME"; faults are sorted by name. The next lines describe what a
user would see (for mutants, `Test:` lines name the tests that must notice it). The diff follows."""

import pathlib
import re
import sys

TESTS = pathlib.Path(__file__).resolve().parent
DIFF = re.compile(r"^(?=--- |diff )", re.M)


def read(kind):
    """Return {name: text of a patch}."""
    first, *parts = re.split(r"^=== (\w+)\n", (TESTS / kind / "faults.patch").read_text(), flags=re.M)
    assert not first and len(set(parts[::2])) == len(parts[::2]), first or sorted(parts[::2])
    return dict(zip(parts[::2], parts[1::2]))


def write(kind, faults):
    (TESTS / kind / "faults.patch").write_text("".join(f"=== {name}\n{text}" for name, text in sorted(faults.items())))


def head(text):
    """Return the lines that describe the fault."""
    return DIFF.split(text, maxsplit=1)[0].splitlines()


def put(kind, name, text):
    faults = read(kind)
    if DIFF.match(text) and name in faults:
        text = "".join(f"{line}\n" for line in head(faults[name])) + text
    write(kind, {**faults, name: text})


def main(args):
    match args:
        case ["list", kind]:
            print("\n".join(read(kind)))
        case ["show", kind, name]:
            sys.stdout.write(read(kind)[name])
        case ["put", kind, name]:
            put(kind, name, sys.stdin.read())
        case ["remove", kind, name]:
            faults = read(kind)
            del faults[name]
            write(kind, faults)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
