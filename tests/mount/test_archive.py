# SPDX-License-Identifier: MIT
"""-o archive=DIR with local jobs: copies of finished jobs, beside the mount."""

import json
import os
import signal

import harness
import pytest
from disk import Disk
from harness import app, run, wait_for


@pytest.fixture
def place(tmp_path):
    (tmp_path / "archive").mkdir()
    return tmp_path / "archive"


def folder(place, job):
    found = list((place / "local").glob(f"2*/{job.id}"))
    return found[0] if found else None


def test_a_job(make_kx, place):
    """The archive has all files of a finished job, byte for byte, and the link `archive` leads to it."""
    kx = make_kx(options=f"archive={place}")
    job = kx.submit(app("echo out; echo err >&2; exit $(( TRY ))", num_replicas=2, env={"TRY": "3"}))
    job.finish("FAILED")
    found = wait_for(lambda: folder(place, job), what=kx.said)
    assert os.readlink(kx / "archive") == str(place / "local") and "archive" in kx.ls()
    for name in ("state", "status", "why", "manifest.yaml", "app.yaml", "log", "main-0/log", "main-1/log"):
        assert (found / name).read_bytes() == job.read(name, binary=True), name
    assert json.loads((found / "status.json").read_text())["state"] == "FAILED"
    assert (found / "app.yaml").stat().st_mode & 0o777 == harness.permissions(job / "app.yaml")
    [one] = json.loads(run(f"jq -s . {kx}/archive/2*/*/status.json".replace(str(kx), str(kx.mnt))).stdout)
    assert one["id"] == job.id
    assert f'archive: "{place}"' in kx.read(".kxfs/info") and 'archive_error: ""' in kx.read(".kxfs/info")
    assert not list(place.rglob("*.tmp"))


def test_attempts(make_kx, place):
    kx = make_kx(options=f"archive={place}")
    job = kx.submit(app("echo attempt; false", max_retries=1))
    job.finish("FAILED")
    found = wait_for(lambda: folder(place, job), what=kx.said)
    assert (found / "main-0/log.0").read_text() == (found / "main-0/log").read_text() == "attempt\n"


def test_damaged_document(make_kx, place):
    """A job whose document is damaged while it runs has its end in history/ and in the archive, without the document."""
    kx = make_kx(options=f"archive={place},linger")
    job = kx.submit(app("echo runs; until test -e go; do sleep 0.1; done"))
    job.until_logged("runs\n")
    record = kx.record(job.id)
    kx.end(signal.SIGKILL)
    record.write_bytes(record.read_bytes().replace(b"echo runs; until", b"echo runs; UNTIL"))
    kx.start()
    (kx.work / "go").touch()
    job.finish()
    found = wait_for(lambda: folder(place, job), what=kx.said)
    assert (found / "main-0/log").read_text() == "runs\n" and not (found / "app.yaml").exists()
    assert f"{job.id}: app.yaml is damaged; kxfs archives the job without the damaged part" in kx.said()
    assert 'archive_error: ""' in kx.read(".kxfs/info") and b'"over":true' in record.read_bytes()


def test_damaged_log(make_kx, place):
    """Of a merged log that is damaged, what can be read is archived, and the rest of the job."""
    kx = make_kx(options="history_keep=1d")
    job = kx.submit(app("echo one; echo two", num_replicas=2))
    job.finish()
    logs = kx.folder(job.id) / "logs"
    wait_for(lambda: job.read("log").count("two") == 2, what="the merged log")
    kx.end()
    with next(logs.iterdir()).open("r+b") as f:
        f.truncate(2)
    kx.options += f",archive={place}"
    kx.start()
    found = wait_for(lambda: folder(place, job), what=kx.said)
    assert sorted((found / name / "log").read_text() for name in ("main-0", "main-1")) == ["on", "one\ntwo\n"]
    assert f"{job.id}: log is damaged; kxfs archives the job without the damaged part" in kx.said()
    assert 'archive_error: ""' in kx.read(".kxfs/info")


