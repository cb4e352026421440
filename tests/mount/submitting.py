# SPDX-License-Identifier: MIT
"""Common code of the tests of submit/: documents, counting launches, and a mount with the backend
slow_kxfs.c. Each document determines when and how that backend answers it."""

import contextlib
import os
import pathlib
import signal
import subprocess

import harness

GOOD = harness.app("true") + "\n"
BAD = '{"name": "app", "nonsense": 1}\n'


def asking(*lines):
    """Return a document with LINES as YAML comments. slow_kxfs.c describes the lines that it
    obeys."""
    return "".join(f"# {line}\n" for line in lines) + "name: app\nroles: []\n"


class Slow(harness.Kxfs):
    """A mount of slow_kxfs.c."""

    def command(self, *args):
        del args
        return [self.binary, str(self.mnt), str(self.state), *self.args]

    def start(self):
        with open(self.messages, "ab") as err:
            self.proc = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=err,
                                         stderr=err, env=self.env(), start_new_session=True,
                                         **self.identity())
        harness.wait_for(lambda: harness.is_mounted(self.mnt), what="the mount")
        self.call("test -e submit")
        return self

    def answer(self):
        """Let slow_kxfs answer the documents that it holds."""
        harness.kill(self.pid, signal.SIGUSR2)


def slow_binary():
    """Return the path of slow_kxfs in the build of the tested program."""
    program = pathlib.Path(os.environ.get("KXFS_BINARY", harness.ROOT / "build/fs/kxfs"))
    return program.parents[1] / "tests/mount/slow_kxfs"


def launched(kx):
    """Return the ids of all existing jobs."""
    ids = set(kx.ls("jobs"))
    with contextlib.suppress(FileNotFoundError):
        ids |= set(kx.history())
    return ids


def job_of(kx, name):
    """Return the id of the job to which NAME.job points, or None."""
    try:
        return os.path.basename(os.readlink(kx / f"submit/{name}.job"))
    except FileNotFoundError:
        return None


def error_of(kx, name):
    try:
        return kx.read(f"submit/{name}.error")
    except FileNotFoundError:
        return None


def launched_once(kx, name, before=()):
    """Check that exactly one job was launched since BEFORE: the job of NAME, which has no error."""
    harness.wait_for(lambda: job_of(kx, name) not in (None, *before) or error_of(kx, name),
                     what=f"the verdict on {name}")
    assert error_of(kx, name) is None
    assert launched(kx) - set(before) == {job_of(kx, name)}


def refused(kx, name, text=""):
    """Check that no job was launched, and that NAME.error contains TEXT."""
    harness.wait_for(lambda: error_of(kx, name), what=f"{name}.error")
    assert text in error_of(kx, name)
    assert not launched(kx)
    assert job_of(kx, name) is None


def put(kx, name, text):
    """Write TEXT to NAME as cp does. Return the name of the errno, or "" on success."""
    return harness.err_of(kx.write, f"submit/{name}", text)
