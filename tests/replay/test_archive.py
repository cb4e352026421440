# SPDX-License-Identifier: MIT
"""kxfs capture -o archive=DIR: what jobs print and how they end stands in a directory, as plain files, whatever happens to
the capture, to its state directory, and to that directory."""

import json
import os
import random
import shutil
import signal
import threading
import time

import harness
import pytest
import store as st
import watching
from archiving import finish
from harness import wait_for

PART = 8 << 20


def test_plain_files(archive, server, volcano):
    """All of a job can be read without kxfs, and its line is in the list of its day."""
    server.store.add(st.JOBS, watching.job("works", tasks={"main": 2}))
    archive.up()
    pods = volcano.start("works")
    text = "".join(f"line {i} {'x' * 300}\n" for i in range(30000))
    for i, pod in enumerate(pods):
        volcano.log(pod).append(text[i:])
        volcano.finish(pod, code=i)
    wait_for(lambda: archive.log("works", "main-1/log.0") == text[1:].encode(), what=archive.kx.said)
    wait_for(lambda: archive.status("works").get("state") == "FAILED")
    folder = archive.folder("works")
    wait_for(lambda: archive.lines().get("works", {}).get("state") == "FAILED")
    assert archive.log("works") == text.encode()
    assert sorted(path.name for path in (folder / "main-0/log.0").iterdir()) == [f"{0:016}", f"{PART:016}"]
    assert (folder / f"main-0/log.0/{0:016}").stat().st_size == PART
    uid = server.store.find(st.JOBS, "test", "works").uid
    assert archive.read("works", "uid") == f"{uid}\n"
    assert archive.read("works", "main-1/log.0.key").endswith(".main.0\n")
    assert "kind: Job" in archive.read("works", "manifest.yaml")
    assert "ended with exit code 1" in archive.read("works", "why")
    assert archive.read("works", "events") is not None
    wait_for(lambda: archive.lines()["works"] == {"uid": uid, **archive.status("works")})
    namespace = server.store.find(st.NAMESPACES, "", "test").uid
    assert json.loads((archive.dir / "test/source.json").read_text()) == {"namespace": "test", "uid": namespace}
    # Nothing of it is left behind that is being written.
    assert not [path for path in archive.dir.rglob(".*")]
    # The times of the lines are the table that the state directory has.
    tables = {path.name: path.read_bytes() for path in archive.state.glob("jobs/works/lines/*")}
    key = archive.read("works", "main-0/log.0.key").strip()
    wait_for(lambda: archive.log("works", "main-0/log.0.lines") == tables[key])
    archive.end()
    assert folder.parent.name == archive.status("works")["created"][:10]


def test_removed_with_nothing_printed(archive, server, volcano):
    """A job that is removed before it has printed a byte is told of, too."""
    archive.up()
    server.store.add(st.JOBS, watching.job("mute"))
    volcano.start("mute")
    wait_for(lambda: archive.status("mute"))
    server.store.remove(st.JOBS, "test", "mute")
    wait_for(lambda: archive.lines().get("mute", {}).get("state") == "CANCELLED", what=archive.kx.said)
    assert archive.status("mute")["state"] == "CANCELLED"


def test_second_of_a_name(archive, server, volcano):
    """Another job of a name has a directory of its own, on the same day."""
    archive.up()
    finish(server, volcano, archive, "twice", "first\n")
    first = archive.read("twice", "uid").strip()
    wait_for(lambda: not server.store.find(st.JOBS, "test", "twice"))
    server.store.add(st.JOBS, watching.job("twice"))
    second = server.store.find(st.JOBS, "test", "twice").uid
    (pod,) = volcano.start("twice")
    volcano.log(pod).append("second\n")
    volcano.finish(pod)
    name = f"twice~{second[:8]}"
    wait_for(lambda: archive.log(name) == b"second\n", what=archive.kx.said)
    wait_for(lambda: archive.log("twice") == b"first\n", what=archive.kx.said)
    assert archive.read("twice", "uid") == f"{first}\n"
    assert archive.read(name, "uid") == f"{second}\n"


def test_ends_with_all_tails(archive, server, volcano):
    """SIGTERM: what jobs that run have printed is there, and goes on there after the next start."""
    archive.up()
    names = [f"runs-{i}" for i in range(5)]
    pods = {}
    for name in names:
        server.store.add(st.JOBS, watching.job(name))
        (pods[name],) = volcano.start(name)
        volcano.log(pods[name]).append(f"hello from {name}\n")
    logs = archive.state / "jobs"
    wait_for(lambda: all([p.read_text() for p in logs.glob(f"{name}/logs/*")] == [f"hello from {name}\n"] for name in names))
    archive.end()
    for name in names:
        assert archive.log(name) == f"hello from {name}\n".encode(), archive.kx.said()
        volcano.log(pods[name]).append("more\n")
        volcano.finish(pods[name])
    archive.up()
    for name in names:
        wait_for(lambda name=name: archive.log(name) == f"hello from {name}\nmore\n".encode(), what=archive.kx.said)
        assert not list(archive.folder(name).glob("main-0/log.1*"))


