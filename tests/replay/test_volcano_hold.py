# SPDX-License-Identifier: MIT
"""Held jobs of a cluster, and launches whose result is unknown."""

import errno
import json
import os
import pathlib
import random
import signal
import subprocess
import time

import harness
import pytest
import records
import replies
import store as st
from disk import started
from faults import common_faults
from preload import Clock
from submitting import error_of, job_of

# --- Held jobs --------------------------------------------------------------------------------
# Held jobs of a cluster: the server checks them at the close, and kxfs launches them later, exactly once, even if kxfs
# and the network fail in the middle.
#
# KXFS_TEST_HELD_JOBS is how many test_kills holds (default 40), KXFS_TEST_HELD_KILLS how often kxfs is killed
# meanwhile (5).

JOBS = int(os.environ.get("KXFS_TEST_HELD_JOBS", "40"))
KILLS = int(os.environ.get("KXFS_TEST_HELD_KILLS", "5"))


def held(name="app", **args):
    return json.dumps({**json.loads(harness.app("true", name=name)), "scheduler_args": args})


def launched(server):
    """Return the names of the jobs in the cluster."""
    return [obj.name for obj in server.store.objects(st.JOBS)[0]]


def posts(server):
    return [req for req in server.seen(verb="create", resource="jobs") if "dryRun" not in req.query]


def run_to_end(volcano, name, code=0):
    pods = volcano.start(name)
    volcano.finish_all(pods, code)


def test_release(kx, server, volcano):
    """At the close the server only checks it; released, the job is launched under its name, and its `wait` continues
    through the launch."""
    text = held(hold=True)
    job = kx.submit(text)
    assert launched(server) == [] and kx.ls("jobs") == [job.id]
    (asked,) = server.seen(verb="create", resource="jobs")
    assert asked.query["dryRun"] == "All"
    status = job.status()
    assert (status["state"], status["reason"], status["backend"]) == ("PENDING", "Held", "volcano")
    assert status["namespace"] == "test" and job.read("app.yaml") == text
    assert f"name: {job.id}" in job.read("manifest.yaml") and "events" not in kx.ls("jobs", job.id)
    assert job.log() == b""
    readers = [harness.popen(["cat", str(job.dir / "live" / name)], stdout=subprocess.PIPE, text=True)
               for name in ("wait", "follow")]
    harness.write_ctl(job, "release")
    harness.wait_for(lambda: launched(server) == [job.id], what="the launch")
    (pod,) = volcano.start(job.id)
    volcano.log(pod).append("hello\n")
    job.until_logged("hello\n")
    volcano.finish_all([pod])
    assert [reader.communicate()[0] for reader in readers] == ["SUCCEEDED\n", "main/0 hello\n"]
    (sent,) = posts(server)
    assert json.loads(sent.body)["metadata"]["annotations"]["kxfs/appdef"] == text
    assert job.read("app.yaml") == text and job_of(kx, job.id) is None
    harness.wait_for(lambda: all(records.head_of(r)["state"]["state"] == "LIVE" for r in records.files(kx)), what="the record to be LIVE")
    job.cancel()  # cancel=own


def test_changes(kx, server, volcano):
    """It is one job from the beginning: no part of it appears or disappears at its launch."""
    del server
    job = kx.submit(held(hold=True))
    path = kx.base / "changes"
    with open(path, "wb") as out:
        changes = harness.popen(["cat", str(kx / "live/changes")], stdout=out)
    harness.wait_for(lambda: "SYNC" in path.read_text(), what="the beginning")
    harness.write_ctl(job, "release")
    harness.wait_for(lambda: job.status()["phase"] != "Held", what="the launch")
    run_to_end(volcano, job.id)
    harness.wait_for(lambda: "SUCCEEDED" in path.read_text(), what="the end")
    changes.kill()
    changes.wait(harness.LIMIT)
    lines = [line.split("\t") for line in path.read_text().splitlines()]
    assert {line[1] for line in lines} == {job.id, "-"}
    assert [line[2] for line in lines if line[2] not in ("SYNC", "SUBMITTED", "PENDING", "RUNNING")] == ["SUCCEEDED"]


