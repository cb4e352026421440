# SPDX-License-Identifier: MIT
"""-o archive=DIR of a mount: what captures have put there is shown in history/, with all that a job of the history has."""

import concurrent.futures
import errno
import json
import os
import shutil

import harness
import pytest
import store as st
import watching
from archiving import finish
from disk import Disk
from harness import wait_for


@pytest.fixture
def show(archive, make_mount, server):
    """Make a mount that has an archive and a state directory of its own."""

    def make(options="", **kwargs):
        return make_mount(server, options=",".join(filter(None, [*archive.options, options])), env=archive.kx.more_env, **kwargs)

    return make


def names(kx):
    return set(kx.history())


def test_jobs_of_others(archive, show, server, volcano):
    """Jobs that ran and went while there was no mount stand in history/ of a later one, with their texts and logs."""
    archive.up()
    server.store.add(st.JOBS, watching.job("pair", tasks={"main": 2}))
    pods = volcano.start("pair")
    for i, pod in enumerate(pods):
        volcano.log(pod).append(f"hello from {i}\n")
        volcano.finish(pod, code=7 * i)
    wait_for(lambda: archive.lines().get("pair", {}).get("state") == "FAILED", what=archive.kx.said)
    wait_for(lambda: archive.log("pair", "main-1/log.0") == b"hello from 1\n")
    server.store.remove(st.JOBS, "test", "pair")
    finish(server, volcano, archive, "other", "other\n")
    wait_for(lambda: archive.lines().get("other", {}).get("state") == "SUCCEEDED")
    status = archive.status("pair")
    archive.end()

    kx = show()
    wait_for(lambda: names(kx) == {"pair", "other"}, what=kx.said)
    history = kx / "history"
    assert "archive_reachable: true" in kx.read(".kxfs", "info") and "archive_jobs: 2" in kx.read(".kxfs", "info")
    table = (history / "list").read_text()
    assert "pair" in table and "FAILED" in table
    lines = {line["id"]: line for line in map(json.loads, (history / "list.jsonl").read_text().splitlines())}
    assert lines["pair"] == status
    assert (history / "pair/state").read_text() == "FAILED\n"
    assert json.loads((history / "pair/status.json").read_text()) == status
    assert "exit code 7" in (history / "pair/why").read_text()
    assert "exit_code: 7" in (history / "pair/main-1/status").read_text()
    assert "kind: Job" in (history / "pair/manifest.yaml").read_text()
    assert set(kx.ls("history", "pair")) == {"state", "status", "status.json", "why", "usage", "manifest.yaml", "events", "logs",
                                             "log", "stamped", "live", "main-0", "main-1"}
    assert (history / "pair/wait").read_text() == "FAILED\n"
    assert (history / "pair/main-1/follow").read_text() == "hello from 1\n"
    assert (history / "pair/main-0/log").stat().st_size == len("hello from 0\n")
    assert (history / "pair/main-0/log").read_text() == "hello from 0\n"
    assert (history / "pair/logs/main-1.log").read_text() == "hello from 1\n"
    assert sorted((history / "pair/log").read_text().splitlines()) == ["main/0 hello from 0", "main/1 hello from 1"]
    assert (history / "pair/follow").read_text() == (history / "pair/log").read_text()
    stamped = (history / "pair/main-0/stamped").read_text()
    assert stamped.endswith("Z hello from 0\n") and stamped.startswith("20")
    # What was read is read again without the archive.
    shutil.rmtree(archive.dir)
    assert (history / "pair/main-0/log").read_text() == "hello from 0\n"


DAY = "2026-01-02"