def mount(*words):
    """A busy one is tried again."""
    wait_for(lambda: harness.run(["mount", *words], check=False).returncode == 0, what=words)


@pytest.fixture
def small(archive):
    """The archive is in a file system of its own, with little room."""
    room = archive.dir.with_name("room")
    room.mkdir()
    mount("-t", "tmpfs", "-o", "size=256k", "none", str(room))
    archive.dir = room / "archive"
    archive.place = str(archive.dir)
    archive.options = [f"archive={archive.dir}"]
    archive.dir.mkdir()
    yield archive
    if archive.proc:
        archive.end(signal.SIGKILL)
    harness.run(["umount", room])


@pytest.mark.parametrize("how", ["away", "readonly", "full"])
def test_archive_takes_nothing(small, server, volcano, how):
    """Meanwhile all is kept, also over a kill, and it is told how much waits; the spool limit takes none of it. Then all is
    there."""
    archive, room = small, str(small.dir.parent)
    hidden = archive.dir.with_name("hidden")
    archive.up("spool_limit=1M")
    finish(server, volcano, archive, "before", "before\n")
    wait_for(lambda: archive.lines().get("before", {}).get("state") == "SUCCEEDED")
    if how == "away":
        archive.dir.rename(hidden)
    elif how == "readonly":
        mount("-o", "remount,ro", room)
    text = "".join(f"line {i}\n" for i in range(300000))
    server.store.add(st.JOBS, watching.job("during"))
    (pod,) = volcano.start("during")
    volcano.log(pod).append(text)
    volcano.finish(pod, code=7)
    record = archive.state / "jobs/during/job.json"
    wait_for(lambda: record.exists() and '"exit_code":7' in record.read_text(), what=archive.kx.said)
    server.store.remove(st.JOBS, "test", "during")

    def waits():
        """A full archive may have taken what was there of the log at first."""
        waiting, archived = (archive.metric(name) or 0 for name in ("archive_waiting_bytes", "archived_bytes_total"))
        return waiting and archive.metric("archive_failures_total") and waiting + archived >= len("before\n") + len(text)

    wait_for(waits, what=archive.kx.said)
    assert archive.metric("archive_waiting_jobs") >= 1
    assert f"kxfs: archive: {archive.dir}" in archive.kx.said() and "; what is not there is kept, and tried again" in archive.kx.said()
    uid = json.loads(record.read_text())["uid"]
    wait_for(lambda: (archive.state / f"archive/{uid}.left").exists(), what="its end to be noted")
    archive.end(signal.SIGKILL)
    archive.up("spool_limit=1M")
    assert [p.stat().st_size for p in archive.state.glob("jobs/during/logs/*")] == [len(text)]
    if how == "away":
        hidden.rename(archive.dir)
    mount("-o", "remount,rw,size=64m", room)
    wait_for(lambda: archive.log("during") == text.encode(), what=archive.kx.said)
    wait_for(lambda: archive.status("during").get("state") == "FAILED")
    wait_for(lambda: archive.lines().get("during", {}).get("state") == "FAILED")
    # Now the limit may have it, which it does.
    wait_for(lambda: not list(archive.state.glob("jobs/during/logs/*")), what=archive.kx.said)
    wait_for(lambda: not list(archive.state.glob("archive/*.left")))
    assert archive.log("during") == text.encode() and archive.log("before") == b"before\n"


def test_another_cluster(archive, server):
    """Two clusters do not share a place, and nothing is changed of the first one's."""
    archive.up()
    archive.end()
    source = archive.dir / "test/source.json"
    before = source.read_bytes()
    server.store.remove(st.NAMESPACES, "", "test")
    server.store.add(st.NAMESPACES, {"metadata": {"name": "test"}})
    archive.start()
    assert archive.proc.wait(harness.LIMIT) == 1
    archive.proc = None
    assert f"{archive.place}/test: has the jobs of another cluster" in archive.kx.said()
    assert source.read_bytes() == before


def test_namespace_hidden(archive, server):
    """Without the right to see the namespace nobody can tell whose the archive is."""
    server.store.remove(st.NAMESPACES, "", "test")
    archive.start()
    assert archive.proc.wait(harness.LIMIT) == 1
    archive.proc = None
    assert "an archive needs to know which namespace this is" in archive.kx.said()


def test_state_lost(archive, server, volcano):
    """A capture that begins anew, when the node has forgotten the beginning, takes nothing from the archive."""
    archive.up()
    server.store.add(st.JOBS, watching.job("works"))
    (pod,) = volcano.start("works")
    volcano.log(pod).append("".join(f"line {i}\n" for i in range(1000)))
    first = "".join(f"line {i}\n" for i in range(1000)).encode()
    wait_for(lambda: [p.read_bytes() for p in archive.state.glob("jobs/works/logs/*")] == [first])
    archive.end()
    assert archive.log("works") == first
    shutil.rmtree(archive.state)
    archive.state.mkdir(mode=0o700)
    volcano.log(pod).append("more\n")
    archive.up()
    archive.end()
    wait_for(lambda: archive.log("works") in (first, first + b"more\n"))
    volcano.log(pod).rotate()
    volcano.log(pod).append("the end\n")
    shutil.rmtree(archive.state)
    archive.state.mkdir(mode=0o700)
    archive.up()
    volcano.finish(pod)
    wait_for(lambda: archive.log("works", "main-0/log.1").endswith(b"the end\n"), what=archive.kx.said)
    assert archive.log("works").startswith(first)


