# SPDX-License-Identifier: MIT
"""A mount that another program has made. It passes the descriptor to kxfs as the mount point /dev/fd/N."""

import contextlib
import ctypes
import os
import pwd
import subprocess

import pytest
from harness import LIMIT, USER, app, run, wait_for

NOBODY = pwd.getpwnam(USER).pw_uid
# No /dev/fuse and no capability. With THERE, the mount is made after this, so it is not visible from here.
RESTRICTED = ["unshare", "-m", "sh", "-c", f"""mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 || exit 9
if [ "$THERE" ]; then touch "$THERE"; read line; fi
exec setpriv --reuid={USER} --regid=nogroup --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs "$@" """, "sh"]


class Passed:
    """The program that mounts; FD is its descriptor."""

    def __init__(self, kx):
        self.kx = kx
        self.proc = None
        self.fd = os.open("/dev/fuse", os.O_RDWR)

    def command(self, *more, number=None):
        opts = ",".join([f"state={self.kx.state}", *more])
        return [*RESTRICTED, self.kx.binary, "-f", "-o", opts, "local:", f"/dev/fd/{number or self.fd}"]

    def start(self, *more):
        options = f"fd={self.fd},rootmode=40000,user_id={NOBODY},group_id={NOBODY},allow_other,default_permissions"
        there = self.kx.base / "there"
        libc = ctypes.CDLL(None, use_errno=True)
        with open(self.kx.messages, "ab") as err:
            self.proc = subprocess.Popen(self.command(*more), pass_fds=[self.fd], stdin=subprocess.PIPE, stdout=err,
                                         stderr=err, env={**self.kx.env(), "THERE": str(there)}, cwd=self.kx.work)
        wait_for(there.exists)
        if libc.mount(b"kxfs", bytes(self.kx.mnt), b"fuse.kxfs", 0, options.encode()) != 0:
            raise OSError(ctypes.get_errno(), "mount")
        self.proc.stdin.write(b"\n")
        self.proc.stdin.close()
        wait_for(lambda: (self.kx.state / "ready").exists() or self.proc.poll() is not None, what="the mount")
        assert self.proc.poll() is None, self.kx.said()

    def close(self):
        with contextlib.suppress(OSError):
            os.close(self.fd)

    def refused(self, command, **kwargs):
        p = run(command, check=False, env=self.kx.env(), cwd=self.kx.work, **kwargs)
        assert p.returncode == 1
        return p.stderr


@pytest.fixture
def passed(make_kx):
    found = Passed(make_kx(start=False, user=USER))
    yield found
    if found.proc and found.proc.poll() is None:
        found.proc.kill()
        found.proc.wait(LIMIT)
    found.close()


@pytest.mark.parametrize("how", ["signal", "umount"])
def test_passed(passed, how):
    """An ordinary user without any rights serves it. Its jobs do not inherit the descriptor. It ends when requested,
    and then the mount is dead; or when the mount is removed."""
    kx = passed.kx
    passed.start("allow_other")
    wait_for(lambda: f"local: is mounted on /dev/fd/{passed.fd}" in kx.said(), what="what it says when it is up")
    text = app("ls -l /proc/self/fd; echo done")
    kx.call("cat > submit/a.yaml", input=text)  # as its own user, whose descriptors it may look at
    job = kx.job_of("a.yaml")
    job.finish()
    assert job.read("main-0", "log").endswith("done\n") and "fuse" not in job.read("main-0", "log")
    # A shell that writes in several steps launches one job: kxfs sees its descriptors although it can't see the mount's
    # path.
    kx.call("{ head -c 20; cat; } > submit/steps.yaml", input=text)
    assert len(kx.ls("jobs")) == 2
    said = passed.refused(passed.command(), pass_fds=[passed.fd])
    assert f"in use by process {passed.proc.pid}, which is mounted on /dev/fd/{passed.fd}: use that" in said
    if how == "umount":
        run(["umount", str(kx.mnt)])
        assert passed.proc.wait(LIMIT) == 0, kx.said()
        return
    passed.close()
    passed.proc.terminate()
    assert passed.proc.wait(LIMIT) == 0, kx.said()
    with pytest.raises(OSError, match="not connected"):
        os.listdir(kx.mnt)


def test_refused(passed, tmp_path):
    """Descriptors that are not of a mount."""
    with open(tmp_path / "file", "wb") as f:
        number = f.fileno()
        said = passed.refused(passed.command(number=number), pass_fds=[number])
    wrong = (f"kxfs: /dev/fd/{number}: no open descriptor of /dev/fuse: open that, mount with fd={number}, and hand the "
             "descriptor over\n")
    assert said == wrong == passed.refused(passed.command(number=number))
    said = passed.refused(passed.command("ro"), pass_fds=[passed.fd])
    assert said.startswith("kxfs: -o ro: a mount that is handed over as")
    device = os.open("/dev/fuse", os.O_RDWR)
    try:
        said = passed.refused(passed.command(number=device), pass_fds=[device])
    finally:
        os.close(device)
    assert said.endswith(f"kxfs: /dev/fd/{device}: this descriptor has no mount, or its mount was removed: "
                         "Operation not permitted\n")
