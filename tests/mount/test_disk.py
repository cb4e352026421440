# SPDX-License-Identifier: MIT
"""The state directory on a disk that hangs: a request that needs the hanging file waits, and can be interrupted; all
else continues."""

import contextlib
import errno
import fcntl
import os
import pathlib
import signal
import subprocess
import threading
import time

import harness
import pytest
from disk import started


@pytest.fixture
def slow(make_kx):
    """(mount, its disk)"""
    with started(make_kx(start=False)) as both:
        yield both


def reader(kx, path):
    return harness.popen(["cat", kx / path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def others_go_on(kx, job):
    assert job.id in kx.call("ls jobs").stdout.split()
    assert job.read("state") == "RUNNING\n"
    assert kx.call("ls -l submit .kxfs jobs").returncode == 0


@pytest.mark.parametrize("call, part", [("read", "logs/"), ("open", "logs/"), ("getattr", "logs/"), ("open", "app.yaml")])
def test_a_reader_hangs_alone(slow, call, part):
    """Many readers hang; other requests continue, an interrupt ends a reader immediately, and in the end each has its
    answer."""
    kx, disk = slow
    job = kx.submit(harness.app("echo one; exec sleep 1000"))
    job.until_logged("one\n")
    file = "app.yaml" if part == "app.yaml" else "main-0/log"
    key = kx.folder(job.id).name
    part = f"jobs/{key}" if file == "app.yaml" else part
    disk.hang(call, f"/{part}" if file == "app.yaml" else f"/{key}/{part}")
    with disk.still():
        first = reader(kx, f"jobs/{job.id}/{file}")
        harness.wait_for(lambda: disk.hangs(part), what="a hanging disk")
        others_go_on(kx, job)
        begun = time.monotonic()
        first.send_signal(signal.SIGINT)
        assert first.wait(timeout=harness.LIMIT) == -signal.SIGINT, first.stderr.read()
        took = time.monotonic() - begun
        readers = [reader(kx, f"jobs/{job.id}/{file}") for _ in range(4)]
        others_go_on(kx, job)
        # Nothing waits for ever.
        assert "timed out" in readers[0].communicate(timeout=harness.LIMIT)[1]
        others_go_on(kx, job)
    assert took < 5, took
    disk.go_on()
    for proc in readers[1:]:
        out, err = proc.communicate(timeout=harness.LIMIT)
        assert out.startswith("one\n" if file == "main-0/log" else "{") or "timed out" in err
    job.until_logged("one\n")
    assert job.read("app.yaml").startswith("{")


def test_more_hang_than_may(slow):
    """With so many readers that no thread is left, further ones are refused, and all else continues."""
    kx, disk = slow
    job = kx.submit(harness.app("echo one; exec sleep 1000"))
    job.until_logged("one\n")
    disk.hang("getattr", f"/{kx.folder(job.id).name}/logs/")
    with disk.still():
        readers = [reader(kx, f"jobs/{job.id}/main-0/log") for _ in range(50)]
        harness.wait_for(lambda: sum(proc.poll() is not None for proc in readers) >= 10, what="some that are refused")
        others_go_on(kx, job)
        for proc in readers:
            assert "timed out" in proc.communicate(timeout=harness.LIMIT)[1]
        others_go_on(kx, job)
    disk.go_on()
    job.until_logged("one\n")


@pytest.mark.parametrize("call, part, file", [
    ("open", "logs/", "main-0/follow"),
    ("getattr", "logs/", "main-0/follow"),
    ("read", "logs/", "main-0/follow"),
    ("read", "logs/", "follow"),
    ("read", "merged", "follow"),
])
def test_a_follower_hangs_alone(slow, call, part, file):
    """A `follow` of a hanging log can be interrupted, and gets all of it, once, when the disk recovers. Meanwhile
    another job's `follow` continues, a job is submitted, and its `follow` ends."""
    kx, disk = slow
    job = kx.submit(harness.app("echo one; until [ -e go ]; do sleep 0.02; done; echo two"))
    ticks = kx.submit(harness.app("while :; do echo tick; sleep 0.02; done"))
    for each, line in ((job, "one\n"), (ticks, "tick\n")):
        each.until_logged(line)
    path = f"jobs/{job.id}/{file}"
    with reader(kx, f"jobs/{ticks.id}/follow") as others:
        disk.hang(call, f"/{kx.folder(job.id).name}/{part}")
        with disk.still():
            first, second = reader(kx, path), reader(kx, path)
            harness.wait_for(lambda: disk.hangs(part), what="a hanging disk")
            assert {others.stdout.readline() for _ in range(100)} == {"main/0 tick\n"}
            others_go_on(kx, job)
            short = kx.submit(harness.app("echo short"))
            assert kx.call(f"cat jobs/{short.id}/follow").stdout == "main/0 short\n"
            assert kx.call(f"cat jobs/{short.id}/main-0/follow jobs/{short.id}/state").stdout == "short\nSUCCEEDED\n"
            begun = time.monotonic()
            first.send_signal(signal.SIGINT)
            assert first.wait(timeout=harness.LIMIT) == -signal.SIGINT, first.stderr.read()
            took = time.monotonic() - begun
        assert took < 5, took
        disk.go_on()
        (kx.work / "go").touch()
        prefix = "main/0 " if file == "follow" else ""
        assert second.communicate(timeout=harness.LIMIT)[0] == f"{prefix}one\n{prefix}two\n"
        others.kill()


# --- the outcome of a submission ---


def copier(kx, text):
    """A process that copies TEXT into submit/x.yaml."""
    source = kx.base / "x.yaml"
    source.write_text(text)
    return harness.popen(["cp", source, kx / "submit/x.yaml"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def test_a_record_that_cannot_be_taken_away(slow):
    """The disk becomes read-only after the job's record was renamed: no message claims that nothing was launched, and
    the next start knows the outcome."""
    kx, disk = slow
    disk.hang("fsyncdir|unlink", "^/jobs(/[^/.]*)?$", errno.EROFS)
    text = harness.app(f"echo run >> {kx.work}/runs")
    assert harness.err_of(kx.write, "submit/x.yaml", text) == "EINPROGRESS"
    error = kx.read("submit/x.yaml.error")
    assert "can't be removed" in error and "next start of kxfs reports" in error
    assert "nothing was launched" not in error.lower()
    disk.go_on()
    kx.restart()
    if (kx.work / "runs").exists():
        kx.job_of("x.yaml").finish()
        assert (kx.work / "runs").read_text() == "run\n"
    else:
        assert not kx.jobs()


@pytest.mark.parametrize("call", ["create", "write"])
def test_a_file_that_the_disk_refuses(slow, call):
    """It is not launched, the close fails, and NAME.error says why; written again, it is launched."""
    kx, disk = slow
    disk.hang(call, "^/submit/x.yaml$", errno.ENOSPC)
    assert harness.err_of(kx.write, "submit/x.yaml", harness.app("true")) == "ENOSPC"
    assert "No space left on device. Nothing was launched" in kx.read("submit/x.yaml.error") and not kx.jobs()
    disk.go_on()
    kx.submit(harness.app("true"), "x.yaml").finish()
    assert kx.ls("submit") == ["x.yaml", "x.yaml.job"]


@pytest.mark.parametrize("hours", [-1, 0, 1])
def test_the_clock_of_the_disk_decides_nothing(slow, hours):
    """kxfs is killed when the program runs and its record does not have that yet, and the disk has another clock: the next
    start shows the job."""
    kx, disk = slow
    disk.hang("mkdir", "^/output/[0-9a-f]")
    cp = copier(kx, harness.app(f"echo run >> {kx.work}/runs; exec sleep 1000"))
    harness.wait_for(lambda: disk.hangs("/output/"), what="a submission on its way")
    disk.hang("write", "^/jobs/[.].*[.]new")
    harness.wait_for((kx.work / "runs").exists, what="the program")
    harness.wait_for(lambda: disk.hangs("/jobs/."), what="the record of the running job")
    kx.end(signal.SIGKILL)
    cp.communicate(timeout=harness.LIMIT)
    disk.go_on()
    for path in (kx.base / "disk").rglob("*"):
        if path.is_file():
            st = path.stat()
            os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns + hours * 3600 * 10**9))
    kx.start()
    assert kx.job_of("x.yaml").state() == "RUNNING"
    assert "x.yaml.error" not in kx.ls("submit")
    assert (kx.work / "runs").read_text() == "run\n"


def test_what_can_t_be_removed(slow):
    """A rmdir that has removed nothing fails, and the job still exists, complete."""
    kx, disk = slow
    job = kx.submit(harness.app("echo kept"))
    job.finish()
    job.cancel()
    disk.hang("rename", f"/{kx.folder(job.id).name}", errno.EROFS)
    assert harness.err_of(harness.rmdir, kx / "history" / job.id) == "EROFS"
    assert kx.history() == [job.id] and (job.old / "main-0" / "log").read_bytes() == b"kept\n"
    assert f"{job.id}: its directory can't be removed: Read-only file system" in kx.read(".kxfs", "log")
    disk.go_on()
    harness.rmdir(kx / "history" / job.id)
    assert kx.history() == []


def outputs_removed(kx):
    return [line for line in kx.read(".kxfs", "log").splitlines() if "its output" in line]


def test_a_scratch_file_is_closed_when_the_disk_has_it(slow):
    """Data is safe even if it is still being written when close returns: a crash afterwards does not lose it."""
    kx, disk = slow
    disk.hang("write", "/submit/scratch")
    fd = os.open(kx / "submit/scratch", os.O_WRONLY | os.O_CREAT)
    os.write(fd, b"text")
    harness.wait_for(lambda: disk.hangs("/submit/scratch"), what="the write")
    closing = threading.Thread(target=os.close, args=(fd,))
    closing.start()
    closing.join(1)
    waits = closing.is_alive()
    disk.go_on()
    closing.join(harness.LIMIT)
    assert waits and not closing.is_alive()
    assert (kx.state / "submit/scratch").read_bytes() == b"text"


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT])
def test_the_limit_makes_room_on_a_full_disk(slow, error):
    """The removal of output can't be noted before it happens; it is reported once, when it has happened."""
    kx, disk = slow
    kx.end()
    kx.options = "spool_limit=4M"
    kx.start()
    old = kx.submit(harness.app("head -c 3000000 /dev/zero"))
    old.finish()
    disk.hang("create", f"/jobs/.{kx.folder(old.id).name}", error)
    new = kx.submit(harness.app("head -c 3000000 /dev/zero"))
    new.finish()
    logs = kx.folder(old.id) / "logs"
    harness.wait_for(lambda: not logs.exists() and outputs_removed(kx), what="the room")
    time.sleep(3)
    assert len(outputs_removed(kx)) == 1 and f"{old.id}: its output is removed, as the oldest" in outputs_removed(kx)[0]
    assert new.log() == bytes(3000000) and old.state() == "SUCCEEDED" and old.log() == b""
    disk.go_on()
    kx.restart()
    assert old.state() == "SUCCEEDED" and old.log() == b"" and new.log() == bytes(3000000)