def put(archive, uid, job, day=DAY, state="SUCCEEDED", log=None):
    """A job in the archive, as a capture would have put it there; LOG: what it has printed."""
    folder = archive.dir / "test" / day / job
    folder.mkdir(parents=True)
    line = {"uid": uid, "id": job, "state": state, "backend": "volcano", "created": f"{day}T01:02:03Z",
            "finished": f"{day}T01:02:04Z", "roles": [{"name": "main", "desired": 1, "replicas": [{"id": 0, "state": state}]}]}
    (folder / "uid").write_text(f"{uid}\n")
    with open(folder.parent / "list.jsonl", "a", encoding="utf-8") as out:
        out.write(json.dumps(line, separators=(",", ":")) + "\n")
    if log is None:
        return folder
    whole = {"version": 2, "id": job, "uid": uid, "state": state, "phase": "Completed", "own": True, "has_appdef": True, "history": False,
             "suspended": False, "retries": 0, "max_retries": 0, "created": 1, "started": 1, "finished": 2, "changed": 2,
             "roles": [{"name": "main", "desired": 1, "minimum": 1}],
             "replicas": [{"name": "main-0", "role": 0, "id": 0, "state": state, "attempt": 0, "exit_code": 0, "signal": 0, "started": 1,
                           "finished": 2, "logs": [{"key": f"{uid}.main.0", "container": "", "complete": True, "gap": 0}]}]}
    (folder / "job.json").write_text(json.dumps(whole))
    (folder / "app.yaml").write_text("name: main\n")
    (folder / "main-0/log.0").mkdir(parents=True)
    (folder / "main-0/log.0.key").write_text(f"{uid}.main.0\n")
    for at in range(0, len(log), 8 << 20):
        (folder / f"main-0/log.0/{at:016}").write_bytes(log[at:at + (8 << 20)])
    return folder


def own(archive, server):
    """It is one of this namespace."""
    uid = server.store.find(st.NAMESPACES, "", "test").uid
    (archive.dir / "test").mkdir()
    (archive.dir / "test/source.json").write_text(f'{{"namespace":"test","uid":"{uid}"}}\n')


@pytest.fixture
def ours(archive, server):
    """An archive of this namespace that no capture has filled."""
    own(archive, server)
    return archive


def refused(what, *args):
    with pytest.raises(OSError) as why:
        what(*args)
    return why.value.errno


def test_old_days(ours, show):
    """What is too old for history/ to list is found by its name and by its day; nothing of it can be removed."""
    text = b"".join(b"line %d\n" % i for i in range(1500000))
    put(ours, "aaaaaaaa-1", "old", log=text)
    put(ours, "bbbbbbbb-2", "older", day="2025-12-31")
    kx = show()
    assert names(kx) == set() and ".archive" not in kx.ls("history")
    assert kx.ls("history", ".archive") == ["2025-12-31", DAY]
    assert kx.ls("history", ".archive", DAY) == ["old"]
    assert kx.read("history", "older", "state") == "SUCCEEDED\n"
    log = kx / f"history/.archive/{DAY}/old/main-0/log"
    assert log.stat().st_size == len(text)
    assert log.read_bytes() == text
    assert kx.read("history", "old", "main-0", "log", binary=True) == text
    assert kx.read("history", "old", "app.yaml") == "name: main\n"
    assert kx.read("history", "old", "log").startswith("main/0 line 0\nmain/0 line 1\n")
    for path in (kx / "history/old", kx / "history/older", kx / f"history/.archive/{DAY}", kx / f"history/.archive/{DAY}/old"):
        assert harness.run(f"rm -r {path}", check=False).returncode == 1
        assert refused(os.rmdir, path) in (errno.EPERM, errno.ENOTEMPTY)
    assert refused(os.listdir, kx / "history/.archive/2026-01-03") == errno.ENOENT
    assert refused(os.stat, kx / "history/none") == errno.ENOENT


def test_recent_and_removal(ours, show):
    """rm -r of an archived job is EPERM, and it stays."""
    today = st.now()[:10]
    put(ours, "aaaaaaaa-1", "new", day=today, log=b"x\n")
    kx = show()
    wait_for(lambda: names(kx) == {"new"}, what=kx.said)
    got = harness.run(f"rm -r {kx.mnt}/history/new", check=False)
    assert got.returncode == 1 and "Operation not permitted" in got.stderr
    assert kx.read("history", "new", "main-0", "log") == "x\n"
    assert list(kx.state.glob("fetched/jobs/aaaaaaaa-1/logs/*"))