def test_refused(kx, server):
    """A job that the server refuses is refused at the close, and not held."""
    server.faults.add("reply", verb="create", reply=replies.forbidden("tester", "create", st.JOBS, "test"))
    assert harness.err_of(kx.write, "submit/app.yaml", held(hold=True)) == "EACCES"
    assert kx.ls("jobs") == [] and "create" in error_of(kx, "app.yaml")
    assert harness.err_of(kx.write, "submit/app.yaml", held(hold=True, no_such="x")) == "EINVAL"
    assert not records.files(kx)


def test_after(kx, server, volcano):
    """A chain: each is launched when the previous one has ended as required; impossible ones are cancelled."""
    first = kx.submit(harness.app("true"), "first.yaml")
    jobs = [kx.submit(held(after=["ok:first"]))]
    for _ in range(2):
        jobs.append(kx.submit(held(after=[f"ok:{jobs[-1].id}"])))
    never = kx.submit(held(after=["failed:first"]))
    assert jobs[0].read("why") == f"The job waits for {first.id} to succeed.\n"
    for job in (first, *jobs):
        harness.wait_for(lambda j=job: j.id in launched(server), what="the launch")
        run_to_end(volcano, job.id)
        job.finish()
    never.never()
    assert never.status()["reason"] == "DependencyNeverSatisfied"
    assert len(launched(server)) == 4


def test_after_foreign(kx, server, volcano):
    """It waits for a job that another user has launched, and that is removed while it runs."""
    foreign = kx.submit(harness.app("true"))
    jobs = {wish: kx.submit(held(after=[f"{wish}:{foreign.id}"])) for wish in ("ok", "any")}
    volcano.start(foreign.id)
    foreign.until("RUNNING")
    server.store.remove(st.JOBS, "test", foreign.id)
    jobs["ok"].never()
    harness.wait_for(lambda: jobs["any"].id in launched(server), what="the launch")


@pytest.mark.parametrize("fault", ["lose", "reset", "cut", "junk"])
def test_broken_connection(kx, server, fault):
    """It is unknown whether the launch took effect: kxfs finds out, and the job is launched once."""
    job = kx.submit(held(hold=True))
    server.faults.add(fault, amount=150, verb="create")
    harness.write_ctl(job, "release")
    harness.wait_for(lambda: all(records.head_of(r)["state"]["state"] == "LIVE" for r in records.files(kx)), what="the record to be LIVE")
    assert launched(server) == [job.id] == kx.ls("jobs")
    assert job.status()["phase"] != "Held"


def test_not_now(kx, server):
    """The server refuses temporarily: that is reported, and retried."""
    job = kx.submit(held(hold=True))
    fault = server.faults.add("reply", times=10000, verb="create", reply=replies.forbidden("tester", "create", st.JOBS, "test"))
    harness.write_ctl(job, "release")
    harness.wait_for(lambda: job.status()["reason"] == "LaunchDelayed", what="the refusal")
    assert job.read("why").startswith("The job waits: could not be launched; kxfs retries: ")
    server.faults.clear(fault)
    harness.wait_for(lambda: launched(server) == [job.id], what="the launch")


def test_condition_is_met_for_good(make_mount, server, volcano):
    """The awaited job has succeeded and is deleted; the launch is delayed meanwhile, and kxfs is restarted."""
    kx = make_mount(server, options="capture=none")
    first = kx.submit(harness.app("true"), "first.yaml")
    job = kx.submit(held(after=["ok:first"]))
    fault = server.faults.add("reply", times=100000, verb="create", reply=replies.forbidden("tester", "create", st.JOBS, "test"))
    run_to_end(volcano, first.id)
    first.finish()
    harness.wait_for(lambda: job.status()["reason"] == "LaunchDelayed", what="the refusal")
    server.store.remove(st.JOBS, "test", first.id)
    harness.wait_for(lambda: kx.ls("jobs") == [job.id], what="the first job to go")
    kx.restart(signal.SIGKILL)
    server.faults.clear(fault)
    harness.wait_for(lambda: launched(server) == [job.id], what="the launch")


