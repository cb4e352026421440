# SPDX-License-Identifier: MIT
"""The daemon starts, ends and restarts; the units of systemd."""

import contextlib
import ctypes
import os
import pathlib
import pwd
import re
import resource
import shlex
import signal
import socket
import subprocess
import threading

import pytest
from disk import started as on_slow_disk
from harness import LIMIT, ROOT, USER, alive, app, err_of, is_mounted, kill, mounts, popen, run, tmpfs, wait_for
from metrics import Metrics
from starting import attempt, background, lock_file, refused, started
from test_docs import LATE

# --- The start --------------------------------------------------------------------------------
# How the daemon starts, in the foreground and in the background, and with bad input. How it ends is tested below.

# --- fore- and background ----------------------------------------------------------------------


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda s: s.name)
def test_foreground(kx, sig):
    assert f"kxfs: local: is mounted on {kx.mnt}\n" in kx.said()
    pids = os.readlink("/proc/self/ns/pid")
    assert lock_file(kx.state) == {"pid": str(kx.pid), "phase": "mounted", "where": f"{os.uname().nodename}/{pids}",
                                   "mountpoint": str(kx.mnt)}
    assert kx.end(sig) == 0
    assert not is_mounted(kx.mnt) and os.listdir(kx.mnt) == []


def test_background(make_kx):
    """The command prints nothing, and the mount is ready when it returns. The daemon ignores SIGHUP."""
    kx = make_kx(start=False)
    p = attempt(kx)
    assert (p.returncode, p.stdout, LATE.sub("", p.stderr)) == (0, "", "")
    pid = int(lock_file(kx.state)["pid"])
    assert {"jobs", "submit", "dryrun", "history", "live", "list", "list.jsonl", ".kxfs"} == set(os.listdir(kx.mnt))
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    assert os.getsid(pid) == pid
    for fd in range(3):
        assert os.readlink(f"/proc/{pid}/fd/{fd}") == "/dev/null"
    kill(pid, signal.SIGHUP)
    kx.submit(app("true")).finish()
    run(["umount", str(kx.mnt)])
    wait_for(lambda: not alive(pid), what="the end of the daemon")


def test_keeps_no_descriptor_of_the_caller(make_kx):
    """kxfs keeps no inherited descriptor open: when its caller closes a pipe, the reader of the pipe gets end of
    file."""
    kx = make_kx(start=False)
    ours, theirs = os.pipe()
    os.set_inheritable(theirs, True)
    try:
        with background(kx, close_fds=False):
            os.close(theirs)
            assert os.read(ours, 1) == b""
    finally:
        os.close(ours)


def test_closed_standard_descriptors(make_kx):
    kx = make_kx(start=False)
    line = " ".join(kx.command()) + " <&- >&- 2>&-"
    with background(kx, command=line):
        job = kx.submit(app("echo out; echo err >&2"))
        job.finish()
        assert job.log() == b"out\nerr\n"


def test_jobs_inherit(make_kx):
    """Jobs inherit umask and limits of the user who mounts. SIGPIPE ends their processes as usual."""
    kx = make_kx(start=False)
    nice = min(os.nice(0) + 3, 19)

    def prepare():
        os.umask(0o037)
        os.nice(3)
        resource.setrlimit(resource.RLIMIT_NOFILE, (500, 600))

    with background(kx, preexec_fn=prepare, env={**kx.env(), "NOTIFY_SOCKET": "/nonexistent"}):
        job = kx.submit(app("umask; nice; ulimit -Sn; ulimit -Hn; echo ${NOTIFY_SOCKET-none}; "
                            "grep SigIgn /proc/self/status"))
        job.finish()
        lines = job.log().decode().split()
        assert lines[:5] == ["0037", str(nice), "500", "600", "none"]
        assert int(lines[6], 16) & 1 << (signal.SIGPIPE - 1) == 0


