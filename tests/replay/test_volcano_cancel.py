# SPDX-License-Identifier: MIT
"""`rm -r` of a job in a cluster: one DELETE, of exactly this job, and every way in which it is refused."""

import json

import harness
import pytest
import replies
import store as st
import watching

APP = harness.app("true", num_replicas=2)


def deletes(server):
    return server.seen(verb="delete", resource="jobs")


def rm(kx, name, tool="rm -r"):
    return harness.run(f"{tool} {kx.mnt}/jobs/{name}", check=False, user=kx.user)


def is_late(p):
    """True if it took more than the 3 s that a rmdir waits for the server. Then jobs/ shows the outcome."""
    return p.returncode != 0 and "timed out" in p.stderr


def refused(kx, name):
    """Return the message of `rm -r` of a job that the server refuses to delete. If rm timed out, kxfs has the
    refusal by now."""
    p = rm(kx, name)
    if is_late(p):
        harness.wait_for(lambda: f"{name}: not removed: " in kx.read(".kxfs", "log"), what="the server's refusal")
    return p


def removed(kx, name, p):
    """P has removed the job, or the removal continues."""
    assert p.returncode == 0 or is_late(p), p.stderr
    harness.wait_for(lambda: p.returncode == 0 or name not in kx.ls("jobs"), what=f"{name} to go")
    assert name not in kx.ls("jobs")


def gone(server, kx, name, p):
    removed(kx, name, p)
    assert server.store.find(st.JOBS, "test", name) is None


@pytest.mark.parametrize("tool", ["rm -r", "rmdir", "busybox rm -r", "find -delete"])
@pytest.mark.concurrent
def test_cancel(kx, server, volcano, tool):
    job = kx.submit(APP)
    volcano.start(job.id)
    job.until("RUNNING")
    uid = server.store.find(st.JOBS, "test", job.id).uid
    if tool == "find -delete":
        p = harness.run(["find", str(job.dir), "-delete"], check=False)
    else:
        p = rm(kx, job.id, tool)
    gone(server, kx, job.id, p)
    (delete,) = deletes(server)
    assert delete.name == job.id
    body = json.loads(delete.body)
    assert body["preconditions"]["uid"] == uid
    assert body["propagationPolicy"] == "Background"


@pytest.mark.concurrent
def test_last_words(kx, server, volcano):
    """Output after SIGTERM, when its job is already deleted, is in history/."""
    volcano.keep_pods = True
    job = kx.submit(APP)
    pods = volcano.start(job.id)
    volcano.log(pods[0]).append("working\n")
    job.until_logged("working\n", "main-0")
    removed(kx, job.id, rm(kx, job.id))
    log = volcano.log(pods[0])
    log.append("checkpoint written\n")
    volcano.remove_pods(job.id)
    harness.wait_for(lambda: (job.old / "main-0/log").read_bytes() == b"working\ncheckpoint written\n")
    assert (job.old / "state").read_text() == "CANCELLED\n"


@pytest.mark.parametrize("reply,text", [
    (replies.forbidden("ada", "delete", st.JOBS, "test", "x"), "Permission denied"),
    (replies.recorded("401-bad-token.json"), "Permission denied"),
    (replies.wrong_uid(st.JOBS, "x", "a", "b"), "Stale file handle"),
    (replies.internal(), ""),
], ids=["403", "401", "another uid", "500"])
def test_refused(kx, server, volcano, reply, text):
    """The errno reports it, and the job is still there, complete, also for processes that have it open."""
    job = kx.submit(APP)
    volcano.start(job.id)
    watching.until_runs(job)
    before = {p.relative_to(job.dir) for p in job.dir.rglob("*")}
    with open(job / "main-0/status") as held:
        server.faults.add("reply", times=1000, reply=reply, verb="delete")
        p = refused(kx, job.id)
        assert p.returncode == 1 and (text in p.stderr or is_late(p))
        assert held.read()
    server.faults.clear()
    assert job.state() == "RUNNING"
    # There may be more by now, for example its events.
    harness.wait_for(lambda: {p.relative_to(job.dir) for p in job.dir.rglob("*")} >= before)
    gone(server, kx, job.id, rm(kx, job.id))