def test_the_limit_can_t_make_room(slow):
    """Output that can't be removed is reported once, not each second."""
    kx, disk = slow
    kx.end()
    kx.options = "spool_limit=4M"
    kx.start()
    old = kx.submit(harness.app("head -c 3000000 /dev/zero"))
    old.finish()
    disk.hang("create", f"/jobs/.{kx.folder(old.id).name}", errno.EIO)
    kx.submit(harness.app("head -c 3000000 /dev/zero")).finish()
    harness.wait_for(lambda: outputs_removed(kx), what="the message")
    time.sleep(3)
    (said,) = outputs_removed(kx)
    assert f"{old.id}: its output can't be removed, and the spool is over its limit of 4194304 bytes" in said
    assert old.log() == bytes(3000000)


def test_last_words_that_hang(slow):
    """The end of a failed job waits for its last words, but not for a disk that does not return them."""
    kx, disk = slow
    job = kx.submit(harness.app("echo {} > $TORCHELASTIC_ERROR_FILE; echo one; sleep 1; exit 3"))
    job.until_logged("one\n")
    disk.hang("open", "/tasks/.*[.]error")
    with disk.still():
        assert job.read("wait") == "FAILED\n"
        assert disk.hangs(".error") and job.read("why").endswith("Its output is in main-0/log.\n")
    disk.go_on()