def test_notify(make_kx):
    """kxfs notifies a service manager. It requests more time to stop than the grace period of jobs."""
    kx = make_kx("grace=50s", start=False)
    for address in (str(kx.base / "notify"), f"\0kxfs-test-{os.getpid()}-{kx.base.name}"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.bind(address)
            s.settimeout(60)
            kx.more_env = {"NOTIFY_SOCKET": address.replace("\0", "@")}
            kx.start()
            got = ""
            while "READY=1" not in got:
                got = s.recv(4096).decode()
            assert f"STATUS=local: is mounted on {kx.mnt}" in got
            assert is_mounted(kx.mnt)
            assert kx.end() == 0
            while "STOPPING=1" not in got:
                got = s.recv(4096).decode()
            assert "EXTEND_TIMEOUT_USEC=70000000" in got.splitlines()


# --- bad input -----------------------------------------------------------------------------------


def test_command_lines(make_kx):
    """Wrong command lines fail. tests/unit/fs/cli/test-options.c has the exact texts of all messages."""
    kx = make_kx(start=False)
    for line, says in (
            ("-o stat=/x local: /m", "-o stat: unknown option; did you mean state?"),
            ("slurm:x /m", "unknown backend 'slurm'; backends are volcano:, mcad:, appwrapper:, jobset:, job:, "),
            ("", "the mount point is missing"),
            ("local:", "the mount point is missing"),
            ("-o grace=soon local: /m", "not a time")):
        assert says in refused(kx, command=f"{kx.binary} {line}")


def test_help_and_version(binary):
    version = re.search(r"^    version: '(.*)',$", (ROOT / "meson.build").read_text(), re.M)[1]
    libraries = r"libfuse 3\.\S+, libuv 1\.\S+, libcurl (\d+)\.(\d+)\S+, OpenSSL/\S+, json-c 0\.\S+, libyaml 0\.\S+"
    said = re.fullmatch(rf"kxfs {re.escape(version)}\nlibraries: {libraries}\nfeatures: (?:\S+ )*http2 .*\n"
                        r"backends: (?:\S+ )+local\n(missed, .* libcurl 7\.87: .*\n)?", run([binary, "--version"]).stdout)
    assert said and bool(said[3]) == ((int(said[1]), int(said[2])) < (7, 87))
    assert run([binary, "--help"]).stdout == run([binary, "-h"]).stdout
    assert run(f"{binary} --help > /dev/full", check=False).returncode == 1


def missing(kx):
    kx.mnt.rmdir()
    return f"{kx.mnt}: no such directory: mkdir -p {kx.mnt}\n"


def not_a_directory(kx):
    kx.mnt.rmdir()
    kx.mnt.touch()
    return f"{kx.mnt}: not a directory: give one to mount on\n"


def not_empty(kx):
    (kx.mnt / "thesis.tex").touch()
    return f"{kx.mnt}: not empty: its files (thesis.tex ...) would be hidden; give an empty directory\n"


def state_of_something_else(kx):
    (kx.state / "thesis.tex").touch()
    return f"{kx.state}: not empty, and not a state directory of kxfs"


def in_the_mount_point(kx):
    kx.work = kx.mnt
    return f"{kx.mnt}: jobs run in the working directory, and this directory is inside the mount point: cd to another"


@pytest.mark.parametrize("spoil", [missing, not_a_directory, not_empty, state_of_something_else, in_the_mount_point],
                         ids=lambda f: f.__name__)
@pytest.mark.parametrize("where", ["background", "foreground"])
def test_refused(make_kx, spoil, where):
    """tests/unit/fs/mount/test-state.c has the other messages about state directories."""
    kx = make_kx(start=False)
    says = spoil(kx)
    said = refused(kx, *(["-f"] if where == "foreground" else []))
    assert said.startswith(f"kxfs: {says}"), said
    assert said.count("\n") == 1


def test_full_state_directory(make_kx):
    kx = make_kx(start=False)
    with tmpfs(kx.state, "16k"):
        assert refused(kx) == (f"kxfs: {kx.state}: no space for the state (No space left on device): free some space, or "
                               "give another directory with -o state=DIR\n")


# Run a command in a mount namespace with another /dev.
DEV = """set -e
mkdir {dir}; mknod -m 666 {dir}/null c 1 3
{make}
mount --bind {dir} /dev
exec {prefix} "$@"
"""


def with_dev(kx, make, prefix="", command=None):
    """Return the command line that starts KX with a /dev that has only the devices that MAKE creates."""
    script = DEV.format(dir=kx.base / "dev", make=make.format(dir=kx.base / "dev"), prefix=prefix)
    return ["unshare", "-m", "sh", "-c", script, "sh", *(command or kx.command())]


AS_USER = f"setpriv --reuid={USER} --regid=nogroup --clear-groups"


@pytest.mark.parametrize("user, make, prefix, says", [
    (None, "", "", "kxfs: /dev/fuse: No such file or directory: FUSE is not available: as root, run modprobe fuse; "
                   "a container needs --device /dev/fuse --cap-add SYS_ADMIN\n"),
    # The kernel has no driver for this device.
    (None, "mknod -m 666 {dir}/fuse c 10 199", "", "FUSE is not available: as root, run modprobe fuse"),
    (USER, "mknod -m 600 {dir}/fuse c 10 229", AS_USER,
     "kxfs: /dev/fuse: no permission to use FUSE: as root, run chmod 666 /dev/fuse (or add yourself to its group)\n"),
    (USER, "mknod -m 666 {dir}/fuse c 10 229", f"{AS_USER} env PATH=/nonexistent", "install the package fuse3"),
], ids=["no device", "no driver", "no permission", "no fusermount3"])
def test_no_fuse(make_kx, user, make, prefix, says):
    kx = make_kx(start=False, user=user)
    assert says in refused(kx, command=with_dev(kx, make, prefix), user=None)


def test_no_permission_to_mount(make_kx):
    """Without the capability, even root can't mount, as in a container."""
    kx = make_kx(start=False)
    command = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", "--no-new-privs", *kx.command()]
    assert f"kxfs: can't mount on {kx.mnt}" in refused(kx, command=command)


def test_mount_point_of_another_user(make_kx):
    kx = make_kx(start=False, user=USER)
    os.chown(kx.mnt, 0, 0)
    kx.mnt.chmod(0o755)
    command = with_dev(kx, "mknod -m 666 {dir}/fuse c 10 229", AS_USER)
    assert refused(kx, command=command, user=None) == (
        f"kxfs: {kx.mnt}: no permission to mount here: give a directory of your own\n")


@pytest.mark.parametrize("mode", [0o500, 0o000], ids=oct)
def test_state_that_cannot_be_written(make_kx, mode):
    kx = make_kx(start=False, user=USER)
    kx.state.chmod(0o700)
    parent = kx.base / "parent"
    parent.mkdir()
    os.chown(parent, pwd.getpwnam(USER).pw_uid, -1)
    parent.chmod(mode)
    kx.state = parent / "state"
    command = with_dev(kx, "mknod -m 666 {dir}/fuse c 10 229", AS_USER)
    assert refused(kx, command=command, user=None) == (
        f"kxfs: {kx.state}: kxfs can't store its state here: Permission denied: give another directory with -o "
        "state=DIR\n")


# --- The end ----------------------------------------------------------------------------------
# How the daemon ends and restarts: signals, unmounting by others, crashes, and other mounts at the same path.

# A script that ignores SIGTERM, so that ending it takes the whole grace period. It prints a line
# when it has begun to ignore SIGTERM.
STUBBORN = "trap '' TERM; echo $$; while :; do sleep 1000 & wait; done"


# --- ends ------------------------------------------------------------------------------------------


@pytest.mark.concurrent
def test_signal_while_busy(kx):
    """Open files and working directories in the mount do not prevent the end of kxfs."""
    job, pid = started(kx)
    with open(job / "main-0/log", "rb") as f:
        inside = popen(["sleep", "1000"], cwd=kx.mnt)
        try:
            assert kx.end() == 0
            assert not is_mounted(kx.mnt) and not alive(pid)
            assert err_of(f.read) in ("ENOTCONN", "ECONNABORTED")
        finally:
            inside.kill()
            inside.wait(timeout=60)


@pytest.mark.concurrent
def test_signals_in_a_row(make_kx):
    """Further signals change nothing. The jobs end within the grace period."""
    kx = make_kx("grace=1s")
    _, pid = started(kx, STUBBORN)
    for _ in range(20):
        kill(kx.pid, signal.SIGTERM)
        kill(kx.pid, signal.SIGINT)
    assert kx.end() == 0
    assert not alive(pid)


@pytest.mark.concurrent
@pytest.mark.parametrize("how, busy", [("umount", False), ("umount -l", True), ("umount -l", False), ("fusermount3 -uz", True)])
def test_taken_away_from_outside(kx, how, busy):
    """Whoever removes the mount, kxfs and its jobs end. BUSY: processes wait for files of the mount."""
    job, pid = started(kx)
    files = [job / "wait", job / "follow", job / "main-0/follow", kx / "changes"] if busy else []
    readers = [popen(["cat", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for path in files]
    wait_for(lambda: Metrics(kx)("parked_requests", kind="read") == len(readers), what="readers that wait")
    run(f"{how} {kx.mnt}")
    proc, kx.proc = kx.proc, None
    assert proc.wait(timeout=60) == 0
    for p in readers:
        p.wait(timeout=60)
    assert not alive(pid)
    assert "was removed" in kx.said() or not busy
    kx.start()
    assert job.state() == "CANCELLED"


@pytest.mark.concurrent
def test_leaves_a_newer_mount_alone(make_kx):
    """A mount that is still ending its jobs does not unmount a newer mount at the same path."""
    old = make_kx("grace=5")
    _, pid = started(old, STUBBORN)
    with open(old / ".kxfs/help", "rb"):  # an open file, so that the old mount does not end immediately
        new = make_kx(start=False)
        new.mnt = old.mnt
        run(["umount", "-l", str(old.mnt)])
        new.start()
        proc, old.proc = old.proc, None
        assert proc.wait(timeout=60) == 0
    assert not alive(pid)
    assert is_mounted(new.mnt) and new.submit(app("true")).finish()
    new.end()


def numbers(path):
    """Return the kernel's number of the mount at PATH, and its device."""
    for line in pathlib.Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines():
        fields = line.split()
        if fields[4] == str(path):
            return fields[0], fields[2]
    raise AssertionError(f"{path} is not mounted")


def test_leaves_a_mount_with_its_numbers_alone(make_kx):
    """The kernel gives the numbers of a removed mount to the next mount. The kxfs of the removed mount does not unmount
    the new one. Other tests may take the numbers, so this needs several tries."""
    libc = ctypes.CDLL(None, use_errno=True)
    old, new = make_kx(start=False), make_kx(start=False)
    for _ in range(50):
        old.start()
        before = numbers(old.mnt)
        os.kill(old.pid, signal.SIGSTOP)
        try:
            assert libc.umount2(os.fsencode(old.mnt), 2) == 0, os.strerror(ctypes.get_errno())
            new.start()
            same = numbers(new.mnt) == before
        finally:
            os.kill(old.pid, signal.SIGCONT)
        proc, old.proc = old.proc, None
        assert proc.wait(timeout=60) == 0
        assert is_mounted(new.mnt) and new.submit(app("true")).finish()
        assert new.end() == 0
        if same:
            return
    raise AssertionError("the kernel did not reuse the numbers")


def test_mount_point_that_was_moved(make_kx):
    """If a parent of the mount point was renamed, kxfs unmounts all the same."""
    kx = make_kx(start=False)
    kx.mnt = kx.base / "parent" / "mnt"
    kx.mnt.mkdir(parents=True)
    kx.start()
    kx.mnt.parent.rename(kx.base / "moved")
    kx.mnt = kx.base / "moved" / "mnt"
    assert is_mounted(kx.mnt)
    kx.end()
    assert not is_mounted(kx.mnt)


@pytest.mark.concurrent
def test_says_what_it_waits_for(make_kx, tmp_path):
    """If a user mounts again during the grace period, kxfs prints what it waits for, and waits as long as the end may
    take: with an archive, twice the grace period."""
    kx = make_kx(f"grace=1000,archive={tmp_path}")
    job, pid = started(kx, "trap '' TERM; echo $$; while [ ! -e end ]; do sleep 0.1; done")
    old, kx.proc = kx.proc, None
    run(["umount", "-l", str(kx.mnt)])
    before = len(kx.said())

    def let_it_end():
        with contextlib.suppress(AssertionError):  # the test checks that itself below
            wait_for(lambda: "waiting for process" in kx.said()[before:], timeout=60)
        (kx.work / "end").touch()

    waiter = threading.Thread(target=let_it_end)
    waiter.start()
    kx.start()
    waiter.join()
    said = kx.said()[before:]
    assert f"waiting for process {old.pid}, which is still ending its mount on {kx.mnt} (at most 2020 s)" in said, said
    assert not alive(pid) and old.wait(timeout=60) == 0
    assert job.state() == "CANCELLED"


def test_lock_that_hangs(make_kx):
    """If the disk hangs when kxfs records the end of the mount, the mount ends anyway."""
    with on_slow_disk(make_kx(start=False)) as (kx, disk):
        disk.hang("write", "/lock")
        with disk.still():
            assert kx.end() == 0
            assert disk.hangs("/lock") and not is_mounted(kx.mnt)


def test_many_at_once_on_one_mount_point(make_kx):
    """Eight processes mount on the same directory at the same time, each with its own state directory. One succeeds,
    the others are refused."""
    kx = make_kx(start=False)
    states = [kx.base / f"state{i}" for i in range(8)]
    all_ = [popen([kx.binary, "-f", "-o", f"state={state}", "local:", str(kx.mnt)], stdout=subprocess.PIPE,
                  stderr=subprocess.STDOUT, cwd=kx.work, text=True) for state in states]
    try:
        wait_for(lambda: sum(p.poll() is not None for p in all_) == 7)
        [one] = [p for p in all_ if p.poll() is None]
        wait_for(lambda: is_mounted(kx.mnt))
        assert mounts().count(str(kx.mnt)) == 1
        for p in all_:
            if p is not one:
                said = p.communicate()[0]
                assert p.returncode == 1 and said.count("\n") == 1, said
                assert "about to mount here" in said or "is mounted here already" in said, said
        assert (kx / ".kxfs/info").read_text()
    finally:
        for p in all_:
            p.terminate()
            p.wait(timeout=60)
            p.stdout.close()
    assert not is_mounted(kx.mnt)


# --- crashes, and other mounts at the same path ---


def test_mounts_that_lie_on_each_other(kx):
    """If a mount was bound onto itself, the next start removes all of these mounts, after an end and after a crash."""
    for end in (signal.SIGKILL, signal.SIGTERM):
        for _ in range(2):
            run(["mount", "--bind", str(kx.mnt), str(kx.mnt)])
        assert mounts().count(str(kx.mnt)) == 3
        kx.end(end)
        assert (f"{kx.mnt} is still mounted" in kx.said()) == (end == signal.SIGTERM)
        kx.start()
        assert mounts().count(str(kx.mnt)) == 1


def test_dead_mount_through_a_link_and_a_relative_path(make_kx):
    kx = make_kx()
    kx.end(signal.SIGKILL)
    (kx.base / "link").symlink_to(kx.mnt)
    with background(kx, command=[kx.binary, "-o", f"state={kx.state}", "local:", "../link/"]):
        assert lock_file(kx.state)["mountpoint"] == str(kx.mnt)
        assert mounts().count(str(kx.mnt)) == 1
        assert os.listdir(kx.mnt)


def test_refuses_a_live_mount(kx, make_kx):
    other = make_kx(start=False)
    other.mnt = kx.mnt
    assert refused(other) == (f"kxfs: {kx.mnt}: a kxfs is mounted here already: use it, or unmount it with "
                              f"fusermount3 -u {kx.mnt}\n")
    kx.submit(app("true")).finish()
    other.mnt = other.base / "mnt"


def test_refuses_a_second_mount_of_the_same_state(kx, make_kx):
    other = make_kx(start=False)
    other.state = kx.state
    assert refused(other) == (f"kxfs: {kx.state}: in use by process {kx.pid}, which serves the mount on {kx.mnt}: use "
                              "its mount, or give another directory with -o state=DIR\n")
    # A second attempt is refused for the same reason.
    assert f"in use by process {kx.pid}" in refused(kx)
    kx.submit(app("true")).finish()


def test_one_in_another_mount_namespace(kx, make_kx):
    """A state directory is in use even if its mount is visible only in another mount namespace, as in a container."""
    other = make_kx(start=False)
    other.state = kx.state
    said = refused(other, command=["unshare", "-m", "sh", "-c", f'umount -l {kx.mnt} && exec "$@"', "sh", *other.command()])
    assert said == (f"kxfs: {kx.state}: in use by process {kx.pid}, which serves the mount on {kx.mnt}: use "
                    "its mount, or give another directory with -o state=DIR\n")


def test_the_lock_is_removed(kx, make_kx):
    """If a user removes the state directory's lock, as a cleaner of /tmp does, a second mount does not start the
    running jobs again."""
    job, pid = started(kx)
    os.unlink(kx.state / "lock")
    other = make_kx(start=False)
    other.state = kx.state
    assert f"kxfs: {kx.state}: in use by another kxfs" in refused(other)
    assert alive(pid) and job.state() == "RUNNING"


def test_on_another_file_system(make_kx):
    """kxfs can mount on an empty directory of any file system, even on the root of another mount."""
    kx = make_kx(start=False)
    run(["mount", "-t", "tmpfs", "kxfs-test", str(kx.mnt)])
    try:
        kx.start().end()
    finally:
        run(["umount", "-l", str(kx.mnt)])


def test_names_with_blanks(make_kx):
    kx = make_kx(start=False)
    kx.mnt.rmdir()
    kx.mnt = kx.base / "a b\\040\tc,ü"
    kx.mnt.mkdir()
    kx.state = kx.base / "state, too"
    command = [kx.binary, "-o", f"state={kx.state}".replace(",", "\\,"), "local:", str(kx.mnt)]
    for _ in range(2):
        with background(kx, command=command) as pid:
            assert str(kx.mnt) in mounts()
            kill(pid, signal.SIGKILL)
            wait_for(lambda: not alive(pid))
            assert err_of(os.listdir, kx.mnt) in ("ENOTCONN", "ECONNABORTED")
    with background(kx, command=command):
        assert mounts().count(str(kx.mnt)) == 1 and os.listdir(kx.mnt)


def test_ordinary_user(make_kx):
    """An ordinary user mounts, mounts again after a crash, and unmounts, without root."""
    kx = make_kx(user=USER)
    job, pid = started_by(kx)
    kx.end(signal.SIGKILL)
    kx.start()
    assert mounts().count(str(kx.mnt)) == 1
    wait_for(lambda: run(["cat", str(job / "state")], user=USER).stdout == "RUNNING\n")
    assert alive(pid)
    run(["fusermount3", "-uz", str(kx.mnt)], user=USER)
    proc, kx.proc = kx.proc, None
    assert proc.wait(timeout=60) == 0
    kx.start()
    assert kx.end() == 0 and not is_mounted(kx.mnt)
    if "user_allow_other" not in pathlib.Path("/etc/fuse.conf").read_text().split("\n"):
        kx.options = "allow_other"
        said = refused(kx)
        assert "user_allow_other" in said and f"kxfs: can't mount on {kx.mnt}" in said


def started_by(kx):
    """Like started(), but as the user of the mount, because root has no access to the mount."""
    run(f"cat > {kx.mnt}/submit/a.yaml", user=kx.user, input=app("echo $$; exec sleep 1000"))
    link = run(["readlink", f"{kx.mnt}/submit/a.yaml.job"], user=kx.user).stdout.strip()
    job = kx.mnt / "jobs" / os.path.basename(link)
    return job, int(wait_for(lambda: run(["cat", f"{job}/main-0/log"], user=kx.user).stdout.strip()))


# --- Units of systemd -------------------------------------------------------------------------
# The units of contrib/systemd: the tests run their commands in the order in which systemd does.

STARTS = ("ExecCondition", "ExecStartPre", "ExecStart")


def commands(kind):
    """Return the commands of a unit, each as (setting, words of the command)."""
    text = (ROOT / f"contrib/systemd/{kind}/kxfs@.service.in").read_text()
    found = [(name, shlex.split(line)) for name, line in re.findall(r"^(Exec\w+)=(.*)$", text, re.M)]
    assert [name for name, _ in found].count("ExecStart") == 1
    return found


def start_unit(kx, kind):
    """Run the commands of the unit as systemd does: those that start it, up to the first failure, and then all of
    ExecStopPost. Return the results of the start commands."""
    values = {"$KXFS_OPTIONS": ["-o", f"state={kx.base}/unit"], "$KXFS_SOURCE": ["local:"], "%f": [str(kx.mnt)],
              "@BINDIR@/kxfs": [kx.binary]}
    results = []
    for name, words in commands(kind):
        if name in STARTS and results and results[-1].returncode != 0 or name not in (*STARTS, "ExecStopPost"):
            continue
        words[0] = words[0].lstrip("-")  # "-" means that systemd ignores a failure of this command
        command = [value for word in words for value in values.get(word, [word])]
        result = run(command, check=False, user=kx.user, cwd=kx.work, timeout=LIMIT)
        if name in STARTS:
            results.append(result)
    return results


@pytest.mark.parametrize("kind,user", [("system", None), ("user", USER)])
def test_start_leaves_the_mount_of_another_kxfs(make_kx, kind, user):
    kx = make_kx(user=user)
    (kx.work / "a.yaml").write_text(app("echo up; while [ ! -e go ]; do sleep 0.05; done"))
    kx.call(f"cp {kx.work}/a.yaml submit/ && tail -n +1 -f submit/a.yaml.job/main-0/log | grep -q -m 1 up")
    results = start_unit(kx, kind)
    assert results[-1].returncode != 0 and "a kxfs is mounted here already" in results[-1].stderr
    assert kx.call("cat submit/a.yaml.job/state").stdout == "RUNNING\n"
    (kx.work / "go").touch()
    assert kx.call("cat submit/a.yaml.job/wait").stdout == "SUCCEEDED\n"


@pytest.mark.parametrize("kind", ["system", "user"])
def test_start_leaves_another_file_system(make_kx, kind):
    kx = make_kx(start=False)
    run(["mount", "-t", "tmpfs", "foreign", str(kx.mnt)])
    try:
        (kx / "file").touch()
        results = start_unit(kx, kind)
        assert results[-1].returncode != 0 and "not empty" in results[-1].stderr
        assert str(kx.mnt) in mounts("tmpfs") and kx.ls() == ["file"]
    finally:
        run(["umount", str(kx.mnt)], check=False)
