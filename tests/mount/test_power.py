# SPDX-License-Identifier: MIT
"""Power cuts under a mount whose STATE is a disk of its own. At some moment nothing of kxfs, its helpers and its jobs does a
further step; what the disk has by then is copied, all of it ends, and the copy is mounted, so that the kernel replays the
journal. Then the next kxfs, in another run of the machine, keeps what the one before it had promised:

    a user whose file was accepted              has one job of it
    a user who saw how a job has ended          sees the same
    a program whose end was seen                is not started again, and others by a start of the machine once
    a log                                       is what was printed, up to some byte

    KXFS_TEST_POWER_CUTS=N pytest test_power.py --seed N          so many power cuts, from that seed
"""

import collections
import contextlib
import os
import pathlib
import random
import shutil
import signal
import threading
import time
import uuid

import harness
from harness import FINAL, app, marked_pids, run, wait_for
from lacking import need
from preload import preload

CUTS = int(os.environ.get("KXFS_TEST_POWER_CUTS", "6"))
WRITERS = 3
IMAGE_MB = 32
PRINTED = b"one\ntwo\n"

# Processes that read the machine's boot id get KXFS_TEST_BOOT.
BOOT = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static int open_as(const char *name, const char *path, int flags, mode_t mode)
{
	int (*real)(const char *, int, mode_t) = (int (*)(const char *, int, mode_t))dlsym(RTLD_NEXT, name);

	return real(strcmp(path, "/proc/sys/kernel/random/boot_id") ? path : getenv("KXFS_TEST_BOOT"), flags, mode);
}

int open(const char *path, int flags, mode_t mode)
{
	return open_as("open", path, flags, mode);
}

