# SPDX-License-Identifier: MIT
"""Several who write one name of submit/ at the same moment: a close returns 0 only if what this writer wrote, whole and
unmixed, was launched, once. On slow_kxfs.c, which prints what it has launched.

    KXFS_TOGETHER_ROUNDS=10000 pytest test_submit_together.py     as many rounds
    pytest test_submit_together.py --seed N                       those that a failure names"""

import collections
import os
import random
import re
import signal
import time

import harness
import pytest
import submitting
from submitting import error_of, job_of, slow_binary

# $T: the text, in a file elsewhere. SURE: a failure means that its text was not launched. Other tools may fail after
# their close, when another one has removed the file.
TOOLS = {
    "cp": ("cp $T x.yaml", True),
    "cat >": ("exec cat $T > x.yaml", True),
    "cat >>": ("exec cat $T >> x.yaml", True),
    "printf >": ('printf "%s" "$(cat $T)" > x.yaml; printf "" >&2', False),
    "install": ("install -m 600 $T x.yaml", False),
    "mv": ("cp $T tmp.$$ && mv tmp.$$ x.yaml || { rm -f tmp.$$; exit 1; }", False),
    "mv from elsewhere": ("cp $T $T.own && mv $T.own x.yaml", False),
    "python": (None, True),
}


@pytest.fixture
def kx(top):
    program = slow_binary()
    if not program.exists():
        pytest.fail(f"{program} is missing: build it first", pytrace=False)
    kx = submitting.Slow(program, top)
    yield kx.start()
    wrong = kx.close() + harness.end_marked()
    assert not wrong, "\n".join(wrong)


def told(kx):
    """Return the texts of all jobs, in the order of their launch."""
    return [bytes.fromhex(text).decode() for text in re.findall(r"^launched: ([0-9a-f]+)$", kx.said(), re.M)]


def write_in_python(path, text):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        for i in range(0, len(text), 700):
            os.write(fd, text[i:i + 700].encode())
    except OSError:
        os.close(fd)
        return 1
    os.close(fd)
    return 0


def begin(kx, gate, tool, text, file):
    """Fork a child that runs it when all others have closed GATE; it inherits only its end of that."""
    pid = os.fork()
    if pid:
        return pid
    status = 120
    try:
        os.close(gate[1])
        os.read(gate[0], 1)
        os.close(gate[0])
        os.chdir(kx / "submit")
        null = os.open("/dev/null", os.O_WRONLY)
        os.dup2(null, 2)
        if tool == "python":
            status = write_in_python("x.yaml", text)
        else:
            os.environ["T"] = str(file)
            os.execv("/bin/bash", ["bash", "-c", TOOLS[tool][0]])
    except OSError:
        status = 1
    finally:
        os._exit(status)


def one_round(kx, rng, number):
    """Return [(tool, text, exit status)] of two to five concurrent writers."""
    gate = os.pipe()
    children = []
    for i in range(rng.randint(2, 5)):
        text = (f"name: app\nroles: []\n# tell {number}-{i} " + rng.choice("abcdef") * rng.randint(0, 3000) + "\n"
                + f"# {number}-{i} end\n")
        file = kx.work / f"text{i}"
        file.write_text(text)
        tool = rng.choice(list(TOOLS))
        children.append((begin(kx, gate, tool, text, file), tool, text))
    os.close(gate[0])
    os.close(gate[1])
    return [(tool, text, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])) for pid, tool, text in children]


def short(text):
    """Return TEXT with its long runs shortened."""
    return re.sub(r"([a-f])\1{9,}", r"\1...", text)


def check(done, launched):
    """Check DONE, the writers of all rounds."""
    known = {text for _, text, _ in done} | {text.rstrip("\n") for _, text, _ in done}
    count = collections.Counter()
    before = {""}
    for text in launched:
        # An appending writer has earlier text in front of its own: nothing, or launched contents.
        parts = [(text[:i], text[i:]) for i in [0, *(m.start() for m in re.finditer("name: app", text))]]
        whole = [own for rest, own in parts if own in known and rest in before]
        assert whole, f"a mixture was launched: {short(text)!r}"
        before |= {text}
        count[whole[0].rstrip("\n")] += 1
    for tool, text, status in done:
        n = count[text.rstrip("\n")]
        sure = TOOLS[tool][1]
        assert n == 1 if status == 0 and tool != "printf >" else n <= (0 if status and sure else 1), \
            f"{tool}, exit status {status}: launched {n} times: {short(text)!r}"


