# SPDX-License-Identifier: MIT
"""How a writer can end, and whether what it wrote is launched: the table of docs/kxfs-layout.5, by real programs."""

import pathlib

import harness
import pytest
import submitting
from submitting import GOOD


@pytest.fixture(scope="session")
def ends(tmp_path_factory):
    """The program of ends.c."""
    top = pathlib.Path(tmp_path_factory.mktemp("ends"))
    program = top / "ends"
    harness.run(["gcc", "-O1", "-pthread", "-o", str(program), str(harness.ROOT / "tests/mount/ends.c")])
    return program


def script(kx, line, **env):
    """Run LINE in submit/, with the document in $DOC. Its status."""
    doc = kx.work / "doc"
    doc.write_text(GOOD)
    return harness.run(line, check=False, cwd=kx / "submit", env={"DOC": str(doc), **env}).returncode


@pytest.mark.parametrize("line", ["$ENDS exit main > x.yaml", "$ENDS fail main > x.yaml", "$ENDS exit second > x.yaml",
                                  "{ $ENDS exit main; } > x.yaml"])
def test_threads(kx, ends, line):
    """A program with threads that has ended by itself is launched, whichever of its threads closes the file last."""
    script(kx, line, ENDS=str(ends))
    submitting.launched_once(kx, "x.yaml")
