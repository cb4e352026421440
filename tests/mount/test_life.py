# SPDX-License-Identifier: MIT
"""The life of the daemon: start in fore- and background, bad input, signals, crashes, unmounting
from outside, what else mounts it."""

import contextlib
import os
import pathlib
import pwd
import re
import resource
import signal
import socket
import subprocess
import time

import pytest
from harness import (ROOT, TOOL_PATH, USER, alive, app, base_env, err_of, is_mounted, kill, mounts, popen,
                     run, wait_for)

# Ignores SIGTERM, so that ending it takes the grace; it is there when it has printed a line.
STUBBORN = "trap '' TERM; echo $$; while :; do sleep 1000 & wait; done"


def lock_file(state):
    """{"pid": ..., "phase": ..., "mountpoint": ...} of a state directory."""
    text = pathlib.Path(state, "lock").read_text()
    return dict(line.split(" ", 1) for line in text.splitlines())


def attempt(kx, *args, command=None, **kwargs):
    """The command line as a user gives it: in the background, waited for."""
    kwargs.setdefault("cwd", kx.work)
    kwargs.setdefault("user", kx.user)
    return run(command or kx.command(*args), check=False, **{"env": kx.env(), **kwargs})


def refused(kx, *args, **kwargs):
    """It does not start: status 1, nothing mounted, nothing left running. What it said."""
    before = mounts().count(str(kx.mnt))
    p = attempt(kx, *args, **kwargs)
    assert p.returncode == 1, p
    assert p.stdout == "", p.stdout
    assert re.fullmatch(r"(kxfs: .*\n|fusermount3: .*\n)+", p.stderr), p.stderr
    assert mounts().count(str(kx.mnt)) == before
    return p.stderr


@contextlib.contextmanager
def background(kx, *args, **kwargs):
    """A daemon in the background; gives its process id, ends it."""
    p = attempt(kx, *args, **kwargs)
    assert p.returncode == 0, p.stderr
    pid = int(lock_file(kx.state)["pid"])
    try:
        yield pid
    finally:
        kill(pid, signal.SIGTERM)
        wait_for(lambda: not alive(pid), what="the end of the daemon")


def blocked_readers(kx, job):
    """One process at each kind of file whose reading blocks; they wait when this returns."""
    readers = [popen(["cat", str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, user=kx.user)
               for path in (job / "wait", job / "follow", job / "main-0/follow", kx / "changes")]
    wait_for(lambda: f'kind="read"}} {len(readers)}' in kx.read(".kxfs", "metrics")
             or all(waits(p.pid) for p in readers), what="readers that wait")
    return readers


def waits(pid):
    """Does PID wait for an answer of a file system?"""
    with contextlib.suppress(OSError):
        return "fuse" in pathlib.Path(f"/proc/{pid}/wchan").read_text() or \
            pathlib.Path(f"/proc/{pid}/syscall").read_text().startswith("0 ")
    return False


def all_end(readers):
    for p in readers:
        p.wait(timeout=60)


def started(kx, script="echo $$; exec sleep 1000", **fields):
    """A job that runs, and its process."""
    job = kx.submit(app(script, **fields))
    job.until_logged("\n")
    return job, int(job.log().split()[0])


# --- fore- and background ----------------------------------------------------------------------


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda s: s.name)
def test_foreground(kx, sig):
    assert f"kxfs: local: is mounted on {kx.mnt}\n" in kx.said()
    assert lock_file(kx.state) == {"pid": str(kx.pid), "phase": "mounted", "mountpoint": str(kx.mnt)}
    assert kx.end(sig) == 0
    assert not is_mounted(kx.mnt) and os.listdir(kx.mnt) == []


