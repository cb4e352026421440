# SPDX-License-Identifier: MIT
"""How the writing of a file can end, and whether its contents are launched: the table of docs/kxfs-submit.7, with
real programs."""

import pathlib
import re
import subprocess
import sys

import harness
import pytest
import submitting
from submitting import GOOD

sys.path.insert(1, str(harness.ROOT / "tests/mount/ways"))
import programs as ways  # noqa: E402
from programs import build  # noqa: E402

# Its first half is a valid document, too, so that launching a part would be noticed.
LONG = GOOD + "# and so on\n" * 50
HANG = 60  # seconds after which the mount is taken away: a process that hangs in exec hangs ps on the whole machine

GO = """package main

import (
	"os"
	"syscall"
)

func main() {
	text, _ := os.ReadFile(os.Getenv("DOC"))
	if os.Args[1] == "half" {
		os.Stdout.Write(text[:len(text)/2])
		syscall.Kill(os.Getpid(), syscall.SIGTERM)
		select {}
	}
	os.Stdout.Write(text)
	if os.Args[1] == "fail" {
		os.Exit(1)
	}
}
"""
NODE = 'const fs = require("fs"), text = fs.readFileSync(process.env.DOC); '
PYTHON = ("import os, signal, sys, threading, time; text = open(os.environ[\"DOC\"]).read(); "
          "threading.Thread(target=time.sleep, args=(1000,), daemon=True).start(); ")
PART = "head -c 300 $DOC"
REST = "tail -c +301 $DOC"

