# SPDX-License-Identifier: MIT
"""On each class of path of the state directory, each call hangs or fails, one after the other. Work that does not
need the path continues. Work that fails reports that. When the disk recovers, everything is as before.

    KXFS_EVERY_CALL=all pytest test_every_call.py           each call with each error, twenty minutes
    KXFS_EVERY_CALL='mkdir /jobs' pytest test_every_call.py the cases whose text contains this
    pytest test_every_call.py --seed N                      choose different errors"""

import contextlib
import errno
import os
import pathlib
import random
import re
import signal
import subprocess
import threading
import time
import traceback
import zlib

import harness
import pytest
from disk import Disk

# --- A day ------------------------------------------------------------------------------------
# One day on a disk on which one call hangs or fails. One job prints, one is submitted, and one is cancelled. Two
# finished jobs are removed from jobs/ and from history/. Another job, called "other", is followed; no call on its files
# fails. While the call hangs, a user copies one more file and gives up. First, all calls of the mount on its state
# directory are recorded as (call, class of path). Then each of them hangs or fails, one after the other.

ERRORS = ("EIO", "ENOSPC", "EROFS", "EDQUOT", "ESTALE")
# The names of jobs and files whose calls fail; the job "other" is spared.
MINE = "(printed|submitted|interrupted|cancelled|removed|old)"
SEED = 1  # the errors are the same in each run, so that a new failure comes from a change; tests/soak/run chooses others
PARTS = 4  # the cases are divided into parts that run side by side; with a sanitizer, each run chooses two of them
# Calls that concern all jobs. Following the other job needs them, too.
OF_ALL = {("getattr", "/"), ("getattr", "/output")}


def class_of(path, spared):
    """Return PATH without the parts that differ between jobs. Return None if PATH belongs to the other job, whose
    folder is SPARED."""
    if "other" in path or spared in path:
        return None
    path = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "HEX", path)
    path = re.sub(rf"{MINE}(-[a-z0-9]+)?", "JOB", path)
    path = re.sub(r"(?<=fuse_hidden)[0-9a-f]+", "HEX", path)
    return re.sub(r"[0-9]+", "0", path)


def pattern_of(kind, spared):
    """Return a pattern for slow_disk.c that matches all paths of the class KIND, except those in the folder SPARED."""
    number = spared[:13]  # the beginning of the launch's UUID, which differs from all others
    others = "|".join(f"{number[:i]}[^{c}]" for i, c in enumerate(number))
    path = re.sub(r"[.~]", r"\\\g<0>", kind)
    for word, pattern in (("0", "[0-9]+"), ("HEX", f"({others})[0-9a-f-]*"), ("JOB", f"{MINE}(-[a-z0-9]+)?")):
        path = path.replace(word, pattern)
    return f"^{path}$"


class Follower(threading.Thread):
    """A thread that reads `follow` of a job to its end."""

    def __init__(self, job):
        super().__init__(daemon=True)
        self.job = job
        self.got = b""
        self.start()

    def run(self):
        with open(self.job / "main-0/follow", "rb", buffering=0) as f:
            while part := f.read(1 << 16):
                self.got += part

    def lines(self):
        return self.got.count(b"\n")


def counted(text):
    """Return how many lines TEXT has. They must be the numbers from 1 on, each once, in order."""
    lines = text.decode().splitlines(True)
    assert lines == [f"{i}\n" for i in range(1, len(lines) + 1)], text
    return len(lines)


def opened(read, *args):
    """Return READ(*ARGS), which reads a log. Retry if the open times out, because the output has not arrived within 10 s."""

    def tried():
        with contextlib.suppress(TimeoutError):
            return [read(*args)]
        return None
    return harness.wait_for(tried, what="the open of a log")[0]


