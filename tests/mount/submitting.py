# SPDX-License-Identifier: MIT
"""What the tests of submit/ share: documents, counting launches, and a mount whose backend is
slow_kxfs.c, which answers as late and as badly as a document asks for."""

import contextlib
import os
import pathlib
import signal
import subprocess

import harness

GOOD = harness.app("true") + "\n"
BAD = '{"name": "app", "nonsense": 1}\n'


def asking(*lines):
    """A document for slow_kxfs: YAML with LINES as comments."""
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
        """Answer what is held."""
        harness.kill(self.pid, signal.SIGUSR2)


def slow_binary():
    """Beside the program that is tested."""
    program = pathlib.Path(os.environ.get("KXFS_BINARY", harness.ROOT / "build/fs/kxfs"))
    return program.parents[1] / "tests/mount/slow_kxfs"


def launched(kx):
    """The ids of all jobs that there are."""
    ids = set(kx.ls("jobs"))
    with contextlib.suppress(FileNotFoundError):
        ids |= set(kx.history())
    return ids


def job_of(kx, name):
    """The id that NAME.job points at; None: there is no such link."""
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
    """Exactly one job has come since BEFORE: that of NAME, which has no error."""
    harness.wait_for(lambda: job_of(kx, name) not in (None, *before) or error_of(kx, name),
                     what=f"the verdict on {name}")
    assert error_of(kx, name) is None
    assert launched(kx) - set(before) == {job_of(kx, name)}


def refused(kx, name, text=""):
    """No job was launched, and NAME.error says TEXT."""
    harness.wait_for(lambda: error_of(kx, name), what=f"{name}.error")
    assert text in error_of(kx, name)
    assert not launched(kx)
    assert job_of(kx, name) is None


def put(kx, name, text):
    """The errno name of writing TEXT as NAME, as cp does ("": it worked)."""
    return harness.err_of(kx.write, f"submit/{name}", text)
