# SPDX-License-Identifier: MIT
"""The state directory after damage and after power cuts."""

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
from harness import FINAL, alive, app, err_of, kill, marked_pids, rmdir, run, wait_for
from lacking import need
from preload import preload

# --- Damage -----------------------------------------------------------------------------------
# A disk or a user damages the state directory, between two mounts or during one. A start shows everything that is
# intact. It never starts a program again, and it reports what it can't read. Or the start fails with a message that
# names the damaged file.
#
#     KXFS_TEST_DAMAGES=N pytest test_damage.py --seed N          test N damaged states, from that seed on

DAMAGES = os.environ.get("KXFS_TEST_DAMAGES")
SEED = 1  # each run tests the same states, unless `--seed` selects others

# Each script records that it has begun. WAITS then waits.
RAN = "echo $KXFS_JOB >> ran; echo one; echo two"
WAITS = f"echo $$ > pid; {RAN}; exec sleep 1000"


class State:
    """A state directory with jobs that have ended in all possible ways, and copies of it."""

    def __init__(self, kx):
        self.kx = kx
        self.kept = kx.base / "kept"
        jobs = [kx.submit(app(text, **more), f"{name}.yaml") for name, text, more in (
            ("done", RAN, {}), ("failed", f"{RAN}; exit 3", {"max_retries": 1}), ("two", RAN, {"num_replicas": 2}),
            ("old", RAN, {}))]
        assert err_of(kx.submit, "name: x\n", "bad.yaml") == "EINVAL"
        for job in jobs:
            job.until(*FINAL)
            wait_for(lambda job=job: job.read("log").count("main/0 two\n") == 1 + (job is jobs[1]), what="the merged log")
        rmdir(jobs[-1].dir)
        self.ended = [job.id for job in jobs]
        self.shown = {ident: self.show(ident) for ident in self.ended}
        self.names = {kx.folder(ident).name: ident for ident in self.ended}
        kx.end()
        shutil.copytree(kx.state, self.kept, symlinks=True)
        self.ran = self.starts()

    def starts(self):
        return sorted((self.kx.work / "ran").read_text().split())

    def show(self, ident):
        """Return everything that the mount shows of job IDENT, or None."""
        for place in ("jobs", "history"):
            where = self.kx / place / ident
            if where.exists():
                return place, *((where / name).read_text() for name in ("state", "why", "log", "app.yaml", "main-0/log"))
        return None

    def fresh(self):
        """Restore the undamaged state."""
        def gone():
            shutil.rmtree(self.kx.state, ignore_errors=True)  # a helper that is about to end may still create a file
            return not self.kx.state.exists()
        wait_for(gone, what="the state to be gone")
        shutil.copytree(self.kept, self.kx.state, symlinks=True)

    def some(self, n, chance):
        """Choose N files or directories of the state directory at random; each kind is equally likely. Omit the
        lock, which does not matter, and files that are being written, which soon disappear."""
        kinds = {}
        for path in sorted(self.kx.state.rglob("*")):
            if path.name != "lock" and not path.name.endswith(".new") and not path.is_socket():
                kind = path.relative_to(self.kx.state).parts
                kinds.setdefault((kind[0], len(kind), kind[2:3]), []).append(path)
        return [chance.choice(kinds[kind]) for kind in chance.sample(sorted(kinds), n)]


def damage(path, chance):
    """Damage PATH. Return a description."""
    def bits(text):
        at = chance.randrange(len(text))
        return text[:at] + bytes([text[at] ^ 1 << chance.randrange(8)]) + text[at + 1:]

    def other(text):
        at, n = chance.randrange(len(text)), chance.randrange(1, 64)
        return text[:at] + chance.choice([b"", bytes(n), chance.randbytes(n), text[at:at + n] * 2, b"9" * n]) + text[at + n:]

    ways = {"removed": None, "moved": None, "a directory": None}
    if path.is_file() and path.stat().st_size:
        ways |= {"cut": lambda text: text[:chance.randrange(len(text))], "empty": lambda _: b"", "bits": bits, "other": other,
                 "zeros": lambda text: bytes(len(text)), "longer": lambda text: text + chance.randbytes(4096)}
    way = chance.choice(list(ways))
    if ways[way]:
        path.write_bytes(ways[way](path.read_bytes()))
    else:
        path.rename(path.with_name(f"{path.name}{chance.randrange(10)}")) if way == "moved" else remove(path)
        if way == "a directory":
            path.mkdir()
    return f"{path.name}: {way}"


def remove(path):
    """Remove the directory PATH, to which a mount may still be writing."""
    def gone():
        shutil.rmtree(path, ignore_errors=True)
        return not path.exists()
    wait_for(gone, what=f"{path.name} to be gone") if path.is_dir() else path.unlink()


def start(kx):
    """Return true if kxfs was mounted. Return false if it has named the error and exited."""
    before = len(kx.said())
    try:
        kx.start()
    except AssertionError as e:
        assert str(e).startswith("kxfs ended with 1:") and str(kx.state) in kx.said()[before:], e
        return False
    return True


def look(kx):
    """List all files and read them; a damaged file may fail with an error."""
    kx.call("ls -lR . > /dev/null; cat .kxfs/* submit/* jobs/*/*/log* history/*/*/log* > /dev/null 2>&1; true")


def is_over(job):
    """True if JOB has ended or does not exist, so that nothing of it will be started again."""
    with contextlib.suppress(OSError):
        return job.state() in FINAL
    return True


