# SPDX-License-Identifier: MIT
"""Tools that write files of submit/, the ways in which writing can end, and whether kxfs launches the contents."""

import pathlib
import re
import subprocess

import harness
import programs as ways
import pytest
import submitting
from submitting import GOOD

# --- Tools ------------------------------------------------------------------------------------
# Commands that launch nothing, and writers that are ended by a signal, by the rules of docs/kxfs-submit.7. Also
# commands that several tests share; test_ways.py runs them on an ordinary mount.

# $F is the file to write, in the working directory submit/. $DOC is the document, on another file system; the command
# may remove it. $GEN is a program that prints the document. All tools here check close(), so they fail with the same
# status for a bad document.
REPORT = {
    "cp": "cp $DOC $F",
    "cp -p": "cp -p $DOC $F",
    "cp --remove-destination": "cp --remove-destination $DOC $F",
    "install": "install -m 600 $DOC $F",
    "mv": "mv $DOC $F",
    "cat": "cat $DOC > $F",
    "dd": "dd if=$DOC of=$F status=none",
    "dd in pieces": "dd if=$DOC of=$F bs=7 status=none",
    "tee": "tee $F < $DOC > /dev/null",
    "head": "head -n 1000 $DOC > $F",
    "sed": "sed -n p $DOC > $F",
    "rsync": "rsync $DOC $F",
    "rsync --inplace": "rsync --inplace $DOC $F",
    "busybox cp": "busybox cp $DOC $F",
    "mv from scratch": "cp $DOC .tmp && mv .tmp $F",
    "mv over an empty file": "touch $F && cp $DOC tmp && mv -f tmp $F",
    "python write": """python3 -c 'import sys
f = open("'$F'", "w"); f.write(open("'$DOC'").read()); f.close()'""",
    "python dup": """python3 -c 'import os
d = open("'$DOC'").read()
f = open("'$F'", "w"); g = os.fdopen(os.dup(f.fileno()), "w")
f.write(d[:20]); f.close(); g.write(d[20:]); g.close()'""",
    "python threads": """python3 -c 'import os, threading
d = open("'$DOC'", "rb").read()
fd = os.open("'$F'", os.O_WRONLY | os.O_CREAT, 0o644)
def part(i):
    os.pwrite(fd, d[i:i + 10], i)
all = [threading.Thread(target=part, args=(i,)) for i in range(0, len(d), 10)]
[t.start() for t in all]; [t.join() for t in all]
closer = threading.Thread(target=lambda: codes.append(os.close(fd)))
codes = []; closer.start(); closer.join()
raise SystemExit(0 if codes else 1)'""",
    "truncate and write": """python3 -c 'import os
fd = os.open("'$F'", os.O_RDWR | os.O_CREAT, 0o644)
os.ftruncate(fd, 100000); os.ftruncate(fd, 0)
os.write(fd, open("'$DOC'", "rb").read()); os.fsync(fd); os.close(fd)'""",
    "atomic writer": """python3 -c 'import os
f = open(".'$F'.tmp", "w"); f.write(open("'$DOC'").read()); f.flush(); os.fsync(f.fileno()); f.close()
os.replace(".'$F'.tmp", "'$F'")'""",
    "bash subshell": "( head -n 2 $DOC; sleep 0.2; tail -n +3 $DOC ) > $F",
    "pipeline": "cat $DOC | cat | cat > $F",
    "timeout": "timeout 60 cat $DOC > $F",
    "fork": """python3 -c 'import os
d = open("'$DOC'", "rb").read()
fd = os.open("'$F'", os.O_WRONLY | os.O_CREAT, 0o644)
os.write(fd, d[:20])
if os.fork() == 0:
    os.write(fd, d[20:40]); os._exit(0)
os.wait(); os.write(fd, d[40:]); os.close(fd)'""",
}

