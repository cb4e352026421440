# SPDX-License-Identifier: MIT
"""The state directory of a mount of a cluster: what it keeps, damaged files, and a disk that hangs or fails."""

import contextlib
import datetime
import functools
import json
import os
import shutil
import signal
import threading

import harness
import pytest
import replies
import store as st
import watching
from disk import started
from test_every_call import PARTS, Day, Mounts, each

# --- History, and damaged files ---------------------------------------------------------------
# What the state directory keeps of a cluster's jobs: history, and the undamaged rest after files were damaged.

APP = harness.app("true")


def printed(kx, volcano, text):
    """Submit a job, let it run and print TEXT. Return (job, its pod)."""
    job = kx.submit(APP)
    (pod,) = volcano.start(job.id)
    volcano.log(pod).append(text)
    job.until_logged(text)
    return job, pod


@contextlib.contextmanager
def small_disk(make_mount, server):
    """A mount whose state directory has space for one megabyte. The mount ends with the `with`
    block."""
    kx = make_mount(server, start=False)
    harness.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "kxfs-test", str(kx.state)])
    try:
        yield kx.start()
        assert kx.end() == 0
    finally:
        if kx.proc:
            kx.end()
        harness.run(["umount", "-l", str(kx.state)])


def is_settled(kx, job):
    """True if the record of JOB, a removed job, shows the ends of its pod and of its log."""
    path = kx.record(job.id)
    head = json.loads(path.read_bytes().split(b"\n")[1]) if path.exists() else {}
    (replica,) = head.get("snapshot", {}).get("replicas", [{}])
    return replica.get("reason") == "Deleted" and all(log["complete"] or log["gap"] for log in replica["logs"])


def cancelled(kx, volcano, text):
    """Return a removed job that is in history/ with all of its output and its final data."""
    job, _ = printed(kx, volcano, text)
    job.cancel()
    harness.wait_for(lambda: job.id in kx.history())
    harness.wait_for(lambda: is_settled(kx, job), what="the last record")
    harness.wait_for(lambda: (job.old / "log").read_text().count("\n") == text.count("\n"))
    harness.wait_for(lambda: not (kx.folder(job.id) / "unmerged").exists(), what="the merged log on disk")
    return job


def test_record_is_not_rewritten(kx, server, volcano):
    """The next start, and a lost connection, leave the record of a finished job as it is."""
    job, pod = printed(kx, volcano, "one\n")
    volcano.finish_all([pod])
    job.finish()
    harness.wait_for(lambda: kx.read("jobs", job.id, "log") == "main/0 one\n")
    kx.restart()
    harness.wait_for(lambda: "connected: true" in kx.read(".kxfs/info"))
    assert kx.end() == 0
    before = kx.record(job.id).stat()
    kx.start()
    for word, change in (("true", lambda: None), ("false", server.away), ("true", server.back)):
        change()
        harness.wait_for(lambda word=word: f"connected: {word}" in kx.read(".kxfs/info"))
    assert job.state() == "SUCCEEDED"
    assert kx.end() == 0
    after = kx.record(job.id).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def files(top):
    """Return the bytes of a job's files that don't change by themselves, or the errno of each file that can't be
    read."""
    return {name: harness.err_of((top / name).read_bytes) or (top / name).read_bytes() for name in
            ("state", "status", "status.json", "why", "manifest.yaml", "app.yaml", "main-0/log", "log")}


def test_history(kx, volcano):
    """A removed job keeps its logs and its last state, even after a crash, until it is removed from history/."""
    job, pod = printed(kx, volcano, "hello\n")
    app = job.read("app.yaml")
    volcano.log(pod).append("bye\n")
    job.cancel()
    harness.wait_for(lambda: (job.old / "main-0/log").read_bytes() == b"hello\nbye\n")
    later, _ = printed(kx, volcano, "later\n")
    harness.wait_for(lambda: is_settled(kx, job), what="the last record")  # then all events of the job and its pod have arrived
    before = harness.wait_for(lambda: (job.old / "state").read_text() == "CANCELLED\n" and files(job.old))
    assert before["app.yaml"].decode() == app == APP and f"name: {job.id}".encode() in before["manifest.yaml"]
    assert before["log"] == b"main/0 hello\nmain/0 bye\n" and before["why"]
    blocking = {name: (job.old / name).read_bytes() for name in ("wait", "live/wait", "follow", "main-0/live/follow")}
    assert blocking == {"wait": before["state"], "live/wait": before["state"], "follow": before["log"],
                        "main-0/live/follow": before["main-0/log"]}
    folder = kx.folder(job.id)
    record = kx.record(job.id)
    harness.wait_for(lambda: record.exists() and '"CANCELLED"' in record.read_text())
    for sig in (signal.SIGTERM, signal.SIGKILL):
        kx.end(sig)
        kx.start()
        assert files(job.old) == before
        assert {name: (job.old / name).read_bytes() for name in blocking} == blocking
    harness.remove(job.old)
    assert kx.history() == []
    harness.wait_for(lambda: not folder.exists() and not record.exists())
    kx.restart()
    assert kx.history() == [] and kx.ls("jobs") == [later.id]