def test_another_job_of_that_name(kx, server, volcano):
    """Another job has replaced it: the new one is not the one to cancel."""
    del volcano
    job = kx.submit(APP)
    harness.wait_for(lambda: server.open_streams(resource="jobs", verb="watch"))
    server.faults.add("silent", times=100, resource="jobs", verb="watch")
    server.faults.add("silent", times=100, resource="jobs", verb="list")
    server.end_streams("end", resource="jobs")
    harness.wait_for(lambda: not server.open_streams(resource="jobs"))
    server.store.remove(st.JOBS, "test", job.id)
    server.store.add(st.JOBS, watching.job(job.id))
    p = refused(kx, job.id)
    assert p.returncode == 1 and ("Stale" in p.stderr or is_late(p))
    assert server.store.find(st.JOBS, "test", job.id)


def test_gone_already(kx, server, volcano):
    """Another user was faster: that is a success."""
    del volcano
    job = kx.submit(APP)
    server.faults.add("reply", reply=replies.not_found(st.JOBS, job.id), verb="delete")
    p = rm(kx, job.id)
    assert p.returncode == 0 or "No such file" in p.stderr or is_late(p)


@pytest.mark.parametrize("fault", ["reset", "lose", "cut", "junk"])
@pytest.mark.concurrent
def test_broken_connection(kx, server, volcano, fault):
    """The reply is lost: a retry finds it deleted."""
    job = kx.submit(APP)
    volcano.start(job.id)
    job.until("RUNNING")
    server.faults.add(fault, amount=60, verb="delete")
    p = rm(kx, job.id)
    gone(server, kx, job.id, p)
    assert len({json.loads(d.body)["preconditions"]["uid"] for d in deletes(server) if d.body}) == 1


def test_jobs_of_others(kx, make_mount, server, volcano):
    """cancel=own, the default: a careless rm -rf does not end others' work."""
    del volcano
    server.store.add(st.JOBS, watching.job("theirs"))
    harness.wait_for(lambda: "theirs" in kx.ls("jobs"))
    p = rm(kx, "theirs", "rm -rf")
    assert p.returncode == 1 and "not permitted" in p.stderr
    assert not deletes(server) and kx.ls("jobs") == ["theirs"]
    assert "theirs" in kx.read(".kxfs", "log")
    every = make_mount(server, options="cancel=all")
    gone(server, every, "theirs", rm(every, "theirs"))
    harness.wait_for(lambda: kx.ls("jobs") == [])


@pytest.mark.concurrent
def test_cancelled_by_somebody_else(kx, server, volcano):
    """`wait` ends, and the job moves to history/."""
    job = kx.submit(APP)
    pods = volcano.start(job.id)
    volcano.log(pods[0]).append("hello\n")
    job.until_logged("hello\n", "main-0")
    with open(job / "wait", "rb") as file:  # open before the job goes
        waiting = harness.popen(["cat"], stdin=file, stdout=-1)
    server.store.remove(st.JOBS, "test", job.id)
    assert waiting.communicate(timeout=harness.LIMIT)[0] == b"CANCELLED\n"
    harness.wait_for(lambda: job.id not in kx.ls("jobs"))
    assert (job.old / "main-0/log").read_bytes() == b"hello\n"
    assert kx.history() == [job.id]


def test_offline(kx, server, volcano):
    """Without a route: an error within the deadline, and the job is complete. A rm that got ETIMEDOUT may still take
    effect when the server is back."""
    del volcano
    job = kx.submit(APP)
    server.away()
    p = rm(kx, job.id)
    assert p.returncode == 1
    assert job.id in kx.ls("jobs") and job.status()["id"] == job.id
    server.back()
    harness.wait_for(lambda: rm(kx, job.id).returncode == 0 or job.id not in kx.ls("jobs"))
    harness.wait_for(lambda: server.store.find(st.JOBS, "test", job.id) is None)
