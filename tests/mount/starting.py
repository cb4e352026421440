# SPDX-License-Identifier: MIT
"""Ways to start the daemon, for test_life.py and other tests."""

import contextlib
import pathlib
import re
import signal

from harness import alive, app, kill, mounts, run, wait_for


def lock_file(state):
    """Return the contents of a state directory's lock: {"pid": ..., "phase": ..., "mountpoint": ...}."""
    text = pathlib.Path(state, "lock").read_text()
    return dict(line.split(" ", 1) for line in text.splitlines())


def attempt(kx, *args, command=None, **kwargs):
    """Run kxfs as a user does: it goes into the background, and the command returns."""
    kwargs.setdefault("cwd", kx.work)
    kwargs.setdefault("user", kx.user)
    return run(command or kx.command(*args), check=False, **{"env": kx.env(), **kwargs})


def refused(kx, *args, **kwargs):
    """Check that a start fails: status 1, nothing is mounted, and no process is left. Return the messages."""
    before = mounts().count(str(kx.mnt))
    p = attempt(kx, *args, **kwargs)
    assert p.returncode == 1, p
    assert p.stdout == "", p.stdout
    assert re.fullmatch(r"(kxfs: .*\n|fusermount3: .*\n)+", p.stderr), p.stderr
    assert mounts().count(str(kx.mnt)) == before
    return p.stderr


@contextlib.contextmanager
def background(kx, *args, **kwargs):
    """Start a daemon in the background, yield its process id, and end it afterwards."""
    p = attempt(kx, *args, **kwargs)
    assert p.returncode == 0, p.stderr
    pid = int(lock_file(kx.state)["pid"])
    try:
        yield pid
    finally:
        if alive(pid):
            kill(pid, signal.SIGTERM)
        wait_for(lambda: not alive(pid), what="the end of the daemon")


def started(kx, script="echo $$; exec sleep 1000", **fields):
    """Submit a job and wait until it runs. Return the job and the pid that it prints."""
    job = kx.submit(app(script, **fields))
    pid = job.pid()
    job.until("RUNNING")  # its output may arrive before its state
    return job, pid