def test_a_large_pipe_and_a_slow_disk(slow):
    """A program's whole output is in its log, even if its pipe has more than usual, an unrelated process has the pipe
    open, and the disk is slower than the time for which the end of a job waits for that process."""
    kx, disk = slow
    job = kx.submit(harness.app("echo $$; while [ ! -e go ]; do sleep 0.02; done; seq 1 100000"))
    job.until_logged("\n")
    pid = int(job.log())
    guard = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    with open(f"/proc/{pid}/fd/1", "wb", buffering=0) as pipe:
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 1 << 20)
        disk.hang("write", f"/{kx.folder(job.id).name}/logs/")
        (kx.work / "go").touch()
        with disk.still():
            harness.wait_for(lambda: disk.hangs("logs/"), what="a hanging disk")
            harness.wait_for(lambda: ") Z " in pathlib.Path(f"/proc/{guard}/stat").read_text(), what="the end of all processes")
            # The disk accepts one chunk at a time, until the helper has seen that end and waits two seconds for the
            # pipe's.
            while os.path.exists(f"/proc/{guard}"):
                disk.hang("write", f"/{kx.folder(job.id).name}/logs/")
                harness.wait_for(lambda: disk.hangs("logs/"), what="the next piece")
            time.sleep(2)
        disk.go_on()
        job.finish()
    assert job.log().decode() == f"{pid}\n" + "".join(f"{i}\n" for i in range(1, 100001))


def test_what_a_power_cut_leaves(slow):
    """The order of syncs, which preserves an accepted job, and how it ended, over a power cut."""
    kx, disk = slow
    disk.record()
    job = kx.submit(harness.app("exit 3"))
    job.finish("FAILED")
    kx.end()
    key, calls = kx.folder(job.id).name, iter(disk.calls())
    top, record = f"/output/{key}", f"/jobs/.{key}.new"
    for call in [("rename", record), ("fsync", f"/jobs/{key}"),
                 ("fsyncdir", "/jobs"),  # all of that before a helper is there, which makes this socket
                 ("mknod", f"{top}/tasks/0.0.sock"), ("write", f"{top}/tasks/0.0.new"), ("truncate", f"{top}/tasks/0.0.new"),
                 ("fsync", f"{top}/tasks/0.0.new"), ("rename", f"{top}/tasks/0.0.new"), ("fsyncdir", f"{top}/tasks"),
                 ("fsync", record), ("rename", record), ("fsyncdir", "/jobs")]:
        assert call in calls, call
    # The helper's files are removed after the record has their contents.
    assert any(call == ("rmdir", f"{top}/tasks") for call in calls)