def test_away(ours, show):
    """The archive goes away: what is known is shown, the rest is EHOSTUNREACH; it comes back."""
    today = st.now()[:10]
    put(ours, "aaaaaaaa-1", "seen", day=today, log=b"seen\n")
    put(ours, "bbbbbbbb-2", "unseen", day=today, log=b"unseen\n")
    kx = show()
    wait_for(lambda: names(kx) == {"seen", "unseen"}, what=kx.said)
    assert kx.read("history", "seen", "main-0", "log") == "seen\n"
    hidden = ours.dir.with_name("hidden")
    ours.dir.rename(hidden)
    assert refused((kx / "history/unseen/main-0/log").read_text) == errno.EHOSTUNREACH
    assert names(kx) == {"seen", "unseen"}
    assert kx.read("history", "unseen", "state") == "SUCCEEDED\n"
    assert "id: unseen" in kx.read("history", "unseen", "status")
    assert kx.read("history", "seen", "main-0", "log") == "seen\n"
    assert "archive_reachable: false" in kx.read(".kxfs", "info")
    assert "no such directory; what is known of its jobs is shown" in kx.read(".kxfs", "log")
    hidden.rename(ours.dir)
    wait_for(lambda: readable(kx / "history/unseen/main-0/log"), what=kx.said)
    assert kx.read("history", "unseen", "main-0", "log") == "unseen\n"
    wait_for(lambda: "archive_reachable: true" in kx.read(".kxfs", "info"))


def test_hangs(archive, show, server):
    """An archive that hangs holds up who asks it first for some seconds, and nobody else; then all is as it was."""
    today = st.now()[:10]
    disk = Disk(archive.kx, archive.dir)
    try:
        own(archive, server)
        put(archive, "aaaaaaaa-1", "seen", day=today, log=b"seen\n")
        put(archive, "bbbbbbbb-2", "unseen", day=today, log=b"unseen\n")
        kx = show()
        wait_for(lambda: names(kx) == {"seen", "unseen"}, what=kx.said)
        assert kx.read("history", "seen", "main-0", "log") == "seen\n"
        log = kx / "history/unseen/main-0/log"
        assert log.stat().st_size == len("unseen\n")
        disk.hang(".*", "unseen/main-0/log.0/")
        with disk.still(), concurrent.futures.ThreadPoolExecutor() as threads:
            waits = threads.submit(refused, log.read_text)
            wait_for(lambda: disk.hangs("unseen"), what="the archive to hang")
            assert names(kx) == {"seen", "unseen"} and kx.ls("jobs") == []
            assert kx.read("history", "seen", "state") == kx.read("history", "unseen", "state") == "SUCCEEDED\n"
            assert waits.result(harness.LIMIT) == errno.EHOSTUNREACH
            assert "archive_reachable: false" in kx.read(".kxfs", "info")
        disk.go_on()
        wait_for(lambda: readable(log) == "unseen\n", what=kx.said)
    finally:
        disk.close()


def test_room(ours, show):
    """What was fetched stays within the limit of the spool: the log that was not read for longest goes, and is fetched again. One
    that has no room at all can't be read, and the messages say why."""
    today = st.now()[:10]
    texts = {name: name.encode() * 140000 for name in ("first", "other")}
    for i, (name, text) in enumerate(texts.items()):
        put(ours, f"aaaaaaaa-{i}", name, day=today, log=text)
    put(ours, "bbbbbbbb-2", "large", day=today, log=b"x" * (2 << 20))
    kx = show("spool_limit=1M")
    wait_for(lambda: names(kx) == {"first", "other", "large"}, what=kx.said)
    for name in ("first", "other", "first"):
        assert kx.read("history", name, "main-0", "log", binary=True) == texts[name]
        uid = f"aaaaaaaa-{list(texts).index(name)}"
        wait_for(lambda uid=uid: [path.parents[1].name for path in kx.state.glob("fetched/jobs/*/logs/*")] == [uid], what="room")
    assert refused((kx / "history/large/main-0/log").read_bytes) == errno.ENOSPC
    assert "the spool has no room for a log of the archive of 2097152 bytes" in kx.read(".kxfs", "log")


def readable(path):
    try:
        return path.read_text()
    except OSError:
        return None