def test_background(make_kx):
    kx = make_kx(start=False)
    with background(kx) as pid:
        # At once, not soon.
        assert {"jobs", "submit", "dryrun", "history", "changes", ".kxfs"} == set(os.listdir(kx.mnt))
        assert os.readlink(f"/proc/{pid}/cwd") == "/"
        assert os.getsid(pid) == pid
        for fd in range(3):
            assert os.readlink(f"/proc/{pid}/fd/{fd}") == "/dev/null"
        kill(pid, signal.SIGHUP)
        kx.submit(app("true")).finish()
    assert not is_mounted(kx.mnt)


def test_background_says_nothing(make_kx):
    kx = make_kx(start=False)
    p = attempt(kx)
    assert (p.returncode, p.stdout, p.stderr) == (0, "", "")
    pid = int(lock_file(kx.state)["pid"])
    run(["umount", str(kx.mnt)])
    wait_for(lambda: not alive(pid))


def test_keeps_no_descriptor_of_the_caller(make_kx):
    """A pipe that a script forgot to close ends when the script closes it."""
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
    """umask and limits are those of who mounted; SIGPIPE ends a process as usual."""
    kx = make_kx(start=False)

    def prepare():
        os.umask(0o037)
        os.nice(3)
        resource.setrlimit(resource.RLIMIT_NOFILE, (500, 600))

    with background(kx, preexec_fn=prepare, env={**kx.env(), "NOTIFY_SOCKET": "/nonexistent"}):
        job = kx.submit(app("umask; nice; ulimit -Sn; ulimit -Hn; echo ${NOTIFY_SOCKET-none}; "
                            "grep SigIgn /proc/self/status"))
        job.finish()
        lines = job.log().decode().split()
        assert lines[:5] == ["0037", "3", "500", "600", "none"]
        assert int(lines[6], 16) & 1 << (signal.SIGPIPE - 1) == 0


def test_notify(make_kx):
    kx = make_kx(start=False)
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


# --- bad input -----------------------------------------------------------------------------------


def test_command_lines(make_kx):
    """Exact words of all of them: tests/unit/test-options.c."""
    kx = make_kx(start=False)
    for line, says in (
            ("-o stat=/x local: /m", "-o stat: unknown option; did you mean state?"),
            ("slurm:x /m", "unknown backend 'slurm'; backends are volcano:, mcad: and local:"),
            ("mcad:training /m", "this version serves volcano:"),
            ("", "the mount point is missing"),
            ("local:", "the mount point is missing"),
            ("-o grace=soon local: /m", "not a time")):
        assert says in refused(kx, command=f"{kx.binary} {line}")


def test_help_and_version(binary):
    assert run([binary, "--version"]).stdout == "kxfs 0.1.0\n"
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


def state_in_mount_point(kx):
    kx.state = kx.mnt / "state"
    return f"{kx.state}: the state directory and the mount point {kx.mnt} must not lie in each other"


def state_is_a_file(kx):
    kx.state.rmdir()
    kx.state.touch()
    return f"{kx.state}: the state can't be kept here: Not a directory: give another directory with -o state=DIR\n"


def state_of_something_else(kx):
    (kx.state / "thesis.tex").touch()
    return f"{kx.state}: not empty, and no kxfs has used it"


def state_of_another_user(kx):
    os.chown(kx.state, pwd.getpwnam(USER).pw_uid, -1)
    return f"{kx.state}: belongs to another user (uid {pwd.getpwnam(USER).pw_uid})"


def in_the_mount_point(kx):
    kx.work = kx.mnt
    return f"{kx.mnt}: jobs run in the working directory, and this one is in the mount point: cd to another"


@pytest.mark.parametrize("spoil", [missing, not_a_directory, not_empty, state_in_mount_point, state_is_a_file,
                                   state_of_something_else, state_of_another_user, in_the_mount_point],
                         ids=lambda f: f.__name__)
@pytest.mark.parametrize("where", ["background", "foreground"])
def test_refused(make_kx, spoil, where):
    kx = make_kx(start=False)
    says = spoil(kx)
    said = refused(kx, *(["-f"] if where == "foreground" else []))
    assert said.startswith(f"kxfs: {says}"), said
    assert said.count("\n") == 1


