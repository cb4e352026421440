# SPDX-License-Identifier: MIT
"""Starts the daemon in all ways, for test_life.py and others."""

import contextlib
import pathlib
import re
import signal

from harness import alive, app, kill, mounts, run, wait_for


def lock_file(state):
    """Return {"pid": ..., "phase": ..., "mountpoint": ...} of a state directory."""
    text = pathlib.Path(state, "lock").read_text()
    return dict(line.split(" ", 1) for line in text.splitlines())


def attempt(kx, *args, command=None, **kwargs):
    """Run the command line as a user does: in the background, and wait for it."""
    kwargs.setdefault("cwd", kx.work)
    kwargs.setdefault("user", kx.user)
    return run(command or kx.command(*args), check=False, **{"env": kx.env(), **kwargs})


def refused(kx, *args, **kwargs):
    """The start fails: status 1, nothing mounted, no process left. Return its messages."""
    before = mounts().count(str(kx.mnt))
    p = attempt(kx, *args, **kwargs)
    assert p.returncode == 1, p
    assert p.stdout == "", p.stdout
    assert re.fullmatch(r"(kxfs: .*\n|fusermount3: .*\n)+", p.stderr), p.stderr
    assert mounts().count(str(kx.mnt)) == before
    return p.stderr


@contextlib.contextmanager
def background(kx, *args, **kwargs):
    """Start a daemon in the background; yield its process id; end it."""
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
    """Submit a job, wait until it runs, and return it with its process."""
    job = kx.submit(app(script, **fields))
    job.until_logged("\n")
    job.until("RUNNING")  # output may be there first
    return job, int(job.log().split()[0])