# the rows of the table, and lines that end in this way
LAUNCHED = {
    "The program closes the file. If nothing is launched, the close fails.": [
        "$ENDS main write close > x.yaml", "$ENDS second write close > x.yaml", "$ENDS last write close > x.yaml",
        "node -e '$NODE fs.writeFileSync(\"x.yaml\", text)'",
        "node -e '$NODE fs.createWriteStream(\"x.yaml\").end(text)'",
    ],
    "The program exits, in any of its threads and with any status.": [
        "$ENDS main write exit > x.yaml", "$ENDS main write fail > x.yaml", "$ENDS second write exit > x.yaml",
        "$ENDS second write > x.yaml", "{ $ENDS second write exit; } > x.yaml", "$ENDS second write exit | cat > x.yaml",
        "$GO exit > x.yaml", "$GO fail > x.yaml", "{ $GO exit; } > x.yaml",
        "node -e '$NODE process.stdout.write(text)' > x.yaml", "{ node -e '$NODE process.stdout.write(text)'; } > x.yaml",
        "node -e '$NODE fs.writeSync(fs.openSync(\"x.yaml\", \"w\"), text); process.exit(0)'",
        "python3 -c '$PYTHON sys.stdout.write(text)' > x.yaml", "python3 -c '$PYTHON sys.stdout.write(text); sys.exit(1)' > x.yaml",
        "python3 -c '$PYTHON os.write(1, text.encode()); os._exit(0)' > x.yaml",
    ],
    "Its main thread ends: the writer ends with its last thread.": [
        "$ENDS last write > x.yaml", "$ENDS last write exit > x.yaml", "exec $ENDS last write > x.yaml",
    ],
    "The program executes another one, which is the writer then if it has the file open.": [
        "$ENDS main write exec > x.yaml", "$ENDS second write exec > x.yaml", "$ENDS last write exec > x.yaml",
    ],
    "The program ends in the background, under nohup or in a subshell.": [
        "nohup $ENDS second write exit > x.yaml 2> /dev/null & wait", f"nohup sh -c 'sleep 0.2; {PART}; {REST}' > x.yaml 2> /dev/null &",
        f"( sleep 0.2; {PART}; {REST} ) > x.yaml &", "( $ENDS second write exit ) > x.yaml & wait",
    ],
    "The program ends, and a child goes on that has not written: the child can't write any more (EBUSY).": [
        "{ cat $DOC; sleep 1 & } > x.yaml", "sh -c 'cat $DOC; (sleep 0.5; echo more 2> /dev/null) &' > x.yaml; wait",
    ],
    "The program ends, and a child goes on that wrote last: the end of the child is the end of the writing.": [
        f"sh -c '({PART}; sleep 0.5; {REST}) & while ! test -s x.yaml; do sleep 0.1; done; exit 0' > x.yaml",
    ],
    "A signal ends a process that has the file open, but that wrote nothing.": [
        "exec 3> x.yaml; cat $DOC >&3; yes | head -n 1; exec 3>&-",
        "{ cat $DOC; sleep 1000 & kill $!; wait; } > x.yaml",
    ],
    "A signal ends a child, and another process writes after that.": [
        f"{{ sh -c '{PART}; kill -9 $$'; {REST}; }} > x.yaml", f"{{ bash -c '{PART}; kill $$'; {REST}; }} > x.yaml",
    ],
}
PERHAPS = {
    "The program catches a signal and exits, as Java does at SIGTERM: perhaps only a part was written.": [
        f"bash -c 'trap \"exit 1\" TERM; {PART}; kill $$; sleep 1' > x.yaml",
    ],
    "A signal ends an earlier program of a pipeline: perhaps only a part was written.": [
        f"bash -c '{PART}; kill -9 $$' | cat > x.yaml",
    ],
}
REFUSED = {
    "A signal ends the program: Ctrl-C, kill, SIGPIPE, timeout, a fault (with or without a core dump), the OOM killer, a debugger.": [
        *(f"$ENDS {thread} half {how} > x.yaml" for thread in ("main", "second", "last")
          for how in ("TERM", "KILL", "INT", "SEGV", "abort")),
        "exec $ENDS last half KILL > x.yaml",
        "cd $CORES; ulimit -c unlimited; $ENDS main half abort > $OLDPWD/x.yaml",
        f"set -m; bash -c '{PART}; sleep 1000' > x.yaml & while ! test -s x.yaml; do sleep 0.1; done; kill -INT -- -$!; wait",
        f"bash -c 'exec 3> x.yaml; {PART} >&3; while echo; do :; done' | true",
        f"timeout 1 bash -c '{PART}; sleep 1000' > x.yaml", "timeout 1 $ENDS second half wait > x.yaml",
        "$ENDS main half wait > x.yaml & while ! test -s x.yaml; do sleep 0.1; done; gdb -q -batch -ex kill -p $! > /dev/null; wait",
        "$GO half > x.yaml", "{ $GO half; } > x.yaml",
        "node -e '$NODE fs.writeSync(1, text.slice(0, 300)); process.kill(process.pid, \"SIGKILL\"); setTimeout(() => 0, 1e6)' > x.yaml",
        "python3 -c '$PYTHON os.write(1, text[:300].encode()); os.kill(os.getpid(), signal.SIGINT); time.sleep(1000)' > x.yaml",
    ],
    "A signal ends a shell after a command of it has written.": [
        f"timeout 1 sh -c '({PART}; true); sleep 1000' > x.yaml", f"timeout -s KILL 1 sh -c '{PART}; sleep 1000' > x.yaml",
        f"bash -c '{PART}; kill $$' > x.yaml",
    ],
    "A signal ends a child that wrote last: a close by the opener fails (ECANCELED).": [
        "{ $ENDS main half lose-child; } > x.yaml", "$ENDS second half lose-child > x.yaml",
    ],
}
# Those with tests of their own: below, and in test_unseen.py.
OTHERS = {
    "The program executes another one, and exec closes the file (O_CLOEXEC).",
    "A copy of the descriptor is closed, also in a child: that is not the end.",
    "A process ends that kxfs can't see: a text that is complete, as defined above, is launched.",
}


def test_the_table():
    """Each row of the manual has its tests."""
    rows = re.findall("^[.]It (launched|refused|either) Ta (.*)$", (harness.ROOT / "docs/kxfs-submit.7").read_text(), re.MULTILINE)
    assert {row for result, row in rows if result == "refused"} == REFUSED.keys()
    assert {row for result, row in rows if result != "refused"} == LAUNCHED.keys() | PERHAPS.keys() | OTHERS


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """Build $ENDS, from ends.c, and $GO. Some lines run node."""
    top = pathlib.Path(tmp_path_factory.mktemp("ends"))
    harness.run(["gcc", "-O1", "-pthread", "-o", str(top / "ends"), str(harness.ROOT / "tests/mount/ends.c")])
    (top / "main.go").write_text(GO)
    ways.need("node", "node")
    go, env = build.find_go()
    harness.run([go, "build", "-o", str(top / "go"), "main.go"], cwd=top, timeout=600, env={**env, "GO111MODULE": "off"})
    return {"ENDS": str(top / "ends"), "GO": str(top / "go")}


