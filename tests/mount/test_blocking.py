# SPDX-License-Identifier: MIT
"""Requests don't hang for ever, neither while many readers block, nor while the disk hangs."""

import errno
import fcntl
import os
import pathlib
import select
import signal
import subprocess
import threading
import time

import harness
import pytest
from disk import started
from harness import LIMIT, Job, app, err_of, is_mounted, popen, rmdir, run, wait_for
from metrics import Metrics
from submitting import job_of, launched

# --- Blocked readers --------------------------------------------------------------------------
# Hundreds of readers block. Meanwhile other requests are answered, Ctrl-C and poll(2) work, and kxfs can be unmounted.
# Slow requests are parked and delay no other request.

N_EACH = 100


def blocked(p):
    """True if the process P, a cat, sleeps in a read of the mount."""
    try:
        has_file = os.path.lexists(f"/proc/{p.pid}/fd/3")
        state = pathlib.Path(f"/proc/{p.pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return has_file and state in "SD"


@pytest.fixture
def running(kx):
    job = kx.submit(app("echo started; exec sleep 10000"))
    job.until_logged("started")
    return job


@pytest.fixture
def readers(kx, running):
    """Hundreds of blocked readers of `wait`, `follow` and `changes`."""
    all_of_them = []
    for path in (running / "wait", running / "main-0/follow", kx / "changes"):
        for _ in range(N_EACH):
            all_of_them.append(popen(["cat", str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))
    wait_for(lambda: all(blocked(p) for p in all_of_them), what="all readers to block")
    # follow and changes first return the existing contents, and block then.
    wait_for(lambda: Metrics(kx)("parked_requests", kind="read") == len(all_of_them), what="all reads to wait")
    assert all(p.poll() is None for p in all_of_them)
    yield all_of_them
    for p in all_of_them:
        p.kill()
        p.stderr.close()
        p.wait()


def seconds(fn, *args):
    begin = time.monotonic()
    fn(*args)
    return time.monotonic() - begin


def look(kx, job):
    """List the job, and read its state and status."""
    for name in os.listdir(job.dir):
        os.lstat(job / name)
    assert job.state() == "RUNNING"
    job.read("status")
    os.listdir(kx / "jobs")


@pytest.mark.concurrent
@pytest.mark.usefixtures("readers")
def test_others_are_not_slowed(kx, running, make_kx):
    """Compare the mount with a mount that has no readers, alternately, so that a busy machine slows both."""
    quiet = make_kx()
    other = quiet.submit(app("exec sleep 10000"))
    other.until("RUNNING")

    def as_fast():
        turns = [(seconds(look, kx, running), seconds(look, quiet, other)) for _ in range(30)]
        ratio = min(a for a, _ in turns) / min(b for _, b in turns)
        print(f"{ratio:.2f} times as slow with {3 * N_EACH} blocked readers")
        return ratio < 2

    wait_for(as_fast, what="ls about as fast as elsewhere")


@pytest.mark.concurrent
@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_each_can_be_interrupted(kx, running, readers, sig):
    for p in readers:
        p.send_signal(sig)
    for p in readers:
        assert p.wait(timeout=60) == -sig
    look(kx, running)


@pytest.mark.concurrent
def test_end_of_the_job_ends_them(kx, running, readers):
    rmdir(running.dir)
    for p in readers[:2 * N_EACH]:
        assert p.wait(timeout=120) == 0
    assert all(p.poll() is None for p in readers[2 * N_EACH:])  # readers of changes continue


@pytest.mark.concurrent
@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_end_of_the_mount_ends_them(kx, readers, sig):
    assert kx.end(sig) == (-sig if sig == signal.SIGKILL else 0)
    assert is_mounted(kx.mnt) == (sig == signal.SIGKILL)  # only a crash leaves a dead mount
    for p in readers:
        p.wait(timeout=60)
    kx.start()


@pytest.mark.concurrent
@pytest.mark.parametrize("tool", ["head -n 1 {}", "dd if={} status=none", "busybox head -n 1 {}", "busybox dd if={} status=none"])
def test_tools_that_read(kx, tool):
    """These tools block when they read a file that kxfs-layout(5) lists as blocking."""
    job = kx.submit(app("while [ ! -e go ]; do sleep 0.02; done"))
    with popen(tool.format(f"{job.dir}/wait"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as p:
        wait_for(lambda: Metrics(kx)("parked_requests", kind="read") == 1, what="the tool to wait")
        (kx.work / "go").touch()
        assert p.communicate(timeout=120)[0] == b"SUCCEEDED\n"


def woken(poll):
    """True if POLL wakes a waiting reader. At a timeout the kernel polls once more and would find the data without a
    wake-up, so the return must come well before the timeout."""
    begin = time.monotonic()
    return poll.poll(LIMIT * 1000) and time.monotonic() - begin < LIMIT / 2


@pytest.mark.concurrent
@pytest.mark.parametrize("name, last", [("wait", b"SUCCEEDED\n"), ("follow", b"main/0 more\n"), ("main-0/follow", b"more\n"),
                                        ("changes", b"\tSUCCEEDED")])
def test_poll(kx, name, last):
    """poll(2) reports data that a read returns immediately, wakes a reader at new data, and reports the end."""
    job = kx.submit(app("echo begin; while [ ! -e go ]; do sleep 0.02; done; echo more"))
    job.until_logged("begin")
    job.until("RUNNING")
    before = {"wait": b"", "changes": b"\tSYNC\n"}.get(name, b"begin\n")
    fd = os.open(kx / name if name == "changes" else job / name, os.O_RDONLY)
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        got = b""
        while not got.endswith(before):
            assert poll.poll(60000) == [(fd, select.POLLIN)]
            got += os.read(fd, 65536)
        assert poll.poll(200) == []
        waker = threading.Timer(0.3, (kx.work / "go").touch)
        waker.start()
        assert woken(poll) and last in os.read(fd, 65536)
        waker.join()
        if name != "changes":  # it has no end
            wait_for(lambda: woken(poll) and os.read(fd, 4096) == b"", what="the end of the file")
    finally:
        os.close(fd)


@pytest.mark.concurrent
def test_poll_of_a_text(kx):
    """A file that never blocks is always ready for poll(2)."""
    with open(kx / ".kxfs/info", "rb") as f:
        poll = select.poll()
        poll.register(f, select.POLLIN | select.POLLOUT)
        assert poll.poll(0) == [(f.fileno(), select.POLLIN | select.POLLOUT)]


@pytest.mark.concurrent
@pytest.mark.parametrize("name", ["wait", "main-0/follow"])
def test_nonblocking(running, name):
    """With O_NONBLOCK, a read returns EAGAIN instead of blocking."""
    fd = os.open(running / name, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if name != "wait":
            wait_for(lambda: read_or_nothing(fd) == b"started\n")
        assert err_of(os.read, fd, 100) == "EAGAIN"
    finally:
        os.close(fd)


def read_or_nothing(fd):
    try:
        return os.read(fd, 4096)
    except BlockingIOError:
        return b""


# --- slow requests ---------------------------------------------------------------------------


def in_background(fn, *args):
    """Run FN(*ARGS) in a thread. `.result` is None while FN runs, then the name of its errno, or ""."""

    class Call(threading.Thread):
        result = None

        def run(self):
            self.result = err_of(fn, *args)

    call = Call()
    call.start()
    return call


@pytest.mark.concurrent
def test_parked_ctl(make_kx):
    """A restart waits until the job's processes have ended, and delays no other request."""
    kx = make_kx("grace=3")
    job = kx.submit(app('trap "" TERM; echo ready; while :; do sleep 0.1; done'))

    def others_are_answered():
        """True if kxfs answers other requests during the restart. On a busy machine the restart may be over too
        soon."""
        job.until_logged("ready")
        call = in_background(pathlib.Path(job / "ctl").write_text, "restart")
        during = 0
        while call.is_alive():
            job.read("status")
            os.listdir(kx / "jobs")
            during += 1
        assert call.result == ""
        return during > 10

    wait_for(others_are_answered, what="others to be answered during a restart")


# --- many at once ----------------------------------------------------------------------------


@pytest.mark.concurrent
def test_everything_at_once(kx):
    """Threads submit, read, list, follow and remove jobs at the same time. There are no errors, and no output is
    lost."""
    wrong = []
    stop = threading.Event()

    def loop(fn):
        def body():
            try:
                while not stop.is_set():
                    fn()
            except Exception as e:  # pylint: disable=broad-except
                wrong.append(repr(e))
                stop.set()
        return threading.Thread(target=body)

    def walk():
        for where, _, files in os.walk(kx.mnt):
            for name in files:
                path = os.path.join(where, name)
                if not os.path.islink(path):
                    try:
                        pathlib.Path(path).read_bytes()
                    except FileNotFoundError:
                        pass  # the entry was there when the directory was read

    def removals():
        for job in kx.jobs():
            try:
                if job.state() == "SUCCEEDED":
                    os.rmdir(job.dir)
            except (FileNotFoundError, TimeoutError):  # the job is already removed, or rmdir has timed out (see rmdir())
                pass
        time.sleep(0.05)

    readers = [loop(walk), loop(walk), loop(lambda: list(os.scandir(kx / "jobs"))), loop(removals)]
    for thread in readers:
        thread.start()
    jobs = []

    def submitter(n):
        for i in range(15):
            kx.write(f"submit/s{n}-{i}.yaml", app(f"echo {n}-{i}"))
            # The job is in jobs/, or already in history/.
            jobs.append((Job(kx, job_of(kx, f"s{n}-{i}.yaml")), f"{n}-{i}\n"))

    submitters = [threading.Thread(target=submitter, args=(n,)) for n in range(4)]
    for thread in submitters:
        thread.start()
    for thread in submitters:
        thread.join()

    def log_of(job):
        for path in (job / "main-0/log", job.old / "main-0/log"):
            try:
                return path.read_text()
            except FileNotFoundError:
                pass
        return None

    try:
        assert len(jobs) == 60
        for job, text in jobs:
            wait_for(lambda job=job, text=text: wrong or log_of(job) == text, what=f"the output of {job}")
    finally:
        stop.set()
        for thread in readers:
            thread.join()
    assert not wrong


@pytest.mark.concurrent
def test_head(kx, running):
    """head seeks back to the end of the lines that it has shown. That must not fail."""
    for path in (running / "follow", running / "main-0/follow", kx / "changes"):
        p = run(["head", "-n", "1", str(path)])
        assert p.stderr == "" and p.stdout.count("\n") == 1
    # The next reader gets the rest.
    out = run(f"{{ head -n 1 >/dev/null; head -n 1; }} < {kx}/changes".replace(f"{kx}", str(kx.mnt))).stdout
    assert out.split("\t")[2].strip() == "SYNC"


# --- A disk that hangs ------------------------------------------------------------------------
# The state directory is on a disk that hangs. A request that needs the hanging file waits and can be interrupted. All
# other requests continue.


@pytest.fixture
def slow(make_kx):
    """(a mount, its disk)"""
    with started(make_kx(start=False)) as both:
        yield both


def reader(kx, path):
    return harness.popen(["cat", kx / path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def others_go_on(kx, job):
    assert job.id in kx.call("ls jobs").stdout.split()
    assert job.read("state") == "RUNNING\n"
    assert kx.call("ls -l submit .kxfs jobs").returncode == 0


def test_more_hang_than_may(slow):
    """If so many readers hang that no thread is left, further readers are refused, and all other requests continue. An
    interrupt ends a reader immediately. Without it, the read times out."""
    kx, disk = slow
    job = kx.submit(harness.app("echo one; exec sleep 1000"))
    job.until_logged("one\n")
    disk.hang("getattr", f"/{kx.folder(job.id).name}/logs/")
    with disk.still():
        readers = [reader(kx, f"jobs/{job.id}/main-0/log") for _ in range(50)]
        harness.wait_for(lambda: sum(proc.poll() is not None for proc in readers) >= 10, what="some that are refused")
        others_go_on(kx, job)
        interrupted = next(proc for proc in readers if proc.poll() is None)
        readers.remove(interrupted)
        begun = time.monotonic()
        interrupted.send_signal(signal.SIGINT)
        assert interrupted.wait(timeout=harness.LIMIT) == -signal.SIGINT and time.monotonic() - begun < 5
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
    """A hanging `follow` can be interrupted. Another one gets the whole output, once, when the disk recovers.
    Meanwhile the `follow` of another job continues, a new job is submitted, and its `follow` ends."""
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
    """Return a process that copies TEXT into submit/x.yaml."""
    source = kx.base / "x.yaml"
    source.write_text(text)
    return harness.popen(["cp", source, kx / "submit/x.yaml"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def test_a_record_that_cannot_be_taken_away(slow):
    """The disk becomes read-only after kxfs has renamed the job's record. No message claims that nothing was
    launched, and the next start knows the result."""
    kx, disk = slow
    disk.hang("fsyncdir|unlink", "^/jobs(/[^/.]*)?$", errno.EROFS)
    text = harness.app(f"echo run >> {kx.work}/runs")
    assert harness.err_of(kx.write, "submit/x.yaml", text) == "EINPROGRESS"
    error = kx.read("submit/x.yaml.error")
    assert "could not remove the incomplete record" in error and "After the next start of kxfs, jobs/ shows" in error
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
    """The disk refuses to store the file. It is not launched, close fails, and NAME.error has the reason. When it is
    written again, it is launched."""
    kx, disk = slow
    disk.hang(call, "^/submit/x.yaml$", errno.ENOSPC)
    assert harness.err_of(kx.write, "submit/x.yaml", harness.app("true")) == "ENOSPC"
    assert "No space left on device. Nothing was launched" in kx.read("submit/x.yaml.error") and not kx.jobs()
    disk.go_on()
    kx.submit(harness.app("true"), "x.yaml").finish()
    assert kx.ls("submit") == ["x.yaml", "x.yaml.job"]


@pytest.mark.parametrize("hours", [-1, 0, 1])
def test_the_clock_of_the_disk_decides_nothing(slow, hours):
    """kxfs is killed when a program runs, but before the job's record shows that. The clock of the
    disk may differ from that of the machine. The next start shows the job as running."""
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
    harness.wait_for(lambda: kx.job_of("x.yaml").state() == "RUNNING", what="the state of the program's helper")
    assert "x.yaml.error" not in kx.ls("submit")
    assert (kx.work / "runs").read_text() == "run\n"


def test_what_can_t_be_removed(slow):
    """If rmdir fails because kxfs could not remove anything, the whole job still exists."""
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
    return [line for line in kx.read(".kxfs", "log").splitlines() if "the job's output" in line]


def test_a_scratch_file_is_closed_when_the_disk_has_it(slow):
    """close of a scratch file returns only when its data is on disk, so a later crash does not lose the data."""
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


def test_a_file_that_was_renamed_late(slow):
    """A rename times out and is carried out later. Until then the kernel knows the file by its old name. A process
    that writes to the old name afterwards writes a new file, which is launched."""
    kx, disk = slow
    kx.submit(harness.app("true"), "x.yaml").finish()
    first = job_of(kx, "x.yaml")
    disk.hang("rename", "/submit/x.yaml")
    assert harness.err_of(os.rename, kx / "submit/x.yaml", kx / "submit/x.yaml~") == "ETIMEDOUT"
    os.stat(kx / "submit/x.yaml")
    disk.go_on()
    harness.wait_for(lambda: "x.yaml~" in kx.ls("submit"), what="the rename")
    kx.write("submit/x.yaml", harness.app("true"))
    assert job_of(kx, "x.yaml") != first
    # The renamed file can be written immediately.
    os.rename(kx / "submit/x.yaml", kx / "submit/x.yaml~")
    kx.write("submit/x.yaml~", "new")
    assert kx.read("submit/x.yaml~") == "new"


def test_a_writer_closes_during_the_rename(slow):
    """A process renames a scratch file to a submitting name. While the disk carries out the rename,
    the writer closes the file under its old name. The rename launches the file."""
    kx, disk = slow
    fd = os.open(kx / "submit/x.tmp", os.O_WRONLY | os.O_CREAT)
    os.write(fd, harness.app("true").encode())
    os.fsync(fd)
    disk.hang("rename", "/submit/x.tmp")
    renaming = in_background(os.rename, kx / "submit/x.tmp", kx / "submit/x.yaml")
    harness.wait_for(lambda: disk.hangs("/submit/x.tmp"), what="the rename")
    closing = in_background(os.close, fd)
    closing.join(1)
    disk.go_on()
    for call in (closing, renaming):
        call.join(harness.LIMIT)
        assert call.result == ""
    kx.job_of("x.yaml").finish()
    assert kx.ls("submit") == ["x.yaml", "x.yaml.job"]
    assert len(launched(kx)) == 1


def over_the_limit(kx, disk, error):
    """Return two jobs whose output together is larger than spool_limit. Each change of the record of the first one fails
    with ERROR before the second one prints."""
    kx.restart(options="spool_limit=4M")
    old = kx.submit(harness.app("head -c 3000000 /dev/zero"))
    old.finish()
    disk.hang("create", f"/jobs/.{kx.folder(old.id).name}", error)
    new = kx.submit(harness.app("head -c 3000000 /dev/zero"))
    new.finish()
    return old, new


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT])
def test_the_limit_makes_room_on_a_full_disk(slow, error):
    """The disk is full, so kxfs can't record that it is about to remove output. It reports the removal once,
    afterwards."""
    kx, disk = slow
    old, new = over_the_limit(kx, disk, error)
    logs = kx.folder(old.id) / "logs"
    harness.wait_for(lambda: not logs.exists() and outputs_removed(kx), what="the room")
    time.sleep(3)
    assert len(outputs_removed(kx)) == 1 and f"{old.id}: kxfs removed the job's output, which was the oldest" in outputs_removed(kx)[0]
    assert new.log() == bytes(3000000) and old.state() == "SUCCEEDED" and old.log() == b""
    disk.go_on()
    kx.restart()
    assert old.state() == "SUCCEEDED" and old.log() == b"" and new.log() == bytes(3000000)


def test_the_limit_can_t_make_room(slow):
    """If output can't be removed, kxfs reports that once, not every second."""
    kx, disk = slow
    old, _ = over_the_limit(kx, disk, errno.EIO)
    harness.wait_for(lambda: outputs_removed(kx), what="the message")
    time.sleep(3)
    (said,) = outputs_removed(kx)
    assert f"{old.id}: kxfs can't remove the job's output, although the spool is over its limit of 4194304 bytes" in said
    assert old.log() == bytes(3000000)


def test_last_words_that_hang(slow):
    """The end of a failed job waits for its error file, but not for ever if the disk hangs."""
    kx, disk = slow
    job = kx.submit(harness.app("echo {} > $TORCHELASTIC_ERROR_FILE; echo one; sleep 1; exit 3"))
    job.until_logged("one\n")
    disk.hang("open", "/tasks/.*[.]error")
    with disk.still():
        assert job.read("wait") == "FAILED\n"
        assert disk.hangs(".error") and job.read("why").endswith("Its output is in main-0/log.\n")
    disk.go_on()


def test_a_large_pipe_and_a_slow_disk(slow):
    """The whole output of a program gets into its log even under bad conditions: its pipe is larger than usual, an
    unrelated process has the pipe open, and the disk is slower than the time for which kxfs waits for that process."""
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
            # The disk accepts one chunk at a time until the guard has exited and the helper waits two seconds for the
            # end of the pipe.
            while os.path.exists(f"/proc/{guard}"):
                disk.hang("write", f"/{kx.folder(job.id).name}/logs/")
                harness.wait_for(lambda: disk.hangs("logs/"), what="the next piece")
            time.sleep(2)
        disk.go_on()
        job.finish()
    assert job.log().decode() == f"{pid}\n" + "".join(f"{i}\n" for i in range(1, 100001))


def test_what_a_power_cut_leaves(slow):
    """The order of syncs ensures that a power cut loses neither an accepted job nor its result."""
    kx, disk = slow
    disk.record()
    job = kx.submit(harness.app("exit 3"))
    job.finish("FAILED")
    kx.end()
    key, calls = kx.folder(job.id).name, iter(disk.calls())
    top, record = f"/output/{key}", f"/jobs/.{key}.new"
    for call in [("rename", record), ("fsync", f"/jobs/{key}"),
                 ("fsyncdir", "/jobs"),  # all of these come before a helper exists; the helper creates this socket
                 ("mknod", f"{top}/tasks/0.0.sock"), ("write", f"{top}/tasks/0.0.new"), ("truncate", f"{top}/tasks/0.0.new"),
                 ("fsync", f"{top}/tasks/0.0.new"), ("rename", f"{top}/tasks/0.0.new"), ("fsyncdir", f"{top}/tasks"),
                 ("fsync", record), ("rename", record), ("fsyncdir", "/jobs")]:
        assert call in calls, call
    # The helper's files are removed after the record has their contents.
    assert any(call == ("rmdir", f"{top}/tasks") for call in calls)