def test_another_cluster(ours, show):
    """The jobs of another cluster are not shown, and it is said why."""
    put(ours, "aaaaaaaa-1", "theirs", day=st.now()[:10])
    (ours.dir / "test/source.json").write_text('{"namespace":"test","uid":"0-0"}\n')
    kx = show()
    wait_for(lambda: "has the jobs of another cluster" in kx.read(".kxfs", "info"), what=kx.said)
    assert names(kx) == set() and kx.ls("history", ".archive") == []
    assert "has the jobs of another cluster" in kx.read(".kxfs", "log")
    assert refused(os.stat, kx / "history/theirs") == errno.ENOENT


def test_hostile(ours, show):
    """What is no job of ours hides no other."""
    today = st.now()[:10]
    put(ours, "aaaaaaaa-1", "good", day=today, log=b"good\n")
    bad = put(ours, "bbbbbbbb-2", "bad", day=today, log=b"bad\n")
    (bad / "job.json").write_text("{" * 100000)
    (bad / "main-0/log.0.key").unlink()
    other = put(ours, "cccccccc-3", "other", day=today, log=b"other\n")
    (other / "job.json").write_text((ours.dir / f"test/{today}/good/job.json").read_text())
    link = put(ours, "dddddddd-4", "link", day=today, log=b"link\n")
    (link / "main-0/log.0/0000000000000000").unlink()
    (link / "main-0/log.0/0000000000000000").symlink_to("/etc/passwd")
    with open(ours.dir / f"test/{today}/list.jsonl", "a", encoding="utf-8") as out:
        out.write('{"uid":"e","id":"../../x"}\n{"uid":"../f","id":"f"}\n\0\nnull\n{"uid":"g","id":"a\\u001b[1m"}\n' + "[" * 1000 + "\n")
    for name in ("9999-99-99", "2026-1-1", "x\n"):
        (ours.dir / "test" / name).mkdir()
    kx = show()
    wait_for(lambda: names(kx) == {"good", "bad", "other", "link"}, what=kx.said)
    assert "archive_passed_over: 6" in kx.read(".kxfs", "info")
    assert kx.read("history", "good", "main-0", "log") == "good\n"
    assert kx.read("history", "bad", "state") == "SUCCEEDED\n"
    for job in ("bad", "other"):
        assert "log" not in kx.ls("history", job, "main-0")
    # Links are no objects: what one leads to is read by nobody.
    assert kx.read("history", "link", "main-0", "log") == ""


def test_earlier_attempts(archive, show, server, volcano):
    """The log of an attempt that the mount never saw, of a job that is still in jobs/, comes from the archive."""
    tree = watching.job("again")
    tree["spec"].update(maxRetry=3, policies=[{"event": "PodFailed", "action": "RestartJob"}])
    archive.up()
    server.store.add(st.JOBS, tree)
    (pod,) = volcano.start("again")
    volcano.log(pod).append("first\n")
    wait_for(lambda: [p.read_text() for p in archive.state.glob("jobs/again/logs/*")] == ["first\n"], what=archive.kx.said)
    volcano.finish(pod, code=3)
    wait_for(lambda: (archive.status("again") or {}).get("retries") == 1 or volcano.pods("again"), what=archive.kx.said)
    (pod,) = volcano.start("again")
    volcano.log(pod).append("second\n")
    wait_for(lambda: {p.read_text() for p in archive.state.glob("jobs/again/logs/*")} == {"first\n", "second\n"},
             what=archive.kx.said)
    archive.end()
    assert archive.log("again") == b"first\n" and archive.log("again", "main-0/log.1") == b"second\n"

    kx = show()
    wait_for(lambda: "archive_jobs: 1" in kx.read(".kxfs", "info"), what=kx.said)
    assert kx.ls("jobs") == ["again"] and names(kx) == set()
    assert "log.0" in kx.ls("jobs", "again", "main-0")
    assert kx.read("jobs", "again", "main-0", "log.0") == "first\n"
    assert kx.read("jobs", "again", "main-0", "log") == "second\n"
    # What goes while the mount is up is in its history, with what the archive has.
    server.store.remove(st.JOBS, "test", "again")
    wait_for(lambda: names(kx) == {"again"}, what=kx.said)
    assert kx.read("history", "again", "main-0", "log.0") == "first\n"