def script(kx, line, programs=None, where="submit"):
    """Run LINE there, with the document in $DOC. Return its status."""
    doc = kx.work / "doc"
    doc.write_text(LONG)
    for name, text in (("$NODE", NODE), ("$PYTHON", PYTHON)):
        line = line.replace(name, text)
    p = harness.popen(["bash", "-c", line], cwd=kx / where, env={"DOC": str(doc), "CORES": str(kx.work), **(programs or {})})
    try:
        return p.wait(HANG)
    except subprocess.TimeoutExpired:
        kx.abort()
        raise


def lines(rows):
    return [line for row in rows.values() for line in row]


@pytest.mark.parametrize("line", lines(LAUNCHED))
def test_launched(kx, programs, line):
    script(kx, line, programs)
    submitting.launched_once(kx, "x.yaml")
    assert kx.read("submit/x.yaml") == LONG


@pytest.mark.parametrize("line", lines(PERHAPS))
def test_perhaps_a_part(kx, line):
    script(kx, line)
    submitting.launched_once(kx, "x.yaml")
    assert kx.read("submit/x.yaml") == LONG[:300]


@pytest.mark.parametrize("line", lines(REFUSED))
def test_refused(kx, programs, line):
    script(kx, line, programs)
    submitting.refused(kx, "x.yaml", "a signal ended")


@pytest.mark.parametrize("line", ["$ENDS second write exit > x.yaml", "{ $GO exit; } > x.yaml", "$ENDS second half KILL > x.yaml"])
def test_dryrun(kx, programs, line):
    """In dryrun/, the manifest stands for the launch."""
    script(kx, line, programs, "dryrun")
    if "half" in line:
        assert "a signal ended" in kx.read("dryrun/x.yaml.error")
    else:
        harness.wait_for(lambda: kx.read("dryrun/x.yaml") != LONG, what="the manifest")
        assert kx.ls("dryrun") == ["x.yaml"]


def test_a_close_reports_a_child_that_was_ended(kx, programs):
    """ECANCELED: the opener closes the file after its child."""
    assert script(kx, "$ENDS main half lose-child close > x.yaml", programs) == 125
    submitting.refused(kx, "x.yaml", "a signal ended")


@pytest.mark.parametrize("line", [
    "$ENDS main write cloexec exec > x.yaml",
    "$ENDS second write cloexec exec > x.yaml",
    "$ENDS last write cloexec exec > x.yaml",
    "{ $ENDS second write cloexec exec; } > x.yaml",
    "exec $ENDS second write cloexec exec > x.yaml",
    "python3 -c 'import os; f = open(\"x.yaml\", \"w\"); f.write(open(\"'$DOC'\").read()); f.flush(); "
    "os.execlp(\"true\", \"true\")'",
])
def test_exec_closes_the_file(kx, programs, line):
    """Exec closes a descriptor with O_CLOEXEC while it holds a lock that readers of /proc wait for."""
    assert script(kx, line, programs) == 0
    submitting.launched_once(kx, "x.yaml")
    assert kx.read("submit/x.yaml") == LONG


def test_exec_closes_a_copy(kx):
    """The executed program continues to write through another descriptor."""
    line = """python3 -c 'import os
f = open("x.yaml", "w"); f.write(open(os.environ["DOC"]).read()[:-200]); f.flush()
os.dup2(f.fileno(), 1); os.execlp("tail", "tail", "-c", "200", os.environ["DOC"])'"""
    assert script(kx, line) == 0
    submitting.launched_once(kx, "x.yaml")
    assert kx.read("submit/x.yaml") == LONG


@pytest.mark.parametrize("step", ["dup", "spawn", "vfork"])
@pytest.mark.parametrize("thread", ["main", "second", "last"])
def test_a_copy_is_closed(kx, programs, thread, step):
    """Closing a copy of the descriptor, in the program or its child, does not end the writing."""
    assert script(kx, f"exec $ENDS {thread} half {step} rest > x.yaml", programs) == 0
    submitting.launched_once(kx, "x.yaml")
    assert kx.read("submit/x.yaml") == LONG


def test_child_of_a_child(kx):
    """A close while a child continues does not launch the output of the child's first command."""
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
