# SPDX-License-Identifier: MIT
"""How the daemon starts: in foreground and background, and with bad input. Its end: test_end.py."""

import os
import pwd
import re
import resource
import signal
import socket

import pytest
from harness import ROOT, USER, alive, app, is_mounted, kill, run, wait_for
from starting import attempt, background, lock_file, refused
from transcript import LATE

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
    kx = make_kx(start=False)
    with background(kx) as pid:
        # immediately, not soon
        assert {"jobs", "submit", "dryrun", "history", "live", "list", "list.jsonl", ".kxfs"} == set(os.listdir(kx.mnt))
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
    assert (p.returncode, p.stdout, LATE.sub("", p.stderr)) == (0, "", "")
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
    """umask and limits are those of the user who mounts; SIGPIPE ends a process as usual."""
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
    """The exact texts of all messages: tests/unit/fs/cli/test-options.c."""
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


def state_in_mount_point(kx):
    kx.state = kx.mnt / "state"
    return f"{kx.state}: the state directory and the mount point {kx.mnt} must not contain each other"


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
    assert said == (f"kxfs: {kx.state}: no space for the state (No space left on "
                    f"device): free some, or give another directory with -o "
                    f"state=DIR\n")


# A /dev in a mount namespace of its own.
DEV = """set -e
mkdir {dir}; mknod -m 666 {dir}/null c 1 3
{make}
mount --bind {dir} /dev
exec {prefix} "$@"
"""


def with_dev(kx, make, prefix="", command=None):
    """Return the command line that starts KX with only those devices in /dev that MAKE makes."""
    script = DEV.format(dir=kx.base / "dev", make=make.format(dir=kx.base / "dev"), prefix=prefix)
    return ["unshare", "-m", "sh", "-c", script, "sh", *(command or kx.command())]


AS_USER = f"setpriv --reuid={USER} --regid=nogroup --clear-groups"


def test_no_fuse_device(make_kx):
    kx = make_kx(start=False)
    assert refused(kx, command=with_dev(kx, "")) == (
        "kxfs: /dev/fuse: No such file or directory: no FUSE here: as root, modprobe fuse; a container must be "
        "started with --device /dev/fuse --cap-add SYS_ADMIN\n")


def test_no_fuse_module(make_kx):
    """A device without a driver."""
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
