# SPDX-License-Identifier: MIT
"""Mounts whose users kxfs can't inspect: it runs in another pid namespace, or as another user."""

import contextlib
import ctypes
import os
import pwd
import signal
import subprocess

import harness

NOBODY = pwd.getpwnam(harness.USER).pw_uid


class Mount(harness.Kxfs):
    """COMMAND, put before its own, leads to the environment in which kxfs runs, as the started process or as its
    child. With DEVICE the mount is made here, and kxfs gets /dev/fd/N."""

    def __init__(self, *args, prefix=(), device=False, **kwargs):
        super().__init__(*args, **kwargs)
        self.prefix = list(prefix)
        self.passed = device
        self.device = os.open("/dev/fuse", os.O_RDWR) if device else None

    def env(self):
        """LeakSanitizer looks for the threads of its process in /proc, which has the numbers of our namespace."""
        env = super().env()
        if self.prefix == CONTAINER:
            env["ASAN_OPTIONS"] += ":detect_leaks=0"
        return env

    def command(self, *args):
        command = super().command(*args)
        if self.device is not None:
            command[-1] = f"/dev/fd/{self.device}"
        return [*self.prefix, *command]

    def start(self):
        if self.device is not None:
            options = (f"fd={self.device},rootmode=40000,user_id={NOBODY},group_id={NOBODY},allow_other,"
                       "default_permissions")
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.mount(b"kxfs", bytes(self.mnt), b"fuse.kxfs", 0, options.encode()) != 0:
                raise OSError(ctypes.get_errno(), "mount")
        with open(self.messages, "ab") as err:
            self.proc = subprocess.Popen(self.command("-f"), stdin=subprocess.DEVNULL, stdout=err, stderr=err,
                                         env=self.env(), cwd=self.work, start_new_session=True,
                                         pass_fds=[] if self.device is None else [self.device])
        ready = self.state / "ready"
        harness.wait_for(lambda: ready.exists() or self.proc.poll() is not None, what="the mount")
        assert self.proc.poll() is None, self.said()
        self.let_go()
        os.listdir(self.mnt)
        return self

    def let_go(self):
        """Otherwise our descriptor keeps the mount alive."""
        if self.device is not None:
            os.close(self.device)
            self.device = None

    def end(self, sig=signal.SIGTERM, timeout=60):
        """unshare(1) does not pass signals on to its child."""
        found = [self.proc.pid]
        with contextlib.suppress(OSError):
            with open(f"/proc/{found[0]}/task/{found[0]}/children") as f:
                found = [int(pid) for pid in f.read().split()] if self.prefix[:1] == ["unshare"] else found
        for pid in found:
            harness.kill(pid, sig)
        proc, self.proc = self.proc, None
        status = proc.wait(timeout)
        if self.passed:
            self.abort()  # who has mounted takes the mount away
        return status

    def close(self):
        self.let_go()
        return super().close()


# kxfs is the first process of a pid namespace, like the only program of a container.
CONTAINER = ["unshare", "--pid", "--fork"]
# An ordinary user without any rights, who may not inspect other users' processes.
OTHER = ["setpriv", f"--reuid={harness.USER}", "--regid=nogroup", "--clear-groups", "--bounding-set=-all",
         "--inh-caps=-all", "--no-new-privs"]
