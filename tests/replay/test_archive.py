# SPDX-License-Identifier: MIT
"""-o archive=DIR: each finished job of a cluster is in DIR as plain files, completely or not at all, whatever
happens to kxfs, to its state directory and to DIR."""

import json
import random
import signal
import time

import harness
import pytest
import records
import store as st
import watching
from archiving import FILES, Archive, Capture, print_and_end
from harness import wait_for


@pytest.fixture
def archive(tmp_path):
    (tmp_path / "archive").mkdir()
    return Archive(tmp_path / "archive")


@pytest.fixture
def make_capture(make_mount, server, volcano):
    del volcano
    made = []

    def make(archive):
        made.append(Capture(make_mount(server, start=False), archive.dir))
        return made[-1]

    yield make
    for capture in made:
        if capture.proc:
            capture.proc.kill()
            capture.proc.wait(harness.LIMIT)


@pytest.fixture
def capture(make_capture, archive):
    return make_capture(archive)


def test_plain_files(capture, archive, server, volcano):
    """All data of a job is there as files, readable without kxfs."""
    capture.up()
    server.store.add(st.JOBS, watching.job("works", tasks={"main": 2}))
    pods = volcano.start("works")
    text = "".join(f"line {i} {'x' * 300}\n" for i in range(3000))
    for i, pod in enumerate(pods):
        volcano.log(pod).append(text[i:])
        volcano.finish(pod, code=i)
    folder = archive.has("works", capture.kx.said)
    assert {path.name for path in folder.iterdir()} - {"events"} == FILES | {"main-0", "main-1"}
    assert archive.log("works") == text.encode() and archive.log("works", "main-1/log") == text[1:].encode()
    merged = archive.log("works", "log").decode().splitlines(keepends=True)
    assert "".join(line.removeprefix("main/0 ") for line in merged if line.startswith("main/0 ")) == text
    assert "".join(line.removeprefix("main/1 ") for line in merged if line.startswith("main/1 ")) == text[1:]
    assert archive.state("works") == "FAILED" == archive.status("works")["state"]
    assert (folder / "uid").read_text() == server.store.find(st.JOBS, "test", "works").uid + "\n"
    assert "kind: Job" in (folder / "manifest.yaml").read_text()
    assert "ended with exit code 1" in (folder / "why").read_text()
    assert folder.parent.name == archive.status("works")["created"][:10]
    assert not archive.temporary()
    wait_for(lambda: capture.metric("archived_jobs_total") == 1 and capture.metric("archive_waiting_jobs") == 0)


def test_attempts(capture, archive, server, volcano):
    """Each attempt has its log, named as in the mount."""
    capture.up()
    server.store.add(st.JOBS, watching.job("again"))
    (pod,) = volcano.start("again")
    volcano.log(pod).append("first\n")
    volcano.restart_container(pod)
    volcano.log(pod, restart=1).append("second\n")
    volcano.finish(pod)
    archive.has("again", capture.kx.said)
    assert archive.log("again", "main-0/log.0") == b"first\n" and archive.log("again") == b"second\n"


@pytest.mark.parametrize("killed", [False, True])
def test_removed_with_nothing_printed(capture, archive, server, volcano, killed):
    """A job that is removed before it has printed a byte is there too, even if kxfs is not running then."""
    capture.up()
    server.store.add(st.JOBS, watching.job("mute"))
    volcano.start("mute")
    wait_for(lambda: harness.record(capture.state, "mute").exists(), what=capture.kx.said)
    if killed:
        capture.end(signal.SIGKILL)
    server.store.remove(st.JOBS, "test", "mute")
    if killed:
        capture.up()
    archive.has("mute", capture.kx.said)
    assert archive.state("mute") == "CANCELLED"


@pytest.mark.parametrize("name", ["list.jsonl", "state", "log", "a.b-c.tmp"])
def test_names(capture, archive, server, volcano, name):
    """A job may have the name of any file in DIR."""
    capture.up()
    print_and_end(server, volcano, name, "mine\n")
    archive.has(name, capture.kx.said)
    assert archive.log(name) == b"mine\n"


def test_second_of_a_name(capture, archive, server, volcano):
    """Another job of the same name has its own directory."""
    capture.up()
    print_and_end(server, volcano, "twice", "first\n")
    archive.has("twice", capture.kx.said)
    server.store.remove(st.JOBS, "test", "twice")
    wait_for(lambda: not server.store.find(st.JOBS, "test", "twice"))
    print_and_end(server, volcano, "twice", "second\n")
    name = f"twice~{server.store.find(st.JOBS, 'test', 'twice').uid[:8]}"
    archive.has(name, capture.kx.said)
    assert archive.log(name) == b"second\n" and archive.log("twice") == b"first\n"


