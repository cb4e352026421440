# SPDX-License-Identifier: MIT
"""Nothing ever hangs: hundreds of blocked readers, Ctrl-C, poll(2), unmounting, and slow requests that are parked while
others are answered."""

import os
import pathlib
import select
import signal
import subprocess
import threading
import time

import pytest
from harness import LIMIT, Job, app, err_of, is_mounted, popen, rmdir, run, wait_for
from metrics import Metrics
from submitting import job_of

pytestmark = pytest.mark.concurrent

N_EACH = 100


def blocked(p):
    """True if this cat sleeps in a read of the mount."""
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
    """Hundreds of blocked readers: of wait, of follow and of changes."""
    all_of_them = []
    for path in (running / "wait", running / "main-0/follow", kx / "changes"):
        for _ in range(N_EACH):
            all_of_them.append(popen(["cat", str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))
    wait_for(lambda: all(blocked(p) for p in all_of_them), what="all readers to block")
    # follow and changes first return what exists, and then block.
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


@pytest.mark.usefixtures("readers")
def test_others_are_not_slowed(kx, running, make_kx):
    """Measured alternately with a mount without readers, so that a busy machine slows both."""
    quiet = make_kx()
    other = quiet.submit(app("exec sleep 10000"))
    other.until("RUNNING")

    def as_fast():
        turns = [(seconds(look, kx, running), seconds(look, quiet, other)) for _ in range(30)]
        ratio = min(a for a, _ in turns) / min(b for _, b in turns)
        print(f"{ratio:.2f} times as slow with {3 * N_EACH} blocked readers")
        return ratio < 2

    wait_for(as_fast, what="ls about as fast as elsewhere")


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_each_can_be_interrupted(kx, running, readers, sig):
    for p in readers:
        p.send_signal(sig)
    for p in readers:
        assert p.wait(timeout=60) == -sig
    look(kx, running)


def test_end_of_the_job_ends_them(kx, running, readers):
    rmdir(running.dir)
    for p in readers[:2 * N_EACH]:
        assert p.wait(timeout=120) == 0
    assert all(p.poll() is None for p in readers[2 * N_EACH:])  # changes go on


def test_unmounting_ends_them(kx, readers):
    assert kx.end() == 0
    assert not is_mounted(kx.mnt)
    for p in readers:
        p.wait(timeout=60)
    kx.start()


def test_a_crash_ends_them(kx, readers):
    kx.end(signal.SIGKILL)
    for p in readers:
        p.wait(timeout=60)
    kx.start()


def test_wait_in_a_script(kx):
    job = kx.submit(app("while [ ! -e go ]; do sleep 0.02; done"))
    with popen(f"grep -qx SUCCEEDED {job.dir}/wait && echo yes", stdout=subprocess.PIPE) as p:
        time.sleep(0.2)
        assert p.poll() is None
        (kx.work / "go").touch()
        assert p.communicate(timeout=120)[0] == b"yes\n"


@pytest.mark.parametrize("tool", ["head -n 1 {}", "dd if={} status=none", "busybox head -n 1 {}", "busybox dd if={} status=none"])
def test_tools_that_read(kx, tool):
    """The files that kxfs-layout(5) lists as waiting do; it names them for busybox's cat, which does not read."""
    job = kx.submit(app("while [ ! -e go ]; do sleep 0.02; done"))
    with popen(tool.format(f"{job.dir}/wait"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as p:
        wait_for(lambda: Metrics(kx)("parked_requests", kind="read") == 1, what="the tool to wait")
        (kx.work / "go").touch()
        assert p.communicate(timeout=120)[0] == b"SUCCEEDED\n"


def test_timeout_of_a_shell(kx, running):
    """`timeout 1 cat wait` waits for a limited time."""
    assert run(["timeout", "0.5", "cat", str(running / "wait")], check=False).returncode == 124


def woken(poll):
    """True if a reader that waits in poll(2) is woken. At its timeout the kernel polls once more, which would find data
    without a wake-up."""
    begin = time.monotonic()
    return poll.poll(LIMIT * 1000) and time.monotonic() - begin < LIMIT / 2


@pytest.mark.parametrize("name", ["wait", "follow", "main-0/follow"])
def test_poll(kx, name):
    job = kx.submit(app("echo begin; while [ ! -e go ]; do sleep 0.02; done; echo more"))
    job.until_logged("begin")
    fd = os.open(job / name, os.O_RDONLY)
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        if name != "wait":
            assert poll.poll(60000) == [(fd, select.POLLIN)]
            got = b""
            while b"begin\n" not in got:
                got += os.read(fd, 4096)
        assert poll.poll(200) == []
        waker = threading.Timer(0.3, (kx.work / "go").touch)
        waker.start()
        assert woken(poll) and os.read(fd, 4096) in (b"SUCCEEDED\n", b"more\n", b"main/0 more\n")
        waker.join()
        # At the end: readable, and no more data.
        wait_for(lambda: woken(poll) and os.read(fd, 4096) == b"")
    finally:
        os.close(fd)


def test_poll_of_a_text(kx):
    """What never blocks is always ready."""
    with open(kx / ".kxfs/info", "rb") as f:
        poll = select.poll()
        poll.register(f, select.POLLIN | select.POLLOUT)
        assert poll.poll(0) == [(f.fileno(), select.POLLIN | select.POLLOUT)]


def test_poll_of_changes(kx):
    fd = os.open(kx / "changes", os.O_RDONLY)
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        assert poll.poll(60000)
        assert b"SYNC" in os.read(fd, 65536)
        assert poll.poll(200) == []
        job = kx.submit(app("while [ ! -e go ]; do sleep 0.02; done"))
        seen = b""
        while b"RUNNING" not in seen:
            seen += os.read(fd, 65536)
        assert job.id.encode() in seen and poll.poll(200) == []
        waker = threading.Timer(0.3, (kx.work / "go").touch)
        waker.start()
        assert woken(poll) and b"SUCCEEDED" in os.read(fd, 65536)
        waker.join()
        job.finish()
    finally:
        os.close(fd)


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

# In the daemon, fsync(2) of the state directory's files waits while this file exists.
STALL = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static int stall(const char *name, int fd)
{
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);

	while (access(getenv("KXFS_TEST_STALL"), F_OK) == 0)
		usleep(10000);
	return real(fd);
}

int fsync(int fd)
{
	return stall("fsync", fd);
}

int fdatasync(int fd)
{
	return stall("fdatasync", fd);
}
"""


@pytest.fixture
def slow_disk(make_kx, top, sanitized):
    """A mount whose state directory is on a disk that can be stalled."""
    if sanitized == "thread":
        options = {}
    else:
        options = {"ASAN_OPTIONS": "verify_asan_link_order=0"}
    source, library = pathlib.Path(top, "stall.c"), pathlib.Path(top, "stall.so")
    source.write_text(STALL)
    run(["gcc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"])
    stall = pathlib.Path(top, "stall")
    stall.unlink(missing_ok=True)
    kx = make_kx(env={"LD_PRELOAD": str(library), "KXFS_TEST_STALL": str(stall), **options})
    kx.stall = stall
    yield kx
    stall.unlink(missing_ok=True)


def in_background(fn, *args):
    """Run FN; .result is the errno's name or "", and None while FN runs."""

    class Call(threading.Thread):
        result = None

        def run(self):
            self.result = err_of(fn, *args)

    call = Call()
    call.start()
    return call


def test_parked_requests_do_not_stall_others(slow_disk):
    """While close, rename and rmdir wait for a stalled disk, all other requests are answered."""
    kx = slow_disk
    done = kx.submit(app("echo hello"))
    done.finish()
    going = [kx.submit(app("exec sleep 10000")) for _ in range(3)]
    for n, job in enumerate(going):
        job.until("RUNNING")
        kx.write(f"submit/scratch{n}", app("true"))
    os.listdir(kx / "jobs")
    kx.stall.touch()

    close = in_background(kx.write, "submit/slow.yaml", app("true", name="slow"))
    wait_for(lambda: Metrics(kx)("parked_requests", kind="close") == 1, what="the close to wait")
    answered = 0
    while close.is_alive() and answered < 20:
        assert done.read("log") == "main/0 hello\n"
        assert done.state() == "SUCCEEDED" and going[0].state() == "RUNNING"
        assert set(kx.ls("jobs")) >= {done.id, going[0].id}
        assert "scratch0" in kx.ls("submit")
        os.statvfs(kx.mnt)
        assert kx.read(".kxfs", "info")
        answered += 1
    assert answered == 20, f"the close had ended with {close.result!r}"

    def others_are_answered(n):
        """Their deadline is 3 s, since they block their directories; their result appears later."""
        calls = [in_background(os.rename, kx / f"submit/scratch{n}", kx / f"submit/renamed{n}.yaml"),
                 in_background(os.rmdir, going[n].dir)]
        during = 0
        while any(call.is_alive() for call in calls):
            assert done.state() == "SUCCEEDED"
            during += 1
        assert all(call.result in ("", "ETIMEDOUT") for call in calls)
        return during > 10

    tried = 1
    while not others_are_answered(tried - 1):  # the machine may do other things for 3 s
        tried += 1
        assert tried <= len(going), "few requests were answered while others waited"
    kx.stall.unlink()
    close.join()
    assert close.result == ""
    assert kx.job_of("slow.yaml").finish() == "SUCCEEDED"
    for n, job in enumerate(going[:tried]):
        wait_for(lambda ident=job.id: ident not in kx.ls("jobs"), what="the cancel to be carried out")
        wait_for(lambda path=kx / f"submit/renamed{n}.yaml.job": os.path.lexists(path),
                 what="the verdict on what was renamed")
        assert kx.job_of(f"renamed{n}.yaml").finish() == "SUCCEEDED"


def test_close_has_a_deadline(slow_disk):
    """After 30 s close() fails with ETIMEDOUT; kxfs still finds out whether there is a job."""
    kx = slow_disk
    kx.stall.touch()
    assert err_of(kx.write, "submit/late.yaml", app("true")) == "ETIMEDOUT"
    kx.stall.unlink()
    wait_for(lambda: os.path.lexists(kx / "submit/late.yaml.job"), what="the verdict")
    assert kx.job_of("late.yaml").finish() == "SUCCEEDED"
    assert len(kx.ls("jobs")) == 1


def test_ctrl_c_on_a_parked_close(slow_disk):
    """Ctrl-C ends cp's waiting, not the request."""
    kx = slow_disk
    (kx.base / "x.yaml").write_text(app("true"))
    kx.stall.touch()
    with popen(["cp", f"{kx.base}/x.yaml", f"{kx.mnt}/submit/"], stderr=subprocess.DEVNULL) as p:
        wait_for(lambda: Metrics(kx)("parked_requests", kind="close") == 1, what="cp to wait in close()")
        assert p.poll() is None
        p.send_signal(signal.SIGINT)
        assert p.wait(timeout=20) in (-signal.SIGINT, 1)
    kx.stall.unlink()
    wait_for(lambda: os.path.lexists(kx / "submit/x.yaml.job") or os.path.lexists(kx / "submit/x.yaml.error"),
             what="the verdict")
    wait_for(lambda: len(kx.ls("jobs")) == 1)


def test_parked_ctl(make_kx):
    """A restart waits for processes to end; other actions don't."""
    kx = make_kx("grace=3")
    job = kx.submit(app('trap "" TERM; echo ready; while :; do sleep 0.1; done'))

    def others_are_answered():
        """The grace may pass while the machine is busy."""
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


def test_everything_at_once(kx):
    """Threads that submit, read, list, follow and remove at the same time: no errors, no loss."""
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
                        pass  # it was there when the directory was read

    def removals():
        for job in kx.jobs():
            try:
                if job.state() == "SUCCEEDED":
                    os.rmdir(job.dir)
            except (FileNotFoundError, TimeoutError):  # it is removed already, or not at once, see rmdir()
                pass
        time.sleep(0.05)

    readers = [loop(walk), loop(walk), loop(lambda: list(os.scandir(kx / "jobs"))), loop(removals)]
    for thread in readers:
        thread.start()
    jobs = []

    def submitter(n):
        for i in range(15):
            kx.write(f"submit/s{n}-{i}.yaml", app(f"echo {n}-{i}"))
            # in jobs/, or in history/ by now
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


def test_head(kx, running):
    """head seeks back to the end of what it has shown; nothing breaks."""
    for path in (running / "follow", running / "main-0/follow", kx / "changes"):
        p = run(["head", "-n", "1", str(path)])
        assert p.stderr == "" and p.stdout.count("\n") == 1
    # The next reader gets the rest.
    out = run(f"{{ head -n 1 >/dev/null; head -n 1; }} < {kx}/changes".replace(f"{kx}", str(kx.mnt))).stdout
    assert out.split("\t")[2].strip() == "SYNC"