def test_removed_at_once(kx):
    """A job that is removed right after its launch leaves no files from which a start after a crash would create its
    folder again."""
    job = kx.submit(APP)
    with contextlib.suppress(TimeoutError):  # after 3 s; the removal continues
        os.rmdir(job.dir)
    harness.wait_for(lambda: not kx.record(job.id).exists(), what="its record to go")
    kx.end(signal.SIGKILL)
    assert os.listdir(kx.state / "jobs") == []
    assert all(name.startswith(".removed-") for name in os.listdir(kx.state / "output"))  # the kill has interrupted a removal
    kx.start()
    assert os.listdir(kx.state / "output") == [] and kx.ls("jobs") == kx.history() == []


def test_output_without_a_record(kx, volcano):
    """A kill interrupts a removal, and output remains without a record. The next start removes it."""
    job, _ = printed(kx, volcano, "hello\n")
    kx.end(signal.SIGKILL)
    folder = kx.state / "output/0badcafe-0000-4000-8000-000000000000"
    shutil.copytree(kx.folder(job.id), folder)
    kx.start()
    harness.wait_for(lambda: not folder.exists(), what="the output to go")
    assert job.log() == b"hello\n"


def damage(path, how):
    if how == "truncated":
        os.truncate(path, path.stat().st_size // 2)
    elif how == "garbage":
        path.write_bytes(bytes(range(256)) * 20)
    else:
        path.unlink()
    if how == "directory":
        path.mkdir()
    elif how == "FIFO":
        os.mkfifo(path)
    elif how == "symlink":
        path.symlink_to(path)


def parts(kx, job):
    """Return the files that the state directory has of JOB. KEY replaces the uid in the name of its log."""
    top = kx.folder(job.id)
    (key,) = os.listdir(top / "logs")
    return {"record": kx.record(job.id)} | {
        str(path.relative_to(top)).replace(key, "KEY"): path for path in top.rglob("*")
        if path.is_file() and not path.name.startswith(".")}


@pytest.mark.parametrize("how", ["truncated", "garbage", "missing", "directory", "FIFO", "symlink"])
def test_damaged(kx, volcano, how):
    """Any one file of a job in the state directory is damaged. The mount starts, and only the data of this file are
    lost."""
    jobs = {"none": cancelled(kx, volcano, "none\n" * 10)}
    names = sorted(parts(kx, jobs["none"]))
    assert {"record", "logs/KEY", "merged"} <= set(names)
    for name in names:
        jobs[name] = cancelled(kx, volcano, f"{name}\n" * 10)
    before = {name: files(job.old) for name, job in jobs.items()}
    kx.end()
    record = kx.record(jobs["record"].id)
    for name in names:
        damage(parts(kx, jobs[name])[name], how)
    kx.start()
    for name, job in jobs.items():
        if name == "record":
            check_unknown(kx, record, before[name]["main-0/log"], how)
            assert job.id not in kx.history()
        else:
            check_damaged(name, before[name], files(job.old))
    # All operations on a damaged job still work.
    for job in jobs.values():
        if job.old.exists():
            harness.remove(job.old)
    assert kx.history() == []
    again, pod = printed(kx, volcano, "again\n")
    volcano.finish(pod)
    again.finish()


def check_damaged(name, before, now):
    lost = {"logs/KEY": {"main-0/log", "log"}}.get(name, set())
    if name.startswith("merged"):
        lost = {"log"}
        assert isinstance(now["log"], str) or before["log"].startswith(now["log"])
    assert {key: now[key] for key in now if key not in lost} == {
        key: before[key] for key in before if key not in lost}, name


def check_unknown(kx, record, log, how):
    """Check a job whose record is unreadable: record and output are in aside/, and kxfs has reported it."""
    output = kx.state / "output" / record.name
    if how in ("missing", "directory"):  # there is no damaged record, so the output counts as the rest of a removal
        harness.wait_for(lambda: not output.exists(), what="the output to go")
        return
    assert str(record) in kx.read(".kxfs", "log") and not output.exists()
    (kept,) = (kx.state / "aside" / record.name / "logs").iterdir()
    assert kept.read_bytes() == log


@pytest.mark.waits
def test_full_disk(make_mount, server, volcano):
    """Output that does not fit on the disk is reported and delays nothing else. When there is space again, kxfs
    fetches it."""
    with small_disk(make_mount, server) as kx:
        other, pod = printed(kx, volcano, "before\n")
        harness.wait_for(lambda: other.read("log") == "main/0 before\n", what="the merged log")
        full = kx.submit(APP)
        (noisy,) = volcano.start(full.id)
        text = b"".join(b"%07d %s\n" % (i, b"x" * 92) for i in range(30000))
        volcano.log(noisy).append(text)
        harness.wait_for(lambda: "No space left on device; kxfs retries" in kx.read(".kxfs", "log"))
        harness.wait_for(lambda: full.status()["logs_waiting"] == 1, what="the status to say so")
        assert "The output of main-0 can't be written to the state directory: No space left" in full.read("why")
        assert text.startswith(full.log())
        # Reading works, the mount responds, and the log stream of the other job remains open.
        assert other.log() == b"before\n" and other.read("log") == "main/0 before\n"
        assert [job.until("RUNNING") for job in (other, full)]  # the events of jobs and of pods arrive separately
        assert len(server.open_streams(subresource="log")) >= 1
        volcano.finish(pod)
        other.finish()
        harness.run(["mount", "-o", "remount,size=100m", str(kx.state)])
        volcano.finish(noisy)
        full.finish()
        harness.wait_for(lambda: full.log() == text, what="all of it")
        assert full.gap() == 0
        assert (full.read("why"), full.status()["logs_waiting"]) == ("", 0)
        assert other.log() == b"before\n"


@pytest.mark.waits
def test_full_disk_after_a_refusal(make_mount, server, volcano):
    """kxfs reports a full disk even if the server has refused the log before that."""
    with small_disk(make_mount, server) as kx:
        job, pod = printed(kx, volcano, "before\n")
        refused = server.faults.add("reply", times=1000, subresource="log", reply=replies.internal())
        server.end_streams("reset", subresource="log")
        harness.wait_for(lambda: "; kxfs retries" in kx.read(".kxfs", "log"), what="the refusal to be said")
        filler = kx.state / "filler"
        assert harness.err_of(filler.write_bytes, bytes(2 << 20)) == "ENOSPC"
        text = "x" * 20000 + "\n"
        volcano.log(pod).append(text)
        server.faults.clear(refused)
        harness.wait_for(lambda: "No space left on device; kxfs retries" in kx.read(".kxfs", "log"))
        filler.unlink()
        volcano.finish(pod)
        job.finish()
        harness.wait_for(lambda: job.log() == f"before\n{text}".encode(), what="all of it")
        assert job.gap() == 0


@pytest.mark.parametrize("whose", ["all", "own"])
def test_name_used_again(make_mount, server, volcano, whose):
    """When another job gets the name of a job in history/ and prints, or is only read, the earlier output remains."""
    kx = make_mount(server, options="capture=all" if whose == "all" else "")
    if whose == "all":
        server.store.add(st.JOBS, watching.job("train"))
    else:
        kx.write("submit/train.yaml", json.dumps({**watching.job("train"), "metadata": {"name": "train"}}))
    job = harness.Job(kx, "train")
    harness.wait_for(lambda: "train" in kx.ls("jobs"))
    uid = server.store.objects(st.JOBS)[0][0].uid
    (pod,) = volcano.start("train")
    volcano.log(pod).append("precious output of a week\n")
    job.until_logged("precious")
    volcano.finish(pod)
    job.finish()
    server.store.remove(st.JOBS, "test", "train")
    harness.wait_for(lambda: "train" in kx.history())
    reader = (kx / "history/train/log").open("rb")
    # Choose a later second, because kxfs can't order jobs that were created in the same second.
    later = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=1)
    server.store.add(st.JOBS, watching.job("train", creationTimestamp=later.strftime("%Y-%m-%dT%H:%M:%SZ")))
    harness.wait_for(lambda: "train" in kx.ls("jobs"))
    (pod,) = volcano.start("train")
    volcano.log(pod).append("of the second\n")
    job.until_logged("of the second")
    for _ in range(2):
        assert kx.history() == ["train"]
        assert b"precious output of a week" in (kx / "history/train/log").read_bytes()
        assert b"precious" not in (kx / "jobs/train/log").read_bytes()
        if reader:
            with reader:
                assert b"".join(iter(lambda: reader.read1(4096), b"")) == b"main/0 precious output of a week\n"
            reader = None
        kx.end()
        kx.start()
    # When the second job moves to history/, it has the plain name there, and the first job gets a name with its uid.
    server.store.remove(st.PODS, "test", pod)
    server.store.remove(st.JOBS, "test", "train")
    older = f"train~{uid[:8]}"
    for _ in range(2):
        harness.wait_for(lambda: sorted(kx.history()) == ["train", older])
        assert f"id: {older}" in kx.read("history", older, "status")
        assert b"precious output of a week" in (kx / f"history/{older}/log").read_bytes()
        assert b"of the second" in (kx / "history/train/log").read_bytes()
        kx.end()
        kx.start()
    (kx / f"history/{older}").rmdir()
    (kx / "history/train").rmdir()
    assert kx.history() == []