def test_killed_after_the_server_has_it(kx, server, volcano):
    """kxfs is killed during the launch, and the server has the job: the next start finds it, and sends nothing."""
    job = kx.submit(held(hold=True))
    server.faults.add("deaf", verb="create")
    harness.write_ctl(job, "release")
    harness.wait_for(lambda: launched(server), what="the request")
    kx.end(signal.SIGKILL)
    kx.start()
    harness.wait_for(lambda: job.status()["phase"] != "Held", what="the job")
    assert kx.ls("jobs") == [job.id] == launched(server) and error_of(kx, "app.yaml") is None
    run_to_end(volcano, job.id)
    job.finish()
    assert job.status()["submitter"]
    job.cancel()
    kx.restart()
    assert launched(server) == kx.ls("jobs") == []


@pytest.mark.parametrize("gone", [False, True], ids=["never there", "gone again"])
def test_killed_and_not_found(kx, server, volcano, gone):
    """kxfs is killed during the launch, and the server does not have the job, or no longer: that can't be
    distinguished, so it is not resent. It reports that, and can't be removed while it may still appear."""
    job = kx.submit(held(hold=True))
    harness.wait_for(lambda: server.hold(resource="jobs"), what="the watch of jobs")
    server.faults.add("deaf" if gone else "silent", verb="create")
    harness.write_ctl(job, "release")
    harness.wait_for(lambda: launched(server) if gone else posts(server), what="the request")
    kx.end(signal.SIGKILL)
    if gone:
        run_to_end(volcano, job.id)
        server.store.remove(st.JOBS, "test", job.id)
    sent = len(posts(server))
    kx.start()
    harness.wait_for(lambda: job.status()["reason"] == "Submitting", what="the job")
    assert job.status()["state"] == "SUBMITTED" and "may still show it" in job.read("why") and job.read("ctl") == ""
    assert harness.err_of(os.rmdir, job.dir) == "EAGAIN"
    kx.restart()
    assert job.status()["reason"] == "Submitting"
    assert launched(server) == [] and len(posts(server)) == sent


def test_disk_refuses_that_it_was_launched(make_mount, server, volcano):
    """The job was launched, has ended and is deleted, and nothing of that got to disk before the kill: it is not
    launched again."""
    with started(make_mount(server, options="capture=none", start=False)) as (kx, disk):
        job = kx.submit(held(hold=True))
        harness.wait_for(lambda: server.hold(resource="jobs"), what="the watch of jobs")
        server.faults.add("deaf", verb="create")
        harness.write_ctl(job, "release")
        harness.wait_for(lambda: launched(server), what="the request")
        disk.hang("create|open|rename", "^/jobs/", errno.EIO)
        server.hold(False, resource="jobs")
        run_to_end(volcano, job.id)
        job.finish()
        harness.wait_for(lambda: "Input/output error" in kx.said(), what="the disk's refusal")
        server.store.remove(st.JOBS, "test", job.id)
        kx.end(signal.SIGKILL)
        disk.go_on()
        sent = len(posts(server))
        kx.start()
        harness.wait_for(lambda: job.status()["reason"] == "Submitting", what="the job")
        assert launched(server) == [] and len(posts(server)) == sent and error_of(kx, "app.yaml") is None


def test_removed_while_it_is_launched(kx, server):
    """Removing waits for the launch, and then ends the job; it does not reappear."""
    job = kx.submit(held(hold=True))
    server.faults.add("slow", amount=200, delay=0.2, verb="create")
    harness.write_ctl(job, "release")
    harness.wait_for(lambda: posts(server), what="the request")
    harness.remove(job.dir)
    harness.wait_for(lambda: launched(server) == [] and kx.ls("jobs") == [], what="the end")
    kx.end(signal.SIGKILL)
    kx.start()
    assert launched(server) == kx.ls("jobs") == [] and len(posts(server)) == 1


