# SPDX-License-Identifier: MIT
"""A launch with an unknown outcome, since kxfs was killed during the request: the job is in jobs/ as SUBMITTED, and
all readers see it. Ten minutes later it counts as not launched; if it was held, the user decides."""

import json
import os
import pathlib
import signal
import subprocess
import time

import harness
import pytest
import records
from preload import Clock
from submitting import error_of, job_of
from test_volcano_hold import held, launched, posts, run_to_end

SENT = "it was being sent when kxfs ended or lost the connection"


@pytest.fixture
def clock(tmp_path):
    return Clock(tmp_path, time.CLOCK_MONOTONIC)


@pytest.fixture
def kx(make_mount, server, volcano, clock):
    del volcano
    return make_mount(server, env=clock.env)


def killed(kx, server, send):
    """Kill kxfs when the API server has read, and not answered, the request of SEND. Return the job, as the next
    mount shows it."""
    harness.wait_for(lambda: server.hold(resource="jobs"), what="the watch of jobs")
    server.faults.add("silent", verb="create")
    send()
    harness.wait_for(lambda: posts(server), what="the request")
    kx.end(signal.SIGKILL)
    kx.start()
    (name,) = harness.wait_for(lambda: kx.ls("jobs"), what="the job")
    return harness.Job(kx, name)


def undecided(kx, server):
    """Copy a file to submit/."""
    (kx.base / "app.yaml").write_text(harness.app("true"))
    copies = []
    job = killed(kx, server, lambda: copies.append(harness.popen(["cp", kx.base / "app.yaml", kx / "submit/"], stderr=subprocess.PIPE)))
    assert copies[0].wait(harness.LIMIT) == 1
    return job


def listed(kx, place, ident):
    """Return the state and reason of the only job in PLACE, from list and from list.jsonl."""
    _, line = kx.read(place, "list").splitlines()
    (status,) = map(json.loads, kx.read(place, "list.jsonl").splitlines())
    fields = line.split()
    assert fields[0] == status["id"] == ident
    assert (fields[1], fields[-1]) == (status["state"], status["reason"])
    return status["state"], status["reason"]


def read_all(top):
    """Every file of a job can be statted and read, as cp -r does."""
    for where, _, names in os.walk(top):
        for name in names:
            path = pathlib.Path(where, name)
            if not path.is_symlink():  # a log that there is not, and live/
                assert path.stat().st_size == len(path.read_bytes()), path


class Readers:
    """Readers of its `wait`, and of `changes`."""

    def __init__(self, kx, job):
        self.path = kx.base / "changes"
        with open(self.path, "wb") as out:
            self.changes = harness.popen(["cat", str(kx / "live/changes")], stdout=out)
        self.waits = [harness.popen(["cat", str(job.dir / "live" / name)], stdout=subprocess.PIPE, text=True)
                      for name in ("wait", "follow")]
        harness.wait_for(lambda: "SYNC" in self.path.read_text(), what="the beginning")

    def end(self):
        """Return what they have read; of the changes, the states."""
        told = [reader.communicate(timeout=harness.LIMIT)[0] for reader in self.waits]
        harness.wait_for(lambda: told[0].strip() in self.path.read_text(), what="the last change")
        self.changes.kill()
        self.changes.wait(harness.LIMIT)
        return told, [line.split("\t")[2] for line in self.path.read_text().splitlines() if "SYNC" not in line]


def test_not_launched(kx, server, clock):
    """A job that the server does not have ten minutes after the kill was not launched: it is in history/ then."""
    job = undecided(kx, server)
    assert listed(kx, ".", job.id) == ("SUBMITTED", "Submitting")
    assert job.read("why") == f"The job waits: {SENT}; the server may still show it.\n"
    assert job.read("app.yaml") == harness.app("true") and job.read("ctl") == job.read("manifest.yaml") == ""
    read_all(job.dir)
    assert harness.err_of(os.rmdir, job.dir) == "EAGAIN" and kx.history() == []
    readers = Readers(kx, job)
    clock.set(601)
    assert job.never() == "CANCELLED"
    assert readers.end() == (["CANCELLED\n", ""], ["SUBMITTED", "CANCELLED"])
    assert kx.ls("jobs") == [] and listed(kx, "history", job.id) == ("CANCELLED", "NotLaunched")
    words = "nothing was launched, or the job has been removed since; writing its file again launches a new job"
    assert kx.read("history", job.id, "why") == f"The job was cancelled: {words}.\n"
    assert kx.read("history", job.id, "app.yaml") == harness.app("true")
    read_all(kx / "history" / job.id)
    assert os.readlink(kx / "submit/app.yaml.job") == f"../history/{job.id}" and error_of(kx, "app.yaml") is None
    kx.restart()
    assert kx.ls("jobs") == [] and listed(kx, "history", job.id) == ("CANCELLED", "NotLaunched")
    assert len(posts(server)) == 1
    (kx / "history" / job.id).rmdir()
    kx.restart()
    assert kx.ls("jobs") == kx.history() == records.files(kx) == []


def test_launched_after_all(kx, server, volcano, clock):
    """The server shows it after all: the readers continue through that, to its end."""
    job = undecided(kx, server)
    readers = Readers(kx, job)
    assert harness.decided(kx) == set()
    server.pass_on([req for req in posts(server) if req.body][0])
    harness.wait_for(lambda: harness.decided(kx) == {job.id}, what="the job")
    (pod,) = volcano.start(job.id)
    volcano.log(pod).append("hello\n")
    job.until_logged("hello\n")
    volcano.finish_all([pod])
    told, states = readers.end()
    assert told == ["SUCCEEDED\n", "main/0 hello\n"]
    assert states[0] == "SUBMITTED" and states[-1] == "SUCCEEDED"
    clock.set(601)
    assert kx.ls("jobs") == [job.id] and job_of(kx, "app.yaml") == job.id and error_of(kx, "app.yaml") is None


@pytest.mark.parametrize("again", [True, False], ids=["release", "remove"])
def test_held(kx, server, volcano, clock, again):
    """A held job is never reported as not launched: the user submits it again, or removes it."""
    job = kx.submit(held(hold=True))
    assert killed(kx, server, lambda: harness.write_ctl(job, "release")).id == job.id
    read_all(job.dir)
    clock.set(601)
    harness.wait_for(lambda: job.status()["reason"] == "LaunchUnknown", what="the ten minutes")
    assert listed(kx, ".", job.id) == ("SUBMITTED", "LaunchUnknown")
    assert job.read("why") == f"The job waits: {SENT}; the server has no such job now, but may have had one. Write release to its ctl " \
                              "to send it again, or remove its directory to forget it.\n"
    assert job.read("ctl").split() == ["release"]
    assert len(posts(server)) == 1 and launched(server) == []
    if again:
        readers = Readers(kx, job)
        harness.write_ctl(job, "release")
        harness.wait_for(lambda: launched(server) == [job.id], what="the launch")
        run_to_end(volcano, job.id)
        assert readers.end()[0] == ["SUCCEEDED\n", ""]
    else:
        job.dir.rmdir()
        assert kx.ls("jobs") == kx.history() == []
    kx.restart()
    assert kx.ls("jobs") == launched(server) == ([job.id] if again else [])
    assert len(posts(server)) == 1 + again and len(records.files(kx)) == again