def test_full_state_directory(make_kx):
    kx = make_kx(start=False)
    run(["mount", "-t", "tmpfs", "-o", "size=16k,mode=700", "kxfs-test", str(kx.state)])
    try:
        said = refused(kx)
    finally:
        run(["umount", "-l", str(kx.state)])
    assert said == (f"kxfs: {kx.state}: no room for the state (No space left on device): make room, or give "
                    "another directory with -o state=DIR\n")


# A /dev of its own, in a mount namespace of its own.
DEV = """set -e
mkdir {dir}; mknod -m 666 {dir}/null c 1 3
{make}
mount --bind {dir} /dev
exec {prefix} "$@"
"""


def with_dev(kx, make, prefix="", command=None):
    """The command line that starts KX with only what MAKE makes in /dev."""
    script = DEV.format(dir=kx.base / "dev", make=make.format(dir=kx.base / "dev"), prefix=prefix)
    return ["unshare", "-m", "sh", "-c", script, "sh", *(command or kx.command())]


AS_USER = f"setpriv --reuid={USER} --regid=nogroup --clear-groups"


def test_no_fuse_device(make_kx):
    kx = make_kx(start=False)
    assert refused(kx, command=with_dev(kx, "")) == (
        "kxfs: /dev/fuse: No such file or directory: no FUSE here: as root, modprobe fuse; a container must be "
        "started with --device /dev/fuse --cap-add SYS_ADMIN\n")


def test_no_fuse_module(make_kx):
    """A device that no driver answers for."""
    kx = make_kx(start=False)
    assert "no FUSE here: as root, modprobe fuse" in refused(
        kx, command=with_dev(kx, "mknod -m 666 {dir}/fuse c 10 199"))


def test_no_permission_on_the_device(make_kx):
    kx = make_kx(start=False, user=USER)
    command = with_dev(kx, "mknod -m 600 {dir}/fuse c 10 229", AS_USER)
    assert refused(kx, command=command, user=None) == (
        "kxfs: /dev/fuse: no permission to use FUSE: as root, chmod 666 /dev/fuse (or add yourself to its group)\n")


def test_no_fusermount3(make_kx):
    kx = make_kx(start=False, user=USER)
    command = with_dev(kx, "mknod -m 666 {dir}/fuse c 10 229", f"{AS_USER} env PATH=/nonexistent")
    assert "install the package fuse3" in refused(kx, command=command, user=None)


def test_no_permission_to_mount(make_kx):
    """Root without the capability, as in a container."""
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
        f"kxfs: {kx.state}: the state can't be kept here: Permission denied: give another directory with -o "
        "state=DIR\n")


# --- ends ------------------------------------------------------------------------------------------


@pytest.mark.concurrent
@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT], ids=lambda s: s.name)
def test_signal_with_blocked_readers(kx, sig):
    job, pid = started(kx)
    readers = blocked_readers(kx, job)
    assert kx.end(sig) == 0
    all_end(readers)
    assert not is_mounted(kx.mnt) and not alive(pid)


@pytest.mark.concurrent
def test_signal_while_busy(kx):
    """Open files and a working directory in the mount do not hinder it."""
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
def test_signals_in_a_row(kx):
    started(kx, STUBBORN)
    for _ in range(20):
        kill(kx.pid, signal.SIGTERM)
        kill(kx.pid, signal.SIGINT)
    assert kx.end() == 0


@pytest.mark.concurrent
@pytest.mark.parametrize("how", ["umount -l", "fusermount3 -uz"])
@pytest.mark.parametrize("busy", [True, False], ids=["busy", "idle"])
def test_taken_away_from_outside(kx, how, busy):
    job, pid = started(kx)
    readers = blocked_readers(kx, job) if busy else []
    run(f"{how} {kx.mnt}")
    proc, kx.proc = kx.proc, None
    assert proc.wait(timeout=60) == 0
    all_end(readers)
    assert not alive(pid)
    assert "was taken away" in kx.said() or not busy
    kx.start()
    assert job.state() == "CANCELLED"