def test_not_again(capture, archive, server, volcano):
    """Existing directories are not changed: after a restart, and by a kxfs that has lost its state."""
    capture.up()
    print_and_end(server, volcano, "once", "text\n")
    folder = archive.has("once", capture.kx.said)
    before = {path: path.stat().st_mtime_ns for path in (folder, *folder.rglob("*"))}
    for state_lost in (False, True):
        capture.end()
        if state_lost:
            harness.remove_tree(capture.state)
            capture.state.mkdir(mode=0o700)
        capture.up()
        print_and_end(server, volcano, f"other-{state_lost}".lower(), "")
        archive.has(f"other-{state_lost}".lower(), capture.kx.said)
        wait_for(lambda: capture.metric("archive_waiting_jobs") == 0, what=capture.kx.said)
    assert {path: path.stat().st_mtime_ns for path in (folder, *folder.rglob("*"))} == before
    assert archive.jobs() == ["once", "other-false", "other-true"] and not archive.temporary()


def test_several_writers(make_capture, make_mount, archive, server, volcano):
    """Two captures and a mount of one namespace share an archive: each job is there once."""
    captures = [make_capture(archive), make_capture(archive)]
    for one in captures:
        one.up()
    kx = make_mount(server, f"archive={archive.dir},capture=all")
    names = [f"job-{i}" for i in range(20)]
    for name in names:
        print_and_end(server, volcano, name, f"{name}\n" * 1000)
    for name in names:
        archive.has(name, captures[0].kx.said)
        assert archive.log(name) == f"{name}\n".encode() * 1000
    for one in captures:
        wait_for(lambda one=one: one.metric("archive_waiting_jobs") == 0, what=one.kx.said)
    wait_for(lambda: "kxfs_archive_waiting_jobs 0\n" in kx.read(".kxfs/metrics"), what=kx.said)
    assert archive.jobs() == sorted(names)
    wait_for(lambda: not archive.temporary())
    assert kx.read("archive", archive.folder("job-7").parent.name, "job-7", "state") == "SUCCEEDED\n"


def test_own_jobs_alone(make_mount, archive, server, volcano):
    """A mount archives jobs whose output it captures: another kxfs may have the output of the others."""
    kx = make_mount(server, f"archive={archive.dir}")
    print_and_end(server, volcano, "theirs", "theirs\n")
    job = kx.submit(harness.app("true"))
    (pod,) = volcano.start(job.id)
    volcano.log(pod).append("mine\n")
    volcano.finish(pod)
    archive.has(job.id, kx.said)
    assert archive.log(job.id) == b"mine\n" and (archive.folder(job.id) / "app.yaml").stat().st_mode & 0o077 == 0o044
    assert archive.jobs() == [job.id]


def mount(*words):
    """A busy mount point is retried."""
    wait_for(lambda: harness.run(["mount", *words], check=False).returncode == 0, what=words)


@pytest.fixture
def room(archive):
    """The archive is a small file system of its own."""
    mount("-t", "tmpfs", "-o", "size=256k", "none", str(archive.dir))
    yield str(archive.dir)
    harness.run(["umount", "-l", archive.dir])


@pytest.mark.parametrize("how", ["away", "readonly", "full"])
def test_takes_nothing(room, capture, archive, server, volcano, how):
    """Until then everything is kept, also over a kill, and the error is reported; history_keep removes nothing. Then
    all jobs are archived."""
    capture.up("history_keep=1s")
    print_and_end(server, volcano, "before", "before\n")
    archive.has("before", capture.kx.said)
    if how == "away":
        harness.run(["umount", room])
    elif how == "readonly":
        mount("-o", "remount,ro", room)
    text = "".join(f"line {i}\n" for i in range(100000))
    print_and_end(server, volcano, "during", text, code=7)
    wait_for(lambda: capture.metric("archive_failing") == 1 and capture.metric("archive_waiting_jobs") == 1,
             what=capture.kx.said)
    server.store.remove(st.JOBS, "test", "during")
    said = {"away": "is not the archive of the last start", "readonly": "Read-only file system",
            "full": "No space left on device"}[how]
    assert f"kxfs: archive: {room}" in capture.kx.said() and said in capture.kx.said()
    record = harness.record(capture.state, "during")
    wait_for(lambda: records.is_history(record), what=capture.kx.said)
    capture.end(signal.SIGKILL)
    if how == "away":
        assert "is it mounted?" in capture.fails()
        assert not list(archive.dir.iterdir())
        mount("-t", "tmpfs", "-o", "size=64m", "none", room)
        (archive.dir / ".kxfs-archive").touch()  # as if it were the one of before
    capture.up("history_keep=1s")
    if how != "away":
        wait_for(lambda: capture.metric("archive_failing") == 1, what=capture.kx.said)
        mount("-o", "remount,rw,size=64m", room)
    archive.has("during", capture.kx.said)
    assert archive.log("during") == text.encode() and archive.status("during")["state"] == "FAILED"
    wait_for(lambda: capture.metric("archive_failing") == 0)
    assert not archive.temporary()
    # Now history_keep is over.
    wait_for(lambda: not record.exists(), what=capture.kx.said)


