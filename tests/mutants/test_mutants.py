# SPDX-License-Identifier: MIT
"""Faults that are inserted on purpose.

Each fault applies to the sources, and a random selection must be noticed. Mutants of the last
commits are tried too, and printed if no test notices them.

KXFS_MUTANTS is the number of faults (default 5; `tests/mutants/run` tries all),
KXFS_MUTANTS_OF_CHANGE the number of mutants (default 4)."""

import os
import pathlib
import re
import subprocess

import change
import patches

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def is_there(test):
    """Return whether there is a test with that name."""
    if test.startswith("unit "):
        folders = (p.relative_to(ROOT / "tests/unit") for p in (ROOT / "tests/unit").rglob("test-*.c"))
        return test.split()[1] in {str(p.parent / p.stem.removeprefix("test-")).replace("/", "_") for p in folders}
    path, _, name = test.partition("::")
    return (ROOT / "tests" / path).is_file() and (not name or f"def {name}(" in (ROOT / "tests" / path).read_text())


def test_each_fits():
    wrong = []
    for name, fault in patches.read("mutants").items():
        head = patches.head(fault)
        tests = [line.split(":", 1)[1].strip() for line in head if line.startswith("Test:")]
        wrong += [f"{name}: there is no test {test}" for test in tests if not is_there(test)]
        p = subprocess.run(["patch", "-p1", "-F0", "--dry-run", "--force"], cwd=ROOT, input=fault,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if p.returncode or not tests or not head[0]:
            wrong.append(f"{name}: {p.stdout}")
    assert not wrong, "\n".join(wrong)


def test_some_are_noticed():
    p = subprocess.run([HERE / "run", "--count", os.environ.get("KXFS_MUTANTS", "5")], stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(p.stdout)
    assert p.returncode == 0, p.stdout


def test_some_of_the_last_commits_are_tried(record_property):
    """Mutants that no test notices are in the report. The test fails only if they can't be tried."""
    if not (ROOT / ".git").exists():
        return  # a tarball has no commits
    p = subprocess.run([HERE / "run", "--change", "--count", os.environ.get("KXFS_MUTANTS_OF_CHANGE", "4")],
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(p.stdout)
    record_property("mutants", p.stdout)
    assert p.returncode == 0, p.stdout
    assert re.search(r"^\d+ of \d+ mutants of the change since \w+ noticed", p.stdout, re.M), p.stdout


def test_mutants_of_a_line():
    made = {(what, new.strip()) for what, new in change.mutants_of_line("\tif (a < n && f(\"<\"))")}
    assert made == {("off by one", 'if (a <= n && f("<"))'), ("other condition", 'if (a < n || f("<"))'),
                    ("condition negated", 'if (!(a < n && f("<")))')}
    assert change.mutants_of_line("\tlog_it(x, 7);") == [("call removed", "\t;")]
    assert change.mutants_of_line("\treturn -EIO;") == [("other constant", "\treturn -EAGAIN;")]
    for line in ("", "\t * a < b", "int f(int a)", "#if A < 1", "\tassert(a < 1);"):
        assert not change.mutants_of_line(line)


def test_touched_lines(tmp_path):
    """The lines that were added or changed in C files in the folders of the program."""
    def git(*args):
        subprocess.run(["git", "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=a@b", *args], check=True, capture_output=True)

    (tmp_path / "spec").mkdir()
    (tmp_path / "spec/a.c").write_text("one\ntwo\nthree\n")
    git("init")
    git("add", ".")
    git("commit", "-m", "a")
    (tmp_path / "spec/a.c").write_text("one\nother\nthree\nfour\n")
    (tmp_path / "spec/a.h").write_text("int x;\n")
    git("add", ".")
    assert change.touched("HEAD", tmp_path) == [("spec/a.c", 2), ("spec/a.c", 4)]


def test_tests_of_a_file():
    names = ["spec_job_why", "spec_job_list", "spec_kinds_job", "fs_vfs_ops", "spec_job_list_more"]
    assert change.tests_for("spec/job/list.c", names) == ["spec_job_list", "spec_job_list_more", "spec_job_why"]
    assert change.tests_for("spec/kinds/indexed.c", names) == ["spec_kinds_job"]
    assert not change.tests_for("backend/x/y.c", names)