def test_umount_when_nobody_is_in_it(kx):
    _, pid = started(kx)
    run(["umount", str(kx.mnt)])
    proc, kx.proc = kx.proc, None
    assert proc.wait(timeout=60) == 0
    assert not alive(pid)


@pytest.mark.concurrent
def test_leaves_a_newer_mount_alone(make_kx):
    """One that ends its jobs does not take away what was mounted there meanwhile."""
    old = make_kx("grace=5")
    _, pid = started(old, STUBBORN)
    with open(old / ".kxfs/help", "rb"):  # so that it is not gone at once
        new = make_kx(start=False)
        new.mnt = old.mnt
        run(["umount", "-l", str(old.mnt)])
        new.start()
        proc, old.proc = old.proc, None
        assert proc.wait(timeout=60) == 0
    assert not alive(pid)
    assert is_mounted(new.mnt) and new.submit(app("true")).finish()
    new.end()


@pytest.mark.concurrent
def test_waits_for_one_that_is_ending(kx):
    """The same state directory again while its last holder still ends jobs."""
    job, pid = started(kx, STUBBORN)
    old, kx.proc = kx.proc, None
    run(["umount", "-l", str(kx.mnt)])
    assert old.poll() is None and alive(pid)
    kx.start()
    assert old.poll() == 0 and not alive(pid)
    assert job.state() == "CANCELLED"


def test_jobs_end_with_the_mount_within_grace(make_kx):
    kx = make_kx("grace=1s")
    _, pid = started(kx, STUBBORN)
    assert kx.end() == 0
    assert not alive(pid)


# --- crashes, and others at the same place ---------------------------------------------------------


def test_replaces_its_own_dead_mount(kx):
    job, pid = started(kx)
    kx.end(signal.SIGKILL)
    assert is_mounted(kx.mnt) and err_of(os.listdir, kx.mnt) in ("ENOTCONN", "ECONNABORTED")
    kx.start()
    assert mounts().count(str(kx.mnt)) == 1
    wait_for(lambda: not alive(pid))
    assert job.state() == "FAILED"


def test_mounts_that_lie_on_each_other(kx):
    """A mount that was bound onto itself: all of them are taken away, at the end and after a crash."""
    for end in (signal.SIGKILL, signal.SIGTERM):
        for _ in range(2):
            run(["mount", "--bind", str(kx.mnt), str(kx.mnt)])
        assert mounts().count(str(kx.mnt)) == 3
        kx.end(end)
        if end == signal.SIGKILL:
            kx.start()
            assert mounts().count(str(kx.mnt)) == 1
    assert not is_mounted(kx.mnt)


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
    assert refused(other) == (f"kxfs: {kx.mnt}: a kxfs is mounted here already: use it, or end it with "
                              f"fusermount3 -u {kx.mnt}\n")
    kx.submit(app("true")).finish()
    other.mnt = other.base / "mnt"


def test_refuses_a_second_mount_of_the_same_state(kx, make_kx):
    other = make_kx(start=False)
    other.state = kx.state
    assert refused(other) == (f"kxfs: {kx.state}: in use by process {kx.pid}, which is mounted on {kx.mnt}: use "
                              "that, or give another directory with -o state=DIR\n")
    # The same command again is refused for the same reason.
    assert f"in use by process {kx.pid}" in refused(kx)
    kx.submit(app("true")).finish()


def test_on_another_file_system(make_kx):
    """An empty directory of any file system will do, the root of a mount too."""
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
    """Mount, crash, mount again, unmount, all of it without root."""
    kx = make_kx(user=USER)
    job, pid = started_by(kx)
    kx.end(signal.SIGKILL)
    kx.start()
    assert mounts().count(str(kx.mnt)) == 1
    assert run(["cat", str(job / "state")], user=USER).stdout == "FAILED\n"
    assert not alive(pid)
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
    """As started(), by the user of the mount: root is kept out."""
    run(f"cat > {kx.mnt}/submit/a.yaml", user=kx.user, input=app("echo $$; exec sleep 1000"))
    link = run(["readlink", f"{kx.mnt}/submit/a.yaml.job"], user=kx.user).stdout.strip()
    job = kx.mnt / "jobs" / os.path.basename(link)
    return job, int(wait_for(lambda: run(["cat", f"{job}/main-0/log"], user=kx.user).stdout.strip()))