int open64(const char *path, int flags, mode_t mode)
{
	return open_as("open64", path, flags, mode);
}
"""


class Machine:
    """A disk with STATE, and the mount on it; the power is cut repeatedly."""

    def __init__(self, make_kx):
        self.kx = make_kx(start=False)
        self.image, self.copy = self.kx.base / "disk.img", self.kx.base / "copy.img"
        self.disk, self.boot = self.kx.base / "disk", self.kx.base / "boot"
        (self.kx.base / "lib").mkdir()
        self.kx.more_env = preload(self.kx.base / "lib", BOOT, KXFS_TEST_BOOT=self.boot)
        self.kx.state = self.disk / "state"
        self.disk.mkdir()
        with open(self.image, "wb") as file:
            file.truncate(IMAGE_MB << 20)
        run(["mkfs.ext4", "-q", "-F", self.image])
        self.power_on()
        self.kx.state.mkdir(mode=0o700)
        run(["sync", "-f", self.disk])
        self.kx.start()

    def power_on(self):
        self.boot.write_text(f"{uuid.uuid4()}\n")
        run(["mount", "-o", "loop", self.image, self.disk])
        (source,) = [line.split()[0] for line in pathlib.Path("/proc/self/mounts").read_text().splitlines()
                     if line.split()[1] == str(self.disk)]
        self.counts = pathlib.Path("/sys/block", os.path.basename(source), "stat")

    def written(self):
        """Return how often the disk was written and flushed, and how many writes are in progress."""
        counts = self.counts.read_text().split()
        return counts[4], counts[15], counts[8]

    def snapshot(self):
        """Return the disk as it is between two writes."""
        def copied():
            before = self.written()
            shutil.copyfile(self.image, self.copy)
            return before[2] == "0" and self.written() == before
        wait_for(copied, what="a moment in which the disk is not written")

    def cut(self):
        """Cut the power, and restore it."""
        for sig in (signal.SIGSTOP, signal.SIGKILL):
            while pids := [pid for pid in marked_pids() if not (sig == signal.SIGSTOP and is_stopped(pid))]:
                for pid in pids:
                    harness.kill_marked(pid, harness.MARK) if sig == signal.SIGKILL else harness.kill(pid, sig)
                time.sleep(0.002)
            if sig == signal.SIGSTOP:
                self.snapshot()
        self.kx.end(signal.SIGKILL)
        self.kx.abort()
        wait_for(lambda: run(["umount", self.disk], check=False).returncode == 0, what="the disk to be free")
        self.copy.replace(self.image)
        self.power_on()

    def close(self):
        if self.kx.proc:
            self.kx.end(signal.SIGKILL)
        self.kx.abort()
        harness.end_marked(patience=0)
        if os.path.ismount(self.disk):
            run(["umount", "-l", self.disk])


def is_stopped(pid):
    """True if none of its threads runs any more."""
    states = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            states.append(pathlib.Path(f"/proc/{pid}/task/{task}/stat").read_text().rpartition(")")[2].split()[0])
    return all(state in "TtZXD" for state in states)  # D: in a call of the disk, or until a child that is stopped goes on


class Told:
    """What users did, and what they observed."""

    def __init__(self, kx, chance):
        self.kx, self.chance = kx, chance
        self.lock = threading.Lock()
        self.count = 0
        self.asked = set()  # names of apps
        self.accepted = set()
        self.ended = {}  # the state, by job
        self.ran = collections.Counter()  # how often each was started until the last cut

    def submit(self, rng):
        with self.lock:
            self.count += 1
            name = f"j{self.count}"
            self.asked.add(name)
        script = f"echo {name} >> ran; echo one; echo two; " + rng.choice(("true", "exit 3", "sleep 0.1", "exec sleep 0.3"))
        self.kx.write(f"submit/{name}.yaml", app(script, name=name))
        self.accepted.add(name)

    def look(self, rng):
        ident = rng.choice(self.kx.ls("jobs"))
        state = (self.kx / "jobs" / ident / "state").read_text().strip()
        if state in FINAL:
            self.ended[ident] = state

    def starts(self):
        ran = self.kx.work / "ran"
        return collections.Counter(ran.read_text().split() if ran.exists() else [])

    def user(self, seed, until):
        rng = random.Random(seed)
        while time.monotonic() < until:
            time.sleep(rng.uniform(0, 0.05))
            try:
                rng.choice((self.submit, self.look))(rng)
            except (OSError, IndexError):  # the power is cut, or there is no job yet
                if not self.kx.proc:
                    return

    def check(self):
        """Check after a start, or before a cut."""
        kx = self.kx
        jobs = {job.id: job for job in kx.jobs()}
        for ident, state in self.ended.items():
            assert ident in jobs, f"{ident}, which was {state}, is gone"
            assert jobs[ident].state() == state, f"{ident} was {state}, and is {jobs[ident].state()} now"
        apps = [job.status()["app"] for job in jobs.values()]
        assert len(apps) == len(set(apps)), "two jobs of one file"
        assert self.accepted <= set(apps), f"accepted, and not there: {self.accepted - set(apps)}"
        assert set(apps) <= self.asked
        links = {name.removesuffix(".yaml.job") for name in kx.ls("submit") if name.endswith(".job")}
        assert self.accepted <= links, f"accepted, and without a verdict: {self.accepted - links}"
        seen = {ident.rpartition("-")[0] for ident in self.ended}
        ran = self.starts() - self.ran
        assert not seen & set(ran), f"started again after its end: {seen & set(ran)}"
        assert max(ran.values(), default=0) <= 1, f"started twice: {ran}"
        for job in jobs.values():
            assert PRINTED.startswith(job.log()), f"{job.id}: {job.log()!r}"


def test_power_cuts(make_kx, pytestconfig):
    need("loop devices", os.path.exists(run(["losetup", "--find"], check=False).stdout.strip()))
    seed = pytestconfig.getoption("--seed") or random.randrange(1 << 32)
    print(f"seed {seed}, {CUTS} power cuts")
    machine = Machine(make_kx)
    try:
        kx, told = machine.kx, Told(machine.kx, random.Random(seed))
        for n in range(CUTS):
            rng = random.Random(f"{seed} {n}")
            threads = [threading.Thread(target=told.user, args=(f"{seed} {n} {i}", time.monotonic() + harness.LIMIT))
                       for i in range(WRITERS)]
            for thread in threads:
                thread.start()
            time.sleep(rng.uniform(0, 0.6))
            machine.cut()
            for thread in threads:
                thread.join()
            told.ran = told.starts()
            kx.start()
            told.check()
        for job in kx.jobs():
            job.until(*FINAL)
        told.check()
        assert kx.end() == 0, kx.said()
    finally:
        machine.close()