# --- A slow disk ------------------------------------------------------------------------------
# The disk hangs at the output of one job. Everything else continues, and none of this output is lost.


@pytest.fixture
def slow(make_mount, server, volcano):
    """(a mount, its disk)"""
    del volcano
    with started(make_mount(server, start=False)) as both:
        yield both


def others_go_on(kx, disk, volcano):
    """While a call hangs, another job runs from start to end, with its output."""
    with disk.still():
        job = kx.submit(APP)
        (pod,) = volcano.start(job.id)
        volcano.log(pod).append("hello\n")
        job.until_logged("hello\n")
        volcano.finish(pod)
        job.finish()
        assert job.read("log") == "main/0 hello\n"


def whole(job, text):
    """Wait until all output is there, once, in the log and in the merged log."""
    harness.wait_for(lambda: job.log() == text.encode(), what="the log")
    merged = "".join(f"main/0 {line}" for line in text.splitlines(True))
    harness.wait_for(lambda: job.read("log") == merged, what="the merged log")
    assert job.gap() == 0


def test_slowed(slow, server, volcano):
    """A log that grows faster than the disk can write is slowed down. It is not fetched again later, when it may
    have been rotated. Other logs are not slowed down."""
    kx, disk = slow
    job = kx.submit(APP)
    (pod,) = volcano.start(job.id)
    log = volcano.log(pod)
    log.append("one\n")
    job.until_logged("one\n")
    disk.hang("write", f"/{kx.folder(job.id).name}/logs/")
    for number in range(9):
        log.append("".join(f"{number} {i} {'x' * 8000}\n" for i in range(1000)))
    harness.wait_for(lambda: disk.hangs(f"/{kx.folder(job.id).name}/logs/"), what="a hanging disk")
    others_go_on(kx, disk, volcano)
    log.rotate()
    disk.go_on()
    log.append("last\n")
    volcano.finish(pod)
    job.finish()
    harness.wait_for(lambda: job.log() == log.data(), what="the log")
    assert job.gap() == 0
    assert len([req for req in server.seen(subresource="log", name=pod) if "follow" in req.query]) == 1