# --- mount(8), fstab, other options -------------------------------------------------------------


# mount(8) looks for the program only in the system's own directories: in a mount namespace of its own,
# ours is in one of them. MNT is the mount point, OPTS the options.
BY_MOUNT = """set -e
mount --bind {bin} /usr/local/bin
{mount}
grep " $MNT " /proc/self/mountinfo
cp {app} $MNT/submit/
cat $MNT/submit/a.yaml.job/wait $MNT/submit/a.yaml.job/log
pid=$(sed -n 's/^pid //p' {state}/lock)
umount $MNT
while kill -0 $pid 2>/dev/null && ! grep -q '^State:.Z' /proc/$pid/status; do sleep 0.1; done
"""


def by_mount(kx, mount, **kwargs):
    (kx.base / "a.yaml").write_text(app("echo $(printenv PATH | grep -c /usr/bin) hello"))
    script = BY_MOUNT.format(bin=os.path.dirname(kx.binary), mount=mount, app=kx.base / "a.yaml", state=kx.state)
    return run(["unshare", "-m", "sh", "-c", script], env={**kx.env(), "MNT": str(kx.mnt)}, cwd=kx.work, **kwargs)


def test_mount_type(make_kx):
    kx = make_kx(start=False)
    (kx.work / "local").mkdir()
    out = by_mount(kx, f"mount -t fuse.kxfs local: $MNT -o state={kx.state},cancel=all,noatime").stdout
    assert " - fuse.kxfs local: " in out and "nosuid,nodev,noatime" in out
    assert out.endswith("SUCCEEDED\nmain/0 1 hello\n")


def test_mount_type_fails(make_kx):
    kx = make_kx(start=False)
    p = by_mount(kx, f"mount -t fuse.kxfs local: $MNT -o state={kx.state},cancle=all", check=False)
    assert p.returncode == 1 and p.stderr == (
        "kxfs: -o cancle: unknown option; did you mean cancel?; kxfs --help lists all\n")


def test_fstab(make_kx):
    kx = make_kx(start=False)
    fstab = kx.base / "fstab"
    fstab.write_text(f"local:  {kx.mnt}  fuse.kxfs  state={kx.state},allow_other,nofail,_netdev,x-a.b=c  0  0\n")
    out = by_mount(kx, f"mount -T {fstab} $MNT").stdout
    assert out.endswith("SUCCEEDED\nmain/0 1 hello\n") and "allow_other" in out


def test_read_only(make_kx):
    kx = make_kx("ro")
    assert err_of(os.mkdir, kx / "submit/x") == "EROFS"
    assert err_of(kx.write, "submit/x.yaml", app("true")) == "EROFS"
    assert err_of(kx.write, "submit/scratch", "x") == "EROFS"
    assert kx.ls("jobs") == []


def test_mask_of_who_mounts(make_kx):
    kx = make_kx(start=False)
    with background(kx, preexec_fn=lambda: os.umask(0o077)):
        assert os.stat(kx / "jobs").st_mode & 0o077 == 0
        assert os.stat(kx / ".kxfs/info").st_mode & 0o077 == 0


def test_debug_messages(make_kx):
    kx = make_kx("log_level=error")
    assert kx.said() == ""
    kx.end()
    kx.args = ["-d"]
    kx.start()
    assert "is mounted on" in kx.said()


# --- the table of options and what is written by hand ----------------------------------------------


def listed(binary):
    """Options as --help lists them: {"-V, --version", "state=DIR", ...}."""
    heads = re.findall(r"^  (\S.*?)  +\S", run([binary, "--help"]).stdout, re.M)
    return set(heads)