def one(kx, state, chance, done):
    """Test one damaged state, and append a description of the damage to DONE."""
    state.fresh()
    running = None
    if chance.random() < 0.5:
        kx.start()
        running = kx.submit(app(WAITS), "running.yaml")
        running.until_logged("one\ntwo\n")
        pid = int((kx.work / "pid").read_text())
        done.append("mounted")
    names = state.names | ({kx.folder(running.id).name: running.id} if running else {})
    hurt = set()
    for path in state.some(chance.choice((1, 1, 1, 2, 4)), chance):
        if os.path.lexists(path):
            top, *rest = path.relative_to(kx.state).parts
            keys = [name.lstrip(".").removesuffix(".room").removesuffix(".new") for name in rest[:1] or names]
            hurt |= {names.get(key, top) for key in keys} if top in ("jobs", "output") else {top}
            done.append(f"{path.relative_to(kx.state)}: {damage(path, chance)}")
    new = []
    if running:
        look(kx)
        with contextlib.suppress(OSError):
            new.append(kx.submit(app(RAN), "under.yaml"))
        kx.end(signal.SIGKILL)
    mounted = start(kx)
    if mounted:
        for ident in set(state.ended) - hurt:
            assert state.show(ident) == state.shown[ident], ident
        look(kx)
        if running and running.id not in hurt:
            assert running.state() == "RUNNING" and running.log() == b"one\ntwo\n"
            rmdir(running.dir)
        if not hurt & {"jobs", "output", "submit"}:
            new.append(kx.submit(app(RAN), "new.yaml"))
            new[-1].finish()
            assert new[-1].log() == b"one\ntwo\n"
        wait_for(lambda: all(map(is_over, new)), what="what was launched before to end")
        assert kx.end() == 0, kx.said()
    kx.abort()
    if running:
        # Processes of a job whose record is damaged continue. Their helper waits for a mount that knows the job, so end
        # it.
        for helper in [pid, *kx.helpers()] if running.id in hurt or not mounted else []:
            kill(helper)
        wait_for(lambda: mounted or not kx.helpers(), what="the helpers to end")
        wait_for(lambda: not alive(pid), what="what ran to end")
    ran = state.starts()
    (kx.work / "ran").write_text("".join(f"{ident}\n" for ident in state.ran))
    more = sorted([*state.ran, *(job.id for job in new), *([running.id] if running else [])])
    # Nothing runs twice. A damaged directory may have prevented the helper of a new job from starting.
    missing = collections.Counter(more) - collections.Counter(ran)
    assert collections.Counter(ran) <= collections.Counter(more), (ran, more)
    assert missing <= collections.Counter(job.id for job in new), (ran, more)


def test_damaged_state(kx, request, sanitized):
    seed = request.config.getoption("--seed") or SEED
    damages = int(DAMAGES or (15 if sanitized else 30))
    print(f"seed {seed}, {damages} damaged states")
    state = State(kx)
    for n in range(damages):
        done = []
        try:
            one(kx, state, random.Random(f"{seed} {n}"), done)
        except Exception as e:
            raise AssertionError(f"--seed {seed}, state {n}: {e!r}\n{done}\n{kx.said()[-3000:]}") from e
    state.fresh()
    kx.start()


# --- Power cuts -------------------------------------------------------------------------------
# Power cuts under a mount whose STATE is a disk of its own. At a random moment the test stops kxfs, its helpers and its
# jobs, and copies the disk. Then it ends all these processes and mounts the copy, so that the kernel replays the
# journal. The next kxfs runs as if the machine had booted again, and must keep what the earlier one had promised:
#
#     a user whose file was accepted              has exactly one job from it
#     a user who saw how a job has ended          sees the same
#     a program that a user saw end               is not started again; other programs are started once after each boot
#     a log                                       has the beginning of what the program printed, perhaps all of it
#
#     KXFS_TEST_POWER_CUTS=N pytest test_damage.py --seed N          test N power cuts, from that seed on

CUTS = int(os.environ.get("KXFS_TEST_POWER_CUTS", "6"))
WRITERS = 3
IMAGE_MB = 32
PRINTED = b"one\ntwo\n"

# Processes that read the machine's boot id get KXFS_TEST_BOOT instead.
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
    """A disk with STATE, and a mount that uses it. The test cuts its power repeatedly."""

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
        """Return how often the disk was written and how often it was flushed, and the number of writes in progress."""
        counts = self.counts.read_text().split()
        return counts[4], counts[15], counts[8]

    def snapshot(self):
        """Copy the disk at a moment at which no write is in progress."""
        def copied():
            before = self.written()
            shutil.copyfile(self.image, self.copy)
            return before[2] == "0" and self.written() == before
        wait_for(copied, what="a moment in which the disk is not written")

    def cut(self):
        """Cut the power of the machine, and boot it again."""
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
    """True if no thread of PID runs any more."""
    states = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            states.append(pathlib.Path(f"/proc/{pid}/task/{task}/stat").read_text().rpartition(")")[2].split()[0])
    return all(state in "TtZXD" for state in states)  # D: the thread waits for the disk, or for a child that is stopped


class Told:
    """What users did, and what they saw."""

    def __init__(self, kx, chance):
        self.kx, self.chance = kx, chance
        self.lock = threading.Lock()
        self.count = 0
        self.asked = set()  # names of the apps that users have submitted
        self.accepted = set()
        self.ended = {}  # the final state of each job that has ended
        self.ran = collections.Counter()  # how often each program was started before the last cut

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
        """Check all promises, after a start or before a cut."""
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
