# SPDX-License-Identifier: MIT
"""tests/run itself, with small tests instead of those of kxfs: what fails by chance, what is
skipped, what is counted."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest
from files import ROOT

FILES = ("run", "again.py", "count.py", "progress.py", "lacking.py")
CONFTEST = """
import os
import pytest
from again import Failures

def pytest_addoption(parser):
    parser.addoption("--seed", type=int, default=None)

def pytest_configure(config):
    config.pluginmanager.register(Failures(os.environ["KXFS_FAILED"]))
"""
HEAD = """
import pathlib, random, time
import pytest
from lacking import need

ONCE = pathlib.Path(__file__).with_name("failed-once")

def fails_once(what):
    path = ONCE.with_name(f"{what}-has-failed")
    if not path.exists():
        path.touch()
        raise AssertionError(f"{what} came too late\\nand more")
"""
CHANCE = HEAD + """
def test_chance(request):
    seed = request.config.getoption("--seed") or 4711
    print("seed", seed)
    assert seed == 4711
    fails_once("a line")

def test_right():
    pass
"""


class Tree:
    """A tree with tests/run, in which three stages run the given tests."""

    def __init__(self, top):
        self.top = top
        (top / "tests/mount").mkdir(parents=True)
        (top / "contrib").mkdir()
        for name in FILES:
            shutil.copy2(ROOT / "tests" / name, top / "tests" / name)
        (top / "contrib/packages").write_text("#!/bin/sh\n")
        (top / "contrib/packages").chmod(0o755)
        (top / "tests/mount/harness.py").write_text("")
        (top / "tests/conftest.py").write_text(CONFTEST)
        (top / "tests/pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\npythonpath = .\n")
        text, n = re.subn(r"^stage_(mount|golden|replay)\(\) \{(?: .*|\n(?:.*\n)*?)\}$", r"stage_\1() { py \1 tests/\1; }",
                          (top / "tests/run").read_text(), flags=re.M)
        assert n == 3
        (top / "tests/run").write_text(text)

    def test(self, stage, text):
        (self.top / "tests" / stage).mkdir(exist_ok=True)
        (self.top / "tests" / stage / f"test_{stage}.py").write_text(text)

    def run(self, *args, **env):
        env = {"KXFS_BUILD_DIR": str(self.top / "out"), "KXFS_CACHE_DIR": str(self.top / "cache"),
               "KXFS_TEST_DIR": str(self.top), **env}
        left = {key: value for key, value in os.environ.items() if not key.startswith("KXFS_")}
        p = subprocess.run([self.top / "tests/run", *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True, check=False, timeout=300, env={**left, **env})
        self.lines = p.stdout.splitlines()
        return p.returncode, self.lines[-1] if self.lines else p.stderr

    def flaky(self):
        path = self.top / "out/reports/flaky.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def test_chance_failure_is_flaky(tree):
    """A test that fails by chance is run again with its seed. It is listed with its first failure,
    and kept on request."""
    tree.test("mount", CHANCE)
    assert tree.run("mount") == (0, "2 passed, 0 failed")
    [row] = tree.flaky()
    assert (row["test"], row["seed"]) == ("mount/test_mount.py::test_chance", 4711)
    assert "a line came too late" in row["message"] and row["load"] >= 0
    assert any(line.startswith("  flaky: mount.test_mount.test_chance (seed 4711, load ") and "a line came too late" in line
               for line in tree.lines)
    for _ in range(2):
        assert tree.run("--flaky") == (0, "")
        assert (tree.top / "tests/flaky.jsonl").read_text().count("\n") == 1


SECOND_FAILURE = HEAD + """
def test_unsure():
    fails_once("one")
    if ONCE.exists():
        fails_once("other")
    ONCE.touch()
"""
REPORTS = ("ERROR: AddressSanitizer: heap-use-after-free", "WARNING: ThreadSanitizer: data race",
           "a.c:3:4: runtime error: signed integer overflow")
# What does not count as flaky: the stage, its tests, and how the run ends.
FAILURES = {
    "a failure of each run": ("mount", "def test_wrong():\n    assert False\n", "0 passed, 1 failed"),
    "a second failure": ("mount", SECOND_FAILURE, "0 passed, 1 failed"),
    "a stage without real time": ("golden", CHANCE, "1 passed, 1 failed"),
    "a skipped test": ("mount", HEAD + "def test_skipped():\n    pytest.skip('not today')\n", "0 passed, 1 failed"),
    **{report: ("mount", CHANCE.replace("a line", report), "1 passed, 1 failed") for report in REPORTS},
}


@pytest.mark.parametrize("what", FAILURES)
def test_failure(tree, what):
    stage, text, end = FAILURES[what]
    tree.test(stage, text)
    assert tree.run(stage) == (1, end)
    assert not tree.flaky()


def test_six_flaky_fail(tree):
    """Six flaky tests are listed and count as passed, but they are too many."""
    tree.test("mount", HEAD + "@pytest.mark.parametrize('n', range(6))\ndef test_chance(n):\n    fails_once(f'{n}')\n")
    assert tree.run("mount") == (1, "6 passed, 1 failed")
    assert len(tree.flaky()) == 6


def test_lacking_is_skipped_except_of_all(tree):
    tree.test("mount", HEAD + "def test_lacking():\n    need('loop devices', False)\ndef test_there():\n    need('x', True)\n")
    assert tree.run("mount") == (0, "1 passed, 0 failed, 1 skipped")
    assert "  skipped: mount.test_mount.test_lacking: this machine lacks loop devices" in tree.lines
    assert tree.run("mount", KXFS_TEST_ALL="1") == (1, "1 passed, 1 failed")


def test_critical_path(tree):
    for stage in ("mount", "replay"):
        tree.test(stage, "import time\ndef test_it():\n    time.sleep(%d)\n" % (3 if stage == "replay" else 0))
    assert tree.run("mount", "replay") == (0, "2 passed, 0 failed")
    [line] = [line for line in tree.lines if line.startswith("critical path: ")]
    assert re.match(r"critical path: \w+ lane: replay \d+ s; then again \d+ s; \d+ s in all", line)


def test_stages_of_real_time_are_stages():
    text = (ROOT / "tests/run").read_text()
    stages = re.search(r'STAGES = \((.*?)\)', pathlib.Path(ROOT / "tests/again.py").read_text(), re.S)[1]
    for stage in re.findall(r'"([^"]+)"', stages):
        assert f"stage_{stage}()" in text