def test_kills(kx, server, pytestconfig):
    """Many held jobs, a bad network, and kxfs is killed repeatedly: each is launched, once."""
    seed = pytestconfig.getoption("--seed") or int(time.time())
    rng = random.Random(seed)
    jobs = [kx.submit(held(begin=f"+{rng.randint(1, 4)}s")) for _ in range(JOBS)]
    rest = kx.submit(held(hold=True))
    server.faults.at_random(seed, 0.1, common_faults(replies), verb="create")
    for _ in range(KILLS):
        time.sleep(rng.random())  # at any moment
        kx.end(signal.SIGKILL)
        kx.start()
    server.faults.clear()
    wanted = sorted(job.id for job in jobs)

    def unknown():
        """Return those that were being sent when kxfs was killed, and that the server does not have."""
        return sorted(job.id for job in jobs if job.status()["reason"] == "Submitting")

    harness.wait_for(lambda: sorted([*launched(server), *unknown()]) == wanted, timeout=600, what=f"the launches, seed {seed}")
    assert kx.ls("jobs") == sorted([*wanted, rest.id]), f"seed {seed}"
    harness.wait_for(lambda: len(records.files(kx)) == 1 + JOBS, what=f"one record a job, seed {seed}")
    by_name = {}
    for req in posts(server):
        if req.body and req.body.startswith(b"{"):
            meta = json.loads(req.body)["metadata"]
            by_name.setdefault(meta["name"], set()).add(meta["annotations"]["kxfs/submission"])
    assert all(len(uuids) == 1 for uuids in by_name.values()), f"seed {seed}"
    assert rest.status()["reason"] == "Held"


# --- Launches with an unknown result ----------------------------------------------------------
# A launch with an unknown outcome, since kxfs was killed during the request: the job is in jobs/ as SUBMITTED, and
# all readers see it. Ten minutes later it counts as not launched; if it was held, the user decides.

SENT = "it was being sent when kxfs ended or lost the connection"


@pytest.fixture
def clock(tmp_path):
    return Clock(tmp_path, time.CLOCK_MONOTONIC)


@pytest.fixture
def clocked(make_mount, server, volcano, clock):
    del volcano
    return make_mount(server, env=clock.env)


def killed(clocked, server, send):
    """Kill kxfs when the API server has read, and not answered, the request of SEND. Return the job, as the next
    mount shows it."""
    harness.wait_for(lambda: server.hold(resource="jobs"), what="the watch of jobs")
    server.faults.add("silent", verb="create")
    send()
    harness.wait_for(lambda: posts(server), what="the request")
    clocked.end(signal.SIGKILL)
    clocked.start()
    (name,) = harness.wait_for(lambda: clocked.ls("jobs"), what="the job")
    return harness.Job(clocked, name)


def undecided(clocked, server):
    """Copy a file to submit/."""
    (clocked.base / "app.yaml").write_text(harness.app("true"))
    copies = []
    job = killed(clocked, server, lambda: copies.append(harness.popen(["cp", clocked.base / "app.yaml", clocked / "submit/"], stderr=subprocess.PIPE)))
    assert copies[0].wait(harness.LIMIT) == 1
    return job


def listed(clocked, place, ident):
    """Return the state and reason of the only job in PLACE, from list and from list.jsonl."""
    _, line = clocked.read(place, "list").splitlines()
    (status,) = map(json.loads, clocked.read(place, "list.jsonl").splitlines())
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

    def __init__(self, clocked, job):
        self.path = clocked.base / "changes"
        with open(self.path, "wb") as out:
            self.changes = harness.popen(["cat", str(clocked / "live/changes")], stdout=out)
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


