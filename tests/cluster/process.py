# SPDX-License-Identifier: MIT
"""Processes of the tests' cluster, which never outlive the test process.

Each is started with PDEATHSIG, so it is killed when the test process ends for any reason. A janitor
process, started before all others, notices that too, because its standard input is closed. It
removes what the processes leave: cgroups and the directory. A normal end uses the janitor as well,
so there is only one way to clean up."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

TOOL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LIMIT = 120  # seconds for what normally takes a few


def wait_for(cond, what, timeout=LIMIT, step=0.1):
    """Poll COND until it is true, and return its result. Fail after TIMEOUT seconds."""
    end = time.monotonic() + timeout
    while True:
        value = cond()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {timeout} s: {what}")
        time.sleep(step)


class Part:
    """One program of a cluster. It may be stopped and started again. Its output goes to LOG."""

    def __init__(self, name, base, command, enter=()):
        self.name = name
        self.base = base
        self.command = [str(word) for word in command]
        self.enter = [str(word) for word in enter]  # nsenter and its options
        self.log = base / "log" / f"{name}.log"
        self.proc = None

    def start(self):
        assert self.proc is None, f"{self.name} runs already"
        env = {"PATH": TOOL_PATH, "LC_ALL": "C.UTF-8", "HOME": str(self.base),
               "KXFS_CLUSTER": str(self.base)}
        with open(self.log, "ab") as log:
            self.proc = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *self.enter, *self.command],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, cwd=self.base,
                start_new_session=True)
        return self

    @property
    def pid(self):
        """Return the pid of the program itself. nsenter is only its parent."""
        if not self.enter:
            return self.proc.pid
        children = pathlib.Path(f"/proc/{self.proc.pid}/task/{self.proc.pid}/children")
        return int(wait_for(children.read_text, f"{self.name} to start").split()[0])

    def kill(self, sig):
        os.kill(self.pid, sig)

    def check(self):
        """Fail if the program has ended by itself."""
        if self.proc is None or self.proc.poll() is not None:
            said = self.log.read_text(errors="replace")[-4000:]
            raise AssertionError(f"{self.name} has ended: {self.proc and self.proc.returncode}\n{said}")

    def stop(self, sig=signal.SIGTERM, timeout=5):
        """End the program with SIG, or with SIGKILL after TIMEOUT seconds. Do nothing if it is not
        running."""
        proc = self.proc
        if proc is None:
            return
        with contextlib.suppress(ProcessLookupError, AssertionError, FileNotFoundError, IndexError):
            if proc.poll() is None:
                self.kill(sig)
        try:
            proc.wait(timeout=timeout)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError, FileNotFoundError, IndexError):
                self.kill(signal.SIGKILL)
            proc.wait(timeout=LIMIT)
        finally:
            self.proc = None


# --- the janitor -----------------------------------------------------------------------------


def start_janitor(base, group):
    """Start a process that cleans up after the cluster at BASE when its stdin is closed."""
    return subprocess.Popen([sys.executable, __file__, str(base), group], stdin=subprocess.PIPE,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                            start_new_session=True, cwd="/", env={"PATH": TOOL_PATH})


def processes_of(base):
    """Yield the processes that Part has started for BASE and their descendants, but not those in
    pods."""
    needle = f"\0KXFS_CLUSTER={base}\0".encode()
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if needle in b"\0" + pathlib.Path(f"/proc/{entry}/environ").read_bytes():
                yield int(entry)


def clean(base, group):
    """Wait until all processes have ended, killing them by pid. Then remove groups and directory."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        left = list(processes_of(base))
        if not left:
            break
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)
    while True:
        left = remove_groups(group)
        if not left or time.monotonic() > end:
            break
        time.sleep(0.1)
    shutil.rmtree(base)
    if left:
        sys.exit(f"control groups that could not be removed: {left}")


def remove_groups(group):
    """Remove the cgroups with that name. Return those that still exist."""
    left = []
    for top in (pathlib.Path("/sys/fs/cgroup") / group, *pathlib.Path("/sys/fs/cgroup").glob(f"*/{group}")):
        for path, _, _ in os.walk(top, topdown=False):
            try:
                os.rmdir(path)
            except FileNotFoundError:
                pass
            except OSError:
                left.append(path)
    return left


if __name__ == "__main__":
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    sys.stdin.buffer.read()
    clean(sys.argv[1], sys.argv[2])