# Commands as in REPORT, but with tools that ignore the result of close() or that have written nothing before the last close.
SILENT = {
    "busybox cat": "busybox cat $DOC > $F",
    "dash cat": "dash -c 'cat $DOC > $F'",
    "bash printf": 'printf "%s\\n" "$(cat $DOC)" > $F',
    "bash group": "{ head -n 2 $DOC; sleep 0.2; tail -n +3 $DOC; } > $F",
    "dash group": "dash -c '{ head -n 2 $DOC; sleep 0.2; tail -n +3 $DOC; } > $F'",
    "busybox group": "busybox sh -c '{ head -n 2 $DOC; sleep 0.2; tail -n +3 $DOC; } > $F'",
    "bash function with stderr": """f() {
        IFS= read -r first < $DOC; echo "$first"; echo warn >&2; tail -n +2 $DOC; }; f > $F""",
    "dash function with stderr": """cat > $DOC.sh <<'END'
f() { IFS= read -r first < $DOC; echo "$first"; echo warn >&2; tail -n +2 $DOC; }
f > $F
END
dash $DOC.sh""",
    "bash exec": "exec 3> $F; head -n 2 $DOC >&3; tail -n +3 $DOC >&3; exec 3>&-",
    "bash exec, builtins": "exec 3> $F; while IFS= read -r l; do echo \"$l\" >&3; done < $DOC",
    "dash exec, builtins": """cat > $DOC.sh <<'END'
exec 3> $F
while IFS= read -r l; do echo "$l" >&3; done < $DOC
END
dash $DOC.sh""",
    "bash background": "{ head -n 2 $DOC; sleep 0.2; tail -n +3 $DOC; } > $F & wait",
    "python without close": """python3 -c 'import sys
f = open("'$F'", "w"); f.write(open("'$DOC'").read())'""",
    "Popen": """python3 -c 'import subprocess
with open("'$F'", "w") as f:
    p = subprocess.Popen(["sh", "-c", "sleep 0.2; head -n 2 $DOC; sleep 0.2; tail -n +3 $DOC"], stdout=f)
p.wait()'""",
    "Popen, closed between": """python3 -c 'import subprocess, time
f = open("'$F'", "w")
p = subprocess.Popen(["sh", "-c", "IFS= read -r l < $DOC; echo \\"$l\\"; sleep 0.5; tail -n +2 $DOC"], stdout=f)
while not f.tell() and not open("'$F'").read():
    time.sleep(0.01)
f.close()
p.wait()'""",
    "vim": "vim -es -u NONE -c 'read $DOC' -c 'wq' $F < /dev/null",
}

# Commands that change an existing file, whose contents OLD were launched before.
CHANGE = {
    "sed -i": "sed -i 's/old/newer/' $F",
    "vim": "vim -es -u NONE -c '%s/old/newer/' -c 'wq' $F < /dev/null",
    "vim, no backup copy": "vim -es -u NONE -c 'set backup backupcopy=no' -c '%s/old/newer/' -c 'wq' $F"
                           " < /dev/null; rm -f $F~",
    "vim, backup copy": "vim -es -u NONE -c 'set backup backupcopy=yes' -c '%s/old/newer/' -c 'wq' $F"
                        " < /dev/null; rm -f $F~",
    "perl -i": "perl -pi -e 's/old/newer/' $F",
    "cp": "sed 's/old/newer/' $F > $DOC && cp $DOC $F",
    "rsync": "sed 's/old/newer/' $F > $DOC && rsync $DOC $F",
    "emacs as": "cp $F $F~ && sed 's/old/newer/' $F~ > '#x#' && mv '#x#' $F && rm $F~",
    "append": "echo ' ' >> $F",
}


def script(kx, line, document, where="submit"):
    """Run LINE, a command as described above, on DOCUMENT. Return (status, stderr)."""
    doc = kx.work / "doc"
    doc.write_text(document)
    doc.chmod(0o644)
    p = harness.run(line, check=False, cwd=kx / where, env={"F": "x.yaml", "DOC": str(doc)})
    return p.returncode, p.stderr


@pytest.mark.parametrize("line", [
    "touch $F",
    "touch $F; touch $F",
    ": > $F",
    "cp /dev/null $F",
    "true | cat > $F",
    "truncate -s 0 $F",
    "install /dev/null $F",
    "echo text > .scratch; cat .scratch",
    "echo text > .hidden.yaml",
    "echo text > yaml.tmp",
    "echo text > x.yaml.tmp; mv x.yaml.tmp x.yaml~",
    "touch a.yaml && mv a.yaml $F",
    "exec 3<> $F",
])
def test_nothing_is_launched(kx, line):
    status, err = script(kx, line, "")
    assert status == 0, err
    assert not submitting.launched(kx)
    assert not [n for n in kx.ls("submit") if n.endswith((".error", ".job"))]


