# SPDX-License-Identifier: MIT
"""What went wrong once and is in nobody else's file: found by playing with a mount."""

import contextlib
import os
import pathlib

import pytest
from disk import Disk
from harness import app, marked_pids, sh_role, wait_for, write_ctl

# Its second replica fails once, when it is told to.
SCRIPT = "echo runs; until [ $ME = 1 -a -e again ]; do sleep 0.05; done; rm again; exit 1"


def test_a_job_of_thousands_of_replicas_is_accepted_soon(kx):
    """close() does not wait until all processes have been started one after the other: within its
    30 s they are not."""
    job = kx.submit(app("", roles=[sh_role("exit 0", num_replicas=6000)]))
    assert len(job.status()["roles"][0]["replicas"]) == 6000


def test_a_directory_read_from_its_start_again_is_read_anew(kx):
    fd = os.open(kx / "jobs", os.O_RDONLY)
    try:
        assert os.listdir(fd) == []
        job = kx.submit(app("true"))
        assert os.listdir(fd) == [job.id]  # the same descriptor: rewinddir(3)
        job.cancel()
        assert os.listdir(fd) == []
    finally:
        os.close(fd)


def test_logs_of_many_attempts_have_their_own_names(kx):
    job = kx.submit(app("echo $KXFS_ATTEMPT-; exit 1", max_retries=3, retry_policy="REPLICA"))
    job.finish("FAILED")
    for wrong in ("log.3", "log.01", "log.", "log.99999999999999999999", "log.-1", "log.0x", "x.log"):
        assert not os.path.lexists(job / "main-0" / wrong), wrong
    assert all(job.log(name=f"log.{i}") for i in range(3))


def states(script):
    """How the programs stand that a job with SCRIPT has started: R, S, T. What they have forked is in the same session."""
    found = []
    for pid in marked_pids():
        with contextlib.suppress(OSError):
            if script.encode() in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                state, _, _, session = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:4]
                if session == str(pid):
                    found.append(state)
    return found


@pytest.fixture
def starting(make_kx):
    """A job that runs, and one of whose programs is about to be started again, as long as the disk hangs."""
    kx = make_kx(start=False)
    disk = Disk(kx)
    try:
        kx.start()
        job = kx.submit(app(SCRIPT, num_replicas=2, max_retries=1, retry_policy="REPLICA",
                            env={"ME": "${replica_id}"}))
        for name in ("main-0", "main-1"):
            job.until_logged("runs", name)
        disk.hang("create", "/tasks/")
        (kx.work / "again").touch()
        wait_for(lambda: disk.hangs("/tasks/"), what="the helper to wait for the disk")
        yield job, disk
    finally:
        disk.go_on()
        try:
            kx.end()
        finally:
            disk.close()


def test_a_job_that_is_suspended_while_a_program_is_started_is_stopped(starting):
    job, disk = starting
    write_ctl(job, "suspend")
    disk.go_on()
    wait_for(lambda: states(SCRIPT) == ["T", "T"], what="both programs to be stopped")
    write_ctl(job, "resume")
    wait_for(lambda: "T" not in states(SCRIPT), what="them to go on")


def test_a_job_that_is_cancelled_while_a_program_is_started_ends(starting):
    job, disk = starting
    job.cancel()
    disk.go_on()
    wait_for(lambda: "finished: null" not in (job.old / "status").read_text(), what="its end")
    for name in ("main-0", "main-1"):  # not by SIGKILL, which comes when the time to end has passed
        assert "\nsignal: 15\n" in (job.old / name / "status").read_text()
    assert not states(SCRIPT)
