# SPDX-License-Identifier: MIT
"""How the daemon ends and restarts: signals, unmounting from outside, crashes, and other mounts at the same path."""

import contextlib
import os
import pathlib
import signal
import subprocess
import threading

import pytest
from disk import Disk
from harness import USER, alive, app, err_of, is_mounted, kill, mounts, popen, run, wait_for
from starting import background, lock_file, refused, started

# Ignores SIGTERM, so that ending it takes the grace; it runs once it has printed a line.
STUBBORN = "trap '' TERM; echo $$; while :; do sleep 1000 & wait; done"


def blocked_readers(kx, job):
    """Start one process at each kind of blocking file; return when they wait."""
    readers = [popen(["cat", str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, user=kx.user)
               for path in (job / "wait", job / "follow", job / "main-0/follow", kx / "changes")]
    wait_for(lambda: f'kind="read"}} {len(readers)}' in kx.read(".kxfs", "metrics")
             or all(waits(p.pid) for p in readers), what="readers that wait")
    return readers


def waits(pid):
    """True if PID waits for an answer of a file system."""
    with contextlib.suppress(OSError):
        return "fuse" in pathlib.Path(f"/proc/{pid}/wchan").read_text() or \
            pathlib.Path(f"/proc/{pid}/syscall").read_text().startswith("0 ")
    return False


def all_end(readers):
    for p in readers:
        p.wait(timeout=60)


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
    """Open files and a working directory in the mount do not prevent its end."""
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
    assert "was removed" in kx.said() or not busy
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
    """A mount that is ending its jobs does not unmount another one mounted there meanwhile."""
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
    """Mount the same state directory while its last holder still ends jobs."""
    job, pid = started(kx, STUBBORN)
    old, kx.proc = kx.proc, None
    run(["umount", "-l", str(kx.mnt)])
    assert old.poll() is None and alive(pid)
    kx.start()
    assert not alive(pid) and old.wait(timeout=60) == 0
    assert job.state() == "CANCELLED"


def test_says_what_it_waits_for(make_kx):
    """A user who mounts again within the grace gets the reason for the delay."""
    kx = make_kx("grace=1000")
    _, pid = started(kx, "trap '' TERM; echo $$; while [ ! -e end ]; do sleep 0.1; done")
    old, kx.proc = kx.proc, None
    run(["umount", "-l", str(kx.mnt)])
    before = len(kx.said())

    def let_it_end():
        with contextlib.suppress(AssertionError):  # the test looks for itself
            wait_for(lambda: "waiting for process" in kx.said()[before:], timeout=60)
        (kx.work / "end").touch()

    waiter = threading.Thread(target=let_it_end)
    waiter.start()
    kx.start()
    waiter.join()
    said = kx.said()[before:]
    assert f"waiting for process {old.pid}, which is still ending the jobs of its mount on {kx.mnt}" in said, said
    assert not alive(pid) and old.wait(timeout=60) == 0


def test_lock_that_hangs(make_kx):
    """If the disk hangs where the end of the mount is recorded, the mount ends anyway."""
    kx = make_kx(start=False)
    disk = Disk(kx)
    try:
        kx.start()
        disk.hang("write", "/lock")
        with disk.still():
            assert kx.end() == 0
            assert disk.hangs("/lock") and not is_mounted(kx.mnt)
    finally:
        disk.close()


def test_many_at_once_on_one_mount_point(make_kx):
    """Eight at the same time, each with its own state directory: one is mounted, the others are refused."""
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
        # The refused ones leave nothing.
        assert [state for state in states if state.exists()] == [states[all_.index(one)]]
        assert (kx / ".kxfs/info").read_text()
    finally:
        for p in all_:
            p.terminate()
            p.wait(timeout=60)
            p.stdout.close()
    assert not is_mounted(kx.mnt)


def test_jobs_end_with_the_mount_within_grace(make_kx):
    kx = make_kx("grace=1s")
    _, pid = started(kx, STUBBORN)
    assert kx.end() == 0
    assert not alive(pid)


# --- crashes, and other mounts at the same path ---


def test_replaces_its_own_dead_mount(kx):
    job, pid = started(kx)
    kx.end(signal.SIGKILL)
    assert is_mounted(kx.mnt) and err_of(os.listdir, kx.mnt) in ("ENOTCONN", "ECONNABORTED")
    kx.start()
    assert mounts().count(str(kx.mnt)) == 1
    assert alive(pid) and job.until("RUNNING")


def test_mounts_that_lie_on_each_other(kx):
    """A mount that was bound onto itself: all of its mounts are removed, at the end and after a crash."""
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


def test_one_in_another_mount_namespace(kx, make_kx):
    """A mount that is only visible in its own namespace, as in a container, is in use; a new mount waits for it there
    too while it ends."""
    other = make_kx(start=False)
    other.state = kx.state
    said = refused(other, command=["unshare", "-m", "sh", "-c", f'umount -l {kx.mnt} && exec "$@"', "sh", *other.command()])
    assert said == (f"kxfs: {kx.state}: in use by process {kx.pid}, which is mounted on {kx.mnt}: use "
                    "that, or give another directory with -o state=DIR\n")
    _, pid = started(kx, STUBBORN)
    old, kx.proc = kx.proc, None
    run(["umount", "-l", str(kx.mnt)])
    other.start()
    assert not alive(pid) and old.wait(timeout=60) == 0


def test_the_lock_is_removed(kx, make_kx):
    """The state directory is removed, as a cleaner of /tmp does: no second mount starts the running jobs again."""
    job, pid = started(kx)
    os.unlink(kx.state / "lock")
    other = make_kx(start=False)
    other.state = kx.state
    assert f"kxfs: {kx.state}: in use by another kxfs" in refused(other)
    assert alive(pid) and job.state() == "RUNNING"


def test_on_another_file_system(make_kx):
    """An empty directory of any file system is accepted, the root of a mount too."""
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
    """Mount, crash, mount again, unmount, all without root."""
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
    """Like started(), as the user of the mount: root has no access."""
    run(f"cat > {kx.mnt}/submit/a.yaml", user=kx.user, input=app("echo $$; exec sleep 1000"))
    link = run(["readlink", f"{kx.mnt}/submit/a.yaml.job"], user=kx.user).stdout.strip()
    job = kx.mnt / "jobs" / os.path.basename(link)
    return job, int(wait_for(lambda: run(["cat", f"{job}/main-0/log"], user=kx.user).stdout.strip()))