def test_end_of_the_mount(make_kx, place):
    """Jobs that end with the mount are archived; after a kill, the next mount does that."""
    kx = make_kx(options=f"archive={place}")
    job = kx.submit(app("echo runs; sleep 1000"))
    job.until_logged("runs\n")
    kx.end()
    assert (folder(place, job) / "state").read_text() == "CANCELLED\n", kx.said()
    kx.start()
    job = kx.submit(app("echo ran"))
    job.finish()
    kx.end(signal.SIGKILL)
    kx.start()
    wait_for(lambda: folder(place, job), what=kx.said)
    assert (folder(place, job) / "main-0/log").read_text() == "ran\n"


def test_ro(make_kx, place):
    """A read-only mount shows the archive's location, and writes nothing there."""
    kx = make_kx(options=f"archive={place},ro")
    assert os.readlink(kx / "archive") == str(place / "local")
    kx.end()
    assert not list(place.iterdir())


def test_not_there(make_kx, place):
    kx = make_kx(options=f"archive={place}/none", start=False)
    with pytest.raises(AssertionError, match=f"{place}/none: No such file or directory"):
        kx.start()
    kx = make_kx(start=False)
    kx.options = f"archive={kx.mnt}/sub"
    with pytest.raises(AssertionError, match="this is in the mount"):
        kx.start()


def test_reported(make_kx, place):
    """A failing archive is reported, the job waits, and no other file is delayed."""
    kx = make_kx(options=f"archive={place}")
    (place / ".kxfs-archive").rename(place / "hidden")
    job = kx.submit(app("echo text"))
    job.finish()
    wait_for(lambda: "is it mounted?" in kx.read(".kxfs/info"), what=kx.said)
    assert "archive_waiting: 1" in kx.read(".kxfs/info") and "kxfs_archive_failing 1" in kx.read(".kxfs/metrics")
    assert "is it mounted?" in kx.read(".kxfs/log")
    (place / "hidden").rename(place / ".kxfs-archive")
    wait_for(lambda: folder(place, job), what=kx.said)
    wait_for(lambda: 'archive_error: ""' in kx.read(".kxfs/info"))


def test_removed_before(make_kx, place):
    """rm -r history/ID removes a job for good, even if it is not archived yet."""
    kx = make_kx(options=f"archive={place}")
    (place / ".kxfs-archive").rename(place / "hidden")
    job = kx.submit(app("echo text"))
    job.finish()
    harness.remove(job.dir)
    harness.remove(job.old)
    wait_for(lambda: "archive_waiting: 0" in kx.read(".kxfs/info"), what=kx.said)


def test_does_not_answer(make_kx, place):
    """A hanging archive delays nothing: it is reported, and the job is archived when it answers again."""
    kx = make_kx(options=f"archive={place}", start=False)
    disk = Disk(kx, place)
    try:
        kx.start()
        disk.hang("mkdir", "local")
        with disk.still():
            job = kx.submit(app("echo first"))
            job.finish()
            wait_for(lambda: f'archive_error: "{place}: does not answer"' in kx.read(".kxfs/info"), what=kx.said)
            assert "kxfs_archive_failing 1" in kx.read(".kxfs/metrics")
            other = kx.submit(app("echo second"))
            other.finish()
            assert other.read("log") == "main/0 second\n" and sorted(kx.ls("jobs")) == sorted([job.id, other.id])
            disk.hang("mkdir", "kxfs-doctor")
            said = run([kx.binary, "doctor", "-o", f"archive={place},state={kx.base}/other", "local:"], check=False).stdout
            assert f"{place}: does not answer" in said
            disk.hang("mkdir", "local")
        disk.go_on()
        for one in job, other:
            wait_for(lambda one=one: folder(place, one), what=kx.said)
            assert (folder(place, one) / "log").read_bytes() == one.read("log", binary=True)
        wait_for(lambda: 'archive_error: ""' in kx.read(".kxfs/info"))
    finally:
        disk.close()
