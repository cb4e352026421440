# SPDX-License-Identifier: MIT
"""What other people's checkers say of the sources, scripts and man pages."""

import functools
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

import pytest
from files import ROOT, C_FILES, MAN_PAGES, SCRIPTS, TEST_C_FILES, name_of

sys.path.append(str(ROOT / "tests/cluster"))
import build  # noqa: E402

BUILD = pathlib.Path(os.environ.get("KXFS_BUILD", ROOT / "build"))


def check(*cmd, ok=lambda p: p.returncode == 0 and not p.stdout.strip()):
    p = subprocess.run(cmd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, check=False, text=True, timeout=900, cwd=ROOT)
    assert ok(p), f"status {p.returncode}\n{p.stdout[-8000:]}"


@pytest.mark.parametrize("path", SCRIPTS, ids=name_of)
def test_shellcheck(path):
    check("shellcheck", "-x", path)


def test_there_are_man_pages():
    assert {p.name for p in MAN_PAGES} >= {"kxfs.1", "kxfs-layout.5", "appdef.5"}


@pytest.mark.parametrize("path", MAN_PAGES, ids=[p.name for p in MAN_PAGES])
def test_man_page(path):
    """mandoc finds nothing to complain of, and man shows it."""
    check("mandoc", "-Tlint", "-Wwarning", path)
    check("man", "--warnings", "-l", "-Tutf8", path, ok=lambda p: p.returncode == 0 and "warning" not in p.stdout)


@pytest.mark.parametrize("path", C_FILES + TEST_C_FILES, ids=name_of)
def test_format(path):
    check("clang-format", "--dry-run", "--Werror", path)


@functools.cache
def commands():
    """How the build compiles each file, which clang-tidy needs to know."""
    database = json.loads((BUILD / "compile_commands.json").read_text())
    return {os.path.realpath(os.path.join(entry["directory"], entry["file"])): entry["command"] for entry in database}


@functools.cache
def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).digest()


@functools.cache
def checker():
    version = subprocess.run(["clang-tidy", "--version"], stdout=subprocess.PIPE, check=True).stdout
    return version + (ROOT / ".clang-tidy").read_bytes()


def passed_mark(path, command):
    """A file that is there when this text, with these headers, has passed these checks, in whichever checkout that was."""
    words = [word for word in shlex.split(command) if word.startswith(("-D", "-I", "-std", "-W", "-f"))]
    listed = subprocess.run(["clang", *words, "-M", "-MT", "x", str(path)], cwd=BUILD, stdout=subprocess.PIPE, check=True,
                            text=True).stdout
    key = hashlib.sha256(checker() + " ".join(words).encode())
    for name in listed.replace("\\\n", " ").split()[1:]:
        key.update(digest(os.path.join(BUILD, name)))
    return build.cache_dir() / "clang-tidy" / key.hexdigest()


@pytest.mark.parametrize("path", [p for p in C_FILES if p.suffix == ".c"], ids=name_of)
def test_clang_tidy(path):
    """What has passed once is not looked at again."""
    assert str(path) in commands(), "not compiled"
    mark = passed_mark(path, commands()[str(path)])
    if not mark.exists():
        check("clang-tidy", "-p", BUILD, "--quiet", path, ok=lambda p: p.returncode == 0)
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()

