# SPDX-License-Identifier: MIT
"""Output of real pods, read through the mount while they run and after."""

import os

from harness import popen, run, wait_for
from mounted import HOLD, app, role, running


def lines_of(job, name="log"):
    return job.read(name).splitlines()


def test_follow(kx, world):
    """A reader has a line while the program runs, and its end when that ends."""
    job = kx.submit(app(HOLD))
    out = kx.base / "followed"
    reader = popen(["cat", str(job / "main-0/follow")], stdout=open(out, "wb"))
    tail = popen(["tail", "-n", "+1", "-f", str(job / "main-0/log")], stdout=open(kx.base / "tail", "wb"))
    wait_for(lambda: out.read_text() == "begin\n", what="the first line")
    assert job.state() in ("PENDING", "RUNNING") and reader.poll() is None
    world.release(running(job))
    job.finish()
    assert reader.wait(timeout=60) == 0 and out.read_text() == "begin\nend\n"
    assert job.log() == b"begin\nend\n" and os.stat(job / "main-0/log").st_size == 10
    wait_for(lambda: (kx.base / "tail").read_text() == "begin\nend\n", what="tail -f")
    tail.kill()
    tail.wait()


def test_bytes(kx, world):
    """Byte for byte: carriage returns, NUL, invalid UTF-8, a long line, no newline at the end."""
    script = ("printf 'a\\rb\\n\\000\\377 x\\n\\n'; head -c 100000 /dev/zero | tr '\\0' L; echo; "
              "printf 'no newline'; " + HOLD.replace("echo begin;", "").replace("echo end;", ""))
    job = kx.submit(app(script))
    world.release(running(job))
    job.finish()
    wanted = b"a\rb\n\0\xff x\n\n" + b"L" * 100000 + b"\nno newline"
    wait_for(lambda: len(job.log()) >= len(wanted), what="all of it")
    assert job.log() == wanted


def test_merged(kx, world):
    """All replicas in one file, each line with its replica's name; `follow` ends with the job."""
    job = kx.submit(app(roles=[role(HOLD, "leader"), role(HOLD, "worker", num_replicas=2)]))
    out = kx.base / "followed"
    reader = popen(["cat", str(job / "follow")], stdout=open(out, "wb"))
    names = ["leader-0", "worker-0", "worker-1"]
    for name in names:
        world.release(running(job, name))
    job.finish()
    assert reader.wait(timeout=60) == 0
    wanted = sorted(f"{name.replace('-', '/')} {word}" for name in names for word in ("begin", "end"))
    assert sorted(out.read_text().splitlines()) == wanted
    assert out.read_text() == job.read("log")
    for name in names:
        assert job.read("logs", f"{name}.log") == "begin\nend\n"


def test_attempts(kx, world):
    """Each attempt keeps its log, though Volcano deletes the pod."""
    job = kx.submit(app(HOLD, max_retries=2, retry_policy="APPLICATION"))
    first = running(job)
    wait_for(lambda: job.log() == b"begin\n", what="the first line")
    world.release(first, 9)
    wait_for(lambda: job.replica()["attempt"] == 1, what="the second attempt")
    world.release(running(job))
    job.finish()
    assert "log.0" in kx.ls("jobs", job.id, "main-0")
    wait_for(lambda: job.log() == b"begin\nend\n", what="the log of the second")
    assert job.log(name="log.0") == b"begin\nend\n"


def test_history(kx, world):
    """What was captured outlives the job, with what it printed on SIGTERM."""
    script = "trap 'echo bye; exit 0' TERM; echo hello; while :; do sleep 0.1; done"
    job = kx.submit(app(script))
    wait_for(lambda: job.log() == b"hello\n", what="the first line")
    run(["rm", "-r", str(job.dir)])
    wait_for(lambda: (job.old / "main-0/log").read_text() == "hello\nbye\n", what="its last words")
    assert (job.old / "state").read_text() == "CANCELLED\n" and job.id not in kx.ls("jobs")
    run(["rm", "-r", str(job.old)])
    assert job.id not in kx.history()


def test_deleted_by_others(kx, world):
    job = kx.submit(app(HOLD))
    wait_for(lambda: job.log() == b"begin\n", what="the first line")
    world.kubectl("delete", "jobs.batch.volcano.sh", job.id)
    wait_for(lambda: job.id in kx.history(), what="the job in the history")
    assert (job.old / "main-0/log").read_text() == "begin\n" and job.id not in kx.ls("jobs")


def test_not_started(kx):
    """Waiting for a container that has not started is no error."""
    job = kx.submit(app(HOLD, image="localhost:1/no/such:image"))
    wait_for(lambda: job.replica()["reason"] in ("ImagePullBackOff", "ErrImagePull"), what="the reason")
    assert job.log() == b"" and job.read("log") == ""
