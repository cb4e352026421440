# SPDX-License-Identifier: MIT
"""Other people's linters, for sources, scripts and man pages."""

import subprocess

import kept
import pytest
from files import ROOT, C_FILES, MAN_PAGES, SCRIPTS, TEST_C_FILES, name_of


def check(*cmd, ok=lambda p: p.returncode == 0 and not p.stdout.strip()):
    p = subprocess.run(cmd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, check=False, text=True, timeout=900, cwd=ROOT)
    assert ok(p), f"status {p.returncode}\n{p.stdout[-8000:]}"


@pytest.mark.parametrize("path", SCRIPTS, ids=name_of)
def test_shellcheck(path):
    check("shellcheck", "-x", path)


def test_there_are_man_pages():
    assert {p.name for p in MAN_PAGES} >= {
        "kxfs.1", "kxfs-kind.5", "kxfs-layout.5", "kxfs-status.5", "kxfs-submit.7", "appdef.5"}


@pytest.mark.parametrize("path", MAN_PAGES, ids=[p.name for p in MAN_PAGES])
def test_man_page(path):
    """mandoc reports no problems, and man can show the page."""
    check("mandoc", "-Tlint", "-Wwarning", path)
    check("man", "--warnings", "-l", "-Tutf8", path, ok=lambda p: p.returncode == 0 and "warning" not in p.stdout)


@pytest.mark.parametrize("files", [C_FILES, TEST_C_FILES], ids=["program", "tests"])
def test_format(files):
    check("clang-format", "--dry-run", "--Werror", *files)


@pytest.mark.parametrize("path", [p for p in C_FILES if p.suffix == ".c"], ids=name_of)
def test_clang_tidy(path):
    """A source that has passed is not checked again until it changes."""
    assert str(path) in kept.commands(), "not compiled"
    mark = kept.place_of("clang-tidy", path, [ROOT / ".clang-tidy"])
    if not mark.exists():
        check("clang-tidy", "-p", kept.BUILD, "--quiet", path, ok=lambda p: p.returncode == 0)
        kept.put(mark, True)