def test_who_closes_with_success_has_launched(kx, request, sanitized):
    seed = request.config.getoption("--seed")
    if seed is None:
        seed = time.time_ns() % 1000000
    rounds = int(os.environ.get("KXFS_TOGETHER_ROUNDS", 80 if sanitized else 300))
    print(f"seed {seed}, {rounds} rounds")
    rng = random.Random(seed)
    done = []
    for number in range(rounds):
        if rng.random() < 0.3:
            harness.err_of(os.remove, kx / "submit/x.yaml")
        done += one_round(kx, rng, number)
    check(done, told(kx))
    assert sum(status == 0 for _, _, status in done) >= rounds


# --- sequences in which writers interfere ---


def writer(kx, text, name="x.yaml"):
    """A process that has written TEXT and keeps the file open until requested to close it."""
    script = ("import os, sys\n"
              f"fd = os.open({name!r}, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)\n"
              f"os.write(fd, {text.encode()!r})\n"
              "print('written', flush=True)\n"
              "sys.stdin.readline()\n"
              "try:\n"
              "    os.close(fd)\n"
              "except OSError as e:\n"
              "    print(e.errno)\n")
    p = harness.popen(["python3", "-c", script], cwd=kx / "submit", stdin=-1, stdout=-1, text=True)
    assert p.stdout.readline() == "written\n"
    return p


def close_of(p):
    """Return the errno of its close(); "" for success."""
    code = p.communicate("\n", timeout=harness.LIMIT)[0].strip()
    return os.strerror(int(code)) if code else ""


A, B = (submitting.asking(f"tell {who}") for who in "ab")


@pytest.mark.parametrize("line", ["cat $T > x.yaml", "cat $T >> x.yaml", "cp $T x.yaml"])
def test_both_are_launched(kx, line):
    """Two writers of one name launch two jobs, and the name shows the contents that were closed last."""
    (kx.work / "b").write_text(B)
    first = writer(kx, A)
    harness.run(line, cwd=kx / "submit", env={"T": str(kx.work / "b")})
    assert told(kx) == [B] and kx.read("submit/x.yaml") == B
    assert close_of(first) == ""
    assert told(kx) == [B, A] and kx.read("submit/x.yaml") == A
    assert error_of(kx, "x.yaml") is None and job_of(kx, "x.yaml")


@pytest.mark.parametrize("line", ["install $T x.yaml", "rm x.yaml && cp $T x.yaml", "cp $T tmp && mv tmp x.yaml"])
def test_the_first_loses_the_file(kx, line):
    """Its name was removed while it wrote: its close fails, and the new file of that name was launched."""
    (kx.work / "b").write_text(B)
    first = writer(kx, A)
    harness.run(line, cwd=kx / "submit", env={"T": str(kx.work / "b")})
    assert close_of(first) == os.strerror(16)
    assert told(kx) == [B] and kx.read("submit/x.yaml") == B


@pytest.mark.parametrize("line", ["rm x.yaml", "mv x.yaml x.yaml~"])
def test_removed_while_another_writes(kx, line):
    first = writer(kx, A)
    harness.run(line, cwd=kx / "submit")
    assert f"removed or replaced it while process {first.pid} (python3) was writing it" in error_of(kx, "x.yaml")
    assert close_of(first) == os.strerror(16)
    assert told(kx) == []


def test_opened_before_and_written_after(kx):
    """A process that does not truncate the file changes the contents that were closed when it began to write."""
    submitting.put(kx, "x.yaml", B)
    fd = os.open(kx / "submit/x.yaml", os.O_WRONLY)
    assert close_of(writer(kx, A)) == ""
    os.pwrite(fd, b"# end\n", len(A))
    os.close(fd)
    assert told(kx) == [B, A, A + "# end\n"] and kx.read("submit/x.yaml") == A + "# end\n"


def test_made_before_and_written_after(kx):
    """A process that creates the file writes a new one, whatever was written to it meanwhile."""
    fd = os.open(kx / "submit/x.yaml", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    assert close_of(writer(kx, A + "# much longer\n")) == ""
    os.write(fd, B.encode())
    os.close(fd)
    assert told(kx) == [A + "# much longer\n", B] and kx.read("submit/x.yaml") == B


def test_touched_while_another_writes(kx):
    """A process that creates a file and writes nothing removes nothing."""
    fd = os.open(kx / "submit/x.yaml", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    assert close_of(writer(kx, A)) == ""
    os.close(fd)
    assert told(kx) == [A] and kx.read("submit/x.yaml") == A


def test_a_writer_that_is_killed_is_in_nobodys_way(kx):
    first = writer(kx, A)
    harness.kill(first.pid, signal.SIGKILL)
    first.communicate()
    harness.wait_for(lambda: "a signal ended" in (error_of(kx, "x.yaml") or ""), what="that it was killed")
    assert submitting.put(kx, "x.yaml", B) == ""
    assert told(kx) == [B]