def test_touch_does_not_launch_again(kx):
    submitting.put(kx, "x.yaml", GOOD)
    before = submitting.launched(kx)
    for line in ("touch $F", "touch -d yesterday $F", "chmod 600 $F", "cat $F", "cat < $F",
                 "exec 3>> $F", "python3 -c 'open(\"x.yaml\", \"r+\").read()'"):
        assert script(kx, line, "")[0] == 0
    assert submitting.launched(kx) == before


# Write half of a document, remove $DOC.go to signal that, and wait.
HALF = """python3 -c 'import os, sys, time
d = open(os.environ["DOC"]).read()
sys.stdout.write(d[:len(d) // 2]); sys.stdout.flush()
os.remove(os.environ["DOC"] + ".go")
time.sleep(1000)'"""
WAIT = "while test -e $DOC.go; do sleep 0.02; done"


@pytest.mark.parametrize("line", [
    "{half} > $F & {wait}; kill $!; wait",
    "{{ {half} & {wait}; kill $!; wait; }} > $F",
    # The opener is not killed and closes as usual. (timeout ends at SIGALRM.)
    "timeout 1000 {half} > $F & {wait}; kill -ALRM $!; wait",
])
def test_killed_half_way(kx, line):
    """The table REFUSED below has more ways to be killed. A remount keeps what was written, and a later writer replaces
    it."""
    (kx.work / "doc.go").touch()
    script(kx, line.format(half=HALF, wait=WAIT), GOOD)
    submitting.refused(kx, "x.yaml", "a signal ended")
    left = kx.read("submit/x.yaml")
    assert left and GOOD.startswith(left)
    kx.restart()
    assert kx.read("submit/x.yaml") == left
    assert script(kx, "cp $DOC $F", GOOD)[0] == 0
    submitting.launched_once(kx, "x.yaml")


# --- programs that change a launched file ---


# Each command launches one more job, from the contents that the file has afterwards. test_ways.py has more commands
# that change a launched file.
LAUNCHES = {
    ">>": "echo '# more' >> $F",
    "tee -a": "echo '# more' | tee -a $F > /dev/null",
    "rsync --append": "cp $F $DOC; echo '# more' >> $DOC; rsync --append $DOC $F",
    "NamedTemporaryFile, renamed before its close": """python3 -c 'import os, tempfile
old = open(os.environ["F"]).read()
with tempfile.NamedTemporaryFile("w", dir=".", delete=False) as f:
    f.write(old + "# more\\n"); f.flush(); os.rename(f.name, os.environ["F"])'""",
}


@pytest.mark.parametrize("program", LAUNCHES)
def test_program_launches_changed_file_once(kx, program):
    submitting.put(kx, "x.yaml", GOOD)
    before = submitting.launched(kx)
    status, err = script(kx, LAUNCHES[program], "")
    assert status == 0, err
    submitting.launched_once(kx, "x.yaml", before)
    text = kx.read("submit", "x.yaml")
    assert "more" in text and text != GOOD
    assert kx.read("jobs", submitting.job_of(kx, "x.yaml"), "app.yaml") == text


def test_two_appends_at_once_are_two_jobs(kx):
    """Two processes append at the same time. Each has its own copy of the earlier contents, so there are two jobs.
    The file has the contents that were closed last."""
    submitting.put(kx, "x.yaml", GOOD)
    before = submitting.launched(kx)
    status, err = script(kx, "exec 3>> $F; echo '# one' >&3; bash -c 'exec 3>&-; echo \"# other\" >> $F'; exec 3>&-", "")
    assert status == 0, err
    new = submitting.launched(kx) - before
    assert sorted(kx.read("jobs", job, "app.yaml") for job in new) == sorted([GOOD + "# one\n", GOOD + "# other\n"])
    assert kx.read("submit", "x.yaml") == GOOD + "# one\n"


def test_vim_refused_write_launches_nothing(kx):
    """vim writes a document that is refused, after it has renamed the old file to its backup. Neither is launched."""
    submitting.put(kx, "x.yaml", GOOD)
    before = submitting.launched(kx)
    script(kx, "vim -es -u NONE -c 'set backup backupcopy=no' -c '%s/roles/rolls/' -c 'w' -c 'q!' $F < /dev/null", "")
    assert "rolls" in submitting.error_of(kx, "x.yaml")
    assert submitting.launched(kx) == before