def test_man_page(binary):
    text = (ROOT / "docs/kxfs.1").read_text()
    section = text[text.index(".Ss Flags"):text.index(".Ss Generic")]
    heads = set()
    for line in re.findall(r"^\.It (.*)$", section, re.M):
        line = re.sub(r"Fl (-?\w+) , -(\w+)", r"Fl \1, --\2", line)
        line = re.sub(r"\bFl ", "-", re.sub(r" Ns = Ns Ar ", "=", line)).replace("Cm ", "").replace("Ar ", "")
        heads.update(line.split(" , "))
    assert heads == listed(binary)


def test_generic_options_of_the_man_page(make_kx):
    text = (ROOT / "docs/kxfs.1").read_text()
    section = text[text.index(".Ss Generic"):text.index(".Ss Starting")]
    words = {w for line in re.findall(r"^\.Cm (.*)$", section, re.M) for w in line.split() if w not in (",", ".", ";")}
    assert len(words) > 30
    kx = make_kx(start=False)
    kx.options = ",".join(sorted(words - {"ro"})) + ",x-systemd.automount"
    assert kx.start()


def test_completion(binary, make_kx):
    """What bash completes after -o, and as flags, is what --help lists."""
    kx = make_kx(start=False)
    script = f"""source {ROOT}/contrib/completion/kxfs.bash
compopt() {{ :; }}
t() {{ COMP_LINE="$1" COMP_POINT=${{#1}} COMPREPLY=(); _kxfs; printf '%s\\n' "${{COMPREPLY[@]}}"; echo; }}
t "kxfs -o "; t "kxfs -"; t "kxfs -o ro,cancel="; t "kxfs -o log_level="; t "kxfs "; t "kxfs -o ro,st"
t "kxfs -o capture="; cd {kx.base}; t "kxfs volcano:c/n mn"; t "kxfs local: mn"
"""
    parts = [set(part.split()) for part in run(script).stdout.split("\n\n")]
    words, flags, cancel, level, source, rest, capture, *mount_points = parts[:9]
    heads = listed(binary)
    assert words == {re.sub(r"=.*", "=", h) for h in heads if not h.startswith("-")}
    assert flags == {f for h in heads if h.startswith("-") for f in re.findall(r"--?\w[\w-]*=?", h)}
    assert {f"cancel={w}" for w in cancel} == {f"cancel={w}" for h in heads if h.startswith("cancel=")
                                               for w in h[7:].split("|")}
    assert level == {w for h in heads if h.startswith("log_level=") for w in h[10:].split("|")}
    assert {f"capture={w}" for w in capture} == {f"capture={w}" for h in heads if h.startswith("capture=")
                                                 for w in h[8:].split("|")}
    assert source == {"local:", "volcano:"} and rest == {"ro,state="}
    assert mount_points == [{"mnt"}, {"mnt"}]


def test_man_page_examples(make_kx):
    """Each example of kxfs(1) works as it stands, with the mount points of this test."""
    text = (ROOT / "docs/kxfs.1").read_text()
    examples = re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed", text[text.index(".Sh EXAMPLES"):], re.M | re.S)
    shell = [e.replace("\\&", "") for e in examples if e.startswith("mkdir")]
    assert len(shell) == 3
    kx = make_kx(start=False)
    home = kx.base / "home"
    home.mkdir()
    env = {**kx.env(), "PATH": f"{os.path.dirname(kx.binary)}:{TOOL_PATH}", "HOME": str(home), "XDG_STATE_HOME": str(home / "xdg")}
    out = []
    try:
        for example in shell[:2]:
            out.append(run("set -e\n" + example, env=env, cwd=kx.work).stdout)
            wait_for(lambda: not alive(int(lock_file(home / "xdg/kxfs/local")["pid"])))
    finally:
        for path in mounts():
            if path.startswith(f"{home}/"):
                run(["umount", "-l", path])
    assert out[0] == "SUCCEEDED\nhello\n"
