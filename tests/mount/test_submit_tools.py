# SPDX-License-Identifier: MIT
"""Commands that launch nothing, and writers that a signal ends: the rules of docs/kxfs-submit.7. Also commands that
several tests share; test_ways.py runs them on an ordinary mount."""

import harness
import pytest
import submitting
from submitting import GOOD

# $F: the file to write, in the working directory submit/. $DOC: the document, on another filesystem; the command may
# remove it. $GEN: a program that prints it. All tools that check close() have the same status for a bad document.
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

# The same, but the tool ignores the result of close(), or nothing was written at that close.
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

# These change an existing file: OLD was launched before.
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
    """Run LINE as described above. Return (status, stderr)."""
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


# Writes half a document, removes $DOC.go as a signal, and waits.
HALF = """python3 -c 'import os, sys, time
d = open(os.environ["DOC"]).read()
sys.stdout.write(d[:len(d) // 2]); sys.stdout.flush()
os.remove(os.environ["DOC"] + ".go")
time.sleep(1000)'"""
WAIT = "while test -e $DOC.go; do sleep 0.02; done"


# A background job of a non-interactive shell ignores SIGINT.
SIGNALS = ["TERM", "KILL", "HUP", "SEGV"]


@pytest.mark.parametrize("line, sig", [
    *[("{half} > $F & {wait}; kill -{sig} $!; wait", sig) for sig in SIGNALS],  # the opener itself
    # A child of the opener wrote.
    *[("{{ {half} & {wait}; kill -{sig} $!; wait; }} > $F", sig) for sig in SIGNALS],
    # The opener is not killed and closes as usual. (timeout ends at SIGALRM.)
    *[("timeout -s {sig} 1000 {half} > $F & {wait}; kill -ALRM $!; wait", sig) for sig in [*SIGNALS, "INT"]],
    # The opener, which has written nothing itself.
    *[("bash -c 'head -n 2 $DOC; kill -{sig} $$' > $F", sig) for sig in [*SIGNALS, "INT"]],
    *[("dash -c 'head -n 2 $DOC; kill -{sig} $$' > $F", sig) for sig in [*SIGNALS, "INT"]],
])
def test_killed_half_way(kx, line, sig):
    (kx.work / "doc.go").touch()
    script(kx, line.format(half=HALF, wait=WAIT, sig=sig), GOOD)
    submitting.refused(kx, "x.yaml", "a signal ended")
    assert kx.read("submit/x.yaml") and GOOD.startswith(kx.read("submit/x.yaml"))
    # Another writer repairs it.
    assert script(kx, "cp $DOC $F", GOOD)[0] == 0
    submitting.launched_once(kx, "x.yaml")


def test_a_later_writer_goes_on(kx):
    """A document that is complete in the end is launched, even if a writer was killed."""
    (kx.work / "doc.go").touch()
    line = f"{{ {HALF} & {WAIT}; kill $!; wait; tail -c +$(($(stat -c %s $DOC) / 2 + 1)) $DOC; }} > $F"
    script(kx, line, GOOD)
    submitting.launched_once(kx, "x.yaml")
    assert kx.read("submit/x.yaml") == GOOD


def test_killed_without_having_written(kx):
    """A process that is killed with the file open, but has not written, is not a writer."""
    script(kx, "sleep 1000 >> $F & kill -KILL $!; wait", GOOD)
    assert script(kx, "{ sleep 1000 & kill -KILL $!; wait; cat $DOC; } > $F", GOOD)[0] == 0
    submitting.launched_once(kx, "x.yaml")


# --- programs that change a launched file ---


# Each launches one more job, from the file's contents then.
LAUNCHES = {
    ">>": "echo '# more' >> $F",
    "tee -a": "echo '# more' | tee -a $F > /dev/null",
    "sed -i": "sed -i 's/\"true\"/\"true more\"/' $F",
    "dd conv=notrunc": "sed 's/\"true\"/\"true more\"/' $F | dd of=$F conv=notrunc status=none bs=1M iflag=fullblock",
    "rsync --inplace": "sed 's/\"true\"/\"true more\"/' $F > $DOC; rsync --inplace --no-whole-file $DOC $F",
    "rsync --append": "cp $F $DOC; echo '# more' >> $DOC; rsync --append $DOC $F",
    "NamedTemporaryFile, renamed before its close": """python3 -c 'import os, tempfile
old = open(os.environ["F"]).read()
with tempfile.NamedTemporaryFile("w", dir=".", delete=False) as f:
    f.write(old + "# more\\n"); f.flush(); os.rename(f.name, os.environ["F"])'""",
    "vim": "vim -es -u NONE -c 'normal Go# more' -c 'wq' $F < /dev/null",
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
    """Each writer has a copy of the earlier contents, and NAME has the contents that were closed last."""
    submitting.put(kx, "x.yaml", GOOD)
    before = submitting.launched(kx)
    status, err = script(kx, "exec 3>> $F; echo '# one' >&3; bash -c 'exec 3>&-; echo \"# other\" >> $F'; exec 3>&-", "")
    assert status == 0, err
    new = submitting.launched(kx) - before
    assert sorted(kx.read("jobs", job, "app.yaml") for job in new) == sorted([GOOD + "# one\n", GOOD + "# other\n"])
    assert kx.read("submit", "x.yaml") == GOOD + "# one\n"


def test_vim_refused_write_launches_nothing(kx):
    """Neither the refused contents nor vim's backup, which it renamed before, is launched."""
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