class Day:
    """One round on the mount KX with its DISK. FAULT is (call, class, error, times), or None."""

    def __init__(self, kx, disk, number, fault):
        self.kx, self.disk, self.fault = kx, disk, fault
        self.number = number
        self.call, self.kind, self.error, self.times = fault or (None, None, 0, 0)

    # --- methods that a test for jobs of a cluster overrides ---

    def file(self, name):
        return self.kx.work / f"{name}-{self.number}"

    def text(self, name):
        """Return the AppDef of the job NAME. Two jobs count until they may end, one hangs, and all others print 1
        and end."""
        script = f"echo run >> {self.file(f'{name}.runs')}; echo 1"
        if name in ("printed", "other"):
            script = f"i=0; while [ ! -e {self.file(name)} ]; do i=$((i+1)); echo $i; sleep 0.05; done; echo $i > {self.file(name)}.n"
        elif name == "cancelled":
            script = "echo 1; exec sleep 1000"
        return harness.app(script, name=name)

    def let_go(self, job):
        self.file("printed" if job is self.printed else "other").touch()

    def count(self, job):
        """Return how far JOB, which has succeeded, has counted, even if its output is lost."""
        return int(pathlib.Path(f"{self.file('printed' if job is self.printed else 'other')}.n").read_text())

    def runs(self, name):
        """Return how often the job that was submitted today as NAME has run, whether or not its writer got a result."""
        with contextlib.suppress(FileNotFoundError):
            return self.file(f"{name}.runs").read_text().count("run")
        return 0

    def submit(self, name):
        return self.kx.submit(self.text(name), f"{name}-{self.number}.yaml")

    def start(self):
        names = ("removed", "old", "printed", "other", "cancelled")
        self.removed, self.old, self.printed, self.other, self.cancelled = map(self.submit, names)
        self.follower = Follower(self.other)
        for job in (self.printed, self.other, self.cancelled):
            job.until_logged("1\n")
        self.spared = harness.wait_for(lambda: self.kx.folder(self.other.id).exists() and self.kx.folder(self.other.id).name, what="its folder")
        for job in (self.removed, self.old):
            job.finish()
            harness.wait_for(lambda job=job: opened(job.read, "log") == "main/0 1\n", what="the merged log")
        harness.rmdir(self.old.dir)

    # --- the day ---

    def go(self):
        self.start()
        if self.fault:
            self.disk.hang(self.call, pattern_of(self.kind, self.spared), self.error, self.times)
        else:
            self.disk.record()
        copy, given_up = self.copy("submitted"), self.copy("interrupted")
        removed = {path: self.popen(["rmdir", path]) for path in (self.cancelled.dir, self.removed.dir, self.old.old)}
        cat = self.popen(["cat", self.printed / "main-0/log", self.printed / "log", self.printed / "app.yaml"])
        self.let_go(self.printed)
        self.all = [copy, given_up, cat, *removed.values()]
        with self.disk.still() if self.fault else contextlib.nullcontext():
            self.meanwhile(given_up)
        met = self.fault and self.disk.hangs("")
        if not self.fault:
            self.settle()
            self.found = self.pairs()
        self.disk.go_on()
        said = [p.communicate(timeout=harness.LIMIT)[1] for p in self.all]
        self.after_follow()
        self.after_submit("submitted", copy.returncode, said[0])
        self.after_submit("interrupted", given_up.returncode, said[1])
        for (path, p), text in zip(removed.items(), said[3:], strict=True):
            self.after_rmdir(path, p.returncode, text)
        self.after_print()
        self.after_all()
        return met

    def copy(self, name):
        """Return a process that copies the file NAME into submit/."""
        source = self.kx.base / f"{name}-{self.number}.yaml"
        source.write_text(self.text(name))
        return self.popen(["cp", source, self.kx / "submit" / source.name])

    def popen(self, cmd):
        return harness.popen(cmd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def settle(self):
        """Wait until delayed work, such as syncing, is done."""
        before, now = None, self.pairs()
        while now != before:
            time.sleep(2)
            before, now = now, self.pairs()

    def pairs(self):
        """Return all pairs (call, class of path) since `record()`."""
        found = {(call, class_of(path, self.spared)) for call, path in self.disk.calls()}
        return sorted(pair for pair in found if pair[1])

    def ended(self):
        return all(p.poll() is not None for p in self.all)

    def meanwhile(self, given_up):
        """While the call hangs or fails, other work continues, and a waiting process can give up."""
        end = time.monotonic() + 3
        while time.monotonic() < end and not (self.disk.hangs("") and (self.fault and not self.error or self.ended())):
            time.sleep(0.02)
        if self.fault and not self.error:
            begun = time.monotonic()
            given_up.send_signal(signal.SIGINT)
            given_up.wait(timeout=harness.LIMIT)
            # The interrupt takes 0.2 s on an idle machine. Without it, kxfs would answer a close after 30 s and an open
            # after 10 s.
            assert time.monotonic() - begun < 5, "an interrupt did not end cp"
        before = self.follower.lines()
        assert self.other.id in self.kx.call("ls jobs").stdout.split()
        assert self.kx.call(f"cat jobs/{self.other.id}/state").stdout == "RUNNING\n"
        assert self.kx.call("ls -l submit .kxfs jobs; cat .kxfs/log > /dev/null").returncode == 0
        if (self.call, self.kind) not in OF_ALL:
            harness.wait_for(lambda: self.follower.lines() >= before + 3, what="follow of another job")

    def after_follow(self):
        self.let_go(self.other)
        assert self.wait_over(self.other) == "SUCCEEDED", self.other.explain()
        self.follower.join(harness.LIMIT)
        assert not self.follower.is_alive(), "follow has no end"
        n = counted(self.follower.got)
        assert n == self.count(self.other)
        assert counted(opened(self.other.log)) == n
        assert opened(self.other.read, "log") == "".join(f"main/0 {i}\n" for i in range(1, n + 1))

    def after_all(self):
        again = self.submit("submitted")
        assert self.wait_over(again) == "SUCCEEDED", again.explain()
        again.until_logged("1\n")
        self.wait_merged(again)
        # kxfs retries every second to create the merged log.
        for job, state in ((self.cancelled, "CANCELLED"), (self.removed, "SUCCEEDED")):
            harness.wait_for(lambda job=job: opened((job.old / "log").read_bytes) == b"main/0 1\n", what="the merged log")
            assert (job.old / "state").read_text() == f"{state}\n"
            assert opened((job.old / "main-0/log").read_bytes) == b"1\n"
        harness.wait_for(lambda: "kxfs retries automatically" not in str(self.everything()), what="what the disk has refused")
        before = self.everything()
        self.kx.restart()
        after = self.everything()
        assert after == before, {key: (before.get(key), after.get(key)) for key in before | after
                                 if before.get(key) != after.get(key)}

    def wait_over(self, job):
        """Wait until JOB has ended, in jobs/ or in history/, and return its state."""
        return harness.wait_for(lambda: (state := job.state()) in harness.FINAL and state, what=f"the end of {job.id}")

    def said(self, job):
        """True if JOB has failed because of the fault, and its status says so."""
        replica = job.replica()
        return self.error and replica["reason"] in ("OutputLost", "StartError") and os.strerror(self.error) in replica["message"]

    def after_print(self):
        state = self.wait_over(self.printed)
        counted(opened(self.printed.log))
        assert state == "SUCCEEDED" or self.said(self.printed), self.printed.explain()
        if state == "SUCCEEDED":
            # If the disk refused output, kxfs fetches it again some seconds later.
            harness.wait_for(lambda: counted(opened(self.printed.log)) == self.count(self.printed) or self.said(self.printed),
                             what="all that it printed")
        self.wait_merged(self.printed)

    def wait_merged(self, job):
        """Wait until the merged log has all lines of JOB. If kxfs could not create it at first, it retries every
        second."""
        def merged():
            lines = opened(job.log).decode().splitlines(True)
            return opened(job.read, "log") == "".join(f"main/0 {line}" for line in lines)

        harness.wait_for(merged, what="the merged log")

    def verdict(self, name):
        """Return the result of a submission: (job, None), (None, error) or (None, None)."""
        with contextlib.suppress(FileNotFoundError):
            return self.kx.job_of(f"{name}-{self.number}.yaml"), None
        with contextlib.suppress(FileNotFoundError):
            return None, (self.kx / f"submit/{name}-{self.number}.yaml.error").read_text()
        return None, None

    def nothing_written(self, name):
        """True if the copied file is empty or missing, because the copying process gave up."""
        with contextlib.suppress(FileNotFoundError):
            return (self.kx / f"submit/{name}-{self.number}.yaml").stat().st_size == 0
        return True

    def after_submit(self, name, status, said):
        late = status == -signal.SIGINT or (status and "timed out" in said)
        if status == -signal.SIGINT:
            harness.wait_for(lambda: any(self.verdict(name)) or self.nothing_written(name), what="a verdict for nobody")
        elif late:
            harness.wait_for(lambda: any(self.verdict(name)), what="a verdict that comes late")
        job, error = self.verdict(name)
        assert bool(job) == (status == 0) or late, (status, said, error)
        if status == -signal.SIGINT and not job and not error:
            assert self.runs(name) == 0
            return
        if job:
            state = self.wait_over(job)
            assert (state == "SUCCEEDED" and self.runs(name) == 1) or (self.said(job) and self.runs(name) <= 1), job.explain()
            if state == "SUCCEEDED":
                harness.wait_for(lambda: opened(job.log) == b"1\n" or self.said(job), what="the log, or why it is not there")
            self.wait_merged(job)
            return
        assert self.fault and (said or late), said
        assert error, said
        if "After the next start of kxfs, jobs/ shows whether" in error:
            self.kx.restart()
            job, error = self.verdict(name)
            assert job or "nothing was launched" in error, error
        if job:
            self.wait_over(job)
        assert self.runs(name) == (1 if job else 0), error

    def after_rmdir(self, path, status, said):
        if status and "timed out" not in said:
            assert self.fault and self.error, said
            if path.exists():
                # kxfs keeps trying to end the job until the disk allows it.
                with contextlib.suppress(FileNotFoundError):
                    assert (path / "state").read_text() in (("RUNNING\n", "CANCELLED\n") if path == self.cancelled.dir else ("SUCCEEDED\n",))
                    harness.rmdir(path)
        if status:
            harness.wait_for(lambda: not path.exists(), what=f"{path} to go")
        assert not path.exists(), said

    def everything(self):
        """Return what the mount shows of today's jobs."""
        found = {}
        for place in ("jobs", "history"):
            for ident in sorted(os.listdir(self.kx / place)):
                if ident in ("list", "list.jsonl"):
                    continue
                where = self.kx / place / ident
                found[place, ident] = [opened((where / name).read_text) for name in ("state", "why", "log", "main-0/log")]
        return found

    def clean(self):
        """Remove everything that the next round does not need."""
        for place in ("jobs", "history"):
            for ident in os.listdir(self.kx / place):
                if ident not in ("list", "list.jsonl"):
                    harness.rmdir(self.kx / place / ident)
        for name in os.listdir(self.kx / "submit"):
            with contextlib.suppress(FileNotFoundError):
                os.remove(self.kx / "submit" / name)


def cases(pairs, seed, whole):
    """Return all faults for PAIRS. Each call hangs. If WHOLE, it also fails with each error, both once and every time.
    Otherwise one pair in ten fails with one error; SEED decides this for each pair separately."""
    found = [(*pair, 0, 0) for pair in pairs]
    for pair in pairs:
        errors = [(getattr(errno, name), times) for name in ERRORS for times in (0, 1)]
        rng = random.Random(f"{seed} {pair}")
        found += [(*pair, *error) for error in (errors if whole else rng.choices(errors, k=rng.random() < 0.1))]
    return found


def text_of(case):
    call, kind, error, times = case
    return f"{call} {kind}: " + (errno.errorcode[error] + (" once" if times else "") if error else "hangs")


class Mounts:
    """A mount on a slow disk, which is replaced by a new one if the last round failed."""

    def __init__(self, make, day):
        self.make, self.new_day = make, day
        self.kx = None
        self.days = 0

    def day(self, fault):
        if not self.kx:
            self.kx = self.make()
            self.disk = Disk(self.kx)
            self.kx.start()
        self.days += 1
        return self.new_day(self.kx, self.disk, self.days, fault)

    def end(self):
        if not self.kx:
            return
        self.disk.go_on()
        try:
            if self.kx.proc:
                self.kx.end()
        finally:
            self.disk.close()
            self.kx = None


def each(mounts, part, seed):
    """Run all cases of PART."""
    which = os.environ.get("KXFS_EVERY_CALL", "")
    seed = SEED if seed is None else seed
    wrong, unmet = [], []
    try:
        day = mounts.day(None)
        day.go()
        day.clean()
        # Each part records its own day, and the days may have different calls. But a call always belongs to the same
        # part.
        pairs = [pair for pair in day.found if zlib.crc32(" ".join(pair).encode()) % PARTS == part]
        found = cases(pairs, seed, bool(which))
        found = [case for case in found if which in ("", "all") or which in text_of(case)]
        print(f"seed {seed}: {len(day.found)} calls, {len(found)} cases")
        for case in found:
            begun = time.monotonic()
            day = mounts.day(case)
            try:
                if not day.go():
                    unmet.append(text_of(case))
                day.clean()
            except (AssertionError, OSError):
                wrong.append(f"{text_of(case)}\n{traceback.format_exc()}")
                print(wrong[-1], day.kx.said()[-3000:])
                mounts.end()
            print(f"{text_of(case)}: {time.monotonic() - begun:.1f} s", flush=True)
    finally:
        mounts.end()
    print("not met:", unmet)
    assert not wrong, f"seed {seed}: {len(wrong)} of {len(found)}\n" + "\n".join(wrong)
    assert len(unmet) * 10 <= len(found), f"seed {seed}: what was broken was not called: {unmet}"


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(PARTS))
def test_each(make_kx, request, part):
    each(Mounts(lambda: make_kx(start=False), Day), part, request.config.getoption("--seed"))
