# SPDX-License-Identifier: MIT
"""A disk that hangs or fails where a test requests it, for the state directory of a mount or for files of its jobs."""

import contextlib
import itertools
import os
import pathlib
import threading

import harness


class Disk:
    """The directory WHERE (default: the state directory of a mount) on a disk of slow_disk.c."""

    def __init__(self, kx, where=None):
        program = pathlib.Path(os.environ.get("KXFS_BINARY", harness.ROOT / "build/fs/kxfs"))
        (kx.base / "disk").mkdir(mode=0o700)
        self.where = where or kx.state
        self.which = kx.base / "hang"
        self.told = kx.base / "hang.told"
        self.seen = kx.base / "hang.seen"
        self.serial = itertools.count(1)
        self.proc = harness.popen([program.parents[1] / "tests/mount/slow_disk", kx.base / "disk",
                                   self.which, self.where])
        harness.wait_for(lambda: os.path.ismount(self.where), what="the disk")

    def hang(self, call, part, error=0, times=0):
        """From now on, each CALL ("one|another" for several) on a path that matches PART fails with
        ERROR, or hangs if ERROR is 0. At most TIMES calls are affected; 0: no limit."""
        new = self.which.with_suffix(".new")
        new.write_text(f"^({call})$ {part} {error} {times} {next(self.serial)}\n")
        self.told.unlink(missing_ok=True)
        new.rename(self.which)

    def hangs(self, part):
        """True if a call on a path that contains PART hangs now."""
        with contextlib.suppress(FileNotFoundError):
            return any(part in line for line in self.told.read_text().splitlines())
        return False

    def go_on(self):
        self.which.unlink(missing_ok=True)

    def calls(self):
        """Return all calls since `record()` as (call, path)."""
        return [tuple(line.split(" ", 1)) for line in self.seen.read_text().splitlines()]

    def record(self):
        self.seen.write_text("")

    @contextlib.contextmanager
    def still(self):
        """A `with` block during which the disk hangs, as hang() has requested. After a limited time
        the disk recovers anyway, because calls on a hanging disk can't be interrupted."""
        timer = threading.Timer(harness.LIMIT / 2, self.go_on)
        timer.start()
        try:
            yield
            assert self.which.exists(), "nothing went on before the disk did"
        finally:
            timer.cancel()

    def close(self):
        self.go_on()
        harness.run(["umount", "-l", self.where])
        # Terminate the disk, because another mount namespace, such as a container's, may keep its mount alive.
        self.proc.terminate()
        self.proc.wait(timeout=harness.LIMIT)


@contextlib.contextmanager
def started(kx):
    """Yield (KX, its disk). KX is started with its state directory on that disk."""
    disk = Disk(kx)
    try:
        yield kx.start(), disk
    finally:
        disk.go_on()
        try:
            if kx.proc:
                kx.end()
        finally:
            disk.close()