# --- Each call hangs or fails -----------------------------------------------------------------
# tests/mount/test_every_call.py, with a mount of a cluster.


class Cluster(threading.Thread):
    """Runs the pods of all jobs: some count until they may end, one hangs, and all others print 1 and end."""

    def __init__(self, volcano):
        super().__init__(daemon=True)
        self.volcano = volcano
        self.let_go = set()
        self.counts = {}  # pod -> how far it has counted
        self.ended = {}  # job -> how far it had counted when it ended
        self.made = []  # names of all jobs
        self.over = threading.Event()
        volcano.store.listeners.append(self.changed)
        self.start()

    def changed(self, change):
        if change.after and not change.before and change.after.resource is st.JOBS:
            self.made.append(change.after.name)

    def forget(self):
        """Remove all jobs, because another mount starts."""
        for name in self.made:
            self.volcano.store.remove(st.JOBS, "test", name)

    def run(self):
        while not self.over.wait(0.05):
            for name in list(self.made):
                for pod in self.volcano.pods(name):
                    self.step(name, pod)

    def step(self, name, pod):
        count = self.counts.get(pod, 0)
        if count is None:
            return
        if count == 0:
            self.volcano.run(pod)
        counting = name.startswith(("printed", "other"))
        if counting or count == 0:
            count += 1
            self.volcano.log(pod).append(f"{count}\n")
        self.counts[pod] = count
        if name in self.let_go or not (counting or name.startswith("cancelled")):
            self.ended[name] = count
            self.volcano.finish(pod)
            self.counts[pod] = None


class ClusterDay(Day):
    def __init__(self, cluster, *args):
        super().__init__(*args)
        self.cluster = cluster
        self.n_before = len(cluster.made)

    def text(self, name):
        return harness.app("true", name=name)

    def let_go(self, job):
        self.cluster.let_go.add(job.id)

    def count(self, job):
        return self.cluster.ended[job.id]

    def runs(self, name):
        return sum(made.startswith(f"{name}-") for made in self.cluster.made[self.n_before:])


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(PARTS))
def test_each(make_mount, server, volcano, request, part):
    cluster = Cluster(volcano)

    def mount():
        cluster.forget()
        return make_mount(server, start=False)

    try:
        each(Mounts(mount, functools.partial(ClusterDay, cluster)), part, request.config.getoption("--seed"))
    finally:
        cluster.over.set()
        cluster.join()