def test_killed_again_and_again(archive, server, volcano):
    """While pods print the capture is killed, again and again: each log is there to the byte."""
    rand = random.Random(os.environ.get("KXFS_ARCHIVE_SEED", "1"))
    rounds = int(os.environ.get("KXFS_ARCHIVE_ROUNDS", "8"))
    jobs = {f"job-{i}": None for i in range(8)}
    printed = dict.fromkeys(jobs, "")
    for job in jobs:
        server.store.add(st.JOBS, watching.job(job))
        (jobs[job],) = volcano.start(job)

    def more():
        for job, pod in jobs.items():
            text = "".join(f"{rand.random()}\n" for _ in range(rand.randrange(2000)))
            volcano.log(pod).append(text)
            printed[job] += text

    for i in range(rounds):
        archive.up()
        more()
        if i % 2:
            job = rand.choice(list(jobs))
            wait_for(lambda job=job: archive.log(job), what=archive.kx.said)
        more()
        archive.end(rand.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
    for pod in jobs.values():
        volcano.finish(pod)
    archive.up()
    for job, text in printed.items():
        wait_for(lambda job=job, text=text: archive.log(job) == text.encode(), what=f"{job}: {archive.kx.said()}")
        wait_for(lambda job=job: archive.lines().get(job, {}).get("state") == "SUCCEEDED")
        assert not list(archive.folder(job).glob("main-0/log.1*"))
    archive.end()


class Printers:
    """Pods that print numbered lines all the time, and a kubelet that rotates their logs now and then."""

    def __init__(self, volcano, rand, pods):
        self.rand = rand
        self.logs = {job: volcano.log(pod) for job, pod in pods.items()}
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.stop.set()
        self.thread.join()

    def run(self):
        n = 0
        while not self.stop.wait(0.02):
            for job, log in self.logs.items():
                log.append("".join(f"{job} {n} {i} {'x' * self.rand.randrange(200)}\n" for i in range(self.rand.randrange(40))))
                if self.rand.random() < 0.02:
                    log.rotate(keep=self.rand.randrange(30))
            n += 1


def test_killed_while_logs_rotate(archive, server, volcano, request):
    """Each archived log has what was printed, byte for byte and line for line, each once, but for what the node has dropped while
    no capture ran: where that is, a gap is told."""
    seed = request.config.getoption("seed") or 1
    print(f"seed {seed}")
    rand = random.Random(seed)
    kills, n = int(os.environ.get("KXFS_ARCHIVE_KILLS", "5")), int(os.environ.get("KXFS_ARCHIVE_JOBS", "10"))
    pods = {}
    for i in range(n):
        server.store.add(st.JOBS, watching.job(f"job-{i}"))
        (pods[f"job-{i}"],) = volcano.start(f"job-{i}")
    with Printers(volcano, rand, pods):
        for i in range(kills):
            archive.up()
            if i % 5 == 1:
                job = rand.choice(list(pods))
                wait_for(lambda job=job: archive.log(job), what=archive.kx.said)
            time.sleep(rand.random())  # where the kill comes
            archive.end(signal.SIGKILL)
        archive.up()
    for job, pod in pods.items():
        volcano.log(pod).append(f"{job} ends\n")
        volcano.finish(pod)
    gaps = missing = 0
    for job, pod in pods.items():
        wait_for(lambda job=job: archive.log(job).endswith(b" ends\n"), what=archive.kx.said)
        wait_for(lambda job=job: archive.lines().get(job, {}).get("state") == "SUCCEEDED", what=archive.kx.said)
        printed = volcano.log(pod).data().splitlines(keepends=True)
        place = {line: i for i, line in enumerate(printed)}
        got, torn = [], False
        for line in archive.log(job).splitlines(keepends=True):
            if line not in place:  # what was on disk of a line when the kill came, whose rest the node has dropped
                begin = line.rindex(b"%s " % job.encode())
                assert printed[got[-1] + 1 if got else 0].startswith(line[:begin]), line
                line, torn = line[begin:], True
            got.append(place[line])
        assert got == sorted(set(got)), f"{job}: a line is doubled, or not in its place"
        (replica,) = archive.lines()[job]["roles"][0]["replicas"]
        missing += len(printed) - len(got)
        assert not list(archive.folder(job).glob("main-0/log.1*"))
        gaps += replica.get("gap", 0)
        if torn or got != list(range(got[0], got[-1] + 1)):
            assert replica.get("gap", 0) > 0, f"{job}: a hole that nobody tells of"
    archive.end()
    print(f"{kills} kills of a capture, {gaps} gaps, {missing} lines that the node had dropped")
