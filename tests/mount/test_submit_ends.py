# SPDX-License-Identifier: MIT
"""How a writer can end, and whether what it wrote is launched: the table of docs/kxfs-layout.5, by real programs."""

import pathlib
import subprocess

import harness
import pytest
import submitting
from submitting import GOOD

# Its first half is a document, too, so that a launch of a part is seen.
LONG = GOOD + "# and so on\n" * 50
HANG = 20  # seconds after which the mount is taken away: a process that hangs in exec hangs ps on the whole machine


@pytest.fixture(scope="session")
def ends(tmp_path_factory):
    """The program of ends.c."""
    top = pathlib.Path(tmp_path_factory.mktemp("ends"))
    program = top / "ends"
    harness.run(["gcc", "-O1", "-pthread", "-o", str(program), str(harness.ROOT / "tests/mount/ends.c")])
    return program


def script(kx, line, document=LONG, **env):
    """Run LINE in submit/, with the document in $DOC. Its status."""
    doc = kx.work / "doc"
    doc.write_text(document)
    p = harness.popen(["bash", "-c", line], cwd=kx / "submit", env={"DOC": str(doc), **env})
    try:
        return p.wait(HANG)
    except subprocess.TimeoutExpired:
        kx.abort()
        raise


@pytest.mark.parametrize("line", [
    "$ENDS main write cloexec exec > x.yaml",
    "$ENDS second write cloexec exec > x.yaml",
    "$ENDS last write cloexec exec > x.yaml",
    "{ $ENDS second write cloexec exec; } > x.yaml",
    "exec $ENDS second write cloexec exec > x.yaml",
    "python3 -c 'import os; f = open(\"x.yaml\", \"w\"); f.write(open(\"'$DOC'\").read()); f.flush(); "
    "os.execlp(\"true\", \"true\")'",
])
def test_exec_closes_the_file(kx, ends, line):
    """Exec closes a descriptor with O_CLOEXEC while it holds a lock for which readers of /proc wait."""
    assert script(kx, line, ENDS=str(ends)) == 0
    submitting.launched_once(kx, "x.yaml")
    assert kx.read("submit/x.yaml") == LONG


def test_exec_closes_a_copy(kx):
    """The program that is executed goes on writing through another descriptor."""
    line = """python3 -c 'import os
f = open("x.yaml", "w"); f.write(open(os.environ["DOC"]).read()[:-200]); f.flush()
os.dup2(f.fileno(), 1); os.execlp("tail", "tail", "-c", "200", os.environ["DOC"])'"""
    assert script(kx, line) == 0
    submitting.launched_once(kx, "x.yaml")
    assert kx.read("submit/x.yaml") == LONG


@pytest.mark.parametrize("line", ["$ENDS main write exit > x.yaml", "$ENDS main write fail > x.yaml",
                                  "$ENDS second write exit > x.yaml", "{ $ENDS main write exit; } > x.yaml"])
def test_threads(kx, ends, line):
    """A program with threads that has ended by itself is launched, whichever of its threads closes the file last."""
    script(kx, line, ENDS=str(ends))
    submitting.launched_once(kx, "x.yaml")


@pytest.mark.parametrize("step", ["dup", "spawn", "vfork"])
@pytest.mark.parametrize("thread", ["main", "second", "last"])
def test_a_copy_is_closed(kx, ends, thread, step):
    """A copy of the descriptor that the program, or a child of it, closes is not the end."""
    assert script(kx, f"exec $ENDS {thread} half {step} rest > x.yaml", ENDS=str(ends)) == 0
    submitting.launched_once(kx, "x.yaml")
    assert kx.read("submit/x.yaml") == LONG


@pytest.mark.parametrize("how", ["TERM", "KILL", "INT", "SEGV", "abort"])
@pytest.mark.parametrize("thread", ["main", "second", "last"])
def test_signal(kx, ends, thread, how):
    """A program with threads that a signal has ended launches nothing, whichever of its threads closes the file last."""
    assert script(kx, f"exec $ENDS {thread} half {how} > x.yaml", ENDS=str(ends)) < 0
    submitting.refused(kx, "x.yaml", "killed by a signal")


@pytest.mark.parametrize("line", [
    "timeout 1 bash -c 'head -c 300 $DOC; sleep 1000' > x.yaml",
    "timeout 1 sh -c '(head -c 300 $DOC; true); sleep 1000' > x.yaml",
    "timeout -s KILL 1 sh -c 'head -c 300 $DOC; sleep 1000' > x.yaml",
])
def test_signal_after_a_child_wrote(kx, line):
    """Who is ended has written nothing itself, but what its child wrote is its own."""
    assert script(kx, line) != 0
    submitting.refused(kx, "x.yaml", "killed by a signal")


def test_child_of_a_child(kx):
    """A close while a child goes on does not launch what the first command of that child wrote."""
    line = """python3 -c 'import os, subprocess, time
f = open("x.yaml", "w")
p = subprocess.Popen("head -c 300 $DOC; touch $DOC.half; while test -e $DOC.half; do sleep 0.1; done; tail -c +301 $DOC",
                     shell=True, stdout=f)
while not os.path.exists(os.environ["DOC"] + ".half"):
    time.sleep(0.02)
f.close()
os.remove(os.environ["DOC"] + ".half")
p.wait()'"""
    assert script(kx, line) == 0
    submitting.launched_once(kx, "x.yaml")
    assert kx.read("submit/x.yaml") == LONG


@pytest.mark.parametrize("line", [
    "exec 3> x.yaml; cat $DOC >&3; yes | head -n 1; exec 3>&-",
    "{ cat $DOC; sleep 1000 & kill $!; wait; } > x.yaml",
])
def test_signal_to_a_bystander(kx, line):
    """A process that has the file open, but of which nothing in it is, may be ended."""
    assert script(kx, line) == 0
    submitting.launched_once(kx, "x.yaml")