def test_not_launched(clocked, server, clock):
    """A job that the server does not have ten minutes after the kill was not launched: it is in history/ then."""
    job = undecided(clocked, server)
    assert listed(clocked, ".", job.id) == ("SUBMITTED", "Submitting")
    assert job.read("why") == f"The job waits: {SENT}; the server may still show it.\n"
    assert job.read("app.yaml") == harness.app("true") and job.read("ctl") == job.read("manifest.yaml") == ""
    read_all(job.dir)
    assert harness.err_of(os.rmdir, job.dir) == "EAGAIN" and clocked.history() == []
    readers = Readers(clocked, job)
    clock.set(601)
    assert job.never() == "CANCELLED"
    assert readers.end() == (["CANCELLED\n", ""], ["SUBMITTED", "CANCELLED"])
    assert clocked.ls("jobs") == [] and listed(clocked, "history", job.id) == ("CANCELLED", "NotLaunched")
    words = "nothing was launched, or the job has been removed since; writing its file again launches a new job"
    assert clocked.read("history", job.id, "why") == f"The job was cancelled: {words}.\n"
    assert clocked.read("history", job.id, "app.yaml") == harness.app("true")
    read_all(clocked / "history" / job.id)
    assert os.readlink(clocked / "submit/app.yaml.job") == f"../history/{job.id}" and error_of(clocked, "app.yaml") is None
    clocked.restart()
    assert clocked.ls("jobs") == [] and listed(clocked, "history", job.id) == ("CANCELLED", "NotLaunched")
    assert len(posts(server)) == 1
    (clocked / "history" / job.id).rmdir()
    clocked.restart()
    assert clocked.ls("jobs") == clocked.history() == records.files(clocked) == []


def test_launched_after_all(clocked, server, volcano, clock):
    """The server shows it after all: the readers continue through that, to its end."""
    job = undecided(clocked, server)
    readers = Readers(clocked, job)
    assert harness.decided(clocked) == set()
    server.pass_on([req for req in posts(server) if req.body][0])
    harness.wait_for(lambda: harness.decided(clocked) == {job.id}, what="the job")
    (pod,) = volcano.start(job.id)
    volcano.log(pod).append("hello\n")
    job.until_logged("hello\n")
    volcano.finish_all([pod])
    told, states = readers.end()
    assert told == ["SUCCEEDED\n", "main/0 hello\n"]
    assert states[0] == "SUBMITTED" and states[-1] == "SUCCEEDED"
    clock.set(601)
    assert clocked.ls("jobs") == [job.id] and job_of(clocked, "app.yaml") == job.id and error_of(clocked, "app.yaml") is None


@pytest.mark.parametrize("again", [True, False], ids=["release", "remove"])
def test_held(clocked, server, volcano, clock, again):
    """A held job is never reported as not launched: the user submits it again, or removes it."""
    job = clocked.submit(held(hold=True))
    assert killed(clocked, server, lambda: harness.write_ctl(job, "release")).id == job.id
    read_all(job.dir)
    clock.set(601)
    harness.wait_for(lambda: job.status()["reason"] == "LaunchUnknown", what="the ten minutes")
    assert listed(clocked, ".", job.id) == ("SUBMITTED", "LaunchUnknown")
    assert job.read("why") == f"The job waits: {SENT}; the server has no such job now, but may have had one. Write release to its ctl " \
                              "to send it again, or remove its directory to forget it.\n"
    assert job.read("ctl").split() == ["release"]
    assert len(posts(server)) == 1 and launched(server) == []
    if again:
        readers = Readers(clocked, job)
        harness.write_ctl(job, "release")
        harness.wait_for(lambda: launched(server) == [job.id], what="the launch")
        run_to_end(volcano, job.id)
        assert readers.end()[0] == ["SUCCEEDED\n", ""]
    else:
        job.dir.rmdir()
        assert clocked.ls("jobs") == clocked.history() == []
    clocked.restart()
    assert clocked.ls("jobs") == launched(server) == ([job.id] if again else [])
    assert len(posts(server)) == 1 + again and len(records.files(clocked)) == again
