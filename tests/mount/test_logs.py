# SPDX-License-Identifier: MIT
"""Tools read from a log exactly the bytes that the program has printed, while it prints and afterwards."""

import contextlib
import os
import random
import re
import signal
import subprocess
import tarfile
import threading
import time

import pytest
from harness import app, popen, python_app, rmdir, run, wait_for
from metrics import Metrics

# The replica prints the next part of BYTES when the test lets it continue. So the test knows the expected contents at
# each moment.
BYTES = b"".join(b"line %05d %s\n" % (i, b"x" * (i % 97)) for i in range(3000))
STEPS = 6
STEPPER = """
import os, sys, time
data = b"".join(b"line %05d %s\\n" % (i, b"x" * (i % 97)) for i in range(3000))
steps = 6
for n in range(steps):
    while not os.path.exists(f"go-{n}"):
        time.sleep(0.01)
    part = data[len(data) * n // steps:len(data) * (n + 1) // steps]
    while part:  # in chunks that end neither with lines nor with blocks
        part = part[os.write(1, part[:1013]):]
"""


def upto(n):
    """Return the output up to and including step N."""
    return BYTES[:len(BYTES) * (n + 1) // STEPS]


class Stepper:
    def __init__(self, kx):
        self.kx = kx
        self.job = kx.submit(python_app(STEPPER))
        self.job.until("RUNNING")
        self.log = self.job / "main-0/log"
        self.n = -1

    def step(self):
        self.n += 1
        (self.kx.work / f"go-{self.n}").touch()
        wait_for(lambda: os.stat(self.log).st_size == len(upto(self.n)), what="the output of a step")
        return upto(self.n)

    def rest(self):
        while self.n < STEPS - 1:
            self.step()
        self.job.finish()


@pytest.fixture
def stepper(kx):
    return Stepper(kx)


def prefixed(data, prefix=b"main/0 "):
    """Return DATA as the merged log of a job with one replica shows it."""
    out = prefix + re.sub(rb"\n(?=.)|\r(?!\n)(?=.)", lambda m: m[0] + prefix, data, flags=re.S)
    return out


@pytest.mark.parametrize("tool", ["tail -n +1 -f", "tail -n +1 -F", "busybox tail -n +1 -f",
                                  "busybox tail -n +1 -F", "tail -c +1 -s 0.1 -f"])
def test_tail(stepper, tool):
    """tail -f shows the log from its beginning to its end, including output that arrives meanwhile."""
    stepper.step()
    out = stepper.kx.base / "out"
    with out.open("wb") as f, popen([*tool.split(), str(stepper.log)], stdout=f,
                                    stderr=subprocess.PIPE) as p:
        try:
            wait_for(lambda: out.read_bytes() == upto(0), what="the first step")
            while stepper.n < STEPS - 1:
                expected = stepper.step()
                wait_for(lambda: out.read_bytes() == expected, what=f"step {stepper.n} in the output of tail")
            stepper.job.finish()
            time.sleep(0.3)  # time for tail to print something twice
        finally:
            p.send_signal(signal.SIGTERM)
        assert p.stderr.read() == b""
    assert out.read_bytes() == BYTES


def test_one_shot_tools_while_it_prints(stepper):
    """cp, tar and similar tools copy exactly the bytes that a growing log had."""
    kx, job = stepper.kx, stepper.job
    for n in range(STEPS):
        expected = stepper.step()
        # tar complains about a file that grows while it is read, and the merged log gets lines a little later.
        whole = prefixed(expected[:expected.rindex(b"\n") + 1])
        wait_for(lambda: job.read("log", binary=True) == whole, what="all whole lines in the merged log")
        assert stepper.log.read_bytes() == expected
        assert int(run(["wc", "-c", str(stepper.log)]).stdout.split()[0]) == len(expected)
        assert run(["tail", "-n", "3", str(stepper.log)]).stdout.encode() == b"".join(
            expected.splitlines(keepends=True)[-3:])
        assert run(["tail", "-c", "100", str(stepper.log)]).stdout.encode() == expected[-100:]
        run(["cp", str(stepper.log), f"{kx.base}/cp"])
        assert (kx.base / "cp").read_bytes() == expected
        run(["busybox", "cp", str(stepper.log), f"{kx.base}/bcp"])
        assert (kx.base / "bcp").read_bytes() == expected
        run(["rsync", "-a", str(stepper.log), f"{kx.base}/rsync"])
        assert (kx.base / "rsync").read_bytes() == expected
        run(["rm", "-rf", f"{kx.base}/cpr"])
        run(["cp", "-r", str(job.dir), f"{kx.base}/cpr"])
        assert (kx.base / "cpr/main-0/log").read_bytes() == expected
        assert (kx.base / "cpr/logs/main-0.log").read_bytes() == expected
        run(["tar", "-cf", f"{kx.base}/t.tar", "-C", str(job.dir), "."])
        with tarfile.open(kx.base / "t.tar") as tar:
            assert tar.extractfile("./main-0/log").read() == expected
        assert int(run(f"grep -rhc ^line {job.dir}/main-0").stdout.split("\n")[0]) >= 0
        assert run(f"grep -r --include=log -h '^line 0000[0-9]' {job.dir}/main-0").stdout.encode() == b"".join(
            line for line in expected.splitlines(keepends=True) if re.match(rb"line 0000\d", line))
        assert job.read("log", binary=True) == whole
    job.finish()


def test_tools_after_the_end(stepper):
    stepper.rest()
    kx, job = stepper.kx, stepper.job
    for command in ("cat {}", "dd if={} bs=1000 status=none", "head -c 100000000 {}", "busybox cat {}",
                    "tac {} | tac", "sort {}", "rsync -a {} {base}/r && cat {base}/r",
                    "perl -pe 1 {}", "python3 -c 'import sys, shutil; shutil.copyfileobj(open(sys.argv[1], \"rb\"), sys.stdout.buffer)' {}",
                    "tail -n +1 {}", "sed -n p {}", "awk 1 {}", "less {} | cat"):
        line = command.format(stepper.log, base=kx.base)
        assert run(line, text=False).stdout == BYTES, line
    for name in ("follow", "log"):
        assert (job / "main-0" / name).read_bytes() == BYTES
        assert job.read(name, binary=True) == prefixed(BYTES)
    assert run(f"cat {job.dir}/logs/*.log", text=False).stdout == BYTES
    assert run(["cmp", str(stepper.log), str(job / "main-0/follow")]).stdout == ""
    run(["diff", "-r", "--exclude=status*", str(job.dir), str(job.dir)])


@pytest.mark.parametrize("data", [
    b"no newline at the end",
    b"",
    b"\n",
    b"\n\n\n",
    b"carriage\rreturns\rof a progress bar\r\nand DOS lines\r\n",
    b"\r",
    b"nul \0 bytes \0\0\0 in it\n",
    bytes(range(256)) * 300,
    b"x" * 300000 + b"\n" + b"y" * 70000,
    "ümläut €\n".encode() * 10,
    b"\x1b[31mred\x1b[0m\n",
], ids=["no-newline", "empty", "newline", "newlines", "cr", "one-cr", "nul", "all-bytes", "long-lines", "utf8", "escapes"])
def test_bytes(kx, data):
    (kx.work / "data").write_bytes(data)
    job = kx.submit(app("cat data"))
    job.finish()
    assert job.log() == data
    assert (job / "main-0/follow").read_bytes() == data
    merged = job.read("log", binary=True)
    expected = prefixed(data) if data else b""
    # If the last line has no newline, the merged log may add one, so that the next replica's output begins a new line.
    assert merged in (expected, expected + b"\n"), (merged[:200], expected[:200])
    rmdir(job.dir)
    assert (job.old / "main-0/log").read_bytes() == data


def test_read_ahead(kx):
    """A large log has the same contents for reads of any size, for several threads that share a descriptor, and
    while it grows."""
    job = kx.submit(app("seq -f %09.0f 1 800000; while ! [ -e go ]; do sleep 0.05; done; seq -f %09.0f 800001 2000000"))
    half, whole = (b"".join(b"%09d\n" % i for i in range(1, n + 1)) for n in (800000, 2000000))
    logs = {job / "main-0/log": b"", job / "log": b"main/0 "}
    wait_for(lambda: all(os.stat(log).st_size == len(half) + 800000 * len(prefix) for log, prefix in logs.items()))
    for log, prefix in logs.items():
        assert log.read_bytes() == b"".join(prefix + line for line in half.splitlines(keepends=True))
    with contextlib.ExitStack() as stack:
        growing = {log: stack.enter_context(open(log, "rb", buffering=0)) for log in logs}
        found = {log: f.read(3 << 20) + f.read(3 << 20) for log, f in growing.items()}
        (kx.work / "go").touch()
        job.finish()
        for log, prefix in logs.items():
            expected = b"".join(prefix + line for line in whole.splitlines(keepends=True))
            wait_for(lambda: os.stat(log).st_size == len(expected))
            found[log] += growing[log].readall()
            assert found[log] == expected
            for step in (1000003, 98304, 4097):
                with open(log, "rb", buffering=0) as f:
                    assert b"".join(iter(lambda: f.read(step), b"")) == expected
            read_from_several_places(growing[log].fileno(), expected)


def read_from_several_places(fd, expected):
    """Threads that share FD read from it, each at its own offsets."""
    wrong = []

    def reader(seed):
        places = random.Random(seed)
        for _ in range(20):
            at = places.randrange(len(expected))
            for _ in range(5):
                n = places.choice((1 << 20, 1 << 18, 5000))
                if os.pread(fd, n, at) != expected[at:at + n]:
                    wrong.append((at, n))
                at += n

    threads = [threading.Thread(target=reader, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_merged_log_of_several(kx):
    """Replicas print parts of lines in turn. The merged log has complete lines, each with the prefix of its replica. The
    lines of a replica are in order, and bytes that were read never change."""
    job = kx.submit(python_app("""
import os, time
for i in range(2000):
    for part in (os.environ["ME"], ":", str(i), "\\n"):
        os.write(1, part.encode())
        if i % 20 == 0:
            time.sleep(0.001)
""", num_replicas=3, env={"ME": "${replica_id}"}))
    seen = b""
    while job.state() not in ("SUCCEEDED", "FAILED"):
        now = job.read("log", binary=True)
        assert now.startswith(seen)
        seen = now
    job.finish()
    merged = job.read("log")
    assert merged.encode().startswith(seen)
    lines = merged.splitlines()
    for n in range(3):
        mine = [line for line in lines if line.startswith(f"main/{n} ")]
        assert mine == [f"main/{n} {n}:{i}" for i in range(2000)]
    assert len(lines) == 6000
    assert job.read("follow") == merged


def test_follow_of_attempts(kx):
    """`follow` of a replica returns the output of all its attempts, no matter when a process opens it."""
    job = kx.submit(app("echo first line of an attempt; [ -e go ] || { while [ ! -e again ]; do sleep 0.02; done; touch go; exit 1; }",
                        max_retries=1))
    job.until_logged("first")
    with popen(["cat", str(job / "main-0/follow")], stdout=subprocess.PIPE) as p:
        (kx.work / "again").touch()
        assert p.communicate(timeout=120)[0] == b"first line of an attempt\n" * 2
    job.finish()
    assert job.read("main-0", "follow") == "first line of an attempt\n" * 2
    assert job.read("log") == "main/0 first line of an attempt\n" * 2


def test_new_attempt_is_a_new_file(kx):
    """At a new attempt, tail -f stays with the old log, and tail -F continues with the new one."""
    job = kx.submit(app("echo attempt; [ -e go ] || { while [ ! -e again ]; do sleep 0.02; done; touch go; exit 1; }; sleep 1000",
                        max_retries=1))
    job.until_logged("attempt")
    log = str(job / "main-0/log")
    old = os.stat(log).st_ino
    stay, move = kx.base / "stay", kx.base / "move"
    with stay.open("wb") as f, move.open("wb") as g, \
            popen(["tail", "-n", "+1", "-f", log], stdout=f, stderr=subprocess.DEVNULL) as p, \
            popen(["tail", "-n", "+1", "-F", "-s", "0.1", log], stdout=g, stderr=subprocess.DEVNULL) as q:
        try:
            wait_for(lambda: stay.read_bytes() == move.read_bytes() == b"attempt\n")
            (kx.work / "again").touch()
            wait_for(lambda: os.stat(log).st_ino != old, what="the log of the new attempt")
            wait_for(lambda: move.read_bytes() == b"attempt\n" * 2, what="tail -F to move on")
            assert stay.read_bytes() == b"attempt\n"
        finally:
            p.terminate()
            q.terminate()
    job.cancel()


def test_output_opened_anew(kx):
    """Shell scripts print to /dev/stderr and /dev/stdout. This opens the file behind the descriptor again, with
    O_TRUNC. Nothing is truncated or reordered."""
    job = kx.submit(app("""
i=0
while [ $i -lt 100 ]; do
	echo a$i > /dev/stderr
	echo b$i > /dev/stdout
	echo c$i >> /dev/stderr
	echo d$i
	i=$((i + 1))
done
"""))
    job.finish()
    expected = "".join(f"a{i}\nb{i}\nc{i}\nd{i}\n" for i in range(100))
    assert job.log().decode() == expected
    assert job.read("log", binary=True) == prefixed(expected.encode())


def test_progress_bar(kx):
    """A line that has only carriage returns is readable while it is being drawn, in the merged log too."""
    job = kx.submit(app(r"printf '\r10%%\r20%%\r30%%'; exec sleep 1000"))
    job.until_logged("30%")
    expected = b"main/0 \rmain/0 10%\rmain/0 20%\r"
    wait_for(lambda: job.read("log", binary=True) == expected, what="all but what may go on")
    with popen(["cat", str(job / "follow")], stdout=subprocess.PIPE) as p:
        assert p.stdout.read(len(expected)) == expected
        job.cancel()
        assert p.stdout.read() == b"main/0 30%\n"


def test_spool_bytes(kx):
    """kxfs_spool_bytes is the size of all output on disk. It includes the tables of short lines,
    and shrinks when output is removed."""
    def on_disk():
        return sum(p.stat().st_size for p in (kx.state / "output").rglob("*")
                   if p.is_file() and p.parent.name != "tasks")

    jobs = [kx.submit(app("for i in $(seq 300); do echo x; done")) for _ in range(2)]
    for job in jobs:
        job.finish("SUCCEEDED")
        wait_for(lambda job=job: job.read("log").count("\n") == 300, what="the merged log")
    wait_for(lambda: Metrics(kx)("spool_bytes") == on_disk() > 0, what="all bytes")
    jobs[0].cancel()
    rmdir(kx / "history" / jobs[0].id)
    wait_for(lambda: Metrics(kx)("spool_bytes") == on_disk() > 0, what="the rest")


def test_spool_limit(make_kx):
    """If output exceeds spool_limit, kxfs removes the oldest. The jobs and their results remain, in jobs/ and in
    history/."""
    kx = make_kx("spool_limit=1M")
    text = app("head -c 400000 /dev/zero; exit $N", env={"N": "${replica_id}"})
    old, cancelled = kx.submit(text), kx.submit(text)
    for job in (old, cancelled):
        job.finish("SUCCEEDED")
    cancelled.cancel()
    # Now all output exceeds the limit. kxfs first removes output of jobs in history/, even if other output is older.
    kx.submit(text).finish("SUCCEEDED")
    wait_for(lambda: (kx / "history" / cancelled.id / "log").stat().st_size == 0, what="room to be made")
    assert old.log() == bytes(400000)
    new = kx.submit(text)
    new.finish("SUCCEEDED")
    wait_for(lambda: (old / "main-0/log").stat().st_size == 0, what="more room to be made")
    for _ in range(2):
        assert old.read("wait") == "SUCCEEDED\n"
        assert old.log() == b"" == (old / "main-0/follow").read_bytes() == (old / "stamped").read_bytes()
        assert kx.read("history", cancelled.id, "state") == "SUCCEEDED\n"
        assert kx.read("history", cancelled.id, "app.yaml")
        assert new.log() == bytes(400000)
        kx.end()
        kx.start()