def test_room_that_is_needed(room, capture, archive, server, volcano):
    """If nothing else is left, the spool limit removes output that can't be archived, and that is reported."""
    capture.up("spool_limit=1M")
    print_and_end(server, volcano, "large", "".join(f"line {i}\n" for i in range(200000)))
    wait_for(lambda: "large: its output is removed before it is archived" in capture.kx.said(), what=capture.kx.said)
    mount("-o", "remount,rw,size=64m", room)
    archive.has("large", capture.kx.said)
    assert archive.state("large") == "SUCCEEDED"


def test_one_that_fails(capture, archive, server, volcano):
    """An error with one job does not affect the others, and the job is archived once the error is gone."""
    capture.up()
    print_and_end(server, volcano, "first", "")
    place = archive.has("first", capture.kx.said).with_name("taken")
    place.write_text("no directory")
    print_and_end(server, volcano, "taken", "text\n")
    wait_for(lambda: "/taken" in capture.kx.said(), what=capture.kx.said)
    for i in range(5):
        print_and_end(server, volcano, f"other-{i}", "")
    for i in range(5):
        archive.has(f"other-{i}", capture.kx.said)
    wait_for(lambda: capture.metric("archive_waiting_jobs") == 1, what=capture.kx.said)
    place.unlink()
    archive.has("taken", capture.kx.said)
    assert archive.log("taken") == b"text\n"


def test_killed_again_and_again(capture, archive, server, volcano):
    """Whenever kxfs is killed, a job is there completely or not at all; in the end all are, and nothing else."""
    rand = random.Random(1)
    texts = {f"job-{i}": "".join(f"{i} {n}\n" for n in range(rand.randrange(40000))) for i in range(24)}
    for i, (name, text) in enumerate(texts.items()):
        if not capture.proc:
            capture.up()
        print_and_end(server, volcano, name, text)
        if i % 3 == 2:
            time.sleep(rand.random() * 2)  # a copy begins a second after the end
            capture.end(signal.SIGKILL)
            for done in archive.jobs():
                assert archive.log(done) == texts[done].encode()
    capture.up()
    for name, text in texts.items():
        archive.has(name, capture.kx.said)
        assert archive.log(name) == text.encode()
    wait_for(lambda: not archive.temporary(), what=archive.temporary)
    assert archive.jobs() == sorted(texts)


def test_others_leftovers(capture, archive, server, volcano):
    """The temporary files of another writer remain for a day."""
    for name, days in (("old", 2), ("new", 0)):
        path = archive.top / f".{name}.tmp/main-0"
        path.mkdir(parents=True)
        (path / "log").touch()
        harness.run(["touch", "-d", f"{days} days ago", path.parent])
    capture.up()
    print_and_end(server, volcano, "works", "")
    archive.has("works", capture.kx.said)
    wait_for(lambda: archive.temporary() == [".new.tmp"], what=archive.temporary)


def test_start(capture, archive):
    """DIR must exist, and may not be in the mount."""
    archive.dir.rmdir()
    assert f"{archive.dir}: No such file or directory" in capture.fails()
    archive.dir.mkdir()
    capture.up()
    capture.end()
    assert [path.name for path in archive.dir.iterdir()] == [".kxfs-archive"]
    (archive.dir / ".kxfs-archive").unlink()
    assert f"{archive.dir} is not the archive of the last start" in capture.fails()
    (capture.state / "archive").unlink()
    capture.up()


def test_accounting(capture, archive, server, volcano):
    """The example of the manual."""
    capture.up()
    for i in range(3):
        print_and_end(server, volcano, f"job-{i}", "", code=i % 2)
        archive.has(f"job-{i}", capture.kx.said)
    day = archive.folder("job-0").parent.name[:7]
    found = json.loads(harness.run(f"jq -s . {archive.top}/{day}-*/*/status.json").stdout)
    assert {job["id"]: job["state"] for job in found} == {"job-0": "SUCCEEDED", "job-1": "FAILED", "job-2": "SUCCEEDED"}