def test_second_vim_finds_swap_file(kx):
    submitting.put(kx, "x.yaml", GOOD)
    before = submitting.launched(kx)
    with harness.popen(["vim", "-es", "-u", "NONE", "x.yaml"], cwd=kx / "submit", stdin=harness.subprocess.PIPE) as first:
        try:
            harness.wait_for(lambda: ".x.yaml.swp" in kx.ls("submit"), what="the swap file")
            listed = harness.run("vim -r 2>&1 | cat", cwd=kx / "submit").stdout
            assert f"process ID: {first.pid} (STILL RUNNING)" in listed
        finally:
            first.communicate(b"q!\n", timeout=harness.LIMIT)
    assert submitting.launched(kx) == before


# --- How the writing ends ---------------------------------------------------------------------
# The ways in which writing a file can end, and whether kxfs launches the contents: the tables of docs/kxfs-submit.7,
# with real programs.

# The first half is a valid document, too, so a launch of only a part would be noticed.
LONG = GOOD + "# and so on\n" * 50
HANG = 60  # the seconds after which the mount is removed; a process that hangs in exec would make ps hang on the whole machine

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

# Each key is a row of the table in the manual. Its commands end their writing in this way.
LAUNCHED = {
    "The program closes the file; the close fails if nothing is launched.": [
        "$ENDS main write close > x.yaml", "$ENDS second write close > x.yaml", "$ENDS last write close > x.yaml",
        "node -e '$NODE fs.writeFileSync(\"x.yaml\", text)'",
        "node -e '$NODE fs.createWriteStream(\"x.yaml\").end(text)'",
    ],
    "The program exits, in any thread and with any status, also in the background or under nohup; "
    "without an exit, it ends with its last thread.": [
        "$ENDS main write exit > x.yaml", "$ENDS main write fail > x.yaml", "$ENDS second write exit > x.yaml",
        "$ENDS second write > x.yaml", "{ $ENDS second write exit; } > x.yaml", "$ENDS second write exit | cat > x.yaml",
        "$GO exit > x.yaml", "$GO fail > x.yaml", "{ $GO exit; } > x.yaml",
        "node -e '$NODE process.stdout.write(text)' > x.yaml", "{ node -e '$NODE process.stdout.write(text)'; } > x.yaml",
        "node -e '$NODE fs.writeSync(fs.openSync(\"x.yaml\", \"w\"), text); process.exit(0)'",
        "python3 -c '$PYTHON sys.stdout.write(text)' > x.yaml", "python3 -c '$PYTHON sys.stdout.write(text); sys.exit(1)' > x.yaml",
        "python3 -c '$PYTHON os.write(1, text.encode()); os._exit(0)' > x.yaml",
        "$ENDS last write > x.yaml", "$ENDS last write exit > x.yaml", "exec $ENDS last write > x.yaml",
        "nohup $ENDS second write exit > x.yaml 2> /dev/null & wait", f"nohup sh -c 'sleep 0.2; {PART}; {REST}' > x.yaml 2> /dev/null &",
        f"( sleep 0.2; {PART}; {REST} ) > x.yaml &", "( $ENDS second write exit ) > x.yaml & wait",
    ],
    "The program executes another one: that is then the writer, or exec closes the file (O_CLOEXEC).": [
        "$ENDS main write exec > x.yaml", "$ENDS second write exec > x.yaml", "$ENDS last write exec > x.yaml",
    ],
    "The program ends, and a child goes on that has not written: the child can't write any more (EBUSY).": [
        "{ cat $DOC; sleep 1 & } > x.yaml", "sh -c 'cat $DOC; (sleep 0.5; echo more 2> /dev/null) &' > x.yaml; wait",
    ],
    "The program ends, but a child that wrote last goes on: the file is launched when the child ends.": [
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
    "The program catches a signal and exits, as Java does at SIGTERM, or a signal ends an earlier program of a pipeline: "
    "perhaps only a part was written.": [
        f"bash -c 'trap \"exit 1\" TERM; {PART}; kill $$; sleep 1' > x.yaml",
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


def test_the_table():
    """Each row of the tables in the manual has commands here."""
    page = (harness.ROOT / "docs/kxfs-submit.7").read_text()
    tables = re.findall(r"^\.Bl -bullet -compact\n(.*?)^\.El", page, re.M | re.S)
    assert [set(re.findall(r"^\.It\n(.*)$", table, re.M)) for table in tables] == [LAUNCHED.keys() | PERHAPS.keys(), set(REFUSED)]


@pytest.fixture(scope="session")
def programs():
    """Build $ENDS, from ends.c, and $GO, once for all workers. Some commands run node."""
    source = harness.ROOT / "tests/mount/ends.c"

    def fill(top):
        harness.run(["gcc", "-O1", "-pthread", "-o", str(top / "ends"), str(source)])
        (top / "main.go").write_text(GO)
        go, env = ways.build.find_go()
        harness.run([go, "build", "-o", str(top / "go"), "main.go"], cwd=top, timeout=600, env={**env, "GO111MODULE": "off"})

    ways.need("node", "node")
    top = ways.gobuild.cached("ends", [source, pathlib.Path(__file__)], fill)
    return {"ENDS": str(top / "ends"), "GO": str(top / "go")}


def run_line(kx, line, programs=None, where="submit"):
    """Run LINE in the directory WHERE, with the document in $DOC. Return its status."""
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
    run_line(kx, line, programs)
    submitting.launched_once(kx, "x.yaml")
    assert kx.read("submit/x.yaml") == LONG


@pytest.mark.parametrize("line", lines(PERHAPS))
def test_perhaps_a_part(kx, line):
    run_line(kx, line)
    submitting.launched_once(kx, "x.yaml")
    assert kx.read("submit/x.yaml") == LONG[:300]


@pytest.mark.parametrize("line", lines(REFUSED))
def test_refused(kx, programs, line):
    run_line(kx, line, programs)
    submitting.refused(kx, "x.yaml", "a signal ended")


@pytest.mark.parametrize("line", ["$ENDS second write exit > x.yaml", "{ $GO exit; } > x.yaml", "$ENDS second half KILL > x.yaml"])
def test_dryrun(kx, programs, line):
    """In dryrun/ the same rules decide whether the file becomes a manifest."""
    run_line(kx, line, programs, "dryrun")
    if "half" in line:
        assert "a signal ended" in kx.read("dryrun/x.yaml.error")
    else:
        harness.wait_for(lambda: kx.read("dryrun/x.yaml") != LONG, what="the manifest")
        assert kx.ls("dryrun") == ["x.yaml"]


def test_a_close_reports_a_child_that_was_ended(kx, programs):
    """If a signal has ended a child of the opener, the opener's close fails with ECANCELED."""
    assert run_line(kx, "$ENDS main half lose-child close > x.yaml", programs) == 125
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
    """While an exec closes a descriptor with O_CLOEXEC, the kernel holds a lock for which readers of /proc wait."""
    assert run_line(kx, line, programs) == 0
    submitting.launched_once(kx, "x.yaml")
    assert kx.read("submit/x.yaml") == LONG


def test_exec_closes_a_copy(kx):
    """An exec closes one descriptor, and the new program continues to write through another one."""
    line = """python3 -c 'import os
f = open("x.yaml", "w"); f.write(open(os.environ["DOC"]).read()[:-200]); f.flush()
os.dup2(f.fileno(), 1); os.execlp("tail", "tail", "-c", "200", os.environ["DOC"])'"""
    assert run_line(kx, line) == 0
    submitting.launched_once(kx, "x.yaml")
    assert kx.read("submit/x.yaml") == LONG


@pytest.mark.parametrize("step", ["dup", "spawn", "vfork"])
@pytest.mark.parametrize("thread", ["main", "second", "last"])
def test_a_copy_is_closed(kx, programs, thread, step):
    """A process closes a copy of the descriptor, in the program or in its child. The writing continues after that."""
    assert run_line(kx, f"exec $ENDS {thread} half {step} rest > x.yaml", programs) == 0
    submitting.launched_once(kx, "x.yaml")
    assert kx.read("submit/x.yaml") == LONG


def test_child_of_a_child(kx):
    """A close while a child still runs does not launch what the first command of the child has written."""
    line = """python3 -c 'import os, subprocess, time
f = open("x.yaml", "w")
p = subprocess.Popen("head -c 300 $DOC; touch $DOC.half; while test -e $DOC.half; do sleep 0.1; done; tail -c +301 $DOC",
                     shell=True, stdout=f)
while not os.path.exists(os.environ["DOC"] + ".half"):
    time.sleep(0.02)
f.close()
os.remove(os.environ["DOC"] + ".half")
p.wait()'"""
    assert run_line(kx, line) == 0
    submitting.launched_once(kx, "x.yaml")
    assert kx.read("submit/x.yaml") == LONG
