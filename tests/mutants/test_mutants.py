# SPDX-License-Identifier: MIT
"""Faults that are put in on purpose: each fits the sources, and some, chosen anew each time, are noticed.

KXFS_MUTANTS is how many (default 5); `tests/mutants/run` tries all.
"""

import os
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FAULTS = sorted((HERE / "faults").glob("*.patch"))


def is_there(test):
    """Is there a test of that name?"""
    if test.startswith("unit "):
        folders = (p.relative_to(ROOT / "tests/unit") for p in (ROOT / "tests/unit").rglob("test-*.c"))
        return test.split()[1] in {str(p.parent / p.stem.removeprefix("test-")).replace("/", "_") for p in folders}
    path, _, name = test.partition("::")
    return (ROOT / "tests" / path).is_file() and (not name or f"def {name}(" in (ROOT / "tests" / path).read_text())


def test_each_fits():
    wrong = []
    for path in FAULTS:
        head = path.read_text().split("\n--- ", 1)[0].splitlines()
        tests = [line.split(":", 1)[1].strip() for line in head if line.startswith("Test:")]
        wrong += [f"{path.stem}: there is no test {test}" for test in tests if not is_there(test)]
        p = subprocess.run(["patch", "-p1", "--dry-run", "--force", "-i", path], cwd=ROOT, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if p.returncode or not tests or not head[0]:
            wrong.append(f"{path.stem}: {p.stdout}")
    assert not wrong, "\n".join(wrong)


def test_some_are_noticed():
    p = subprocess.run([HERE / "run", "--count", os.environ.get("KXFS_MUTANTS", "5")], stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(p.stdout)
    assert p.returncode == 0, p.stdout
